//! From trees to MessagePack.

use std::collections::HashSet;
use std::io::Write;

use tenarc::de::Limits;
use tenarc::tensor::Order;
use tenarc::{DType, DynTensor, Error, Result, Value};

use super::numpy::is_special;
use crate::Losses;
use crate::numpy::descr_of;
use crate::saved::{Fetch, Node, Path, Tree, unpacked};
use crate::values::WriteValue;

/// MessagePack, as it is written.
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
    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.out.write_all(bytes).map_err(Error::io)
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
                self.head(items.len(), ARRAY)?;
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
                self.lose(format!("tag {tag} around it is left out"));
                self.enter()?;
                self.item(inner)?;
                self.depth += 1;
                Ok(())
            }
        }
    }

    fn enter(&mut self) -> Result<()> {
        let deeper = self.depth.checked_sub(1);
        self.depth = deeper.ok_or_else(|| Error::limit("nested more deeply than is read"))?;
        Ok(())
    }

    fn map<T: Tree>(&mut self, entries: &[(Value, T)]) -> Result<()> {
        if self.as_extension(entries)? {
            return Ok(());
        }
        self.enter()?;
        if is_special(entries) {
            self.lose(
                "a map whose fields are those of a numpy array or an extension, as which it \
                       would be read",
            );
        }
        let mut keys = HashSet::new();
        let mut once = Vec::with_capacity(entries.len());
        for (key, item) in entries {
            if keys.insert(tenarc::to_vec(key)?) {
                once.push((key, item));
            } else {
                let before = self.path.enter(|| key.to_step().into_owned());
                self.lose("an entry whose key stood there before is left out");
                self.path.leave(before);
            }
        }
        self.head(once.len(), MAP)?;
        for (key, item) in once {
            let before = self.path.enter(|| key.to_step().into_owned());
            let written = self.item(key).and_then(|()| self.item(item));
            written.map_err(|error| error.in_field(key.to_step()))?;
            self.path.leave(before);
        }
        self.depth += 1;
        Ok(())
    }

    /// Writes the map that an extension is read as; whether it was one.
    fn as_extension<T: Tree>(&mut self, entries: &[(Value, T)]) -> Result<bool> {
        let [(kind, number), (data, bytes)] = entries else { return Ok(false) };
        if kind.as_str() != Some(super::EXTENSION) || data.as_str() != Some(super::DATA) {
            return Ok(false);
        }
        let fetch = self.fetch;
        let number = number.with_leaf(fetch, |value| Ok(value.as_i128()))?;
        let Some(kind) = number.and_then(|number| i8::try_from(number).ok()) else {
            return Ok(false);
        };
        bytes.with_leaf(fetch, |value| match value {
            Value::Bytes(data) => self.extension(kind, data).map(|()| true),
            _ => Ok(false),
        })
    }

    fn leaf(&mut self, value: &Value) -> Result<()> {
        match value {
            Value::Null => self.put(&[0xc0]),
            Value::Bool(value) => self.put(&[0xc2 | u8::from(*value)]),
            Value::Integer(value) => self.integer(*value),
            Value::F32(value) => self.put(&with(0xca, value.to_bits().to_be_bytes())),
            Value::F64(value) => self.put(&with(0xcb, value.to_bits().to_be_bytes())),
            Value::Bytes(bytes) => self.bytes(bytes),
            Value::Text(text) => self.text(text),
            Value::Simple(number) => {
                self.lose(format!("simple value {number}, which is written as nil"));
                self.put(&[0xc0])
            }
            Value::Numbers(numbers) => {
                if let Some(plain) = unpacked(numbers) {
                    return self.item(&Value::Array(plain));
                }
                self.tensor(&DynTensor::from((**numbers).clone()))
            }
            Value::Tensor(tensor) => self.tensor(tensor),
            // Of all tags, those of integers beyond `i128` are leaves.
            Value::Tag(..) | Value::Array(_) | Value::Map(_) => {
                if value.is_integer() {
                    return self.wide_integer(&value.to_string());
                }
                self.lose("an integer of more than 128 bits, which is written as nil");
                self.put(&[0xc0])
            }
        }
    }

    fn integer(&mut self, value: i128) -> Result<()> {
        if let Ok(value) = u64::try_from(value) {
            return match value {
                #[allow(clippy::cast_possible_truncation)]
                0..=0x7f => self.put(&[value as u8]),
                _ => self.sized([0xcc, 0xcd, 0xce, 0xcf], value),
            };
        }
        match i64::try_from(value) {
            Ok(value) => {
                let bytes = value.to_be_bytes();
                match value {
                    -0x20.. => self.put(&bytes[7..]),
                    -0x80.. => self.put(&[&[0xd0], &bytes[7..]].concat()),
                    -0x8000.. => self.put(&[&[0xd1], &bytes[6..]].concat()),
                    -0x8000_0000.. => self.put(&[&[0xd2], &bytes[4..]].concat()),
                    _ => self.put(&with(0xd3, bytes)),
                }
            }
            Err(_) => self.wide_integer(&value.to_string()),
        }
    }

    fn wide_integer(&mut self, digits: &str) -> Result<()> {
        self.lose("an integer of more than 64 bits, which is written as a string");
        self.text(digits)
    }

    /// A number behind the marker for its width; where a marker is zero, there is none.
    fn sized(&mut self, markers: [u8; 4], number: u64) -> Result<()> {
        let bytes = number.to_be_bytes();
        let fits = [0xff, 0xffff, 0xffff_ffff, u64::MAX];
        for (width, (marker, most)) in [1, 2, 4, 8].into_iter().zip(markers.into_iter().zip(fits)) {
            if marker != 0 && number <= most {
                return self.put(&[&[marker], &bytes[8 - width..]].concat());
            }
        }
        Err(Error::data(format!("a length of {number}, where MessagePack has 32 bits")))
    }

    fn head(&mut self, len: usize, (short, markers): (u8, [u8; 4])) -> Result<()> {
        match u8::try_from(len) {
            Ok(len @ ..0x10) => self.put(&[short | len]),
            _ => self.sized(markers, len as u64),
        }
    }

    fn text(&mut self, text: &str) -> Result<()> {
        match u8::try_from(text.len()) {
            Ok(len @ ..0x20) => self.put(&[0xa0 | len])?,
            _ => self.sized([0xd9, 0xda, 0xdb, 0], text.len() as u64)?,
        }
        self.put(text.as_bytes())
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.sized(BIN, bytes.len() as u64)?;
        self.put(bytes)
    }

    fn extension(&mut self, kind: i8, data: &[u8]) -> Result<()> {
        let short = match data.len() {
            1 => 0xd4,
            2 => 0xd5,
            4 => 0xd6,
            8 => 0xd7,
            16 => 0xd8,
            _ => 0,
        };
        match short {
            0 => self.sized([0xc7, 0xc8, 0xc9, 0], data.len() as u64)?,
            short => self.put(&[short])?,
        }
        self.put(&[kind.cast_unsigned()])?;
        self.put(data)
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
            self.lose(format!("a tensor of {name}, which numpy has not, is written as nil"));
            return self.put(&[0xc0]);
        };
        if tensor.order() == Order::F {
            self.lose("the order of a column-major tensor, which is written in row-major order");
            let turned = tensor.clone().into_row_major()?;
            return self.array(descr, &turned);
        }
        self.array(descr, tensor)
    }

    /// As msgpack-numpy writes it, to the bit.
    fn array(&mut self, descr: &str, tensor: &DynTensor) -> Result<()> {
        let bytes = tensor.le_bytes();
        // A scalar has no dimensions in numpy either.
        let array = !tensor.shape().is_empty();
        self.put(&[if array { 0x85 } else { 0x83 }])?;
        self.bytes(b"nd")?;
        self.put(&[0xc2 | u8::from(array)])?;
        self.bytes(b"type")?;
        self.text(descr)?;
        if array {
            self.bytes(b"kind")?;
            self.bytes(b"")?;
            self.bytes(b"shape")?;
            self.head(tensor.shape().len(), ARRAY)?;
            for &dim in tensor.shape() {
                self.integer(dim as i128)?;
            }
        }
        self.bytes(b"data")?;
        self.bytes(&bytes)
    }
}

const ARRAY: (u8, [u8; 4]) = (0x90, [0, 0xdc, 0xdd, 0]);
const MAP: (u8, [u8; 4]) = (0x80, [0, 0xde, 0xdf, 0]);
const BIN: [u8; 4] = [0xc4, 0xc5, 0xc6, 0];

fn with<const N: usize>(marker: u8, bytes: [u8; N]) -> Vec<u8> {
    [&[marker], &bytes[..]].concat()
}
