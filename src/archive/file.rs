//! Archives that can be read at any position.

use std::fmt;
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use serde::de::{Deserialize, DeserializeOwned};

use super::directory::{Block, Directory, Entry, Place, parse_block, span};
use super::loaded::Loaded;
use super::scan::{self, Committed};
use super::segment::Segment;
use super::source;
use crate::error::{Error, Result};
use crate::io::at::{ReadAt, open_file};
use crate::mem::Arena;
use crate::near::Nearest;
use crate::options::DecodeOptions;
use crate::segment::format::{self, MAGIC};
use crate::tensor::{FromTensor, Slices, TensorInfo};

/// An archive that can be read at any position: a [file](crate::open), a [`Map`](crate::Map), bytes in
/// memory, or anything else that is [`ReadAt`].
///
/// Opening reads the end mark and the headers asked for; tensors are read when they are asked for,
/// into their final memory, and only those. All methods take `&self`, so that several threads can
/// read at once.
///
/// If the archive is one saved value, its parts are read by the methods here, and by those of
/// [`only`](Self::only); if it is several, by those of a [`segment`](Self::segment).
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
    /// Where the archive ends: behind its last end mark, unless it is read beyond.
    len: u64,
    /// How many bytes stand behind the last end mark.
    unfinished: u64,
    index: Index,
    options: DecodeOptions,
    /// The header of the only segment, once it was read.
    sole: OnceLock<Arc<Loaded>>,
    /// Where the small tensors of views go that are not aligned.
    arena: Arena,
}

/// More bytes than a block of the directory takes.
const MAX_BLOCK: u64 = 128 << 10;

/// Where the segments are.
enum Index {
    /// As the end mark says, which stands at the offset.
    Tree(Directory, u64),
    /// As a walk over a torn archive found them.
    List(List),
}

/// The segments of a torn archive.
struct List {
    whole: Vec<Entry>,
    /// The one that the archive ends in.
    cut: Option<Entry>,
    /// What is wrong with the archive.
    error: Error,
}

impl List {
    fn len(&self) -> u64 {
        self.whole.len() as u64 + u64::from(self.cut.is_some())
    }

    fn get(&self, index: u64) -> Option<&Entry> {
        let index = usize::try_from(index).ok()?;
        self.whole.iter().chain(&self.cut).nth(index)
    }
}

/// What opening an archive finds out.
pub(super) struct Opened {
    /// As that of an [`Archive`].
    pub len: u64,
    unfinished: u64,
    index: Index,
}

impl Opened {
    /// The state of the last end mark of what is `len` bytes long.
    pub fn committed<S: ReadAt + ?Sized>(source: &S, len: u64) -> Result<Self> {
        let Committed { directory, mark, end } = scan::last_commit(source, len)?;
        Ok(Self { len: end, unfinished: len - end, index: Index::Tree(directory, mark) })
    }

    /// As [`committed`](Self::committed), if nothing stands behind the end mark; otherwise all segments.
    pub fn torn<S: ReadAt + ?Sized>(source: &S, len: u64) -> Result<Self> {
        if let Some(Committed { directory, mark, end }) = scan::finished(source, len)? {
            return Ok(Self { len: end, unfinished: 0, index: Index::Tree(directory, mark) });
        }
        let mut whole = Vec::new();
        let scan = scan::scan(source, len, |segment| {
            segment.hashes(source)?;
            whole.push(segment.entry());
            Ok(())
        })?;
        let cut = scan.cut.as_ref().map(Loaded::entry);
        let unfinished = len - scan.vouched.unwrap_or(MAGIC.len() as u64);
        let error = scan::torn(&scan, len);
        Ok(Self { len, unfinished, index: Index::List(List { whole, cut, error }) })
    }
}

impl<S> fmt::Debug for Archive<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Archive")
            .field("len", &self.len)
            .field("torn", &matches!(self.index, Index::List(..)))
            .finish_non_exhaustive()
    }
}

