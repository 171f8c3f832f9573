//! Writes archives, one value after the other.

use std::fmt;
use std::fs;
use std::io::{self, ErrorKind, Seek as _, Write};
use std::path::Path;

use serde::Serialize;

use super::digest::Digest;
use super::directory::{Directory, Entry, Fact};
use super::scan::{self, Committed};
use crate::error::{Error, Result};
use crate::io::at::ReadAt as _;
use crate::io::atomic::{AtomicFile, SyncLevel};
use crate::io::lock::Locked;
use crate::io::sink::{Sink, Stage};
use crate::parts::Parts;
use crate::plan::Plan;
use crate::plan::pass::Output;
use crate::segment::buffers::no_such;
use crate::segment::format::{self, SegmentLayout};
use crate::segment::header::{self, HeaderContent};
use crate::segment::options::SaveOptions;
use crate::wire::writer::ToWrite;

/// Archive writer: writes values one after the other, over any [`io::Write`]. [`IArchive`](crate::IArchive) reads them.
///
/// Call [`finish`](Self::finish) at the end. What was saved after the last [`commit`](Self::commit) is lost without it: it
/// is no part of the archive, and a new file does not appear at its path. [`open`](crate::open) then reads the previous
/// commit, and [`open_torn`](crate::archive::open_torn) every complete segment.
///
/// The writer needs no buffer of its own, and there is no seeking. A value with large tensors is serialized
/// twice: the first pass writes its metadata, the second writes the tensors' bytes directly from their
/// memory. The tensors are not copied.
///
/// Each value becomes a segment with a header, checksums and an entry in a directory, which take about 100
/// bytes. To save a million small records, save one `Vec` of them.
///
/// ```
/// use ndarray::{Array1, Array2};
/// use tenarc::{IArchive, OArchive, Tensor};
///
/// let mut out = OArchive::new(Vec::new())?;
/// out.save("some header")?.save_as("weights", &Tensor(Array2::<f32>::eye(100)))?;
/// let bytes = out.finish()?;
///
/// let mut input = IArchive::new(&bytes[..])?;
/// let header: String = input.load()?;
/// let weights: Tensor<Array2<f32>> = input.load_as("weights")?;
/// assert_eq!(weights.diag(), Array1::<f32>::ones(100));
/// # Ok::<(), tenarc::Error>(())
/// ```
pub struct OArchive<W: Write> {
    sink: Sink<Stage<W>>,
    options: SaveOptions,
    directory: Directory,
    hooks: Hooks<W>,
    /// Whether writing a value failed part-way. Nothing can be written after it.
    broken: bool,
}

/// Operations that only files support. Other writers get functions that do nothing.
struct Hooks<W> {
    /// Called before an end mark is written. Returns whether everything before its tail is made durable by `sync` first.
    prepare: fn(&W) -> Result<bool>,
    sync: fn(&W) -> Result<()>,
    /// Called after a tail is written: makes it durable. A new file is renamed to its path.
    commit: fn(&mut W, u64, Then) -> Result<()>,
    /// Removes everything that was written from this position on. `false` if that is not possible.
    undo: fn(&mut W, u64) -> io::Result<bool>,
    /// Adds what an end mark does not say of earlier segments, if these can be read again.
    complete: fn(&W, &mut [Entry]) -> Result<()>,
}

impl<W> Hooks<W> {
    fn none() -> Self {
        Self {
            prepare: |_| Ok(false),
            sync: |_| Ok(()),
            commit: |_, _, _| Ok(()),
            undo: |_, _| Ok(false),
            complete: |_, _| Ok(()),
        }
    }
}

/// What the writer does after an end mark.
#[derive(Clone, Copy)]
enum Then {
    MoreValues,
    Nothing,
}

impl<W: Write> fmt::Debug for OArchive<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OArchive")
            .field("segments", &self.directory.count())
            .field("position", &self.position())
            .field("broken", &self.broken)
            .finish_non_exhaustive()
    }
}

impl<W: Write> OArchive<W> {
    /// Creates an archive on `writer`. The archive starts at the writer's current position; the alignment of
    /// the buffers counts from there.
    ///
    /// # Errors
    /// If the writer fails.
    pub fn new(writer: W) -> Result<Self> {
        Self::with_options(writer, SaveOptions::default())
    }

    /// Like [`new`](Self::new), with options.
    ///
    /// # Errors
    /// If the alignment is not a power of two from 8 to 65,536, or the writer fails.
    pub fn with_options(writer: W, options: SaveOptions) -> Result<Self> {
        Self::started(writer, options, Hooks::none())
    }

