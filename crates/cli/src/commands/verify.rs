//! `verify`: checks files for damage. It checks every byte of an archive, that messages are well-formed, and in other
//! formats whatever the format allows to check.

use std::io::Write;
use std::path::Path;

use serde::Serialize;
use tenarc::Value;
use tenarc_convert::{Opened, Stored as _};

use crate::args::Verify;
use crate::document::{Document, Reading, Section};
use crate::failure::{Failure, Kind, Result, Status};
use crate::formats::archive::unfinished;
use crate::input::shown;
use crate::inputs;
use crate::losses::not_read;
use crate::output::{BAD, GOOD, JsonLines, Out, is_quiet, say};
use crate::paths;
use crate::progress::Progress;
use crate::text::{bytes, counted, escaped};

/// The result for one file.
#[derive(Debug, Serialize)]
struct Report {
    file: String,
    good: bool,
    /// Whether the file could be checked. It cannot if it cannot be read, if it exceeds a limit, or if a part of its
    /// format is not supported.
    checked: bool,
    #[serde(skip)]
    is_readable: bool,
    segments: Option<u64>,
    bytes: Option<u64>,
    error: Option<String>,
    /// The position of the first bad byte, or of the start of the damaged part.
    offset: Option<u64>,
    /// The path of the tensor at that position.
    path: Option<String>,
    /// A description of what could not be checked.
    unchecked: Option<String>,
}

pub fn run(args: &Verify, out: &mut Out) -> Result<Status> {
    let mut lines = JsonLines::default();
    let (mut status, mut others, mut files) = (Status::Good, 0, 0u64);
    let reading = Reading { from: args.from, ..Reading::default() };
    for input in &args.inputs {
        let mut each = |path: &Path, found: Result<()>| {
            let report = verified(path, found, &reading, args.decode);
            files += 1;
            status = status.max(report.status());
            if args.json.json { lines.line(out, &report) } else { print(&report, out) }
        };
        if input.is_dir() {
            others += inputs::below(input, &mut each)?;
        } else {
            each(input, Ok(()))?;
        }
    }
    if args.json.json {
        lines.end(out)?;
    }
    if files == 0 {
        let found = counted(others, "file");
        return Err(Failure::new(format!("no file of a known format, among {found}")));
    }
    if others > 0 && !is_quiet() {
        say(&format!("note: {} of unknown formats not checked", counted(others, "file")));
    }
    Ok(status)
}

fn print(report: &Report, out: &mut Out) -> Result<()> {
    let file = &report.file;
    let Some(error) = &report.error else {
        let values = counted(report.segments.unwrap_or(0), "value");
        let size = bytes(report.bytes.unwrap_or(0));
        let but = report.unchecked.as_ref().map(|what| format!("; {}", escaped(what)));
        let but = but.unwrap_or_default();
        writeln!(out, "{file}: {}, {values}, {size}{but}", out.styled(GOOD, "good"))?;
        return Ok(());
    };
    // The error may name the file already.
    let error = escaped(error);
    let error = error.strip_prefix(&format!("{file}: ")).unwrap_or(&error);
    if report.checked {
        let path = report.path.as_ref().map(|path| format!(" at {}", super::ls::shown(path)));
        let path = path.unwrap_or_default();
        writeln!(out, "{file}: {}{path}: {error}", out.styled(BAD, "bad"))?;
    } else {
        let what = if report.is_readable { "not checked: " } else { "" };
        say(&format!("{file}: {what}{error}"));
    }
    Ok(())
}

fn verified(input: &Path, found: Result<()>, reading: &Reading, decode: bool) -> Report {
    let mut report = Report {
        file: shown(input),
        good: false,
        checked: true,
        is_readable: true,
        segments: None,
        bytes: None,
        error: None,
        offset: None,
        path: None,
        unchecked: None,
    };
    let result = found.and_then(|()| Document::open(input, reading)).and_then(|document| {
        report.segments = Some(document.len());
        check(&document, decode, &mut report)
    });
    match result {
        Ok(()) => report.good = report.error.is_none(),
        Err(failure) => report.fail(&failure),
    }
    report
}

