//! Archives that can be read at any position.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::{Arc, OnceLock};

use serde::de::{Deserialize, DeserializeOwned};

use super::directory::{Block, Directory, Entry, Place, parse_block, span};
use super::loaded::Loaded;
use super::scan;
use super::segment::Segment;
use super::source;
use crate::error::{Error, Result};
use crate::io::at::ReadAt;
use crate::options::DecodeOptions;
use crate::segment::format;
use crate::segment::path::TensorInfo;
use crate::tensor::{DynTensor, FromTensor, Slices};

/// An archive that can be read at any position: a [file](crate::open), a [`Map`](crate::Map), bytes in
/// memory, or anything else that is [`ReadAt`].
///
/// Opening reads the end mark and the headers asked for; tensors are read when they are asked for,
/// into their final memory, and only those. All methods take `&self`, so that several threads can
/// read at once.
///
/// Where the archive is one saved value, its parts are read by the methods here; where it is
/// several, by those of a [`segment`](Self::segment).
///
/// ```
/// use std::collections::BTreeMap;
///
/// use ndarray::{Array1, Array2, s};
/// use tenarc::Tensor;
///
/// # let dir = std::env::temp_dir().join(format!("tenarc-doc-archive-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir)?;
/// # let path = dir.join("model.tenarc");
/// let model = BTreeMap::from([("encoder", Tensor(Array2::<f32>::eye(64)))]);
/// tenarc::save(&path, &model)?;
///
/// let file = tenarc::open(&path)?;
/// let weight: Array2<f32> = file.tensor("encoder")?;
/// let rows: Array2<f32> = file.slice("encoder", s![10..20, ..])?;
/// assert_eq!(rows, weight.slice(s![10..20, ..]));
/// for tensor in file.tensors()? {
///     println!("{} {} {:?}", tensor.path(), tensor.dtype(), tensor.shape());
/// }
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Archive<S> {
    source: S,
    len: u64,
    index: Index,
    options: DecodeOptions,
    /// The header of the only segment, once it was read.
    sole: OnceLock<Arc<Loaded>>,
}

/// More bytes than a block of the directory takes.
const MAX_BLOCK: u64 = 128 << 10;

/// Where the segments are.
enum Index {
    /// As the end mark says, which stands at the offset.
    Tree(Directory, u64),
    /// As a walk over a torn archive found them, and what it found wrong.
    List(Vec<Entry>, Error),
}

impl<S> fmt::Debug for Archive<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Archive")
            .field("len", &self.len)
            .field("torn", &matches!(self.index, Index::List(..)))
            .finish_non_exhaustive()
    }
}

impl<S: ReadAt> Archive<S> {
    /// Opens an archive, of which only the first and the last bytes are read.
    ///
    /// # Errors
    /// Where reading fails, the source is no archive or a damaged one, and with
    /// [`Category::Torn`](crate::error::Category::Torn) where it ends without an end mark: the error says
    /// where the last whole segment ends.
    pub fn new(source: S) -> Result<Self> {
        let len = source.size().map_err(Error::io)?;
        Self::of_len(source, len, false)
    }

    /// As [`new`](Self::new), and a torn archive too, whose headers then are all walked over:
    /// [`torn`](Self::torn) says what is wrong with it, and its whole segments can be read.
    ///
    /// # Errors
    /// Where reading fails, or the source is no archive.
    pub fn new_torn(source: S) -> Result<Self> {
        let len = source.size().map_err(Error::io)?;
        Self::of_len(source, len, true)
    }

    /// As [`new`](Self::new) or [`new_torn`](Self::new_torn), where it is known how long the source is.
    pub(super) fn of_len(source: S, len: u64, take_torn: bool) -> Result<Self> {
        scan::check_magic(&source, len)?;
        let index = match scan::read_end(&source, len)? {
            Some((directory, mark)) => Index::Tree(directory, mark),
            None => {
                let mut entries = Vec::new();
                let scan = scan::scan(&source, len, |segment| {
                    if take_torn {
                        let header = &segment.header;
                        entries.push(Entry { offset: header.offset, name: header.name.clone() });
                    }
                    Ok(())
                })?;
                let error = scan::torn(&scan, len);
                if !take_torn {
                    return Err(error);
                }
                Index::List(entries, error)
            }
        };
        let options = DecodeOptions::default();
        Ok(Self { source, len, index, options, sole: OnceLock::new() })
    }

    /// Sets how values are read.
    #[must_use]
    pub fn with_options(mut self, options: DecodeOptions) -> Self {
        self.options = options;
        self
    }

    /// What is wrong with a torn archive.
    pub fn torn(&self) -> Option<&Error> {
        match &self.index {
            Index::Tree(..) => None,
            Index::List(_, error) => Some(error),
        }
    }

    pub(super) fn directory(&self) -> Option<&Directory> {
        match &self.index {
            Index::Tree(directory, _) => Some(directory),
            Index::List(..) => None,
        }
    }

