//! How much memory conversions take: a row group at a time.

use std::fs;

use serde::Serialize;
use tenarc::OArchive;
use tenarc::archive::SaveOptions;
use tenarc_convert::parquet::{self, Compression, Options};
use tenarc_test_support::alloc::peak_of;

const MIB: usize = 1 << 20;

#[derive(Serialize)]
struct Row {
    id: u64,
    noise: [u64; 7],
}

/// A MiB of rows that no codec makes smaller.
fn rows(group: u64) -> Vec<Row> {
    let noise = |seed: u64| {
        let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        std::array::from_fn(|_| {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            x
        })
    };
    (0..16_384).map(|n| Row { id: n, noise: noise(group << 32 | n) }).collect()
}

#[test]
fn one_row_group_at_a_time_is_in_memory() {
    let dir = tempfile::tempdir().unwrap();
    let [from, file, back] = ["a", "b", "c"].map(|name| dir.path().join(name));
    let mut out = OArchive::create(&from, SaveOptions::default()).unwrap();
    for group in 0..16 {
        out.save_as("rows", &rows(group)).unwrap();
    }
    out.finish().unwrap();
    let options = Options::default().with_page_compression(Compression::None);
    let (result, peak) = peak_of(|| parquet::from_archive(&from, &file, &options));
    result.unwrap();
    assert!(fs::metadata(&file).unwrap().len() > 14 * MIB as u64);
    assert!(peak < 10 * MIB, "{peak} bytes to a file");
    let (result, peak) = peak_of(|| parquet::to_archive(&file, &back, &Options::default()));
    result.unwrap();
    assert!(peak < 10 * MIB, "{peak} bytes to an archive");
    let count = |path| tenarc::open(path).unwrap().table("rows").unwrap().len();
    assert_eq!((count(&from), count(&back)), (16 * 16_384, 16 * 16_384));
}
