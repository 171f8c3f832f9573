//! Reads parts from arbitrary bytes. The input is used twice: as it is, and as metadata with correct
//! checksums and buffers, so that the code after the checksums is reached. All ways to read parts must agree.
#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use ndarray::ArrayView2;
use serde::{Deserialize, Serialize};
use tenarc::parts::{Parts, PartsInfo};
use tenarc::tensor::SharedTensor;
use tenarc::{IArchive, OArchive, Result, Tensor, Value};
use twox_hash::XxHash3_64;

#[derive(Deserialize)]
struct Shared {
    #[serde(default)]
    weight: Option<Tensor<SharedTensor>>,
    #[serde(default)]
    any: Vec<Tensor<SharedTensor>>,
}

/// A row of a sequence that may be stored as columns.
#[derive(Serialize, Deserialize)]
struct Row {
    #[serde(default)]
    id: u32,
    #[serde(default)]
    any: Option<f32>,
    #[serde(default)]
    weight: Option<Tensor<Vec<f32>>>,
    #[serde(default)]
    text: String,
}

fn head(out: &mut Vec<u8>, major: u8, arg: usize) {
    let arg = arg as u64;
    match arg {
        0..24 => out.push(major << 5 | arg as u8),
        24..=0xff => out.extend([major << 5 | 24, arg as u8]),
        0x100..=0xffff => {
            out.push(major << 5 | 25);
            out.extend((arg as u16).to_be_bytes());
        }
        _ => {
            out.push(major << 5 | 26);
            out.extend((arg as u32).to_be_bytes());
        }
    }
}

fn seal(out: &mut Vec<u8>, start: usize, seed: u64) -> u64 {
    let hash = XxHash3_64::oneshot_with_seed(seed, &out[start..]);
    out.push(0x48);
    out.extend(hash.to_be_bytes());
    hash
}

/// The length of a chunk in the header.
const CHUNK: usize = 65_536;

/// Builds the metadata of parts, as in section 6 of the specification.
fn built(buffers: &[Vec<u8>], item: &[u8], alignment: usize) -> Vec<u8> {
    let mut content = b"\xdaTSEG\x88\x01\xf6".to_vec();
    head(&mut content, 0, alignment);
    content.extend(b"\x67xxh3-64\x1a\x00\x01\x00\x00");
    head(&mut content, 4, buffers.len());
    buffers.iter().for_each(|buffer| head(&mut content, 0, buffer.len()));
    content.push(0xa0);
    content.extend(item);
    let mut out = b"\xd8\x18".to_vec();
    head(&mut out, 2, content.len());
    out.extend(content);
    let hash = seal(&mut out, 0, 0);
    if !buffers.is_empty() {
        let start = out.len();
        out.extend([0xd8, 0x43]);
        // One for each chunk, so none for an empty buffer.
        let chunks = buffers.iter().flat_map(|buffer| buffer.chunks(CHUNK));
        let hashes: Vec<u8> =
            chunks.flat_map(|chunk| XxHash3_64::oneshot(chunk).to_be_bytes()).collect();
        head(&mut out, 2, hashes.len());
        out.extend(hashes);
        seal(&mut out, start, hash);
    }
    out
}

/// A value as its encoding, for comparison; `None` after an error.
fn encoded<T: Serialize>(value: Result<T>) -> Option<Vec<u8>> {
    value.ok().and_then(|value| tenarc::to_vec(&value).ok())
}

/// Reads parts in every way, and checks that the results agree.
fn put_together(metadata: &[u8], buffers: &[Vec<u8>]) {
    let first = encoded(tenarc::from_parts::<Value, _>(metadata, buffers));
    let parts = Parts::new(metadata, buffers);
    if let Ok(info) = PartsInfo::new(metadata) {
        assert_eq!(info.metadata(), metadata);
        let lengths = info.buffers().iter().map(|buffer| buffer.byte_len() as usize);
        let fit = lengths.eq(buffers.iter().map(Vec::len));
        assert!(fit || parts.is_err(), "buffers of wrong lengths were accepted");
        let _ = info.tensors();
    }
    let stream = [metadata, &buffers.concat()].concat();
    let mut rest = &stream[..];
    let read = Parts::read_from(&mut rest);
    let Ok(parts) = parts else {
        // `PartsInfo` also fails if paths are too long; decoding the value needs no paths.
        assert!(first.is_none() || PartsInfo::new(metadata).is_err());
        return;
    };
    let read = read.expect("valid parts");
    assert!(rest.is_empty());
    assert_eq!(encoded(parts.load::<Value>()), first);
    assert_eq!(encoded(read.load::<Value>()), first);
    assert_eq!(encoded(parts.load_shared::<Value>()), first);
    let rows = encoded(parts.load::<Vec<Row>>());
    assert_eq!(encoded(read.load::<Vec<Row>>()), rows);
    assert_eq!(encoded(parts.load_shared::<Vec<Row>>()), rows);
    for tensor in parts.tensors().into_iter().flatten() {
        let _ = parts.get::<Value>(tensor.path());
        let _ = parts.view_at::<Tensor<ArrayView2<f32>>>(tensor.path());
        let shared = read.get::<Tensor<SharedTensor>>(tensor.path());
        assert!(shared.is_err() || shared.is_ok_and(|shared| shared.shape() == tensor.shape()));
    }
    if let Ok(Shared { weight, any }) = parts.load_shared::<Shared>() {
        for tensor in weight.iter().chain(&any) {
            let _ = tensor.view::<f32>();
            let _ = tensor.view::<bool>();
            let _ = tensor.to_dyn();
            let _ = tenarc::to_vec(tensor);
        }
    }
    let mut out = OArchive::new(Vec::new()).expect("writing to memory");
    out.save_parts(&parts).expect("valid parts");
    let archive = out.finish().expect("writing to memory");
    let back = IArchive::new(&archive[..]).and_then(|mut input| input.load_parts());
    assert_eq!(back.expect("valid parts").buffers().len(), buffers.len());
}

fuzz_target!(|bytes: &[u8]| -> Corpus {
    let _ = Parts::read_from(bytes);
    let Some((&[count, alignment], rest)) = bytes.split_first_chunk() else {
        return Corpus::Reject;
    };
    let count = usize::from(count % 8);
    if rest.len() < count {
        return Corpus::Reject;
    }
    let (lengths, rest) = rest.split_at(count);
    // All bytes are 0 or 1, so that they are valid bools too.
    let buffers: Vec<Vec<u8>> =
        (0..count).map(|at| vec![at as u8 & 1; usize::from(lengths[at]) * 4]).collect();
    put_together(rest, &buffers);
    put_together(&built(&buffers, rest, 8 << (alignment % 14)), &buffers);
    Corpus::Keep
});
