//! webdataset's tenbin.

use std::fs::File;

use tenarc::tensor::Deferred;
use tenarc_convert::tenbin::{self, Options, TenFile};

use super::fetched::{Fetched, Reader, Structure};
use super::{Codec, Format, Lossy, NOT_KEPT, Sections, single, stored, tell, write_stream};
use crate::document::{Document, Reading};
use crate::failure::Result;
use crate::input::Input;
use crate::output::Target;

pub struct Tenbin;

impl Codec for Tenbin {
    fn extensions(&self) -> &'static [&'static str] {
        &["ten"]
    }

    fn starts(&self, start: &[u8]) -> bool {
        start.starts_with(b"~TenBin~")
    }

    fn read(&self, input: Input, _: &Reading) -> Result<Document> {
        let len = input.file.metadata()?.len();
        let file = TenFile::new(input.file, len)?;
        let structure = Structure::of(&file)?;
        let fetched = Fetched::numbered(Box::new(file), structure)?;
        Ok(Document::of_fetched(input.name, Format::Tenbin, fetched))
    }

    fn write(&self, sections: Sections<'_, '_>, target: &Target, lossy: Lossy) -> Result<()> {
        let options = Options::default().with_losses(lossy.0);
        // A sequence of pairs of a name and a tensor may be stored as columns.
        stored(&single(sections)?, |segment| {
            write_stream(target, &mut |writer| {
                tell(&tenbin::from_segment(segment, writer, &options)?, None, NOT_KEPT);
                Ok(())
            })
        })
    }
}

fn number(key: &str) -> tenarc::Result<usize> {
    key.parse().map_err(serde::ser::Error::custom)
}

impl Reader for TenFile<File> {
    fn tensor(&self, key: &str) -> tenarc::Result<Deferred<'_>> {
        self.deferred(number(key)?)
    }

    fn place(&self, key: &str) -> tenarc::Result<Option<(&File, u64)>> {
        Ok(Some((self.source(), self.position(number(key)?)?)))
    }
}
