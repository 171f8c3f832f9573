//! Splitting and putting together in every way there is.
//!
//! `tests/archives/everything.rs` is compiled with this module instead of the one for archives. What it
//! calls the bytes of an archive are here the bytes of parts on a stream.

use std::fmt::Debug;

use ndarray::{Array, ArrayD, IxDyn};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tenarc::archive::SaveOptions;
use tenarc::parts::{Buffer, Parts, PartsInfo, Split};
use tenarc::{Archive, OArchive, Tensor, Value};

use tenarc_test_support::readers;

pub type Sent = (Vec<u8>, Vec<Vec<u8>>);

pub fn quick() -> SaveOptions {
    SaveOptions::default()
}

/// Every option that changes what is written, by name.
pub fn variants() -> Vec<(&'static str, SaveOptions)> {
    vec![
        ("default", quick()),
        ("alignment 8, all in buffers", quick().with_alignment(8).with_inline_below(0)),
        ("alignment 65,536", quick().with_alignment(1 << 16)),
        ("all inline", quick().with_inline_below(usize::MAX)),
        ("inline below 100, dedup", quick().with_inline_below(100).with_dedup(true)),
        ("no checksums", quick().with_checksums(false).with_inline_below(0)),
        (
            "a callback",
            quick().with_out_of_band(|tensor| {
                tensor.dtype().name().len() == 3 || tensor.byte_len() > 9
            }),
        ),
    ]
}

/// Splits a value in every way; all must give the same.
#[track_caller]
pub fn split<T: Serialize + ?Sized>(value: &T, options: &SaveOptions) -> Sent {
    let parts = tenarc::parts::to_parts_with(value, options.clone()).unwrap();
    for (buffer, info) in parts.buffers().iter().zip(parts.info().buffers()) {
        assert!((buffer.as_ptr() as usize).is_multiple_of(info.alignment()));
    }
    let buffers: Vec<Vec<u8>> = parts.buffers().iter().map(|buffer| buffer.to_vec()).collect();
    let metadata = parts.metadata().to_vec();

    let split = Split::with_options(value, options.clone()).unwrap();
    assert!(split.metadata() == metadata, "metadata of a split");
    let mut whole: Vec<Vec<u8>> = Vec::new();
    let each = split.each_buffer(|info, bytes| {
        assert_eq!((info.number(), info.byte_len()), (whole.len(), bytes.len() as u64));
        whole.push(bytes.to_vec());
        Ok(())
    });
    each.unwrap();
    assert!(whole == buffers, "each_buffer");

    let mut gathered: Vec<Vec<u8>> = Vec::new();
    let pieces = split.pieces(|piece| {
        if piece.offset == 0 {
            gathered.push(Vec::new());
        }
        assert_eq!(piece.buffer.number() + 1, gathered.len());
        let buffer = gathered.last_mut().unwrap();
        assert_eq!(piece.offset, buffer.len() as u64);
        buffer.extend(piece.bytes);
        Ok(())
    });
    pieces.unwrap();
    assert!(gathered == buffers, "pieces");

    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    parts.write_to(&mut ours).unwrap();
    split.write_to(&mut theirs).unwrap();
    let sent = (metadata, buffers);
    assert!(ours == flat(&sent), "write_to of parts");
    assert!(theirs == ours, "write_to of a split");
    sent
}

/// Parts as a stream has them.
pub fn flat((metadata, buffers): &Sent) -> Vec<u8> {
    [&metadata[..], &buffers.concat()].concat()
}

/// The parts that a stream has.
#[track_caller]
pub fn sent(bytes: &[u8]) -> Sent {
    let parts = Parts::read_from(bytes).unwrap();
    let (metadata, buffers) = parts.into_inner();
    (metadata, buffers.iter().map(|buffer| buffer.to_vec()).collect())
}

/// Puts parts together in every way.
pub fn received<T: DeserializeOwned>(sent: &Sent) -> Vec<(&'static str, tenarc::Result<T>)> {
    let bytes = flat(sent);
    let (metadata, buffers) = sent;
    let parts = || Parts::new(&metadata[..], buffers.clone());
    let allocated = || {
        let info = PartsInfo::new(&metadata[..])?;
        let filled = info.buffers().iter().zip(buffers).map(|(info, bytes)| {
            let mut buffer = info.allocate()?;
            buffer.copy_from_slice(bytes);
            Ok(buffer)
        });
        let filled: tenarc::Result<Vec<Buffer>> = filled.collect();
        info.with_buffers(filled?)?.load()
    };
    let mut ways = vec![
        ("from_parts", tenarc::from_parts(metadata, buffers)),
        ("load", parts().and_then(|parts| parts.load())),
        ("view", parts().and_then(|parts| parts.view())),
        ("get", parts().and_then(|parts| parts.get(""))),
        ("shared", parts().and_then(|parts| parts.load_shared())),
        ("allocated", allocated()),
    ];
    for (way, reader) in readers(&bytes) {
        ways.push((way, Parts::read_from(reader).and_then(|parts| parts.load())));
    }
    ways
}

