//! JSON: values one after the other, tensors as `{"dtype": …, "shape": …, "data": …}`.

use tenarc::de::Limits;
use tenarc_convert::json::{self, Options};

use super::{Codec, Format, Lossy, NOT_KEPT, Sections, as_rows, tell, write_stream};
use crate::document::{Document, Reading};
use crate::failure::{Of, Result};
use crate::input::Input;
use crate::output::Target;

pub struct Json;

impl Codec for Json {
    fn extensions(&self) -> &'static [&'static str] {
        &["json", "jsonl", "ndjson"]
    }

    fn read(&self, input: Input, _: &Reading) -> Result<Document> {
        let mut messages = Vec::new();
        for value in json::values(input.reader()?, Limits::default()) {
            tenarc::append_to(&mut messages, &value.of("JSON")?)?;
        }
        Document::of_messages(input.name, Format::Json, messages)
    }

    fn write(&self, sections: Sections<'_, '_>, target: &Target, lossy: Lossy) -> Result<()> {
        let options = Options::default().with_losses(lossy.0);
        write_stream(target, &mut |mut writer| {
            for section in &mut *sections {
                let section = section?;
                let lost = match section.message() {
                    Some(item) => {
                        json::write_with(&mut writer, &tenarc::from_slice(item)?, &options)?
                    }
                    None => {
                        as_rows(&section, |value| Ok(json::export(value, &mut writer, &options)?))?
                    }
                };
                tell(&lost, None, NOT_KEPT);
                writer.write_all(b"\n")?;
            }
            Ok(())
        })
    }
}
