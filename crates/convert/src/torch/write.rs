//! Writes files as `torch.save` writes them: a zip file with a pickle, and a storage for each tensor.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::BufWriter;
use std::ops::Range;
use std::path::Path as FilePath;

use tenarc::inspect::{Event, Form, Item, Items, Payload};
use tenarc::tensor::{Order, TensorMeta, ToTensor as _};
use tenarc::{DType, DynTensor, Error, Result, Value};

use super::TorchFile;
use super::pickle::dtype_names;
use crate::elements::{Number, each_number, is_typed};
use crate::saved::{Path, Saved};
use crate::zip::write::ZipWriter;
use crate::{Losses, Options, Stored};

/// The directory in the zip file. torch takes any name.
const DIRECTORY: &str = "archive";
/// torch maps storages that start at a multiple of this.
const ALIGNMENT: u64 = 64;
/// A longer sequence of numbers is a tensor, because Python takes too much memory for it.
const MAX_LIST: usize = 1 << 16;

/// Operations of protocol 2, which torch's `weights_only=True` knows.
mod op {
    pub const PROTOCOL: [u8; 2] = [0x80, 2];
    pub const STOP: u8 = b'.';
    pub const NONE: u8 = b'N';
    pub const TRUE: u8 = 0x88;
    pub const FALSE: u8 = 0x89;
    pub const INT: u8 = b'J';
    pub const LONG: u8 = 0x8a;
    pub const FLOAT: u8 = b'G';
    pub const TEXT: u8 = b'X';
    pub const MARK: u8 = b'(';
    pub const TUPLE: u8 = b't';
    pub const EMPTY_TUPLE: u8 = b')';
    pub const EMPTY_LIST: u8 = b']';
    pub const APPENDS: u8 = b'e';
    pub const EMPTY_DICT: u8 = b'}';
    pub const SET_ITEMS: u8 = b'u';
    pub const GLOBAL: u8 = b'c';
    pub const CALL: u8 = b'R';
    pub const PERSISTENT: u8 = b'Q';
}

/// Writes a value to an empty file, and reads the file back to verify it. Returns what was lost, if the options accept
/// losses. Tensors are read when they are written, in blocks.
pub fn write(
    value: &dyn Stored,
    file: &File,
    path: &FilePath,
    options: &Options,
) -> Result<Losses> {
    value.verify_unread()?;
    let mut pickler = Pickler {
        value,
        out: op::PROTOCOL.to_vec(),
        storages: Vec::new(),
        known: HashMap::new(),
        path: Path::default(),
        losses: value.lost(),
        kept: 0,
    };
    pickler.item(&Saved::of(value)?)?;
    pickler.out.push(op::STOP);
    let Pickler { out: pickle, storages, losses, kept, .. } = pickler;
    losses.check(options.accept_losses, kept)?;

    let out = BufWriter::with_capacity(1 << 20, file);
    let mut zip = ZipWriter::new(out)?.with_alignment(ALIGNMENT);
    let mut member = |name: &str, bytes: &[u8]| {
        zip.member(format!("{DIRECTORY}/{name}"), false, |put| put(bytes))
    };
    member("data.pkl", &pickle)?;
    member("byteorder", b"little")?;
    for (number, storage) in storages.iter().enumerate() {
        zip.member(format!("{DIRECTORY}/data/{number}"), false, |put| match storage {
            Source::Payload(payload, range) => value.payload(payload, range.clone(), put),
            Source::Bytes(bytes) => put(bytes),
        })?;
    }
    zip.member(format!("{DIRECTORY}/version"), false, |put| put(b"3\n"))?;
    let written = zip.finish("");
    let verified = written.and_then(|_| TorchFile::new(file)?.verify());
    verified.map_err(|error| error.in_file(path))?;
    Ok(losses)
}

/// The bytes of a storage.
enum Source {
    /// Those of a payload of the value, at this range of the metadata.
    Payload(Payload, Range<usize>),
    Bytes(Vec<u8>),
}

