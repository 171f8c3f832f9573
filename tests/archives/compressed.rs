//! Compressed tensors are read as others are, in every way but views.

use std::collections::BTreeMap;

use half::bf16;
use ndarray::{Array2, s};
use num_complex::Complex;
use proptest::prelude::*;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use tenarc::archive::{Compression, SaveOptions, Segment};
use tenarc::de::DecodeOptions;
use tenarc::error::Category;
use tenarc::{Archive, DynTensor, Error, IArchive, OArchive, Tensor, Value};
use tenarc_test_support::readers;

use super::support::{Counted, Dir, model, quick, ramp, to_bytes};

const CHUNK: usize = 64 << 10;

fn small_chunks() -> SaveOptions {
    quick().with_chunk_len(CHUNK as u64)
}

fn zstd() -> SaveOptions {
    small_chunks().with_compression(Compression::zstd())
}

/// Reads the only value in every way that decompresses.
fn read_everywhere<T: DeserializeOwned>(
    bytes: &[u8],
    options: DecodeOptions,
) -> Vec<(&'static str, tenarc::Result<T>)> {
    let stream = |reader| {
        let mut input = IArchive::with_options(reader, options)?;
        let value = input.load()?;
        assert!(input.is_at_end()?);
        Ok(value)
    };
    let at = |read: &dyn Fn(Segment<'_, Counted>) -> tenarc::Result<T>| {
        let archive = Archive::new(Counted::new(bytes.to_vec()))?.with_options(options);
        read(archive.only()?)
    };
    let in_memory = Archive::new(bytes).map(|archive| archive.with_options(options));
    let mut ways = vec![
        ("bytes in memory", in_memory.and_then(|archive| archive.load())),
        ("reads at positions", at(&|segment| segment.load())),
        ("get", at(&|segment| segment.get(""))),
        ("parts", at(&|segment| segment.to_parts()?.load())),
        (
            "parts of a stream",
            IArchive::with_options(bytes, options).and_then(|mut input| input.load_parts()?.load()),
        ),
    ];
    for (way, reader) in readers(bytes) {
        ways.push((way, stream(reader)));
    }
    ways
}

#[track_caller]
fn round_trip<T: Serialize + DeserializeOwned + PartialEq>(value: &T) {
    for compression in [Compression::zstd(), Compression::lz4(), Compression::none()] {
        for (what, options) in [
            ("small chunks", small_chunks()),
            ("all in buffers", quick().with_inline_below(1).with_alignment(8)),
            ("no checksums", small_chunks().with_checksums(false).with_inline_below(1)),
            ("dedup", quick().with_inline_below(1).with_dedup(true)),
            ("dedup without checksums", quick().with_checksums(false).with_dedup(true)),
        ] {
            let bytes = to_bytes(value, options.with_compression(compression));
            Archive::new(&bytes[..]).unwrap().verify().unwrap();
            for checksums in [true, false] {
                let options = DecodeOptions::default().with_checksums(checksums);
                for (way, read) in read_everywhere::<T>(&bytes, options) {
                    match read {
                        Ok(read) => assert!(&read == value, "{compression:?}, {what}, {way}"),
                        Err(error) => panic!("{compression:?}, {what}, {way}: {error}"),
                    }
                }
            }
        }
    }
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct All {
    bf16: Tensor<Vec<bf16>>,
    f32: Tensor<Vec<f32>>,
    f64: Tensor<Vec<f64>>,
    complex: Tensor<Vec<Complex<f32>>>,
    bool: Tensor<Vec<bool>>,
    random: ByteBuf,
    bytes: ByteBuf,
    zeros: Tensor<Vec<u64>>,
    again: Tensor<Vec<u64>>,
    rows: Vec<(u32, String, Option<f32>)>,
}

fn random(len: usize) -> Vec<u8> {
    let mut state = 7u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    };
    std::iter::repeat_with(&mut next).take(len).collect()
}

