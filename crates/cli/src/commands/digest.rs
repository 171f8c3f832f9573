//! `digest`: prints the digests of archives. A digest identifies the content of an archive.

use std::io::Write;

use serde::Serialize;

use crate::args::Digest;
use crate::document::{Document, Reading};
use crate::failure::{Failure, Of, Result, Status};
use crate::formats::Format;
use crate::input::shown;
use crate::output::Out;
use crate::text::escaped;

/// The digest of one file.
#[derive(Debug, Serialize)]
struct Report {
    file: String,
    digest: String,
}

pub fn run(args: &Digest, out: &mut Out) -> Result<Status> {
    let mut reports = Vec::new();
    for input in &args.inputs {
        let file = shown(input);
        let document = Document::open(input, &Reading::default())?;
        let archive = document.archive().filter(|_| document.format == Format::Archive);
        let Some(archive) = archive else {
            return Err(Failure::new("only archives have digests").of(&file));
        };
        let digest = archive.digest().of(&file)?.to_string();
        if args.json.json {
            reports.push(Report { file, digest });
        } else {
            writeln!(out, "{digest}  {}", escaped(&file))?;
        }
    }
    if args.json.json {
        out.json_rows(&reports)?;
    }
    Ok(Status::Good)
}
