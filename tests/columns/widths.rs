//! A column of integers of several widths is one tensor, of the least type that holds all of them.

use ndarray::{Array1, Array2, array, s};
use serde::{Deserialize, Serialize};
use tenarc::archive::SaveOptions;
use tenarc::{Archive, DType, DynTensor, OArchive, Tensor};
use tenarc_test_support::builder::{Seg, archive, array as items, bytes, map, tag, unsigned};

use crate::build::{columns, f32s, f64s, kind, u8s, u16s, u64s};

fn i8s(values: &[i8]) -> Vec<u8> {
    tag(72, &bytes(&values.iter().map(|value| value.to_le_bytes()[0]).collect::<Vec<_>>()))
}

fn file(groups: &[Vec<u8>]) -> Vec<u8> {
    let groups: Vec<_> = groups.iter().map(|column| (2, map(&[("x", column.clone())]))).collect();
    archive(&Seg::new(columns(&groups), &[]))
}

#[track_caller]
fn check(groups: &[Vec<u8>], expected: Option<(DType, &[i64])>) {
    let bytes = file(groups);
    let archive = Archive::new(&bytes[..]).unwrap();
    let segment = archive.only().unwrap();
    let found = segment.get::<Tensor<DynTensor>>("x");
    let Some((dtype, numbers)) = expected else {
        found.unwrap_err();
        assert!(segment.tensors().unwrap().is_empty());
        return;
    };
    let found = found.unwrap().0;
    assert_eq!(*found.dtype(), dtype);
    let info = segment.info("x").unwrap();
    assert_eq!((info.dtype(), info.shape()), (&dtype, &[numbers.len()][..]));
    let cast: Tensor<Array1<i64>> = segment.get("x").unwrap_or_else(|_| {
        let numbers: Vec<i64> = segment.get("x").unwrap();
        Tensor(Array1::from(numbers))
    });
    assert_eq!(cast.0.to_vec(), numbers);
    assert_eq!(segment.get::<Vec<i64>>("x").unwrap(), numbers);
    // A slice has the dtype of the whole column.
    let part: DynTensor = segment.slice("x", s![1..2]).unwrap();
    assert_eq!((part.dtype(), part.shape()), (&dtype, &[1][..]));
}

#[test]
fn the_least_type_holds_all_groups() {
    check(&[u8s(&[1, 2]), u8s(&[3, 4])], Some((DType::U8, &[1, 2, 3, 4])));
    check(
        &[u8s(&[1, 2]), u8s(&[3, 4]), u16s(&[500, 6])],
        Some((DType::U16, &[1, 2, 3, 4, 500, 6])),
    );
    check(&[u8s(&[255, 2]), i8s(&[-3, 4])], Some((DType::I16, &[255, 2, -3, 4])));
    check(&[i8s(&[-3, 4]), u16s(&[65_535, 1])], Some((DType::I32, &[-3, 4, 65_535, 1])));
    check(&[u64s(&[1, 2]), u8s(&[3, 4])], Some((DType::U64, &[1, 2, 3, 4])));
    check(&[u64s(&[1, 2]), i8s(&[3, 4])], None);
    check(&[f32s(&[1.0, 2.0]), f64s(&[1.0, 2.0])], None);
    check(&[f32s(&[1.0, 2.0]), u8s(&[1, 2])], None);
    check(&[u8s(&[1, 2]), kind("bool", &[bytes(&[1])])], None);
    check(&[u8s(&[1, 2]), kind("unit", &[])], None);
}

#[test]
fn in_arrays_and_tuples() {
    let arrays = |of| kind("array", &[unsigned(2), of]);
    let bytes = file(&[arrays(u8s(&[1, 2, 3, 4])), arrays(i8s(&[-1, 2, 3, 4]))]);
    let archive = Archive::new(&bytes[..]).unwrap();
    let found: Tensor<Array2<i16>> = archive.get("x").unwrap();
    assert_eq!(found.0, array![[1, 2], [3, 4], [-1, 2], [3, 4]]);
    // Columns of a type are not one column, but one tensor.
    let typed = |of| kind("type", &[tenarc_test_support::builder::text("a.b"), items(&[]), of]);
    let tuple = kind("tuple", &[items(&[typed(u8s(&[1, 2])), typed(u16s(&[500, 4]))])]);
    let bytes = file(&[tuple]);
    let archive = Archive::new(&bytes[..]).unwrap();
    let found: Tensor<Array2<u16>> = archive.get("x").unwrap();
    assert_eq!(found.0, array![[1, 500], [2, 4]]);
}

#[test]
fn over_the_segments_of_a_table() {
    let mut bytes = Vec::new();
    let mut out = OArchive::new(&mut bytes).unwrap();
    #[derive(Serialize)]
    struct Row<T> {
        id: T,
    }
    let rows = |from: u8| (from..from + 3).map(|id| Row { id }).collect::<Vec<_>>();
    out.save_as("ids", &rows(1)).unwrap();
    out.save_as("ids", &rows(4)).unwrap();
    out.save_as("ids", &vec![Row { id: 500u16 }]).unwrap();
    out.finish().unwrap();
    let archive = Archive::new(&bytes[..]).unwrap();
    let table = archive.table("ids").unwrap();
    let found: Tensor<Array1<u16>> = table.column("id").unwrap();
    assert_eq!(found.0, array![1, 2, 3, 4, 5, 6, 500]);
    let columns = table.columns().unwrap();
    assert_eq!(columns[0].dtype(), Some(&DType::U16));
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone, Copy)]
struct Row {
    floats: [f32; 32],
    nested: [[i8; 3]; 2],
    mixed: (u8, u32),
    signs: (u16, i8),
    none: (u64, i8),
    flags: [bool; 3],
    pair: (f32, f64),
    empty: [u8; 0],
}

/// Tuples of numbers of one type are one column.
#[test]
fn what_is_written_is_one_column() {
    let row = |n: u8| Row {
        floats: std::array::from_fn(|at| f32::from(n) + f32::from(u8::try_from(at).unwrap())),
        nested: [[-1, 2, 3], [4, 5, -6]],
        mixed: (n, 70_000 + u32::from(n)),
        signs: (60_000, -1),
        none: (u64::MAX - u64::from(n), -1),
        flags: [n.is_multiple_of(2), true, false],
        pair: (0.5, 0.25),
        empty: [],
    };
    let rows: Vec<Row> = (0..100).map(row).collect();
    let mut out = OArchive::with_options(Vec::new(), SaveOptions::default()).unwrap();
    out.save(&rows).unwrap();
    let bytes = out.finish().unwrap();
    let archive = Archive::new(&bytes[..]).unwrap();
    assert_eq!(archive.load::<Vec<Row>>().unwrap(), rows);
    let listed = archive.only().unwrap().tensors().unwrap();
    let found: Vec<String> = listed
        .iter()
        .map(|info| format!("{} {} {:?}", info.path(), info.dtype(), info.shape()))
        .collect();
    let expected = [
        "floats f32 [100, 32]",
        "nested i8 [100, 2, 3]",
        "mixed u32 [100, 2]",
        "signs i32 [100, 2]",
        "flags bool [100, 3]",
    ];
    assert_eq!(found, expected);
    let options = tenarc::ser::EncodeOptions::default().with_columns(true);
    let message = tenarc::ser::to_vec_with(&rows, options).unwrap();
    assert_eq!(tenarc::from_slice::<Vec<Row>>(&message).unwrap(), rows);
}
