//! The file formats. Their modules read a file into a [`Document`], and write values to a file.

pub mod archive;
mod converted;
mod detect;
mod message;
mod tables;
mod values;

pub use detect::{SELF_DESCRIBED, detect, is_marked};
pub use values::{Valued, Values};

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use tenarc_convert::{Format as Converted, Loss, Losses, Stored, safetensors, torch, written};

use crate::document::{Document, Reading, Section};
use crate::failure::{Failure, Of, Result};
use crate::input::{Input, shown};
use crate::output::{is_quiet, say};
use crate::target::{Target, TargetWriter};
use crate::text::{escaped, nearest};
use crate::written::Written;

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
    /// torch files, as torch.save writes them, indices of sharded models, and directories of distributed checkpoints, read only
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
    fn starts(self, start: &[u8]) -> bool {
        match self {
            Self::Archive => start.starts_with(&archive::MAGIC),
            // The length of the header (8 bytes, little-endian, below 100 MB), then the header, which is JSON.
            Self::Safetensors => {
                matches!(start, [_, _, _, len, 0, 0, 0, 0, b'{', ..] if *len < 6)
            }
            Self::Npy => start.starts_with(b"\x93NUMPY"),
            Self::Arrow => start.starts_with(b"ARROW1\0\0"),
            Self::Parquet => start.starts_with(b"PAR1"),
            Self::Tenbin => start.starts_with(b"~TenBin~"),
            Self::Gguf => start.starts_with(b"GGUF"),
            Self::Hdf5 => start.starts_with(b"\x89HDF\r\n\x1a\n"),
            // Newer PyTorch files are zip files, which only the names of their entries identify.
            Self::Torch => tenarc_convert::torch::is_legacy(start),
            _ => false,
        }
    }

    /// Opens the input as an archive, as messages, or as a value whose tensors are read in place.
    ///
    /// # Errors
    /// If it cannot be read, or is not of this format.
    pub fn read(self, input: Input, reading: &Reading) -> Result<Document> {
        // Parquet files are always read as tables.
        if reading.table && !matches!(self, Self::Arrow | Self::Parquet) {
            let found = name(self);
            let what = format!("--table is for Arrow files: the format of this one is {found}");
            return Err(Failure::new(what));
        }
        match (self, self.converted()) {
            (Self::Arrow, _) => tables::read_arrow(input, reading),
            (_, Some(of)) => converted::read(self, of, input, reading),
            (Self::Archive, _) => archive::read(input, reading),
            (Self::Parquet, _) => tables::read_parquet(input),
            _ => Document::of_messages(input.name.clone(), self, input.contents()?),
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
            Self::Torch => "cannot write PyTorch files: write safetensors instead",
            _ => return Ok(()),
        }))
    }

    /// Writes values. A target file is replaced only if all of them were written.
    ///
    /// # Errors
    /// If a value cannot be read, if this format cannot hold it and `lossy` is off, or if the target cannot
    /// be written.
    pub fn write(self, values: &mut Values<'_>, target: &Target, lossy: Lossy) -> Result<()> {
        self.check_writable()?;
        match (self, self.converted()) {
            (Self::Arrow, Some(of)) => tables::write_arrow(of, values, target, lossy),
            (_, Some(of)) => converted::write(of, values, target, lossy),
            (Self::Archive, _) => archive::write(values, target),
            (Self::Parquet, _) => tables::write_parquet(values, target, lossy),
            _ => message::write(values, target),
        }
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

/// Writes to a target that is not an archive. A new file is read back and compared before it replaces the old one.
pub fn write_stream(
    target: &Target,
    write: &mut dyn FnMut(&mut dyn Write) -> Result<()>,
) -> Result<()> {
    let save = |file: &File, path: &Path| {
        let done = written(file, path, |out| write(out).map_err(Failure::into_library));
        done.map_err(|error| Failure::while_writing(error, &target.name()))
    };
    if target.write_file(save)? {
        return Ok(());
    }
    let mut writer = target.writer()?;
    write(&mut writer)?;
    writer.finish()
}

/// Writes a target that is not an archive: a file with `to_file`, which can read the file back, and anything else with
/// `to_stream`. Prints what was lost.
fn write_file_or_stream(
    target: &Target,
    to_file: impl FnOnce(&File, &Path) -> tenarc::Result<Losses>,
    to_stream: impl FnOnce(&mut TargetWriter) -> Result<Losses>,
) -> Result<()> {
    let save = |file: &File, path: &Path| {
        let lost = to_file(file, path);
        let lost = lost.map_err(|error| Failure::while_writing(error, &target.name()))?;
        tell(&lost, None, NOT_KEPT);
        Ok(())
    };
    if target.write_file(save)? {
        return Ok(());
    }
    let mut writer = target.writer()?;
    tell(&to_stream(&mut writer)?, None, NOT_KEPT);
    writer.finish()
}

/// Calls `write` with a value without columns. Lists of numbers in a message become tensors. A value with columns is
/// first written to a temporary archive as rows, so that the rows need not all be in memory.
fn as_rows<T>(section: &Section<'_>, write: impl FnOnce(&dyn Stored) -> Result<T>) -> Result<T> {
    if let Some(stored) = section.stored().filter(|_| !section.root.holds_columns()) {
        return write(stored);
    }
    let value = Written::plain(section);
    if let Some(made) = Section::made(section.name(), &value)?
        && let Some(stored) = made.stored()
    {
        return write(stored);
    }
    let archive = values::temporary_archive(|out| values::save_temporary(out, None, &value))?;
    write(&archive.segment(0)?)
}

/// The name of the temporary file in error messages.
const TEMPORARY: &str = "a temporary file (TMPDIR sets the directory)";

/// Creates an unnamed temporary file, which the system removes when it is closed.
fn temporary() -> Result<File> {
    tempfile::tempfile().of(format!("cannot create {TEMPORARY}"))
}

/// The start of messages about content that a writer leaves out or changes.
const NOT_KEPT: &str = "cannot be kept";
/// The start of messages about content that a reader leaves out.
pub const NOT_READ: &str = "not read";

/// Prints what is left out or changed: one line for each tensor that is left out, and one line for the rest. `file` is
/// the name of the file, if the messages must name it.
pub fn tell(losses: &Losses, file: Option<&str>, how: &str) {
    let file = file.map_or_else(String::new, |file| format!("{file}: "));
    let (tensors, others): (Vec<_>, Vec<_>) =
        losses.listed().iter().partition(|loss| loss.is_tensor());
    for tensor in tensors {
        say(&format!("{file}{how}: {tensor}"));
    }
    let more = losses.count().saturating_sub(losses.listed().len() as u64);
    match (in_short(&others, more), others.is_empty()) {
        (_, true) if more > 0 => say(&format!("{file}{how}: {more} more")),
        (_, true) => {}
        (short, false) => say(&format!("{file}{how}: {short}")),
    }
    note(losses, &file);
}

/// Returns a short description of the content of a file that is not read. `None` if all of it is read.
pub fn not_read(losses: &Losses) -> Option<String> {
    let listed: Vec<_> = losses.listed().iter().collect();
    let beyond = losses.count().saturating_sub(listed.len() as u64);
    (!listed.is_empty()).then(|| in_short(&listed, beyond))
}

/// Prints one line about content that is left out by design.
pub fn note(losses: &Losses, file: &str) {
    if !losses.notes().is_empty() && !is_quiet() {
        say(&format!("{file}note: {}", losses.notes().join("; ")));
    }
}

/// Returns the first few losses as text, and the number of the others.
fn in_short(losses: &[&Loss], beyond: u64) -> String {
    const SHOWN: usize = 3;
    let shown: Vec<String> = losses.iter().take(SHOWN).map(ToString::to_string).collect();
    let shown = shown.join("; ");
    match (losses.len().saturating_sub(SHOWN) as u64).saturating_add(beyond) {
        0 => shown,
        more => format!("{shown}; and {more} more"),
    }
}
