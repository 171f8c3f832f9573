//! Parts, exchanged with the second implementation of `SPEC.md` in `../python/parts.py`.
//!
//! A manifest lists files of parts, one behind the other as on a stream, with their alignment, and of
//! each value its title, its name, the length of its pieces, its description as in [`crate::data`],
//! and of a [`Record`] what is known of it to the struct. That of Python also has `broken`: pieces in
//! hexadecimal digits, and whether they are sound all the same.

use std::error::Error;
use std::fs;
use std::path::Path;

use serde_json::{Value as Json, json};
use tenarc::archive::SaveOptions;
use tenarc::error::Category;
use tenarc::parts::{Parts, Split};
use tenarc::{IArchive, OArchive, Value};

use crate::archives::{CHUNK, chunks, more, variants};
use crate::data::{Data, unhex};
use crate::tensors::{self, Record};
use crate::{Case, OneByte, Tally, archives, plain};

/// Writes parts and a manifest.
pub fn write(dir: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(dir)?;
    let mut cases = tensors::cases()?;
    cases.extend(plain::cases()?.into_iter().filter(|case| case.bytes.len() < 5000));
    cases.extend(more()?.into_iter().filter(|case| !case.name.contains("padding")));
    let mut streams = Vec::new();
    for (file, alignment, options) in variants() {
        streams.push(write_all(dir, file, &cases, alignment, &options)?);
    }
    let options = SaveOptions::default().with_inline_below(0).with_chunk_len(CHUNK);
    streams.push(write_all(dir, "chunks", &chunks()?, 256, &options)?);
    let manifest = json!({"writer": "tenarc", "streams": streams});
    fs::write(dir.join("manifest.json"), serde_json::to_vec(&manifest)?)?;
    Ok(())
}

/// Every second value by way of an archive, which gives it a name.
fn write_all(
    dir: &Path,
    file: &str,
    cases: &[Case],
    alignment: u64,
    options: &SaveOptions,
) -> Result<Json, Box<dyn Error>> {
    let (mut out, mut values) = (Vec::new(), Vec::new());
    for (number, case) in cases.iter().enumerate() {
        let value = tenarc::from_slice::<Value>(&case.bytes)?;
        let split = Split::with_options(&value, options.clone())?;
        let mut pieces = vec![split.metadata().len() as u64];
        pieces.extend(split.info().buffers().iter().map(|buffer| buffer.tensor().byte_len()));
        let name = (number % 2 == 0).then_some(&case.name);
        if let Some(name) = name {
            let mut archive = OArchive::with_options(Vec::new(), options.clone())?;
            archive.save_as(name, &value)?;
            let parts = IArchive::new(&archive.finish()?[..])?.load_parts()?;
            pieces[0] = parts.metadata().len() as u64;
            parts.write_to(&mut out)?;
        } else {
            split.write_to(&mut out)?;
        }
        let about = case.data.to_json();
        values.push(json!({"title": case.name, "name": name, "pieces": pieces, "value": about}));
    }
    let file = format!("{file}.parts");
    fs::write(dir.join(&file), out)?;
    Ok(json!({"file": file, "alignment": alignment, "values": values}))
}

/// Reads parts and compares them with their manifest.
pub fn check(dir: &Path) -> Result<Tally, Box<dyn Error>> {
    let manifest: Json = serde_json::from_slice(&fs::read(dir.join("manifest.json"))?)?;
    let mut tally = Tally::default();
    for listed in manifest["streams"].as_array().ok_or("a manifest without streams")? {
        let file = listed["file"].as_str().ok_or("a file without a name")?;
        let bytes = fs::read(dir.join(file))?;
        let (mut kept_apart, mut stream, mut single) = (&bytes[..], &bytes[..], OneByte(&bytes));
        for entry in listed["values"].as_array().ok_or("a file without values")? {
            let title = format!("{file}, {}", entry["title"]);
            let pieces = take(&mut kept_apart, &entry["pieces"]).ok_or("pieces beyond the file")?;
            let (metadata, buffers) = pieces.split_first().ok_or("a value without pieces")?;
            let apart = Parts::new(*metadata, buffers);
            let sources = [
                ("in pieces", is(apart, entry, listed, &pieces)),
                ("from a stream", is(Parts::read_from(&mut stream), entry, listed, &pieces)),
                ("from single bytes", is(Parts::read_from(&mut single), entry, listed, &pieces)),
            ];
            for (how, result) in sources {
                tally.note(&format!("{title} {how}"), result);
            }
        }
        let ended = match Parts::read_from(stream) {
            Err(error) if error.category() == Category::Eof => Ok(()),
            other => Err(format!("the stream goes on: {other:?}")),
        };
        tally.note(&format!("{file}, its end"), ended);
    }
    for case in manifest["broken"].as_array().into_iter().flatten() {
        let name = case["name"].as_str().ok_or("a broken case without a name")?;
        let pieces = case["pieces"].as_array().ok_or("a broken case without pieces")?;
        let pieces: Option<Vec<_>> = pieces.iter().map(|piece| unhex(piece.as_str()?)).collect();
        let pieces = pieces.ok_or_else(|| format!("{name}: its pieces cannot be read"))?;
        tally.note(name, sound(&pieces, case["sound"] == true));
    }
    Ok(tally)
}

/// The pieces that stand next.
fn take<'a>(bytes: &mut &'a [u8], lengths: &Json) -> Option<Vec<&'a [u8]>> {
    let mut next = |len: &Json| {
        let (piece, rest) = bytes.split_at_checked(usize::try_from(len.as_u64()?).ok()?)?;
        *bytes = rest;
        Some(piece)
    };
    lengths.as_array()?.iter().map(&mut next).collect()
}

fn is<B: AsRef<[u8]>>(
    parts: tenarc::Result<Parts<B>>,
    entry: &Json,
    listed: &Json,
    pieces: &[&[u8]],
) -> Result<(), String> {
    let parts = parts.map_err(|error| error.to_string())?;
    let info = parts.info();
    if info.name() != entry["name"].as_str() {
        return Err(format!("name {:?}", info.name()));
    }
    let aligned = |buffer: &tenarc::parts::BufferInfo| listed["alignment"] == buffer.alignment();
    if !info.buffers().iter().all(aligned) {
        return Err(format!("buffers {:?}", info.buffers()));
    }
    let wanted = Data::from_json(&entry["value"]).ok_or("its description cannot be read")?;
    archives::matches(parts.load(), &wanted)?;
    if entry["as"] == "record" {
        let known = Data::from_json(&entry["known"]).ok_or("its description cannot be read")?;
        let record = parts.load::<Record>().map_err(|error| error.to_string())?;
        record.described(true).matches(&known)?;
    }
    let mut written = Vec::new();
    parts.write_to(&mut written).map_err(|error| error.to_string())?;
    if written == pieces.concat() { Ok(()) } else { Err("written again, others".into()) }
}

fn sound(pieces: &[Vec<u8>], wanted: bool) -> Result<(), String> {
    let (metadata, buffers) = pieces.split_first().ok_or("no pieces")?;
    let read = || Parts::new(&metadata[..], buffers)?.load::<Value>();
    match (read(), wanted) {
        (Ok(_), true) | (Err(_), false) => Ok(()),
        (Ok(_), false) => Err("read as if nothing were wrong".into()),
        (Err(error), true) => Err(error.to_string()),
    }
}
