//! Archives that can be read at any position.

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::vec;

use serde::de::{Deserialize, DeserializeOwned};

use super::digest::Digest;
use super::directory::{self, BlockAt, Directory, DirectoryBlock, Entry, EntryPlace, Fact, span};
use super::opened::{Last, Opened, SegmentIndex};
use super::scan;
use super::segment::Segment;
use super::table::{Table, UnreadHeader};
use crate::buffer::loaded::Loaded;
use crate::buffer::source;
use crate::error::{Error, Result};
use crate::io::at::{ReadAt, announce, open_file};
use crate::mem::Arena;
use crate::near::Nearest;
use crate::options::DecodeOptions;
use crate::segment::format::MAGIC;
use crate::segment::items::ItemEncoder;
use crate::tensor::{FromTensor, Slices, TensorInfo};
use crate::wire::head;

/// The number of segments whose headers are announced together.
pub(super) const TOGETHER: usize = 64;

/// An archive that can be read at any position: a [file](crate::open), a [`Map`](crate::Map), bytes in
/// memory, or anything else that implements [`ReadAt`].
///
/// Opening reads the end mark. Headers and tensors are read only when they are needed, tensors directly into
/// their final memory. All methods take `&self`, so several threads can read at once.
///
/// If the archive holds one value, the methods here read it. If it holds several, choose one with
/// [`segment`](Self::segment) or [`named`](Self::named) first.
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
    /// The length of the archive: up to its last end mark, or of the whole source if it was opened as torn.
    len: u64,
    /// The number of bytes after the last end mark.
    unfinished: u64,
    index: SegmentIndex,
    /// The last bytes, as far as opening read them.
    last: Last,
    options: DecodeOptions,
    /// The only segment, after its header was read.
    sole: OnceLock<Arc<Loaded>>,
    kept: KeptHeaders,
    /// Memory for small tensors that views need and that are not aligned in the archive.
    arena: Arena,
}

/// The headers that were read last, with the checksums of their buffers, so that a program that asks for a segment again
/// does not read them again.
#[derive(Default)]
struct KeptHeaders(Mutex<Vec<Arc<Loaded>>>);

impl KeptHeaders {
    const COUNT: usize = 16;
    /// Longer headers are not kept.
    const LONGEST: u64 = 1 << 20;

    fn get(&self, offset: u64) -> Option<Arc<Loaded>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|loaded| loaded.header.offset == offset).cloned()
    }

    /// Keeps a header in the place of the one that came first.
    fn put(&self, loaded: &Arc<Loaded>) {
        let header = &loaded.header;
        if header.layout.header_end - header.offset > Self::LONGEST {
            return;
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= Self::COUNT {
            kept.remove(0);
        }
        kept.push(loaded.clone());
    }
}

impl<S> fmt::Debug for Archive<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Archive")
            .field("len", &self.len)
            .field("torn", &matches!(self.index, SegmentIndex::List(..)))
            .finish_non_exhaustive()
    }
}

impl Archive<File> {
    /// Opens an archive file. This is the same as [`tenarc::open`](crate::open).
    ///
    /// # Errors
    /// The same errors as [`tenarc::open`](crate::open).
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_as(path.as_ref(), Opened::committed)
    }

    /// Opens an archive file. `look` is [`Opened::committed`] or [`Opened::torn`].
    pub(super) fn open_as(path: &Path, look: fn(&dyn ReadAt) -> Result<Opened>) -> Result<Self> {
        let (file, _) = open_file(path)?;
        let opened = look(&file).map_err(|error| error.in_file(path))?;
        Ok(Self::opened(file, opened))
    }
}

impl<S: ReadAt> Archive<S> {
    /// Opens an archive. Usually only its last bytes are read: [`ReadAt::read_last`].
    ///
    /// If bytes follow the last end mark, an append is in progress or was interrupted. The archive then consists of the
    /// values that were complete at that end mark, and [`unfinished_bytes`](Self::unfinished_bytes) counts the bytes
    /// after it. To find the end mark in this case, all headers are read.
    ///
    /// # Errors
    /// - Reading fails, or the source is not an archive, or is damaged.
    /// - The source has no end mark. The category is [`Category::Torn`](crate::error::Category::Torn), and the
    ///   message says where the last complete segment ends.
    pub fn new(source: S) -> Result<Self> {
        let opened = Opened::committed(&source)?;
        Ok(Self::opened(source, opened))
    }