impl Archive<File> {
    /// Opens an archive file: see [`tenarc::open`](crate::open), which is the same.
    ///
    /// # Errors
    /// As [`tenarc::open`](crate::open).
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_as(path.as_ref(), Opened::committed)
    }

    /// Opens an archive file, of which `look` finds out what it holds.
    pub(super) fn open_as(path: &Path, look: fn(&File, u64) -> Result<Opened>) -> Result<Self> {
        let (file, len) = open_file(path)?;
        let opened = look(&file, len).map_err(|error| error.in_file(path))?;
        Ok(Self::opened(file, opened))
    }
}

impl<S: ReadAt> Archive<S> {
    /// Opens an archive, of which only the first and the last bytes are read.
    ///
    /// Where more bytes follow the last end mark, of an append that is under way or was cut short, the
    /// archive is what that end mark vouches for, and [`unfinished_bytes`](Self::unfinished_bytes) says
    /// how many follow. To find the end mark then, all headers are walked over.
    ///
    /// # Errors
    /// Where reading fails, the source is no archive or a damaged one, and with
    /// [`Category::Torn`](crate::error::Category::Torn) where it has no end mark: the error says where the last whole
    /// segment ends.
    pub fn new(source: S) -> Result<Self> {
        let len = source.size().map_err(Error::io)?;
        let opened = Opened::committed(&source, len)?;
        Ok(Self::opened(source, opened))
    }

    /// As [`new`](Self::new), and reads what stands behind the last end mark too, or what there is of an
    /// archive without any: all headers then are walked over. [`torn`](Self::torn) says what is wrong.
    ///
    /// The segments are those that are whole, and as the last one that which the archive ends in, if its header
    /// is whole: see [`Segment::missing_bytes`].
    ///
    /// # Errors
    /// Where reading fails, or the source is no archive.
    pub fn new_torn(source: S) -> Result<Self> {
        let len = source.size().map_err(Error::io)?;
        let opened = Opened::torn(&source, len)?;
        Ok(Self::opened(source, opened))
    }

