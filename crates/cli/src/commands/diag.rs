//! `diag`: prints values in CBOR diagnostic notation.

use std::fmt::Write as _;
use std::io::Write;

use serde::Serialize;

use crate::args::Diag;
use crate::document::Document;
use crate::failure::{Of, Result, Status};
use crate::output::{JsonLines, Out};
use crate::text::escaped;

#[derive(Debug, Serialize)]
struct Row {
    segment: u64,
    name: Option<String>,
    diag: String,
}

/// Byte strings with more hexadecimal digits than this are shortened.
const LONG: usize = 128;
/// The number of digits that are kept at each end.
const KEPT: usize = 32;

/// Shortens long byte strings in the notation, and adds their length in a comment.
fn shortened(diag: &str) -> String {
    let mut short = String::new();
    let mut rest = diag;
    while let Some(at) = rest.find(['"', '\'']) {
        let (before, quoted) = rest.split_at(at);
        short.push_str(before);
        let end = end(quoted);
        let (string, after) = quoted.split_at(end);
        let hex = string.trim_matches('\'');
        if before.ends_with('h') && hex.len() > LONG && hex.is_ascii() {
            let (start, end) = (hex.get(..KEPT), hex.get(hex.len() - KEPT..));
            let (start, end) = (start.unwrap_or_default(), end.unwrap_or_default());
            // Writing to a string cannot fail.
            let _ = write!(short, "'{start}…{end}' /{} bytes/", hex.len() / 2);
        } else {
            short.push_str(string);
        }
        rest = after;
    }
    short + rest
}

/// Returns the end of the string that starts with the first character, its quotation mark.
fn end(quoted: &str) -> usize {
    let mut chars = quoted.char_indices();
    let mark = chars.next().map(|(_, mark)| mark);
    while let Some((at, char)) = chars.next() {
        if char == '\\' {
            chars.next();
        } else if Some(char) == mark {
            return at + 1;
        }
    }
    quoted.len()
}

pub fn run(args: &Diag, out: &mut Out) -> Result<Status> {
    let document = Document::open(&args.input, &args.read.reading())?;
    document.report_losses();
    let mut lines = args.json.json.then(JsonLines::default);
    for section in document.sections(args.choose.segment.as_deref())? {
        let section = section?;
        let mut diag = tenarc::diag::to_string(section.message().unwrap_or(section.bytes()))
            .of(&document.name)?;
        if !args.full {
            diag = shortened(&diag);
        }
        if let Some(lines) = &mut lines {
            let name = section.name().map(str::to_owned);
            lines.line(out, &Row { segment: section.number, name, diag })?;
        } else {
            writeln!(out, "{}", escaped(&diag))?;
        }
    }
    if let Some(lines) = lines {
        lines.end(out)?;
    }
    Ok(Status::Good)
}

#[cfg(test)]
mod tests {
    use super::shortened;

    #[test]
    fn only_long_byte_strings_are_shortened() {
        let long = "ab".repeat(65);
        let text = format!(r#"["h'{long}'", "\"h'{long}'", h'00ff', 64(h'{long}'), (_ h'01')]"#);
        let (start, end) = ("ab".repeat(16), "ab".repeat(16));
        let expected = format!(
            r#"["h'{long}'", "\"h'{long}'", h'00ff', 64(h'{start}…{end}' /65 bytes/), (_ h'01')]"#
        );
        assert_eq!(shortened(&text), expected);
        assert_eq!(shortened("h'"), "h'");
    }
}