    /// Like [`new`](Self::new), but also reads the segments after the last end mark, and archives without an end
    /// mark. All headers are read then, and [`torn`](Self::torn) says what is wrong.
    ///
    /// The archive then consists of its complete segments. If the input ends inside one more segment whose header
    /// is complete, that segment is the last one: see [`Segment::missing_bytes`].
    ///
    /// # Errors
    /// If reading fails, or the source is not an archive.
    pub fn new_torn(source: S) -> Result<Self> {
        let opened = Opened::torn(&source)?;
        Ok(Self::opened(source, opened))
    }

    pub(super) fn opened(source: S, opened: Opened) -> Self {
        let Opened { len, unfinished, index, mut last } = opened;
        if source.contents().is_some() {
            last = Last::default();
        }
        let options = DecodeOptions::default();
        let (sole, kept, arena) = (OnceLock::new(), KeptHeaders::default(), Arena::default());
        Self { source, len, unfinished, index, last, options, sole, kept, arena }
    }

    /// Sets the limits, whether checksums are verified, and the number of threads, for everything that is read from
    /// now on.
    #[must_use]
    pub fn with_options(mut self, options: DecodeOptions) -> Self {
        self.options = options;
        self
    }

    /// What is wrong with the archive, if it was opened as torn and does not end with an end mark.
    pub fn torn(&self) -> Option<&Error> {
        match &self.index {
            SegmentIndex::Tree(..) => None,
            SegmentIndex::List(list) => Some(&list.error),
        }
    }

    /// The number of bytes after the last end mark. They belong to an append that is in progress or was
    /// interrupted. Only [`open_torn`](crate::archive::open_torn) reads them. The next
    /// [`append`](crate::OArchive::append) cuts them off.
    pub fn unfinished_bytes(&self) -> u64 {
        self.unfinished
    }

    /// The length of the archive in bytes: up to its last end mark, or of the whole source if
    /// [`torn`](Self::torn) returns an error.
    pub fn byte_len(&self) -> u64 {
        self.len
    }

    /// The source that the archive is read from.
    pub fn source(&self) -> &S {
        &self.source
    }

    pub(super) fn options(&self) -> DecodeOptions {
        self.options
    }

    /// The number of saved values, which is the number of [`segments`](Self::segments). In Python, this is
    /// `archive.count`: there, an archive stands for its only value, so `len(archive)` counts the paths in it.
    pub fn len(&self) -> u64 {
        match &self.index {
            SegmentIndex::Tree(directory, _) => directory.count(),
            SegmentIndex::List(list) => list.len(),
        }
    }

