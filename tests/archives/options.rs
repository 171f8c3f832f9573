//! What each option of writing changes.

use serde::{Deserialize, Serialize};
use tenarc::archive::SaveOptions;
use tenarc::error::Category;
use tenarc::{Archive, DType, IArchive, OArchive, Tensor};

use super::support::{
    Dir, assert_sound, from_bytes, model, quick, read_everywhere, to_bytes, weights,
};

fn buffers(bytes: &[u8]) -> usize {
    Archive::new(bytes).unwrap().segment(0).unwrap().buffers().len()
}

#[test]
fn every_alignment_places_every_buffer() {
    for alignment in (3..=16).map(|shift| 1 << shift) {
        for inline_below in [0, 2048] {
            let options = quick().with_alignment(alignment).with_inline_below(inline_below);
            let mut out = OArchive::with_options(Vec::new(), options).unwrap();
            for n in 0..3 {
                out.save_as(&"x".repeat(n * 97), &(model(), n)).unwrap();
            }
            let bytes = out.finish().unwrap();
            assert_sound(&bytes, alignment);
            let mut input = IArchive::new(&bytes[..]).unwrap();
            for n in 0..3 {
                assert_eq!(input.load::<(super::support::Model, usize)>().unwrap(), (model(), n));
            }
        }
    }
}

#[test]
fn the_place_of_the_body_is_right_for_every_length_of_metadata() {
    // Paddings of 25 and 258 bytes are of a form of their own.
    for alignment in [8, 512] {
        let options = quick().with_alignment(alignment).with_inline_below(1);
        for len in 0..600 {
            let value = ("x".repeat(len), Tensor(vec![1u8, 2, 3]), Tensor(vec![4u8]));
            let bytes = to_bytes(&value, options.clone());
            assert_sound(&bytes, alignment);
            assert_eq!(from_bytes::<(String, Tensor<Vec<u8>>, Tensor<Vec<u8>>)>(&bytes), value);
        }
    }
}

#[test]
fn alignments_that_are_none_are_refused() {
    for alignment in [0, 1, 4, 7, 24, 100, 1 << 17, u64::MAX] {
        let options = SaveOptions::default().with_alignment(alignment);
        let error = OArchive::with_options(Vec::new(), options.clone()).unwrap_err();
        assert_eq!(error.category(), Category::Limit, "{error}");
        let dir = Dir::new();
        assert!(tenarc::archive::save_with(dir.file("a"), &1, options.clone()).is_err());
        assert!(OArchive::create(dir.file("a"), options).is_err());
        assert!(dir.names().is_empty());
    }
}

#[test]
fn thresholds_are_exact() {
    let value = (Tensor(vec![1u8; 99]), Tensor(vec![1u8; 100]), Tensor(vec![1u8; 101]));
    for (below, expected) in [(0, 3), (99, 3), (100, 2), (101, 1), (102, 0), (usize::MAX, 0)] {
        assert_eq!(buffers(&to_bytes(&value, quick().with_inline_below(below))), expected);
    }
    // 2,048 by default.
    for (len, expected) in [(511, 0), (512, 1)] {
        assert_eq!(buffers(&to_bytes(&weights(len, 1), quick())), expected);
        assert_eq!(buffers(&to_bytes(&weights(len, 1).0, quick())), expected);
        let bytes = serde_bytes::ByteBuf::from(vec![0; len * 4]);
        assert_eq!(buffers(&to_bytes(&bytes, quick())), expected);
    }
    // Nothing lies in no buffer.
    let empty = (weights(0, 1), Vec::<f32>::new(), serde_bytes::ByteBuf::new());
    assert_eq!(buffers(&to_bytes(&empty, quick().with_inline_below(0))), 0);
    assert_eq!(buffers(&to_bytes(&empty, quick().with_out_of_band(|_| true))), 0);
}

#[test]
fn a_callback_decides_about_each_tensor() {
    let options = quick().with_out_of_band(|tensor| {
        let size = if *tensor.dtype() == DType::F32 { 4 } else { 1 };
        assert_eq!(tensor.byte_len(), (tensor.shape()[0] * size) as u64);
        *tensor.dtype() == DType::U8
    });
    let value = (weights(9000, 1), Tensor(vec![1u8]), Tensor(vec![1u8; 9000]));
    let bytes = to_bytes(&value, options);
    let archive = Archive::new(&bytes[..]).unwrap();
    let found: Vec<bool> =
        archive.tensors().unwrap().iter().map(|info| info.buffer().is_some()).collect();
    assert_eq!(found, [false, true, true]);
    assert_eq!(from_bytes::<(Tensor<Vec<f32>>, Tensor<Vec<u8>>, Tensor<Vec<u8>>)>(&bytes), value);
}

#[test]
fn names_have_a_longest_length() {
    let mut out = OArchive::with_options(Vec::new(), quick()).unwrap();
    let longest = "ß".repeat(512);
    out.save_as(&longest, &1).unwrap().save_as("", &2).unwrap().save(&3).unwrap();
    let error = out.save_as(&"x".repeat(1025), &4).map(drop).unwrap_err();
    assert_eq!(error.category(), Category::Limit);
    out.save_as("x", &5).unwrap();
    let bytes = out.finish().unwrap();
    let mut input = IArchive::new(&bytes[..]).unwrap();
    for (name, value) in [(Some(longest.as_str()), 1), (Some(""), 2), (None, 3), (Some("x"), 5)] {
        assert_eq!(input.next_name().unwrap(), Some(name));
        assert_eq!(input.load::<u8>().unwrap(), value);
    }
    assert_eq!(input.next_name().unwrap(), None);
    let archive = Archive::new(&bytes[..]).unwrap();
    assert_eq!(archive.named("").unwrap().load::<u8>().unwrap(), 2);
    assert_eq!(archive.named(&longest).unwrap().load::<u8>().unwrap(), 1);
}

#[test]
fn a_flipped_byte_is_noticed_with_checksums_and_loads_without() {
    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    struct One {
        weight: Tensor<Vec<u8>>,
    }
    let value = One { weight: Tensor(vec![7; 10_000]) };
    for checksums in [true, false] {
        let mut bytes = to_bytes(&value, quick().with_checksums(checksums));
        let (start, _) = Archive::new(&bytes[..]).unwrap().segment(0).unwrap().buffers()[0];
        bytes[start as usize + 77] ^= 1;
        for (way, read) in read_everywhere::<One>(&bytes) {
            match read {
                Err(error) if checksums && way != "views" => {
                    assert_eq!(error.category(), Category::Damaged, "{way}: {error}");
                }
                Ok(read) => {
                    assert!(!checksums || way == "views", "{way}");
                    assert_eq!(read.weight[77], 6, "{way}");
                }
                Err(error) => panic!("{way}: {error}"),
            }
        }
        let unchecked = tenarc::de::DecodeOptions::default().with_checksums(false);
        let mut input = IArchive::with_options(&bytes[..], unchecked).unwrap();
        assert_eq!(input.load::<One>().unwrap().weight[77], 6);
        assert_eq!(Archive::new(&bytes[..]).unwrap().verify().is_err(), checksums);
    }
}
