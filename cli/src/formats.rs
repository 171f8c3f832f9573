//! File formats: each a module that reads one into a [`Document`] and writes values as one.

pub mod archive;
mod arrow;
pub mod fetched;
mod json;
mod message;
mod msgpack;
mod npy;
mod onnx;
mod safetensors;
mod tenbin;
mod torch;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use tenarc::archive::Segment;
use tenarc::{Archive, OArchive};
use tenarc_convert::Losses;

use crate::document::{Document, Reading, Section};
use crate::failure::{Failure, Of, Result};
use crate::input::{Input, Source};
use crate::output::{Target, say};
use crate::written::Written;

/// A format that is read and written. Where one is added: here, in [`FORMATS`], and as a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Archive of tenarc
    #[value(name = "tenarc")]
    Archive,
    /// Messages: CBOR (RFC 8949) with typed arrays (RFC 8746)
    #[value(name = "cbor")]
    Message,
    /// JSON, tensors as {"dtype": …, "shape": …, "data": …}
    Json,
    /// MessagePack, arrays as msgpack-numpy has them
    Msgpack,
    /// safetensors: tensors by name; of a model in several files, its index
    Safetensors,
    /// numpy's npz: arrays by name
    Npz,
    /// numpy's npy: one array
    Npy,
    /// Arrow's IPC files and streams: tensors in columns
    Arrow,
    /// webdataset's tenbin
    #[value(name = "ten")]
    Tenbin,
    /// What torch.save writes, read only
    Torch,
    /// Initializers of ONNX models, read only
    Onnx,
}

/// Values to be written, one after the other.
pub type Sections<'a, 's> = &'a mut dyn Iterator<Item = Result<Section<'s>>>;

/// Whether what a format has no place for may be left out, or changed so that it fits.
#[derive(Clone, Copy, Debug)]
pub struct Lossy(pub bool);

/// What there is to know of a format.
pub trait Codec: Sync {
    /// The endings of names of its files.
    fn extensions(&self) -> &'static [&'static str];

    /// Whether a file that starts so is one.
    fn starts(&self, start: &[u8]) -> bool;

    /// What the input holds: an archive, messages, or a value whose tensors are fetched from the file.
    ///
    /// # Errors
    /// Where it cannot be read, or is none of this format.
    fn read(&self, input: Input, reading: &Reading) -> Result<Document>;

    /// Writes values; nothing takes its place at the target unless all were written.
    ///
    /// # Errors
    /// Where a value cannot be read, or not be kept in this format without loss, and where the target
    /// cannot be written.
    fn write(&self, sections: Sections<'_, '_>, target: &Target, lossy: Lossy) -> Result<()>;
}

/// The first that may have written the start of a file is taken to have.
const FORMATS: [(Format, &dyn Codec); 11] = [
    (Format::Archive, &archive::Archives),
    (Format::Safetensors, &safetensors::Safetensors),
    (Format::Torch, &torch::Torch),
    (Format::Npz, &npy::NpzFiles),
    (Format::Npy, &npy::Npy),
    (Format::Arrow, &arrow::Arrow),
    (Format::Tenbin, &tenbin::Tenbin),
    (Format::Onnx, &onnx::OnnxModels),
    (Format::Json, &json::Json),
    (Format::Msgpack, &msgpack::Msgpack),
    (Format::Message, &message::Messages),
];

pub fn codec(format: Format) -> &'static dyn Codec {
    let found = FORMATS.iter().find(|(known, _)| *known == format);
    found.map_or(&message::Messages, |(_, codec)| *codec)
}

/// The format that a name ends in.
pub fn by_extension(path: &Path) -> Option<Format> {
    if safetensors::is_index(path) {
        return Some(Format::Safetensors);
    }
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    let found = FORMATS.iter().find(|(_, codec)| codec.extensions().contains(&&*extension));
    found.map(|(format, _)| *format)
}

/// The format of an input: what its first bytes say, then its name.
///
/// # Errors
/// Where it cannot be read.
pub fn detect(path: &Path, input: &Input) -> Result<Format> {
    let start = input.start(256)?;
    if start.is_empty() {
        return Err(Failure::new(format!("{}: it is empty", input.name)));
    }
    if archive::Archives.starts(&start) {
        return Ok(Format::Archive);
    }
    if let Some(format) = by_extension(path).filter(|format| *format != Format::Archive) {
        return Ok(format);
    }
    let found = FORMATS.iter().find(|(_, codec)| codec.starts(&start));
    // An archive by name that does not start as one is damaged or something else: its reader says so.
    Ok(by_extension(path).or(found.map(|(format, _)| *format)).unwrap_or(Format::Message))
}

/// Writes to a target that is no archive.
pub fn write_stream(
    target: &Target,
    write: &mut dyn FnMut(&mut dyn Write) -> Result<()>,
) -> Result<()> {
    let mut writer = target.writer()?;
    write(&mut writer)?;
    writer.finish()
}

/// The one value that there must be, as a segment of an archive.
fn only(
    sections: Sections<'_, '_>,
    write: impl FnOnce(&Segment<'_, Source>) -> Result<()>,
) -> Result<()> {
    let several = || Failure::new("expected one value: choose it by --segment");
    let section = sections.next().ok_or_else(several)??;
    if sections.next().is_some() {
        return Err(several());
    }
    stored(&section, write)
}

/// Does something with a value as a segment of an archive: its own, or one in a temporary file that has no name.
fn stored<T>(
    section: &Section<'_>,
    write: impl FnOnce(&Segment<'_, Source>) -> Result<T>,
) -> Result<T> {
    if let Some(segment) = section.segment() {
        return write(segment);
    }
    let file = temporary()?;
    let mut out = OArchive::new(BufWriter::with_capacity(1 << 20, &file))?;
    out.save(&Written::whole(section))?;
    drop(out.finish()?);
    write(&Archive::new(Source::new(file))?.segment(0)?)
}

/// A file that has no name, and is gone with the process.
fn temporary() -> Result<File> {
    tempfile::tempfile().of("a temporary file, which TMPDIR says where to make")
}

/// Says that there are more than were listed.
pub fn more(count: u64, listed: usize) {
    if let Some(more) = count.checked_sub(listed as u64).filter(|more| *more > 0) {
        say(&format!("and {more} more"));
    }
}

/// Says what was lost, which was allowed.
fn tell(losses: &Losses) {
    for loss in losses.listed() {
        say(&format!("cannot be kept: {loss}"));
    }
    more(losses.count(), losses.listed().len());
}
