//! Which format a file has, or what else it is.
//!
//! What the first bytes say counts more than the name of the file, as downloads and caches rename files. Formats without a
//! mark at their start are known by the name only: almost any bytes are CBOR or MessagePack.

use std::path::Path;

use clap::ValueEnum as _;
use tenarc_convert::npy::Npz;

use super::{Format, by_extension};
use crate::failure::{Failure, Kind, Of, Result};
use crate::input::Input;

/// The number of bytes from which the format is detected.
const START: usize = 512;

/// CBOR's tag for "this is CBOR" (RFC 8949, section 3.4.6).
pub const SELF_DESCRIBED: [u8; 3] = [0xd9, 0xd9, 0xf7];

/// Files that are not read: how they start, what they are, and what to do.
const FOREIGN: [(&[u8], &str); 2] = [
    (
        b"\x89HDF\r\n\x1a\n",
        "an HDF5 file, which is not read: read it with h5py, and save its arrays with numpy.savez",
    ),
    (
        b"version https://git-lfs",
        "a pointer of Git LFS, which stands for the file in the repository: `git lfs pull` gets the file",
    ),
];

const PICKLE: &str = "a Python pickle, which can run code when it is loaded, and is not read: load it in Python if you \
                      trust it, and save its arrays with safetensors or numpy.savez";

const OTHER_ZIP: &str =
    "a zip file that is neither an npz nor a PyTorch file: it holds no .npy member and no data.pkl";

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
    let named = by_extension(path);
    if let Some(format) = Format::value_variants().iter().find(|format| format.starts(&start)) {
        return Ok(*format);
    }
    if let Some((_, what)) = FOREIGN.iter().find(|(magic, _)| start.starts_with(magic)) {
        return Err(refused(what));
    }
    match named {
        // These formats have no mark at their start, so only the name tells them.
        Some(format @ (Format::Message | Format::Json | Format::Msgpack | Format::Onnx)) => {
            return Ok(format);
        }
        // An index of shards is JSON.
        Some(Format::Safetensors) if super::is_index(path) => {
            return Ok(Format::Safetensors);
        }
        _ => {}
    }
    if matches!(start[..], [0x80, 2..=5, ..]) {
        return Err(refused(PICKLE));
    }
    if start.starts_with(&SELF_DESCRIBED) {
        return Ok(Format::Message);
    }
    // A stream of Arrow starts with these four bytes. Other files rarely do, but they are a weak mark, so they come last.
    if start.starts_with(&[0xff; 4]) {
        return Ok(Format::Arrow);
    }
    // A file whose name and start do not fit together is opened by its name: the error of the reader says what is wrong
    // with it.
    named.or_else(|| is_json(&start).then_some(Format::Json)).ok_or_else(|| {
        refused("unknown file format: name it with --from, if it is one of those that `tenarc --help` lists")
    })
}

/// Whether the first bytes alone say that an input is of a format that is read.
///
/// # Errors
/// If the input cannot be read.
pub fn is_marked(path: &Path, input: &Input) -> Result<bool> {
    let start = input.start(START)?;
    let is_zip = start.starts_with(b"PK\x03\x04") && zip(path, input).is_ok();
    Ok(is_zip || Format::value_variants().iter().any(|format| format.starts(&start)))
}

/// What a zip file is, by the names of its members.
fn zip(path: &Path, input: &Input) -> Result<Format> {
    let refused = |what: &str| Err(Failure::of_kind(Kind::Io, what));
    let file = input.file.try_clone().of(&input.name)?;
    let named = by_extension(path).filter(|named| matches!(named, Format::Npz | Format::Torch));
    // If the list of members is damaged, the reader says how.
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
    if npz.names().next().is_some() || npz.members().is_empty() {
        return Ok(Format::Npz);
    }
    refused(OTHER_ZIP)
}

/// Whether the text starts an object or an array.
fn is_json(start: &[u8]) -> bool {
    let text = start.trim_ascii_start();
    let printable = text.iter().all(|&byte| byte >= b' ' || byte.is_ascii_whitespace());
    matches!(text, [b'{' | b'[', _, ..]) && printable
}
