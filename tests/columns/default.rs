//! Which sequences an archive stores as columns by default: those whose tensors are still all listed.

use std::collections::BTreeMap;

use ndarray::{Array1, Array2};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tenarc::archive::SaveOptions;
use tenarc::inspect::{COLUMNS, Event};
use tenarc::tensor::DynTensor;
use tenarc::{Archive, OArchive, Tensor, Value};

/// The numbers here are small.
fn small(at: usize) -> u16 {
    u16::try_from(at).unwrap()
}

type Vector = Tensor<Array1<f32>>;

fn vector(at: usize) -> Vector {
    Array1::from_elem(4, f32::from(small(at))).into()
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct Row<T> {
    id: u32,
    content: T,
}

fn to_bytes<T: Serialize>(value: &T, options: SaveOptions) -> Vec<u8> {
    let mut out = OArchive::with_options(Vec::new(), options).unwrap();
    out.save(value).unwrap();
    out.finish().unwrap()
}

fn rows<T>(count: usize, content: impl Fn(usize) -> T) -> Vec<Row<T>> {
    (0..count).map(|at| Row { id: u32::from(small(at)), content: content(at) }).collect()
}

/// Saves a value with these options under the key `log`, beside another sequence.
fn saved<T: Serialize>(value: &T, options: SaveOptions) -> Vec<u8> {
    #[derive(Serialize)]
    struct Whole<'a, T> {
        log: &'a T,
        others: Vec<Row<Vector>>,
    }
    let mut out = OArchive::with_options(Vec::new(), options).unwrap();
    out.save(&Whole { log: value, others: rows(300, vector) }).unwrap();
    out.finish().unwrap()
}

/// The dtype and shape of each tensor in `log` by its path.
fn listed(bytes: &[u8]) -> BTreeMap<String, (String, Vec<usize>)> {
    let archive = Archive::new(bytes).unwrap();
    let tensors = archive.tensors().unwrap();
    let described = tensors.iter().map(|tensor| {
        let found: DynTensor = archive.only().unwrap().dyn_tensor(tensor.path()).unwrap();
        assert_eq!((found.dtype(), found.shape()), (tensor.dtype(), tensor.shape()));
        (tensor.path().to_owned(), (tensor.dtype().to_string(), tensor.shape().to_vec()))
    });
    let all: BTreeMap<_, _> = described.collect();
    // The other sequence is always columns, unless no sequence is.
    assert_eq!(all["others.content"].1, [300, 4]);
    all.into_iter().filter(|(path, _)| !path.starts_with("others.")).collect()
}

fn read_back<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(
    value: &T,
    bytes: &[u8],
) {
    let archive = Archive::new(bytes).unwrap();
    assert_eq!(archive.get::<T>("log").unwrap(), *value);
    // The value that is read from columns and the one that is read from rows are equal.
    let all: Value = archive.get("log").unwrap();
    assert_eq!(tenarc::from_value::<T>(all).unwrap(), *value);
}

/// The value is stored as rows, so that its tensors are listed as they are without columns.
#[track_caller]
fn stays_rows<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(value: &T) {
    let bytes = saved(value, SaveOptions::default());
    read_back(value, &bytes);
    let plain =
        to_bytes(&BTreeMap::from([("log", value)]), SaveOptions::default().with_columns(false));
    let plain = Archive::new(&plain).unwrap().tensors().unwrap();
    let plain: Vec<_> = plain.iter().map(|tensor| tensor.path().to_owned()).collect();
    assert!(!plain.is_empty());
    let mut found: Vec<_> = listed(&bytes).into_keys().collect();
    let mut plain = plain;
    found.sort();
    plain.sort();
    assert_eq!(found, plain);
}

/// Whether any sequence of the only value is stored as columns.
fn has_columns(bytes: &[u8]) -> bool {
    let archive = Archive::new(bytes).unwrap();
    let segment = archive.only().unwrap();
    segment.inspect().unwrap().any(|item| matches!(item.unwrap().event, Event::Tag(COLUMNS)))
}

#[track_caller]
fn is_columns<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(
    value: &T,
    expected: &[(&str, &[usize])],
) {
    let bytes = saved(value, SaveOptions::default());
    read_back(value, &bytes);
    let found = listed(&bytes);
    let found: Vec<_> = found.iter().map(|(path, (_, dims))| (&**path, &dims[..])).collect();
    assert_eq!(found, expected);
}

#[test]
fn records_without_tensors_are_columns_from_128_rows_on() {
    let text = |at: usize| format!("row {at}");
    is_columns(&rows(128, text), &[("log.id", &[128])]);
    is_columns(&rows(127, text), &[]);
    is_columns(
        &rows(128, |at| (f64::from(small(at)), f64::from(small(at)))),
        &[("log.content", &[128, 2]), ("log.id", &[128])],
    );
}