    /// The number of bytes of the archive.
    pub fn byte_len(&self) -> u64 {
        self.len
    }

    /// What the archive is read from.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// How many values were saved.
    pub fn len(&self) -> u64 {
        match &self.index {
            Index::Tree(directory, _) => directory.count(),
            Index::List(entries, _) => entries.len() as u64,
        }
    }

    /// Whether nothing was saved.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value saved as number `index`, counted from zero. Costs as much for the last of a million
    /// as for the first.
    ///
    /// # Errors
    /// Where there are fewer, or the archive is damaged.
    pub fn segment(&self, index: u64) -> Result<Segment<'_, S>> {
        let entry = self.entry(index)?.ok_or_else(|| {
            Error::data(format!("the archive has {} segments, none of number {index}", self.len()))
        })?;
        self.at(&entry)
    }

    /// The value saved last under a name. Names are looked for from the end, 64 at a time.
    ///
    /// # Errors
    /// Where there is no such name, or the archive is damaged.
    pub fn named(&self, name: &str) -> Result<Segment<'_, S>> {
        let is = |entry: &&Entry| entry.name.as_deref() == Some(name);
        let found = match &self.index {
            Index::List(entries, _) => entries.iter().rfind(is).cloned(),
            Index::Tree(directory, _) => match directory.entries().iter().rfind(is) {
                Some(entry) => Some(entry.clone()),
                None => self.in_blocks(directory, is)?,
            },
        };
        let entry = found.ok_or_else(|| {
            Error::data(format!("the archive has no segment named `{}`", name.escape_debug()))
        })?;
        self.at(&entry)
    }

    /// Offset and name of every segment, in order.
    ///
    /// # Errors
    /// An item is an error where the directory is damaged, or cannot be read.
    pub fn segments(&self) -> impl Iterator<Item = Result<Segment<'_, S>>> {
        (0..self.len()).map(|index| self.segment(index))
    }

    fn at(&self, entry: &Entry) -> Result<Segment<'_, S>> {
        let end = match &self.index {
            Index::Tree(_, mark) => *mark,
            Index::List(..) => self.len,
        };
        let known = self.sole.get().filter(|loaded| loaded.header.offset == entry.offset);
        let loaded = match known {
            Some(loaded) => loaded.clone(),
            None => Arc::new(Loaded::read(&self.source, entry.offset, end, self.options.limits)?),
        };
        if loaded.header.name != entry.name {
            let what = "the directory has another name than the segment";
            return Err(Error::damaged(what).at(entry.offset));
        }
        Ok(Segment { source: &self.source, loaded, options: self.options })
    }

    fn entry(&self, index: u64) -> Result<Option<Entry>> {
        let directory = match &self.index {
            Index::List(entries, _) => {
                return Ok(usize::try_from(index).ok().and_then(|at| entries.get(at)).cloned());
            }
            Index::Tree(directory, _) => directory,
        };
        let (mut offset, mut level, mut rest) = match directory.find(index) {
            None => return Ok(None),
            Some(Place::Here(entry)) => return Ok(Some(entry.clone())),
            Some(Place::Block { offset, level, rest }) => (offset, level, rest),
        };
        loop {
            match self.block(offset, level)? {
                Block::Entries(entries) => {
                    return Ok(usize::try_from(rest).ok().and_then(|at| entries.get(at)).cloned());
                }
                Block::Blocks(blocks) => {
                    // A block of entries is one of level 0.
                    level = level.saturating_sub(1);
                    let at = usize::try_from(rest / span(level)).unwrap_or(usize::MAX);
                    offset = blocks.get(at).copied().ok_or_else(|| {
                        Error::damaged("directory: a block that leads nowhere").at(offset)
                    })?;
                    rest %= span(level);
                }
            }
        }
    }

    fn block(&self, offset: u64, level: usize) -> Result<Block> {
        let record = source::record(&self.source, offset, self.len, MAX_BLOCK)?;
        parse_block(format::open_record(&record, offset)?, level, offset)
    }

    /// The latest entry in a block that is the one looked for.
    fn in_blocks(
        &self,
        directory: &Directory,
        is: impl Fn(&&Entry) -> bool + Copy,
    ) -> Result<Option<Entry>> {
        // Latest last: levels are few, and so are the blocks of each.
        let mut blocks: Vec<(usize, u64)> = directory.blocks().collect();
        blocks.reverse();
        let mut before = self.len;
        while let Some((level, offset)) = blocks.pop() {
            // A block stands behind all it leads to, so that from the latest on they go down. Those
            // that share what they lead to would be looked into by every way there is.
            if offset >= before {
                return Err(Error::damaged("directory: blocks out of order").at(offset));
            }
            before = offset;
            match self.block(offset, level)? {
                Block::Entries(entries) => {
                    if let Some(found) = entries.iter().rfind(is) {
                        return Ok(Some(found.clone()));
                    }
                }
                Block::Blocks(lower) => {
                    blocks
                        .extend(lower.into_iter().map(|offset| (level.saturating_sub(1), offset)));
                }
            }
        }
        Ok(None)
    }

    /// The only segment.
    fn sole(&self) -> Result<Segment<'_, S>> {
        if let Some(loaded) = self.sole.get() {
            let loaded = loaded.clone();
            return Ok(Segment { source: &self.source, loaded, options: self.options });
        }
        if let Some(error) = self.torn() {
            return Err(error.again());
        }
        if self.len() != 1 {
            return Err(Error::data(format!(
                "the archive has {} segments: choose one by segment(index) or named(name)",
                self.len()
            )));
        }
        let segment = self.segment(0)?;
        let loaded = self.sole.get_or_init(|| segment.loaded.clone()).clone();
        Ok(Segment { loaded, ..segment })
    }

    /// The whole value, where only one was saved; see [`Segment::load`].
    ///
    /// # Errors
    /// Where not exactly one value was saved, and as [`Segment::load`].
    pub fn load<T: DeserializeOwned>(&self) -> Result<T> {
        self.sole()?.load()
    }

    /// The value at `path`; see [`Segment::get`].
    ///
    /// # Errors
    /// Where not exactly one value was saved, and as [`Segment::get`].
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        self.sole()?.get(path)
    }

    /// The tensor at `path`; see [`Segment::tensor`].
    ///
    /// # Errors
    /// Where not exactly one value was saved, and as [`Segment::tensor`].
    pub fn tensor<T: for<'de> FromTensor<'de>>(&self, path: &str) -> Result<T> {
        self.sole()?.tensor(path)
    }

    /// The tensor at `path`, whatever its dtype; see [`Segment::dyn_tensor`].
    ///
    /// # Errors
    /// Where not exactly one value was saved, and as [`Segment::dyn_tensor`].
    pub fn dyn_tensor(&self, path: &str) -> Result<DynTensor> {
        self.sole()?.dyn_tensor(path)
    }

    /// Many tensors, read by several threads; see [`Segment::dyn_tensors`].
    ///
    /// # Errors
    /// Where not exactly one value was saved, and as [`Segment::dyn_tensors`].
    pub fn dyn_tensors<P: AsRef<str> + Sync>(
        &self,
        paths: &[P],
        threads: NonZeroUsize,
    ) -> Result<Vec<DynTensor>>
    where
        S: Sync,
    {
        self.sole()?.dyn_tensors(paths, threads)
    }

    /// Part of the tensor at `path`; see [`Segment::slice`].
    ///
    /// # Errors
    /// Where not exactly one value was saved, and as [`Segment::slice`].
    pub fn slice<T: for<'de> FromTensor<'de>>(
        &self,
        path: &str,
        slices: impl Into<Slices>,
    ) -> Result<T> {
        self.sole()?.slice(path, slices)
    }

    /// All tensors; see [`Segment::tensors`].
    ///
    /// # Errors
    /// Where not exactly one value was saved, and as [`Segment::tensors`].
    pub fn tensors(&self) -> Result<Vec<TensorInfo>> {
        self.sole()?.tensors()
    }

    /// The tensor at `path`, without its elements; see [`Segment::info`].
    ///
    /// # Errors
    /// Where not exactly one value was saved, and as [`Segment::info`].
    pub fn info(&self, path: &str) -> Result<TensorInfo> {
        self.sole()?.info(path)
    }

    /// The keys at `path`; see [`Segment::keys`].
    ///
    /// # Errors
    /// Where not exactly one value was saved, and as [`Segment::keys`].
    pub fn keys(&self, path: &str) -> Result<Vec<String>> {
        self.sole()?.keys(path)
    }

    /// Views of the value, where the archive lies in memory; see [`Segment::view`].
    ///
    /// # Errors
    /// Where not exactly one value was saved, and as [`Segment::view`].
    pub fn view<'a, T: Deserialize<'a>>(&'a self) -> Result<T> {
        self.view_at("")
    }

    /// Views of the value at `path`; see [`Segment::view_at`].
    ///
    /// # Errors
    /// Where not exactly one value was saved, and as [`Segment::view_at`].
    pub fn view_at<'a, T: Deserialize<'a>>(&'a self, path: &str) -> Result<T> {
        self.sole()?.view_at(path)
    }

    /// Reads the whole archive and checks every byte of it: all checksums, paddings, the directory,
    /// and that every buffer is referred to.
    ///
    /// # Errors
    /// The first fault, with [`Category::Damaged`](crate::error::Category::Damaged) or
    /// [`Category::Torn`](crate::error::Category::Torn), and its place.
    pub fn verify(&self) -> Result<()> {
        self.verify_with(|_, _| {})
    }

    /// As [`verify`](Self::verify); tells `progress` from time to time how many bytes were checked, and
    /// how many there are.
    ///
    /// # Errors
    /// As [`verify`](Self::verify).
    pub fn verify_with(&self, progress: impl FnMut(u64, u64)) -> Result<()> {
        super::verify::verify(&self.source, self.len, self.options.limits, progress)
    }
}
