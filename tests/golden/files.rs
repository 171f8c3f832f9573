//! Files that every version must read: see `README.md` in this folder.

use std::fmt::Debug;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tenarc::value::RawValue;
use tenarc::{Archive, IArchive, Value};
use tenarc_test_support::decode;

use crate::samples;

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

pub fn file(name: &str) -> Vec<u8> {
    let path = directory().join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn bytes_of(name: &str) -> Vec<u8> {
    file(&format!("{name}.cbor"))
}

/// The archives, and their hashes.
const ARCHIVES: [(&str, u64); 5] = [
    ("samples.tenarc", 0x2ef2_1377_17bf_36ff),
    ("buffers.tenarc", 0x4470_ee9a_c3ce_df09),
    ("appended.tenarc", 0xb664_b756_2953_be44),
    ("columns.tenarc", 0x517d_568f_8c19_2b47),
    ("compressed.tenarc", 0x914b_c2bb_4625_6b73),
];

fn check<T>(name: &str, expected: &T, _: bool)
where
    T: Serialize + DeserializeOwned + PartialEq + Debug,
{
    let bytes = bytes_of(name);
    let found: T = decode(&bytes);
    assert_eq!(&found, expected);
    // Tells zeros of both signs apart.
    assert_eq!(tenarc::to_vec(&found).unwrap(), tenarc::to_vec(expected).unwrap());
    let value: Value = tenarc::from_slice(&bytes).unwrap();
    assert_eq!(&T::deserialize(&value).unwrap(), expected, "through a value");
    assert_eq!(RawValue::from_bytes(&bytes).unwrap().as_bytes(), bytes);

    for archive in ["samples.tenarc", "buffers.tenarc"] {
        let bytes = file(archive);
        let opened = Archive::new(&bytes[..]).unwrap();
        let found: T = opened.named(name).unwrap().load().unwrap();
        assert_eq!(&found, expected, "{archive}");
        let found: T = IArchive::new(&bytes[..]).unwrap().load_as(name).unwrap();
        assert_eq!(&found, expected, "{archive} as a stream");
    }
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
    let sums = include_str!("sums.txt");
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

#[test]
fn no_archive_is_changed_or_damaged() {
    for (name, sum) in ARCHIVES {
        let bytes = file(name);
        assert_eq!(format!("{:016x}", hash(&bytes)), format!("{sum:016x}"), "{name} was changed");
        Archive::new(&bytes[..]).unwrap().verify().unwrap();
    }
    let mut found: Vec<String> = std::fs::read_dir(directory())
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
        .filter(|name| name.ends_with(".tenarc"))
        .collect();
    found.sort();
    let mut expected = ARCHIVES.map(|(name, _)| name);
    expected.sort_unstable();
    assert_eq!(found, expected);
}

/// Seventy values appended in three sessions, the second without checksums: a block of the
/// directory, and three end marks.
#[test]
fn appended() {
    let expected = |number: u16| (number, vec![f32::from(number); 600]);
    let bytes = file("appended.tenarc");
    let archive = Archive::new(&bytes[..]).unwrap();
    assert_eq!(archive.len(), 70);
    let mut input = IArchive::new(&bytes[..]).unwrap();
    for number in 0..70u16 {
        let found: (u16, Vec<f32>) = archive.segment(number.into()).unwrap().load().unwrap();
        assert_eq!(found, expected(number));
        assert_eq!(input.load::<(u16, Vec<f32>)>().unwrap(), expected(number));
        let name = (number % 2 == 0).then(|| format!("number {number}"));
        assert_eq!(archive.segment(number.into()).unwrap().name(), name.as_deref());
    }
    assert!(input.is_at_end().unwrap());
}
