//! Writes files of version 3.

use std::collections::HashSet;
use std::io::Write;
use std::path::Path;

use tenarc::io::SyncLevel;
use tenarc::tensor::{Order, ToTensor};
use tenarc::{Error, Result, Value};

use super::dtype::Kind;
use super::header::{ALIGNMENT, DEFAULT_ALIGNMENT, MAGIC, MAX_RANK, alignment};
use super::types::{self, Typed, Types, put_text};
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
    let metadata = typed(metadata).map_err(|error| error.in_file(path))?;
    let plan = Plan::new(&metadata, tensors).map_err(|error| error.in_file(path))?;
    made::file(path, SyncLevel::Full, |file| made::written(file, path, |out| plan.write(out)))
}

/// Writes metadata and named tensors to any writer. It does not seek.
///
/// A value is written as the type that the metadata list for it under `tenarc.gguf.types`, as those of
/// [`Gguf::metadata`](super::Gguf::metadata) do. Without such a type, integers become `u32` if they fit, otherwise `i32`,
/// `u64` or `i64`, and so do sequences of integers. A tensor of one dimension becomes an array of its dtype. Tensors
/// start at multiples of `general.alignment`, or of 32.
///
/// ```
/// use tenarc::Value;
/// use tenarc_convert::gguf::{self, Gguf};
///
/// let types = Value::from_iter([("split.count", Value::from("u16"))]);
/// let metadata = [("split.count", Value::from(3)), ("tenarc.gguf.types", types)];
/// let mut bytes = Vec::new();
/// gguf::to_writer(&mut bytes, &metadata, &[] as &[(&str, Vec<f32>)])?;
/// assert_eq!(Gguf::new(bytes)?.metadata()[1], ("tenarc.gguf.types".to_owned(), metadata[1].1.clone()));
/// # Ok::<(), tenarc::Error>(())
/// ```
///
/// # Errors
/// If the writer fails. The following is checked before anything is written, and is an error, too: if GGUF has no type
/// for a value or a dtype, if the listed type does not hold a value exactly, if a tensor has more than 4 dimensions or is column-major, if the rows of a quantised tensor
/// are not whole blocks, and if two keys or two tensors have the same name.
pub fn to_writer<W: Write, K: AsRef<str>, N: AsRef<str>, T: ToTensor>(
    writer: W,
    metadata: &[(K, Value)],
    tensors: &[(N, T)],
) -> Result<()> {
    Plan::new(&typed(metadata)?, tensors)?.write(writer)
}

/// The value of a key, and how it is written.
pub type Entry<'m> = (&'m str, &'m Value, Typed);

/// Encodes metadata. It is an error if a listed type does not hold its value.
fn typed<K: AsRef<str>>(metadata: &[(K, Value)]) -> Result<Vec<Entry<'_>>> {
    let types = Types::of(metadata)?;
    let entries = metadata.iter().map(|(key, value)| (key.as_ref(), value));
    let entries = entries.filter(|(key, _)| *key != types::KEY);
    let entries = entries.map(|(key, value)| {
        let entry = types.typed(key, value).map_err(|error| error.in_field(key))?;
        match entry.change() {
            Some(_) => {
                let had = entry.had.as_ref().map(ToString::to_string).unwrap_or_default();
                let what =
                    format!("`{}` lists the type {had}, which does not hold {value}", types::KEY);
                Err(Error::data(what).in_field(key))
            }
            None => Ok((key, value, entry)),
        }
    });
    entries.collect()
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
    pub fn new(metadata: &[Entry<'_>], tensors: &'a [(N, T)]) -> Result<Self> {
        let mut start = Vec::new();
        start.extend(MAGIC);
        start.extend(VERSION.to_le_bytes());
        start.extend((tensors.len() as u64).to_le_bytes());
        start.extend((metadata.len() as u64).to_le_bytes());
        let mut keys = HashSet::new();
        let mut alignment_of = DEFAULT_ALIGNMENT;
        for (key, value, typed) in metadata {
            if !keys.insert(key) {
                return Err(Error::data("there are two values for this key").in_field(*key));
            }
            if *key == ALIGNMENT {
                alignment_of = alignment(value)?;
            }
            put_text(&mut start, key);
            start.extend(typed.kind.number().to_le_bytes());
            start.extend(&typed.bytes);
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
    let kind =
        Kind::of(dtype).ok_or_else(|| Error::unsupported(format!("GGUF has no dtype {dtype}")))?;
    if shape.len() > MAX_RANK {
        let rank = shape.len();
        return Err(Error::unsupported(format!(
            "expected at most {MAX_RANK} dimensions, found {rank}"
        )));
    }
    if meta.order == Order::F && shape.len() > 1 {
        let what = "expected a row-major tensor, found a column-major one; make it row-major first";
        return Err(Error::unsupported(what));
    }
    let len = kind.byte_len(shape).ok_or_else(|| {
        Error::unsupported(format!(
            "the rows of a {dtype} tensor of shape {shape:?} are not whole blocks"
        ))
    })?;
    Ok((kind, len))
}
