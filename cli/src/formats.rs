//! File formats: each a module that reads one into a [`Document`] and writes values as one.

mod archive;
mod json;
mod message;
mod tensors;

use std::io::Write;
use std::path::Path;

use crate::document::{Document, Reading, Section};
use crate::failure::{Failure, Result};
use crate::input::Input;
use crate::output::Target;

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
    /// safetensors: tensors by name
    Safetensors,
    /// numpy's npz: arrays by name
    Npz,
    /// numpy's npy: one array
    Npy,
    /// webdataset's tenbin
    #[value(name = "ten")]
    Tenbin,
    /// What torch.save writes, read only
    Torch,
}

/// Whether what a format has no place for may be left out, or changed so that it fits.
#[derive(Clone, Copy, Debug)]
pub struct Lossy(pub bool);

/// What there is to know of a format.
pub trait Codec: Sync {
    /// The endings of names of its files.
    fn extensions(&self) -> &'static [&'static str];

    /// Whether a file that starts so is one.
    fn starts(&self, start: &[u8]) -> bool;

    /// What the input holds: an archive, or messages. A format that is far from both is read by way of an
    /// archive in a temporary file.
    ///
    /// # Errors
    /// Where it cannot be read, or is none of this format.
    fn read(&self, input: Input, reading: &Reading) -> Result<Document>;

    /// Writes values; nothing takes its place at the target unless all were written.
    ///
    /// # Errors
    /// Where a value cannot be read, or not be kept in this format without loss, and where the target
    /// cannot be written.
    fn write(
        &self,
        sections: &mut dyn Iterator<Item = Result<Section<'_>>>,
        target: &Target,
        lossy: Lossy,
    ) -> Result<()>;
}

const FORMATS: [(Format, &dyn Codec); 8] = [
    (Format::Archive, &archive::Archives),
    (Format::Safetensors, &tensors::Safetensors),
    (Format::Npz, &tensors::NpzFiles),
    (Format::Npy, &tensors::Npy),
    (Format::Tenbin, &tensors::Tenbin),
    (Format::Torch, &tensors::Torch),
    (Format::Json, &json::Json),
    (Format::Message, &message::Messages),
];

pub fn codec(format: Format) -> &'static dyn Codec {
    let found = FORMATS.iter().find(|(known, _)| *known == format);
    found.map_or(&message::Messages, |(_, codec)| *codec)
}

/// The format that a name ends in.
pub fn by_extension(path: &Path) -> Option<Format> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    let found = FORMATS.iter().find(|(_, codec)| codec.extensions().contains(&&*extension));
    found.map(|(format, _)| *format)
}

/// The format of an input: what its first bytes say, then its name.
///
/// # Errors
/// Where it cannot be read.
pub fn detect(path: &Path, input: &Input) -> Result<Format> {
    let start = input.start(64)?;
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
