//! Buffers are verified in chunks: parts of tensors by the chunks that they touch, whole ones by several threads.

use std::num::NonZeroUsize;

use ndarray::{Array1, Array2, ArrayD, s};
use proptest::prelude::*;
use serde::Serialize;
use tenarc::archive::{SaveOptions, Segment};
use tenarc::de::DecodeOptions;
use tenarc::error::Category;
use tenarc::io::ReadAt;
use tenarc::{Archive, DynTensor, Error, IArchive, OArchive, Tensor};

use super::support::{Counted, quick, ramp, to_bytes};

const CHUNK: usize = 64 << 10;

fn small_chunks() -> SaveOptions {
    quick().with_chunk_len(CHUNK as u64)
}

/// An array of 16 chunks and a bit, 1,000 bytes a row.
fn array() -> Array2<f32> {
    ramp(&[1055, 250]).into_dimensionality().unwrap()
}

fn archive() -> Vec<u8> {
    to_bytes(&Tensor(array()), small_chunks())
}

fn buffer<S: ReadAt>(archive: &Archive<S>) -> (usize, usize) {
    let (start, len) = archive.only().unwrap().buffers()[0];
    (usize::try_from(start).unwrap(), usize::try_from(len).unwrap())
}

/// The message for a damaged chunk, without the hashes.
fn names_chunk(error: &Error, index: usize, len: usize) {
    let (from, to) = (index * CHUNK, len.min((index + 1) * CHUNK));
    let expected = format!("chunk {index} of buffer 0, which is its bytes {from}..{to},");
    assert_eq!(error.category(), Category::Damaged);
    assert!(error.to_string().contains(&expected), "{error}");
}

#[test]
fn a_slice_reads_its_chunks_and_no_others() {
    let archive = Archive::new(Counted::new(archive())).unwrap();
    let (start, len) = buffer(&archive);
    archive.only().unwrap().verify_at("").unwrap();
    for (from, to) in [(0, 1), (100, 101), (65, 66), (64, 200), (200, 600), (1000, 1055), (0, 1055)]
    {
        archive.source().log.take();
        let rows: Array2<f32> = archive.slice("", s![from..to, ..]).unwrap();
        assert_eq!(rows, array().slice(s![from..to, ..]));
        let first = from * 1000 / CHUNK * CHUNK;
        let last = len.min((to * 1000).div_ceil(CHUNK) * CHUNK);
        let reads = archive.source().log.take();
        let read: u64 = reads.iter().map(|(_, len)| len).sum();
        assert_eq!(read, (last - first) as u64, "{from}..{to}");
        for (at, len) in reads {
            assert!(at >= (start + first) as u64 && at + len <= (start + last) as u64);
        }
    }
}

#[test]
fn of_a_slice_with_steps_only_its_rows_are_read() {
    // A row is a chunk and a half.
    let array: Array2<f32> = ramp(&[20, CHUNK / 4 * 3 / 2]).into_dimensionality().unwrap();
    let bytes = to_bytes(&Tensor(&array), small_chunks());
    let archive = Archive::new(Counted::new(bytes)).unwrap();
    for checksums in [true, false] {
        let options = DecodeOptions::default().with_checksums(checksums);
        let archive = Archive::new(archive.source()).unwrap().with_options(options);
        archive.only().unwrap().tensors().unwrap();
        if checksums {
            archive.verify().unwrap();
        }
        for (info, rows, chunks) in [
            (s![0..20;8, ..], 3, 6),
            (s![1..20;-8, ..], 3, 6),
            (s![3..20;8, 10..20], 3, 6),
            (s![0..20;-19, ..;-1], 2, 4),
        ] {
            let segment = archive.only().unwrap();
            segment.slice::<Array2<f32>>("", s![0..0, ..]).unwrap();
            archive.source().log.take();
            let found: Array2<f32> = segment.slice("", info).unwrap();
            assert_eq!(found, array.slice(info));
            let (_, read) = archive.source().log.totals();
            let hashes = 8 * 30 + 14;
            if checksums {
                assert!(read <= (chunks * CHUNK + hashes) as u64, "{info:?}: {read}");
            } else {
                assert_eq!(read, (rows * CHUNK * 3 / 2) as u64, "{info:?}");
            }
        }
    }
}

