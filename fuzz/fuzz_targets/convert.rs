//! Reads files of other formats from arbitrary bytes. What can be read is written again, and must read the
//! same.
#![no_main]

use std::fmt::Debug;
use std::fs;
use std::io::Write as _;
use std::panic::{set_hook, take_hook};

use libfuzzer_sys::{Corpus, fuzz_target};
use tenarc::Archive;
use tenarc::de::Limits;
use tenarc::{DynTensor, OArchive, Tensor, Value};
use tenarc_convert::{
    Options, TensorFile as _, arrow, gguf, hdf5, into_archive, json, msgpack, npy, onnx, parquet,
    safetensors, tenbin, torch,
};

/// Dtype, shape and bytes of a tensor. Bytes are compared rather than elements, as a NaN equals nothing.
fn bytes(tensor: &DynTensor) -> (String, Vec<usize>, Vec<u8>) {
    (tensor.dtype().to_string(), tensor.shape().to_vec(), tensor.le_bytes().into_owned())
}

fn read_npy(input: &[u8]) {
    let limits = Limits::default().with_max_alloc(1 << 24);
    let Ok(tensor) = npy::read_with(input, limits) else { return };
    let mut written = Vec::new();
    npy::write(&mut written, &tensor).expect("writing what was read");
    let again = npy::read(&written[..]).expect("reading what was written");
    assert_eq!(bytes(&again), bytes(&tensor));
}

fn read_npz(input: &[u8]) {
    let limits = Limits::default().with_max_alloc(1 << 24);
    let Ok(npz) = npy::Npz::new(input).map(|npz| npz.with_limits(limits)) else { return };
    for name in npz.names() {
        let _ = npz.dyn_tensor(name);
    }
    let mut out = OArchive::new(Vec::new()).expect("writing to memory");
    let _ = into_archive(&npz, &mut out, &Options::default().with_losses(true));
}

fn read_safetensors(input: &[u8]) {
    let Ok(file) = safetensors::SafeTensors::new(input) else { return };
    let names: Vec<String> = file.tensors().iter().map(|info| info.path().to_owned()).collect();
    for name in &names {
        if let Ok(tensor) = file.dyn_tensor(name) {
            assert_eq!(
                tensor.le_bytes().len() as u64,
                file.info(name).expect("a tensor").byte_len()
            );
        }
    }
    let mut out = OArchive::new(Vec::new()).expect("writing to memory");
    if let Ok(flat) = file.flat() {
        let _ = out.save(&flat);
    }
    if let Ok(nested) = file.nested() {
        let _ = out.save(&nested);
    }
}

fn read_tenbin(input: &[u8]) {
    let limits = Limits::default().with_max_alloc(1 << 24);
    let found: Result<Vec<_>, _> = tenbin::Reader::with_limits(input, limits).collect();
    let Ok(arrays) = found else { return };
    let written = tenbin::encode_buffer(&arrays).expect("writing what was read");
    assert_eq!(written, input);
    let frames = tenbin::encode_frames(&arrays).expect("writing what was read");
    assert_eq!(tenbin::decode_frames(&frames).expect("reading frames").len(), arrays.len());
    let mut out = OArchive::new(Vec::new()).expect("writing to memory");
    let file = tenbin::TenFile::new(input, input.len() as u64).expect("reading the same file");
    into_archive(&file, &mut out, &Options::default()).expect("converting the same file");
}

fn read_torch(input: &[u8]) {
    let limits = Limits::default().with_max_alloc(1 << 24);
    let Ok(file) = torch::TorchFile::new(input).map(|file| file.with_limits(limits)) else {
        return;
    };
    for info in file.tensors() {
        let _ = file.dyn_tensor(info.path());
    }
    let mut out = OArchive::new(Vec::new()).expect("writing to memory");
    for value in [file.stored(), file.flat(), file.nested()].into_iter().flatten() {
        let _ = out.save(&value);
    }
}

