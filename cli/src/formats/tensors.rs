//! Formats of tensors alone, read by way of an archive in a temporary file.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Seek as _};

use tenarc::convert::npy::{self, ConvertOptions, Npz, NpzWriter};
use tenarc::convert::safetensors::{self, SafeTensors};
use tenarc::convert::tenbin;
use tenarc::convert::torch::TorchFile;
use tenarc::{Archive, DynTensor, OArchive, Segment, Tensor, ToTensor};

use super::{Codec, Format, Lossy, write_stream};
use crate::document::{Document, Reading, Section};
use crate::failure::{Failure, Result};
use crate::input::{Input, Source};
use crate::output::{Target, say};
use crate::written::Written;

pub struct Safetensors;
pub struct NpzFiles;
pub struct Npy;
pub struct Tenbin;
pub struct Torch;

type Temporary<'f> = OArchive<BufWriter<&'f File>>;

/// An archive in a temporary file that has no name.
fn archive(put: impl FnOnce(&mut Temporary<'_>) -> Result<()>) -> Result<Archive<Source>> {
    let file = tempfile::tempfile()?;
    let mut out = OArchive::new(BufWriter::with_capacity(1 << 20, &file))?;
    put(&mut out)?;
    drop(out.finish()?);
    Ok(Archive::new(Source::new(file))?)
}

fn document(
    input: Input,
    format: Format,
    fill: impl FnOnce(&File, &mut Temporary<'_>) -> Result<()>,
) -> Result<Document> {
    let archive = archive(|out| fill(&input.file, out))?;
    Ok(Document::of_archive(input.name, format, archive))
}

type Sections<'a, 's> = &'a mut dyn Iterator<Item = Result<Section<'s>>>;

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
    if let Some(segment) = section.segment() {
        return write(segment);
    }
    let archive = archive(|out| {
        out.save(&Written::whole(&section))?;
        Ok(())
    })?;
    write(&archive.segment(0)?)
}

/// Says what was lost, which was allowed.
fn tell(losses: &tenarc::convert::Losses) {
    if !losses.is_empty() {
        say(&losses.to_string());
    }
}

impl Codec for Safetensors {
    fn extensions(&self) -> &'static [&'static str] {
        &["safetensors"]
    }

    fn starts(&self, start: &[u8]) -> bool {
        // The length of a header below 100 MB, and the header.
        matches!(start, [_, _, _, len, 0, 0, 0, 0, b'{', ..] if *len < 6)
    }

    fn read(&self, input: Input, _: &Reading) -> Result<Document> {
        document(input, Format::Safetensors, |file, out| {
            let file = SafeTensors::new(file)?;
            out.save(&file.flat()?)?;
            Ok(())
        })
    }

    fn write(&self, sections: Sections<'_, '_>, target: &Target, lossy: Lossy) -> Result<()> {
        only(sections, |segment| {
            let export = safetensors::Export::new(segment)?;
            let options = safetensors::Options::default().with_losses(lossy.0);
            write_stream(target, &mut |writer| {
                tell(&export.to_writer(writer, &options)?);
                Ok(())
            })
        })
    }
}

impl Codec for NpzFiles {
    fn extensions(&self) -> &'static [&'static str] {
        &["npz"]
    }

    fn starts(&self, start: &[u8]) -> bool {
        start.starts_with(b"PK\x03\x04") || start.starts_with(b"PK\x05\x06")
    }

    fn read(&self, input: Input, _: &Reading) -> Result<Document> {
        document(input, Format::Npz, |file, out| {
            npy::into_archive(&Npz::new(file)?, out, &ConvertOptions::default())?;
            Ok(())
        })
    }

    fn write(&self, sections: Sections<'_, '_>, target: &Target, lossy: Lossy) -> Result<()> {
        only(sections, |segment| {
            let options = ConvertOptions::default().with_flattened(true).with_losses(lossy.0);
            // Sizes in front of members are known behind them.
            let mut file = tempfile::tempfile()?;
            let mut out = NpzWriter::new(BufWriter::new(&file))?;
            tell(&npy::from_segment(segment, &mut out, &options)?);
            drop(out.finish()?);
            file.rewind()?;
            write_stream(target, &mut |writer| {
                io::copy(&mut file, writer)?;
                Ok(())
            })
        })
    }
}

impl Codec for Npy {
    fn extensions(&self) -> &'static [&'static str] {
        &["npy"]
    }

    fn starts(&self, start: &[u8]) -> bool {
        start.starts_with(b"\x93NUMPY")
    }

    fn read(&self, input: Input, _: &Reading) -> Result<Document> {
        document(input, Format::Npy, |file, out| {
            let mut reader = BufReader::new(file);
            let tensor = npy::read(&mut reader)?;
            if !io::BufRead::fill_buf(&mut reader)?.is_empty() {
                return Err(Failure::new("expected one array, found more behind it"));
            }
            out.save(&Tensor(tensor))?;
            Ok(())
        })
    }

    fn write(&self, sections: Sections<'_, '_>, target: &Target, _: Lossy) -> Result<()> {
        only(sections, |segment| {
            let tensor: Tensor<DynTensor> = segment.load().map_err(|error| {
                Failure::new(format!("an npy file holds one tensor, and nothing else: {error}"))
            })?;
            let tensor: &dyn ToTensor = &*tensor;
            write_stream(target, &mut |writer| Ok(npy::write(writer, &tensor)?))
        })
    }
}

impl Codec for Tenbin {
    fn extensions(&self) -> &'static [&'static str] {
        &["ten"]
    }

    fn starts(&self, start: &[u8]) -> bool {
        start.starts_with(b"~TenBin~")
    }

    fn read(&self, input: Input, _: &Reading) -> Result<Document> {
        document(input, Format::Tenbin, |file, out| {
            tenbin::into_archive(file, file.metadata()?.len(), out)?;
            Ok(())
        })
    }

    fn write(&self, sections: Sections<'_, '_>, target: &Target, _: Lossy) -> Result<()> {
        only(sections, |segment| {
            write_stream(target, &mut |writer| Ok(tenbin::from_archive(segment, writer)?))
        })
    }
}

impl Codec for Torch {
    fn extensions(&self) -> &'static [&'static str] {
        &["pt", "pth", "bin"]
    }

    fn starts(&self, _: &[u8]) -> bool {
        // A zip file, as npz are.
        false
    }

    fn read(&self, input: Input, _: &Reading) -> Result<Document> {
        document(input, Format::Torch, |file, out| {
            let file = TorchFile::new(file)?;
            if !file.losses().is_empty() {
                return Err(Failure::new(file.losses().to_string()));
            }
            file.verify()?;
            out.save(&file.flat()?)?;
            Ok(())
        })
    }

    fn write(&self, _: Sections<'_, '_>, _: &Target, _: Lossy) -> Result<()> {
        Err(Failure::new("files of PyTorch are read, and not written: write safetensors"))
    }
}
