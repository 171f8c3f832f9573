//! Files in memory, and directories that go away.

use std::path::Path;

use tenarc::io::SyncLevel;
use tenarc::tensor::{Order, TensorInfo};
use tenarc::{DType, DynTensor, Error};
use tenarc_convert::TensorFile as _;
use tenarc_convert::safetensors::{self, Options, SafeTensors};

/// Every dtype there is, with its name in headers.
pub const DTYPES: [(DType, &str); 22] = [
    (DType::Bool, "BOOL"),
    (DType::F4, "F4"),
    (DType::F6E2M3, "F6_E2M3"),
    (DType::F6E3M2, "F6_E3M2"),
    (DType::U8, "U8"),
    (DType::I8, "I8"),
    (DType::F8E5M2, "F8_E5M2"),
    (DType::F8E4M3, "F8_E4M3"),
    (DType::F8E8M0, "F8_E8M0"),
    (DType::F8E4M3Fnuz, "F8_E4M3FNUZ"),
    (DType::F8E5M2Fnuz, "F8_E5M2FNUZ"),
    (DType::I16, "I16"),
    (DType::U16, "U16"),
    (DType::F16, "F16"),
    (DType::BF16, "BF16"),
    (DType::I32, "I32"),
    (DType::U32, "U32"),
    (DType::F32, "F32"),
    (DType::C64, "C64"),
    (DType::F64, "F64"),
    (DType::I64, "I64"),
    (DType::U64, "U64"),
];

pub fn code(dtype: &DType) -> &'static str {
    DTYPES.iter().find(|(known, _)| known == dtype).unwrap().1
}

/// A tensor of bytes that differ by seed; of bools, for bools.
pub fn tensor(dtype: &DType, shape: &[usize], seed: u8) -> DynTensor {
    let bits = shape.iter().product::<usize>() * dtype.bits().unwrap();
    assert_eq!(bits % 8, 0);
    let top = if *dtype == DType::Bool { 2 } else { 251 };
    let bytes = (0..bits / 8).map(|at| u8::try_from((at + usize::from(seed)) % top).unwrap());
    DynTensor::new(dtype.clone(), shape, Order::C, bytes.collect()).unwrap()
}

/// The default, but for syncing, which tests of contents need not wait for.
pub fn quick() -> Options {
    Options::default().with_sync(SyncLevel::Off)
}

/// A file with this header and these bytes behind it.
pub fn raw(header: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend_from_slice(data);
    bytes
}

#[track_caller]
pub fn refused(bytes: &[u8]) -> Error {
    SafeTensors::new(bytes).unwrap_err()
}

#[track_caller]
pub fn written(tensors: &[(&str, DynTensor)], options: &Options) -> Vec<u8> {
    let mut bytes = Vec::new();
    safetensors::to_writer_with(&mut bytes, tensors, options).unwrap();
    bytes
}

/// Everything in a file, written again.
#[track_caller]
pub fn rewritten<S: tenarc::io::ReadAt>(file: &SafeTensors<S>) -> Vec<u8> {
    let names = file.tensors().iter().map(TensorInfo::path);
    let tensors: Vec<_> = names.map(|name| (name, file.deferred(name).unwrap())).collect();
    let mut options = quick();
    if let Some(metadata) = file.metadata() {
        options = options.with_metadata(metadata.iter().cloned());
    }
    let mut bytes = Vec::new();
    safetensors::to_writer_with(&mut bytes, &tensors, &options).unwrap();
    bytes
}

/// The names of the files in a directory, hidden ones too.
pub fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
