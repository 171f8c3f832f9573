//! Files of other formats that are read in place. The structure of the value is kept in memory, as the
//! metadata of an archive; its tensors are read from the file when they are needed.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::sync::OnceLock;

use serde::Serialize;
use tenarc::archive::SaveOptions;
use tenarc::inspect::unescape_step;
use tenarc::io::ReadAt;
use tenarc::parts::Split;
use tenarc::tensor::{Deferred, TensorInfo, ToTensor};
use tenarc_convert::{Losses, Parts};

use crate::failure::{Failure, Result};
use crate::node::{self, Kind, Node};
use crate::paths;
use crate::progress::Progress;

/// Reads tensors from a file.
pub trait Reader {
    /// The tensor of the given name; if the whole value is one tensor, its name is empty.
    ///
    /// # Errors
    /// If there is no such tensor, or it cannot be read.
    fn tensor(&self, key: &str) -> tenarc::Result<Deferred<'_>>;

    /// The file and the position at which a tensor's bytes are stored as tenarc stores them. `None` if they
    /// are stored otherwise, for example compressed.
    ///
    /// # Errors
    /// If there is no such tensor, or it cannot be read.
    fn place(&self, _key: &str) -> tenarc::Result<Option<(&File, u64)>> {
        Ok(None)
    }

    /// Checks what reading all tensors does not check. Returns a description of what cannot be checked: by default, that
    /// of formats without checksums.
    ///
    /// # Errors
    /// If something is damaged.
    fn verify(&self) -> tenarc::Result<Option<String>> {
        Ok(Some("the format has no checksums: changed elements are not detected".into()))
    }
}

/// The structure of a value: its metadata, with references to buffers in place of its tensors.
pub struct Structure {
    metadata: Vec<u8>,
    /// The length of each buffer.
    lengths: Vec<u64>,
}

impl Structure {
    /// The structure of a value that holds only tensors. The tensors are not read.
    ///
    /// # Errors
    /// If the value cannot be serialized.
    pub fn of(value: &impl Serialize) -> Result<Self> {
        Self::with(value, |_| true)
    }

    /// The structure of a map that holds tensors of the given names and other values. The other values stay
    /// in the metadata, however long they are.
    ///
    /// # Errors
    /// If the value cannot be serialized.
    pub fn among<'a>(
        value: &impl Serialize,
        names: impl Iterator<Item = &'a TensorInfo>,
    ) -> Result<Self> {
        let names: HashSet<String> = names.map(|tensor| tensor.path().to_owned()).collect();
        Self::with(value, move |tensor| {
            // The path of an ambiguous name is a JSON Pointer.
            let pointer = tensor.path().strip_prefix('/');
            names.contains(tensor.path())
                || pointer.is_some_and(|path| {
                    names.contains(&*unescape_step(path))
                        || names.contains(&*unescape_step(&path.replace('/', ".")))
                })
        })
    }

    fn with(
        value: &impl Serialize,
        is_tensor: impl Fn(&TensorInfo) -> bool + Send + Sync + 'static,
    ) -> Result<Self> {
        let options = SaveOptions::default().with_checksums(false).with_columns(false);
        let options = options.with_out_of_band(is_tensor);
        let split = Split::with_options(value, options)?;
        let info = split.info();
        let lengths = info.buffers().iter().map(|buffer| buffer.byte_len()).collect();
        Ok(Self { metadata: info.item().to_vec(), lengths })
    }
}

/// The value of a file of another format.
pub struct Fetched {
    reader: Box<dyn Reader>,
    structure: Structure,
    /// The reader's name for the tensor of each buffer.
    keys: HashMap<usize, String>,
    pub lost: Losses,
    progress: OnceLock<Progress>,
}

impl Fetched {
    /// A value whose tensors the reader knows by their names. It is one tensor, or a map from names to
    /// tensors and other values; names with dots may have become nested maps.
    ///
    /// # Errors
    /// If the structure is invalid, or its paths are too long.
    pub fn named(reader: Box<dyn Reader>, structure: Structure, lost: Losses) -> Result<Self> {
        let mut keys = HashMap::new();
        named("", true, &structure.root()?, &mut keys);
        Ok(Self { reader, structure, keys, lost, progress: OnceLock::new() })
    }

