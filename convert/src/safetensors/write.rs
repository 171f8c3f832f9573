//! Writing a file: laid out first, then written tensor by tensor, then read back.

use std::fs::File;
use std::hash::Hasher as _;
use std::io::{BufWriter, Write};
use std::path::Path;

use tenarc::io::{AtomicFile, SyncLevel};
use tenarc::tensor::{Order, TensorMeta, ToTensor};
use tenarc::{Error, Result};
use twox_hash::XxHash3_64;

use super::dtype;
use super::header::{self, Header};
use super::options::Options;
use crate::exported::METADATA;
use crate::honest::Honest;
use crate::support::WRITE_STEP;
use crate::{Losses, made, order};

/// Small tensors are written together.
const BUFFER: usize = 64 << 10;

/// A tensor that is to be written.
pub struct Item<'a> {
    pub name: &'a str,
    pub len: u64,
    meta: TensorMeta,
    rank: usize,
    tensor: &'a dyn ToTensor,
}

/// The tensors that can be written, in the order given.
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
        Error::data(format!("a {dtype} tensor of shape {shape:?} fills no whole bytes"))
    })?;
    if meta.order == Order::F && shape.len() > 1 {
        if !order::can_reorder(&meta) {
            let what =
                format!("column-major {dtype} elements cannot be brought into row-major order");
            return Err(Error::data(what));
        }
        losses.add(name, "column-major order becomes row-major");
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

/// A file that is laid out.
pub struct Plan<'a> {
    header: Vec<u8>,
    items: Vec<Item<'a>>,
}

impl<'a> Plan<'a> {
    /// Lays tensors out as the reference implementation does: by dtype, those with the largest
    /// elements first, then by name.
    pub fn new(mut items: Vec<Item<'a>>, metadata: Option<&[(String, String)]>) -> Result<Self> {
        items.sort_by(|a, b| b.rank.cmp(&a.rank).then(a.name.cmp(b.name)));
        let tensors = items.iter().map(|item| (item.name, &item.meta, item.len));
        Ok(Self { header: header::write(metadata, tensors)?, items })
    }

    /// Writes the file; its length and hash.
    pub fn write<W: Write>(&self, writer: W) -> Result<(u64, u64)> {
        let mut writer = BufWriter::with_capacity(BUFFER, Honest::new(writer));
        let (mut hasher, mut len) = (XxHash3_64::new(), 0u64);
        let mut put = |block: &[u8]| {
            for step in block.chunks(WRITE_STEP) {
                hasher.write(step);
                writer.write_all(step).map_err(Error::io)?;
                len = len.saturating_add(step.len() as u64);
            }
            Ok(())
        };
        put(&self.header)?;
        for item in &self.items {
            item.write(&mut put).map_err(|error| error.in_field(item.name))?;
        }
        writer.flush().map_err(Error::io)?;
        Ok((len, hasher.finish()))
    }

    /// Writes a file that takes its name once it was read back and found to be what was written.
    pub fn save(&self, path: &Path, sync: SyncLevel) -> Result<()> {
        self.written(path)?.commit(sync)
    }

    /// Writes a file that was read back and found to be what was written, and has yet to take its name.
    pub fn written(&self, path: &Path) -> Result<AtomicFile> {
        let mut file = AtomicFile::replacing(path)?;
        let written = self.write(&mut file)?;
        self.verify(file.file(), written).map_err(|error| error.in_file(path))?;
        Ok(file)
    }

    fn verify(&self, file: &File, (len, hash): (u64, u64)) -> Result<()> {
        made::verify_bytes(file, len, hash)?;
        // As any reader would.
        let found = Header::read(file)?.tensors.len();
        if found != self.items.len() {
            let expected = self.items.len();
            return Err(Error::damaged(format!("wrote {expected} tensors, read back {found}")));
        }
        Ok(())
    }
}

/// What `save` and `to_writer` share: a file laid out, and what it does not keep.
pub fn plan<'a, N: AsRef<str>, T: ToTensor>(
    tensors: &'a [(N, T)],
    options: &Options,
) -> Result<(Plan<'a>, Losses)> {
    let mut losses = Losses::default();
    let items = items(tensors, &mut losses)?;
    losses.check(options.accept_losses, items.len())?;
    Ok((Plan::new(items, options.metadata.as_deref())?, losses))
}

#[cfg(all(test, not(miri)))]
mod tests {
    use std::io::{Seek as _, SeekFrom};

    use super::*;
    use tenarc::io::ReadAt as _;

    /// A file in which one bit was changed between writing and reading back, or that was cut.
    #[test]
    fn a_file_that_changed_is_not_what_was_written() {
        let tensors = [("a", vec![1.0f32; 1000]), ("b", vec![2.0; 7])];
        let (plan, _) = plan(&tensors, &Options::default()).unwrap();
        let mut file = tempfile::tempfile().unwrap();
        let written = plan.write(&mut file).unwrap();
        plan.verify(&file, written).unwrap();
        let check = |file: &File| {
            let error = plan.verify(file, written).unwrap_err();
            assert!(error.to_string().contains("not what was written"), "{error}");
        };
        for at in [8, 300, written.0 - 1] {
            let mut byte = [0];
            file.read_at(&mut byte, at).unwrap();
            for change in [1, 0] {
                file.seek(SeekFrom::Start(at)).unwrap();
                file.write_all(&[byte[0] ^ change]).unwrap();
                if change == 1 {
                    check(&file);
                }
            }
        }
        plan.verify(&file, written).unwrap();
        file.set_len(written.0 + 1).unwrap();
        check(&file);
        file.set_len(written.0 - 1).unwrap();
        check(&file);
    }
}
