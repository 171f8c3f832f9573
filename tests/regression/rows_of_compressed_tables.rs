//! Each row that was read of a compressed table decompressed a chunk of every column again, which took 10 ms.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};
use tenarc::archive::{Compression, SaveOptions};
use tenarc::io::ReadAt;
use tenarc::{Archive, OArchive};

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct Row {
    id: u64,
    name: String,
    score: Option<f32>,
}

fn rows() -> Vec<Row> {
    let name = |id: u64| format!("name {}", id % 10);
    let score = |id: u64| id.is_multiple_of(3).then_some(0.5);
    (0..150_000).map(|id| Row { id, name: name(id), score: score(id) }).collect()
}

fn saved(rows: &[Row]) -> Vec<u8> {
    let options = SaveOptions::default().with_compression(Compression::lz4());
    let mut out = OArchive::with_options(Vec::new(), options.with_chunk_len(256 << 10)).unwrap();
    out.save_as("rows", rows).unwrap();
    out.finish().unwrap()
}

/// Counts the reads.
struct Counted(Vec<u8>, AtomicUsize);

impl Counted {
    fn reads(&self) -> usize {
        self.1.load(Ordering::Relaxed)
    }
}

impl ReadAt for Counted {
    fn size(&self) -> std::io::Result<u64> {
        self.0[..].size()
    }

    fn read_at(&self, out: &mut [u8], offset: u64) -> std::io::Result<usize> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0[..].read_at(out, offset)
    }
}

#[test]
fn a_chunk_is_decompressed_once() {
    let all = rows();
    let archive = Archive::new(Counted(saved(&all), AtomicUsize::new(0))).unwrap();
    let segment = archive.only().unwrap();
    let chunks = |(number, (_, len)): (usize, &(u64, u64))| match segment.compressed(number) {
        Some(_) => len.div_ceil(segment.chunk_len()),
        None => panic!("buffer {number} is not compressed"),
    };
    let chunks: u64 = segment.buffers().iter().enumerate().map(chunks).sum();
    let table = archive.table("rows").unwrap();

    let before = archive.source().reads();
    // It has a score, so a chunk of each column is read.
    assert_eq!(table.row::<Row>(99).unwrap(), all[99]);
    let once = archive.source().reads() - before;
    for row in [101, 100, 900, 5] {
        assert_eq!(table.row::<Row>(row).unwrap(), all[usize::try_from(row).unwrap()]);
    }
    assert_eq!(archive.source().reads(), before + once, "the chunks were read again");

    // From the last row to the first one, with all chunks of the three groups.
    let wanted: Vec<u64> = (0..all.len() as u64).rev().step_by(501).collect();
    let taken: Vec<Row> = table.take(&wanted).unwrap();
    assert!(taken.iter().zip(&wanted).all(|(row, id)| *row == all[usize::try_from(*id).unwrap()]));
    let reads = archive.source().reads() - before;
    assert!(reads as u64 <= chunks + 1, "{reads} reads for {chunks} chunks and their checksums");
}

/// As the whole chunk is read anyway.
#[test]
fn chunks_are_verified() {
    let all = rows();
    let mut bytes = saved(&all);
    let place = Archive::new(&bytes[..]).unwrap().only().unwrap().buffers()[0].0;
    bytes[usize::try_from(place).unwrap() + 50] ^= 1;
    let archive = Archive::new(&bytes[..]).unwrap();
    let table = archive.table("rows").unwrap();
    for _ in 0..2 {
        let error = table.row::<Row>(100).unwrap_err();
        assert_eq!(error.category(), tenarc::error::Category::Damaged);
        assert!(error.to_string().contains("checksum of chunk 0"), "{error}");
    }
}