fn all() -> All {
    let bytes = random(150_000);
    let small = |at: usize| f32::from(bytes[at]) / 256.0 - 0.5;
    All {
        bf16: Tensor((0..150_000).map(|at| bf16::from_f32(small(at))).collect()),
        f32: Tensor((0..40_000).map(small).collect()),
        f64: Tensor((0..9000).map(|at| f64::from(small(at))).collect()),
        complex: Tensor((0..9000).map(|at| Complex::new(small(at), small(at + 1))).collect()),
        bool: Tensor((0..70_001).map(|at| at % 5 == 0).collect()),
        random: ByteBuf::from(bytes.clone()),
        bytes: ByteBuf::from(b"abc ".repeat(20_000)),
        zeros: Tensor(vec![0; 50_000]),
        again: Tensor(vec![0; 50_000]),
        rows: (0..3000).map(|at| (at, format!("row {at}"), Some(0.5))).collect(),
    }
}

#[test]
#[cfg_attr(miri, ignore = "takes minutes when interpreted")]
fn values_of_all_kinds_are_read_as_they_were_written() {
    round_trip(&all());
    round_trip(&model());
    round_trip(&Tensor(Vec::<f32>::new()));
    round_trip(&vec![Tensor(vec![1u8]), Tensor(vec![2; 10_000])]);
}