    /// Continues an archive with these segments, of which `position` bytes have been written to `writer`.
    pub(super) fn resumed(writer: W, position: u64, directory: Directory) -> Self {
        let sink = Stage::sink_at(writer, position);
        let (options, hooks) = (SaveOptions::default(), Hooks::none());
        Self { sink, options, directory, hooks, broken: false }
    }

    fn started(writer: W, options: SaveOptions, hooks: Hooks<W>) -> Result<Self> {
        options.check()?;
        let mut sink = Stage::sink(writer);
        sink.put_slice(&format::MAGIC)?;
        sink.flush()?;
        Ok(Self { sink, options, directory: Directory::default(), hooks, broken: false })
    }

    /// Saves a value.
    ///
    /// ```
    /// let mut out = tenarc::OArchive::new(Vec::new())?;
    /// out.save("any value")?.save(&tenarc::Tensor(vec![0.5f32; 1000]))?;
    /// assert_eq!(out.segments(), 2);
    /// let archive = tenarc::Archive::new(out.finish()?)?;
    /// assert_eq!(archive.segment(0)?.load::<String>()?, "any value");
    /// # Ok::<(), tenarc::Error>(())
    /// ```
    ///
    /// # Errors
    /// - The value's `Serialize` fails, or the writer fails.
    /// - The value changed between the two passes, for example because it builds a new `HashMap` whenever
    ///   it is serialized.
    ///
    /// If bytes of the value were written by then, the archive is broken and nothing more can be saved. A file made by
    /// [`create`](OArchive::create) or opened by [`append`](OArchive::append) is cut back to the previous value instead,
    /// and more can be saved.
    pub fn save<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<&mut Self> {
        self.segment(None, &value)
    }

    /// Saves a value under a name of at most 1,024 bytes. Names need not be unique.
    ///
    /// ```
    /// use tenarc::Tensor;
    ///
    /// let mut out = tenarc::OArchive::new(Vec::new())?;
    /// out.save_as("train", &Tensor(vec![1.0f32; 10]))?.save_as("test", &Tensor(vec![2.0f32; 5]))?;
    /// let archive = tenarc::Archive::new(out.finish()?)?;
    /// let test: Tensor<Vec<f32>> = archive.named("test")?.load()?;
    /// assert_eq!(test.len(), 5);
    /// # Ok::<(), tenarc::Error>(())
    /// ```
    ///
    /// # Errors
    /// The same errors as [`save`](Self::save), and if the name is too long.
    pub fn save_as<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<&mut Self> {
        check_name(name)?;
        self.segment(Some(name), &value)
    }

    /// Saves parts without decoding the value: their metadata and buffers become a segment, with the same
    /// alignment and name.
    ///
    /// # Errors
    /// If the writer fails, or the content of a buffer no longer matches its checksum.
    pub fn save_parts<B: AsRef<[u8]>>(&mut self, parts: &Parts<B>) -> Result<&mut Self> {
        self.parts(parts.info().name(), parts)
    }

    /// Like [`save_parts`](Self::save_parts), under the given name.
    ///
    /// # Errors
    /// The same errors as [`save_parts`](Self::save_parts), and if the name is longer than 1,024 bytes.
    pub fn save_parts_as<B: AsRef<[u8]>>(
        &mut self,
        name: &str,
        parts: &Parts<B>,
    ) -> Result<&mut Self> {
        check_name(name)?;
        self.parts(Some(name), parts)
    }

    fn parts<B: AsRef<[u8]>>(&mut self, name: Option<&str>, parts: &Parts<B>) -> Result<&mut Self> {
        self.check()?;
        let lengths = parts.lengths();
        let content = parts.content(name, &lengths);
        self.whole_segment(&content, |out| Ok(parts.emit(out)?.bytes()))
    }

    pub(super) fn segment(&mut self, name: Option<&str>, value: &dyn ToWrite) -> Result<&mut Self> {
        let options = self.options.clone();
        self.segment_with(name, value, &options)
    }

    /// Saves a value with other options. These have been checked.
    pub(super) fn segment_with(
        &mut self,
        name: Option<&str>,
        value: &dyn ToWrite,
        options: &SaveOptions,
    ) -> Result<&mut Self> {
        self.check()?;
        let mut plan = Plan::keeping(value, options)?;
        plan.compress(value, options)?;
        let content = plan.content(name, options);
        self.whole_segment(&content, |out| {
            Ok(plan.emit(value, options, options.checksums, out)?.bytes())
        })
    }

