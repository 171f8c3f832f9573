//! Tensors with equal contents are stored once if deduplication is on.

use std::collections::BTreeMap;

use ndarray::{ArrayView1, CowArray, Ix1};
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use tenarc::de::{DecodeOptions, Limits};
use tenarc::error::Category;
use tenarc::{Archive, IArchive, OArchive, Tensor};

use super::support::{assert_sound, quick, read_everywhere, to_bytes, weights};

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Tied {
    embedding: Tensor<Vec<f32>>,
    other: Tensor<Vec<f32>>,
    head: Tensor<Vec<f32>>,
    plain: Vec<f32>,
    bits: Tensor<Vec<u32>>,
    bytes: ByteBuf,
    last: Tensor<Vec<f32>>,
}

fn tied() -> Tied {
    let same = weights(3000, 1);
    Tied {
        embedding: same.clone(),
        other: weights(3000, 2),
        head: same.clone(),
        plain: same.0.clone(),
        bits: Tensor(same.iter().map(|value| value.to_bits()).collect()),
        bytes: ByteBuf::from(same.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>()),
        last: weights(3000, 2),
    }
}

#[test]
fn equal_contents_are_stored_once_and_come_back_to_every_field() {
    for checksums in [true, false] {
        let options = quick().with_checksums(checksums);
        let plain = to_bytes(&tied(), options.clone());
        let bytes = to_bytes(&tied(), options.with_dedup(true));
        assert_sound(&bytes, 256);
        let buffers =
            |bytes: &[u8]| Archive::new(bytes).unwrap().segment(0).unwrap().buffers().len();
        assert_eq!((buffers(&plain), buffers(&bytes)), (7, 2));
        assert!(bytes.len() < plain.len() / 3);
        for (way, read) in read_everywhere::<Tied>(&bytes) {
            assert_eq!(read.unwrap(), tied(), "{way}");
        }
        let archive = Archive::new(&bytes[..]).unwrap();
        let numbers: Vec<_> =
            archive.tensors().unwrap().iter().map(|info| info.buffer().unwrap()).collect();
        assert_eq!(numbers[..3], [0, 1, 0]);
    }
}

#[test]
fn contents_that_differ_are_kept_apart() {
    // In the last byte only; of other lengths; tensors that stay inline.
    let mut other = weights(3000, 1);
    other[2999] += 1.0;
    let value = [weights(3000, 1), other, weights(2999, 1), weights(10, 1), weights(10, 1)];
    let bytes = to_bytes(&value, quick().with_dedup(true));
    let archive = Archive::new(&bytes[..]).unwrap();
    assert_eq!(archive.segment(0).unwrap().buffers().len(), 3);
    assert_eq!(super::support::from_bytes::<[Tensor<Vec<f32>>; 5]>(&bytes), value);
}

#[test]
fn views_of_tied_tensors_share_their_memory() {
    #[derive(Deserialize)]
    struct View<'a> {
        #[serde(borrow)]
        embedding: Tensor<ArrayView1<'a, f32>>,
        #[serde(borrow)]
        head: Tensor<CowArray<'a, f32, Ix1>>,
    }
    let bytes = to_bytes(&tied(), quick().with_dedup(true).with_alignment(8));
    // The vector itself may lie at any address.
    let mut memory = vec![0u64; bytes.len() / 8 + 1];
    let memory = bytemuck::cast_slice_mut::<u64, u8>(&mut memory);
    memory[..bytes.len()].copy_from_slice(&bytes);
    let archive = Archive::new(&memory[..bytes.len()]).unwrap();
    let view: View = archive.view().unwrap();
    assert_eq!(view.embedding.to_vec(), tied().embedding.0);
    assert_eq!(view.head.as_ptr(), view.embedding.as_ptr());
    assert!(view.head.is_view());
}

/// A stream gives each buffer once, whatever the order in which fields ask for it.
#[test]
fn shared_buffers_are_kept_until_their_last_use() {
    #[derive(Deserialize, PartialEq, Debug)]
    struct Some {
        other: Tensor<Vec<f32>>,
        last: Tensor<Vec<f32>>,
    }
    #[derive(Deserialize, PartialEq, Debug)]
    struct First {
        embedding: Tensor<Vec<f32>>,
    }
    let mut out = OArchive::with_options(Vec::new(), quick().with_dedup(true)).unwrap();
    for _ in 0..4 {
        out.save(&tied()).unwrap();
    }
    let bytes = out.finish().unwrap();
    let mut input = IArchive::new(&bytes[..]).unwrap();
    let some: Some = input.load().unwrap();
    assert_eq!(some, Some { other: tied().other, last: tied().last });
    // The first is kept for uses that never come.
    assert_eq!(input.load::<First>().unwrap(), First { embedding: tied().embedding });
    assert!(input.load::<(u8, u8)>().is_err());
    assert_eq!(input.load::<Tied>().unwrap(), tied());
}

