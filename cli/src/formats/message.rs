//! Messages: one item of CBOR each, one behind the other.

use super::{Codec, Format, Lossy, write_stream};
use crate::document::{Document, Reading, Section};
use crate::failure::Result;
use crate::input::Input;
use crate::output::Target;
use crate::written::Written;

pub struct Messages;

impl Codec for Messages {
    fn extensions(&self) -> &'static [&'static str] {
        &["cbor", "cborseq"]
    }

    fn starts(&self, _: &[u8]) -> bool {
        // Any byte may start an item.
        true
    }

    fn read(&self, input: Input, _: &Reading) -> Result<Document> {
        let name = input.name.clone();
        Document::of_messages(name, Format::Message, input.contents()?)
    }

    fn write(
        &self,
        sections: &mut dyn Iterator<Item = Result<Section<'_>>>,
        target: &Target,
        _: Lossy,
    ) -> Result<()> {
        write_stream(target, &mut |mut writer| {
            for section in &mut *sections {
                let section = section?;
                let options = tenarc::EncodeOptions::default().with_typed_arrays(true);
                tenarc::to_writer_with(&mut writer, &Written::whole(&section), options)?;
            }
            Ok(())
        })
    }
}
