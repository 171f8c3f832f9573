//! numpy's npy and npz: one array, and arrays by name.

use std::fs::File;
use std::io::{self, BufWriter, Seek as _};

use tenarc::inspect::{Event, Form};
use tenarc::tensor::ToTensor;
use tenarc_convert::Stored;
use tenarc_convert::npy::{self, ConvertOptions, NpyFile, Npz, NpzWriter};

use super::{
    Codec, Format, Lossy, NOT_KEPT, Sections, as_rows, only, single, tell, temporary, write_stream,
};
use crate::document::{Document, Reading};
use crate::failure::{Failure, Result};
use crate::input::Input;
use crate::output::Target;

pub struct NpzFiles;
pub struct Npy;

impl Codec for NpzFiles {
    fn extensions(&self) -> &'static [&'static str] {
        &["npz"]
    }

    fn read(&self, input: Input, _: &Reading) -> Result<Document> {
        Document::of_file(input.name, Format::Npz, Box::new(Npz::new(input.file)?))
    }

    fn write(&self, sections: Sections<'_, '_>, target: &Target, lossy: Lossy) -> Result<()> {
        let options = ConvertOptions::default().with_losses(lossy.0);
        let put = |value: &dyn Stored, file: &File| {
            let mut out = NpzWriter::new(BufWriter::with_capacity(1 << 20, file))?;
            let losses = npy::export(value, &mut out, &options);
            let losses = losses.and_then(|losses| out.finish().map(|_| losses));
            let losses = losses.map_err(|error| Failure::while_writing(error, &target.name()))?;
            tell(&losses, None, NOT_KEPT);
            Ok(())
        };
        only(sections, |value| {
            // In a zip file, a member's size comes before its data. It is known only afterwards, so the writer
            // must seek, but the target may be a pipe.
            if target.write_file(|file| put(value, file))? {
                return Ok(());
            }
            let mut file = temporary()?;
            put(value, &file)?;
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
        Document::of_file(input.name, Format::Npy, Box::new(NpyFile::new(input.file)?))
    }

    fn write(&self, sections: Sections<'_, '_>, target: &Target, _: Lossy) -> Result<()> {
        let section = single(sections)?;
        as_rows(&section, |value| {
            let mut items = value.items()?;
            let first = loop {
                match items.next().transpose()?.map(|item| item.event) {
                    Some(Event::Tag(_)) => {}
                    other => break other,
                }
            };
            if !matches!(first, Some(Event::Payload(payload)) if payload.form != Form::Bytes) {
                let what = "an npy file holds exactly one tensor: use `tenarc get` to save one";
                return Err(Failure::new(what));
            }
            let tensor = value.tensor(0..value.metadata()?.len())?;
            let tensor: &dyn ToTensor = &tensor;
            write_stream(target, &mut |writer| Ok(npy::write(writer, &tensor)?))
        })
    }
}