#[test]
fn many_tied_tensors_cost_linear_time() {
    let map: BTreeMap<String, Tensor<Vec<f32>>> = (0..4000)
        .map(|n| (format!("a{n:05}"), weights(4, n)))
        .chain((0..4000).rev().map(|n| (format!("b{n:05}"), weights(4, n))))
        .collect();
    let bytes = to_bytes(&map, quick().with_dedup(true).with_inline_below(0).with_alignment(8));
    let archive = Archive::new(&bytes[..]).unwrap();
    assert_eq!(archive.segment(0).unwrap().buffers().len(), 4000);
    let back: BTreeMap<String, Tensor<Vec<f32>>> = super::support::from_bytes(&bytes);
    assert!(back == map);
}

/// What refers to one buffer many times is charged for each copy.
#[test]
fn copies_of_a_shared_buffer_count_against_the_budget() {
    let value: Vec<Tensor<Vec<f32>>> = vec![weights(10_000, 1); 100];
    let bytes = to_bytes(&value, quick().with_dedup(true));
    assert!(bytes.len() < 60_000);
    let limits = tenarc::de::Limits::default().with_max_alloc(1 << 20);
    let strict = tenarc::de::DecodeOptions::default().with_limits(limits);
    let mut input = IArchive::with_options(&bytes[..], strict).unwrap();
    let error = input.load::<Vec<Tensor<Vec<f32>>>>().unwrap_err();
    assert_eq!(error.category(), tenarc::error::Category::Limit, "{error}");
    let archive = Archive::new(&bytes[..]).unwrap().with_options(strict);
    let error = archive.load::<Vec<Tensor<Vec<f32>>>>().unwrap_err();
    assert_eq!(error.category(), tenarc::error::Category::Limit, "{error}");
}

/// Keys can be large too, and so be tied to what stands before or behind them.
#[test]
fn keys_that_are_tied_to_values() {
    type Tied = (ByteBuf, BTreeMap<ByteBuf, ByteBuf>, ByteBuf);
    let bytes = |n| ByteBuf::from(vec![n; 5000]);
    let value: Tied = (bytes(1), [(bytes(1), bytes(2)), (bytes(2), bytes(3))].into(), bytes(3));
    for dedup in [false, true] {
        let written = to_bytes(&value, quick().with_dedup(dedup));
        assert_sound(&written, 256);
        for (way, read) in read_everywhere::<Tied>(&written) {
            assert_eq!(read.unwrap(), value, "{way}");
        }
    }
}

#[test]
fn copies_of_one_buffer_are_bounded_by_the_length_of_the_archive() {
    type Many = Vec<Tensor<Vec<u8>>>;
    const LEN: usize = 1 << 18;
    let many = |count: usize| -> Many { vec![Tensor(vec![7; LEN]); count] };
    let saved = |count| to_bytes(&many(count), quick().with_dedup(true));
    // 64 MiB, and 64 times the archive of a little more than 256 KiB, for the copies and the `Vec` of them.
    let few = saved(318);
    for (way, read) in read_everywhere::<Many>(&few) {
        assert_eq!(read.unwrap().len(), 318, "{way}");
    }
    let bytes = saved(324);
    assert!(bytes.len() < LEN + (16 << 10));
    for (way, read) in read_everywhere::<Many>(&bytes) {
        let error = read.unwrap_err();
        assert_eq!(error.category(), Category::Limit, "{way}: {error}");
        assert!(error.to_string().contains("Limits::with_max_alloc sets another"), "{error}");
    }
    let limits = Limits::default().with_max_alloc(1 << 30);
    let options = DecodeOptions::default().with_limits(limits);
    let archive = Archive::new(&bytes[..]).unwrap().with_options(options);
    assert_eq!(archive.load::<Many>().unwrap().len(), 324);
    let views: Vec<Tensor<ArrayView1<'_, u8>>> = archive.only().unwrap().view().unwrap();
    assert_eq!(views.len(), 324);
    let mut stream = IArchive::with_options(&bytes[..], options).unwrap();
    assert_eq!(stream.load::<Many>().unwrap().len(), 324);
    // A tensor that is read for itself is copied once.
    let archive = Archive::new(&bytes[..]).unwrap();
    assert_eq!(archive.tensor::<Vec<u8>>("323").unwrap(), vec![7; LEN]);
}
