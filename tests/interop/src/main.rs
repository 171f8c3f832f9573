//! Exchanges files with other people's CBOR libraries.
//!
//! `write DIR` writes messages, and a manifest that says what each holds, for Python and Node to
//! read. `check DIR` reads what those wrote and compares it with their manifests. `peers DIR` has
//! other Rust crates read what `write` wrote, and reads what they write. `save DIR` and `load DIR`
//! are `write` and `check` for archives, `split DIR` and `join DIR` for parts, `npy-write DIR` and
//! `npy-read DIR` for npy and npz files, `arrow-write DIR` and `arrow-read DIR` for Arrow's, the same of `parquet-` for Parquet's, `records-write DIR` and
//! `records-check DIR` for sequences as columns; `ten DIR` copies files
//! of tenbin, `packed DIR` those of MessagePack, and `recover DIR` recovers torn archives. `verdict` reads paths and says of each file whether it is good. Each of the others names every mismatch,
//! closes with a line of counts and fails where there was one.

mod archives;
mod arrays;
mod check;
mod columns;
mod data;
mod got;
mod packed;
mod parts;
mod peers;
mod plain;
mod records;
mod tables;
mod ten;
mod tensors;
mod torn;
mod verdict;

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::{env, fs, io};

use serde_json::{Value as Json, json};

use data::Data;

/// A message and what it holds.
struct Case {
    name: String,
    bytes: Vec<u8>,
    data: Data,
}

/// A file of a manifest.
struct Entry {
    file: String,
    bytes: Vec<u8>,
    data: Data,
    /// Whether the message is a [`tensors::Record`].
    is_record: bool,
}

/// Counts checks and names those that failed.
#[derive(Default)]
struct Tally {
    passed: usize,
    failed: usize,
}

impl Tally {
    fn note(&mut self, what: &str, result: Result<(), String>) {
        match result {
            Ok(()) => self.passed += 1,
            Err(error) => {
                self.failed += 1;
                println!("FAILED {what}: {error}");
            }
        }
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments[..] {
        ["write", dir] => write(Path::new(dir)).map(|()| Tally::default()),
        ["check", dir] => read(Path::new(dir)).map(|entries| check::check(&entries)),
        ["peers", dir] => read(Path::new(dir)).map(|entries| peers::check(&entries)),
        ["save", dir] => archives::write(Path::new(dir)).map(|()| Tally::default()),
        ["load", dir] => archives::check(Path::new(dir)),
        ["split", dir] => parts::write(Path::new(dir)).map(|()| Tally::default()),
        ["join", dir] => parts::check(Path::new(dir)),
        ["npy-write", dir] => arrays::write(Path::new(dir)).map(|()| Tally::default()),
        ["npy-read", dir] => arrays::check(Path::new(dir)),
        ["arrow-write", dir] => columns::write(Path::new(dir)).map(|()| Tally::default()),
        ["arrow-read", dir] => columns::check(Path::new(dir)),
        ["parquet-write", dir] => tables::write(Path::new(dir)).map(|()| Tally::default()),
        ["parquet-read", dir] => tables::check(Path::new(dir)),
        ["records-write", dir] => records::write(Path::new(dir)).map(|()| Tally::default()),
        ["records-check", dir] => records::check(Path::new(dir)),
        ["ten", dir] => ten::exchange(Path::new(dir)),
        ["recover", dir] => torn::recover_all(Path::new(dir)),
        ["packed", dir] => packed::exchange(Path::new(dir)),
        ["verdict"] => {
            return match verdict::all() {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => {
                    eprintln!("error: {error}");
                    ExitCode::from(2)
                }
            };
        }
        _ => {
            let modes = "write|check|peers|save|load|split|join|npy-write|npy-read|arrow-write|arrow-read|parquet-write|parquet-read|records-write|records-check|ten|packed|recover";
            Err(format!("usage: tenarc-interop {modes} DIR").into())
        }
    };
    match result {
        Ok(tally) => {
            // Read by the script that adds up all steps.
            println!("passed={} failed={}", tally.passed, tally.failed);
            ExitCode::from(u8::from(tally.failed > 0))
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn write(dir: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(dir)?;
    let mut cases = plain::cases()?;
    cases.extend(tensors::cases()?);
    let mut files = Vec::new();
    for Case { name, bytes, data } in &cases {
        let file = format!("{name}.cbor");
        fs::write(dir.join(&file), bytes)?;
        files.push(json!({"file": file, "plain": data.is_plain(), "value": data.to_json()}));
    }
    let manifest = json!({"writer": "tenarc", "files": files});
    fs::write(dir.join("manifest.json"), serde_json::to_vec(&manifest)?)?;
    Ok(())
}

fn read(dir: &Path) -> Result<Vec<Entry>, Box<dyn Error>> {
    let manifest: Json = serde_json::from_slice(&fs::read(dir.join("manifest.json"))?)?;
    let files = manifest["files"].as_array().ok_or("a manifest without files")?;
    let entry = |json: &Json| -> Result<Entry, Box<dyn Error>> {
        let file = json["file"].as_str().ok_or("a file without a name")?;
        let data = Data::from_json(&json["value"])
            .ok_or_else(|| format!("{file}: the manifest's description cannot be read"))?;
        let is_record = json["as"] == "record";
        Ok(Entry { file: file.into(), bytes: fs::read(dir.join(file))?, data, is_record })
    };
    files.iter().map(entry).collect()
}

/// Has every file of this extension copied to `dir/again`.
fn copies(
    dir: &Path,
    extension: &str,
    copy: impl Fn(&Path, &Path) -> Result<(), String>,
) -> Result<Tally, Box<dyn Error>> {
    let again = dir.join("again");
    fs::create_dir_all(&again)?;
    let mut tally = Tally::default();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.extension().is_none_or(|found| found != extension) {
            continue;
        }
        let name = path.file_name().ok_or("a file without a name")?.to_string_lossy();
        tally.note(&name, copy(&path, &again.join(&*name)));
    }
    Ok(tally)
}

/// A reader that gives one byte at a time.
struct OneByte<'a>(&'a [u8]);

impl io::Read for OneByte<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let len = out.len().min(1);
        io::Read::read(&mut self.0, &mut out[..len])
    }
}
