//! Arrow 0.17 said in the metadata of each message that its buffers are compressed. They were read as they stand.
//!
//! The file is pyarrow's own: `pyarrow/tests/data/feather/` (Apache License 2.0).

use std::fs;
use std::path::Path;

use ndarray::Array1;
use tenarc_convert::arrow::{self, ArrowFile, Batches};

const KEY: &str = "ARROW:experimental_compression";

fn file() -> Vec<u8> {
    let name = "tests/fixtures/arrow/v0.17.0.version.2-compression.lz4.feather";
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

#[test]
fn is_read() {
    let file = ArrowFile::new(file()).unwrap();
    let a: Array1<i64> = file.tensor("a").unwrap();
    assert_eq!(a.to_vec(), [0, 1, 2, 3, 4]);
    assert!(file.losses().is_empty(), "{}", file.losses());
}

#[test]
fn is_read_from_a_stream() {
    let batches: Vec<_> = Batches::new(&file()[..]).unwrap().map(Result::unwrap).collect();
    let a: Array1<i64> = batches[0].tensor("a").unwrap();
    assert_eq!((a.to_vec(), batches.len()), (vec![0, 1, 2, 3, 4], 1));
}

#[test]
fn of_another_codec_is_refused_by_name() {
    let mut bytes = file();
    let at = bytes.windows(7).position(|window| window == b"\x03\0\0\0LZ4").unwrap();
    bytes[at + 4..at + 7].copy_from_slice(b"LZO");
    let error = ArrowFile::new(bytes).unwrap_err().to_string();
    assert!(error.contains("compressed by `lzo`"), "{error}");
}

#[test]
fn in_a_schema_is_refused_by_name() {
    let options = arrow::Options::default().with_metadata([(KEY, "zstd")]);
    let mut bytes = Vec::new();
    let column = [("a", Array1::<i64>::zeros(3))];
    arrow::to_writer_with(&mut bytes, &column, &options).unwrap();
    let error = ArrowFile::new(bytes).unwrap_err().to_string();
    assert!(error.contains(KEY), "{error}");
}