    /// Writes a whole segment. `emit` writes the buffers, and returns the bytes of the hashes of their chunks. After an error,
    /// removes what was written of it, if the writer can do that.
    pub(crate) fn whole_segment(
        &mut self,
        content: &HeaderContent<'_>,
        emit: impl FnOnce(&mut dyn Output) -> Result<Vec<u8>>,
    ) -> Result<&mut Self> {
        let start = self.position();
        let (count, filled) = (self.directory.count(), self.directory.is_nearly_full());
        let before = filled.then(|| self.directory.clone());
        // If the value's `Serialize` panics, this stays `true`.
        self.broken = true;
        let result = self.write_segment(content, emit);
        match result {
            Ok(()) => self.broken = false,
            Err(error) => {
                self.undo(start, count, before);
                return Err(error);
            }
        }
        Ok(self)
    }

    /// Writes the segment. Does not depend on the type of the value, so that it is compiled once per writer.
    fn write_segment(
        &mut self,
        content: &HeaderContent<'_>,
        emit: impl FnOnce(&mut dyn Output) -> Result<Vec<u8>>,
    ) -> Result<()> {
        let offset = self.position();
        let (record, hash) = content.record(offset)?;
        for piece in &record {
            self.sink.put_block(piece)?;
        }
        let header_len = self.position() - offset;
        let mut hashes = Vec::new();
        if !content.lengths.is_empty() {
            let layout = content.layout(self.position())?;
            self.sink.put_slice(&layout.before_body()?)?;
            hashes = emit(&mut Padded { sink: &mut self.sink, layout: &layout })?;
            let item = format::hashes_item(content.check, &hashes)?;
            self.sink.put_block(&format::trailer(item, hash))?;
        }
        if self.directory.is_nearly_full() {
            // The block has digests, which end marks leave out.
            let writer = self.sink.overflow_ref().get_ref();
            (self.hooks.complete)(writer, self.directory.entries_mut())?;
        }
        let rows = Fact::Known(header::rows(content.metadata));
        let digest = Fact::Known(Digest::of_segment(content, &hashes)?);
        let name = content.name.map(Into::into);
        self.directory.push(Entry { offset, header_len, name, rows, digest });
        let position = self.position();
        let sink = &mut self.sink;
        self.directory.write_full(position, |block| sink.put_block(block))?;
        self.sink.flush()
    }

    /// After an error: removes what was written of the value, if the writer can be cut back.
    fn undo(&mut self, start: u64, count: u64, before: Option<Directory>) {
        let undone = (self.hooks.undo)(self.sink.overflow_mut().get_mut(), start);
        if matches!(undone, Ok(true)) {
            self.sink.restart_at(start);
            match before {
                Some(before) => self.directory = before,
                None if self.directory.count() > count => self.directory.pop(),
                None => {}
            }
            self.broken = false;
        }
    }

    pub(super) fn options(&self) -> &SaveOptions {
        &self.options
    }

    pub(super) fn check(&self) -> Result<()> {
        if self.broken {
            return Err(Error::data(
                "writing an earlier value failed part-way; the archive is broken, and nothing more can be saved",
            ));
        }
        Ok(())
    }

    /// Writes an end mark. The values saved so far are a complete archive from now on, even if a later save
    /// fails. More values can be saved after it.
    ///
    /// A file made by [`create`](OArchive::create) is renamed to its path at the first commit. Files are
    /// synced to disk before and after the end mark, unless [`SaveOptions::with_sync`] says otherwise.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("log.tenarc");
    /// let mut out = tenarc::OArchive::create(&path, Default::default())?;
    /// out.save(&1)?.commit()?;
    /// out.save(&2)?; // not yet there for readers
    /// assert_eq!(tenarc::open(&path)?.len(), 1);
    /// out.finish()?;
    /// assert_eq!(tenarc::open(&path)?.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the writer fails, or an earlier value failed part-way.
    pub fn commit(&mut self) -> Result<&mut Self> {
        self.end(Then::MoreValues)?;
        Ok(self)
    }

