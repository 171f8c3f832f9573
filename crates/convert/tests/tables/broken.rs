//! Files that are cut or damaged give errors, in little memory.

use std::fs;

use tenarc::{OArchive, Result};
use tenarc_convert::parquet::ParquetFile;
use tenarc_test_support::alloc::peak_of;

use crate::other_writers::fixtures;

#[global_allocator]
static ALLOCATOR: tenarc_test_support::alloc::Counting = tenarc_test_support::alloc::Counting;

/// No file here has more than 10 KiB.
const MOST: usize = 64 << 20;

/// Reads all row groups and saves them. Whether that works.
fn is_converted(name: &str, bytes: Vec<u8>) -> bool {
    let convert = || -> Result<()> {
        let file = ParquetFile::new(bytes)?;
        let mut out = OArchive::new(std::io::sink())?;
        for group in 0..file.row_groups() {
            out.save(&file.rows(group)?)?;
        }
        Ok(())
    };
    let (result, peak) = peak_of(convert);
    assert!(peak < MOST, "{name}: {peak} bytes");
    result.is_ok()
}

fn files() -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(fixtures()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "parquet") {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            files.push((name, fs::read(path).unwrap()));
        }
    }
    files.sort();
    assert!(files.len() > 15);
    files
}

#[test]
fn files_that_are_cut_are_refused() {
    for (name, bytes) in files() {
        for len in (0..bytes.len()).step_by(11) {
            assert!(!is_converted(&name, bytes[..len].to_vec()), "{name}, {len} bytes");
        }
    }
}

#[test]
fn a_changed_byte_is_an_error_or_another_value() {
    let mut refused = 0;
    for (name, bytes) in files() {
        for at in (0..bytes.len()).step_by(5) {
            let mut bytes = bytes.clone();
            bytes[at] ^= [1, 0x80, 0xff][at / 5 % 3];
            refused += usize::from(!is_converted(&name, bytes));
        }
    }
    assert!(refused > 1000, "{refused}");
}

#[test]
fn the_greatest_numbers_are_errors() {
    let mut refused = 0;
    // The greatest `i32`, and one that is positive where the sign is in the lowest bit.
    for number in [[0xfe, 0xff, 0xff, 0xff, 0x0f], [0xff, 0xff, 0xff, 0xff, 0x07]] {
        for (name, bytes) in files() {
            // Its texts are differences, for which the library allocates what is claimed.
            let step = if name == "encodings.parquet" { 1 } else { 7 };
            for at in (0..bytes.len() - number.len()).step_by(step) {
                let mut bytes = bytes.clone();
                bytes[at..at + number.len()].copy_from_slice(&number);
                refused += usize::from(!is_converted(&name, bytes));
            }
        }
    }
    assert!(refused > 1000, "{refused}");
}

#[test]
fn what_is_no_parquet_is_refused() {
    for bytes in [
        &b""[..],
        b"PAR1",
        b"PAR1PAR1",
        b"PAR1\0\0\0\0PAR1",
        &[0; 1000],
        b"PAR1\xff\xff\xff\x7fPAR1",
    ] {
        assert!(!is_converted("nothing", bytes.to_vec()));
    }
}
