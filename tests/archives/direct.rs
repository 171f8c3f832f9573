//! [`DirectFile`] reads the same bytes as a file, past the page cache.

use std::num::NonZeroUsize;

use tempfile::TempDir;
use tenarc::de::DecodeOptions;
use tenarc::error::Category;
use tenarc::io::{DirectFile, ReadAt, SyncLevel};
use tenarc::{Archive, Tensor};

use super::support::{quick, to_bytes, weights};

const KIB: usize = 1 << 10;

/// A directory of the build, because a directory for temporary files may be in memory.
fn dir() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

#[test]
fn the_same_bytes_are_read_at_every_position() {
    let dir = dir();
    let path = dir.path().join("bytes");
    let bytes: Vec<u8> = (0..5000 * KIB + 321).map(|at| (at ^ (at >> 9)) as u8).collect();
    std::fs::write(&path, &bytes).unwrap();
    let file = DirectFile::open(&path).unwrap();
    assert_eq!(file.size().unwrap(), bytes.len() as u64);
    let ends = [0, 1, 511, 512, 4095, 4096, 4097, 1024 * KIB - 1, 2048 * KIB, 2048 * KIB + 1];
    let starts = ends.into_iter().chain(ends.into_iter().map(|end| bytes.len() - end));
    let lens = [0, 1, 4096, 1024 * KIB - 1, 1024 * KIB, 2048 * KIB, 2048 * KIB + 1, bytes.len()];
    for start in starts.chain([bytes.len() + 1, bytes.len() + 5000]) {
        for len in lens {
            let mut out = vec![0; len];
            let read = file.read_at(&mut out, start as u64).unwrap();
            let rest = bytes.get(start..).unwrap_or_default();
            assert_eq!(read == 0, len == 0 || rest.is_empty(), "{len} bytes at {start}");
            assert_eq!(out[..read], rest[..read], "{len} bytes at {start}");
        }
    }
    for offset in [u64::MAX, u64::MAX - 4096, i64::MAX as u64] {
        let expected = ReadAt::read_at(&std::fs::File::open(&path).unwrap(), &mut [0; 9], offset);
        let found = file.read_at(&mut vec![0; 1024 * KIB], offset);
        assert_eq!(found.is_ok(), expected.is_ok(), "at {offset}: {found:?}");
    }
}

type Saved = (Tensor<Vec<f32>>, Tensor<Vec<f32>>, Tensor<Vec<f32>>, String);

#[test]
fn tensors_are_loaded_and_verified() {
    let dir = dir();
    let path = dir.path().join("saved.tenarc");
    // Shorter than a piece, and several pieces that do not end where blocks end.
    let value: Saved =
        (weights(3, 1), weights(400_000, 2), weights(3_000_001, 3), "text".to_owned());
    let mut ways = vec![quick(), quick().with_inline_below(0)];
    if cfg!(feature = "compression") {
        ways.push(quick().with_compression(tenarc::archive::Compression::lz4()));
    }
    for options in ways {
        let mut bytes = to_bytes(&value, options);
        std::fs::write(&path, &bytes).unwrap();
        for threads in [1, 4] {
            let options =
                DecodeOptions::default().with_threads(NonZeroUsize::new(threads).unwrap());
            let archive = Archive::new(DirectFile::open(&path).unwrap()).unwrap();
            let archive = archive.with_options(options);
            assert_eq!(archive.load::<Saved>().unwrap(), value);
            archive.verify().unwrap();
            let last: Vec<f32> = archive.tensor("2").unwrap();
            assert_eq!(last, value.2.0);
        }
        let middle = bytes.len() / 2;
        bytes[middle] ^= 4;
        std::fs::write(&path, &bytes).unwrap();
        let archive = Archive::new(DirectFile::open(&path).unwrap()).unwrap();
        for error in [archive.load::<Saved>().unwrap_err(), archive.verify().unwrap_err()] {
            assert_eq!(error.category(), Category::Damaged, "{error}");
        }
    }
}

#[test]
fn other_things_than_files_are_refused() {
    let dir = dir();
    let error = DirectFile::open(dir.path()).unwrap_err().to_string();
    assert!(error.contains("it is a directory"), "{error}");
    let error = DirectFile::open(dir.path().join("missing")).unwrap_err().to_string();
    assert!(error.contains("cannot open") && error.contains("missing"), "{error}");
}

/// The number of bytes that this process has read from drives.
#[cfg(target_os = "linux")]
fn read_from_drives() -> Option<u64> {
    let counts = std::fs::read_to_string("/proc/self/io").ok()?;
    counts.lines().find_map(|line| line.strip_prefix("read_bytes: "))?.parse().ok()
}

#[test]
#[cfg(target_os = "linux")]
fn large_tensors_come_from_the_drive() {
    let dir = dir();
    let path = dir.path().join("large.tenarc");
    let value = weights(4_000_000, 1);
    tenarc::archive::save_with(&path, &value, quick().with_sync(SyncLevel::Full)).unwrap();
    let file = DirectFile::open(&path).unwrap();
    let is_direct = file.is_direct();
    let archive = Archive::new(file).unwrap();
    let before = read_from_drives();
    let loaded: Tensor<Vec<f32>> = archive.load().unwrap();
    assert_eq!(loaded, value);
    let (Some(before), Some(after)) = (before, read_from_drives()) else { return };
    // The file was written just now, so it is in the page cache.
    if is_direct && archive.source().is_direct() {
        assert!(after - before >= 16_000_000, "{} bytes", after - before);
    } else {
        eprintln!("the file system does not support direct reads");
    }
}