    fn end(&mut self, then: Then) -> Result<()> {
        self.check()?;
        self.broken = true;
        let must_sync = (self.hooks.prepare)(self.sink.overflow_ref().get_ref())?;
        let (mark, tail) = self.directory.end_mark(self.position())?;
        self.sink.put_block(&mark)?;
        if must_sync {
            // The tail commits everything before it: SPEC 5.7.
            self.sink.flush()?;
            (self.hooks.sync)(self.sink.overflow_ref().get_ref())?;
        }
        self.sink.put_block(&tail)?;
        self.sink.flush()?;
        let writer = self.sink.overflow_mut().get_mut();
        writer.flush().map_err(Error::io)?;
        let position = self.sink.position();
        (self.hooks.commit)(self.sink.overflow_mut().get_mut(), position, then)?;
        self.broken = false;
        Ok(())
    }

    /// Writes the end mark, flushes the writer and returns it. A returned file is unlocked and refuses
    /// further writes.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("numbers.tenarc");
    /// let mut out = tenarc::OArchive::new(std::fs::File::create(&path)?)?;
    /// out.save(&[1, 2, 3])?;
    /// let file = out.finish()?; // without it, the archive would be torn
    /// assert_eq!(file.metadata()?.len(), tenarc::open(&path)?.byte_len());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the writer fails, or an earlier value failed part-way.
    pub fn finish(mut self) -> Result<W> {
        self.end(Then::Nothing)?;
        Ok(self.sink.into_parts().2.into_inner())
    }

    /// The number of values saved, including those that an appended archive had before.
    pub fn segments(&self) -> u64 {
        self.directory.count()
    }

    /// The length of the archive so far in bytes.
    pub fn position(&self) -> u64 {
        self.sink.position()
    }

    /// The underlying writer. Writing to it directly breaks the archive.
    pub fn get_ref(&self) -> &W {
        self.sink.overflow_ref().get_ref()
    }
}

pub fn check_name(name: &str) -> Result<()> {
    let (found, max) = (name.len(), format::MAX_NAME);
    if found <= max {
        return Ok(());
    }
    Err(Error::limit(format!("expected a name of at most {max} bytes, found {found} bytes")))
}

/// Writes a body: pads with zeros before each buffer up to its place.
struct Padded<'a, W: Write> {
    sink: &'a mut Sink<Stage<W>>,
    layout: &'a SegmentLayout,
}

impl<W: Write> Output for Padded<'_, W> {
    fn begin(&mut self, number: u64, _: u64) -> Result<()> {
        const ZEROS: [u8; 4096] = [0; 4096];
        let place = usize::try_from(number).ok().and_then(|number| self.layout.place(number));
        let start = place.ok_or_else(|| no_such(number))?.start();
        // A gap is shorter than the alignment.
        let mut gap = usize::try_from(start.saturating_sub(self.sink.position())).unwrap_or(0);
        while gap > 0 {
            let zeros = ZEROS.get(..gap).unwrap_or(&ZEROS);
            self.sink.put_slice(zeros)?;
            gap -= zeros.len();
        }
        Ok(())
    }

    fn put(&mut self, block: &[u8]) -> Result<()> {
        self.sink.put_block(block)
    }
}

/// The file that an [`OArchive`] writes. If it is dropped without [`commit`](OArchive::commit) or
/// [`finish`](OArchive::finish), the previous content of the path stays.
pub struct ArchiveFile {
    target: TargetFile,
    sync: SyncLevel,
    /// The length of the file up to its last end mark.
    committed: u64,
    len: u64,
}

/// The file that an [`ArchiveFile`] may write to.
enum TargetFile {
    /// A temporary file, not renamed to its path yet.
    New(Box<AtomicFile>),
    /// The file at its path, with a lock.
    Locked(Locked),
    /// No file: the archive is finished, and others may change it.
    Finished,
}

impl fmt::Debug for ArchiveFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArchiveFile").field("committed", &self.committed).finish_non_exhaustive()
    }
}

impl ArchiveFile {
    const HOOKS: Hooks<Self> = Hooks {
        prepare: Self::prepare,
        sync: Self::sync,
        commit: Self::commit,
        undo: Self::undo,
        complete: Self::complete,
    };

    fn prepare(&self) -> Result<bool> {
        // A new file is synced as a whole before it is renamed.
        let TargetFile::Locked(locked) = &self.target else { return Ok(false) };
        // If another file was renamed over this one, nobody would find what is committed here.
        let there = locked.is_at_its_path();
        if !there.map_err(|error| failed(error, "cannot look at", locked))? {
            let error = io::Error::other("the file was replaced by another one");
            return Err(failed(error, "cannot commit to", locked));
        }
        Ok(self.sync == SyncLevel::Full)
    }

