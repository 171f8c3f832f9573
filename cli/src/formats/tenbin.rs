//! webdataset's tenbin.

use tenarc_convert::tenbin::{self, Options, TenFile};

use super::{Codec, Format, Lossy, NOT_KEPT, Sections, as_rows, single, tell, write_stream};
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
        Document::of_file(input.name, Format::Tenbin, Box::new(TenFile::new(input.file, len)?))
    }

    fn write(&self, sections: Sections<'_, '_>, target: &Target, lossy: Lossy) -> Result<()> {
        let options = Options::default().with_losses(lossy.0);
        // A sequence of pairs of a name and a tensor may be stored as columns.
        as_rows(&single(sections)?, |value| {
            write_stream(target, &mut |writer| {
                tell(&tenbin::export(value, writer, &options)?, None, NOT_KEPT);
                Ok(())
            })
        })
    }
}
