//! Writes files of version 3.

use std::collections::HashSet;
use std::io::Write;
use std::path::Path;

use tenarc::io::SyncLevel;
use tenarc::tensor::{Order, ToTensor};
use tenarc::value::from_value;
use tenarc::{DType, DynTensor, Error, Result, Tensor, Value};

use super::dtype::Kind;
use super::header::{ALIGNMENT, DEFAULT_ALIGNMENT, MAGIC, MAX_RANK, alignment};
use crate::honest::Honest;
use crate::made;

const VERSION: u32 = 3;

/// Saves metadata and named tensors as a file. If there is a file at `path`, it is replaced.
///
/// The file is read back and compared before it takes its name. If the save fails, the file at `path` does not change.
///
/// # Errors
/// The errors of [`to_writer`], and if the file cannot be written.
pub fn save<K: AsRef<str>, N: AsRef<str>, T: ToTensor>(
    path: impl AsRef<Path>,
    metadata: &[(K, Value)],
    tensors: &[(N, T)],
) -> Result<()> {
    let path = path.as_ref();
    let plan = Plan::new(metadata, tensors).map_err(|error| error.in_file(path))?;
    made::file(path, SyncLevel::Full, |file| made::written(file, path, |out| plan.write(out)))
}

/// Writes metadata and named tensors to any writer. It does not seek.
///
/// Integers become `u32` if they fit, otherwise `i32`, `u64` or `i64`. A tensor of one dimension becomes an array of
/// its numbers. Tensors start at multiples of `general.alignment`, or of 32.
///
/// # Errors
/// If the writer fails. The following is checked before anything is written, and is an error, too: if GGUF has no type
/// for a value or a dtype, if a tensor has more than 4 dimensions or is column-major, if the rows of a quantised tensor
/// are not whole blocks, and if two keys or two tensors have the same name.
pub fn to_writer<W: Write, K: AsRef<str>, N: AsRef<str>, T: ToTensor>(
    writer: W,
    metadata: &[(K, Value)],
    tensors: &[(N, T)],
) -> Result<()> {
    Plan::new(metadata, tensors)?.write(writer)
}

/// A file that can be written: everything is checked.
pub struct Plan<'a, N, T> {
    /// The encoded header.
    start: Vec<u8>,
    alignment: u64,
    tensors: &'a [(N, T)],
    /// The length of each tensor in bytes.
    lengths: Vec<u64>,
}

impl<'a, N: AsRef<str>, T: ToTensor> Plan<'a, N, T> {
    pub fn new<K: AsRef<str>>(metadata: &[(K, Value)], tensors: &'a [(N, T)]) -> Result<Self> {
        let mut start = Vec::new();
        start.extend(MAGIC);
        start.extend(VERSION.to_le_bytes());
        start.extend((tensors.len() as u64).to_le_bytes());
        start.extend((metadata.len() as u64).to_le_bytes());
        let mut keys = HashSet::new();
        let mut alignment_of = DEFAULT_ALIGNMENT;
        for (key, value) in metadata {
            let key = key.as_ref();
            if !keys.insert(key) {
                return Err(Error::data("there are two values for this key").in_field(key));
            }
            if key == ALIGNMENT {
                alignment_of = alignment(value)?;
            }
            put_text(&mut start, key);
            let kind = kind(value).map_err(|error| error.in_field(key))?;
            start.extend(kind.to_le_bytes());
            put(&mut start, kind, value).map_err(|error| error.in_field(key))?;
        }
        let mut names = HashSet::new();
        let mut lengths = Vec::with_capacity(tensors.len());
        let mut offset = 0u64;
        for (name, tensor) in tensors {
            let name = name.as_ref();
            if !names.insert(name) {
                return Err(Error::data("there are two tensors of this name").in_field(name));
            }
            let (kind, len) = listed(tensor).map_err(|error| error.in_field(name))?;
            put_text(&mut start, name);
            let shape = tensor.meta().shape;
            start.extend(u32::try_from(shape.len()).unwrap_or(u32::MAX).to_le_bytes());
            for len in shape.iter().rev() {
                start.extend((*len as u64).to_le_bytes());
            }
            start.extend(kind.number.to_le_bytes());
            start.extend(offset.to_le_bytes());
            let next =
                offset.checked_add(len).and_then(|end| end.checked_next_multiple_of(alignment_of));
            offset = next.ok_or_else(|| Error::data("the tensors do not fit in a file"))?;
            lengths.push(len);
        }
        Ok(Self { start, alignment: alignment_of, tensors, lengths })
    }

