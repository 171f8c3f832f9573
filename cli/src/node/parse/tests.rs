//! That structures are read as the library reads them, and that no bytes are trusted.

use serde::Serialize;
use tenarc::archive::SaveOptions;
use tenarc::{Archive, OArchive, Tensor};

use super::*;
use crate::paths;

#[derive(Serialize)]
#[allow(clippy::option_option)]
struct Sample {
    dotted: std::collections::BTreeMap<&'static str, Tensor<Vec<f32>>>,
    numbers: Vec<f64>,
    small: Tensor<Vec<i16>>,
    option: Option<Option<u8>>,
    nested: (Vec<Tensor<Vec<f32>>>, [u8; 3], &'static str),
}

fn sample() -> Archive<Vec<u8>> {
    let large = |seed: u8| Tensor(vec![f32::from(seed); 600]);
    let sample = Sample {
        dotted: [("a.b", large(1)), ("a", large(2)), ("", large(3))].into(),
        numbers: vec![0.5; 300],
        small: Tensor(vec![1, 2]),
        option: Some(None),
        nested: (vec![large(4), large(5)], [1, 2, 3], "text"),
    };
    let mut out = OArchive::with_options(Vec::new(), SaveOptions::default()).unwrap();
    out.save(&sample).unwrap();
    Archive::new(out.finish().unwrap()).unwrap()
}

#[test]
fn lists_what_the_library_lists() {
    let archive = sample();
    let segment = archive.segment(0).unwrap();
    let root = parse(segment.metadata().unwrap(), segment.buffers()).unwrap();
    let (found, expected) = (paths::tensors(&root), segment.tensors().unwrap());
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        let Payload { dtype, shape, order, byte_len, buffer, .. } = found.payload;
        assert_eq!((dtype, &shape[..]), (expected.dtype(), expected.shape()));
        assert_eq!((*order, *byte_len), (expected.order(), expected.byte_len()));
        assert_eq!(buffer.map(|number| number as u64), expected.buffer());
        // Either finds what the other names.
        assert!(segment.info(&found.path).is_ok(), "{}", found.path);
        assert!(std::ptr::eq(paths::find(&root, expected.path()).unwrap(), found.node));
    }
}

#[test]
fn takes_whatever_bytes_without_a_panic() {
    let archive = sample();
    let segment = archive.segment(0).unwrap();
    let metadata = segment.metadata().unwrap();
    for at in 0..metadata.len() {
        for byte in [0, 1, 0x1b, 0x3b, 0x5f, 0x80, 0x9f, 0xbf, 0xc6, 0xd8, 0xda, 0xf8, 0xff] {
            let mut bytes = metadata.to_vec();
            bytes[at] = byte;
            if let Ok(root) = parse(&bytes, segment.buffers()) {
                paths::tensors(&root);
            }
            assert!(parse(&metadata[..at], segment.buffers()).is_err(), "cut at {at}");
        }
    }
}

#[test]
fn refuses_paths_that_would_fill_memory() {
    let tensor = tenarc::to_vec(&Tensor(vec![1u8])).unwrap();
    // One key of 1 MiB, and a million bytes of tensors under it.
    let mut bytes = b"\xa1\x7a\x00\x10\x00\x00".to_vec();
    bytes.resize(bytes.len() + (1 << 20), b'k');
    bytes.push(0x9f);
    for _ in 0..1_000_000 / tensor.len() {
        bytes.extend_from_slice(&tensor);
    }
    bytes.push(0xff);
    let root = parse(&bytes, &[]).unwrap();
    assert!(paths::check(&root).is_err());
}
