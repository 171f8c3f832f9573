//! Writes values as MessagePack.

use std::collections::HashSet;
use std::io::Write;
use std::mem;

use rmp::encode::{self, ValueWriteError};
use tenarc::de::Limits;
use tenarc::tensor::Order;
use tenarc::{DType, DynTensor, Error, Result, Value};

use super::flax;
use super::item::{DATA, EXTENSION};
use super::numpy::is_special;
use super::read::Reader;
use crate::Losses;
use crate::input::Stream;
use crate::numpy::descr_of;
use crate::saved::{Fetch, Node, Path, Tree, unpacked};
use crate::values::{WriteValue, only};

/// MessagePack as a format for [`WriteValue`].
pub struct Format;

impl WriteValue for Format {
    fn write<T: Tree>(
        out: &mut dyn Write,
        fetch: &Fetch<'_>,
        value: &T,
    ) -> Result<(Losses, usize)> {
        let (path, losses) = (Path::default(), Losses::default());
        let mut writer = Writer { out, fetch, depth: Limits::DEFAULT_DEPTH, path, losses, kept: 0 };
        writer.item(value)?;
        Ok((writer.losses, writer.kept))
    }
}

/// Writes a value, and records what is lost.
struct Writer<'w> {
    out: &'w mut dyn Write,
    fetch: &'w Fetch<'w>,
    depth: usize,
    path: Path,
    losses: Losses,
    /// The number of tensors that were written.
    kept: usize,
}

