//! Reads what the processes of `torch.distributed.checkpoint` have saved: each in a file of its own, with the parts of tensors that
//! it had.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::path::Path;

use tenarc::io::ReadAt;
use tenarc::tensor::{Deferred, Order, TensorInfo, TensorMeta, ToTensor as _};
use tenarc::{Error, Result};

use super::read::SafeTensors;
use super::sharded::merged;
use crate::as_value::Part;
use crate::chunks::{Chunk, Cover, Span, gather};
use crate::exported::Metadata;
use crate::nested::Names;
use crate::stored::Put;
use crate::support::{no_tensor_named, parent};
use crate::{AsValue, Losses, TensorFile};

/// The most files that are read. All of them are open at once.
const MAX_FILES: usize = 1 << 16;

/// The tensors of all processes: see [`Distributed::open`].
pub struct Distributed {
    /// The files, each with its name.
    files: Vec<(String, SafeTensors<File>)>,
    tensors: Vec<(TensorInfo, Vec<Chunk>)>,
    by_name: HashMap<String, usize>,
    metadata: Option<Metadata>,
    losses: Losses,
}

impl Distributed {
    /// Opens the files beside the one at `path`, which one process has saved. `None` if there are no others.
    ///
    /// # Errors
    /// If a file cannot be read, or if parts of tensors are missing or overlap.
    pub fn open(path: &Path) -> Result<Option<Self>> {
        let Some(names) = names(path)? else { return Ok(None) };
        let mut files = Vec::new();
        for name in names {
            let file = SafeTensors::open(&parent(path).join(&name))?;
            files.push((name, file));
        }
        let mut parts: BTreeMap<&str, Vec<Saved<'_>>> = BTreeMap::new();
        for (number, (name, file)) in files.iter().enumerate() {
            let Some(mut starts) = file.starts() else {
                let what = format!("`{name}` does not say which parts of tensors it has");
                return Err(Error::data(what));
            };
            for info in file.tensors() {
                let start = starts.remove(info.path());
                let start = start.unwrap_or_else(|| vec![0; info.shape().len()]);
                parts.entry(info.path()).or_default().push((info, start, number));
            }
        }
        let (mut tensors, mut cover) = (Vec::new(), Cover::new());
        for (name, parts) in parts {
            let whole = whole(&parts, &mut cover).map_err(|error| error.in_field(name))?;
            let len = whole.0.byte_len().unwrap_or(usize::MAX) as u64;
            let info = TensorInfo::new(name.to_owned(), whole.0, len);
            tensors.push((info, whole.1));
        }
        let by_name = tensors.iter().zip(0..).map(|((info, _), at)| (info.path().to_owned(), at));
        let by_name = by_name.collect();
        let mut losses = Losses::default();
        let metadata = merged(&files, &["DCP_SHARDING_INFO", "DCP_VERSION"], &mut losses);
        let count = files.len();
        losses.note(format!(
            "the tensors are put together from {count} files of torch.distributed.checkpoint: no file says how many there must be"
        ));
        Ok(Some(Self { files, tensors, by_name, metadata, losses }))
    }

    fn find(&self, name: &str) -> Result<&(TensorInfo, Vec<Chunk>)> {
        let found = self.by_name.get(name).and_then(|&at| self.tensors.get(at));
        found.ok_or_else(|| no_tensor_named(name))
    }

    fn deferred_of<'a>(&'a self, (info, chunks): &'a (TensorInfo, Vec<Chunk>)) -> Deferred<'a> {
        let read = |chunk: &Chunk, put: &mut Put<'_>| {
            let file = self.files.get(chunk.span.file);
            let (_, file) = file.ok_or_else(|| Error::data("there is no such file"))?;
            file.deferred(info.path())?.write_blocks(put)
        };
        Deferred::from_blocks(info.dtype().clone(), info.shape(), Order::C, move |put| {
            gather(info.meta(), chunks, read, put)
        })
    }
}

