//! Writes a file: makes the header first, then writes one tensor after the other. A saved file is then read back and
//! compared.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use tenarc::io::SyncLevel;
use tenarc::tensor::{Order, TensorMeta, ToTensor};
use tenarc::{Error, Result};

use super::dtype;
use super::header::{self, Header};
use crate::exported::METADATA;
use crate::honest::Honest;
use crate::support::WRITE_STEP;
use crate::{Losses, Options, made, order};

/// The size of the write buffer. Because of it, small tensors are written together.
const BUFFER: usize = 64 << 10;

/// A tensor to be written.
pub struct Item<'a> {
    pub name: &'a str,
    pub len: u64,
    meta: TensorMeta,
    rank: usize,
    tensor: &'a dyn ToTensor,
}

/// Returns the tensors that can be written, in the given order. Adds the others to `losses`.
pub fn items<'a, N: AsRef<str>, T: ToTensor>(
    tensors: &'a [(N, T)],
    losses: &mut Losses,
) -> Result<Vec<Item<'a>>> {
    let mut items = Vec::with_capacity(tensors.len());
    for (name, tensor) in tensors {
        let name = name.as_ref();
        if name == METADATA {
            return Err(Error::data(format!("`{METADATA}` cannot be the name of a tensor")));
        }
        items.extend(item(name, tensor, losses).map_err(|error| error.in_field(name))?);
    }
    let mut names: Vec<&str> = items.iter().map(|item: &Item<'_>| item.name).collect();
    names.sort_unstable();
    match names.iter().zip(names.iter().skip(1)).find(|(a, b)| a == b) {
        Some((name, _)) => Err(Error::data("there are two tensors of this name").in_field(*name)),
        None => Ok(items),
    }
}

fn item<'a>(
    name: &'a str,
    tensor: &'a dyn ToTensor,
    losses: &mut Losses,
) -> Result<Option<Item<'a>>> {
    let meta = tensor.meta();
    let (dtype, shape) = (&meta.dtype, &meta.shape);
    let Some((rank, _)) = dtype::to_name(dtype) else {
        let dtype = dtype.name().escape_debug();
        losses
            .add_tensor(name, format!("safetensors has no dtype {dtype}: the tensor is left out"));
        return Ok(None);
    };
    let len = tensor.byte_len(&meta).ok_or_else(|| {
        Error::unsupported(format!("a {dtype} tensor of shape {shape:?} does not fill whole bytes"))
    })?;
    if meta.order == Order::F && shape.len() > 1 {
        if !order::can_reorder(&meta) {
            let what =
                format!("column-major {dtype} elements cannot be converted to row-major order");
            return Err(Error::unsupported(what));
        }
        losses.note(order::TURNED);
    }
    Ok(Some(Item { name, len: len as u64, meta, rank, tensor }))
}

impl Item<'_> {
    fn write(&self, put: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let mut left = self.len;
        let mut counted = |block: &[u8]| {
            left = left.checked_sub(block.len() as u64).ok_or_else(|| self.other_length("more"))?;
            put(block)
        };
        if self.meta.order == Order::F && self.meta.shape.len() > 1 {
            order::row_major(self.tensor, &self.meta, &mut counted)?;
        } else if let Some(bytes) = self.tensor.as_le_bytes() {
            counted(bytes)?;
        } else {
            self.tensor.write_blocks(&mut counted)?;
        }
        if left == 0 { Ok(()) } else { Err(self.other_length("fewer")) }
    }

    #[cold]
    fn other_length(&self, found: &str) -> Error {
        let (dtype, shape, len) = (&self.meta.dtype, &self.meta.shape, self.len);
        let shape = header::shown(shape);
        let what = format!("expected {len} bytes of a {dtype} tensor of shape {shape}");
        Error::data(format!("{what}, found {found}"))
    }
}

/// A file to be written: its header, and its tensors in the order of the file.
pub struct Plan<'a> {
    header: Vec<u8>,
    items: Vec<Item<'a>>,
}

impl<'a> Plan<'a> {
    /// Sorts tensors as the reference implementation does: by dtype, with the largest elements first, then by name.
    /// Makes the header.
    pub fn new(mut items: Vec<Item<'a>>, metadata: Option<&[(String, String)]>) -> Result<Self> {
        items.sort_by(|a, b| b.rank.cmp(&a.rank).then(a.name.cmp(b.name)));
        let tensors = items.iter().map(|item| (item.name, &item.meta, item.len));
        Ok(Self { header: header::write(metadata, tensors)?, items })
    }

    /// Writes the file.
    pub fn write<W: Write>(&self, writer: W) -> Result<()> {
        let mut writer = BufWriter::with_capacity(BUFFER, Honest::new(writer));
        let mut put = |block: &[u8]| {
            block.chunks(WRITE_STEP).try_for_each(|step| writer.write_all(step).map_err(Error::io))
        };
        put(&self.header)?;
        for item in &self.items {
            item.write(&mut put).map_err(|error| error.in_field(item.name))?;
        }
        writer.flush().map_err(Error::io)
    }

    /// Writes a file. It appears under its name only after it was read back and found equal to what was written.
    pub fn save(&self, path: &Path, sync: SyncLevel) -> Result<()> {
        made::file(path, sync, |file| self.written(file, path))
    }

    /// Writes to an empty file, reads it back and compares it. Errors show `path` as its path.
    pub fn written(&self, file: &File, path: &Path) -> Result<()> {
        made::written(file, path, |out| self.write(out))?;
        // Parse the header as any reader would.
        let found = Header::read(file)?.tensors.len();
        if found != self.items.len() {
            let expected = self.items.len();
            return Err(Error::damaged(format!("wrote {expected} tensors, read back {found}"))
                .in_file(path));
        }
        Ok(())
    }
}

/// Prepares a file to be written, for `save` and `to_writer`. Returns what it does not keep, if the options accept
/// losses.
pub fn plan<'a, N: AsRef<str>, T: ToTensor>(
    tensors: &'a [(N, T)],
    options: &Options,
) -> Result<(Plan<'a>, Losses)> {
    let mut losses = Losses::default();
    let items = items(tensors, &mut losses)?;
    losses.check(options.accept_losses, items.len())?;
    Ok((Plan::new(items, options.metadata.as_deref())?, losses))
}
