//! From files to archives, and back.

use std::path::PathBuf;

use ndarray::{Array1, Array2, ShapeBuilder as _};
use serde::{Deserialize, Serialize};
use tenarc::archive::SaveOptions;
use tenarc::io::SyncLevel;
use tenarc::{Archive, OArchive, Tensor, Value};
use tenarc_convert::arrow::{self, ArrowFile, Export};
use tenarc_convert::{Format, Names, Options, TensorFile as _};

use super::support::{archived, fixtures, quick, says, value};

fn unsynced() -> Options {
    Options::default().with_save(SaveOptions::default().with_sync(SyncLevel::Off))
}

#[derive(Serialize, Deserialize, Debug, PartialEq)]
struct Model {
    layers: Vec<Layer>,
    scale: Tensor<ndarray::Array0<f64>>,
}

#[derive(Serialize, Deserialize, Debug, PartialEq)]
struct Layer {
    weight: Tensor<Array2<f32>>,
    bias: Tensor<Array1<f32>>,
}

fn model() -> Model {
    let layer = |seed: u8| Layer {
        weight: Array2::from_shape_fn((3, 2).f(), |(i, j)| f32::from(seed) + (i * 2 + j) as f32)
            .into(),
        bias: Array1::from_elem(3, f32::from(seed)).into(),
    };
    Model { layers: vec![layer(1), layer(2)], scale: ndarray::arr0(0.5).into() }
}

#[test]
fn a_model_goes_there_and_back() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    tenarc::save(at("a.tenarc"), &model()).unwrap();
    for name in ["model.arrow", "model.arrows"] {
        let losses = Format::Arrow.from_archive(at("a.tenarc"), at(name), &quick()).unwrap();
        assert!(losses.is_empty());
        for names in [Names::Flat, Names::Nested] {
            let options = unsynced().with_names(names);
            let losses = Format::Arrow.to_archive(at(name), at("b.tenarc"), &options).unwrap();
            assert!(losses.is_empty());
            let (a, b) =
                (tenarc::open(at("a.tenarc")).unwrap(), tenarc::open(at("b.tenarc")).unwrap());
            b.verify().unwrap();
            for info in a.tensors().unwrap() {
                // As it was, in its order.
                assert_eq!(
                    a.only().unwrap().dyn_tensor(info.path()).unwrap(),
                    b.only().unwrap().dyn_tensor(info.path()).unwrap()
                );
            }
            if names == Names::Nested {
                assert_eq!(b.load::<Model>().unwrap(), model());
            }
        }
    }
}

#[derive(Serialize, Deserialize, Debug, PartialEq)]
struct Table {
    words: Vec<String>,
    x: Tensor<Array2<f32>>,
    inner: Inner,
}

#[derive(Serialize, Deserialize, Debug, PartialEq)]
struct Inner {
    labels: Vec<String>,
    y: Tensor<Array1<u8>>,
}

#[test]
fn texts_of_one_a_row_go_there_and_back() {
    let words = |seed: usize| (0..4).map(|row| "é".repeat(row * seed)).collect::<Vec<_>>();
    let table = Table {
        words: words(1),
        x: Array2::ones((4, 2)).into(),
        inner: Inner { labels: words(1000), y: Array1::zeros(4).into() },
    };
    let archive = archived(&table);
    let segment = archive.segment(0).unwrap();
    let export = Export::new(&segment).unwrap();
    assert_eq!((export.texts().len(), export.tensors().len()), (2, 2));
    let mut bytes = Vec::new();
    export.to_writer(&mut bytes, &quick().with_rows_per_batch(3)).unwrap();
    let file = ArrowFile::new(bytes).unwrap();
    assert_eq!(file.texts("inner.labels").unwrap(), table.inner.labels);
    assert_eq!(archived(&file.nested().unwrap()).load::<Table>().unwrap(), table);
}

#[test]
fn what_is_no_column_is_lost() {
    let value = Value::Map(
        [
            ("count", Value::Integer(3)),
            ("texts", Value::Array(vec![Value::Text("a".into())])),
            ("mixed", Value::Array(vec![Value::Text("a".into()), Value::Null])),
            ("none", Value::Array(Vec::new())),
            ("x", Value::Tensor(Box::new(Array1::<u8>::zeros(2).into()))),
            ("__metadata__", Value::Map(vec![(Value::Text("k".into()), Value::Text("v".into()))])),
        ]
        .map(|(key, value)| (Value::Text(key.into()), value))
        .into(),
    );
    let archive = archived(&value);
    let segment = archive.segment(0).unwrap();
    let export = Export::new(&segment).unwrap();
    says(export.to_writer(Vec::new(), &quick()), "`count`: an integer is not a tensor");
    let mut bytes = Vec::new();
    let losses = export.to_writer(&mut bytes, &quick().with_losses(true)).unwrap();
    let losses: Vec<String> = losses.listed().iter().map(ToString::to_string).collect();
    assert_eq!(
        losses,
        [
            "`count`: an integer is not a tensor: it is left out",
            "`mixed.0`: a text string is not a tensor: it is left out",
            "`mixed.1`: null is not a tensor: it is left out",
            "`texts`: an array of 1 texts cannot be a column of this table: it is left out",
            "`none`: an array of 0 texts cannot be a column of this table: it is left out",
        ]
    );
    let file = ArrowFile::new(bytes).unwrap();
    assert_eq!((file.rows(), file.tensors().len()), (2, 1));
    assert_eq!(file.metadata(), Some(&[("k".to_owned(), "v".to_owned())][..]));
}

