//! Files whose structure is known as metadata, and whose tensors are read when they are asked for.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fs::File;
use std::sync::OnceLock;

use serde::Serialize;
use tenarc::archive::SaveOptions;
use tenarc::io::ReadAt;
use tenarc::parts::Split;
use tenarc::tensor::{Deferred, TensorInfo, ToTensor};
use tenarc_convert::{Loss, Losses};

use super::more;
use crate::failure::{Failure, Result};
use crate::node::{self, Kind, Node};
use crate::output::say;
use crate::paths;
use crate::progress::Progress;

/// What reads tensors from a file.
pub trait Reader {
    /// The tensor of that name; of a value that is one tensor, the empty one.
    ///
    /// # Errors
    /// Where there is none, or it cannot be read.
    fn tensor(&self, key: &str) -> tenarc::Result<Deferred<'_>>;

    /// Where its bytes lie as they are read: in which file, and from where on. None where they do not.
    ///
    /// # Errors
    /// As [`tensor`](Self::tensor).
    fn place(&self, _key: &str) -> tenarc::Result<Option<(&File, u64)>> {
        Ok(None)
    }

    /// Checks what reading all tensors does not check, and says what cannot be checked at all.
    ///
    /// # Errors
    /// Where something is damaged.
    fn verify(&self) -> tenarc::Result<Option<String>>;
}

/// A value without its tensors.
pub struct Structure {
    metadata: Vec<u8>,
    /// The length of each buffer.
    lengths: Vec<u64>,
}

impl Structure {
    /// That of a value of tensors alone, none of which is read.
    ///
    /// # Errors
    /// Where it cannot be had.
    pub fn of(value: &impl Serialize) -> Result<Self> {
        Self::with(value, |_| true)
    }

    /// As [`of`](Self::of), of a map that holds other things as well, of which the tensors have these names.
    /// What is no tensor stands in the metadata, however long it is.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn among<'a>(
        value: &impl Serialize,
        names: impl Iterator<Item = &'a TensorInfo>,
    ) -> Result<Self> {
        let names: HashSet<String> = names.map(|tensor| tensor.path().to_owned()).collect();
        Self::with(value, move |tensor| {
            // A name that could be mistaken is given as a JSON Pointer.
            let step = |path: &str| path.replace("~1", "/").replace("~0", "~");
            let pointer = tensor.path().strip_prefix('/');
            names.contains(tensor.path())
                || pointer.is_some_and(|path| {
                    names.contains(&step(path)) || names.contains(&step(&path.replace('/', ".")))
                })
        })
    }

    fn with(
        value: &impl Serialize,
        is_tensor: impl Fn(&TensorInfo) -> bool + Send + Sync + 'static,
    ) -> Result<Self> {
        let options = SaveOptions::default().with_checksums(false).with_out_of_band(is_tensor);
        let split = Split::with_options(value, options)?;
        let info = split.info();
        let lengths = info.buffers().iter().map(|buffer| buffer.byte_len()).collect();
        Ok(Self { metadata: info.item().to_vec(), lengths })
    }
}

/// What a file holds that is not read from it.
#[derive(Clone, Debug, Default)]
pub struct Lost {
    listed: Vec<String>,
    count: u64,
}

impl Lost {
    /// More are counted only.
    const MOST: usize = 1000;
    const SHOWN: usize = 3;