fn read_arrow(input: &[u8]) {
    let limits = Limits::default().with_max_alloc(1 << 24);
    for batch in arrow::Batches::with_limits(input, limits).into_iter().flatten().take(100) {
        let Ok(batch) = batch else { break };
        for info in batch.tensors() {
            let _ = batch.dyn_tensor(info.path());
        }
    }
    let Ok(file) = arrow::ArrowFile::new(input).map(|file| file.with_limits(limits)) else {
        return;
    };
    let mut tensors = Vec::new();
    for info in file.tensors() {
        let Ok(tensor) = file.dyn_tensor(info.path()) else { continue };
        if info.path() != "__metadata__" {
            tensors.push((info.path(), tensor));
        }
    }
    let mut out = OArchive::new(Vec::new()).expect("writing to memory");
    for value in [file.flat(), file.nested()].into_iter().flatten() {
        let _ = out.save(&value);
    }
    let options = arrow::Options::default().with_layout(arrow::Layout::OneRow);
    let mut written = Vec::new();
    // Writing fails only if a cell is too large.
    if arrow::to_writer_with(&mut written, &tensors, &options).is_ok() {
        let again = arrow::ArrowFile::new(&written[..]).expect("reading what was written");
        for (name, tensor) in &tensors {
            let again = again.dyn_tensor(name).expect("reading what was written");
            assert_eq!(bytes(&again), bytes(tensor));
        }
    }
}

/// Reads a table, saves its record batches, and writes these as a table again.
fn read_table(input: &[u8]) {
    let limits = Limits::default().with_max_alloc(1 << 24);
    let Ok(file) = arrow::TableFile::new(input).map(|file| file.with_limits(limits)) else {
        return;
    };
    let mut out = OArchive::new(Vec::new()).expect("writing to memory");
    for rows in file.batches().take(100) {
        let Ok(rows) = rows else { break };
        // Saving fails only if a row is larger than the limits allow.
        if out.save_as("rows", &rows).is_err() {
            return;
        }
    }
    let archive = Archive::new(out.finish().expect("writing to memory")).expect("an archive");
    let segments = || archive.segments().map(|segment| segment.expect("a segment"));
    let mut written = Vec::new();
    let options = arrow::Options::default().with_losses(true);
    if arrow::segments_to_writer(segments().collect(), &mut written, &options).is_ok() {
        let again = arrow::TableFile::new(&written[..]).expect("reading what was written");
        for rows in again.batches() {
            rows.expect("reading what was written");
        }
    }
}

fn read_gguf(input: &[u8]) {
    let limits = Limits::default().with_max_alloc(1 << 24);
    let Ok(file) = gguf::Gguf::with_limits(input, limits) else { return };
    let tensors: Vec<_> = file
        .tensors()
        .iter()
        .map(|info| (info.path(), file.dyn_tensor(info.path()).expect("a tensor in the file")))
        .collect();
    let mut out = OArchive::new(Vec::new()).expect("writing to memory");
    out.save(&file.flat().expect("a value")).expect("saving what was read");
    let mut written = Vec::new();
    // Arrays whose values have different types, or that are empty, are read but not written as they were.
    if gguf::to_writer(&mut written, file.metadata(), &tensors).is_ok() {
        let again = gguf::Gguf::new(&written[..]).expect("reading what was written");
        for (name, tensor) in &tensors {
            let again = again.dyn_tensor(name).expect("a tensor that was written");
            assert_eq!(bytes(&again), bytes(tensor));
        }
    }
}

/// Writes values that were read, reads them and writes them again: the bytes must not change any more.
fn settle<E, F: Debug>(
    values: impl Iterator<Item = Result<Value, E>>,
    write: impl Fn(&Value, &mut Vec<u8>) -> Result<(), F>,
    read: impl Fn(&[u8]) -> Result<Value, F>,
) {
    for value in values {
        let Ok(value) = value else { return };
        let (mut first, mut second) = (Vec::new(), Vec::new());
        if write(&value, &mut first).is_err() {
            continue;
        }
        let again = read(&first).expect("reading what was written");
        write(&again, &mut second).expect("writing what was read");
        assert_eq!(first, second);
    }
}

fn read_json(input: &[u8]) {
    let limits = Limits::default().with_max_alloc(1 << 24);
    let options = json::Options::default().with_losses(true);
    let write = |value: &Value, out: &mut Vec<u8>| json::write_with(out, value, &options).map(drop);
    settle(json::values(input, limits), write, |text| json::read(text));
}

fn read_msgpack(input: &[u8]) {
    let limits = Limits::default().with_max_alloc(1 << 24);
    let options = msgpack::Options::default().with_losses(true);
    let write =
        |value: &Value, out: &mut Vec<u8>| msgpack::write_with(out, value, &options).map(drop);
    settle(msgpack::values(input, limits), write, |bytes| msgpack::read(bytes));
}

