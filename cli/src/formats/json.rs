//! JSON: values that it can hold without loss, tensors as `{"dtype": …, "shape": …, "data": …}`.

use tenarc::{DType, DynTensor, Order, Value};

use super::{Codec, Format, Lossy, write_stream};
use crate::document::{Document, Reading, Section};
use crate::elements;
use crate::failure::{Failure, Of, Result};
use crate::input::Input;
use crate::node::{Form, Kind, Node};
use crate::output::Target;
use crate::text::quoted;
use crate::written::Written;

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
        let name = input.name.clone();
        let text = input.contents()?;
        let mut messages = Vec::new();
        for value in serde_json::Deserializer::from_slice(&text).into_iter::<Value>() {
            let value = with_tensors(value?).of("JSON")?;
            tenarc::append_to(&mut messages, &value)?;
        }
        Document::of_messages(name, Format::Json, messages)
    }

    fn write(
        &self,
        sections: &mut dyn Iterator<Item = Result<Section<'_>>>,
        target: &Target,
        _: Lossy,
    ) -> Result<()> {
        write_stream(target, &mut |writer| {
            for section in &mut *sections {
                let section = section?;
                check(&section, &section.root, &mut Vec::new())?;
                serde_json::to_writer(&mut *writer, &Written::whole(&section))?;
                writer.write_all(b"\n")?;
            }
            Ok(())
        })
    }
}

/// The value with a tensor for each map of dtype, shape and data that makes one.
fn with_tensors(value: Value) -> Result<Value> {
    Ok(match value {
        Value::Array(items) => {
            Value::Array(items.into_iter().map(with_tensors).collect::<Result<_>>()?)
        }
        Value::Map(entries) => match tensor(&entries)? {
            Some(tensor) => Value::Tensor(Box::new(tensor)),
            None => {
                let inside = |(key, value)| Ok((key, with_tensors(value)?));
                Value::Map(entries.into_iter().map(inside).collect::<Result<_>>()?)
            }
        },
        other => other,
    })
}

fn tensor(entries: &[(Value, Value)]) -> Result<Option<DynTensor>> {
    let [(first, Value::Text(dtype)), (second, Value::Array(shape)), (third, Value::Array(data))] =
        entries
    else {
        return Ok(None);
    };
    let keys = [first, second, third].map(Value::as_str);
    if keys != [Some("dtype"), Some("shape"), Some("data")] {
        return Ok(None);
    }
    let shape = shape.iter().map(|dim| usize::try_from(dim.as_integer()?).ok());
    let Some(shape) = shape.collect::<Option<Vec<_>>>() else { return Ok(None) };
    let dtype = DType::from_name(dtype);
    let mut bytes = Vec::new();
    for element in data {
        elements::encode(&dtype, element, &mut bytes).ok_or_else(|| {
            let name = quoted(dtype.name());
            Failure::new(format!("a tensor of {name} with the element {element}, which is none"))
        })?;
    }
    Ok(Some(DynTensor::new(dtype, &shape, Order::C, bytes)?))
}

/// That JSON can hold the value so that it comes back.
fn check(section: &Section<'_>, node: &Node, path: &mut Vec<String>) -> Result<()> {
    let refused = |what: &str, path: &[String]| {
        let at = if path.is_empty() {
            String::new()
        } else {
            format!(" at {}", quoted(&path.join(".")))
        };
        Err(Failure::new(format!("JSON cannot hold {what}{at} without loss")))
    };
    match &node.kind {
        Kind::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                path.push(at.to_string());
                check(section, item, path)?;
                path.pop();
            }
        }
        Kind::Map(entries) => {
            for (key, value) in entries {
                match &key.step {
                    Some(step) if key.is_text => path.push(step.clone()),
                    _ => return refused("a key that is no text", path),
                }
                check(section, value, path)?;
                path.pop();
            }
        }
        Kind::Tag(tag, _) => return refused(&format!("tag {tag}"), path),
        Kind::Payload(payload) => match payload.form {
            Form::Bytes => return refused("bytes", path),
            Form::Numbers if !is_finite(section, node, &payload.dtype)? => {
                return refused("NaN and infinities", path);
            }
            Form::Numbers => {}
            Form::Tensor if elements::is_native(&payload.dtype) => {}
            Form::Tensor => {
                let what = format!("a tensor of {}", quoted(payload.dtype.name()));
                return refused(&what, path);
            }
        },
        Kind::Leaf => {
            let what = match tenarc::from_slice(section.item(&node.range))? {
                Value::Bytes(_) => "bytes",
                Value::F64(value) if !value.is_finite() => "NaN and infinities",
                Value::F32(value) if !value.is_finite() => "NaN and infinities",
                Value::Integer(value)
                    if i64::try_from(value).is_err() && u64::try_from(value).is_err() =>
                {
                    "an integer beyond 64 bits"
                }
                Value::Tag(..) => "an integer beyond 64 bits",
                Value::Simple(_) => "a simple value",
                _ => return Ok(()),
            };
            return refused(what, path);
        }
    }
    Ok(())
}

/// Whether all numbers of a sequence are finite: those of tensors have names.
fn is_finite(section: &Section<'_>, node: &Node, dtype: &DType) -> Result<bool> {
    let mut numbers = Vec::new();
    elements::widen(dtype, &section.payload_bytes(node)?, &mut numbers);
    Ok(numbers.iter().all(|number| number.is_finite()))
}
