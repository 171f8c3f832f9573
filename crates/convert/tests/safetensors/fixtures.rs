//! Every file of the library, and every header made by hand, judged as its manifest says.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use tenarc::DType;
use tenarc::archive::SaveOptions;
use tenarc::io::SyncLevel;
use tenarc::tensor::TensorInfo;
use tenarc_convert::safetensors::{self, SafeTensors};
use tenarc_convert::{Format, Names, Options};

use crate::support::{code, quick, rewritten};

fn dir() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/safetensors")
}

#[derive(Deserialize)]
struct Manifest {
    files: BTreeMap<String, File>,
}

#[derive(Deserialize)]
struct File {
    bytes: usize,
    file_sha256: String,
    metadata: Option<BTreeMap<String, String>>,
    offset_order: Vec<String>,
    tensors: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    name: String,
    dtype: String,
    shape: Vec<usize>,
    nbytes: u64,
    sha256: String,
    first: Vec<serde_json::Value>,
}

fn manifest() -> BTreeMap<String, File> {
    let text = std::fs::read(dir().join("MANIFEST.json")).unwrap();
    let manifest: Manifest = serde_json::from_slice(&text).unwrap();
    assert_eq!(manifest.files.len(), 13);
    manifest.files
}

fn sum(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in Sha256::digest(bytes) {
        write!(text, "{byte:02x}").unwrap();
    }
    text
}

#[test]
fn every_file_of_the_library_is_read_as_the_manifest_says() {
    for (name, expected) in manifest() {
        let file = safetensors::open(dir().join(&name)).unwrap();
        let metadata: BTreeMap<_, _> =
            file.metadata().unwrap_or_default().iter().cloned().collect();
        assert_eq!(metadata, expected.metadata.unwrap_or_default(), "{name}");
        let order: Vec<&str> = file.tensors().iter().map(TensorInfo::path).collect();
        assert_eq!(order, expected.offset_order, "{name}");
        assert_eq!(expected.tensors.len(), order.len(), "{name}");
        for row in expected.tensors {
            let at = format!("{name}, {}", row.name);
            let info = file.info(&row.name).unwrap();
            assert_eq!(
                (code(info.dtype()), info.shape()),
                (&row.dtype[..], &row.shape[..]),
                "{at}"
            );
            let tensor = file.dyn_tensor(&row.name).unwrap();
            assert_eq!((tensor.dtype(), tensor.shape()), (info.dtype(), info.shape()), "{at}");
            assert_eq!(
                (info.byte_len(), sum(&tensor.le_bytes())),
                (row.nbytes, row.sha256),
                "{at}"
            );
        }
    }
}

#[test]
fn elements_have_the_values_that_numpy_printed() {
    let (mut compared, mut skipped) = (0, 0);
    for (name, expected) in manifest() {
        let file = safetensors::open(dir().join(&name)).unwrap();
        for row in expected.tensors {
            let tensor = file.dyn_tensor(&row.name).unwrap();
            let Ok(values) = tensor.cast::<f64>() else {
                skipped += 1;
                continue;
            };
            for (value, expected) in values.iter().zip(&row.first) {
                let same = match expected {
                    serde_json::Value::String(text) => {
                        let expected: f64 = text.parse().unwrap();
                        value.to_bits() == expected.to_bits() || value.is_nan() && expected.is_nan()
                    }
                    number => {
                        // The last digit of a double is not sure to be parsed.
                        let expected = number.as_f64().unwrap();
                        let signs = (expected.is_sign_negative(), value.is_sign_negative());
                        (expected - value).abs() <= value.abs() * 1e-15 && signs.0 == signs.1
                    }
                };
                assert!(same, "{name}, {}: {value} and {expected}", row.name);
                compared += 1;
            }
        }
    }
    // Left out are bools, complex numbers, FP8, and 64-bit integers that are no float.
    assert!(compared > 50 && skipped < 20, "{compared} {skipped}");
}

