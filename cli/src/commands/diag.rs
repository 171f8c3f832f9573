//! `diag`: prints values in CBOR diagnostic notation.

use std::io::Write;

use serde::Serialize;

use crate::args::Diag;
use crate::document::Document;
use crate::failure::{Of, Result, Status};
use crate::output::Out;
use crate::text::escaped;

#[derive(Debug, Serialize)]
struct Row {
    segment: u64,
    name: Option<String>,
    diag: String,
}

pub fn run(args: &Diag, out: &mut Out) -> Result<Status> {
    let document = Document::open(&args.input, &args.read.reading())?;
    document.report_losses();
    let mut rows = Vec::new();
    for section in document.sections(args.choose.segment.as_deref())? {
        let section = section?;
        let diag = tenarc::diag::to_string(section.message().unwrap_or(section.bytes()))
            .of(&document.name)?;
        if args.json.json {
            let name = section.name().map(str::to_owned);
            rows.push(Row { segment: section.number, name, diag });
        } else {
            writeln!(out, "{}", escaped(&diag))?;
        }
    }
    if args.json.json {
        out.json_rows(&rows)?;
    }
    Ok(Status::Good)
}