#[test]
fn rows_with_tensors_are_columns_from_256_on() {
    is_columns(&rows(256, vector), &[("log.content", &[256, 4]), ("log.id", &[256])]);
    stays_rows(&rows(255, vector));
    let layer = |at| Row { id: 7, content: vector(at) };
    is_columns(
        &rows(256, layer),
        &[("log.content.content", &[256, 4]), ("log.content.id", &[256]), ("log.id", &[256])],
    );
    stays_rows(&rows(255, layer));
}

#[test]
fn a_whole_value_of_few_rows_is_a_table() {
    let bytes = to_bytes(&rows(20, vector), SaveOptions::default());
    let archive = Archive::new(&bytes).unwrap();
    assert_eq!(archive.tensors().unwrap()[1].path(), "content");
    let bytes = to_bytes(&rows(3, |at| f32::from(small(at))), SaveOptions::default());
    let archive = Archive::new(&bytes).unwrap();
    assert_eq!(archive.tensors().unwrap()[1].path(), "content");
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
enum Shape {
    Empty,
    Mesh(Vector),
    Named { mesh: Vector },
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct Numbered {
    id: u32,
    #[serde(rename = "7")]
    tensor: Vector,
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct Sparse {
    id: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tensor: Option<Vector>,
}

#[test]
fn rows_with_tensors_that_no_column_path_leads_to_stay_rows() {
    stays_rows(&rows(300, |at| Some(vector(at))));
    stays_rows(&rows(300, |at| (at % 7 == 6).then(|| vector(at))));
    stays_rows(&rows(300, |at| vec![vector(at); at % 3]));
    stays_rows(&rows(300, |at| BTreeMap::from([(format!("k{}", at % 3), vector(at))])));
    stays_rows(&rows(300, |at| match at % 3 {
        0 => Shape::Empty,
        1 => Shape::Mesh(vector(at)),
        _ => Shape::Named { mesh: vector(at) },
    }));
    stays_rows(&rows(300, |at| (small(at), vector(at))));
    // Of another shape in a late row.
    stays_rows(&rows(300, |at| Tensor(Array1::from_elem(if at < 290 { 4 } else { 5 }, 0.5f32))));
    // A number in a dotted path is a row, so the path of the column is a JSON Pointer.
    let numbered: Vec<_> =
        (0..300).map(|at| Numbered { id: u32::from(small(at)), tensor: vector(at) }).collect();
    is_columns(&numbered, &[("/log/7", &[300, 4]), ("log.id", &[300])]);
    let sparse: Vec<_> = (0..300)
        .map(|at| Sparse { id: u32::from(small(at)), tensor: (at > 290).then(|| vector(at)) })
        .collect();
    stays_rows(&sparse);
    let tensor = |at| Value::Tensor(Box::new(DynTensor::from(Array1::from_elem(9, small(at)))));
    is_columns(&rows(300, tensor), &[("log.content", &[300, 9]), ("log.id", &[300])]);
    stays_rows(&rows(300, |at| if at < 280 { Value::Null } else { tensor(at) }));
    stays_rows(&rows(300, |at| if at == 280 { Value::Bool(true) } else { tensor(at) }));
    stays_rows(&rows(300, |at| Some(Some(rows(20, |_| vector(at))))));
}

#[test]
fn tuples_of_tensors_are_one_tensor() {
    is_columns(
        &rows(300, |at| (vector(at), vector(at + 1))),
        &[("log.content", &[300, 2, 4]), ("log.id", &[300])],
    );
}

#[test]
fn sequences_inside_rows_are_columns_themselves() {
    // The outer rows hide tensors, the inner ones do not.
    let value = rows(20, |_| Some(rows(300, vector)));
    let bytes = saved(&value, SaveOptions::default());
    read_back(&value, &bytes);
    let found = listed(&bytes);
    assert_eq!(found.len(), 40);
    assert_eq!(found["log.3.content.content"].1, [300, 4]);
}

#[test]
fn many_levels_of_rows_that_hide_tensors_end_as_rows() {
    #[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
    struct Tree {
        tensor: Option<Vector>,
        inner: Vec<Tree>,
    }
    let mut tree = Tree { tensor: Some(vector(0)), inner: Vec::new() };
    for level in 1..12 {
        let few = Tree { tensor: None, inner: Vec::new() };
        let mut inner = vec![few; 128];
        inner[127] = tree;
        tree = Tree { tensor: Some(vector(level)), inner };
    }
    let bytes = to_bytes(&tree, SaveOptions::default());
    let archive = Archive::new(&bytes).unwrap();
    assert_eq!(archive.load::<Tree>().unwrap(), tree);
    assert_eq!(archive.tensors().unwrap().len(), 12);
    assert!(!has_columns(&bytes));
    assert!(has_columns(&to_bytes(&tree, SaveOptions::default().with_columns(true))));
}

#[test]
fn what_is_asked_for_is_done() {
    let hiding = rows(130, |at| Some(vector(at)));
    // By option.
    let bytes = saved(&hiding, SaveOptions::default().with_columns(true));
    read_back(&hiding, &bytes);
    assert_eq!(listed(&bytes).into_keys().collect::<Vec<_>>(), ["log.id"]);
    let archive = Archive::new(&bytes).unwrap();
    assert_eq!(archive.tensor::<Array1<f32>>("log.3.content").unwrap(), vector(3).0);
    // For a field.
    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    struct Columns {
        #[serde(with = "tenarc::columns")]
        inner: Vec<Row<Option<Vector>>>,
    }
    let columns = Columns { inner: hiding.clone() };
    let bytes = saved(&columns, SaveOptions::default());
    read_back(&columns, &bytes);
    assert_eq!(listed(&bytes).into_keys().collect::<Vec<_>>(), ["log.inner.id"]);
    // No columns.
    let plain = rows(300, vector);
    let bytes = to_bytes(&plain, SaveOptions::default().with_columns(false));
    assert_eq!(Archive::new(bytes).unwrap().tensors().unwrap().len(), 300);
    // A function that decides for each tensor sees each tensor.
    let options = SaveOptions::default().with_out_of_band(|tensor| tensor.path() == "3.content");
    let bytes = to_bytes(&plain, options);
    let archive = Archive::new(bytes).unwrap();
    assert!(archive.only().unwrap().info("3.content").unwrap().buffer().is_some());
    assert!(archive.only().unwrap().info("4.content").unwrap().buffer().is_none());
}

#[test]
fn parts_and_archives_agree() {
    for value in [rows(300, |at| Some(vector(at))), rows(20, |at| Some(vector(at)))] {
        let parts = tenarc::parts::to_parts(&value).unwrap();
        let (metadata, buffers) = (parts.metadata(), parts.buffers());
        let back: Vec<Row<Option<Vector>>> = tenarc::parts::from_parts(metadata, buffers).unwrap();
        assert_eq!(back, value);
        let archive = Archive::new(to_bytes(&value, SaveOptions::default())).unwrap();
        let archived = archive.only().unwrap();
        // Before it, the parts have a header.
        let metadata = archived.metadata().unwrap();
        assert!(parts.metadata().windows(metadata.len()).any(|part| part == metadata));
    }
}

#[test]
fn a_table_of_rows_and_columns_is_a_tensor() {
    let mut out = OArchive::new(Vec::new()).unwrap();
    let all = rows(340, vector);
    for part in [&all[..20], &all[20..320], &all[320..]] {
        out.save_as("day", part).unwrap();
    }
    let archive = Archive::new(out.finish().unwrap()).unwrap();
    let table = archive.table("day").unwrap();
    let content: Tensor<Array2<f32>> = table.column("content").unwrap();
    assert_eq!(content.shape(), [340, 4]);
    assert_eq!(
        content.column(2).to_vec(),
        (0..340).map(|at| f32::from(small(at))).collect::<Vec<_>>()
    );
    let back: Vec<Row<Vector>> = table.rows(..).unwrap();
    assert_eq!(back, all);
    // A row of another shape: there is no tensor of all.
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save_as("day", &all[..20]).unwrap();
    out.save_as("day", &rows(3, |_| Tensor(Array1::from_elem(5, 0.5f32)))).unwrap();
    let archive = Archive::new(out.finish().unwrap()).unwrap();
    let table = archive.table("day").unwrap();
    let error = table.column::<Tensor<Array2<f32>>>("content").unwrap_err().to_string();
    assert!(error.contains("some of its rows are f32[4], others f32[5]"), "{error}");
    let each: Vec<Vector> = table.column("content").unwrap();
    assert_eq!(each[22].len(), 5);
}

#[test]
fn paths_lead_into_columns_of_parts() {
    let value = BTreeMap::from([("log", rows(300, vector))]);
    let parts = tenarc::parts::to_parts(&value).unwrap();
    let back: Row<Vector> = parts.get("log.7").unwrap();
    assert_eq!(back, Row { id: 7, content: vector(7) });
    assert_eq!(parts.get::<u32>("log.299.id").unwrap(), 299);
    assert_eq!(parts.get::<Vec<u32>>("log.id").unwrap()[299], 299);
    for info in parts.tensors().unwrap() {
        let found: Tensor<DynTensor> = parts.get(info.path()).unwrap();
        assert_eq!((found.dtype(), found.shape()), (info.dtype(), info.shape()));
    }
    let view: Tensor<ndarray::ArrayView2<f32>> = parts.view_at("log.content").unwrap();
    assert_eq!(view[[8, 3]], 8.0);
    let error = parts.get::<u32>("log.300.id").unwrap_err().to_string();
    assert!(error.contains("expected a row below 300, found row 300"), "{error}");
    let error = parts.get::<u32>("log.size").unwrap_err().to_string();
    assert!(error.contains("expected one of the columns `id`, `content`"), "{error}");
}
