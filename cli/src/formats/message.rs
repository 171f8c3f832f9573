//! CBOR messages: one item for each value, one after the other.

use super::{Codec, Format, Lossy, Sections, write_stream};
use crate::document::{Document, Reading};
use crate::failure::Result;
use crate::input::Input;
use crate::output::Target;
use crate::written::Written;

pub struct Messages;

impl Codec for Messages {
    fn extensions(&self) -> &'static [&'static str] {
        &["cbor", "cborseq"]
    }

    fn read(&self, input: Input, _: &Reading) -> Result<Document> {
        let messages = input.contents()?;
        Document::of_messages(input.name, Format::Message, messages)
    }

    fn write(&self, sections: Sections<'_, '_>, target: &Target, _: Lossy) -> Result<()> {
        let name = target.name();
        write_stream(target, &mut |mut writer| {
            for section in &mut *sections {
                let section = section?;
                let options = tenarc::ser::EncodeOptions::default().with_typed_arrays(true);
                let value = Written::plain(&section);
                tenarc::ser::to_writer_with(&mut writer, &value, options)
                    .map_err(|error| value.failure(error, &name))?;
            }
            Ok(())
        })
    }
}