/// Returns whether a file has a name that `torch.distributed.checkpoint` gives to the file of a process, such as
/// `shard-00001-model-00001-of-00001.safetensors`. [`Format::to_archive`](crate::Format::to_archive) reads such a file
/// together with those of the other processes in its directory.
pub fn is_of_process(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let rest = name.strip_prefix("shard-").and_then(|rest| rest.strip_suffix(".safetensors"));
    let number = rest.and_then(|rest| rest.split('-').next());
    number.is_some_and(|number| number.parse::<u32>().is_ok())
}

/// The names of the files of all processes, in order. `None` if the file at `path` is the only one.
fn names(path: &Path) -> Result<Option<Vec<String>>> {
    if !is_of_process(path) {
        return Ok(None);
    }
    let directory = parent(path);
    let of_directory = |error| Error::io(error).in_file(directory);
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).map_err(of_directory)? {
        let name = entry.map_err(of_directory)?.file_name();
        names.extend(name.into_string().ok().filter(|name| is_of_process(Path::new(name))));
        if names.len() > MAX_FILES {
            let what = format!("more than {MAX_FILES} files of processes");
            return Err(Error::limit(what).in_file(directory));
        }
    }
    names.sort();
    Ok((names.len() > 1).then_some(names))
}

/// A part of a tensor, where it starts in the tensor, and the index of its file.
type Saved<'a> = (&'a TensorInfo, Vec<usize>, usize);

/// The tensor that these parts are.
fn whole(parts: &[Saved<'_>], cover: &mut Cover) -> Result<(TensorMeta, Vec<Chunk>)> {
    let (mut meta, mut chunks) = (None::<(TensorMeta, Vec<usize>)>, Vec::new());
    for (info, start, file) in parts {
        let end = start.iter().zip(info.shape()).map(|(start, size)| start.checked_add(*size));
        let end = end.collect::<Option<Vec<_>>>().filter(|_| start.len() == info.shape().len());
        let end = end.ok_or_else(|| {
            Error::damaged(format!("a part of shape {:?} starts at {start:?}", info.shape()))
        })?;
        let (of, shape) = meta.get_or_insert_with(|| (info.meta().clone(), end.clone()));
        if of.dtype != *info.dtype() || shape.len() != end.len() {
            let (one, other) = (&of.dtype, info.dtype());
            let what = "its parts have different dtypes or numbers of dimensions";
            return Err(Error::damaged(format!(
                "{what}: {one}[{}], {other}[{}]",
                shape.len(),
                end.len()
            )));
        }
        shape.iter_mut().zip(end).for_each(|(most, end)| *most = end.max(*most));
        if info.byte_len() > 0 {
            let span = Span { file: *file, start: 0, len: info.byte_len() };
            chunks.push(Chunk { start: start.clone(), sizes: info.shape().to_vec(), span });
        }
    }
    let Some((of, shape)) = meta else { return Err(Error::data("a tensor without parts")) };
    let meta = TensorMeta::new(of.dtype, shape, Order::C);
    if meta.byte_len().is_none() {
        return Err(Error::limit("the tensor does not fit in memory"));
    }
    cover.check(&meta, &mut chunks)?;
    Ok((meta, chunks))
}

impl TensorFile for Distributed {
    fn value(&self, names: Names) -> Result<AsValue<'_>> {
        let part = |tensor| (tensor, self.deferred_of(tensor));
        let parts = self.tensors.iter().map(part);
        let parts = parts.map(|((info, _), tensor)| (info.path(), Part::Tensor(tensor))).collect();
        let value = AsValue::flat(parts).with_texts(self.metadata.as_deref());
        let is_nested = self.files.iter().any(|(_, file)| file.is_nested());
        value.with_losses(self.losses.clone()).named(names, is_nested)
    }

    fn deferred(&self, name: &str) -> Result<Deferred<'_>> {
        Ok(self.deferred_of(self.find(name)?))
    }

    fn place(&self, name: &str) -> Result<Option<(&dyn ReadAt, u64)>> {
        match &*self.find(name)?.1 {
            [Chunk { span, .. }] => match self.files.get(span.file) {
                Some((_, file)) => file.place(name),
                None => Ok(None),
            },
            _ => Ok(None),
        }
    }
}