    /// A value whose tensors the reader knows by their numbers, from 0, in the order of the value.
    ///
    /// # Errors
    /// If the structure is invalid, or its paths are too long.
    pub fn numbered(reader: Box<dyn Reader>, structure: Structure) -> Result<Self> {
        let root = structure.root()?;
        let payloads = paths::payloads(&root, &structure.metadata)?.into_iter().enumerate();
        let key =
            |(at, named): (usize, paths::Named<'_>)| Some((named.payload.buffer?, at.to_string()));
        let keys = payloads.filter_map(key).collect();
        Ok(Self { reader, structure, keys, lost: Losses::default(), progress: OnceLock::new() })
    }

    /// What the file holds that is not read, in short; none if all is.
    pub fn not_read(&self) -> Option<String> {
        let listed: Vec<_> = self.lost.listed().iter().collect();
        let beyond = self.lost.count().saturating_sub(listed.len() as u64);
        (!listed.is_empty()).then(|| super::in_short(&listed, beyond))
    }

    pub fn is_without_tensors(&self) -> bool {
        self.keys.is_empty()
    }

    pub fn metadata(&self) -> &[u8] {
        &self.structure.metadata
    }

    /// # Errors
    /// If paths are too long.
    pub fn root(&self) -> Result<Node> {
        self.structure.root()
    }

    /// Adds what is read from now on to a progress bar.
    pub fn add_progress_to(&self, progress: Progress) {
        // If there is a progress bar already, that one stays.
        let _ = self.progress.set(progress);
    }

    /// The number of bytes of all tensors.
    pub fn byte_len(&self) -> u64 {
        self.structure.lengths.iter().fold(0, |sum, &len| sum.saturating_add(len))
    }

    fn key(&self, buffer: usize) -> Result<&str> {
        let key = self.keys.get(&buffer).map(String::as_str);
        key.ok_or_else(|| Failure::new(format!("buffer {buffer} is not a tensor of the file")))
    }

    /// The position and length of each buffer, as nodes are parsed with.
    fn buffers(&self) -> Vec<(u64, u64)> {
        self.structure.buffers()
    }

    /// Calls `write` with the value in the form from which converters write it.
    ///
    /// # Errors
    /// If `write` fails.
    pub fn with_parts<T>(&self, write: impl FnOnce(&Parts<'_>) -> Result<T>) -> Result<T> {
        let blocks = |number: usize, put: &mut dyn FnMut(&[u8]) -> tenarc::Result<()>| {
            self.blocks(number, put).map_err(Failure::into_library)
        };
        write(&Parts { metadata: self.metadata(), buffers: &self.buffers(), blocks: &blocks })
    }

    /// Reads a buffer, and calls `each` with its bytes in blocks of any size.
    ///
    /// # Errors
    /// If it cannot be read, or `each` fails.
    pub fn blocks(
        &self,
        buffer: usize,
        each: &mut dyn FnMut(&[u8]) -> tenarc::Result<()>,
    ) -> Result<()> {
        let tensor = self.reader.tensor(self.key(buffer)?)?;
        let mut given = 0;
        tensor.write_blocks(&mut |block| {
            given += block.len() as u64;
            if let Some(progress) = self.progress.get() {
                progress.add(block.len() as u64);
            }
            each(block)
        })?;
        match self.structure.lengths.get(buffer) {
            Some(&len) if len == given => Ok(()),
            // The file was changed after it was opened.
            expected => Err(Failure::damage(format!(
                "expected {} bytes of a tensor, found {given}: the file has changed",
                expected.copied().unwrap_or(0)
            ))),
        }
    }

    /// Fills `out` with the bytes of a buffer from `start`, without reading those before. Returns `false` if
    /// the file does not allow that, as when it is compressed.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn part(&self, buffer: usize, start: u64, out: &mut [u8]) -> Result<bool> {
        let Some((file, at)) = self.reader.place(self.key(buffer)?)? else { return Ok(false) };
        fill(file, out, at.saturating_add(start))?;
        Ok(true)
    }

    /// Reads and checks all tensors, and returns a description of what cannot be checked. After an error,
    /// `path` is the path of the tensor at which it happened.
    ///
    /// # Errors
    /// If something cannot be read, or is damaged.
    pub fn verify(
        &self,
        root: &Node,
        progress: &Progress,
        path: &mut Option<String>,
    ) -> tenarc::Result<Option<String>> {
        for named in paths::payloads(root, self.metadata())? {
            let key = named.payload.buffer.and_then(|buffer| self.keys.get(&buffer));
            let Some(key) = key else { continue };
            *path = Some(named.path);
            self.reader.tensor(key)?.write_blocks(&mut |block| {
                progress.add(block.len() as u64);
                Ok(())
            })?;
        }
        *path = None;
        self.reader.verify()
    }
}

/// Collects the name of each buffer's tensor: the keys that lead to it, joined by dots.
fn named(name: &str, is_root: bool, node: &Node, keys: &mut HashMap<usize, String>) {
    if let Some(buffer) = node.payload().and_then(|payload| payload.buffer) {
        keys.insert(buffer, name.to_owned());
    }
    let inside = |step: &str| match name {
        "" if is_root => step.to_owned(),
        _ => format!("{name}.{step}"),
    };
    match &node.kind {
        Kind::Map(entries) => {
            for (key, node) in entries {
                named(&inside(&key.step), false, node, keys);
            }
        }
        Kind::Array(items) => {
            for (at, node) in items.iter().enumerate() {
                named(&inside(&at.to_string()), false, node, keys);
            }
        }
        _ => {}
    }
}

impl Structure {
    fn buffers(&self) -> Vec<(u64, u64)> {
        self.lengths.iter().map(|&len| (0, len)).collect()
    }

    fn root(&self) -> Result<Node> {
        let root = node::parse(&self.metadata, &self.buffers())?;
        paths::check(&root)?;
        Ok(root)
    }
}

/// Fills `out` with the bytes of `source` from position `at`.
///
/// # Errors
/// If the source cannot be read, or ends before `out` is full.
pub fn fill(source: &impl ReadAt, out: &mut [u8], at: u64) -> Result<()> {
    let mut done = 0;
    while let Some(rest) = out.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match source.read_at(rest, at.saturating_add(done as u64))? {
            0 => return Err(Failure::damage("the file ends inside a tensor")),
            read => done += read,
        }
    }
    Ok(())
}