    /// Whether the archive holds no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The saved value with this number, counted from 0. The last of a million values is found as quickly as the
    /// first.
    ///
    /// # Errors
    /// If there is no such value, or the archive is damaged.
    pub fn segment(&self, index: u64) -> Result<Segment<'_, S>> {
        let entry = self.entry(index)?.ok_or_else(|| {
            Error::not_found(format!(
                "the archive has {} segments, there is no segment {index}",
                self.len()
            ))
        })?;
        self.at(&entry)
    }

    /// The value with this name. If several have it, the one that was saved last. An incomplete segment of a torn
    /// archive is returned only if no complete one has the name.
    ///
    /// The search starts at the end of the archive and reads blocks of 64 names.
    ///
    /// ```
    /// let mut out = tenarc::OArchive::new(Vec::new())?;
    /// out.save_as("config", &0.1)?.save_as("loss", &2.5)?.save_as("loss", &1.5)?;
    /// let archive = tenarc::Archive::new(out.finish()?)?;
    /// assert_eq!(archive.named("loss")?.load::<f64>()?, 1.5); // the last one
    /// # Ok::<(), tenarc::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such name, or the archive is damaged.
    pub fn named(&self, name: &str) -> Result<Segment<'_, S>> {
        let is = |entry: &&Entry| entry.name.as_deref() == Some(name);
        let found = match &self.index {
            SegmentIndex::List(list) => {
                list.complete.iter().rfind(is).or(list.cut.as_ref().filter(is)).cloned()
            }
            SegmentIndex::Tree(directory, _) => match directory.entries().iter().rfind(is) {
                Some(entry) => Some(entry.clone()),
                None => self.in_blocks(directory, is)?,
            },
        };
        let entry = found.ok_or_else(|| self.no_such(name))?;
        self.at(&entry)
    }

    #[cold]
    pub(super) fn no_such(&self, name: &str) -> Error {
        let mut nearest = Nearest::default();
        // `look_at` returns `true` when it has seen enough names, which ends the search.
        let mut look_at =
            |entry: &&Entry| nearest.look_at(name, entry.name.as_deref().unwrap_or_default());
        match &self.index {
            SegmentIndex::List(list) => drop(list.complete.iter().chain(&list.cut).rfind(look_at)),
            SegmentIndex::Tree(directory, _) => {
                if directory.entries().iter().rfind(&mut look_at).is_none() {
                    // This only helps to suggest a name, so a block that cannot be read is ignored.
                    drop(self.in_blocks(directory, look_at));
                }
            }
        }
        let (name, meant) = (name.escape_debug(), nearest.question());
        Error::not_found(format!("the archive has no segment named `{name}`{meant}"))
    }

    /// What the directory says of each saved value, in the order in which they were saved: names, numbers of rows. No headers
    /// are read, so this takes one read for 64 values.
    ///
    /// ```
    /// use tenarc::{Archive, OArchive};
    ///
    /// let mut out = OArchive::new(Vec::new())?;
    /// out.save_as("days", &["Monday", "Tuesday"])?.save_as("sum", &7)?;
    /// let archive = Archive::new(out.finish()?)?;
    /// let entries: Vec<_> = archive.entries().collect::<Result<_, _>>()?;
    /// assert_eq!((entries[0].name(), entries[0].rows()), (Some("days"), Some(2)));
    /// # Ok::<(), tenarc::Error>(())
    /// ```
    ///
    /// # Errors
    /// An item is an error if the directory is damaged or cannot be read. Nothing follows it.
    pub fn entries(&self) -> Entries<'_, S> {
        let pending = match &self.index {
            SegmentIndex::List(list) => {
                let entries = list.complete.iter().chain(&list.cut).rev();
                entries.cloned().map(Pending::Entry).collect()
            }
            SegmentIndex::Tree(directory, _) => {
                let entries = directory.entries().iter().rev().cloned().map(Pending::Entry);
                let blocks = directory.blocks().map(|(level, at)| Pending::Block(level, at));
                self.announce_blocks(directory.blocks().map(|(_, at)| at));
                entries.chain(blocks).collect()
            }
        };
        Entries { archive: self, pending, before: 0, number: 0 }
    }

    /// All segments, in the order in which they were saved. `for segment in &archive` is the same.
    ///
    /// ```
    /// let mut out = tenarc::OArchive::new(Vec::new())?;
    /// out.save_as("step", &1)?.save_as("step", &2)?;
    /// let archive = tenarc::Archive::new(out.finish()?)?;
    /// for segment in archive.segments() {
    ///     let segment = segment?;
    ///     println!("{:?}: {}", segment.name(), segment.load::<u32>()?);
    /// }
    /// # Ok::<(), tenarc::Error>(())
    /// ```
    ///
    /// # Errors
    /// An item is an error if the directory or the segment's header is damaged or cannot be read.
    pub fn segments(&self) -> Segments<'_, S> {
        Segments { entries: self.entries(), next: Vec::new().into_iter() }
    }

    /// The rows of all values with this name, as one table. Each value must be a sequence, such as a `Vec` of structs.
    /// So a program that [appends](crate::OArchive::append) a `Vec` each day under the same name makes one table.
    ///
    /// ```
    /// use serde::{Deserialize, Serialize};
    /// use tenarc::{Archive, OArchive};
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Event {
    ///     id: u64,
    ///     score: f32,
    /// }
    ///
    /// let mut out = OArchive::new(Vec::new())?;
    /// for day in 0..3 {
    ///     let events: Vec<_> = (0..100).map(|id| Event { id, score: day as f32 }).collect();
    ///     out.save_as("events", &events)?;
    /// }
    /// let archive = Archive::new(out.finish()?)?;
    ///
    /// let events = archive.table("events")?;
    /// assert_eq!(events.len(), 300);
    /// assert_eq!(events.row::<Event>(250)?.id, 50);
    /// let scores: Vec<f32> = events.column("score")?;
    /// assert_eq!(scores[250], 2.0);
    /// # Ok::<(), tenarc::Error>(())
    /// ```
    ///
    /// Save a `Vec` or a slice, not an array: for serde, an array `[Event; 100]` is a tuple. It is stored as rows, and the
    /// columns of its table have no dtype.
    ///
    /// # Errors
    /// If no value has the name, one of them is not a sequence, or the archive is damaged. The headers of the values are read
    /// when rows are asked for, so some damage is found only then.
    pub fn table(&self, name: &str) -> Result<Table<'_, S>> {
        let mut table = Table::default();
        for entry in self.entries() {
            self.add_rows(&mut table, entry?, name)?;
        }
        if table.has_parts() { Ok(table) } else { Err(self.no_such(name)) }
    }

    /// Adds the rows of a value to a table, if it has the name of the table.
    pub(super) fn add_rows<'a>(
        &'a self,
        table: &mut Table<'a, S>,
        entry: Entry,
        name: &str,
    ) -> Result<()> {
        if entry.name.as_deref() != Some(name) {
            return Ok(());
        }
        match entry.rows() {
            // The header is read when a row is needed.
            Some(rows) => {
                table.add_later(rows, self.options.limits, self.later(entry));
                Ok(())
            }
            None => {
                let segment = self.at(&entry)?;
                let whole = 0..segment.metadata()?.len();
                table.add(segment, whole).map_err(|error| error.in_field(name.to_owned()))
            }
        }
    }

    pub(super) fn at(&self, entry: &Entry) -> Result<Segment<'_, S>> {
        let end = match &self.index {
            SegmentIndex::Tree(_, mark) => *mark,
            SegmentIndex::List(..) => self.len,
        };
        let known = self.sole.get().filter(|loaded| loaded.header.offset == entry.offset);
        let known = known.cloned().or_else(|| self.kept.get(entry.offset));
        let loaded = match known {
            Some(loaded) => loaded,
            None => {
                let loaded = Arc::new(self.loaded(entry, end)?);
                if self.source.contents().is_none() {
                    self.kept.put(&loaded);
                }
                loaded
            }
        };
        if loaded.missing_bytes() > 0 && !self.is_cut(entry) {
            return Err(loaded.cut_error());
        }
        if loaded.header.name != entry.name {
            let what = "the name in the directory is not the name of the segment";
            return Err(Error::damaged(what).at(entry.offset));
        }
        Ok(self.with_loaded(loaded))
    }

    /// The range of a header, with the magic in front of the first one. Empty if it was read when the archive was opened.
    pub(super) fn header_of(&self, entry: &Entry) -> Range<u64> {
        let start = if entry.offset == MAGIC.len() as u64 { 0 } else { entry.offset };
        let end = entry.offset.saturating_add(entry.header_len).min(self.len);
        if self.last.start <= start { end..end } else { start..end }
    }

    /// The header of a segment, to be read when it is needed.
    pub(super) fn later(&self, entry: Entry) -> UnreadHeader<'_, S> {
        let (source, place) = (&self.source, self.header_of(&entry));
        UnreadHeader { source, place, open: Box::new(move || self.at(&entry)) }
    }

    /// Announces the headers of segments.
    pub(super) fn announce_headers<'e>(&self, entries: impl Iterator<Item = &'e Entry>) {
        announce(&self.source, || entries.map(|entry| self.header_of(entry)).collect());
    }

    /// Announces the only segment, whose header was not read yet.
    fn announce_only(&self) {
        if let SegmentIndex::Tree(directory, mark) = &self.index
            && let ([entry], None) = (directory.entries(), self.sole.get())
            && directory.count() == 1
        {
            self.source.will_read_most(self.header_of(entry).start..*mark);
        }
    }

    /// Announces blocks of the directory that were not read when the archive was opened.
    fn announce_blocks(&self, blocks: impl Iterator<Item = BlockAt>) {
        let unread = blocks.filter(|block| block.offset < self.last.start);
        announce(&self.source, || unread.map(BlockAt::range).collect());
    }

    /// Reads the header of a segment, and its checksums if they are among the last bytes.
    fn loaded(&self, entry: &Entry, end: u64) -> Result<Loaded> {
        let (source, limits) = (&self.source, self.options.limits);
        // The magic bytes are read with the first header.
        let with_magic = entry.offset == MAGIC.len() as u64 && source.contents().is_none();
        let before = if with_magic && self.last.start > 0 { MAGIC.len() } else { 0 };
        let loaded =
            Loaded::read_known(entry.offset, entry.header_len, end, limits, before, |len| {
                let start = entry.offset - before as u64;
                let len = len + before as u64;
                let bytes = match self.last.get(start, len) {
                    Some(bytes) => Cow::Owned(bytes.to_vec()),
                    None => source::bytes(source, start, len)?,
                };
                if before > 0 {
                    scan::check_magic_of_stream(&bytes)?;
                }
                Ok(bytes)
            })?;
        let layout = &loaded.header.layout;
        if let Some(trailer) = self.last.get(layout.body_end, layout.trailer_len())
            && loaded.header.is_checked()
        {
            loaded.offer_trailer(trailer);
        }
        Ok(loaded)
    }

    fn with_loaded(&self, loaded: Arc<Loaded>) -> Segment<'_, S> {
        Segment { source: &self.source, arena: Some(&self.arena), loaded, options: self.options }
    }

    /// Whether the end of a torn archive cuts off this segment.
    fn is_cut(&self, entry: &Entry) -> bool {
        matches!(&self.index, SegmentIndex::List(list) if list.cut.as_ref().is_some_and(|cut| cut.offset == entry.offset))
    }

    /// The directory's entry for a segment. `None` if there is no such segment.
    pub(super) fn entry(&self, index: u64) -> Result<Option<Entry>> {
        let directory = match &self.index {
            SegmentIndex::List(list) => return Ok(list.get(index).cloned()),
            SegmentIndex::Tree(directory, _) => directory,
        };
        let (mut at, mut level, mut rest) = match directory.find(index) {
            None => return Ok(None),
            Some(EntryPlace::Here(entry)) => return Ok(Some(entry.clone())),
            Some(EntryPlace::Block { block, level, rest }) => (block, level, rest),
        };
        loop {
            match self.block(at, level)? {
                DirectoryBlock::Segments(entries) => {
                    return Ok(usize::try_from(rest).ok().and_then(|at| entries.get(at)).cloned());
                }
                DirectoryBlock::Blocks(blocks) => {
                    // Blocks of level 0 hold entries, so the level is at least 1 here.
                    level = level.saturating_sub(1);
                    let number = usize::try_from(rest / span(level)).unwrap_or(usize::MAX);
                    at = blocks.get(number).copied().ok_or_else(|| {
                        Error::damaged("directory: the block has too few entries").at(at.offset)
                    })?;
                    rest %= span(level);
                }
            }
        }
    }

    fn block(&self, BlockAt { offset, len }: BlockAt, level: usize) -> Result<DirectoryBlock> {
        source::check_record_len(len, offset, self.len, directory::MAX_RECORD)?;
        let record = match self.last.get(offset, len) {
            Some(record) => Cow::Borrowed(record),
            None => source::bytes(&self.source, offset, len)?,
        };
        let (block, ext) = DirectoryBlock::open(&record, level, offset)?;
        ext.check("a block of the directory", offset)?;
        Ok(block)
    }

    /// Searches the blocks of the directory, latest first, for an entry for which `is` returns `true`.
    fn in_blocks(
        &self,
        directory: &Directory,
        mut is: impl FnMut(&&Entry) -> bool,
    ) -> Result<Option<Entry>> {
        // The latest block is last, where `pop` takes it.
        let mut blocks: Vec<(usize, BlockAt)> = directory.blocks().collect();
        blocks.reverse();
        let mut before = self.len;
        while let Some((level, at)) = blocks.pop() {
            // A block comes after everything it refers to, so the offsets decrease. A damaged directory in which
            // several blocks refer to the same block is refused: the search would read it many times.
            if at.offset >= before {
                return Err(Error::damaged("directory: the blocks are not in order").at(at.offset));
            }
            before = at.offset;
            match self.block(at, level)? {
                DirectoryBlock::Segments(entries) => {
                    if let Some(found) = entries.iter().rfind(&mut is) {
                        return Ok(Some(found.clone()));
                    }
                }
                DirectoryBlock::Blocks(lower) => {
                    blocks.extend(lower.into_iter().map(|at| (level.saturating_sub(1), at)));
                }
            }
        }
        Ok(None)
    }

    /// The saved value of an archive that holds exactly one. [`load`](Self::load), [`tensor`](Self::tensor) and
    /// other methods of `Archive` are short forms for the methods of this segment, which has more.
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
    /// If the archive does not hold exactly one value, is torn, or is damaged.
    pub fn only(&self) -> Result<Segment<'_, S>> {
        if let Some(loaded) = self.sole.get() {
            return Ok(self.with_loaded(loaded.clone()));
        }
        if let Some(error) = self.torn() {
            return Err(error.again());
        }
        if self.len() != 1 {
            return Err(Error::not_found(format!(
                "the archive has {} segments: choose one with segment(index) or named(name), or load all of segments()",
                self.len()
            )));
        }
        let segment = self.segment(0)?;
        let loaded = self.sole.get_or_init(|| segment.loaded.clone()).clone();
        Ok(Segment { loaded, ..segment })
    }

    /// Loads the only value; see [`Segment::load`].
    ///
    /// ```
    /// use tenarc::{Archive, OArchive, Tensor};
    ///
    /// let mut out = OArchive::new(Vec::new())?;
    /// out.save(&("bias", Tensor(vec![0.5f32; 600])))?;
    /// let archive = Archive::new(out.finish()?)?; // or tenarc::open(path)
    /// let (name, bias): (String, Tensor<Vec<f32>>) = archive.load()?;
    /// assert_eq!((name.as_str(), bias.len()), ("bias", 600));
    /// # Ok::<(), tenarc::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the archive does not hold exactly one value; also the errors of [`Segment::load`].
    pub fn load<T: DeserializeOwned>(&self) -> Result<T> {
        self.announce_only();
        self.only()?.load()
    }

    /// The value at `path`; see [`Segment::get`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("run.tenarc");
    /// use std::collections::BTreeMap;
    ///
    /// tenarc::save(&path, &BTreeMap::from([("rate", vec![0.1, 0.01])]))?;
    /// let rate: f64 = tenarc::open(&path)?.get("rate.1")?;
    /// assert_eq!(rate, 0.01);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the archive does not hold exactly one value; also the errors of [`Segment::get`].
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        self.only()?.get(path)
    }

    /// The tensor at `path`; see [`Segment::tensor`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("model.tenarc");
    /// use std::collections::BTreeMap;
    /// use ndarray::Array2;
    /// use tenarc::Tensor;
    ///
    /// tenarc::save(&path, &BTreeMap::from([("weight", Tensor(Array2::<f32>::eye(100)))]))?;
    /// let weight: Array2<f32> = tenarc::open(&path)?.tensor("weight")?;
    /// assert_eq!(weight.dim(), (100, 100));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the archive does not hold exactly one value; also the errors of [`Segment::tensor`].
    pub fn tensor<T: for<'de> FromTensor<'de>>(&self, path: &str) -> Result<T> {
        self.only()?.tensor(path)
    }

    /// Part of the tensor at `path`; see [`Segment::slice`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("model.tenarc");
    /// use std::collections::BTreeMap;
    /// use ndarray::{Array2, s};
    /// use tenarc::Tensor;
    ///
    /// tenarc::save(&path, &BTreeMap::from([("weight", Tensor(Array2::<f32>::eye(100)))]))?;
    /// let rows: Array2<f32> = tenarc::open(&path)?.slice("weight", s![..10, ..])?; // the first ten rows
    /// assert_eq!(rows.dim(), (10, 100));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the archive does not hold exactly one value; also the errors of [`Segment::slice`].
    pub fn slice<T: for<'de> FromTensor<'de>>(
        &self,
        path: &str,
        slices: impl Into<Slices>,
    ) -> Result<T> {
        self.only()?.slice(path, slices)
    }

    /// All tensors; see [`Segment::tensors`].
    ///
    /// ```
    /// use std::collections::BTreeMap;
    /// use tenarc::{Archive, OArchive, Tensor};
    ///
    /// let mut out = OArchive::new(Vec::new())?;
    /// out.save(&BTreeMap::from([("layers", vec![Tensor(vec![0.5f32; 600]), Tensor(vec![0.5; 10])])]))?;
    /// let archive = Archive::new(out.finish()?)?; // or tenarc::open(path)
    /// let paths: Vec<_> = archive.tensors()?.iter().map(|tensor| tensor.path().to_owned()).collect();
    /// assert_eq!(paths, ["layers.0", "layers.1"]);
    /// # Ok::<(), tenarc::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the archive does not hold exactly one value; also the errors of [`Segment::tensors`].
    pub fn tensors(&self) -> Result<Vec<TensorInfo>> {
        self.only()?.tensors()
    }

    /// The only value, borrowed from an archive in memory; see [`Segment::view`].
    ///
    /// # Errors
    /// If the archive does not hold exactly one value; also the errors of [`Segment::view`].
    pub fn view<'a, T: Deserialize<'a>>(&'a self) -> Result<T> {
        self.view_at("")
    }

    /// The value at `path`, borrowed from an archive in memory; see [`Segment::view_at`].
    ///
    /// # Errors
    /// If the archive does not hold exactly one value; also the errors of [`Segment::view_at`].
    pub fn view_at<'a, T: Deserialize<'a>>(&'a self, path: &str) -> Result<T> {
        self.only()?.view_at(path)
    }

    /// Reads the whole archive and checks every byte: all checksums, the padding, the directory, and that the
    /// metadata refers to every buffer. [Unfinished bytes](Self::unfinished_bytes) are not checked.
    ///
    /// Checksums are verified whatever the options of the archive say. With
    /// [`DecodeOptions::with_threads`](crate::de::DecodeOptions::with_threads), several threads read large tensors. The
    /// first fault is the same with any number of threads.
    ///
    /// ```
    /// let mut out = tenarc::OArchive::new(Vec::new())?;
    /// out.save(&tenarc::Tensor(vec![1u8; 5000]))?;
    /// let mut bytes = out.finish()?;
    /// tenarc::Archive::new(&bytes[..])?.verify()?;
    ///
    /// let middle = bytes.len() / 2;
    /// bytes[middle] ^= 1;
    /// assert!(tenarc::Archive::new(&bytes[..])?.verify().is_err());
    /// # Ok::<(), tenarc::Error>(())
    /// ```
    ///
    /// # Errors
    /// The first fault and its offset, with [`Category::Damaged`](crate::error::Category::Damaged) or
    /// [`Category::Torn`](crate::error::Category::Torn).
    pub fn verify(&self) -> Result<()> {
        self.verify_with(|_, _| {})
    }

    /// Like [`verify`](Self::verify). Calls `progress` from time to time with the number of bytes checked so far
    /// and the length of the archive.
    ///
    /// # Errors
    /// The same errors as [`verify`](Self::verify).
    pub fn verify_with(&self, progress: impl FnMut(u64, u64)) -> Result<()> {
        super::verify::verify(&self.source, self.len, self.options, progress)
    }

    /// The digest of all values and their names, in order.
    ///
    /// It does not depend on how often the archive was appended to. Most digests of values are read from the directory. For the
    /// latest ones, at most 63, their headers and checksums are read, but not their tensors.
    ///
    /// # Errors
    /// If a value has tensors in buffers and was saved without checksums, or the archive is torn or damaged.
    pub fn digest(&self) -> Result<Digest> {
        if let Some(error) = self.torn() {
            return Err(error.again());
        }
        let mut items = ItemEncoder::new();
        items.head(head::ARRAY, self.len())?;
        for entry in self.entries() {
            let entry = entry?;
            let digest = match entry.digest {
                Fact::Known(Some(digest)) => digest,
                // If the directory has none, the segment has one only if its writer could not compute it.
                Fact::Known(None) | Fact::Unknown => self.at(&entry)?.digest()?,
            };
            items.head(head::ARRAY, 2)?.name(entry.name())?;
            items.head(head::BYTES, 16)?.raw(&digest.to_bytes())?;
        }
        Ok(Digest::of(&[&items.into_bytes()]))
    }

    /// Like [`verify`](Self::verify), which checks what is stored, but also decodes every value without a type: texts, rows
    /// of columns, the bytes of bool tensors, and compressed tensors. It finds what was written wrongly, and what this
    /// build cannot read. Values are not kept: at most one group of columns, or one tensor in the metadata, is in memory.
    ///
    /// # Errors
    /// The errors of [`verify`](Self::verify), and those of [`Segment::verify_decoded`].
    pub fn verify_decoded(&self) -> Result<()> {
        self.verify()?;
        self.segments().try_for_each(|segment| {
            let segment = segment?;
            let checked = segment.verify_decoded();
            checked.map_err(|error| match segment.name() {
                Some(name) if self.len() > 1 => {
                    error.meaning(&format!("value `{}`", name.escape_debug()))
                }
                _ => error,
            })
        })
    }
}