    pub fn add(&mut self, what: String) {
        self.count += 1;
        if self.listed.len() < Self::MOST {
            self.listed.push(what);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Says all of it, of a file.
    pub fn tell(&self, file: &str) {
        for what in &self.listed {
            say(&format!("{file}: not read: {what}"));
        }
        more(self.count, self.listed.len());
    }
}

impl From<&Losses> for Lost {
    fn from(losses: &Losses) -> Self {
        let told = |loss: &Loss| match loss.path() {
            "" => loss.what().to_owned(),
            _ => loss.to_string(),
        };
        Self { listed: losses.listed().iter().map(told).collect(), count: losses.count() }
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.listed.iter().take(Self::SHOWN).map(String::as_str);
        f.write_str(&shown.collect::<Vec<_>>().join("; "))?;
        match self.count.saturating_sub(Self::SHOWN as u64) {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

/// One value, of a file of another format.
pub struct Fetched {
    reader: Box<dyn Reader>,
    structure: Structure,
    /// The key of each buffer's tensor.
    keys: HashMap<usize, String>,
    pub lost: Lost,
    watched: OnceLock<Progress>,
}

impl Fetched {
    /// A value that is a map of tensors and other things by their names, with maps inside where the names have dots,
    /// or one tensor.
    ///
    /// # Errors
    /// Where the structure is none.
    pub fn named(reader: Box<dyn Reader>, structure: Structure, lost: Lost) -> Result<Self> {
        let mut keys = HashMap::new();
        named("", &structure.root()?, &mut keys);
        Ok(Self { reader, structure, keys, lost, watched: OnceLock::new() })
    }

    /// A value whose tensors are known to the reader by their numbers.
    ///
    /// # Errors
    /// Where the structure is none.
    pub fn numbered(reader: Box<dyn Reader>, structure: Structure) -> Result<Self> {
        let root = structure.root()?;
        let payloads = paths::payloads(&root).into_iter().enumerate();
        let key =
            |(at, named): (usize, paths::Named<'_>)| Some((named.payload.buffer?, at.to_string()));
        let keys = payloads.filter_map(key).collect();
        Ok(Self { reader, structure, keys, lost: Lost::default(), watched: OnceLock::new() })
    }

    pub fn metadata(&self) -> &[u8] {
        &self.structure.metadata
    }

    /// # Errors
    /// Where paths are too long.
    pub fn root(&self) -> Result<Node> {
        self.structure.root()
    }

    /// Shows how much is read from now on.
    pub fn watch(&self, progress: Progress) {
        // Who watches already goes on.
        let _ = self.watched.set(progress);
    }

    /// Bytes of all tensors.
    pub fn byte_len(&self) -> u64 {
        self.structure.lengths.iter().fold(0, |sum, &len| sum.saturating_add(len))
    }

    fn key(&self, buffer: usize) -> Result<&str> {
        let key = self.keys.get(&buffer).map(String::as_str);
        key.ok_or_else(|| Failure::new("what stands there has the name of a tensor, and is none"))
    }

    /// Hands over the bytes of a buffer, in blocks of any size.
    ///
    /// # Errors
    /// Where they cannot be read, or `each` fails.
    pub fn blocks(
        &self,
        buffer: usize,
        each: &mut dyn FnMut(&[u8]) -> tenarc::Result<()>,
    ) -> Result<()> {
        let tensor = self.reader.tensor(self.key(buffer)?)?;
        let mut given = 0;
        tensor.write_blocks(&mut |block| {
            given += block.len() as u64;
            if let Some(progress) = self.watched.get() {
                progress.add(block.len() as u64);
            }
            each(block)
        })?;
        match self.structure.lengths.get(buffer) {
            Some(&len) if len == given => Ok(()),
            // It was changed since it was opened.
            _ => Err(Failure::Damage(format!(
                "a tensor gave {given} bytes, which is another length"
            ))),
        }
    }

    /// Fills `out` with the bytes of a buffer from `start` on, without reading those before; whether that
    /// can be done.
    ///
    /// # Errors
    /// Where they cannot be read.
    pub fn part(&self, buffer: usize, start: u64, out: &mut [u8]) -> Result<bool> {
        let Some((file, at)) = self.reader.place(self.key(buffer)?)? else { return Ok(false) };
        fill(file, out, at.saturating_add(start))?;
        Ok(true)
    }

    /// Reads everything that can be checked, and says what cannot be. `path` is that of the tensor being read.
    ///
    /// # Errors
    /// Where something cannot be read, or is damaged.
    pub fn verify(
        &self,
        root: &Node,
        progress: &Progress,
        path: &mut Option<String>,
    ) -> tenarc::Result<Option<String>> {
        for named in paths::payloads(root) {
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

/// The name of each buffer's tensor: the keys that lead to it, joined by dots.
fn named(name: &str, node: &Node, keys: &mut HashMap<usize, String>) {
    if let Some(buffer) = node.payload().and_then(|payload| payload.buffer) {
        keys.insert(buffer, name.to_owned());
    }
    let Kind::Map(entries) = &node.kind else { return };
    for (key, node) in entries {
        let step = key.step.as_deref().unwrap_or_default();
        let dot = if name.is_empty() { "" } else { "." };
        named(&format!("{name}{dot}{step}"), node, keys);
    }
}

impl Structure {
    fn root(&self) -> Result<Node> {
        let buffers: Vec<_> = self.lengths.iter().map(|&len| (0, len)).collect();
        let root = node::parse(&self.metadata, &buffers)?;
        paths::check(&root)?;
        Ok(root)
    }
}

/// Fills `out` from a position on.
///
/// # Errors
/// Where the source cannot be read, or ends before.
pub fn fill(source: &impl ReadAt, out: &mut [u8], at: u64) -> Result<()> {
    let mut done = 0;
    while let Some(rest) = out.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match source.read_at(rest, at.saturating_add(done as u64))? {
            0 => return Err(Failure::Damage("the file ended inside a tensor".into())),
            read => done += read,
        }
    }
    Ok(())
}
