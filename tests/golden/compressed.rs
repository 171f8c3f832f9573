//! An archive with compressed buffers. Encoders may become better, so nothing is compared with what they write now.

use half::bf16;
use ndarray::s;
use num_complex::Complex;
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use tenarc::archive::Segment;
use tenarc::tensor::Order;
use tenarc::{Archive, DType, DynTensor, IArchive, Tensor};
use tenarc_test_support::{OneByte, Ragged};

use super::files::file;

const CHUNK: usize = 64 << 10;

/// The segments, and the codecs of the buffers of [`Model`], in the order of its fields. `columns` has two buffers.
///
/// `zstd` and `lz4` were written by the encoders of this crate, `library` by zstd's library, whose frames have matches and
/// more than one kind of table. `mixed` has different codecs.
const SEGMENTS: [(&str, [Option<&str>; 11]); 4] = [
    ("zstd", codecs(Some("zstd"))),
    ("lz4", codecs(Some("lz4"))),
    ("library", codecs(Some("zstd"))),
    ("mixed", {
        let mut codecs = codecs(Some("zstd"));
        (codecs[1], codecs[5]) = (Some("lz4"), Some("lz4"));
        (codecs[3], codecs[6]) = (None, None);
        codecs
    }),
];

const fn codecs(codec: Option<&'static str>) -> [Option<&'static str>; 11] {
    let mut all = [codec; 11];
    // Noise does not shrink.
    all[10] = None;
    all
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Model {
    bf16: Tensor<Vec<bf16>>,
    f32: Tensor<Vec<f32>>,
    f64: Tensor<Vec<f64>>,
    complex: Tensor<Vec<Complex<f32>>>,
    i64: Tensor<Vec<i64>>,
    bool: Tensor<Vec<bool>>,
    f4: Tensor<DynTensor>,
    /// The second of its three chunks is noise, and is stored as it is.
    partly_noise: ByteBuf,
    columns: Vec<Row>,
    noise: ByteBuf,
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Row {
    id: u32,
    value: f32,
}

fn noise(len: usize) -> impl Iterator<Item = u8> {
    let mut state = 11u64;
    let next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    };
    std::iter::repeat_with(next).take(len)
}

/// A number from 1 to 2.
fn mantissa([a, b, c]: [u8; 3]) -> f64 {
    1.0 + f64::from(u32::from_le_bytes([a, b, c, 0])) / f64::from(1 << 24)
}

fn model() -> Model {
    let sawtooth = |at: u16| f32::from(at % 97) / 64.0 - 0.75;
    let text = b"A line of text, with a number: 12345.\n".iter().copied().cycle();
    let f4 =
        DynTensor::new(DType::F4, &[64, 128], Order::C, (0..=255).cycle().take(4096).collect());
    Model {
        bf16: Tensor((0..60_000).map(|at| bf16::from_f32(sawtooth(at))).collect()),
        f32: Tensor((0..20_000).map(|at| sawtooth(at) * 3.0).collect()),
        // Mantissas of noise, whose planes are stored as they are.
        f64: Tensor(
            noise(6000).collect::<Vec<_>>().as_chunks().0.iter().copied().map(mantissa).collect(),
        ),
        complex: Tensor((0..3000).map(|at| Complex::new(sawtooth(at), -sawtooth(at))).collect()),
        // Bytes 2 to 7 are constant.
        i64: Tensor((0..20_000).map(|at| i64::from(at % 300)).collect()),
        bool: Tensor((0..70_001u32).map(|at| at.is_multiple_of(5)).collect()),
        f4: Tensor(f4.unwrap()),
        partly_noise: text
            .clone()
            .take(CHUNK)
            .chain(noise(CHUNK))
            .chain(text.take(999))
            .collect::<Vec<u8>>()
            .into(),
        columns: (0..5000).map(|at| Row { id: at.into(), value: sawtooth(at) }).collect(),
        noise: noise(3000).collect::<Vec<u8>>().into(),
    }
}

fn codecs_of<S: tenarc::io::ReadAt>(segment: &Segment<'_, S>) -> Vec<Option<String>> {
    let numbers = 0..segment.buffers().len();
    numbers.map(|number| segment.compressed(number).map(|how| how.codec().to_owned())).collect()
}

#[test]
fn compressed() {
    let bytes = file("compressed.tenarc");
    let archive = Archive::new(&bytes[..]).unwrap();
    assert_eq!(archive.len(), SEGMENTS.len() as u64);
    let expected = model();
    let readers: [(&str, Box<dyn std::io::Read>); 3] = [
        ("a stream", Box::new(&bytes[..])),
        ("one byte at a time", Box::new(OneByte(&bytes))),
        ("ragged", Box::new(Ragged::new(&bytes, 5))),
    ];
    for (way, reader) in readers {
        let mut input = IArchive::new(reader).unwrap();
        for (name, _) in SEGMENTS {
            let found: Model = input.load_as(name).unwrap();
            assert!(found == expected, "{name}, {way}");
        }
        assert!(input.is_at_end().unwrap());
    }
    for (name, codecs) in SEGMENTS {
        let segment = archive.named(name).unwrap();
        let found: Vec<_> = codecs_of(&segment);
        assert_eq!(found, codecs.map(|codec| codec.map(str::to_owned)), "{name}");
        assert!(segment.load::<Model>().unwrap() == expected, "{name}");
        assert!(segment.to_parts().unwrap().load::<Model>().unwrap() == expected, "{name}");
        // Across the edge of a chunk.
        let edge = CHUNK / 4;
        let part: Vec<f32> = segment.slice("f32", s![edge - 5..edge + 5]).unwrap();
        assert_eq!(part, expected.f32.0[edge - 5..edge + 5], "{name}");
        let column: Vec<f32> = segment.tensor("columns.value").unwrap();
        assert!(column.iter().eq(expected.columns.iter().map(|row| &row.value)), "{name}");
    }
}

/// The file has the forms of chunks for which it is there.
#[test]
fn compressed_has_every_form_of_a_chunk() {
    let bytes = file("compressed.tenarc");
    let archive = Archive::new(&bytes[..]).unwrap();
    let noise: Vec<u8> = noise(CHUNK).collect();
    for name in ["zstd", "lz4", "library"] {
        let segment = archive.named(name).unwrap();
        assert_eq!(segment.chunk_len(), CHUNK as u64);
        let stored = |number: usize| {
            let (start, len) = segment.buffers()[number];
            let end = start + segment.compressed(number).unwrap().stored_len();
            (len, &bytes[usize::try_from(start).unwrap()..usize::try_from(end).unwrap()])
        };
        // The plane table of the i64: constant bytes from the third on.
        let (len, i64) = stored(4);
        assert_eq!(len, 160_000);
        let methods: Vec<u8> = i64.chunks(5).map(|entry| entry[0]).take(8).collect();
        assert_eq!(methods, [2, 2, 1, 1, 1, 1, 1, 1], "{name}");
        // Planes that are stored as they are: three bytes of noise, behind bytes that are 0.
        let methods: Vec<u8> = stored(2).1.chunks(5).map(|entry| entry[0]).take(8).collect();
        assert_eq!(methods[..3], [1, 1, 1], "{name}");
        assert!(methods[3..].contains(&0), "{name}: {methods:?}");
        let (len, partly) = stored(7);
        assert_eq!(len, 2 * CHUNK as u64 + 999);
        assert!(partly.windows(CHUNK).any(|window| window == noise), "{name}");
    }
}