/// The segments of an archive: see [`Archive::segments`].
#[allow(clippy::into_iter_without_iter)] // `segments` is that method
impl<'a, S: ReadAt> IntoIterator for &'a Archive<S> {
    type Item = Result<Segment<'a, S>>;
    type IntoIter = Segments<'a, S>;

    fn into_iter(self) -> Segments<'a, S> {
        self.segments()
    }
}

/// Iterates over the segments of an archive: [`Archive::segments`].
pub struct Segments<'a, S> {
    entries: Entries<'a, S>,
    /// The next segments. Their headers were announced.
    next: vec::IntoIter<Result<Entry>>,
}

impl<'a, S: ReadAt> Iterator for Segments<'a, S> {
    type Item = Result<Segment<'a, S>>;

    fn next(&mut self) -> Option<Self::Item> {
        let archive = self.entries.archive;
        if self.next.len() == 0 {
            let some: Vec<_> = self.entries.by_ref().take(TOGETHER).collect();
            archive.announce_headers(some.iter().flatten());
            self.next = some.into_iter();
        }
        self.next.next().map(|entry| archive.at(&entry?))
    }
}

/// Iterates over the directory of an archive: [`Archive::entries`].
pub struct Entries<'a, S> {
    archive: &'a Archive<S>,
    /// What is to come, the next last.
    pending: Vec<Pending>,
    /// The offset of the last segment.
    before: u64,
    /// The number of the next segment.
    number: u64,
}

