//! What the library says of files: see `conformance/README.md`.

use std::error::Error;
use std::path::Path;
use std::{fs, io};

use serde_json::{Value as Json, json};
use tenarc::archive::Archive;
use tenarc::de::Deserializer;
use tenarc::error::{self, Category};
use tenarc::parts::Parts;
use tenarc::{Value, from_slice};

/// Reads paths, one a line, and writes a line of JSON for each.
pub fn all() -> Result<(), Box<dyn Error>> {
    for path in io::stdin().lines() {
        let path = path?;
        let bytes = fs::read(&path)?;
        let mut said = match Path::new(&path).extension().and_then(|ending| ending.to_str()) {
            Some("tenarc") => of_archive(&bytes),
            Some("seq") => message(
                &Deserializer::from_slice(&bytes)
                    .into_iter::<Value>()
                    .collect::<Result<Vec<_>, _>>(),
            ),
            Some("parts") => json!({"read": parts(&bytes)}),
            _ => message(&from_slice::<Value>(&bytes)),
        };
        said["file"] = json!(path);
        println!("{said}");
    }
    Ok(())
}

fn of_archive(bytes: &[u8]) -> Json {
    let archive = match Archive::new(bytes) {
        Ok(archive) => archive,
        Err(error) if error.category() == Category::Torn => return json!({"open": "torn"}),
        Err(error) => return json!({"open": class(&error)}),
    };
    let open = if archive.unfinished_bytes() > 0 { "unfinished" } else { "ok" };
    let read = archive.segments().try_for_each(|segment| segment?.load::<Value>().map(drop));
    json!({"open": open, "read": verdict(&read), "verify": verdict(&archive.verify())})
}

fn message<T>(read: &error::Result<T>) -> Json {
    json!({"read": if read.is_ok() { "ok" } else { "refused" }})
}

fn parts(bytes: &[u8]) -> &'static str {
    let mut rest = bytes;
    let read = Parts::read_from(&mut rest).and_then(|parts| parts.load::<Value>());
    match read {
        Ok(_) if rest.is_empty() => "ok",
        Err(error) if class(&error) == "unsupported" => "unsupported",
        _ => "refused",
    }
}

fn verdict<T>(result: &error::Result<T>) -> &'static str {
    result.as_ref().err().map_or("ok", class)
}

/// That a part of what was committed seems to be cut off means that it is damaged.
fn class(error: &error::Error) -> &'static str {
    match error.category() {
        Category::Version | Category::Unsupported => "unsupported",
        _ => "damaged",
    }
}
