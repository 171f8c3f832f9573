//! From trees to JSON.

use std::collections::HashSet;
use std::io::Write;

use super::tensor::{is_special, is_typed};
use crate::convert::Losses;
use crate::convert::saved::{Fetch, Node, Path, Tree, unpacked};
use crate::convert::values::WriteValue;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::meta::{Order, TensorMeta};
use crate::number::Number;
use crate::options::Limits;
use crate::shape::Shape;
use crate::tensor::DynTensor;
use crate::value::{Value, from_value};

/// JSON, as it is written.
pub struct Format;

impl WriteValue for Format {
    fn write<T: Tree>(out: &mut dyn Write, fetch: &Fetch<'_>, value: &T) -> Result<Losses> {
        let (path, losses) = (Path::default(), Losses::default());
        let mut writer = Writer { out, fetch, depth: Limits::DEFAULT_DEPTH, path, losses };
        writer.item(value)?;
        Ok(writer.losses)
    }
}

/// Writes a value, and keeps account of what it loses.
struct Writer<'w> {
    out: &'w mut dyn Write,
    fetch: &'w Fetch<'w>,
    depth: usize,
    path: Path,
    losses: Losses,
}

impl Writer<'_> {
    fn put(&mut self, text: &str) -> Result<()> {
        self.out.write_all(text.as_bytes()).map_err(Error::io)
    }

    fn lose(&mut self, what: impl Into<String>) {
        self.losses.add(self.path.as_str(), what);
    }

    fn enter(&mut self) -> Result<()> {
        let deeper = self.depth.checked_sub(1);
        self.depth = deeper.ok_or_else(|| Error::limit("nested more deeply than is read"))?;
        Ok(())
    }

    fn item<T: Tree>(&mut self, item: &T) -> Result<()> {
        match item.node() {
            Node::Leaf => {
                let fetch = self.fetch;
                item.with_leaf(fetch, |value| self.leaf(value))
            }
            Node::Array(items) => {
                self.enter()?;
                self.put("[")?;
                for (index, item) in items.iter().enumerate() {
                    self.put(if index > 0 { "," } else { "" })?;
                    let before = self.path.enter(|| index.to_string());
                    self.item(item).map_err(|error| error.in_index(index as u64))?;
                    self.path.leave(before);
                }
                self.depth += 1;
                self.put("]")
            }
            Node::Map(entries) => self.map(entries),
            Node::Tag(tag, inner) => {
                self.lose(format!("tag {tag} around it is left out"));
                self.enter()?;
                self.item(inner)?;
                self.depth += 1;
                Ok(())
            }
        }
    }

    fn map<T: Tree>(&mut self, entries: &[(Value, T)]) -> Result<()> {
        self.enter()?;
        if is_special(entries) {
            self.lose("a map whose fields are those of a tensor, as which it would be read");
        }
        self.put("{")?;
        let mut keys = HashSet::new();
        for (key, item) in entries {
            // Texts and integers as they are, others in diagnostic notation.
            let text = key.to_string();
            let before = self.path.enter(|| text.clone());
            if key.as_str().is_none() {
                self.lose("a key that is no text, which is written as one");
            }
            if keys.contains(&text) {
                self.lose("an entry whose key stood there before is left out");
            } else {
                self.put(if keys.is_empty() { "" } else { "," })?;
                self.text(&text)?;
                self.put(":")?;
                self.item(item).map_err(|error| error.in_field(text.as_str()))?;
                keys.insert(text);
            }
            self.path.leave(before);
        }
        self.depth += 1;
        self.put("}")
    }

    fn leaf(&mut self, value: &Value) -> Result<()> {
        match value {
            Value::Null => self.put("null"),
            Value::Bool(value) => self.put(if *value { "true" } else { "false" }),
            Value::Integer(value) => self.put(&value.to_string()),
            // Digits that tell singles apart would be read as another double.
            Value::F32(value) if value.is_finite() => self.put(&format!("{:?}", f64::from(*value))),
            Value::F64(value) if value.is_finite() => self.put(&format!("{value:?}")),
            Value::F32(value) => self.no_number(f64::from(*value)),
            Value::F64(value) => self.no_number(*value),
            Value::Bytes(bytes) => {
                self.lose("a byte string, which is written as an array of numbers");
                self.put("[")?;
                for (index, byte) in bytes.iter().enumerate() {
                    self.put(if index > 0 { "," } else { "" })?;
                    self.put(&byte.to_string())?;
                }
                self.put("]")
            }
            Value::Text(text) => self.text(text),
            Value::Simple(number) => {
                self.lose(format!("simple value {number}, which is written as null"));
                self.put("null")
            }
            Value::Numbers(numbers) => {
                if let Some(plain) = unpacked(numbers) {
                    return self.item(&Value::Array(plain));
                }
                let shape = Shape::from([numbers.len()]);
                let meta = TensorMeta { dtype: numbers.dtype(), shape, order: Order::C };
                self.tensor(&DynTensor::from_parts(meta, numbers.0.clone())?)
            }
            Value::Tensor(tensor) => self.tensor(tensor),
            // Of all tags, those of integers beyond 127 bits are leaves.
            Value::Tag(..) | Value::Array(_) | Value::Map(_) => {
                self.lose("an integer beyond the 128 bits that are read");
                match from_value::<u128>(value.clone()) {
                    Ok(value) => self.put(&value.to_string()),
                    Err(_) => self.put("null"),
                }
            }
        }
    }

    fn no_number(&mut self, value: f64) -> Result<()> {
        self.lose(format!("{value}, which is written as null"));
        self.put("null")
    }

    fn text(&mut self, text: &str) -> Result<()> {
        self.put("\"")?;
        let mut rest = text;
        while let Some(at) = rest.find(|char| matches!(char, '"' | '\\' | ..'\u{20}')) {
            let (plain, special) = rest.split_at(at);
            self.put(plain)?;
            let mut chars = special.chars();
            match chars.next() {
                Some('\n') => self.put("\\n")?,
                Some('\r') => self.put("\\r")?,
                Some('\t') => self.put("\\t")?,
                Some(char @ ('"' | '\\')) => self.put(if char == '"' { "\\\"" } else { "\\\\" })?,
                Some(char) => self.put(&format!("\\u{:04x}", u32::from(char)))?,
                None => {}
            }
            rest = chars.as_str();
        }
        self.put(rest)?;
        self.put("\"")
    }

    /// As a [`Tensor`](crate::Tensor) is written by `serde_json`.
    fn tensor(&mut self, tensor: &DynTensor) -> Result<()> {
        let (dtype, typed) = (tensor.dtype(), is_typed(tensor.dtype()));
        if dtype.bits().is_none() {
            self.lose("a tensor of a dtype not known here, which would be read as a map");
        }
        if tensor.order() == Order::F && typed {
            self.lose("the order of a column-major tensor, which is written in row-major order");
            let turned = tensor.clone().into_row_major()?;
            return self.tensor(&turned);
        }
        self.put("{\"dtype\":")?;
        self.text(dtype.name())?;
        self.put(",\"shape\":[")?;
        for (index, dim) in tensor.shape().iter().enumerate() {
            self.put(if index > 0 { "," } else { "" })?;
            self.put(&dim.to_string())?;
        }
        self.put("]")?;
        if tensor.order() == Order::F {
            self.put(",\"order\":\"F\"")?;
        }
        self.put(",\"data\":[")?;
        let mut plain = Plain { out: &mut *self.out, dtype, payloads: false };
        let mut first = true;
        tensor.elements().for_each(&mut |number| {
            plain.put(if first { "" } else { "," })?;
            first = false;
            plain.number(number)
        })?;
        if plain.payloads {
            self.lose("the payloads of NaNs, of which JSON has only one");
        }
        self.put("]}")
    }
}

