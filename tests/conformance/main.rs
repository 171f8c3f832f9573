//! The files in `conformance/` are read as the JSON beside each of them says.

mod check;
mod values;

use std::fs;
use std::path::PathBuf;

use serde_json::Value as Json;

/// A file and its JSON.
struct Case {
    name: String,
    bytes: Vec<u8>,
    said: Json,
}

/// All files, in the order of their names.
fn cases() -> Vec<Case> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("conformance/files");
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending != "json"));
    paths.sort();
    let case = |path: PathBuf| Case {
        name: path.file_name().unwrap().to_str().unwrap().to_owned(),
        bytes: fs::read(&path).unwrap(),
        said: serde_json::from_slice(&fs::read(path.with_extension("json")).unwrap()).unwrap(),
    };
    paths.into_iter().map(case).collect()
}

/// Compares all files of one kind.
fn compare(kind: &str, check: fn(&Case) -> Result<(), String>) {
    let cases = cases();
    let cases = cases.iter().filter(|case| case.said["kind"] == kind);
    let faults: Vec<String> = cases
        .clone()
        .filter_map(|case| check(case).err().map(|fault| format!("{}: {fault}", case.name)))
        .collect();
    assert!(cases.count() > 0, "there are no files of the kind {kind}");
    assert!(faults.is_empty(), "{} faults\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn messages() {
    compare("message", check::message);
}

#[test]
fn sequences() {
    compare("sequence", check::sequence);
}

#[test]
fn archives() {
    compare("archive", check::archive);
}

#[test]
fn parts() {
    compare("parts", check::parts);
}