/// Splits, and gives what a stream has.
#[allow(clippy::needless_pass_by_value)] // As the tests shared with archives call it.
#[track_caller]
pub fn to_bytes<T: Serialize + ?Sized>(value: &T, options: SaveOptions) -> Vec<u8> {
    flat(&split(value, &options))
}

#[track_caller]
pub fn from_bytes<T: DeserializeOwned>(bytes: &[u8]) -> T {
    Parts::read_from(bytes).unwrap().load().unwrap()
}

#[track_caller]
pub fn read_everywhere<T: DeserializeOwned>(
    bytes: &[u8],
) -> Vec<(&'static str, tenarc::Result<T>)> {
    received(&sent(bytes))
}

/// An archive of one value.
#[track_caller]
pub fn archived(save: impl FnOnce(&mut OArchive<Vec<u8>>)) -> Vec<u8> {
    let mut out = OArchive::new(Vec::new()).unwrap();
    save(&mut out);
    out.finish().unwrap()
}

/// Splits and puts together in every way, with every option; through archives, too.
#[track_caller]
pub fn round_trip<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) {
    for (name, options) in variants() {
        let sent = split(value, &options);
        for (way, read) in received::<T>(&sent) {
            match read {
                Ok(read) => assert!(&read == value, "{name}, {way}"),
                Err(error) => panic!("{name}, {way}: {error}"),
            }
        }
        let shown: Value = tenarc::from_parts(&sent.0, &sent.1).unwrap();
        assert!(&tenarc::from_value::<T>(shown).unwrap() == value, "{name}, through a value");

        let (metadata, buffers) = &sent;
        let parts = Parts::new(&metadata[..], buffers.clone()).unwrap();
        for info in parts.tensors().unwrap() {
            let tensor: Tensor<tenarc::DynTensor> = parts.get(info.path()).unwrap();
            assert_eq!((tensor.dtype(), tensor.shape()), (info.dtype(), info.shape()), "{name}");
        }
        let mut out = OArchive::with_options(Vec::new(), options).unwrap();
        out.save(value).unwrap();
        let saved = out.finish().unwrap();
        let put = archived(|out| {
            out.save_parts(&parts).unwrap();
        });
        assert!(put == saved, "{name}: an archive of parts");
        let archive = Archive::new(&saved[..]).unwrap();
        assert_eq!(archive.tensors().unwrap(), parts.tensors().unwrap(), "{name}");
        let back = archive.segment(0).unwrap().view_parts().unwrap();
        assert!(back.metadata() == metadata && back.buffers() == *buffers, "{name}: taken back");
    }
}

/// Numbers from zero on.
pub fn ramp(shape: &[usize]) -> ArrayD<f32> {
    let count: usize = shape.iter().product();
    Array::from_shape_vec(IxDyn(shape), (0..count).map(|at| at as f32).collect()).unwrap()
}

/// A tensor of so many numbers, which differ from those of other seeds.
pub fn weights(len: usize, seed: usize) -> Tensor<Vec<f32>> {
    Tensor((0..len).map(|at| (at * 31 + seed * 1_000_003) as f32).collect())
}

/// A value with tensors, tied ones among them, a packed vector, bytes and a tensor that stays inline.
#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
pub struct Model {
    pub name: String,
    pub layers: Vec<Layer>,
    pub curve: Vec<f32>,
    #[serde(with = "serde_bytes")]
    pub blob: Vec<u8>,
    pub small: Tensor<Vec<i16>>,
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
pub struct Layer {
    pub weight: Tensor<ndarray::Array2<f32>>,
    pub bias: Tensor<Vec<f64>>,
}

pub fn model(seed: usize) -> Model {
    let weight = |n| ndarray::Array2::from_shape_fn((3, 4), |(a, b)| (seed + n + a * 7 + b) as f32);
    let layer = |n| Layer {
        weight: Tensor(weight(n)),
        bias: Tensor((0..6).map(|at| (at * n + seed) as f64).collect()),
    };
    Model {
        name: format!("model {seed}"),
        layers: (1..3).map(layer).collect(),
        curve: (0..12).map(|at| (at + seed) as f32).collect(),
        blob: (0..48).map(|at| (at * 3 + seed) as u8).collect(),
        small: Tensor(vec![1, -2, 3]),
    }
}

/// Everything that can go to a buffer does, but for what is really small.
pub fn small() -> SaveOptions {
    SaveOptions::default().with_inline_below(32)
}

/// The parts of a [`Model`]: two weights and a bias behind each of 48 bytes, a curve of 48 bytes, a
/// blob of 48 bytes.
pub fn sample() -> Sent {
    split(&model(1), &small())
}