/// Elements as numbers.
struct Plain<'a> {
    out: &'a mut dyn Write,
    dtype: &'a DType,
    payloads: bool,
}

impl Plain<'_> {
    fn put(&mut self, text: &str) -> Result<()> {
        self.out.write_all(text.as_bytes()).map_err(Error::io)
    }

    fn number(&mut self, number: Number) -> Result<()> {
        match number {
            Number::Bool(value) => self.put(if value { "true" } else { "false" }),
            Number::Unsigned(value) => self.put(&value.to_string()),
            Number::Signed(value) => self.put(&value.to_string()),
            Number::Float(value) => self.float(value),
            Number::Complex(re, im) => {
                self.put("[")?;
                self.float(re)?;
                self.put(",")?;
                self.float(im)?;
                self.put("]")
            }
        }
    }

    fn float(&mut self, value: f64) -> Result<()> {
        if value.is_finite() {
            return match self.dtype {
                DType::F64 | DType::C128 => self.put(&format!("{value:?}")),
                #[allow(clippy::cast_possible_truncation)]
                _ => self.put(&format!("{:?}", value as f32)),
            };
        }
        self.payloads |= value.is_nan() && value.to_bits() != f64::NAN.to_bits();
        self.put(if value.is_nan() {
            "\"NaN\""
        } else if value > 0.0 {
            "\"inf\""
        } else {
            "\"-inf\""
        })
    }
}
