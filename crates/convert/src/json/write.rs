//! Writes values as JSON.

use std::collections::HashSet;
use std::io::Write;

use tenarc::de::Limits;
use tenarc::tensor::Order;
use tenarc::{DType, DynTensor, Error, Result, Value};

use super::tensor::is_special;
use crate::Losses;
use crate::elements::{Number, each_number, is_typed};
use crate::meaning;
use crate::order;
use crate::saved::{Fetch, Node, Path, Tree, unpacked};
use crate::typed::Type;
use crate::values::WriteValue;

/// JSON as a format for [`WriteValue`].
pub struct Format;

impl WriteValue for Format {
    fn write<T: Tree>(
        out: &mut dyn Write,
        fetch: &Fetch<'_>,
        value: &T,
    ) -> Result<(Losses, usize)> {
        let mut writer = Writer::new(out, fetch);
        writer.item(value)?;
        // JSON has a form for tensors of any dtype, so all are kept.
        Ok((writer.losses, usize::MAX))
    }
}

/// Like [`Format`], but the rows of a table, which is an array of maps, are on lines of their own.
pub struct Lines;

impl WriteValue for Lines {
    fn write<T: Tree>(
        out: &mut dyn Write,
        fetch: &Fetch<'_>,
        value: &T,
    ) -> Result<(Losses, usize)> {
        let is_map = |row: &T| matches!(row.node(), Node::Map(_));
        match value.node() {
            Node::Array(rows) if !rows.is_empty() && rows.iter().all(is_map) => {
                let mut writer = Writer::new(out, fetch);
                writer.items(rows, "\n")?;
                Ok((writer.losses, usize::MAX))
            }
            _ => Format::write(out, fetch, value),
        }
    }
}

/// Writes a value, and records what is lost.
struct Writer<'w> {
    out: &'w mut dyn Write,
    fetch: &'w Fetch<'w>,
    depth: usize,
    path: Path,
    losses: Losses,
    /// The types about which there is a note. A table has many values of each.
    noted: HashSet<String>,
}

impl<'w> Writer<'w> {
    fn new(out: &'w mut dyn Write, fetch: &'w Fetch<'w>) -> Self {
        let (path, losses, noted) = Default::default();
        Self { out, fetch, depth: Limits::DEFAULT_DEPTH, path, losses, noted }
    }

    fn put(&mut self, text: &str) -> Result<()> {
        self.out.write_all(text.as_bytes()).map_err(Error::io)
    }

    fn lose(&mut self, what: impl Into<String>) {
        self.losses.add(self.path.as_str(), what);
    }

    fn enter(&mut self) -> Result<()> {
        let deeper = self.depth.checked_sub(1);
        self.depth = deeper
            .ok_or_else(|| Error::limit("the value is nested more deeply than readers allow"))?;
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
                self.items(items, ",")?;
                self.depth += 1;
                self.put("]")
            }
            Node::Map(entries) => self.map(entries),
            Node::Tag(tag, inner) => {
                self.without(format!("tag {tag} around it is left out"), inner)
            }
            Node::Named(of, inner) => self.named(of, inner),
        }
    }

    /// Writes a value of a named type as the text that people write for it, if there is one.
    fn named<T: Tree>(&mut self, of: &Type, inner: &T) -> Result<()> {
        if let Node::Leaf = inner.node() {
            let parameters = meaning::values(&of.parameters);
            let meant = |value: &Value| Ok(meaning::text(&of.name, &parameters, value));
            if let Some(text) = inner.with_leaf(self.fetch, meant)? {
                if !self.noted.contains(&of.name) {
                    self.losses.note(format!("JSON has no {of}: its values are written as texts"));
                    self.noted.insert(of.name.clone());
                }
                return self.text(&text);
            }
        }
        self.without(format!("the type {of} is left out"), inner)
    }

    /// Writes what is in a tag or of a type that the format does not have.
    fn without<T: Tree>(&mut self, what: String, inner: &T) -> Result<()> {
        self.lose(what);
        self.enter()?;
        self.item(inner)?;
        self.depth += 1;
        Ok(())
    }

    fn items<T: Tree>(&mut self, items: &[T], between: &str) -> Result<()> {
        for (index, item) in items.iter().enumerate() {
            self.put(if index > 0 { between } else { "" })?;
            let before = self.path.enter(|| index.to_string());
            self.item(item).map_err(|error| error.in_index(index as u64))?;
            self.path.leave(before);
        }
        Ok(())
    }

    fn map<T: Tree>(&mut self, entries: &[(Value, T)]) -> Result<()> {
        self.enter()?;
        if is_special(entries) {
            self.lose("a map with the keys of a tensor, which would be read as a tensor");
        }
        self.put("{")?;
        let mut keys = HashSet::new();
        for (key, item) in entries {
            // Texts are unchanged, integers are in decimal, and other keys are in diagnostic notation.
            let text = key.to_step().into_owned();
            let before = self.path.enter(|| text.clone());
            if key.as_str().is_none() {
                self.lose("a key that is not text, which is written as text");
            }
            if keys.contains(&text) {
                self.lose("an entry with the same key as an earlier one is left out");
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
            Value::F32(value) if value.is_finite() => self.put(&single(*value)),
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
                self.tensor(&DynTensor::from((**numbers).clone()))
            }
            Value::Tensor(tensor) => self.tensor(tensor),
            // Arrays, maps and most tags are not leaves. The only tags here are those of integers beyond `i128`.
            Value::Tag(..) | Value::Array(_) | Value::Map(_) => {
                if let Some(value) = value.as_u128() {
                    return self.put(&value.to_string());
                }
                self.lose("an integer of more than 128 bits, which is written as null");
                self.put("null")
            }
        }
    }

    fn no_number(&mut self, value: f64) -> Result<()> {
        self.lose(format!("{value}, which is written as null"));
        self.put("null")
    }

    fn text(&mut self, text: &str) -> Result<()> {
        serde_json::to_writer(&mut *self.out, text).map_err(|error| Error::io(error.into()))
    }

    /// Writes a tensor in the form in which `serde_json` writes a [`Tensor`](tenarc::Tensor).
    fn tensor(&mut self, tensor: &DynTensor) -> Result<()> {
        let (dtype, typed) = (tensor.dtype(), is_typed(tensor.dtype()));
        if dtype.bits().is_none() {
            self.lose("a tensor of an unknown dtype, which would be read as a map");
        }
        if tensor.order() == Order::F && typed {
            self.losses.note(order::TURNED);
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
        each_number(tensor, &mut |number| {
            plain.put(if first { "" } else { "," })?;
            first = false;
            plain.number(number)
        })?;
        if plain.payloads {
            self.lose("the payloads of NaNs, because JSON has only one NaN");
        }
        self.put("]}")
    }
}

/// Writes the elements of a tensor as numbers.
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
                _ => self.put(&single(value as f32)),
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

/// Returns digits that are read as this `f32` again by way of an `f64`, as most JSON readers do. Usually these are the
/// shortest digits that distinguish the `f32`. For a few values, such as 7.038531e-26, rounding those to `f64` and then
/// to `f32` gives a neighbour. They get the digits of the exact `f64` instead.
fn single(value: f32) -> String {
    let digits = format!("{value:?}");
    #[allow(clippy::cast_possible_truncation, clippy::float_cmp)]
    match digits.parse::<f64>() {
        Ok(double) if double as f32 == value => digits,
        _ => format!("{:?}", f64::from(value)),
    }
}