#[test]
fn fixtures_become_archives() {
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("a.tenarc");
    for name in [
        "dtypes.arrow",
        "lz4.arrows",
        "strings.arrow",
        "structs.arrow",
        "no_rows.arrow",
        "no_columns.arrow",
    ] {
        let from = fixtures().join(name);
        Format::Arrow.to_archive(&from, &to, &unsynced()).unwrap();
        let found: Value = tenarc::load(&to).unwrap();
        assert_eq!(found, value(&arrow::open(&from).unwrap()).unwrap(), "{name}");
    }
    let from = fixtures().join("metadata.arrow");
    let error =
        says(Format::Arrow.to_archive(&from, &to, &unsynced()), "stops unless losses are accepted");
    assert!(error.to_string().contains("metadata.arrow"));
    let losses = Format::Arrow.to_archive(&from, &to, &unsynced().with_losses(true)).unwrap();
    assert_eq!(&losses, arrow::open(&from).unwrap().losses());
    // With times, or columns that are no tensors, it is a table.
    let from = fixtures().join("times.arrow");
    Format::Arrow.to_archive(&from, &to, &unsynced()).unwrap();
    let back = dir.path().join("back.arrow");
    let losses = Format::Arrow.from_archive(&to, &back, &unsynced()).unwrap();
    assert!(losses.is_empty(), "{losses:?}");
    let columns = |file| {
        let file = arrow_ipc::reader::FileReader::try_new(std::fs::File::open(file).unwrap(), None);
        let batches: Vec<_> = file.unwrap().map(Result::unwrap).collect();
        assert_eq!(batches.len(), 1);
        let kinds = batches[0].schema_ref().fields().iter().map(|field| field.data_type().clone());
        (kinds.collect::<Vec<_>>(), batches[0].columns().to_vec())
    };
    assert_eq!(columns(&back), columns(&from));
    let from = fixtures().join("lost.arrow");
    says(
        Format::Arrow.to_archive(&from, &to, &unsynced()),
        "`runs`: an archive has no type for runs",
    );
    Format::Arrow.to_archive(&from, &to, &unsynced().with_losses(true)).unwrap();
    let archive = tenarc::open(&to).unwrap();
    let words: Vec<Option<String>> = archive.table("lost").unwrap().column("words").unwrap();
    assert_eq!(words, [Some("a".to_owned()), None, Some("c".to_owned())]);
}

/// Byte strings that are long enough for buffers of their own.
#[test]
fn long_byte_strings_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (dir.path().join("x.arrow"), dir.path().join("x.tenarc"));
    let strings: arrow_array::ArrayRef =
        std::sync::Arc::new(arrow_array::BinaryArray::from_iter_values([
            vec![7u8; 5000],
            vec![],
            vec![8; 3000],
        ]));
    let batch = arrow_array::RecordBatch::try_from_iter([("b", strings)]).unwrap();
    let file = std::fs::File::create(&from).unwrap();
    let mut out = arrow_ipc::writer::FileWriter::try_new(file, &batch.schema()).unwrap();
    out.write(&batch).unwrap();
    out.finish().unwrap();
    Format::Arrow.to_archive(&from, &to, &unsynced()).unwrap();
    let found: Value = tenarc::load(&to).unwrap();
    let lens =
        found.get("b").unwrap().as_array().unwrap().iter().map(|b| b.as_bytes().unwrap().len());
    assert_eq!(lens.collect::<Vec<_>>(), [5000, 0, 3000]);
}

#[test]
fn several_values_are_exported_one_by_one() {
    let dir = tempfile::tempdir().unwrap();
    let path: PathBuf = dir.path().join("two.tenarc");
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save(&model()).unwrap().save(&model()).unwrap();
    let bytes = out.finish().unwrap();
    std::fs::write(&path, &bytes).unwrap();
    says(
        Format::Arrow.from_archive(&path, dir.path().join("x.arrow"), &quick()),
        "an archive of one value, found 2",
    );
    let archive = Archive::new(bytes).unwrap();
    for segment in archive.segments() {
        let segment = segment.unwrap();
        let export = Export::new(&segment).unwrap();
        export.save(dir.path().join("x.arrow"), &quick()).unwrap();
        let file = arrow::open(dir.path().join("x.arrow")).unwrap();
        assert_eq!(file.tensors().len(), 5);
    }
}
