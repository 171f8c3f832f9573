//! numpy's npy and npz: one array, and arrays by name.

use std::fs::File;
use std::io::{self, BufWriter, Seek as _};

use tenarc::tensor::{Deferred, ToTensor};
use tenarc::{DynTensor, Tensor};
use tenarc_convert::npy::{self, ConvertOptions, NpyFile, Npz, NpzWriter};
use tenarc_convert::{Losses, Names};

use super::fetched::{Fetched, Reader, Structure};
use super::{
    Codec, Format, From, Lossy, NOT_KEPT, Sections, only, single, stored, tell, temporary,
    write_stream,
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
        let npz = Npz::new(input.file)?;
        let (value, lost) = npz.value(Names::Stored)?;
        let structure = Structure::of(&value)?;
        drop(value);
        let fetched = Fetched::named(Box::new(npz), structure, lost)?;
        Ok(Document::of_fetched(input.name, Format::Npz, fetched))
    }

    fn write(&self, sections: Sections<'_, '_>, target: &Target, lossy: Lossy) -> Result<()> {
        let options = ConvertOptions::default().with_losses(lossy.0);
        let put = |from: &From<'_>, file: &File| {
            let mut out = NpzWriter::new(BufWriter::with_capacity(1 << 20, file))?;
            let losses = match from {
                From::Segment(segment) => npy::from_segment(segment, &mut out, &options),
                From::Parts(parts) => npy::from_parts(parts, &mut out, &options),
            };
            let losses = losses.and_then(|losses| out.finish().map(|_| losses));
            let losses = losses.map_err(|error| Failure::while_writing(error, &target.name()))?;
            tell(&losses, None, NOT_KEPT);
            Ok(())
        };
        only(sections, |from| {
            // In a zip file, a member's size comes before its data. It is known only afterwards, so the writer
            // must seek, but the target may be a pipe.
            if target.write_file(|file| put(&from, file))? {
                return Ok(());
            }
            let mut file = temporary()?;
            put(&from, &file)?;
            file.rewind()?;
            write_stream(target, &mut |writer| {
                io::copy(&mut file, writer)?;
                Ok(())
            })
        })
    }
}

impl Reader for Npz<File> {
    fn tensor(&self, key: &str) -> tenarc::Result<Deferred<'_>> {
        self.deferred(key)
    }

    fn place(&self, key: &str) -> tenarc::Result<Option<(&File, u64)>> {
        Ok(self.position(key)?.map(|at| (self.source(), at)))
    }

    fn verify(&self) -> tenarc::Result<Option<String>> {
        // Reading an array compares its checksum, so only the other members are left.
        let arrays = self.names().filter(|name| self.info(name).is_ok()).count();
        let others = self.members().len() - arrays;
        let unchecked = || match others {
            1 => "1 member is not an array and was not checked".to_owned(),
            _ => format!("{others} members are not arrays and were not checked"),
        };
        Ok((others > 0).then(unchecked))
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
        let file = NpyFile::new(input.file)?;
        let structure = Structure::of(&Tensor(file.deferred()))?;
        let fetched = Fetched::named(Box::new(file), structure, Losses::default())?;
        Ok(Document::of_fetched(input.name, Format::Npy, fetched))
    }

    fn write(&self, sections: Sections<'_, '_>, target: &Target, _: Lossy) -> Result<()> {
        let section = single(sections)?;
        stored(&section, |segment| {
            let what = "an npy file holds exactly one tensor: use `tenarc get` to save one";
            segment.info("").map_err(|_| Failure::new(what))?;
            let tensor: Tensor<DynTensor> = segment.load()?;
            let tensor: &dyn ToTensor = &*tensor;
            write_stream(target, &mut |writer| Ok(npy::write(writer, &tensor)?))
        })
    }
}

impl Reader for NpyFile<File> {
    fn tensor(&self, _: &str) -> tenarc::Result<Deferred<'_>> {
        Ok(self.deferred())
    }

    fn place(&self, _: &str) -> tenarc::Result<Option<(&File, u64)>> {
        Ok(self.position().map(|at| (self.source(), at)))
    }
}
