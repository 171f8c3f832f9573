//! Files of pyarrow, pandas and polars: each gives the rows that its manifest has.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use ::parquet::data_type::Int32Type;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::parser::parse_message_type;
use ndarray::Array3;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use tenarc::{Tensor, Value};
use tenarc_convert::parquet::{self, Options, ParquetFile};
use tenarc_convert::{Loss, Losses};
use tenarc_test_support::hex;

use crate::round_trips::{read, written};

pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/parquet")
}

#[derive(Deserialize)]
struct Expected {
    groups: Vec<usize>,
    rows: Vec<Json>,
    losses: Vec<String>,
    notes: Vec<String>,
}

fn manifest() -> Vec<(String, Expected)> {
    let manifest = fs::read(fixtures().join("MANIFEST.json")).unwrap();
    let mut manifest: Json = serde_json::from_slice(&manifest).unwrap();
    let files = manifest["files"].as_object_mut().unwrap();
    let files = std::mem::take(files).into_iter();
    files.map(|(name, file)| (name, serde_json::from_value(file).unwrap())).collect()
}

/// A value as the manifest shows it.
fn shown(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(value) => json!(value),
        Value::Integer(_) => value.as_i64().map_or_else(|| json!(value.as_u64()), |n| json!(n)),
        Value::F32(value) => json!(f64::from(*value)),
        Value::F64(value) => json!(value),
        Value::Text(text) => json!(text),
        Value::Bytes(bytes) => json!({ "bytes": hex(bytes) }),
        Value::Array(items) => items.iter().map(shown).collect(),
        Value::Map(entries) => {
            let key = |key: &Value| key.as_str().unwrap().to_owned();
            Json::Object(entries.iter().map(|(name, value)| (key(name), shown(value))).collect())
        }
        Value::Tensor(tensor) => {
            let names = [("f16", "float16"), ("f32", "float32")];
            let found = names.iter().find(|(ours, _)| *ours == tensor.dtype().name()).unwrap();
            let elements: Vec<f64> = match tensor.as_slice::<f32>() {
                Ok(elements) => elements.iter().copied().map(f64::from).collect(),
                Err(_) => {
                    let halves = tensor.as_slice::<half::f16>().unwrap();
                    halves.iter().map(|half| half.to_f64()).collect()
                }
            };
            json!({ "tensor": found.1, "shape": tensor.shape(), "elements": elements })
        }
        other => panic!("{other:?}"),
    }
}

/// Numbers of one value are equal, however they are written.
fn is_equal(a: &Json, b: &Json) -> bool {
    match (a, b) {
        (Json::Number(a), Json::Number(b)) => {
            a == b || a.as_f64() == b.as_f64() && (a.is_f64() || b.is_f64())
        }
        (Json::Array(a), Json::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_equal(a, b))
        }
        (Json::Object(a), Json::Object(b)) => {
            a.len() == b.len()
                && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| is_equal(a, b)))
        }
        (a, b) => a == b,
    }
}

fn is_read(name: &str) -> bool {
    name != "brotli.parquet"
}

#[test]
fn each_file_gives_its_rows() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = 0;
    for (name, expected) in manifest().into_iter().filter(|(name, _)| is_read(name)) {
        let to = dir.path().join(&name).with_extension("tenarc");
        let options = Options::default().with_losses(true);
        let losses = parquet::to_archive(fixtures().join(&name), &to, &options).unwrap();
        let paths: Vec<_> = losses.listed().iter().map(Loss::path).collect();
        assert_eq!(paths, expected.losses, "{name}");
        for note in &expected.notes {
            let is_of = |found: &&String| found.contains(&format!("`{note}`"));
            assert!(
                losses.notes().iter().any(|found| is_of(&found)),
                "{name}: {:?}",
                losses.notes()
            );
        }
        let archive = tenarc::open(&to).unwrap();
        let groups: Vec<_> = archive
            .segments()
            .map(|segment| usize::try_from(segment.unwrap().table("").unwrap().len()).unwrap())
            .collect();
        let expected_groups = if expected.groups.is_empty() { vec![0] } else { expected.groups };
        assert_eq!(groups, expected_groups, "{name}");
        let table = archive.table(name.strip_suffix(".parquet").unwrap()).unwrap();
        let rows = table.rows::<Value>(..).unwrap();
        assert_eq!(rows.len(), expected.rows.len(), "{name}");
        for (number, (row, expected)) in rows.iter().zip(&expected.rows).enumerate() {
            let found = shown(row);
            assert!(is_equal(&found, expected), "{name}, row {number}: {found} is not {expected}");
        }
        files += 1;
    }
    assert!(files >= 17, "{files}");
}

