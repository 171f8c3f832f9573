//! Checks that structures are parsed as the library parses them, and that damaged bytes are refused.

use serde::Serialize;
use tenarc::archive::SaveOptions;
use tenarc::{Archive, OArchive, Tensor};

use super::*;
use crate::paths::{self, Listed, Named};

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

/// Returns the tensors that `ls` lists.
fn tensors<'a>(root: &'a Node, encoded: &[u8]) -> Result<Vec<Named<'a>>> {
    let mut tensors = Vec::new();
    paths::each_listed(root, encoded, &mut |listed| {
        if let Listed::Tensor(named) = listed {
            tensors.push(named);
        }
        Ok(())
    })?;
    Ok(tensors)
}

#[test]
fn lists_what_the_library_lists() {
    let archive = sample();
    let segment = archive.segment(0).unwrap();
    let root = parse(segment.metadata().unwrap(), segment.buffers()).unwrap();
    let (found, expected) =
        (tensors(&root, segment.metadata().unwrap()).unwrap(), segment.tensors().unwrap());
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        let Payload { dtype, shape, order, byte_len, buffer, .. } = found.payload;
        assert_eq!((dtype, &shape[..]), (expected.dtype(), expected.shape()));
        assert_eq!((*order, *byte_len), (expected.order(), expected.byte_len()));
        assert_eq!(buffer.map(|number| number as u64), expected.buffer());
        assert_eq!(found.path, expected.path());
        // Each of the two finds the tensor by the other's path.
        assert!(segment.info(&found.path).is_ok(), "{}", found.path);
        let node = paths::find(&root, segment.metadata().unwrap(), expected.path()).unwrap();
        assert!(std::ptr::eq(node, found.node));
    }
}

/// Map keys of every kind. Some are CBOR items that no Rust type is encoded as.
const KEYS: &[&[u8]] = &[
    b"\x61a",
    b"\x63a.b",
    b"\x60",
    b"\x62/~",
    b"\x65[1,2]",
    b"\x7f\x61x\x61y\xff",
    b"\x07",
    b"\x19\x01\x00",
    b"\x3b\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\xc2\x49\x01\0\0\0\0\0\0\0\0",
    b"\xc3\x49\x01\0\0\0\0\0\0\0\0",
    b"\xc2\x50\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\xc3\x50\x80\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
    b"\xc2\x51\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
    b"\x40",
    b"\x43\x00\xab\xff",
    b"\x5f\x41\x01\x42\x02\x03\xff",
    b"\x80",
    b"\x82\x01\x61\"",
    b"\x9f\x65a\n\x7f\xc2\x85\xf6\xff",
    b"\xa0",
    b"\xa2\x01\x81\x02\xf4\xa0",
    b"\xbf\x60\xf5\xff",
    b"\xf4",
    b"\xf5",
    b"\xf6",
    b"\xf7",
    b"\xe5",
    b"\xf8\xff",
    b"\xf9\x3e\x00",
    b"\xf9\x80\x00",
    b"\xf9\x7e\x00",
    b"\xf9\x7c\x00",
    b"\xfa\x3d\xcc\xcc\xcd",
    b"\xfb\x3f\xb9\x99\x99\x99\x99\x99\x9a",
    b"\xfb\xff\xf0\0\0\0\0\0\0",
    b"\xfb\x7e\x37\xe4\x3c\x88\x00\x75\x9c",
    b"\xfb\x3e\x7a\xd7\xf2\x9a\xbc\xaf\x48",
    b"\xd8\x20\x61a",
    b"\xd8\x45\x44\x01\x02\x03\x04",
    b"\xda\x54\x53\x4f\x4d\xf6",
];

#[test]
fn writes_paths_as_the_library_does() {
    let raw = |bytes: &[u8]| tenarc::value::RawValue::from_bytes(bytes).unwrap().to_owned();
    let tensor = tenarc::to_vec(&Tensor(vec![1u8])).unwrap();
    let map = |entries: &[Vec<u8>]| {
        let len = u8::try_from(entries.len()).unwrap();
        [&[0xb8, len][..], &entries.concat()].concat()
    };
    // The values are one map with all keys, one map of such maps, and for each pair of keys two small maps that contain
    // a map.
    let entry = |key: &[u8], value: &[u8]| [key, value].concat();
    let leaves: Vec<_> = KEYS.iter().map(|key| entry(key, &tensor)).collect();
    let nested: Vec<_> = KEYS.iter().map(|key| entry(key, &map(&leaves))).collect();
    let mut values = vec![map(&leaves), map(&nested)];
    for first in KEYS {
        for second in KEYS {
            let inner = map(&[entry(second, &tensor)]);
            values.push(map(&[entry(first, &inner), entry(second, &tensor)]));
            values.push(map(&[entry(first, &tensor), entry(b"\x61x", &inner)]));
        }
    }
    let mut refused = 0;
    for value in values {
        let mut out = OArchive::new(Vec::new()).unwrap();
        out.save(&raw(&value)).unwrap();
        let archive = Archive::new(out.finish().unwrap()).unwrap();
        let segment = archive.segment(0).unwrap();
        let root = parse(segment.metadata().unwrap(), &[]).unwrap();
        let (found, expected) = (tensors(&root, segment.metadata().unwrap()), segment.tensors());
        let (Ok(found), Ok(expected)) = (&found, &expected) else {
            assert!(found.is_err() && expected.is_err(), "{found:?} {expected:?}");
            refused += 1;
            continue;
        };
        let found: Vec<&str> = found.iter().map(|named| named.path.as_str()).collect();
        let expected: Vec<&str> = expected.iter().map(tenarc::tensor::TensorInfo::path).collect();
        assert_eq!(found, expected);
        for path in expected {
            segment.info(path).unwrap();
            let node = paths::find(&root, segment.metadata().unwrap(), path).unwrap();
            assert!(node.payload().is_some(), "{path}");
        }
    }
    // The refused values have one key twice in a map.
    assert_eq!(refused, KEYS.len());
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
                paths::payloads(&root, &bytes).unwrap();
            }
            assert!(parse(&metadata[..at], segment.buffers()).is_err(), "cut at {at}");
        }
    }
}

#[test]
fn refuses_paths_that_would_fill_memory() {
    let tensor = tenarc::to_vec(&Tensor(vec![1u8])).unwrap();
    // The value has one key of 1 MiB, and a million bytes of tensors under it.
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