#[test]
fn what_shrinks_is_compressed_and_lies_behind_what_is_before_it() {
    let bytes = to_bytes(&all(), zstd());
    let plain = to_bytes(&all(), small_chunks());
    assert!(bytes.len() * 10 < plain.len() * 7, "{} of {}", bytes.len(), plain.len());
    let archive = Archive::new(&bytes[..]).unwrap();
    let segment = archive.only().unwrap();
    let (mut aligned, mut others) = (0, 0);
    for &(start, _) in segment.buffers() {
        *(if start % 256 == 0 { &mut aligned } else { &mut others }) += 1;
    }
    assert!(aligned >= 1 && others >= 5, "{aligned} {others}");
    // Bytes that do not shrink are not compressed.
    let number = segment.info("f32").unwrap().buffer().unwrap();
    assert!(segment.view_at::<Tensor<ndarray::ArrayView1<'_, f32>>>("f32").is_err(), "{number}");
    assert_eq!(segment.view_at::<&[u8]>("random").unwrap(), &all().random[..]);
}

#[test]
fn a_function_chooses_what_is_compressed() {
    let value = BTreeMap::from([
        ("model", Tensor(vec![0.5f32; 2000])),
        ("moments", Tensor(vec![0.5; 2000])),
        ("small", Tensor(vec![0.5; 20])),
    ]);
    let options = quick().with_compression_by(|tensor| {
        assert_eq!((tensor.dtype().name(), tensor.shape()), ("f32", &[2000][..]));
        (tensor.path() == "moments").then(Compression::lz4)
    });
    let bytes = to_bytes(&value, options);
    let archive = Archive::new(&bytes[..]).unwrap();
    let segment = archive.only().unwrap();
    type View<'a> = Tensor<ndarray::ArrayView1<'a, f32>>;
    assert_eq!(segment.view_at::<View<'_>>("model").unwrap().len(), 2000);
    let error = segment.view_at::<View<'_>>("moments").unwrap_err();
    assert_eq!(error.category(), Category::Unsupported);
    assert_eq!(error.path(), "moments");
    assert!(
        error.to_string().contains("compressed with lz4 and cannot be viewed: load it instead"),
        "{error}"
    );
    let error = segment.share("moments").unwrap_err();
    assert!(
        error.to_string().contains("compressed with lz4 and cannot be viewed: load it instead"),
        "{error}"
    );
    let error = segment.view_parts().unwrap_err();
    assert_eq!(error.path(), "moments");
    assert!(
        error.to_string().contains("compressed with lz4 and cannot be viewed: load it instead"),
        "{error}"
    );
    let found: BTreeMap<String, Tensor<Vec<f32>>> = segment.load().unwrap();
    assert!(found.values().eq(value.values()));
}

fn matrix() -> Array2<f32> {
    ramp(&[1055, 250]).into_dimensionality().unwrap()
}

#[test]
fn a_slice_reads_its_chunks_and_no_others() {
    let bytes = to_bytes(&Tensor(matrix()), zstd());
    let archive = Archive::new(Counted::new(bytes)).unwrap();
    archive.only().unwrap().verify_at("").unwrap();
    let (start, len) = archive.only().unwrap().buffers()[0];
    let whole = archive.source().stored().len() as u64;
    assert!(whole < len);
    let chunks = (len as usize).div_ceil(CHUNK);
    for (from, to) in [(0, 1), (100, 101), (65, 66), (64, 200), (200, 600), (1000, 1055), (0, 1055)]
    {
        archive.source().log.take();
        let rows: Array2<f32> = archive.slice("", s![from..to, ..]).unwrap();
        assert_eq!(rows, matrix().slice(s![from..to, ..]));
        let touched = (to * 1000usize).div_ceil(CHUNK) - from * 1000 / CHUNK;
        let reads = archive.source().log.take();
        assert_eq!(reads.len(), touched, "{from}..{to} of {chunks}");
        assert!(reads.iter().all(|(at, _)| *at >= start));
        let mut part = vec![0; (to - from) * 1000];
        archive.only().unwrap().read_buffer_part(0, from as u64 * 1000, &mut part).unwrap();
        assert_eq!(part, bytemuck::cast_slice::<_, u8>(rows.as_slice().unwrap()));
    }
    let columns: Array2<f32> = archive.slice("", s![..;100, 3..5]).unwrap();
    assert_eq!(columns, matrix().slice(s![..;100, 3..5]));
    let mut all = Vec::new();
    archive
        .only()
        .unwrap()
        .read_buffer(0, |block| {
            all.extend_from_slice(block);
            Ok(())
        })
        .unwrap();
    assert_eq!(all, bytemuck::cast_slice::<_, u8>(matrix().as_slice().unwrap()));
}

#[test]
fn parts_of_a_compressed_segment_are_those_of_an_uncompressed_one() {
    let (packed, plain) = (to_bytes(&all(), zstd()), to_bytes(&all(), small_chunks()));
    let parts = |bytes: &[u8]| Archive::new(bytes).unwrap().only().unwrap().to_parts().unwrap();
    let expected = parts(&plain);
    let streamed = IArchive::new(&packed[..]).unwrap().load_parts().unwrap();
    for found in [parts(&packed), streamed] {
        assert_eq!(found.metadata(), expected.metadata());
        assert!(
            found.buffers().iter().map(|b| &b[..]).eq(expected.buffers().iter().map(|b| &b[..]))
        );
    }
}

#[test]
fn segments_are_copied_as_they_are_stored() {
    let bytes = to_bytes(&all(), zstd());
    let archive = Archive::new(&bytes[..]).unwrap();
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save_segment(&archive.only().unwrap()).unwrap();
    assert_eq!(out.finish().unwrap(), bytes);

    let stored = archive.only().unwrap();
    let stored = stored.stored(0..stored.metadata().unwrap().len()).unwrap();
    assert_eq!(to_bytes(&stored, zstd()), bytes);
    // If nothing is said of compression, it stays.
    assert_eq!(to_bytes(&stored, small_chunks()), bytes);
    let plain = small_chunks().with_compression(Compression::none());
    assert_eq!(to_bytes(&stored, plain), to_bytes(&all(), small_chunks()));
    let never = small_chunks().with_compression_by(|_| None);
    assert_eq!(to_bytes(&stored, never), to_bytes(&all(), small_chunks()));
    let lz4 = small_chunks().with_compression(Compression::lz4());
    assert_eq!(to_bytes(&stored, lz4.clone()), to_bytes(&all(), lz4));
    // Other formats, and parts, get the content.
    let message = tenarc::to_vec(&stored).unwrap();
    assert!(tenarc::from_slice::<All>(&message).unwrap() == all());
    let parts = tenarc::parts::to_parts_with(&stored, small_chunks()).unwrap();
    assert!(parts.load::<All>().unwrap() == all());
}

/// The only value.
fn whole(bytes: &[u8]) -> Value {
    Archive::new(bytes).unwrap().load().unwrap()
}

/// For each tensor, how its buffer is compressed, and how many bytes of it are stored.
fn stored_as(bytes: &[u8]) -> Vec<(String, Option<(String, u64)>)> {
    let archive = Archive::new(bytes).unwrap();
    let segment = archive.only().unwrap();
    let of = |info: tenarc::tensor::TensorInfo| {
        let compressed =
            info.buffer().and_then(|number| segment.compressed(number.try_into().unwrap()));
        let how = compressed.map(|how| (how.codec().to_owned(), how.stored_len()));
        (info.path().to_owned(), how)
    };
    segment.tensors().unwrap().into_iter().map(of).collect()
}

/// All of the only segment of `bytes`, inside another value.
fn inside_another(bytes: &[u8], options: SaveOptions) -> Vec<u8> {
    let archive = Archive::new(bytes).unwrap();
    let segment = archive.only().unwrap();
    let stored = segment.stored(0..segment.metadata().unwrap().len()).unwrap();
    to_bytes(&BTreeMap::from([("inside", stored)]), options)
}

#[test]
fn compressed_tensors_in_another_value_stay_as_they_are() {
    for compression in [Compression::zstd(), Compression::lz4()] {
        for before in [small_chunks(), small_chunks().with_checksums(false)] {
            let bytes = to_bytes(&all(), before.with_compression(compression));
            for options in [
                small_chunks(),
                small_chunks().with_dedup(true),
                small_chunks().with_alignment(8),
                small_chunks().with_checksums(false),
                small_chunks().with_checksums(false).with_dedup(true),
            ] {
                let copy = inside_another(&bytes, options);
                Archive::new(&copy[..]).unwrap().verify().unwrap();
                let inside = |(path, how)| (format!("inside.{path}"), how);
                let expected: Vec<_> = stored_as(&bytes).into_iter().map(inside).collect();
                assert!(expected.iter().filter(|(_, how)| how.is_some()).count() > 3);
                assert_eq!(stored_as(&copy), expected);
                for (way, read) in
                    read_everywhere::<BTreeMap<String, All>>(&copy, DecodeOptions::default())
                {
                    assert!(read.unwrap()["inside"] == all(), "{way}");
                }
            }
        }
    }
}

#[test]
fn tied_tensors_that_are_compressed_stay_tied() {
    let tied = to_bytes(&all(), zstd().with_dedup(true));
    let lens = |bytes: &[u8]| Archive::new(bytes).unwrap().only().unwrap().buffers().len();
    assert_eq!(lens(&inside_another(&tied, small_chunks().with_dedup(true))), lens(&tied));
    assert_eq!(lens(&inside_another(&tied, small_chunks())), lens(&tied) + 1);
    // Equal bytes that are stored in another way, or as they are, have another buffer.
    let archives = [zstd(), small_chunks().with_compression(Compression::lz4()), small_chunks()]
        .map(|options| Archive::new(to_bytes(&all(), options)).unwrap());
    let segments: Vec<_> = archives.iter().map(|archive| archive.only().unwrap()).collect();
    let all: Vec<_> = segments
        .iter()
        .map(|segment| segment.stored(0..segment.metadata().unwrap().len()).unwrap())
        .collect();
    let copy = to_bytes(&all, small_chunks().with_dedup(true));
    let codecs: std::collections::BTreeSet<_> = stored_as(&copy)
        .into_iter()
        .filter(|(path, _)| path.ends_with("f32"))
        .map(|(_, how)| how.map(|(codec, _)| codec))
        .collect();
    assert_eq!(codecs.len(), 3, "{codecs:?}");
    for value in whole(&copy).as_array().unwrap() {
        assert!(*value == whole(&tied));
    }
}

#[test]
fn with_chunks_of_another_length_the_codec_stays() {
    let bytes = to_bytes(&all(), small_chunks().with_compression(Compression::lz4()));
    let copy = inside_another(&bytes, quick());
    let codecs = |bytes: &[u8]| {
        let all = stored_as(bytes).into_iter();
        all.map(|(_, how)| how.map(|(codec, _)| codec)).collect::<Vec<_>>()
    };
    assert_eq!(codecs(&copy), codecs(&bytes));
    assert_eq!(Archive::new(&copy[..]).unwrap().only().unwrap().chunk_len(), 1 << 20);
    let read: BTreeMap<String, All> = Archive::new(copy).unwrap().load().unwrap();
    assert!(read["inside"] == all());
}

#[test]
fn damage_of_a_compressed_tensor_is_found_when_it_is_copied() {
    let mut bytes = to_bytes(&all(), zstd());
    let archive = Archive::new(&bytes[..]).unwrap();
    let segment = archive.only().unwrap();
    let (number, &(at, _)) = (0..)
        .zip(segment.buffers())
        .find(|&(number, _)| segment.compressed(number).is_some())
        .unwrap();
    let at = usize::try_from(at).unwrap();
    bytes[at + 9] ^= 1;
    for dedup in [false, true] {
        let archive = Archive::new(&bytes[..]).unwrap();
        let segment = archive.only().unwrap();
        let stored = segment.stored(0..segment.metadata().unwrap().len()).unwrap();
        let options = small_chunks().with_dedup(dedup);
        let mut out = OArchive::with_options(Vec::new(), options).unwrap();
        let error = out.save(&stored).unwrap_err();
        assert_eq!(error.category(), Category::Damaged, "{error}");
        let chunk = format!("chunk 0 of buffer {number}");
        assert!(error.to_string().contains(&chunk), "{error}");
    }
}

/// What alone is more than readers decompress by default is not taken over as it is.
#[test]
#[cfg_attr(miri, ignore = "takes minutes when interpreted")]
fn what_is_copied_is_within_the_limits_of_readers() {
    // Each alone is below the 64 MiB that are free.
    let one = Tensor(vec![0u64; 5 << 20]);
    let bytes = to_bytes(&one, quick().with_compression(Compression::zstd()));
    let archive = Archive::new(&bytes[..]).unwrap();
    let segment = archive.only().unwrap();
    let stored = || segment.stored(0..segment.metadata().unwrap().len()).unwrap();
    let copy = to_bytes(&[stored(), stored(), stored()], quick());
    assert!(copy.len() < 3 << 20, "{}", copy.len());
    let read: Vec<Tensor<Vec<u64>>> = Archive::new(copy).unwrap().load().unwrap();
    assert!(read.iter().all(|each| *each == one) && read.len() == 3);
}

#[test]
fn complete_tensors_of_a_cut_segment_are_kept() {
    let value =
        vec![Tensor(vec![1.5f32; 30_000]), Tensor(vec![2.5; 30_000]), Tensor(vec![3.5; 30_000])];
    let bytes = to_bytes(&value, zstd());
    let (last, _) = Archive::new(&bytes[..]).unwrap().only().unwrap().buffers()[2];
    let dir = Dir::new();
    let (old, new) = (dir.file("old"), dir.file("new"));
    std::fs::write(&old, &bytes[..=last as usize]).unwrap();
    let recovered = tenarc::archive::Recovery::of(&old).to(&new).unwrap();
    assert_eq!(recovered.salvaged.unwrap().tensors.len(), 2);
    let archive = tenarc::open(&new).unwrap();
    archive.verify().unwrap();
    let found: Vec<Option<Tensor<Vec<f32>>>> = archive.load().unwrap();
    assert_eq!(found, [Some(value[0].clone()), Some(value[1].clone()), None]);
}

/// The errors of every way to the bytes of a tensor.
fn errors(bytes: &[u8]) -> Vec<Error> {
    let mut errors: Vec<Error> =
        read_everywhere::<Tensor<DynTensor>>(bytes, DecodeOptions::default())
            .into_iter()
            .map(|(way, read)| read.err().unwrap_or_else(|| panic!("{way}")))
            .collect();
    let archive = Archive::new(Counted::new(bytes.to_vec())).unwrap();
    let segment = archive.only().unwrap();
    errors.push(segment.verify_at("").unwrap_err());
    errors.push(archive.verify().unwrap_err());
    errors.push(segment.read_buffer(0, |_| Ok(())).unwrap_err());
    errors.push(segment.slice::<Array2<f32>>("", s![.., 3..4]).unwrap_err());
    errors.push(OArchive::new(Vec::new()).unwrap().save_segment(&segment).map(drop).unwrap_err());
    errors
}

#[test]
fn an_error_names_the_damaged_chunk() {
    let good = to_bytes(&Tensor(matrix()), zstd());
    let archive = Archive::new(&good[..]).unwrap();
    let segment = archive.only().unwrap();
    let (start, len) = segment.buffers()[0];
    let stored = segment.compressed(0).unwrap();
    assert_eq!(stored.codec(), "zstd");
    for (at, first) in [(start, true), (start + stored.stored_len() - 1, false)] {
        let at = at as usize;
        let mut bytes = good.clone();
        bytes[at] ^= 4;
        let last = (len as usize).div_ceil(CHUNK) - 1;
        let (index, from, to) =
            if first { (0, 0, CHUNK) } else { (last, last * CHUNK, len as usize) };
        let expected = format!(
            "chunk {index} of buffer 0, which is its bytes {from}..{to}, compressed with zstd,"
        );
        for error in errors(&bytes) {
            assert_eq!(error.category(), Category::Damaged, "{error}");
            assert!(error.to_string().contains(&expected), "{error}");
        }
        // Rows in other chunks are still read.
        let archive = Archive::new(Counted::new(bytes)).unwrap();
        let rows: Array2<f32> = archive.slice("", s![500..510, ..]).unwrap();
        assert_eq!(rows, matrix().slice(s![500..510, ..]));
    }
}

#[test]
fn an_error_names_the_tensor() {
    let value =
        BTreeMap::from([("a", Tensor(vec![1.5f32; 40_000])), ("b", Tensor(vec![2.5; 40_000]))]);
    let mut bytes = to_bytes(&value, zstd());
    let (at, _) = Archive::new(&bytes[..]).unwrap().only().unwrap().buffers()[1];
    bytes[at as usize] ^= 1;
    let archive = Archive::new(Counted::new(bytes)).unwrap();
    let segment = archive.only().unwrap();
    for error in [
        segment.load::<BTreeMap<String, Tensor<Vec<f32>>>>().unwrap_err(),
        segment.dyn_tensor("b").unwrap_err(),
        segment.slice::<Vec<f32>>("b", s![..10]).unwrap_err(),
        segment.verify_at("").unwrap_err(),
        archive.verify().unwrap_err(),
    ] {
        let expected = "chunk 0 of buffer 1, which is its bytes 0..65536, compressed with zstd,";
        assert_eq!(error.path(), "b", "{error}");
        assert_eq!(error.offset(), Some(at), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
    assert_eq!(segment.tensor::<Vec<f32>>("a").unwrap(), value["a"].0);
}

/// A small archive with a compressed tensor of two chunks, one of them raw, and one that is not compressed.
fn small() -> (Vec<u8>, (Tensor<Vec<u16>>, ByteBuf)) {
    let mut numbers = vec![7u16; CHUNK / 2];
    numbers.extend(random(40).iter().map(|&byte| u16::from(byte) << 8));
    let value = (Tensor(numbers), ByteBuf::from(random(40)));
    (to_bytes(&value, zstd().with_inline_below(1).with_alignment(8)), value)
}

/// Reads an archive from its start and by its end.
fn from_both_ends<T: DeserializeOwned>(
    bytes: &[u8],
    options: DecodeOptions,
) -> [tenarc::Result<T>; 2] {
    let stream = || {
        let mut input = IArchive::with_options(bytes, options)?;
        let value = input.load()?;
        // Before the end mark, a value may be incomplete.
        input.is_at_end().map(|_| value)
    };
    let archive = Archive::new(Counted::new(bytes.to_vec()));
    [stream(), archive.and_then(|archive| archive.with_options(options).load())]
}

#[test]
#[cfg_attr(miri, ignore = "takes minutes when interpreted")]
fn every_truncation_and_flip_of_a_small_archive_is_found() {
    type Both = (Tensor<Vec<u16>>, ByteBuf);

    let (bytes, value) = small();
    assert!(bytes.len() < 600, "{}", bytes.len());
    let verified = DecodeOptions::default();
    let unverified = verified.with_checksums(false);
    for end in 0..bytes.len() {
        for options in [verified, unverified] {
            assert!(
                from_both_ends::<Both>(&bytes[..end], options).iter().all(Result::is_err),
                "{end}"
            );
        }
    }
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1 << bit;
            let archive = Archive::new(&bytes[..]);
            assert!(archive.and_then(|archive| archive.verify()).is_err(), "byte {at}, bit {bit}");
            let [stream, positioned] = from_both_ends::<Both>(&bytes, verified);
            // Those who only load a value do not look at all paddings.
            assert!(stream.is_err() || stream.unwrap() == value, "byte {at}, bit {bit}");
            assert!(positioned.is_err() || positioned.unwrap() == value, "byte {at}, bit {bit}");
            // Whatever is found, it is found without harm.
            drop(from_both_ends::<Value>(&bytes, unverified));
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "takes minutes when interpreted")]
fn what_is_written_is_within_the_limits_of_readers() {
    // 64 MiB are free, and these are 70 MiB that shrink by a factor of thousands.
    let value = vec![Tensor(vec![0u64; 7 << 18]); 5];
    let bytes = to_bytes(&value, quick().with_compression(Compression::zstd()));
    assert!(bytes.len() < 3 << 20, "{}", bytes.len());
    for (way, read) in read_everywhere::<Vec<Tensor<Vec<u64>>>>(&bytes, DecodeOptions::default()) {
        assert!(read.unwrap_or_else(|error| panic!("{way}: {error}")) == value, "{way}");
    }
    let limits = tenarc::de::Limits::default().with_max_alloc(50 << 20);
    let options = DecodeOptions::default().with_limits(limits);
    for (way, read) in read_everywhere::<Value>(&bytes, options) {
        assert_eq!(read.unwrap_err().category(), Category::Limit, "{way}");
    }
    for (way, read) in read_everywhere::<IgnoredAny>(&bytes, options) {
        assert_eq!(read.is_ok(), !way.contains("parts"), "{way}");
    }
}

#[test]
fn levels_that_a_build_does_not_have_are_refused_by_name() {
    let options = quick().with_compression(Compression::zstd_level(3));
    let refused = OArchive::with_options(Vec::new(), options);
    if cfg!(not(feature = "zstd")) {
        let error = refused.unwrap_err();
        assert!(error.to_string().contains("feature `zstd`"), "{error}");
    } else {
        refused.unwrap();
    }
}

type Pair = (Tensor<Vec<u8>>, Tensor<Vec<i32>>);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 48 }))]

    #[test]
    fn values_are_equal_with_and_without_compression(
        lens in proptest::collection::vec(0usize..80_000, 1..4),
        seeds in proptest::collection::vec(any::<u8>(), 4),
        alignment in 3u32..13,
        lz4 in any::<bool>(),
    ) {
        let noise = random(80_000);
        let value: Vec<Pair> = lens.iter().zip(&seeds).map(|(&len, &seed)| {
            let bytes = noise[..len].iter().map(|byte| byte & seed).collect();
            let numbers = noise[..len / 4].iter().map(|&byte| i32::from(byte & seed) - 9).collect();
            (Tensor(bytes), Tensor(numbers))
        }).collect();
        let compression = if lz4 { Compression::lz4() } else { Compression::zstd() };
        let options = small_chunks().with_alignment(1 << alignment).with_compression(compression);
        let bytes = to_bytes(&value, options);
        Archive::new(&bytes[..]).unwrap().verify().unwrap();
        for (way, read) in read_everywhere::<Vec<Pair>>(&bytes, DecodeOptions::default()) {
            prop_assert!(read.unwrap() == value, "{}", way);
        }
    }
}

