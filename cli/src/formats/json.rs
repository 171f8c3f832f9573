//! JSON: values one after the other, tensors as `{"dtype": …, "shape": …, "data": …}`.

use tenarc::convert::json::{self, Options};
use tenarc::{Limits, Numbers, Value};

use super::{Codec, Format, Lossy, Sections, tell, write_stream};
use crate::document::{Document, Reading};
use crate::failure::{Of, Result};
use crate::input::Input;
use crate::output::Target;
use crate::written;

pub struct Json;

impl Codec for Json {
    fn extensions(&self) -> &'static [&'static str] {
        &["json", "jsonl", "ndjson"]
    }

    fn starts(&self, start: &[u8]) -> bool {
        // A message may start with these bytes, too, but with no text behind them.
        let text = start.trim_ascii_start();
        let printable = text.iter().all(|&byte| byte >= b' ' || byte.is_ascii_whitespace());
        text.starts_with(b"{") && printable && text.len() > 1
            || text.starts_with(b"[") && printable && text.len() > 1
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
                let value = widened(written::value(&section, &section.root)?);
                tell(&json::write_with(&mut writer, &value, &options)?);
                writer.write_all(b"\n")?;
            }
            Ok(())
        })
    }
}

/// With singles as doubles: as which they are read, and in whose digits they are then the same numbers.
fn widened(value: Value) -> Value {
    match value {
        Value::F32(value) => Value::F64(value.into()),
        Value::Numbers(numbers) => match numbers.as_slice::<f32>() {
            Some(singles) => {
                let doubles = singles.iter().copied().map(f64::from);
                Value::Numbers(Box::new(Numbers::from(doubles.collect::<Vec<_>>())))
            }
            None => Value::Numbers(numbers),
        },
        Value::Array(items) => Value::Array(items.into_iter().map(widened).collect()),
        Value::Map(entries) => {
            Value::Map(entries.into_iter().map(|(key, value)| (key, widened(value))).collect())
        }
        Value::Tag(tag, inner) => Value::Tag(tag, Box::new(widened(*inner))),
        other => other,
    }
}