    pub fn write(&self, writer: impl Write) -> Result<()> {
        let mut writer = Honest::new(writer);
        let mut put = |bytes: &[u8]| writer.write_all(bytes).map_err(Error::io);
        put(&self.start)?;
        put(padding(self.start.len() as u64, self.alignment))?;
        for ((name, tensor), len) in self.tensors.iter().zip(&self.lengths) {
            let mut written = 0u64;
            let wrong = |found: &dyn std::fmt::Display| {
                let what = format!("expected {len} bytes of a tensor, found {found}");
                Error::data(what).in_field(name.as_ref())
            };
            tensor.write_blocks(&mut |block| {
                written = written.saturating_add(block.len() as u64);
                if written > *len {
                    return Err(wrong(&"more"));
                }
                put(block)
            })?;
            if written < *len {
                return Err(wrong(&written));
            }
            put(padding(*len, self.alignment))?;
        }
        writer.flush().map_err(Error::io)
    }
}

/// Returns the zeros from `len` up to the next multiple of the alignment, which is at most 1 MiB.
fn padding(len: u64, alignment: u64) -> &'static [u8] {
    static ZEROS: [u8; 1 << 20] = [0; 1 << 20];
    let missing = len.checked_next_multiple_of(alignment).map_or(0, |next| next - len);
    ZEROS.get(..usize::try_from(missing).unwrap_or(0)).unwrap_or_default()
}

/// Returns the type of a tensor, and its length in bytes.
pub fn listed(tensor: &impl ToTensor) -> Result<(&'static Kind, u64)> {
    let meta = tensor.meta();
    let (dtype, shape) = (&meta.dtype, &meta.shape);
    let kind = Kind::of(dtype).ok_or_else(|| Error::data(format!("GGUF has no dtype {dtype}")))?;
    if shape.len() > MAX_RANK {
        let rank = shape.len();
        return Err(Error::data(format!("expected at most {MAX_RANK} dimensions, found {rank}")));
    }
    if meta.order == Order::F && shape.len() > 1 {
        let what = "expected a row-major tensor, found a column-major one; make it row-major first";
        return Err(Error::data(what));
    }
    let len = kind.byte_len(shape).ok_or_else(|| {
        Error::data(format!("the rows of a {dtype} tensor of shape {shape:?} are not whole blocks"))
    })?;
    Ok((kind, len))
}

/// The numbers of value types.
mod number {
    pub const U32: u32 = 4;
    pub const I32: u32 = 5;
    pub const F32: u32 = 6;
    pub const BOOL: u32 = 7;
    pub const TEXT: u32 = 8;
    pub const ARRAY: u32 = 9;
    pub const U64: u32 = 10;
    pub const I64: u32 = 11;
    pub const F64: u32 = 12;
}

/// Returns the type of a value.
fn kind(value: &Value) -> Result<u32> {
    Ok(match value {
        Value::Bool(_) => number::BOOL,
        Value::Integer(value) => integer(*value, *value)?,
        Value::F32(_) => number::F32,
        Value::F64(_) => number::F64,
        Value::Text(_) => number::TEXT,
        Value::Array(_) | Value::Tensor(_) | Value::Numbers(_) => number::ARRAY,
        _ => {
            return Err(Error::data(
                "expected a number, bool, text or array, because GGUF has no other values",
            ));
        }
    })
}