#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
struct Row {
    x: Tensor<Vec<f32>>,
}

/// One call may decompress as much as the limit says, however many rows and segments it reads.
#[test]
fn rows_and_columns_of_a_table_share_one_limit() {
    let zeros = vec![Row { x: Tensor(vec![0.0; 40_000]) }; 40];
    let one_buffer = zstd().with_dedup(true).with_columns(false);
    let mut tied = OArchive::with_options(Vec::new(), one_buffer).unwrap();
    tied.save_as("rows", &zeros).unwrap();
    let mut segments = OArchive::with_options(Vec::new(), zstd()).unwrap();
    for row in &zeros {
        segments.save_as("rows", std::slice::from_ref(row)).unwrap();
    }
    let limits = tenarc::de::Limits::default().with_max_alloc(1 << 20);
    let strict = DecodeOptions::default().with_limits(limits);
    for (name, archive) in [("one buffer", tied), ("segments", segments)] {
        let bytes = archive.finish().unwrap();
        assert!(bytes.len() < 100_000, "{}", bytes.len());
        let archive = Archive::new(&bytes[..]).unwrap();
        let table = archive.table("rows").unwrap();
        assert_eq!(table.rows::<Row>(..).unwrap(), zeros);
        let column: Vec<Tensor<Vec<f32>>> = table.column("x").unwrap();
        assert!(column.iter().zip(&zeros).all(|(found, row)| *found == row.x));

        let archive = Archive::new(&bytes[..]).unwrap().with_options(strict);
        let table = archive.table("rows").unwrap();
        let rows = table.rows::<Row>(..).unwrap_err();
        let column = table.column::<Vec<Tensor<Vec<f32>>>>("x").unwrap_err();
        for error in [rows, column] {
            assert_eq!(error.category(), Category::Limit, "{name}: {error}");
        }
        // Each call by itself is allowed.
        for row in 0..40 {
            assert_eq!(table.row::<Row>(row).unwrap(), zeros[0]);
        }
    }
}

