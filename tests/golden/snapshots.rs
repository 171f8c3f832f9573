//! The bytes of representative structs, in hex and in diagnostic notation. If a change makes tenarc
//! write other bytes, a reviewer sees the difference.

use std::fmt::{Debug, Write as _};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tenarc::ser::EncodeOptions;

use crate::samples;

/// 16 bytes a line, and the notation behind them.
fn shown(bytes: &[u8]) -> String {
    let mut text = format!("{} bytes\n", bytes.len());
    for line in bytes.chunks(16) {
        let hex: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(text, "{}", hex.join(" ")).unwrap();
    }
    text.push('\n');
    text.push_str(&tenarc::diag::to_string(bytes).unwrap());
    text
}

fn check<T>(name: &str, value: &T, typed_arrays: bool)
where
    T: Serialize + DeserializeOwned + PartialEq + Debug,
{
    let options = EncodeOptions::default().with_typed_arrays(typed_arrays);
    let bytes = tenarc::ser::to_vec_with(value, options).unwrap();
    assert_eq!(&tenarc::from_slice::<T>(&bytes).unwrap(), value, "comes back");
    insta::assert_snapshot!(name, shown(&bytes));
}

samples::test_every_sample!(check);

#[test]
fn every_snapshot_is_that_of_a_sample() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/snapshots");
    let mut found: Vec<String> = std::fs::read_dir(directory)
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
        .filter_map(|name| {
            Some(name.strip_suffix(".snap")?.strip_prefix("golden__snapshots__")?.to_owned())
        })
        .collect();
    found.sort();
    let mut expected = SAMPLES.to_vec();
    expected.sort_unstable();
    assert_eq!(found, expected);
}
