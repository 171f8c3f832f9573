//! Detects the format of a file, and says what to do with common files that cannot be read.
//!
//! The first bytes of a file count more than its name, because downloads and caches rename files. Formats without magic
//! bytes are recognised by the name, because almost any bytes are valid CBOR or MessagePack. Only JSON is also
//! recognised by its content.

use std::path::Path;

use clap::ValueEnum as _;
use tenarc_convert::npy::Npz;
use tenarc_convert::torch::distributed_metadata;

use super::{Format, SELF_DESCRIBED, by_extension, by_index, by_name, is_bin};
use crate::failure::{Failure, Kind, Of, Result};
use crate::input::Input;

/// The number of bytes from which the format is detected.
const START: usize = 512;

/// Files of formats that are not read: their first bytes in lower case, what they are, and what the user can do.
const FOREIGN: [(&[u8], &str); 3] = [
    (
        b"version https://git-lfs",
        "a pointer of Git LFS, which stands for the file in the repository: `git lfs pull` gets the file",
    ),
    (b"<!doctype html", WEB_PAGE),
    (b"<html", WEB_PAGE),
];

const WEB_PAGE: &str = "a web page, which servers send in place of a file, for example if it is not there or needs a login: open \
                        the address in a browser to see what it says";

/// Returns what a file of a format that is not read is, and what the user can do.
fn foreign(start: &[u8]) -> Option<&'static str> {
    let text = start.trim_ascii_start().to_ascii_lowercase();
    FOREIGN.iter().find(|(magic, _)| text.starts_with(magic)).map(|(_, what)| *what)
}

const PICKLE: &str = "a Python pickle, which can run code when it is loaded, and is not read: load it in Python if you \
                      trust it, and save its arrays with safetensors or numpy.savez";

const OTHER_ZIP: &str = "a zip file that is no npz, PyTorch or Keras file: it holds no .npy member, no data.pkl and no model.weights.h5";

const OTHER_INDEX: &str = "the index of a model in several files, which is not read: convert each of the files that it names, or give \
                           --from json to read the index itself";

/// Detects the format of an input.
///
/// # Errors
/// If the input is empty, cannot be read, or is of no format that is read.
pub fn detect(path: &Path, input: &Input) -> Result<Format> {
    let start = input.start(START)?;
    if start.is_empty() {
        return Err(Failure::new(format!("{}: the file is empty", input.name)));
    }
    let refused = |what: &str| Failure::of_kind(Kind::Io, what).of(&input.name);
    if start.starts_with(b"PK\x03\x04") || start.starts_with(b"PK\x05\x06") {
        return zip(path, input).map_err(|failure| failure.of(&input.name));
    }
    if let Some(format) = Format::value_variants().iter().find(|format| format.starts(&start)) {
        return Ok(*format);
    }
    if let Some(what) = foreign(&start) {
        return Err(refused(what));
    }
    match by_index(path) {
        Some(format @ (Format::Safetensors | Format::Torch)) => return Ok(format),
        Some(_) => return Err(refused(OTHER_INDEX)),
        None => {}
    }
    let named = by_name(path);
    // These formats have no magic bytes, so only the name identifies them.
    if let Some(format @ (Format::Message | Format::Json | Format::Msgpack | Format::Onnx)) = named
    {
        return Ok(format);
    }
    if matches!(start[..], [0x80, 2..=5, ..]) {
        if distributed_metadata(path).is_some() {
            return Ok(Format::Torch);
        }
        return Err(refused(PICKLE));
    }
    if start.starts_with(&SELF_DESCRIBED) {
        return Ok(Format::Message);
    }
    // An Arrow stream starts with these four bytes. They are weak evidence, because other files can start with them
    // too, so they are checked late.
    if start.starts_with(&[0xff; 4]) {
        return Ok(Format::Arrow);
    }
    // The first bytes identify no format, so the name decides. If the content does not fit the name, the error of the
    // reader says what is wrong.
    named.or_else(|| is_json(&start).then_some(Format::Json)).ok_or_else(|| {
        refused("unknown file format: name it with --from, if it is one of those that `tenarc --help` lists")
    })
}

/// Returns whether the first bytes of an input, or the entries of a zip file, identify a format that can be read.
///
/// # Errors
/// If the input cannot be read.
pub fn is_marked(path: &Path, input: &Input) -> Result<bool> {
    let start = input.start(START)?;
    let is_zip = start.starts_with(b"PK\x03\x04") && zip(path, input).is_ok();
    // A pointer or a web page stands for a file that may be one of torch.
    let is_pointer = is_bin(path) && foreign(&start).is_some();
    Ok(is_zip || is_pointer || Format::value_variants().iter().any(|format| format.starts(&start)))
}

/// Detects the format of a zip file from the names of its entries.
fn zip(path: &Path, input: &Input) -> Result<Format> {
    let refused = |what: &str| Err(Failure::of_kind(Kind::Io, what));
    let file = input.file.try_clone().of(&input.name)?;
    let named = by_extension(path)
        .filter(|named| matches!(named, Format::Npz | Format::Torch | Format::Hdf5));
    // If the list of entries is damaged, the reader reports the damage.
    let Ok(npz) = Npz::new(file) else { return Ok(named.unwrap_or(Format::Npz)) };
    let holds = |name: &str| {
        npz.members().iter().any(|member| {
            let found = member.name();
            found == name || found.strip_suffix(name).is_some_and(|rest| rest.ends_with('/'))
        })
    };
    if holds("data.pkl") {
        return Ok(Format::Torch);
    }
    if npz.members().iter().any(|member| member.name() == "model.weights.h5") {
        return Ok(Format::Hdf5);
    }
    if npz.names().next().is_some() || npz.members().is_empty() {
        return Ok(Format::Npz);
    }
    refused(OTHER_ZIP)
}

/// Returns whether the bytes are text that starts with a JSON object or array.
fn is_json(start: &[u8]) -> bool {
    let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).trim_ascii_start();
    let printable = text.iter().all(|&byte| byte >= b' ' || byte.is_ascii_whitespace());
    matches!(text, [b'{' | b'[', _, ..]) && printable
}