/// Every way to the bytes of a damaged tensor.
fn reads_of_all(bytes: &[u8]) -> Vec<Error> {
    let archive = Archive::new(Counted::new(bytes.to_vec())).unwrap();
    let segment = archive.only().unwrap();
    let in_memory = Archive::new(bytes).unwrap();
    let mut errors = vec![
        segment.load::<Tensor<Array2<f32>>>().unwrap_err(),
        segment.dyn_tensor("").unwrap_err(),
        segment.to_parts().unwrap_err(),
        segment.read_buffer(0, |_| Ok(())).unwrap_err(),
        segment.verify_at("").unwrap_err(),
        segment.slice::<ArrayD<f32>>("", s![.., 3]).unwrap_err(),
        archive.verify().unwrap_err(),
        in_memory.load::<Tensor<Array2<f32>>>().unwrap_err(),
        in_memory.only().unwrap().view_parts().unwrap_err(),
        in_memory.only().unwrap().verify_at("").unwrap_err(),
        in_memory.verify().unwrap_err(),
        IArchive::new(bytes).unwrap().load::<Tensor<DynTensor>>().unwrap_err(),
        IArchive::new(bytes).unwrap().load_parts().unwrap_err(),
    ];
    let mut copy = OArchive::new(Vec::new()).unwrap();
    errors.push(copy.save_segment(&segment).unwrap_err());
    errors
}

#[test]
fn a_flipped_bit_is_found_and_named_and_other_rows_are_read() {
    let whole = archive();
    let (start, len) = buffer(&Archive::new(&whole[..]).unwrap());
    for index in [0, 1, 7, 15, 16] {
        let mut bytes = whole.clone();
        bytes[start + (index * CHUNK + 77).min(len - 1)] ^= 4;
        for error in reads_of_all(&bytes) {
            names_chunk(&error, index, len);
        }
        let archive = Archive::new(Counted::new(bytes.clone())).unwrap();
        let in_memory = Archive::new(&bytes[..]).unwrap();
        for row in 0..1055 {
            let touched = row * 1000 / CHUNK..=(row * 1000 + 999) / CHUNK;
            // All rows near the damage, and some of the others.
            let near = *touched.start() <= index + 1 && *touched.end() + 1 >= index;
            if !near && row % 20 != 0 {
                continue;
            }
            let read =
                |segment: Segment<'_, &dyn ReadAt>| segment.slice::<Array1<f32>>("", s![row, ..]);
            for source in [archive.source() as &dyn ReadAt, &bytes] {
                let found = read(Archive::new(source).unwrap().only().unwrap().clone());
                match found {
                    Ok(found) => {
                        assert!(!touched.contains(&index), "{index}: {row}");
                        assert_eq!(found, array().row(row));
                    }
                    Err(error) => {
                        assert!(touched.contains(&index), "{index}: {row}");
                        names_chunk(&error, index, len);
                    }
                }
            }
        }
        // Nothing is verified without being asked.
        let options = DecodeOptions::default().with_checksums(false);
        let found: Array2<f32> = in_memory.with_options(options).slice("", s![.., ..]).unwrap();
        assert_ne!(found, array());
    }
}

#[test]
fn the_error_of_verify_names_the_path() {
    #[derive(Serialize)]
    struct Model {
        layers: Vec<Tensor<Array2<f32>>>,
    }

    let model = Model { layers: vec![Tensor(array()), Tensor(array())] };
    let mut bytes = to_bytes(&model, small_chunks());
    let (start, _) = Archive::new(&bytes[..]).unwrap().only().unwrap().buffers()[1];
    bytes[usize::try_from(start).unwrap() + CHUNK * 3] ^= 1;
    let archive = Archive::new(&bytes[..]).unwrap();
    let segment = archive.only().unwrap();
    for error in [archive.verify(), segment.verify_at("layers"), segment.verify_at("layers.1")] {
        let error = error.unwrap_err();
        assert_eq!(error.path(), "layers.1");
        assert!(error.to_string().contains("chunk 3 of buffer 1"), "{error}");
    }
    segment.verify_at("layers.0").unwrap();
    assert!(segment.verify_at("layers.2").is_err());
    let unchecked = to_bytes(&model, small_chunks().with_checksums(false));
    assert!(Archive::new(unchecked).unwrap().only().unwrap().verify_at("layers").is_err());
}

