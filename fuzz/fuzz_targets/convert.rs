//! Reads files of other formats from arbitrary bytes. What can be read is written again, and must read the
//! same.
#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use tenarc::de::Limits;
use tenarc::{DynTensor, OArchive};
#[cfg(feature = "arrow")]
use tenarc_convert::arrow;
use tenarc_convert::{npy, safetensors, tenbin, torch};

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
    let _ = npy::into_archive(&npz, &mut out, &npy::ConvertOptions::default().with_losses(true));
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
    tenbin::into_archive(input, input.len() as u64, &mut out).expect("converting the same file");
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
    if let Ok(flat) = file.flat() {
        let _ = out.save(&flat);
    }
}

#[cfg(feature = "arrow")]
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

fuzz_target!(|input: &[u8]| -> Corpus {
    let Some((format, input)) = input.split_first() else { return Corpus::Reject };
    match format % 6 {
        0 => read_npy(input),
        1 => read_npz(input),
        2 => read_safetensors(input),
        3 => read_tenbin(input),
        4 => read_torch(input),
        #[cfg(feature = "arrow")]
        5 => read_arrow(input),
        _ => return Corpus::Reject,
    }
    // Failing inputs are kept in the corpus: they may be steps on the way to a valid header.
    Corpus::Keep
});
