//! MessagePack, with arrays as in msgpack-numpy: values one after the other.

use tenarc::de::Limits;
use tenarc_convert::msgpack::{self, Options};

use super::{Codec, Format, Lossy, NOT_KEPT, Sections, as_rows, tell, write_stream};
use crate::document::{Document, Reading};
use crate::failure::{Of, Result};
use crate::input::Input;
use crate::output::Target;

pub struct Msgpack;

impl Codec for Msgpack {
    fn extensions(&self) -> &'static [&'static str] {
        &["msgpack", "mpk"]
    }

    fn read(&self, input: Input, _: &Reading) -> Result<Document> {
        let mut messages = Vec::new();
        for value in msgpack::values(input.reader()?, Limits::default()) {
            tenarc::append_to(&mut messages, &value.of("MessagePack")?)?;
        }
        Document::of_messages(input.name, Format::Msgpack, messages)
    }

    fn write(&self, sections: Sections<'_, '_>, target: &Target, lossy: Lossy) -> Result<()> {
        let options = Options::default().with_losses(lossy.0);
        write_stream(target, &mut |mut writer| {
            for section in &mut *sections {
                let section = section?;
                let lost = match section.message() {
                    Some(item) => {
                        msgpack::write_with(&mut writer, &tenarc::from_slice(item)?, &options)?
                    }
                    None => as_rows(&section, |value| {
                        Ok(msgpack::export(value, &mut writer, &options)?)
                    })?,
                };
                tell(&lost, None, NOT_KEPT);
            }
            Ok(())
        })
    }
}