/// Writes the pickle of a value, and collects the storages of its tensors.
struct Pickler<'v> {
    value: &'v dyn Stored,
    out: Vec<u8>,
    storages: Vec<Source>,
    /// The storages of buffers, by their numbers and dtypes. Tensors that share a buffer share a storage.
    known: HashMap<(u64, DType), usize>,
    path: Path,
    losses: Losses,
    /// The number of tensors.
    kept: usize,
}

impl Pickler<'_> {
    fn lose(&mut self, what: impl Into<String>) {
        self.losses.add(self.path.as_str(), what);
    }

    fn item(&mut self, item: &Saved) -> Result<()> {
        match item {
            Saved::Leaf(range) => self.stored(range),
            Saved::Known(value) => self.leaf(value),
            Saved::Array(items) => {
                self.out.extend([op::EMPTY_LIST, op::MARK]);
                for (index, item) in items.iter().enumerate() {
                    self.inside(|| index.to_string(), |pickler| pickler.item(item))?;
                }
                self.out.push(op::APPENDS);
                Ok(())
            }
            Saved::Map(entries) => self.map(entries),
            Saved::Tag(tag, inner) => {
                self.lose(format!("tag {tag} around it is left out"));
                self.item(inner)
            }
            Saved::Named(of, inner) => {
                self.lose(format!("the type {of} is left out"));
                self.item(inner)
            }
        }
    }

    fn inside(
        &mut self,
        step: impl FnOnce() -> String,
        write: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let before = self.path.enter(step);
        let written = write(self);
        self.path.leave(before);
        written
    }

    fn map(&mut self, entries: &[(Value, Saved)]) -> Result<()> {
        self.out.extend([op::EMPTY_DICT, op::MARK]);
        let mut keys = HashSet::new();
        for (key, item) in entries {
            let write = |pickler: &mut Self| {
                let what = match in_python(key).map(|meant| keys.insert(meant)) {
                    Some(true) => {
                        pickler.leaf(key)?;
                        return pickler.item(item);
                    }
                    Some(false) => {
                        "an entry with a key that Python takes for an earlier one is left out"
                    }
                    None => "an entry whose key no dict of Python takes is left out",
                };
                pickler.lose(what);
                Ok(())
            };
            self.inside(|| key.to_step().into_owned(), write)?;
        }
        self.out.push(op::SET_ITEMS);
        Ok(())
    }

    /// Writes the leaf at a range of the metadata.
    fn stored(&mut self, range: &Range<usize>) -> Result<()> {
        let metadata = self.value.metadata()?.get(range.clone()).unwrap_or_default();
        let mut items = Items::new(metadata).with_buffers(self.value.buffers());
        let Some(Item { event: Event::Payload(payload), .. }) = items.next().transpose()? else {
            return self.leaf(&self.value.decode(range.clone())?);
        };
        match payload.form {
            Form::Bytes => match self.value.decode(range.clone())? {
                Value::Tensor(tensor) => self.bytes(&tensor.le_bytes()),
                value => self.leaf(&value),
            },
            Form::Numbers if is_list(&payload.meta) => {
                self.numbers(&self.value.tensor(range.clone())?)
            }
            Form::Tensor | Form::Numbers => {
                if payload.form == Form::Numbers {
                    self.losses.note("sequences of many numbers are written as tensors");
                }
                let meta = payload.meta.clone();
                let shared = payload.buffer;
                self.tensor(&meta, shared, Source::Payload(payload, range.clone()))
            }
        }
    }

    /// Writes a value in memory that is neither an array nor a map: a leaf, or the key of a map.
    fn leaf(&mut self, value: &Value) -> Result<()> {
        match value {
            Value::Null => self.out.push(op::NONE),
            Value::Bool(value) => self.bool(*value),
            Value::Integer(value) => self.integer(*value),
            Value::F32(value) => self.float((*value).into()),
            Value::F64(value) => self.float(*value),
            Value::Text(text) => self.text(text)?,
            Value::Bytes(bytes) => self.bytes(bytes)?,
            Value::Simple(number) => {
                self.lose(format!("simple value {number}, which is written as None"));
                self.out.push(op::NONE);
            }
            Value::Numbers(numbers) => {
                let tensor = DynTensor::from((**numbers).clone());
                if is_list(&tensor.meta()) {
                    self.numbers(&tensor)?;
                } else {
                    self.held(&tensor)?;
                }
            }
            Value::Tensor(tensor) => self.held(tensor)?,
            // The only tags that are leaves are those of integers beyond `i128`.
            Value::Tag(tag, inner) => {
                let magnitude = inner.as_bytes().ok_or_else(no_leaf)?;
                self.wide(*tag == 3, magnitude);
            }
            Value::Array(_) | Value::Map(_) => return Err(no_leaf()),
        }
        Ok(())
    }

    fn numbers(&mut self, numbers: &DynTensor) -> Result<()> {
        self.out.extend([op::EMPTY_LIST, op::MARK]);
        each_number(numbers, &mut |number| {
            match number {
                Number::Bool(value) => self.bool(value),
                Number::Unsigned(value) => self.integer(value.into()),
                Number::Signed(value) => self.integer(value.into()),
                Number::Float(value) => self.float(value),
                // `is_list` says that there are none.
                Number::Complex(..) => self.out.push(op::NONE),
            }
            Ok(())
        })?;
        self.out.push(op::APPENDS);
        Ok(())
    }

    /// Writes a tensor in memory.
    fn held(&mut self, tensor: &DynTensor) -> Result<()> {
        self.tensor(&tensor.meta(), None, Source::Bytes(tensor.le_bytes().into_owned()))
    }

    fn bool(&mut self, value: bool) {
        self.out.push(if value { op::TRUE } else { op::FALSE });
    }

    fn integer(&mut self, value: i128) {
        match i32::try_from(value) {
            Ok(value) => {
                self.out.push(op::INT);
                self.out.extend(value.to_le_bytes());
            }
            Err(_) => self.long(&value.to_le_bytes()),
        }
    }

    /// An integer as its bytes in two's complement, little-endian.
    fn long(&mut self, bytes: &[u8]) {
        // At most 128 bits, or 254 bytes.
        self.out.extend([op::LONG, u8::try_from(bytes.len()).unwrap_or(u8::MAX)]);
        self.out.extend(bytes);
    }

    /// A big integer as the bytes of RFC 8949, section 3.4.3. If it is negative, it is -1 minus the magnitude.
    fn wide(&mut self, is_negative: bool, magnitude: &[u8]) {
        if magnitude.len() > 254 {
            self.lose("an integer of more than 254 bytes, which is written as None");
            self.out.push(op::NONE);
            return;
        }
        let sign = if is_negative { 0xff } else { 0 };
        let mut bytes: Vec<u8> = magnitude.iter().rev().map(|byte| byte ^ sign).collect();
        bytes.push(sign);
        self.long(&bytes);
    }

    fn float(&mut self, value: f64) {
        self.out.push(op::FLOAT);
        self.out.extend(value.to_be_bytes());
    }

    fn text(&mut self, text: &str) -> Result<()> {
        let len = u32::try_from(text.len()).map_err(|_| {
            Error::limit(format!("a text has {} bytes, expected less than 2^32", text.len()))
        })?;
        self.out.push(op::TEXT);
        self.out.extend(len.to_le_bytes());
        self.out.extend(text.as_bytes());
        Ok(())
    }

    /// Protocol 2 has no bytes. Python writes them as a text of the characters with these numbers.
    fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.global("_codecs", "encode");
        self.out.push(op::MARK);
        self.text(&bytes.iter().map(|&byte| char::from(byte)).collect::<String>())?;
        self.text("latin1")?;
        self.out.extend([op::TUPLE, op::CALL]);
        Ok(())
    }

    fn global(&mut self, module: &str, name: &str) {
        self.out.push(op::GLOBAL);
        self.out.extend(format!("{module}\n{name}\n").as_bytes());
    }

    fn tensor(&mut self, meta: &TensorMeta, shared: Option<u64>, source: Source) -> Result<()> {
        let TensorMeta { dtype, shape, order } = meta;
        let Some((name, storage)) = dtype_names(dtype) else {
            let what =
                format!("torch has no dtype {}: None is written", dtype.name().escape_debug());
            self.losses.add_tensor(self.path.as_str(), what);
            self.out.push(op::NONE);
            return Ok(());
        };
        let number = match shared.and_then(|buffer| self.known.get(&(buffer, dtype.clone()))) {
            Some(number) => *number,
            None => {
                self.storages.push(source);
                let number = self.storages.len() - 1;
                if let Some(buffer) = shared {
                    self.known.insert((buffer, dtype.clone()), number);
                }
                number
            }
        };
        self.kept += 1;
        let version = if storage.is_empty() { "_rebuild_tensor_v3" } else { "_rebuild_tensor_v2" };
        self.global("torch._utils", version);
        self.out.extend([op::MARK, op::MARK]);
        self.text("storage")?;
        let mut count = shape.iter().map(|&dim| dim as i128).product();
        if storage.is_empty() {
            self.global("torch.storage", "UntypedStorage");
            // Of bytes. These dtypes have whole ones.
            count *= (dtype.bits().unwrap_or(8) / 8) as i128;
        } else {
            self.global("torch", storage);
        }
        self.text(&number.to_string())?;
        self.text("cpu")?;
        self.integer(count);
        self.out.extend([op::TUPLE, op::PERSISTENT]);
        // The first element, the shape, the strides in elements, `requires_grad`, and hooks.
        self.integer(0);
        self.integers(shape.iter().map(|&dim| dim as i128));
        self.integers(strides(shape, *order));
        self.bool(false);
        self.global("collections", "OrderedDict");
        self.out.extend([op::EMPTY_TUPLE, op::CALL]);
        if storage.is_empty() {
            self.global("torch", name);
        }
        self.out.extend([op::TUPLE, op::CALL]);
        Ok(())
    }

    fn integers(&mut self, numbers: impl IntoIterator<Item = i128>) {
        self.out.push(op::MARK);
        numbers.into_iter().for_each(|number| self.integer(number));
        self.out.push(op::TUPLE);
    }
}