    /// Makes what was appended durable, if that was asked for.
    fn sync(&self) -> Result<()> {
        match (&self.target, self.sync) {
            (TargetFile::Locked(locked), SyncLevel::Full) => {
                locked.file.sync_data().map_err(|error| failed(error, "cannot sync", locked))
            }
            _ => Ok(()),
        }
    }

    fn commit(&mut self, position: u64, then: Then) -> Result<()> {
        self.sync()?;
        self.committed = position;
        self.target = match (std::mem::replace(&mut self.target, TargetFile::Finished), then) {
            (TargetFile::New(new), Then::MoreValues) => {
                // Lock the file before it has a path at which others can open it.
                let locked = new.lock()?;
                new.commit(self.sync)?;
                TargetFile::Locked(locked)
            }
            (TargetFile::New(new), Then::Nothing) => {
                new.commit(self.sync)?;
                TargetFile::Finished
            }
            (target, Then::MoreValues) => target,
            (_, Then::Nothing) => TargetFile::Finished,
        };
        Ok(())
    }

    fn complete(&self, entries: &mut [Entry]) -> Result<()> {
        match &self.target {
            TargetFile::Locked(locked) => scan::complete(&locked.file, self.committed, entries)
                .map_err(|error| error.in_file(locked.path())),
            // All segments of a new file were written by this writer, which has computed everything.
            TargetFile::New(_) | TargetFile::Finished => Ok(()),
        }
    }

    fn undo(&mut self, position: u64) -> io::Result<bool> {
        if self.len > position {
            let mut file = match &self.target {
                TargetFile::New(new) => new.file(),
                TargetFile::Locked(locked) => &locked.file,
                TargetFile::Finished => return Ok(false),
            };
            file.set_len(position)?;
            file.seek(io::SeekFrom::Start(position))?;
            self.len = position;
        }
        Ok(true)
    }
}

#[cold]
fn failed(error: io::Error, attempt: &str, locked: &Locked) -> Error {
    Error::io_at(error, attempt, locked.path())
}

impl Write for ArchiveFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = match &mut self.target {
            TargetFile::New(new) => new.write(bytes)?,
            TargetFile::Locked(locked) => match locked.file.write(bytes) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                    return Err(failed(error, "cannot write", locked).into());
                }
                result => result?,
            },
            TargetFile::Finished => return Err(io::Error::other("the archive is finished")),
        };
        self.len += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for ArchiveFile {
    fn drop(&mut self) {
        if let TargetFile::Locked(locked) = &self.target
            && self.len > self.committed
        {
            // If this fails, unfinished bytes follow the last end mark, as after a crash.
            let _ = locked.file.set_len(self.committed);
            let _ = self.sync();
        }
    }
}

impl OArchive<ArchiveFile> {
    /// Creates an archive that replaces the file at `path` with the first [`commit`](Self::commit) or
    /// [`finish`](Self::finish). Until then, and after any error, the old file stays unchanged.
    ///
    /// The archive is written to a temporary file beside `path` and renamed. A symbolic link at `path` is
    /// replaced, not followed. The mode of a replaced file is kept.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("steps.tenarc");
    /// use tenarc::OArchive;
    ///
    /// let mut out = OArchive::create(&path, Default::default())?;
    /// for step in 0..3 {
    ///     out.save_as("loss", &(step, 1.0 / f64::from(step + 1)))?;
    /// }
    /// out.finish()?; // without this, the file does not appear
    /// assert_eq!(tenarc::open(&path)?.len(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the file cannot be created, or the alignment is not a power of two from 8 to 65,536.
    pub fn create(path: impl AsRef<Path>, options: SaveOptions) -> Result<Self> {
        let path = path.as_ref();
        options.check()?;
        let new = Box::new(AtomicFile::replacing(path)?);
        let sync = options.sync;
        let file = ArchiveFile { target: TargetFile::New(new), sync, committed: 0, len: 0 };
        Self::started(file, options, ArchiveFile::HOOKS)
    }