#[test]
fn each_file_comes_back_from_an_archive() {
    for (name, expected) in manifest().into_iter().filter(|(name, _)| is_read(name)) {
        if expected.rows.is_empty() {
            continue;
        }
        let archive = read(fs::read(fixtures().join(&name)).unwrap());
        let (bytes, losses) = written(&archive, &Options::default());
        assert!(losses.is_empty(), "{name}: {losses}");
        let again = read(bytes);
        let rows = |archive: &tenarc::Archive<Vec<u8>>| {
            archive.table("t").unwrap().rows::<Value>(..).unwrap()
        };
        assert_eq!(rows(&again), rows(&archive), "{name}");
    }
}

#[test]
fn times_and_decimals_keep_their_types() {
    for name in ["times.parquet", "int96.parquet", "decimals.parquet"] {
        let bytes = fs::read(fixtures().join(name)).unwrap();
        let schema = |bytes: &[u8]| {
            let reader =
                ParquetRecordBatchReaderBuilder::try_new(::bytes::Bytes::from(bytes.to_vec()));
            reader.unwrap().schema().clone()
        };
        let (again, losses) = written(&read(bytes.clone()), &Options::default());
        assert!(losses.is_empty() && losses.notes().is_empty(), "{name}: {:?}", losses.notes());
        let types = |bytes: &[u8]| {
            let fields = schema(bytes).fields().clone();
            fields.iter().map(|field| field.data_type().clone()).collect::<Vec<_>>()
        };
        assert_eq!(types(&again), types(&bytes), "{name}");
    }
}

#[test]
fn columns_of_equal_lists_and_tensors_are_tensors() {
    let archive = read(fs::read(fixtures().join("tensors.parquet")).unwrap());
    let table = archive.table("t").unwrap();
    let frames: Tensor<Array3<f32>> = table.column("frame").unwrap();
    assert_eq!(frames.shape(), [4, 2, 3]);
    assert!(frames.iter().copied().eq((0u8..24).map(f32::from)));
    let archive = read(fs::read(fixtures().join("polars.parquet")).unwrap());
    let table = archive.table("t").unwrap();
    let vectors: Tensor<ndarray::Array2<f32>> = table.column("vector").unwrap();
    assert_eq!(vectors.as_slice().unwrap(), [0.5, 1.0, 1.5, 2.0, 2.5, 3.0]);
}

#[test]
fn losses_stop_a_conversion() {
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("to");
    let from = fixtures().join("lost.parquet");
    let error = parquet::to_archive(&from, &to, &Options::default()).unwrap_err();
    assert!(Losses::of(&error).is_some() && error.to_string().contains("view"), "{error}");
    assert!(!to.exists());
}

#[test]
fn codecs_that_are_not_built_are_named() {
    let error = |name: &str| {
        let file = ParquetFile::new(fs::read(fixtures().join(name)).unwrap()).unwrap();
        file.rows(0).unwrap_err().to_string().to_lowercase()
    };
    assert!(error("brotli.parquet").contains("brotli"), "{}", error("brotli.parquet"));
}

#[test]
fn files_are_converted_both_ways() {
    let dir = tempfile::tempdir().unwrap();
    let [archive, file, back] =
        ["a.tenarc", "b.parquet", "c.tenarc"].map(|name| dir.path().join(name));
    let from = fixtures().join("structs.parquet");
    parquet::to_archive(from, &archive, &Options::default().with_table("points")).unwrap();
    parquet::from_archive(&archive, &file, &Options::default()).unwrap();
    parquet::to_archive(&file, &back, &Options::default()).unwrap();
    let rows = |path: &Path| {
        tenarc::open(path).unwrap().table("points").unwrap().rows::<Value>(..).unwrap()
    };
    assert_eq!(rows(&archive), rows(&back));
    // What was there stays if a conversion fails.
    let before = fs::read(&file).unwrap();
    let options = Options::default().with_table("none");
    parquet::from_archive(&archive, &file, &options).unwrap_err();
    assert_eq!(fs::read(&file).unwrap(), before);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3);
}

#[test]
fn lists_of_lists_of_old_programs_are_read() {
    let schema = "message rows { required group a (LIST) { repeated group array (LIST) {
        repeated group array (LIST) { repeated int32 array; } } } }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut file = SerializedFileWriter::new(Vec::new(), schema, Arc::default()).unwrap();
    let mut group = file.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let (values, defined, repeated) = ([1, 2, 3, 4], [3, 3, 3, 3, 0, 2], [0, 3, 2, 1, 0, 0]);
    let typed = column.typed::<Int32Type>();
    typed.write_batch(&values, Some(&defined), Some(&repeated)).unwrap();
    column.close().unwrap();
    group.close().unwrap();

    let rows = read(file.into_inner().unwrap()).table("t").unwrap().rows::<Value>(..).unwrap();
    let rows: Vec<_> = rows.iter().map(shown).collect();
    assert_eq!(
        rows,
        [json!({ "a": [[[1, 2], [3]], [[4]]] }), json!({ "a": [] }), json!({ "a": [[[]]] })]
    );
}