/// Checks that GGUF has a type for a value.
pub fn check_value(value: &Value) -> Result<()> {
    put(&mut Vec::new(), kind(value)?, value)
}

/// Returns the first of `u32`, `i32`, `u64` and `i64` that holds all integers from `least` to `most`.
fn integer(least: i128, most: i128) -> Result<u32> {
    let within = |low: i128, high: i128| low <= least && most <= high;
    Ok(if within(0, u32::MAX.into()) {
        number::U32
    } else if within(i32::MIN.into(), i32::MAX.into()) {
        number::I32
    } else if within(0, u64::MAX.into()) {
        number::U64
    } else if within(i64::MIN.into(), i64::MAX.into()) {
        number::I64
    } else {
        return Err(Error::data("GGUF has no integers of more than 64 bits"));
    })
}

/// Returns the type of an array's values.
fn kind_of_all(values: &[Value]) -> Result<u32> {
    let integers = values.iter().map(|value| match value {
        Value::Integer(value) => Some(*value),
        _ => None,
    });
    if let Some(integers) = integers.collect::<Option<Vec<_>>>() {
        let least = integers.iter().min().copied().unwrap_or(0);
        return integer(least, integers.iter().max().copied().unwrap_or(0));
    }
    let mut kinds = values.iter().map(kind);
    let first = kinds.next().unwrap_or(Ok(number::U32))?;
    for other in kinds {
        if other? != first {
            return Err(Error::data("expected an array whose values all have the same type"));
        }
    }
    Ok(first)
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

/// Appends a value of this type.
fn put(out: &mut Vec<u8>, kind: u32, value: &Value) -> Result<()> {
    match value {
        Value::Bool(value) => out.push(u8::from(*value)),
        Value::Integer(value) => {
            let width = if matches!(kind, number::U32 | number::I32) { 4 } else { 8 };
            // The number fits in the type, so the bytes that are left out only repeat its sign.
            out.extend(value.to_le_bytes().iter().take(width));
        }
        Value::F32(value) => out.extend(value.to_le_bytes()),
        Value::F64(value) => out.extend(value.to_le_bytes()),
        Value::Text(text) => put_text(out, text),
        Value::Array(values) => {
            let kind = kind_of_all(values)?;
            out.extend(kind.to_le_bytes());
            out.extend((values.len() as u64).to_le_bytes());
            for value in values {
                put(out, kind, value)?;
            }
        }
        Value::Tensor(tensor) => put_numbers(out, tensor)?,
        Value::Numbers(numbers) => {
            let tensor: Tensor<DynTensor> = from_value(Value::Numbers(numbers.clone()))?;
            put_numbers(out, &tensor)?;
        }
        _ => return Err(Error::data("expected a number, bool, text or array")),
    }
    Ok(())
}

fn put_numbers(out: &mut Vec<u8>, tensor: &DynTensor) -> Result<()> {
    let kind = match tensor.dtype() {
        DType::U8 => 0,
        DType::I8 => 1,
        DType::U16 => 2,
        DType::I16 => 3,
        DType::U32 => number::U32,
        DType::I32 => number::I32,
        DType::F32 => number::F32,
        DType::Bool => number::BOOL,
        DType::U64 => number::U64,
        DType::I64 => number::I64,
        DType::F64 => number::F64,
        other => return Err(Error::data(format!("GGUF has no arrays of {other}"))),
    };
    let [count] = *tensor.shape() else {
        let rank = tensor.shape().len();
        return Err(Error::data(format!(
            "expected an array of one dimension, found {rank} dimensions"
        )));
    };
    out.extend(u32::to_le_bytes(kind));
    out.extend((count as u64).to_le_bytes());
    out.extend_from_slice(&tensor.le_bytes());
    Ok(())
}