    /// Opens an archive to save more values at its end. Creates the file if there is none. Nothing is overwritten: new
    /// segments and a new end mark follow the old end mark. They take effect with [`commit`](Self::commit) or
    /// [`finish`](Self::finish). If the archive is dropped without either, the file is cut back to its last end
    /// mark.
    ///
    /// A new file is an archive without values, until the first commit. It is written to a temporary file beside `path`,
    /// and never replaces a file that another process creates meanwhile. [`append_existing`](Self::append_existing)
    /// creates no file.
    ///
    /// ```
    /// use tenarc::OArchive;
    ///
    /// # let dir = std::env::temp_dir().join(format!("tenarc-doc-append-{}", std::process::id()));
    /// # std::fs::create_dir_all(&dir)?;
    /// # let path = dir.join("days.tenarc");
    /// for day in [vec![1.5, 2.0], vec![0.5]] {
    ///     let mut days = OArchive::append(&path)?;
    ///     days.save_as("day", &day)?;
    ///     days.finish()?;
    /// }
    /// assert_eq!(tenarc::open(&path)?.table("day")?.rows::<f64>(..)?, [1.5, 2.0, 0.5]);
    /// # std::fs::remove_dir_all(&dir)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// If an earlier append was interrupted, its bytes are cut off first. To keep the complete segments of that append,
    /// call [`recover`](crate::archive::recover) before.
    ///
    /// The cost does not depend on the length of the archive, unless something must be cut off. Readers that
    /// have the file open are not disturbed.
    ///
    /// # Errors
    /// - The file is not an archive, or has no end mark (see [`recover`](crate::archive::recover)). An empty file is
    ///   not an archive.
    /// - The file is damaged, and an end mark follows the damage.
    /// - Another process, or another `OArchive`, is appending to the file.
    /// - There is no file, and it cannot be created, or the path is a symbolic link.
    pub fn append(path: impl AsRef<Path>) -> Result<Self> {
        Self::append_with(path, SaveOptions::default())
    }

    /// Like [`append`](Self::append), with options.
    ///
    /// # Errors
    /// The same errors as [`append`](Self::append), and if the alignment is not a power of two from 8 to 65,536.
    pub fn append_with(path: impl AsRef<Path>, options: SaveOptions) -> Result<Self> {
        let path = path.as_ref();
        options.check()?;
        loop {
            match try_lock(path) {
                Err(error) if error.kind() == ErrorKind::NotFound && !is_link(path) => {
                    create_empty(path, &options)?;
                }
                result => return Self::appending(path, result, options),
            }
        }
    }

    /// Like [`append_with`](Self::append_with), but does not create a file.
    ///
    /// # Errors
    /// The same errors as [`append_with`](Self::append_with), and if there is no file.
    pub fn append_existing(path: impl AsRef<Path>, options: SaveOptions) -> Result<Self> {
        let path = path.as_ref();
        options.check()?;
        Self::appending(path, try_lock(path), options)
    }

    fn appending(path: &Path, locked: io::Result<Locked>, options: SaveOptions) -> Result<Self> {
        let failed = |error| Error::io_at(error, "cannot open", path);
        let mut locked = locked.map_err(failed)?;
        let len = locked.file.size().map_err(failed)?;
        scan::check_magic(&locked.file, len).map_err(|error| error.in_file(path))?;
        let committed = scan::last_commit(&locked.file, len);
        let Committed { directory, end, .. } = committed.map_err(|error| error.in_file(path))?;
        if end < len {
            // The lock guarantees that the writer of these bytes is gone.
            let failed =
                |error| Error::io_at(error, "cannot cut off an unfinished append to", path);
            locked.file.set_len(end).map_err(failed)?;
            if options.sync == SyncLevel::Full {
                // Otherwise a crash could bring some of these bytes back among those that are written now.
                locked.file.sync_data().map_err(failed)?;
            }
        }
        locked.file.seek(io::SeekFrom::Start(end)).map_err(failed)?;
        let sync = options.sync;
        let file =
            ArchiveFile { target: TargetFile::Locked(locked), sync, committed: end, len: end };
        let sink = Stage::sink_at(file, end);
        Ok(Self { sink, options, directory, hooks: ArchiveFile::HOOKS, broken: false })
    }
}

/// Creates an archive without values. Does nothing if another process has created the file meanwhile.
fn create_empty(path: &Path, options: &SaveOptions) -> Result<()> {
    let sync = options.sync;
    let new = OArchive::with_options(AtomicFile::replacing(path)?, options.clone())?;
    new.finish()?.commit_new(sync).map(drop)
}

fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink())
}

/// Opens an archive and locks it against other writers. A symbolic link is followed.
pub fn lock(path: &Path) -> Result<Locked> {
    try_lock(path).map_err(|error| Error::io_at(error, "cannot open", path))
}

fn try_lock(path: &Path) -> io::Result<Locked> {
    Locked::try_existing(&fs::canonicalize(path)?)
}
