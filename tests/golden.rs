//! Files that every later version must read: see `golden/README.md`.

mod common;
mod samples;

use std::fmt::Debug;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tenarc::{RawValue, Value};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn bytes_of(name: &str) -> Vec<u8> {
    let path = directory().join(format!("{name}.cbor"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn check<T>(name: &str, expected: &T, _: bool)
where
    T: Serialize + DeserializeOwned + PartialEq + Debug,
{
    let bytes = bytes_of(name);
    let found: T = common::decode(&bytes);
    assert_eq!(&found, expected);
    // Tells zeros of both signs apart.
    assert_eq!(tenarc::to_vec(&found).unwrap(), tenarc::to_vec(expected).unwrap());
    let value: Value = tenarc::from_slice(&bytes).unwrap();
    assert_eq!(&T::deserialize(&value).unwrap(), expected, "through a value");
    assert_eq!(RawValue::from_bytes(&bytes).unwrap().as_bytes(), bytes);
}

samples::test_every_sample!(check);

/// FNV-1a, so that a file that was written again does not pass for the one it was.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[test]
fn no_file_is_missing_or_changed() {
    let sums = include_str!("golden/sums.txt");
    let mut listed: Vec<&str> = Vec::new();
    for line in sums.lines() {
        let (name, sum) = line.split_once(' ').unwrap();
        assert_eq!(format!("{:016x}", hash(&bytes_of(name))), sum, "{name}.cbor was changed");
        listed.push(name);
    }
    let mut expected = SAMPLES.to_vec();
    expected.sort_unstable();
    assert_eq!(listed, expected, "a sum for every sample");
    let mut found: Vec<String> = std::fs::read_dir(directory())
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
        .filter_map(|name| Some(name.strip_suffix(".cbor")?.to_owned()))
        .collect();
    found.sort();
    assert_eq!(found, expected, "a sample for every file");
}
