//! Descriptions of compressed buffers with correct hashes and wrong contents.

use ndarray::Array1;
use tenarc::archive::SaveOptions;
use tenarc::error::Category::{Data, Eof, Limit, Syntax, Unsupported, Version};
use tenarc::{Archive, OArchive, Tensor};

use super::support::{At, WAYS, read, refused, refuses, verify};
use tenarc_test_support::builder::{
    Seg, archive, array, hash, head, raw_text, tensor_ref, text, unsigned,
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
    ] {
        let bytes = archive(&described(element, len));
        verify(&bytes).unwrap();
        let archive = Archive::new(At(&bytes)).unwrap();
        assert_eq!(archive.tensors().unwrap()[0].byte_len(), len);
    }
}

// 114
#[test]
fn descriptions_of_other_forms() {
    let good = [text("zstd"), numbers(&[1, 0]), unsigned(12), numbers(&[12])];
    verify(&archive(&described(array(&good), 12))).unwrap();
    // With heads that are longer than necessary.
    for longer in [
        [vec![0x98, 4], good.concat()].concat(),
        array(&[text("zstd"), numbers(&[1, 0]), vec![0x18, 12], numbers(&[12])]),
        array(&[text("zstd"), numbers(&[1, 0]), unsigned(12), vec![0x81, 0x19, 0, 12]]),
    ] {
        refused(&archive(&described(longer, 12)), &[Data]);
    }
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

// 114
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

// 114
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

// 117
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
    let seg = Seg { buffers: vec![whole], hashes: Some(vec![hash(RAW, 0); 2]), ..seg };
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

/// A chunk of one plane, all of whose bytes are equal.
const CONSTANT: &[u8] = &[1, 1, 0, 0, 0, 9];

/// A segment with one compressed buffer.
fn compressed(parameters: &[u64], len: u64, stored: &[&[u8]]) -> Seg {
    let lengths: Vec<u64> = stored.iter().map(|chunk| chunk.len() as u64).collect();
    Seg {
        lengths: Some(array(&[element("zstd", parameters, len, &lengths)])),
        hashes: Some(stored.iter().map(|chunk| hash(chunk, 0)).collect()),
        ..Seg::new(tensor_ref("u8", &[len], 0), &[&stored.concat()])
    }
}

#[test]
fn parts_describe_no_compressed_buffers() {
    let seg = compressed(&[1, 0], 1 << 20, &[CONSTANT]);
    let error = tenarc::parts::PartsInfo::new(seg.parts()).unwrap_err();
    assert_eq!(error.category(), Data);
    assert!(
        error.to_string().contains("compressed with zstd, but the buffers of parts must not be"),
        "{error}"
    );
}

#[cfg(feature = "compression")]
mod contents {
    use tenarc::error::Category::Damaged;
    use tenarc_test_support::alloc::peak_of;

    use super::super::support::MIB;
    use super::*;

    // 115
    #[test]
    fn a_few_bytes_do_not_become_a_gigabyte() {
        let len = 1 << 20;
        let bytes = archive(&compressed(&[1, 0], len, &[CONSTANT]));
        for way in WAYS.iter().filter(|way| **way != "view") {
            let found: Tensor<Array1<u8>> = read(way, &bytes).unwrap();
            assert!(found.len() as u64 == len && found.iter().all(|&byte| byte == 9), "{way}");
        }
        // One long chunk.
        for len in [65 << 20, 1 << 30] {
            let seg = Seg { chunk: unsigned(1 << 30), ..compressed(&[1, 0], len, &[CONSTANT]) };
            let bytes = archive(&seg);
            verify(&bytes).unwrap();
            refuses::<Tensor<Array1<u8>>>(&bytes, &[Limit, Data]);
            let archive = Archive::new(At(&bytes)).unwrap();
            let segment = archive.only().unwrap();
            let (errors, peak) = peak_of(|| {
                [
                    segment.read_buffer(0, |_| Ok(())).unwrap_err(),
                    segment.read_buffer_part(0, 7, &mut [0]).unwrap_err(),
                    segment.to_parts().unwrap_err(),
                    segment.slice::<Array1<u8>>("", ndarray::s![..1]).unwrap_err(),
                    tenarc::IArchive::new(&bytes[..]).unwrap().load_parts().unwrap_err(),
                ]
            });
            assert!(peak < MIB, "{peak}");
            for error in errors {
                assert_eq!(error.category(), Limit, "{error}");
            }
        }
        // Many chunks, and many buffers.
        let len = 200 << 20;
        let bytes = archive(&compressed(&[1, 0], len, &[CONSTANT; 200]));
        refuses::<Tensor<Array1<u8>>>(&bytes, &[Limit, Data]);
        let references: Vec<_> =
            (0..200).map(|number| tensor_ref("u8", &[1 << 20], number)).collect();
        let elements = vec![element("zstd", &[1, 0], 1 << 20, &[6]); 200];
        let seg = Seg {
            lengths: Some(array(&elements)),
            hashes: Some(vec![hash(CONSTANT, 0); 200]),
            ..Seg::new(array(&references), &[&CONSTANT.repeat(200)])
        };
        let bytes = archive(&seg);
        verify(&bytes).unwrap();
        for way in WAYS {
            let error = read::<Vec<Tensor<Array1<u8>>>>(way, &bytes).unwrap_err();
            assert_eq!(
                error.category(),
                if way == "view" { Unsupported } else { Limit },
                "{way}: {error}"
            );
        }
    }

    // 116
    #[test]
    fn chunks_that_no_encoder_wrote_are_refused_by_name() {
        let mut state = 1u64;
        for round in 0..2000 {
            let mut next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 40) as u8
            };
            let width = 1 << (round % 5);
            let mut stored: Vec<u8> =
                std::iter::repeat_with(&mut next).take(round % 99 + 1).collect();
            // Often with a method that exists.
            stored[0] %= 4;
            let codec = if round % 2 == 0 { "zstd" } else { "lz4" };
            let seg = compressed(&[width, 1], 100, &[&stored]);
            let lengths = array(&[element(codec, &[width, 1], 100, &[stored.len() as u64])]);
            let bytes = archive(&Seg { lengths: Some(lengths), ..seg });
            for way in WAYS.iter().filter(|way| **way != "view") {
                let error = read::<Tensor<Array1<u8>>>(way, &bytes).unwrap_err();
                let expected = format!(
                    "chunk 0 of buffer 0, which is its bytes 0..100, compressed with {codec}"
                );
                assert_eq!(error.category(), Damaged, "{way}: {error}");
                assert!(error.to_string().contains(&expected), "{way}: {error}");
            }
        }
    }
}

#[test]
fn a_buffer_of_an_unknown_codec_is_saved_again_as_it_is() {
    for parameters in [&[7, 8, 9][..], &[]] {
        let bytes = archive(&described(element("later", parameters, 100, &[12]), 100));
        let opened = Archive::new(At(&bytes)).unwrap();
        let segment = opened.only().unwrap();
        let stored = segment.stored(0..segment.metadata().unwrap().len()).unwrap();
        let options = SaveOptions::default().with_inline_below(1);
        let mut out = OArchive::with_options(Vec::new(), options.clone()).unwrap();
        out.save(&[&stored, &stored]).unwrap();
        let copy = Archive::new(out.finish().unwrap()).unwrap();
        copy.verify().unwrap();
        for number in 0..2 {
            let segment = copy.only().unwrap();
            let compressed = segment.compressed(number).unwrap();
            assert_eq!((compressed.codec(), compressed.stored_len()), ("later", 12));
        }
        // Other chunks would need the codec.
        let options = options.with_chunk_len(1 << 16);
        let mut out = OArchive::with_options(Vec::new(), options).unwrap();
        assert_eq!(out.save(&stored).unwrap_err().category(), Version);
    }
}
