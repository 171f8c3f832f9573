//! Descriptions of compressed buffers with correct hashes and wrong contents.

use ndarray::Array1;
use tenarc::error::Category::{Data, Eof, Limit, Syntax, Version};
use tenarc::{Archive, Tensor};

use super::support::{At, read, refused, refuses, verify};
use tenarc_test_support::builder::{
    Seg, archive, array, head, raw_text, tensor_ref, text, unsigned,
};

/// Twelve bytes, stored as they are.
const RAW: &[u8] = b"twelve bytes";

fn numbers(numbers: &[u64]) -> Vec<u8> {
    array(&numbers.iter().map(|&number| unsigned(number)).collect::<Vec<_>>())
}

fn described(element: Vec<u8>, len: u64) -> Seg {
    let lengths = Some(array(&[element]));
    Seg { lengths, ..Seg::new(tensor_ref("u8", &[len], 0), &[RAW]) }
}

fn element(codec: &str, parameters: &[u64], len: u64, stored: &[u64]) -> Vec<u8> {
    array(&[text(codec), numbers(parameters), unsigned(len), numbers(stored)])
}

#[test]
fn a_description_made_by_hand_is_verified() {
    for (len, element) in [
        (12, element("zstd", &[1, 0], 12, &[12])),
        (12, element("lz4", &[16, 1], 12, &[12])),
        (100, element("zstd", &[2, 1], 100, &[12])),
        (100, element("later", &[1 << 40, 0, 7], 100, &[12])),
        (12, element("later", &[], 12, &[12])),
        // With heads that are longer than necessary.
        (
            12,
            [vec![0x98, 4], text("zstd"), numbers(&[1, 0]), vec![0x18, 12, 0x81, 0x19, 0, 12]]
                .concat(),
        ),
    ] {
        let bytes = archive(&described(element, len));
        verify(&bytes).unwrap();
        let archive = Archive::new(At(&bytes)).unwrap();
        assert_eq!(archive.tensors().unwrap()[0].byte_len(), len);
    }
}

#[test]
fn descriptions_of_other_forms() {
    let good = [text("zstd"), numbers(&[1, 0]), unsigned(12), numbers(&[12])];
    verify(&archive(&described(array(&good), 12))).unwrap();
    for at in 0..4 {
        for other in
            [vec![0x20], vec![0xf6], vec![0x60], vec![0x40], vec![0x9f, 0xff], vec![0xf9, 0x5c, 0]]
        {
            let mut fields = good.clone();
            fields[at] = other;
            refused(&archive(&described(array(&fields), 12)), &[Data]);
        }
    }
    for len in 0..4 {
        refused(&archive(&described(array(&good[..len]), 12)), &[Data]);
    }
    let more = [array(&good), unsigned(0)].concat();
    for elements in [
        [head(4, 5), good.concat(), unsigned(0)].concat(),
        [head(4, u64::MAX), good.concat()].concat(),
        [vec![0x9f], good.concat(), vec![0xff]].concat(),
        more,
    ] {
        refused(&archive(&described(elements, 12)), &[Data, Eof, Syntax]);
    }
    for name in [raw_text(b"\xff"), text(""), text(&"n".repeat(65)), head(3, u64::MAX)] {
        let fields = [name, numbers(&[1, 0]), unsigned(12), numbers(&[12])];
        refused(&archive(&described(array(&fields), 12)), &[Data, Eof]);
    }
}

#[test]
fn parameters_that_a_codec_does_not_have() {
    for codec in ["zstd", "lz4"] {
        for parameters in [
            &[][..],
            &[1],
            &[1, 0, 0],
            &[0, 0],
            &[3, 0],
            &[32, 0],
            &[1, 2],
            &[1 << 32 | 1, 0],
            &[u64::MAX; 2],
            &[1; 16],
        ] {
            refused(&archive(&described(element(codec, parameters, 12, &[12]), 12)), &[Data]);
        }
    }
    verify(&archive(&described(element("later", &[1; 16], 12, &[12]), 12))).unwrap();
    refused(&archive(&described(element("later", &[1; 17], 12, &[12]), 12)), &[Data]);
}

#[test]
fn tables_of_chunks_that_do_not_fit() {
    let full = 1 << 20;
    for (len, stored) in [
        (12, &[][..]),
        (12, &[0]),
        (12, &[13]),
        (12, &[u64::MAX]),
        (12, &[6, 6]),
        (0, &[]),
        (0, &[0]),
        (full, &[full + 1]),
        (full + 1, &[12]),
        (full + 1, &[11, 2]),
        (full + 1, &[12, 0]),
        (full + 1, &[u64::MAX, 1]),
        (2 * full, &[11, 1, 1]),
        (1 << 63, &[12]),
        (u64::MAX, &[12]),
        ((1 << 63) - 1, &[12]),
    ] {
        refused(&archive(&described(element("zstd", &[1, 0], len, stored), len)), &[Data]);
    }
    // More lengths than there are bytes.
    for count in [2, 1 << 20, 1 << 43, u64::MAX] {
        let len = (count.min(1 << 42)) * full;
        let fields = [text("zstd"), numbers(&[1, 0]), unsigned(len), head(4, count)].concat();
        let element = [head(4, 4), fields].concat();
        refused(&archive(&described(element, len)), &[Data, Eof, Limit]);
    }
}

#[test]
fn a_tensor_of_an_unknown_codec_is_refused_by_name_and_others_are_read() {
    let later = element("later\u{1b}[31m", &[7], 100, &[12]);
    let metadata = array(&[tensor_ref("u8", &[12], 0), tensor_ref("u8", &[100], 1)]);
    let seg = Seg {
        lengths: Some(array(&[unsigned(12), later])),
        alignment: 8,
        ..Seg::new(metadata, &[RAW])
    };
    // The compressed buffer is directly behind the first one.
    let whole = [RAW, RAW].concat();
    let seg = Seg {
        buffers: vec![whole],
        hashes: Some(vec![tenarc_test_support::builder::hash(RAW, 0); 2]),
        ..seg
    };
    let bytes = archive(&seg);
    verify(&bytes).unwrap();
    for error in refuses::<(Tensor<Array1<u8>>, Tensor<Array1<u8>>)>(&bytes, &[Version, Data]) {
        assert!(error.to_string().contains("later\\u{1b}[31m"), "{error}");
        assert_eq!(error.path(), "1", "{error}");
    }
    let archive = Archive::new(At(&bytes)).unwrap();
    let first: Tensor<Array1<u8>> = archive.get("0").unwrap();
    assert_eq!(first.as_slice().unwrap(), RAW);
    assert!(read::<(Tensor<Array1<u8>>, serde::de::IgnoredAny)>("positioned", &bytes).is_ok());
}
