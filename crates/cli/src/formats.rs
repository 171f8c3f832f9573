//! The file formats, and how their files are recognised. This file knows none of the modules that read and write them.

pub mod archive;
mod converted;
pub mod detect;
mod message;
mod read;
pub mod stream;
mod tables;
pub mod values;
mod write;

use std::iter;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use tenarc_convert::safetensors::is_of_process;
use tenarc_convert::{Format as Converted, safetensors, torch};

use crate::failure::{Failure, Kind, Result};
use crate::input::shown;
use crate::text::{escaped, nearest};

/// The first bytes of an archive: section 5 of the specification.
const MAGIC: [u8; 12] = *b"\xd9\xd9\xf8\xdaTARCCBOR";

/// CBOR's tag for "this is CBOR" (RFC 8949, section 3.4.6).
pub const SELF_DESCRIBED: [u8; 3] = [0xd9, 0xd9, 0xf7];

/// A file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// tenarc archive
    #[value(name = "tenarc")]
    Archive,
    /// CBOR messages (RFC 8949) with typed arrays (RFC 8746)
    #[value(name = "cbor")]
    Message,
    /// JSON, tensors as {"dtype": …, "shape": …, "data": …}
    Json,
    /// MessagePack, arrays as in msgpack-numpy
    Msgpack,
    /// safetensors: tensors by name; also the index of a sharded model
    Safetensors,
    /// numpy's npz: arrays by name
    Npz,
    /// numpy's npy: one array
    Npy,
    /// Arrow IPC files and streams: tensors in columns, or tables of records
    Arrow,
    /// Parquet: tables of records
    Parquet,
    /// webdataset's tenbin
    #[value(name = "ten")]
    Tenbin,
    /// torch files, as torch.save writes them; indices of sharded models and directories of distributed checkpoints are only read
    Torch,
    /// Tensors of ONNX models, read only
    Onnx,
    /// GGUF files of llama.cpp
    Gguf,
    /// HDF5 files, such as those of h5py and Keras, read only
    Hdf5,
}

/// Whether a writer may leave out or change content that the output format cannot hold.
#[derive(Clone, Copy, Debug)]
pub struct Lossy(pub bool);

impl Format {
    /// Returns the corresponding format of tenarc-convert. `None` for archives, messages and Parquet, which that list
    /// does not have.
    fn converted(self) -> Option<Converted> {
        Some(match self {
            Self::Archive | Self::Message | Self::Parquet => return None,
            Self::Json => Converted::Json,
            Self::Msgpack => Converted::Msgpack,
            Self::Safetensors => Converted::Safetensors,
            Self::Npz => Converted::Npz,
            Self::Npy => Converted::Npy,
            Self::Arrow => Converted::Arrow,
            Self::Tenbin => Converted::Tenbin,
            Self::Torch => Converted::Torch,
            Self::Onnx => Converted::Onnx,
            Self::Gguf => Converted::Gguf,
            Self::Hdf5 => Converted::Hdf5,
        })
    }

    /// Returns the file name extensions, in lower case, without the dot.
    fn extensions(self) -> &'static [&'static str] {
        match self {
            Self::Archive => &["tenarc", "tarc"],
            Self::Message => &["cbor", "cborseq"],
            Self::Json => &["json", "jsonl", "ndjson"],
            Self::Msgpack => &["msgpack", "mpk"],
            Self::Safetensors => &["safetensors"],
            Self::Npz => &["npz"],
            Self::Npy => &["npy"],
            Self::Arrow => &["arrow", "arrows", "feather"],
            Self::Parquet => &["parquet"],
            Self::Tenbin => &["ten"],
            Self::Torch => &["pt", "pth", "bin"],
            Self::Onnx => &["onnx"],
            Self::Gguf => &["gguf"],
            Self::Hdf5 => &["h5", "hdf5", "he5", "keras"],
        }
    }

    /// Returns whether a file starts like this format. Few files of other formats start in the same way.
    pub fn starts(self, start: &[u8]) -> bool {
        match self {
            Self::Archive => start.starts_with(&MAGIC),
            // The length of the header (8 bytes, little-endian, below 100 MB), then the header, which is JSON.
            Self::Safetensors => {
                matches!(start, [_, _, _, len, 0, 0, 0, 0, b'{', ..] if *len < 6)
            }
            Self::Npy => start.starts_with(b"\x93NUMPY"),
            Self::Arrow => start.starts_with(b"ARROW1\0\0"),
            Self::Parquet => start.starts_with(b"PAR1"),
            Self::Tenbin => start.starts_with(b"~TenBin~"),
            Self::Gguf => start.starts_with(b"GGUF"),
            // MATLAB and others write text in front: 512 bytes, or twice as many, and so on.
            Self::Hdf5 => {
                let after = iter::successors(Some(512), |at| Some(at * 2));
                let mut starts = iter::once(0).chain(after).map_while(|at| start.get(at..));
                starts.any(|start| start.starts_with(b"\x89HDF\r\n\x1a\n"))
            }
            // Newer PyTorch files are zip files, which only the names of their entries identify.
            Self::Torch => tenarc_convert::torch::is_legacy(start),
            _ => false,
        }
    }

    /// Checks that files of this format can be written.
    ///
    /// # Errors
    /// If files of this format can only be read.
    pub fn check_writable(self) -> Result<()> {
        Err(Failure::new(match self {
            Self::Hdf5 => "cannot write HDF5 files: write npz, and store its arrays with h5py",
            Self::Onnx => "cannot write ONNX models: write safetensors instead",
            _ => return Ok(()),
        }))
    }
}

