//! Files in memory, and what is in them.

use std::io;
use std::path::{Path, PathBuf};

use tenarc::io::{ReadAt, SyncLevel};
use tenarc::tensor::{Order, ToTensor};
use tenarc::{Archive, DType, DynTensor, Error, OArchive, Value};
use tenarc_convert::arrow::{ArrowFile, Container};
use tenarc_convert::{Options, TensorFile as _};

/// Every dtype that Arrow has.
pub const DTYPES: [DType; 12] = [
    DType::Bool,
    DType::U8,
    DType::U16,
    DType::U32,
    DType::U64,
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::F16,
    DType::F32,
    DType::F64,
];

pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/convert/tests/fixtures/arrow")
}

pub fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(fixtures().join(name)).unwrap()
}

/// The default, but for syncing, which tests of contents need not wait for.
pub fn quick() -> Options {
    Options::default().with_sync(SyncLevel::Off)
}

/// A tensor of bytes that differ by seed; of bools, for bools.
pub fn tensor(dtype: &DType, shape: &[usize], order: Order, seed: u8) -> DynTensor {
    let count = shape.iter().product::<usize>() * dtype.bits().unwrap() / 8;
    let top = if *dtype == DType::Bool { 2 } else { 113 };
    // No NaN, which would not be equal to itself. Not in step with the elements of a row.
    let byte = |at: usize| u8::try_from((at + at / 7 + usize::from(seed)) % top).unwrap();
    DynTensor::new(dtype.clone(), shape, order, (0..count).map(byte).collect()).unwrap()
}

pub fn written<T: ToTensor>(tensors: &[(&str, T)], options: &Options) -> Vec<u8> {
    let mut bytes = Vec::new();
    let losses = tenarc_convert::arrow::to_writer_with(&mut bytes, tensors, options).unwrap();
    assert!(losses.is_empty(), "{losses}");
    bytes
}

/// The same in both containers.
pub fn both<T: ToTensor>(tensors: &[(&str, T)], options: &Options) -> [Vec<u8>; 2] {
    [Container::File, Container::Stream]
        .map(|format| written(tensors, &options.clone().with_container(format)))
}

/// What saving a value gives.
pub fn archived<T: serde::Serialize>(value: &T) -> Archive<Vec<u8>> {
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save(value).unwrap();
    Archive::new(out.finish().unwrap()).unwrap()
}

/// The whole file as it is in an archive.
pub fn value<S: ReadAt>(file: &ArrowFile<S>) -> Result<Value, Error> {
    let mut out = OArchive::new(Vec::new())?;
    out.save(&file.flat()?)?;
    Archive::new(out.finish()?)?.load()
}

/// A file that gives three bytes at a time.
pub struct Slow<'a>(pub &'a [u8]);

impl ReadAt for Slow<'_> {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        let most = out.len().min(3);
        self.0.read_at(&mut out[..most], offset)
    }

    fn size(&self) -> io::Result<u64> {
        self.0.size()
    }
}

#[track_caller]
pub fn says<T>(result: Result<T, Error>, expected: &str) -> Error {
    let error = result.err().expect("an error");
    assert!(error.to_string().contains(expected), "{error}");
    error
}
