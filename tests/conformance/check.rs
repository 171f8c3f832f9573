//! Compares what the library says of a file with what is expected.

use std::fs;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value as Json, json};
use tenarc::archive::{self, Archive, Segment};
use tenarc::de::{DecodeOptions, Deserializer};
use tenarc::error::{Category, Error};
use tenarc::io::ReadAt;
use tenarc::parts::Parts;
use tenarc::tensor::TensorInfo;
use tenarc::{Value, from_slice};

use super::Case;
use super::values::{same, shown};

type Checked = Result<(), String>;

/// A result as a verdict. Those of archives have classes.
fn verdict<T>(result: &Result<T, Error>, of_archive: bool) -> Json {
    let Err(error) = result else { return json!({"verdict": "ok"}) };
    let what = error.to_string();
    match error.category() {
        Category::Version | Category::Unsupported => {
            json!({"verdict": "unsupported", "what": what})
        }
        _ if !of_archive => json!({"verdict": "refused", "what": what}),
        Category::Torn => json!({"verdict": "torn", "what": what}),
        _ => json!({"verdict": "damaged", "what": what, "at": error.offset()}),
    }
}

/// A verdict on what is before a committed end mark: that a part of it seems to be cut off means that it is damaged.
fn inside(mut verdict: Json) -> Json {
    if verdict["verdict"] == "torn" {
        verdict["verdict"] = json!("damaged");
    }
    verdict
}

/// Whether a verdict is one of those that are said.
fn agrees(said: &Json, found: &Json) -> bool {
    if let Json::Array(several) = said {
        return several.iter().any(|said| agrees(said, found));
    }
    let names = said.get("what").is_none_or(|what| {
        found["what"].as_str().unwrap_or_default().contains(what.as_str().unwrap())
    });
    let at = said.get("at").is_none_or(|at| &found["at"] == at);
    let segments = said.get("segments").is_none_or(|count| &found["segments"] == count);
    said["verdict"] == found["verdict"] && names && at && segments
}

fn expect(step: &str, said: &Json, found: &Json) -> Checked {
    let fits = said.is_null() || agrees(said, found);
    fits.then_some(()).ok_or_else(|| format!("{step}: expected {said}, found {found}"))
}

fn expect_value(what: &str, said: &Json, found: &Json) -> Checked {
    let fits = same(said, found);
    fits.then_some(()).ok_or_else(|| format!("{what}: expected {said}, found {found}"))
}

/// Compares a verdict, and the value where there should be one.
fn expect_read(case: &Json, result: &Result<Value, Error>, of_archive: bool) -> Checked {
    let said = case.get("read").cloned().unwrap_or(json!({"verdict": "ok"}));
    expect("read", &said, &inside(verdict(result, of_archive)))?;
    match (case.get("value"), result) {
        (Some(said), Ok(value)) => expect_value("value", said, &shown(value)),
        _ => Ok(()),
    }
}

pub(super) fn message(case: &Case) -> Checked {
    let result = from_slice::<Value>(&case.bytes).map_err(|error| refused(&error));
    expect_read(&case.said, &result, false)
}

/// A message has one kind of verdict for all errors.
fn refused(error: &Error) -> Error {
    Error::data(error.to_string())
}

pub(super) fn sequence(case: &Case) -> Checked {
    let values: Result<Vec<Value>, Error> =
        Deserializer::from_slice(&case.bytes).into_iter().collect();
    expect("read", &case.said["read"], &verdict(&values, false))?;
    match (case.said.get("values"), values) {
        (Some(said), Ok(values)) => {
            expect_value("values", said, &values.iter().map(shown).collect())
        }
        _ => Ok(()),
    }
}

/// Bytes that are not in memory, so that reads are counted.
struct Counted<'a>(&'a [u8], AtomicUsize);

impl ReadAt for Counted<'_> {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        self.1.fetch_add(1, Ordering::Relaxed);
        ReadAt::read_at(self.0, out, offset)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }
}

pub(super) fn archive(case: &Case) -> Checked {
    // Bytes in memory and those that are read at positions take different ways.
    archive_of(case, &case.bytes[..]).map_err(|fault| format!("in memory: {fault}"))?;
    let source = Counted(&case.bytes, AtomicUsize::new(0));
    archive_of(case, source)
}