/// Short blocks are collected for all threads. Neither the blocks nor the threads change what is written.
#[test]
fn blocks_and_threads_do_not_change_the_bytes() {
    use std::num::NonZeroUsize;
    use tenarc::tensor::{Deferred, Order};

    let bytes: Vec<u8> = (0..1_000_003u32).map(|at| (at / 700 * 31 % 251) as u8).collect();
    let written = |block: usize, threads: usize| {
        let blocks = |put: &mut dyn FnMut(&[u8]) -> tenarc::Result<()>| {
            bytes.chunks(block).try_for_each(&mut *put)
        };
        let tensor = Deferred::from_blocks(tenarc::DType::U8, &[bytes.len()], Order::C, blocks);
        to_bytes(&Tensor(tensor), zstd().with_threads(NonZeroUsize::new(threads).unwrap()))
    };
    let expected = written(bytes.len(), 1);
    assert!(expected.len() < bytes.len() / 2, "{}", expected.len());
    let read: Tensor<Vec<u8>> = Archive::new(&expected[..]).unwrap().load().unwrap();
    assert!(read.0 == bytes);
    for block in [1, 999, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 7, 500_000] {
        for threads in [1, 2, 3, 8] {
            assert!(written(block, threads) == expected, "{block}, {threads}");
        }
    }
}