fn read_onnx(input: &[u8]) {
    let limits = Limits::default().with_max_alloc(1 << 24);
    let Ok(model) = onnx::Onnx::with_limits(input, limits) else { return };
    // Texts are read only here.
    if let Ok(value) = model.flat() {
        let _ = OArchive::new(Vec::new()).expect("writing to memory").save(&value);
    }
    for tensor in model.tensors() {
        let read = model.dyn_tensor(tensor.path());
        let Ok(deferred) = model.deferred(tensor.path()) else { continue };
        let mut out = OArchive::new(Vec::new()).expect("writing to memory");
        assert!(out.save(&Tensor(deferred)).is_err() || read.is_ok());
    }
}

fn read_hdf5(input: &[u8]) {
    let limits = Limits::default().with_max_alloc(1 << 24);
    let mut file = tempfile::tempfile().expect("a temporary file");
    file.write_all(input).expect("writing a temporary file");
    let Ok(file) = hdf5::Hdf5::with_limits(file, limits) else { return };
    for info in file.tensors() {
        let _ = file.dyn_tensor(info.path());
    }
    let mut out = OArchive::new(Vec::new()).expect("writing to memory");
    let _ = into_archive(&file, &mut out, &Options::default().with_losses(true));
}

/// Reads a table, and writes it again. The crate that reads Parquet panics on some damaged files. The reader returns
/// such a panic as an error, so here it must not end the run. A panic that the reader does not catch still ends it.
fn read_parquet(input: &[u8]) {
    let abort = take_hook();
    set_hook(Box::new(|_| {}));
    let limits = Limits::default().with_max_alloc(1 << 24);
    let mut out = OArchive::new(Vec::new()).expect("writing to memory");
    let options = Options::default().with_losses(true);
    let read = parquet::ParquetFile::new(input.to_vec())
        .and_then(|file| file.with_limits(limits).save_to(&mut out, "rows", &options));
    set_hook(abort);
    if read.is_err() {
        return;
    }
    let archive = Archive::new(out.finish().expect("writing to memory")).expect("an archive");
    let mut written = Vec::new();
    if parquet::to_writer(&archive, &mut written, &options).is_ok() {
        let again = parquet::ParquetFile::new(written).expect("reading what was written");
        for group in 0..again.row_groups() {
            again.rows(group).expect("reading what was written");
        }
    }
}

/// Reads a distributed checkpoint. Before the bytes of each file is their length: first the metadata, then the parts.
fn read_distributed(mut input: &[u8]) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for name in [".metadata", "__0_0.distcp", "__1_0.distcp", "__2_0.distcp", "__3_0.distcp"] {
        let Some((len, rest)) = input.split_first_chunk() else { break };
        let (bytes, rest) = rest.split_at(rest.len().min(u16::from_le_bytes(*len).into()));
        fs::write(directory.path().join(name), bytes).expect("writing a temporary file");
        input = rest;
    }
    let limits = Limits::default().with_max_alloc(1 << 24);
    let Ok(file) = torch::open_distributed(&directory).map(|file| file.with_limits(limits)) else {
        return;
    };
    for info in file.tensors() {
        let read = file.dyn_tensor(info.path());
        let Ok(deferred) = file.deferred(info.path()) else { continue };
        let mut out = OArchive::new(Vec::new()).expect("writing to memory");
        assert!(out.save(&Tensor(deferred)).is_err() || read.is_ok());
    }
    let _ = file.verify();
    let mut out = OArchive::new(Vec::new()).expect("writing to memory");
    let _ = into_archive(&file, &mut out, &Options::default().with_losses(true));
}

fuzz_target!(|input: &[u8]| -> Corpus {
    let Some((format, input)) = input.split_first() else { return Corpus::Reject };
    match format % 13 {
        0 => read_npy(input),
        1 => read_npz(input),
        2 => read_safetensors(input),
        3 => read_tenbin(input),
        4 => read_torch(input),
        5 => {
            read_arrow(input);
            read_table(input);
        }
        6 => read_gguf(input),
        7 => read_json(input),
        8 => read_msgpack(input),
        9 => read_onnx(input),
        10 => read_hdf5(input),
        11 => read_parquet(input),
        12 => read_distributed(input),
        _ => return Corpus::Reject,
    }
    // Failing inputs are kept in the corpus: they may be steps on the way to a valid header.
    Corpus::Keep
});