#[cold]
fn no_leaf() -> Error {
    Error::data("expected a value without items, found one with items")
}

/// Whether a sequence of numbers is a list: not too long, and of numbers that a pickle has.
fn is_list(meta: &TensorMeta) -> bool {
    let count = meta.shape.iter().product::<usize>();
    count <= MAX_LIST && is_typed(&meta.dtype) && !meta.dtype.is_complex()
}

/// The stride along each axis, in elements.
fn strides(shape: &[usize], order: Order) -> Vec<i128> {
    let mut stride = 1;
    let mut next = |dim: &usize| {
        let this = stride;
        stride *= (*dim).max(1) as i128;
        this
    };
    if order == Order::F {
        return shape.iter().map(next).collect();
    }
    let mut strides: Vec<_> = shape.iter().rev().map(&mut next).collect();
    strides.reverse();
    strides
}

/// What tells the keys of a dict apart in Python, where 1, 1.0 and True are equal. `None` for what is no key.
fn in_python(key: &Value) -> Option<Vec<u8>> {
    #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
    let meant = match key {
        Value::Bool(value) => Value::Integer((*value).into()),
        Value::F32(value) => return in_python(&Value::F64((*value).into())),
        Value::F64(value) if value.fract() == 0.0 && value.abs() < (1u128 << 126) as f64 => {
            Value::Integer(*value as i128)
        }
        Value::Null | Value::Integer(_) | Value::F64(_) | Value::Text(_) | Value::Bytes(_) => {
            key.clone()
        }
        _ => return None,
    };
    tenarc::to_vec(&meant).ok()
}
