//! Arrow IPC files and streams: tensors in columns.

use std::path::Path;

use tenarc_convert::arrow::{self, ArrowFile, Export, Options};

use super::{Codec, Format, Lossy, NOT_KEPT, Sections, only, tell, write_stream};
use crate::document::{Document, Reading};
use crate::failure::Result;
use crate::input::Input;
use crate::output::Target;

pub struct Arrow;

impl Codec for Arrow {
    fn extensions(&self) -> &'static [&'static str] {
        &["arrow", "arrows", "feather"]
    }

    fn starts(&self, start: &[u8]) -> bool {
        start.starts_with(b"ARROW1\0\0")
    }

    fn read(&self, input: Input, _: &Reading) -> Result<Document> {
        Document::of_file(input.name, Format::Arrow, Box::new(ArrowFile::new(input.file)?))
    }

    fn write(&self, sections: Sections<'_, '_>, target: &Target, lossy: Lossy) -> Result<()> {
        let stream = target.path().and_then(Path::extension).is_some_and(|end| end == "arrows");
        let format = if stream { arrow::Format::Stream } else { arrow::Format::File };
        let options = Options::default().with_losses(lossy.0).with_format(format);
        only(sections, |value| {
            let export = Export::new(value)?;
            write_stream(target, &mut |writer| {
                tell(&export.to_writer(writer, &options)?, None, NOT_KEPT);
                Ok(())
            })
        })
    }
}