/// Returns the format that the extension of a file name stands for.
pub fn by_extension(path: &Path) -> Option<Format> {
    if let Some(format) = by_index(path) {
        return Some(format);
    }
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    let mut all = Format::value_variants().iter().copied();
    all.find(|format| format.extensions().contains(&&*extension))
}

/// Returns the format that the extension of a file name identifies. `.bin` identifies none, because many programs give
/// it to files of their own.
pub fn by_name(path: &Path) -> Option<Format> {
    by_extension(path).filter(|_| !is_bin(path))
}

fn is_bin(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("bin"))
}

/// Returns the format of the files of a sharded model, if a path has the name of its index, such as
/// `model.safetensors.index.json` or `pytorch_model.bin.index.json`.
fn by_index(path: &Path) -> Option<Format> {
    let is_json = path.extension()?.eq_ignore_ascii_case("json");
    // The indices of variants have a name after `index`, such as `index.fp16`.
    let stem = format!("{}.", path.file_stem()?.to_str()?.to_ascii_lowercase());
    let (files, _) = stem.rsplit_once(".index.")?;
    let extension = Path::new(files).extension()?.to_str()?;
    let mut all = Format::value_variants().iter().copied().filter(|_| is_json);
    all.find(|format| format.extensions().contains(&extension))
}

/// Returns the path of the only index of a sharded model in a directory.
///
/// # Errors
/// If the directory cannot be read, or has no index or several.
pub fn index_in(directory: &Path) -> Result<PathBuf> {
    let (mut found, mut of_processes) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if matches!(by_index(&path), Some(Format::Safetensors | Format::Torch)) {
            found.push(path);
        } else if is_of_process(&path) {
            of_processes.push(path);
        }
    }
    // The file of one process leads to those of the others.
    if found.is_empty() {
        found.extend(of_processes.into_iter().min());
    }
    let is_directory = |what: &str| Failure::of_kind(Kind::Io, format!("is a directory {what}"));
    match &*found {
        [path] => Ok(path.clone()),
        [] => Err(is_directory(
            "without the index of a sharded model, such as model.safetensors.index.json: name a file in it",
        )),
        several => {
            let mut names: Vec<_> = several.iter().map(|path| shown(path)).collect();
            names.sort();
            let names = names.join(", ");
            Err(is_directory(&format!("with several indices of models: name one of them: {names}")))
        }
    }
}

/// Returns whether a file has the name of an index of a sharded model of safetensors.
fn is_index(path: &Path) -> bool {
    by_index(path) == Some(Format::Safetensors)
}

/// Returns the paths of the files that the index of a sharded model names. Returns none if the path is not that of an
/// index, or if the model cannot be opened.
pub fn shards(path: &Path) -> Vec<PathBuf> {
    fn names<F>(files: &[(String, F)]) -> Vec<String> {
        files.iter().map(|(name, _)| name.clone()).collect()
    }
    let names = match by_index(path) {
        Some(Format::Safetensors) => safetensors::open_sharded(path).map(|all| names(all.shards())),
        Some(Format::Torch) => torch::open_sharded(path).map(|all| names(all.shards())),
        _ => return Vec::new(),
    };
    names.unwrap_or_default().iter().map(|name| path.with_file_name(name)).collect()
}

/// Returns the format of an output: the requested format, or else the format of the file name. A name without extension
/// means an archive.
///
/// # Errors
/// If no format is requested and the extension of the name is unknown.
pub fn of_output(path: &Path, to: Option<Format>) -> Result<Format> {
    let extension = path.extension().map(|end| end.to_string_lossy().into_owned());
    match (to.or_else(|| by_extension(path)), extension) {
        (Some(format), _) => Ok(format),
        (None, None) => Ok(Format::Archive),
        (None, Some(end)) => {
            let formats = Format::value_variants().iter();
            let known = formats.flat_map(|format| format.extensions()).copied();
            let meant = nearest(&end.to_ascii_lowercase(), known);
            let (shown, end) = (shown(path), escaped(&end));
            Err(Failure::new(format!(
                "{shown}: no format has names that end in .{end}: archives have .tenarc; or use --to{meant}"
            )))
        }
    }
}

/// Returns the name of a format as `--from` and `--to` accept it.
pub fn name(format: Format) -> String {
    format.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Refuses an option that is only for archives.
///
/// # Errors
/// If the option was given and the output is not an archive.
pub fn only_for_archives(option: &str, is_given: bool, to: Format) -> Result<()> {
    only_for(Format::Archive, "archives", option, is_given, to)
}

/// Refuses an option that is only for outputs of one format.
///
/// # Errors
/// If the option was given and the output is of another format.
pub fn only_for(
    format: Format,
    files: &str,
    option: &str,
    is_given: bool,
    to: Format,
) -> Result<()> {
    if !is_given || to == format {
        return Ok(());
    }
    let to = name(to);
    let what = format!("{option} is only for {files}, and the output is of the format {to}");
    Err(Failure::new(what))
}