fn check(document: &Document, decode: bool, report: &mut Report) -> Result<()> {
    let what = "verifying";
    report.bytes = document.file_len();
    if let Some(archive) = document.archive() {
        let len = archive.byte_len();
        let progress = Progress::new(len, what);
        let verified = archive.verify_with(|done, _| progress.set(done));
        let decoded = |()| {
            if !decode {
                return Ok(());
            }
            archive.segments().try_for_each(|segment| segment?.verify_decoded())
        };
        if let Err(error) = verified.and_then(decoded) {
            let path = Some(error.path()).filter(|path| !path.is_empty());
            report.fail(&error.into());
            // The path of a value that is one tensor is empty, and so is that of an error of the whole archive.
            let at_offset = || report.offset.and_then(|offset| tensor_at(document, offset));
            report.path = path.or_else(at_offset);
        } else if let Some(unfinished) = unfinished(archive) {
            // A truncated copy of an archive looks the same as an unfinished append, so this is not reported as good.
            report.offset = Some(len);
            report.error = Some(unfinished);
        } else {
            // Tables of other formats are archives here, and may hold columns that are not read.
            report.unchecked = not_read(document.losses()).map(|lost| format!("not read: {lost}"));
        }
    } else if let Some(opened) = document.opened() {
        document.show_progress(what, 1);
        match tensors(opened, &document.section(0)?, &mut report.path) {
            Ok(unchecked) => {
                let lost = not_read(opened.losses()).map(|lost| format!("not read: {lost}"));
                let told: Vec<String> = unchecked.into_iter().chain(lost).collect();
                report.unchecked = (!told.is_empty()).then(|| told.join("; "));
            }
            Err(error) => report.fail(&error.into()),
        }
    } else if document.messages().is_some() {
        for number in 0..document.len() {
            let section = document.section(number)?;
            tenarc::from_slice::<Value>(section.bytes())?;
        }
    }
    Ok(())
}

/// Reads and checks all tensors, and returns a description of the parts that cannot be checked. After an error, `path`
/// is the path of the tensor at which the error occurred.
fn tensors(
    opened: &Opened,
    section: &Section<'_>,
    path: &mut Option<String>,
) -> tenarc::Result<Option<String>> {
    for named in paths::payloads(&section.root, section.bytes())? {
        let Some(buffer) = named.payload.buffer else { continue };
        *path = Some(named.path);
        opened.blocks(buffer, &mut |_| Ok(()))?;
    }
    *path = None;
    opened.file().verify()
}

impl Report {
    fn status(&self) -> Status {
        match (self.checked, self.good) {
            (false, _) => Status::Failed,
            (true, false) => Status::Found,
            (true, true) => Status::Good,
        }
    }

    fn fail(&mut self, failure: &Failure) {
        // A file that is not of the expected format is bad.
        self.checked = !matches!(failure.kind, Kind::Io | Kind::Limit | Kind::Unsupported);
        self.is_readable = failure.kind != Kind::Io;
        self.offset = failure.offset;
        self.error = Some(failure.to_string());
    }
}

/// Returns the path of the tensor whose bytes are at an offset of an archive.
fn tensor_at(document: &Document, offset: u64) -> Option<String> {
    for number in 0..document.len() {
        // Values after the damage may be unreadable too.
        let Ok(section) = document.section(number) else { continue };
        let Some(segment) = section.segment() else { continue };
        let buffers = segment.buffers();
        let stored = |number: usize, len: u64| {
            segment.compressed(number).map_or(len, |buffer| buffer.stored_len())
        };
        let holds = |(number, &(start, len)): (usize, &(u64, u64))| {
            offset >= start && offset - start < stored(number, len).max(1)
        };
        if let Some(buffer) = buffers.iter().enumerate().position(holds) {
            let payloads = section.payloads().ok()?;
            let named = payloads.into_iter().find(|named| named.payload.buffer == Some(buffer))?;
            let several = document.len() > 1;
            let prefix =
                if several { format!("{} ", document.label(&section)) } else { String::new() };
            return Some(prefix + &named.path);
        }
    }
    None
}