#[test]
fn every_file_of_the_library_is_written_again_byte_for_byte() {
    for (name, expected) in manifest() {
        let bytes = std::fs::read(dir().join(&name)).unwrap();
        assert_eq!((bytes.len(), sum(&bytes)), (expected.bytes, expected.file_sha256), "{name}");
        let file = SafeTensors::new(&bytes[..]).unwrap();
        assert!(rewritten(&file) == bytes, "{name}");
    }
}

#[test]
fn every_file_of_the_library_survives_an_archive_byte_for_byte() {
    let temp = tempfile::tempdir().unwrap();
    let (archive, back) = (temp.path().join("a.tenarc"), temp.path().join("b.safetensors"));
    let options = SaveOptions::default().with_sync(SyncLevel::Off);
    for name in manifest().into_keys() {
        let from = dir().join(&name);
        for names in [Names::Flat, Names::Nested] {
            Format::Safetensors
                .to_archive(
                    &from,
                    &archive,
                    &Options::default().with_names(names).with_save(options.clone()),
                )
                .unwrap();
            let losses = Format::Safetensors.from_archive(&archive, &back, &quick()).unwrap();
            assert!(losses.is_empty(), "{name}: {losses}");
            // A nested value says that it was one. Taken flat, the file is what it was.
            if names == Names::Nested && safetensors::open(&back).unwrap().is_nested() {
                Format::Safetensors
                    .to_archive(
                        &back,
                        &archive,
                        &Options::default().with_names(Names::Flat).with_save(options.clone()),
                    )
                    .unwrap();
                Format::Safetensors.from_archive(&archive, &back, &quick()).unwrap();
            }
            let same = std::fs::read(&from).unwrap() == std::fs::read(&back).unwrap();
            assert!(same, "{name}, {names:?}");
        }
    }
}

#[derive(Deserialize)]
struct Verdict {
    library: String,
    rule: String,
}

#[test]
fn every_header_made_by_hand_is_judged_as_the_manifest_rules() {
    let text = std::fs::read(dir().join("bad/MANIFEST.json")).unwrap();
    let verdicts: BTreeMap<String, Verdict> = serde_json::from_slice(&text).unwrap();
    assert_eq!(verdicts.len(), 22);
    for (name, Verdict { library, rule }) in verdicts {
        let path = dir().join("bad").join(&name);
        let found = safetensors::open(&path);
        // Two rules are of the text of the format alone; the library does not look.
        let rejects =
            rule.starts_with("reject") || rule.contains("MUST") || rule.contains("disallows");
        assert_eq!(found.is_err(), rejects, "{name}: {rule}");
        let reference =
            ::safetensors::SafeTensors::deserialize(&std::fs::read(&path).unwrap()).is_ok();
        assert_eq!(reference, library.starts_with("ok") || name == "f4_even.safetensors", "{name}");
        match found {
            Err(error) => assert!(error.to_string().contains(&name), "{error}"),
            Ok(file) => {
                for info in file.tensors() {
                    file.dyn_tensor(info.path()).unwrap();
                }
            }
        }
    }
}

#[test]
fn four_bit_elements_keep_their_bytes() {
    let file = safetensors::open(dir().join("bad/f4_even.safetensors")).unwrap();
    let tensor = file.dyn_tensor("a").unwrap();
    assert_eq!((tensor.dtype(), tensor.shape()), (&DType::F4, &[4][..]));
    assert_eq!(&*tensor.le_bytes(), [0, 1]);
}

#[test]
fn positions_are_those_of_the_elements() {
    let bytes = std::fs::read(dir().join("all_numpy_dtypes.safetensors")).unwrap();
    let file = SafeTensors::new(&bytes[..]).unwrap();
    for info in file.tensors() {
        let elements = file.dyn_tensor(info.path()).unwrap().le_bytes().into_owned();
        let at = usize::try_from(file.position(info.path()).unwrap()).unwrap();
        assert_eq!(bytes[at..at + elements.len()], elements, "{}", info.path());
    }
    assert!(file.position("no such").is_err());
}