enum Pending {
    Entry(Entry),
    /// A block of this level.
    Block(usize, BlockAt),
}

impl<S> fmt::Debug for Entries<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entries").field("next", &self.number).finish_non_exhaustive()
    }
}

impl<S: ReadAt> Iterator for Entries<'_, S> {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Result<Entry>> {
        loop {
            let (level, at) = match self.pending.pop()? {
                Pending::Block(level, at) => (level, at),
                Pending::Entry(entry) => {
                    let number = self.number;
                    if entry.offset <= self.before {
                        let what = format!(
                            "directory: expected segment {number} after byte {}, found it at byte {}",
                            self.before, entry.offset
                        );
                        self.pending.clear();
                        return Some(Err(Error::damaged(what).at(entry.offset)));
                    }
                    self.before = entry.offset;
                    self.number += 1;
                    return Some(Ok(entry));
                }
            };
            match self.archive.block(at, level) {
                Ok(DirectoryBlock::Segments(entries)) => {
                    self.pending.extend(entries.into_iter().rev().map(Pending::Entry));
                }
                Ok(DirectoryBlock::Blocks(blocks)) => {
                    self.archive.announce_blocks(blocks.iter().copied());
                    let level = level.saturating_sub(1);
                    let blocks = blocks.into_iter().rev();
                    self.pending.extend(blocks.map(|at| Pending::Block(level, at)));
                }
                Err(error) => {
                    self.pending.clear();
                    return Some(Err(error));
                }
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        if self.pending.is_empty() {
            return (0, Some(0));
        }
        let left = self.archive.len() - self.number.min(self.archive.len());
        (0, usize::try_from(left).ok())
    }
}