    pub(super) fn opened(source: S, opened: Opened) -> Self {
        let Opened { len, unfinished, index } = opened;
        let options = DecodeOptions::default();
        let (sole, arena) = (OnceLock::new(), Arena::default());
        Self { source, len, unfinished, index, options, sole, arena }
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
            Index::List(list) => Some(&list.error),
        }
    }

    /// How many bytes stand behind the last end mark: an append is under way, or was cut short. What they
    /// hold is no part of the archive, but for [`open_torn`](crate::archive::open_torn). The next
    /// [`append`](crate::OArchive::append) cuts them off.
    pub fn unfinished_bytes(&self) -> u64 {
        self.unfinished
    }

    /// The number of bytes of the archive: up to its last end mark, or all, where
    /// [`torn`](Self::torn) gives an error.
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
            Index::List(list) => list.len(),
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

    /// The value saved last under a name. Names are looked for from the end, 64 at a time. One that was cut is
    /// given only where no whole one has the name.
    ///
    /// # Errors
    /// Where there is no such name, or the archive is damaged.
    pub fn named(&self, name: &str) -> Result<Segment<'_, S>> {
        let is = |entry: &&Entry| entry.name.as_deref() == Some(name);
        let found = match &self.index {
            Index::List(list) => {
                list.whole.iter().rfind(is).or(list.cut.as_ref().filter(is)).cloned()
            }
            Index::Tree(directory, _) => match directory.entries().iter().rfind(is) {
                Some(entry) => Some(entry.clone()),
                None => self.in_blocks(directory, is)?,
            },
        };
        let entry = found.ok_or_else(|| self.no_such(name))?;
        self.at(&entry)
    }

    #[cold]
    fn no_such(&self, name: &str) -> Error {
        let mut nearest = Nearest::default();
        // Ends at the entry behind which no more are looked at.
        let mut look_at =
            |entry: &&Entry| nearest.look_at(name, entry.name.as_deref().unwrap_or_default());
        match &self.index {
            Index::List(list) => drop(list.whole.iter().chain(&list.cut).rfind(look_at)),
            Index::Tree(directory, _) => {
                if directory.entries().iter().rfind(&mut look_at).is_none() {
                    // What cannot be read suggests nothing.
                    drop(self.in_blocks(directory, look_at));
                }
            }
        }
        let (name, meant) = (name.escape_debug(), nearest.question());
        Error::data(format!("the archive has no segment named `{name}`{meant}"))
    }

    /// Every segment, in order.
    ///
    /// # Errors
    /// An item is an error where the directory or the segment's header is damaged, or cannot be read.
    pub fn segments(&self) -> impl Iterator<Item = Result<Segment<'_, S>>> {
        let mut before = 0;
        (0..self.len()).map(move |index| {
            let segment = self.segment(index)?;
            let offset = segment.offset();
            if offset <= before {
                let what = format!(
                    "directory: segment {index} stands at byte {offset}, the one before it at {before}"
                );
                return Err(Error::damaged(what).at(offset));
            }
            before = offset;
            Ok(segment)
        })
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
        if loaded.missing_bytes() > 0 && !self.is_cut(entry) {
            return Err(loaded.cut_error());
        }
        if loaded.header.name != entry.name {
            let what = "the directory has another name than the segment";
            return Err(Error::damaged(what).at(entry.offset));
        }
        Ok(self.with_loaded(loaded))
    }

    fn with_loaded(&self, loaded: Arc<Loaded>) -> Segment<'_, S> {
        Segment { source: &self.source, arena: Some(&self.arena), loaded, options: self.options }
    }

    /// Whether a segment is the one that a torn archive ends in.
    fn is_cut(&self, entry: &Entry) -> bool {
        matches!(&self.index, Index::List(list) if list.cut.as_ref() == Some(entry))
    }

    fn entry(&self, index: u64) -> Result<Option<Entry>> {
        let directory = match &self.index {
            Index::List(list) => return Ok(list.get(index).cloned()),
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
        mut is: impl FnMut(&&Entry) -> bool,
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
                    if let Some(found) = entries.iter().rfind(&mut is) {
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

    /// The value saved, if it is the only one: [`load`](Self::load), [`tensor`](Self::tensor) and the
    /// other methods here that read values read from it, and it has more of them.
    ///
    /// ```
    /// # let bytes = tenarc::OArchive::new(Vec::new()).and_then(|mut out| {
    /// #     out.save(&std::collections::BTreeMap::from([("bias", tenarc::Tensor(vec![0.5f32]))]))?;
    /// #     out.finish()
    /// # })?;
    /// let archive = tenarc::Archive::new(bytes)?;
    /// let value = archive.only()?;
    /// assert_eq!(value.keys("")?, ["bias"]);
    /// assert_eq!(value.info("bias")?.shape(), [1]);
    /// # Ok::<(), tenarc::Error>(())
    /// ```
    ///
    /// # Errors
    /// Where not exactly one value was saved, and where the archive is torn or damaged.
    pub fn only(&self) -> Result<Segment<'_, S>> {
        if let Some(loaded) = self.sole.get() {
            return Ok(self.with_loaded(loaded.clone()));
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
        self.only()?.load()
    }

    /// The value at `path`; see [`Segment::get`].
    ///
    /// # Errors
    /// Where not exactly one value was saved, and as [`Segment::get`].
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        self.only()?.get(path)
    }

    /// The tensor at `path`; see [`Segment::tensor`].
    ///
    /// # Errors
    /// Where not exactly one value was saved, and as [`Segment::tensor`].
    pub fn tensor<T: for<'de> FromTensor<'de>>(&self, path: &str) -> Result<T> {
        self.only()?.tensor(path)
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
        self.only()?.slice(path, slices)
    }

    /// All tensors; see [`Segment::tensors`].
    ///
    /// # Errors
    /// Where not exactly one value was saved, and as [`Segment::tensors`].
    pub fn tensors(&self) -> Result<Vec<TensorInfo>> {
        self.only()?.tensors()
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
        self.only()?.view_at(path)
    }

    /// Reads the whole archive and checks every byte of it: all checksums, paddings, the directory,
    /// and that every buffer is referred to. [Unfinished bytes](Self::unfinished_bytes) are no part of it.
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
