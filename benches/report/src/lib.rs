//! Writes the charts and tables of the documents from the committed [`results`]. The benchmarks measure and save
//! these.

mod build;
mod charts;
mod markers;
pub mod results;
mod svg;
mod tables;
pub mod units;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use build::Builds;
use results::Results;

/// Where the committed results are, from the root of the repository.
const RESULTS: &str = "docs/benchmarks/results.json";

/// Other profiles, and the results of builds with them. Only targets are taken from them. A profile without a file has no
/// column in the table of targets.
const PROFILES: [(&str, &str); 2] = [
    ("thin-lto", "docs/benchmarks/results-thin-lto.json"),
    ("fat-lto", "docs/benchmarks/results-fat-lto.json"),
];

/// What a user's build pays.
const BUILDS: &str = "docs/benchmarks/build.json";

/// The documents with tables. Everything outside the tables is written by hand.
const DOCUMENTS: [&str; 4] =
    ["docs/benchmarks.md", "docs/measurements.md", "docs/targets.md", "docs/compression.md"];

/// Writes the files, or compares them if the only argument is `--check`.
pub fn main(arguments: impl Iterator<Item = String>) -> ExitCode {
    let arguments: Vec<String> = arguments.collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments[..] {
        [] => write(&root()),
        ["--check"] => check(&root()),
        _ => Err("the only argument is --check".to_string()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Loads results that must be those of a build with this profile.
fn load(root: &Path, profile: &str, path: &str) -> Result<Results, String> {
    let results = Results::load(&root.join(path))?;
    if results.profile == profile {
        return Ok(results);
    }
    Err(format!("{path} has results of the profile {}, not of {profile}", results.profile))
}

/// Every generated file: its path from the root, and its content.
fn files(root: &Path) -> Result<Vec<(String, String)>, String> {
    let results = load(root, "release", RESULTS)?;
    let mut others = Vec::new();
    for (profile, path) in PROFILES {
        if !root.join(path).exists() {
            continue;
        }
        let other = load(root, profile, path)?;
        if (&other.machine, &other.crates) != (&results.machine, &results.crates) {
            return Err(format!("{path} and {RESULTS} are of different machines or crates"));
        }
        others.push(other);
    }
    let builds = Builds::load(&root.join(BUILDS))?;
    let mut files = charts::all(&results)?;
    for document in DOCUMENTS {
        let text = read(&root.join(document))?;
        let text = markers::fill(&text, |name| tables::table(&results, &others, &builds, name));
        files.push((document.to_string(), text.map_err(|error| format!("{document}: {error}"))?));
    }
    Ok(files)
}

fn write(root: &Path) -> Result<(), String> {
    for (path, text) in files(root)? {
        fs::write(root.join(&path), text).map_err(|error| format!("{path}: {error}"))?;
        println!("{path}");
    }
    Ok(())
}

/// Fails if a file differs from its generated content.
fn check(root: &Path) -> Result<(), String> {
    let mut stale = Vec::new();
    for (path, text) in files(root)? {
        // A missing chart differs too.
        if fs::read_to_string(root.join(&path)).ok() != Some(text) {
            stale.push(path);
        }
    }
    if stale.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{} not what {RESULTS} says; run `cargo run -p tenarc-benches-report`",
        match &stale[..] {
            [one] => format!("{one} is"),
            several => format!("{} are", several.join(", ")),
        }
    ))
}

#[cfg(test)]
mod tests {
    #[test]
    fn committed_documents_show_the_committed_results() {
        super::check(&super::root()).unwrap();
    }
}