/// A reader of a stream counts only what came before a buffer. What is copied later allows nothing.
#[test]
fn what_is_compressed_before_copies_is_within_the_limits_of_streams() {
    let noise: Vec<u8> =
        (0..6_000_000u32).map(|at| (at.wrapping_mul(0x9e37_79b9) >> 27) as u8).collect();
    let (noise, zeros) = (Tensor(noise), Tensor(vec![0u64; 9 << 20]));
    let bytes = to_bytes(&noise, quick().with_compression(Compression::zstd()));
    let archive = Archive::new(&bytes[..]).unwrap();
    let segment = archive.only().unwrap();
    assert!(segment.compressed(0).is_some());
    let other = to_bytes(&zeros, zstd());
    let other = Archive::new(&other[..]).unwrap();
    let other = other.only().unwrap();
    let stored = segment.stored(0..segment.metadata().unwrap().len()).unwrap();
    // Its chunks have another length, so it is compressed again.
    let again = other.stored(0..other.metadata().unwrap().len()).unwrap();
    let copy = to_bytes(&(again, stored), quick());
    for (way, read) in
        read_everywhere::<(Tensor<Vec<u64>>, Tensor<Vec<u8>>)>(&copy, DecodeOptions::default())
    {
        let read = read.unwrap_or_else(|error| panic!("{way}: {error}"));
        assert!(read.0 == zeros && read.1 == noise, "{way}");
    }
}

/// Paths of tensors may take much more memory than the metadata. Without a function, they are not needed.
#[test]
fn long_paths_do_not_stop_compression() {
    let tensors = vec![Tensor(vec![0u16; 1000]); 1000];
    let value = BTreeMap::from([("k".repeat(20_000), tensors)]);
    let bytes = to_bytes(&value, zstd().with_inline_below(0));
    assert!(Archive::new(&bytes[..]).unwrap().only().unwrap().compressed(999).is_some());
    let read: BTreeMap<String, Vec<Tensor<Vec<u16>>>> =
        Archive::new(&bytes[..]).unwrap().load().unwrap();
    assert!(read == value);
}
