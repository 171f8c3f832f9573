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
const START: usize = 4 << 10;

/// A kind of files that are not read: their first bytes, what they are, and what the user can do.
struct Foreign {
    /// The offset of the bytes.
    at: usize,
    magic: &'static [u8],
    what: &'static str,
}

const fn foreign_at(at: usize, magic: &'static [u8], what: &'static str) -> Foreign {
    Foreign { at, magic, what }
}

const fn foreign(magic: &'static [u8], what: &'static str) -> Foreign {
    foreign_at(0, magic, what)
}

const FOREIGN: [Foreign; 22] = [
    foreign(b"CDF\x01", NETCDF_3),
    foreign(b"CDF\x02", NETCDF_3),
    foreign(b"CDF\x05", NETCDF_3),
    foreign(
        b"MATLAB 5.0 MAT-file",
        "a MATLAB file of version 5 to 7.2, which is not read: save it with '-v7.3' in MATLAB, or read it with scipy.io.loadmat in \
         Python and save its arrays with numpy.savez",
    ),
    foreign_at(
        4,
        b"TFL3",
        "a model of TensorFlow Lite, which is not read: its tensors are read by tf.lite.Interpreter in Python",
    ),
    foreign(
        b"\xba\x16\x4f\x2f",
        "a model of fastText, which is not read: read it with fasttext.load_model in Python, and save its matrices with numpy.savez",
    ),
    foreign(
        b"ORC",
        "an ORC file, which is not read: write it as Parquet, for example with pyarrow",
    ),
    foreign(b"Obj\x01", "an Avro file, which is not read: write it as Parquet or as JSON lines"),
    foreign(
        b"FEA1",
        "a Feather file of version 1, which is not read: write it with version 2 of Feather",
    ),
    foreign(
        b"SQLite format 3\0",
        "an SQLite database, which is not read: write its tables as Parquet or as JSON lines",
    ),
    foreign(
        b"SIMPLE  =",
        "a FITS file, which is not read: read it with astropy.io.fits in Python, and save its arrays with numpy.savez",
    ),
    foreign(b"lmgg", GGML),
    foreign(b"fmgg", GGML),
    foreign(b"tjgg", GGML),
    foreign(b"\x1f\x8b", COMPRESSED),
    foreign(b"\x28\xb5\x2f\xfd", COMPRESSED),
    foreign(b"BZh", COMPRESSED),
    foreign(b"\xfd7zXZ\0", COMPRESSED),
    foreign(
        b"version https://git-lfs",
        "a pointer of Git LFS, which stands for the file in the repository: `git lfs pull` gets the file",
    ),
    foreign(
        b"/annex/objects/",
        "a pointer of git-annex, which stands for the file in the repository: `git annex get` gets the file",
    ),
    foreign(b"<!doctype html", WEB_PAGE),
    foreign(b"<html", WEB_PAGE),
];

const NETCDF_3: &str = "a NetCDF file of version 3, which is not read: `nccopy -k nc4` writes it as NetCDF-4, which is HDF5";

const GGML: &str =
    "a model of llama.cpp from before GGUF, which is not read: get the model as GGUF";

const COMPRESSED: &str = "a compressed file, which is not read: decompress it first, for example with gunzip, unzstd, bunzip2 or unxz";

const WEB_PAGE: &str = "a web page, which servers send in place of a file, for example if it is not there or needs a login: open \
                        the address in a browser to see what it says";

/// Returns what a file of a format that is not read is, and what the user can do.
fn of_foreign(path: &Path, start: &[u8]) -> Option<&'static str> {
    // Almost any two or three bytes can start these formats.
    let is_free = matches!(by_name(path), Some(Format::Message | Format::Msgpack));
    let least = if is_free { 4 } else { 0 };
    // Web pages start in upper or lower case, and with blanks.
    let page = start.trim_ascii_start().to_ascii_lowercase();
    let is = |Foreign { at, magic, what }: &Foreign| match *what {
        WEB_PAGE => page.starts_with(magic),
        _ => start.get(*at..).is_some_and(|start| start.starts_with(magic)),
    };
    FOREIGN
        .iter()
        .find(|foreign| foreign.magic.len() >= least && is(foreign))
        .map(|foreign| foreign.what)
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
    if let Some(what) = of_foreign(path, &start) {
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
    let is_pointer = is_bin(path) && of_foreign(path, &start).is_some();
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