impl Writer<'_> {
    fn nil(&mut self) -> Result<()> {
        encode::write_nil(&mut self.out).map_err(Error::io)
    }

    fn bool(&mut self, value: bool) -> Result<()> {
        encode::write_bool(&mut self.out, value).map_err(Error::io)
    }

    fn lose(&mut self, what: impl Into<String>) {
        self.losses.add(self.path.as_str(), what);
    }

    fn item<T: Tree>(&mut self, item: &T) -> Result<()> {
        match item.node() {
            Node::Leaf => {
                let fetch = self.fetch;
                item.with_leaf(fetch, |value| self.leaf(value))
            }
            Node::Array(items) => {
                self.enter()?;
                self.array_head(items.len())?;
                for (index, item) in items.iter().enumerate() {
                    let before = self.path.enter(|| index.to_string());
                    self.item(item).map_err(|error| error.in_index(index as u64))?;
                    self.path.leave(before);
                }
                self.depth += 1;
                Ok(())
            }
            Node::Map(entries) => self.map(entries),
            Node::Tag(tag, inner) => {
                self.without(format!("tag {tag} around it is left out"), inner)
            }
            Node::Named(of, inner) => self.without(format!("the type {of} is left out"), inner),
        }
    }

    /// Writes what is in a tag or of a type that the format does not have.
    fn without<T: Tree>(&mut self, what: String, inner: &T) -> Result<()> {
        self.lose(what);
        self.enter()?;
        self.item(inner)?;
        self.depth += 1;
        Ok(())
    }

    fn enter(&mut self) -> Result<()> {
        let deeper = self.depth.checked_sub(1);
        self.depth = deeper
            .ok_or_else(|| Error::limit("the value is nested more deeply than readers allow"))?;
        Ok(())
    }

    fn map<T: Tree>(&mut self, entries: &[(Value, T)]) -> Result<()> {
        if self.as_extension(entries)? {
            return Ok(());
        }
        self.enter()?;
        if is_special(entries) {
            self.lose(
                "a map with the keys of a numpy array or an extension, which would be read as one",
            );
        }
        let mut keys = HashSet::new();
        let mut once = Vec::with_capacity(entries.len());
        for (key, item) in entries {
            let before = self.path.enter(|| key.to_step().into_owned());
            let (written, losses, kept) =
                self.apart(key).map_err(|error| error.in_field(key.to_step()))?;
            if keys.insert(as_read(key, &written)?) {
                self.losses.extend(losses);
                self.kept += kept;
                once.push((key, written, item));
            } else {
                self.lose("an entry with the same key as an earlier one is left out");
            }
            self.path.leave(before);
        }
        drop(keys);
        encode::write_map_len(&mut self.out, length(once.len())?).map_err(failed)?;
        for (key, written, item) in once {
            let before = self.path.enter(|| key.to_step().into_owned());
            self.out.write_all(&written).map_err(Error::io)?;
            self.item(item).map_err(|error| error.in_field(key.to_step()))?;
            self.path.leave(before);
        }
        self.depth += 1;
        Ok(())
    }

    /// Writes a key to memory. Returns its bytes, its losses and its number of tensors.
    fn apart(&mut self, key: &Value) -> Result<(Vec<u8>, Losses, usize)> {
        let mut bytes = Vec::new();
        let mut writer = Writer {
            out: &mut bytes,
            fetch: self.fetch,
            depth: self.depth,
            path: mem::take(&mut self.path),
            losses: Losses::default(),
            kept: 0,
        };
        let written = writer.item(key);
        let Writer { path, losses, kept, .. } = writer;
        self.path = path;
        written.map(|()| (bytes, losses, kept))
    }

    /// Writes a map as an extension, if it has the form in which extensions are read. Returns whether it has this form.
    fn as_extension<T: Tree>(&mut self, entries: &[(Value, T)]) -> Result<bool> {
        let [(kind, number), (data, bytes)] = entries else { return Ok(false) };
        if kind.as_str() != Some(EXTENSION) || data.as_str() != Some(DATA) {
            return Ok(false);
        }
        let fetch = self.fetch;
        let number = number.with_leaf(fetch, |value| Ok(value.as_i128()))?;
        let Some(kind) = number.and_then(|number| i8::try_from(number).ok()) else {
            return Ok(false);
        };
        bytes.with_leaf(fetch, |value| match value {
            Value::Bytes(data) => {
                if flax::is_special(kind, data) {
                    self.lose("an extension that would be read as an array of flax");
                }
                self.extension(kind, data).map(|()| true)
            }
            _ => Ok(false),
        })
    }

    fn leaf(&mut self, value: &Value) -> Result<()> {
        match value {
            Value::Null => self.nil(),
            Value::Bool(value) => self.bool(*value),
            Value::Integer(value) => self.integer(*value),
            Value::F32(value) => encode::write_f32(&mut self.out, *value).map_err(failed),
            Value::F64(value) => encode::write_f64(&mut self.out, *value).map_err(failed),
            Value::Bytes(bytes) => self.bytes(bytes),
            Value::Text(text) => self.text(text),
            Value::Simple(number) => {
                self.lose(format!("simple value {number}, which is written as nil"));
                self.nil()
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
                if value.is_integer() {
                    return self.wide_integer(&value.to_string());
                }
                self.lose("an integer of more than 128 bits, which is written as nil");
                self.nil()
            }
        }
    }

    fn integer(&mut self, value: i128) -> Result<()> {
        let written = match (u64::try_from(value), i64::try_from(value)) {
            (Ok(value), _) => encode::write_uint(&mut self.out, value),
            (_, Ok(value)) => encode::write_sint(&mut self.out, value),
            _ => return self.wide_integer(&value.to_string()),
        };
        written.map(drop).map_err(failed)
    }

    fn wide_integer(&mut self, digits: &str) -> Result<()> {
        self.lose("an integer of more than 64 bits, which is written as a string");
        self.text(digits)
    }

    fn array_head(&mut self, len: usize) -> Result<()> {
        encode::write_array_len(&mut self.out, length(len)?).map(drop).map_err(failed)
    }

    fn text(&mut self, text: &str) -> Result<()> {
        length(text.len())?;
        encode::write_str(&mut self.out, text).map_err(failed)
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        length(bytes.len())?;
        encode::write_bin(&mut self.out, bytes).map_err(failed)
    }

    fn extension(&mut self, kind: i8, data: &[u8]) -> Result<()> {
        encode::write_ext_meta(&mut self.out, length(data.len())?, kind).map_err(failed)?;
        self.out.write_all(data).map_err(Error::io)
    }

    fn tensor(&mut self, tensor: &DynTensor) -> Result<()> {
        let dtype = tensor.dtype();
        if *dtype == DType::BF16 {
            self.lose("elements of bf16, which are written as f32 of the same values");
            let widened = tensor.as_slice::<half::bf16>()?.iter().map(|value| value.to_f32());
            let widened = DynTensor::from_vec(tensor.shape(), tensor.order(), widened.collect())?;
            return self.tensor(&widened);
        }
        let Some(descr) = descr_of(dtype) else {
            let name = dtype.name().escape_debug();
            let what = format!("a tensor of {name}, which numpy does not have, is written as nil");
            self.losses.add_tensor(self.path.as_str(), what);
            return self.nil();
        };
        if tensor.order() == Order::F {
            self.losses.note(crate::order::TURNED);
            let turned = tensor.clone().into_row_major()?;
            return self.array(descr, &turned);
        }
        self.array(descr, tensor)
    }

    /// Writes an array or a scalar byte for byte as msgpack-numpy does.
    fn array(&mut self, descr: &str, tensor: &DynTensor) -> Result<()> {
        let bytes = tensor.le_bytes();
        // A tensor without dimensions is written as a scalar of numpy, which has no dimensions either.
        let array = !tensor.shape().is_empty();
        self.kept += 1;
        encode::write_map_len(&mut self.out, if array { 5 } else { 3 }).map_err(failed)?;
        self.bytes(b"nd")?;
        self.bool(array)?;
        self.bytes(b"type")?;
        self.text(descr)?;
        if array {
            self.bytes(b"kind")?;
            self.bytes(b"")?;
            self.bytes(b"shape")?;
            self.array_head(tensor.shape().len())?;
            for &dim in tensor.shape() {
                self.integer(dim as i128)?;
            }
        }
        self.bytes(b"data")?;
        self.bytes(&bytes)
    }
}

/// Returns the encoded form of a key as a reader will see it. Different keys can be written alike: a simple value is written as
/// nil, and a wide integer as a string.
fn as_read(key: &Value, written: &[u8]) -> Result<Vec<u8>> {
    if key.as_str().is_some() {
        return tenarc::to_vec(key);
    }
    match only(Reader::new(Stream(written), Limits::default()), "a MessagePack value") {
        Ok(key) => tenarc::to_vec(&key),
        // A map of the form of an array that is none: a reader refuses it wherever it stands.
        Err(_) => Ok(written.to_vec()),
    }
}

fn length(len: usize) -> Result<u32> {
    u32::try_from(len).map_err(|_| {
        Error::unsupported(format!("the length {len} does not fit in the 32 bits of MessagePack"))
    })
}

fn failed(error: ValueWriteError) -> Error {
    Error::io(error.into())
}