#[test]
fn any_number_of_threads_reads_the_same() {
    // Several pieces for each thread, and a rest.
    let array: Array1<f32> = (0..5_000_123u32).map(|at| at as f32 * 0.37).collect();
    let whole = to_bytes(&Tensor(&array), quick());
    let (start, len) = buffer(&Archive::new(&whole[..]).unwrap());
    let mut damaged = whole.clone();
    for chunk in [3, 9, 18] {
        damaged[start + (chunk << 20) + 5] ^= 1;
    }
    for threads in [1, 2, 3, 8] {
        for checksums in [true, false] {
            let options = DecodeOptions::default()
                .with_threads(NonZeroUsize::new(threads).unwrap())
                .with_checksums(checksums);
            let open = |bytes: &Vec<u8>| {
                Archive::new(Counted::new(bytes.clone())).unwrap().with_options(options)
            };
            let found: Tensor<Array1<f32>> = open(&whole).load().unwrap();
            assert!(found.0 == array);
            let part: Array1<f32> = open(&whole).slice("", s![1000..4_000_000]).unwrap();
            assert!(part == array.slice(s![1000..4_000_000]));
            let found = open(&damaged).load::<Tensor<Array1<f32>>>();
            if checksums {
                let expected = "chunk 3 of buffer 0, which is its bytes 3145728..4194304,";
                assert!(found.unwrap_err().to_string().contains(expected));
                let error = open(&damaged).slice::<Array1<f32>>("", s![4 << 18..]).unwrap_err();
                assert!(error.to_string().contains("chunk 9 of buffer 0"), "{error}");
            } else {
                assert!(found.unwrap().0 != array);
            }
            let error = open(&damaged).verify().unwrap_err();
            assert!(error.to_string().contains("chunk 3 of buffer 0"), "{error}");
            // A file that is cut below the reader: the error is that of the first missing byte.
            let cut = Cut(&whole, start + len / 2);
            let error =
                Archive::new(cut).unwrap().with_options(options).load::<Tensor<Array1<f32>>>();
            let error = error.unwrap_err();
            assert_eq!(error.offset(), Some((start + len / 2) as u64), "{error}");
        }
    }
}

/// Bytes of which the middle is missing.
struct Cut<'a>(&'a [u8], usize);

impl ReadAt for Cut<'_> {
    fn read_at(&self, out: &mut [u8], offset: u64) -> std::io::Result<usize> {
        let at = usize::try_from(offset).unwrap();
        let behind = at > self.0.len() - (1 << 12);
        let there = if behind { self.0 } else { &self.0[..self.1] };
        there.read_at(out, offset)
    }

    fn size(&self) -> std::io::Result<u64> {
        self.0.size()
    }
}

#[test]
fn buffers_of_any_number_of_chunks_are_written_and_read() {
    let lengths = [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 3 * CHUNK + 5];
    let value: Vec<Tensor<Vec<u8>>> =
        lengths.iter().map(|&len| Tensor((0..=250).cycle().take(len).collect())).collect();
    for dedup in [false, true] {
        let options = small_chunks().with_inline_below(0).with_dedup(dedup);
        let twice = (&value, &value);
        let bytes = to_bytes(&twice, options);
        type Twice = (Vec<Tensor<Vec<u8>>>, Vec<Tensor<Vec<u8>>>);
        let archive = Archive::new(&bytes[..]).unwrap();
        archive.verify().unwrap();
        let expected = (value.clone(), value.clone());
        assert_eq!(archive.load::<Twice>().unwrap(), expected);
        assert_eq!(IArchive::new(&bytes[..]).unwrap().load::<Twice>().unwrap(), expected);
        let parts = archive.only().unwrap().to_parts().unwrap();
        assert_eq!(parts.load::<Twice>().unwrap(), expected);
        let mut sent = Vec::new();
        parts.write_to(&mut sent).unwrap();
        let received = tenarc::parts::Parts::read_from(&sent[..]).unwrap();
        assert_eq!(received.load::<Twice>().unwrap(), expected);
        let mut out = OArchive::new(Vec::new()).unwrap();
        out.save_parts(&received).unwrap();
        out.save_segment(&archive.only().unwrap()).unwrap();
        let copies = out.finish().unwrap();
        let copies = Archive::new(&copies[..]).unwrap();
        copies.verify().unwrap();
        for segment in copies.segments() {
            assert_eq!(segment.unwrap().load::<Twice>().unwrap(), expected);
        }
        // One changed byte in any chunk of a received buffer is noticed.
        let (metadata, mut buffers) = received.into_inner();
        let last = buffers.iter().position(|buffer| buffer.len() == 3 * CHUNK + 5).unwrap();
        for at in [0, CHUNK, 3 * CHUNK + 4] {
            buffers[last][at] ^= 1;
            let pieces: Vec<&[u8]> = buffers.iter().map(|buffer| &buffer[..]).collect();
            assert!(tenarc::from_parts::<Twice, _>(&metadata, &pieces).is_err());
            buffers[last][at] ^= 1;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn parts_of_buffers_are_verified_and_right(from in 0usize..1_055_000, len in 0usize..200_000) {
        let bytes = archive();
        let archive = Archive::new(Counted::new(bytes.clone())).unwrap();
        let (start, all) = buffer(&archive);
        let len = len.min(all - from);
        let mut out = vec![0; len];
        archive.only().unwrap().read_buffer_part(0, from as u64, &mut out).unwrap();
        prop_assert_eq!(&out[..], &bytes[start + from..start + from + len]);
        // One column of the rows: bytes far apart.
        let column: Array1<f32> = archive.slice("", s![from / 1000.., 3]).unwrap();
        let expected = array();
        prop_assert_eq!(column, expected.slice(s![from / 1000.., 3]));
    }
}