fn archive_of<S: ReadAt + Reads>(case: &Case, source: S) -> Checked {
    let said = &case.said;
    let opened = Archive::new(source);
    let mut found = verdict(&opened, true);
    if let Ok(archive) = &opened
        && archive.unfinished_bytes() > 0
    {
        found = json!({"verdict": "unfinished", "segments": archive.len()});
    }
    expect("open", &said["open"], &found)?;
    if let Some(after) = said["open"].get("after") {
        expect_value("whole segments", after, &json!(whole(&case.bytes)))?;
    }
    let Ok(archive) = opened else { return Ok(()) };
    if let (Some(reads), Some(found)) = (said.get("reads"), archive.source().reads()) {
        expect_value("reads of open", reads, &json!(found))?;
    }
    if let Some(segments) = said.get("segments").and_then(Json::as_array) {
        expect_value("segments", &json!(segments.len()), &json!(archive.len()))?;
        for (number, (said, entry)) in segments.iter().zip(archive.entries()).enumerate() {
            let entry = entry.map_err(|error| error.to_string())?;
            let found = json!([entry.name(), entry.offset(), entry.header_len(), entry.rows()]);
            let said_entry = json!([said["name"], said["offset"], said["header"], said["rows"]]);
            expect_value("entry", &said_entry, &found)?;
            let segment = archive.segment(number as u64).map_err(|error| error.to_string())?;
            compare_segment(said, &segment)
                .map_err(|fault| format!("segment {number}: {fault}"))?;
        }
    }
    let read: Result<Vec<Value>, Error> =
        archive.segments().map(|segment| segment?.load()).collect();
    expect("read", &said["read"], &inside(verdict(&read, true)))?;
    expect("verify", &said["verify"], &inside(verdict(&archive.verify(), true)))?;
    if let Some(digest) = said.get("digest") {
        let found = archive.digest().ok().map(|digest| digest.to_string());
        expect_value("digest", digest, &json!(found))?;
    }
    for table in said["tables"].as_array().into_iter().flatten() {
        let name = table[0].as_str().unwrap();
        let rows = archive.table(name).and_then(|table| table.rows::<Value>(..));
        let rows = rows.map_err(|error| format!("table: {error}"))?;
        expect_value("table", &table[1], &rows.iter().map(shown).collect())?;
    }
    let unread = said["segments"].as_array().into_iter().flatten().zip(0..);
    let unverified = archive.with_options(DecodeOptions::default().with_checksums(false));
    for (segment, number) in unread {
        if let Some(value) = segment.get("unverified") {
            let found = unverified.segment(number).and_then(|segment| segment.load::<Value>());
            let found = found.map_err(|error| format!("without verifying: {error}"))?;
            expect_value("unverified value", value, &shown(&found))?;
        }
    }
    Ok(())
}

fn compare_segment<S: ReadAt>(said: &Json, segment: &Segment<'_, S>) -> Checked {
    expect_value("name", &said["name"], &json!(segment.name()))?;
    expect_value("length", &said["length"], &json!(segment.byte_len()))?;
    let digest = segment.digest().ok().map(|digest| digest.to_string());
    expect_value("digest", &said["digest"], &json!(digest))?;
    expect_read(said, &segment.load(), true)?;
    if let Some(tensors) = said.get("tensors") {
        compare_tensors(tensors, segment.tensors())?;
    }
    for pair in said["paths"].as_array().into_iter().flatten() {
        let path = pair[0].as_str().unwrap();
        match (pair.get(1), segment.get::<Value>(path)) {
            (None, Err(_)) => {}
            (Some(said), Ok(value)) => expect_value(path, said, &shown(&value))?,
            (said, found) => return Err(format!("`{path}`: expected {said:?}, found {found:?}")),
        }
    }
    Ok(())
}

fn compare_tensors(said: &Json, found: Result<Vec<TensorInfo>, Error>) -> Checked {
    if said == "error" {
        return found.is_err().then_some(()).ok_or_else(|| "the tensors can be listed".into());
    }
    let mut found = found.map_err(|error| format!("tensors: {error}"))?;
    found.sort_by(|a, b| a.path().cmp(b.path()));
    let found: Json =
        found.iter().map(|one| json!([one.path(), one.dtype().name(), one.shape()])).collect();
    expect_value("tensors", said, &found)
}

/// How often a source was read.
trait Reads {
    fn reads(&self) -> Option<usize>;
}

impl Reads for &[u8] {
    fn reads(&self) -> Option<usize> {
        None
    }
}

impl Reads for Counted<'_> {
    fn reads(&self) -> Option<usize> {
        Some(self.1.load(Ordering::Relaxed))
    }
}

/// How many segments of a torn archive a repair keeps.
fn whole(bytes: &[u8]) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("torn.tenarc");
    fs::write(&path, bytes).unwrap();
    match archive::recover(&path) {
        Ok(recovered) => recovered.segments,
        // Nothing would be left.
        Err(error) if error.category() == Category::Torn => 0,
        Err(error) => panic!("{error}"),
    }
}

pub(super) fn parts(case: &Case) -> Checked {
    let result = pieces(case, DecodeOptions::default());
    let tensors = case.said.get("tensors");
    if let (Some(said), Ok(parts)) = (tensors, &result) {
        compare_tensors(said, parts.tensors())?;
    }
    expect_read(&case.said, &result.and_then(|parts| parts.load()), false)?;
    if let Some(said) = case.said.get("unverified") {
        let parts = pieces(case, DecodeOptions::default().with_checksums(false));
        let value =
            parts.and_then(|parts| parts.load::<Value>()).map_err(|error| error.to_string())?;
        expect_value("unverified value", said, &shown(&value))?;
    }
    Ok(())
}

fn pieces(case: &Case, options: DecodeOptions) -> Result<Parts<Vec<u8>>, Error> {
    let mut rest = &case.bytes[..];
    let mut pieces = Vec::new();
    for length in case.said["pieces"].as_array().unwrap() {
        let (piece, behind) = rest.split_at(usize::try_from(length.as_u64().unwrap()).unwrap());
        pieces.push(piece.to_vec());
        rest = behind;
    }
    let metadata = pieces.remove(0);
    Parts::with_options(metadata, pieces, options)
}
