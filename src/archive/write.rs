//! Writing archives: value after value.

use std::fmt;
use std::io::{self, Seek as _, Write};
use std::path::Path;

use serde::Serialize;

use super::directory::{Directory, Entry};
use super::scan::{self, Committed};
use crate::error::{Error, Result};
use crate::io::at::ReadAt as _;
use crate::io::atomic::{AtomicFile, SyncLevel};
use crate::io::lock::Locked;
use crate::io::sink::{Sink, Stage};
use crate::parts::Parts;
use crate::segment::format::{self, Layout};
use crate::segment::header::Content;
use crate::segment::options::SaveOptions;
use crate::segment::walk::{Output, Plan};

/// Writes values one after the other into an archive, over any [`io::Write`]: the counterpart of
/// [`IArchive`](crate::IArchive).
///
/// The writer needs no buffer of its own and never seeks. Each value is walked twice if it has
/// large tensors, once to write its metadata and once to hand their bytes over as they lie, so that
/// no copy of them is held.
///
/// Each value becomes a segment, with a header, checksums and an entry in a directory: some 100
/// bytes. For a million small records save one `Vec` of them rather than each by itself.
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
/// assert_eq!(weights.diag(), Array1::ones(100));
/// # Ok::<(), tenarc::Error>(())
/// ```
///
/// What was saved is part of the archive only after [`finish`](Self::finish) or [`commit`](Self::commit):
/// until then [`open`](crate::open) gives the state of the commit before, and
/// [`open_torn`](crate::archive::open_torn) every whole segment.
pub struct OArchive<W: Write> {
    sink: Sink<Stage<W>>,
    options: SaveOptions,
    directory: Directory,
    hooks: Hooks<W>,
    /// Whether a value failed part-way, so that nothing can follow.
    broken: bool,
}

/// What files can do and other writers cannot.
struct Hooks<W> {
    /// Makes durable what an end mark is about to vouch for.
    settle: fn(&mut W) -> Result<()>,
    /// Makes the archive with its end mark durable, and takes it into effect.
    commit: fn(&mut W, u64, Then) -> Result<()>,
    /// Takes back what was written from a position on, if that is possible.
    undo: fn(&mut W, u64) -> io::Result<bool>,
}

impl<W> Hooks<W> {
    fn none() -> Self {
        Self { settle: |_| Ok(()), commit: |_, _, _| Ok(()), undo: |_, _| Ok(false) }
    }
}

/// What follows an end mark.
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
    /// An archive that is written to `writer`, whose present position is its start: alignment counts
    /// from there.
    ///
    /// # Errors
    /// Where the writer fails.
    pub fn new(writer: W) -> Result<Self> {
        Self::with_options(writer, SaveOptions::default())
    }

    /// As [`new`](Self::new), with options.
    ///
    /// # Errors
    /// Where the alignment is none, and where the writer fails.
    pub fn with_options(writer: W, options: SaveOptions) -> Result<Self> {
        Self::started(writer, options, Hooks::none())
    }

    /// Goes on with an archive that has these segments, and of which everything up to `position` has been
    /// written to `writer`.
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
    /// # Errors
    /// Where the value's own `Serialize` fails, the writer fails, or the value comes out differently
    /// when it is walked again, as one does that rebuilds a `HashMap` while it is serialized. Where
    /// bytes of it have been handed to the writer by then, the archive is broken there and takes
    /// nothing more; a file made by [`create`](OArchive::create) or opened by
    /// [`append`](OArchive::append) is cut back instead, and goes on.
    pub fn save<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<&mut Self> {
        self.segment(None, value)
    }

    /// Saves a value under a name, of at most 1,024 bytes. Names need not be unique.
    ///
    /// # Errors
    /// As [`save`](Self::save), and where the name is too long.
    pub fn save_as<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<&mut Self> {
        check_name(name)?;
        self.segment(Some(name), value)
    }

    /// Saves parts as they are, without decoding the value: their metadata becomes that of the
    /// segment, their buffers its body, aligned as the parts say. They keep the name they have.
    ///
    /// # Errors
    /// Where the writer fails, and where a buffer is not what its checksum says any more.
    pub fn save_parts<B: AsRef<[u8]>>(&mut self, parts: &Parts<B>) -> Result<&mut Self> {
        self.parts(parts.info().name(), parts)
    }

    /// As [`save_parts`](Self::save_parts), under a name.
    ///
    /// # Errors
    /// As [`save_parts`](Self::save_parts), and where the name is too long.
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
        self.whole_segment(&content, |out| parts.emit(out))
    }

    fn segment<T: Serialize + ?Sized>(
        &mut self,
        name: Option<&str>,
        value: &T,
    ) -> Result<&mut Self> {
        self.check()?;
        let options = self.options.clone();
        let plan = Plan::new(value, &options)?;
        let content = plan.content(name, &options);
        self.whole_segment(&content, |out| plan.emit(value, &options, options.checksums, out))
    }

    /// Writes a segment, or, if it can be helped, nothing of it.
    pub(super) fn whole_segment(
        &mut self,
        content: &Content<'_>,
        emit: impl FnOnce(&mut dyn Output) -> Result<Vec<u64>>,
    ) -> Result<&mut Self> {
        let start = self.position();
        let (count, filled) = (self.directory.count(), self.directory.is_nearly_full());
        let before = filled.then(|| self.directory.clone());
        // Stays so where the value panics.
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

    /// Everything but the walk over the value: one instance for each writer.
    fn write_segment(
        &mut self,
        content: &Content<'_>,
        emit: impl FnOnce(&mut dyn Output) -> Result<Vec<u64>>,
    ) -> Result<()> {
        let offset = self.position();
        let (record, hash) = content.record(offset)?;
        for piece in &record {
            self.sink.put_block(piece)?;
        }
        let Content { name, alignment, checked, lengths, .. } = *content;
        if !lengths.is_empty() {
            let lengths = lengths.iter().copied();
            let layout = Layout::new(self.position(), alignment, lengths, checked)
                .ok_or_else(|| Error::limit("an archive of more than 2^63 bytes"))?;
            self.sink.put_slice(&layout.before_body()?)?;
            let hashes = emit(&mut Padded { sink: &mut self.sink, alignment })?;
            self.sink.put_block(&format::trailer(&hashes, hash)?)?;
        }
        let entry = Entry { offset, name: name.map(Into::into) };
        let position = self.position();
        let sink = &mut self.sink;
        self.directory.add(entry, position, |block| sink.put_block(block))?;
        self.sink.flush()
    }

    /// After an error: nothing of the value stays, if the writer can be cut back.
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

    pub(super) fn check(&self) -> Result<()> {
        if self.broken {
            return Err(Error::data(
                "an earlier value failed part-way; the archive is broken there",
            ));
        }
        Ok(())
    }

    /// Writes an end mark: what was saved so far is a whole archive from now on, whatever follows.
    /// More values can be saved behind it.
    ///
    /// A file made by [`create`](OArchive::create) takes its place at the first commit. Files are
    /// synced before and after the mark, unless [`SaveOptions::with_sync`] says otherwise.
    ///
    /// # Errors
    /// Where the writer fails, or an earlier value failed part-way.
    pub fn commit(&mut self) -> Result<&mut Self> {
        self.end(Then::MoreValues)?;
        Ok(self)
    }

    fn end(&mut self, then: Then) -> Result<()> {
        self.check()?;
        self.broken = true;
        (self.hooks.settle)(self.sink.overflow_mut().get_mut())?;
        let mark = self.directory.end_mark(self.position())?;
        self.sink.put_block(&mark)?;
        self.sink.flush()?;
        let writer = self.sink.overflow_mut().get_mut();
        writer.flush().map_err(Error::io)?;
        let position = self.sink.position();
        (self.hooks.commit)(self.sink.overflow_mut().get_mut(), position, then)?;
        self.broken = false;
        Ok(())
    }

    /// Writes the end mark, flushes the writer and gives it back. A file is unlocked by then, and takes
    /// nothing more.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn finish(mut self) -> Result<W> {
        self.end(Then::Nothing)?;
        Ok(self.sink.into_parts().2.into_inner())
    }

    /// How many values were saved, those already in an archive that is appended to included.
    pub fn segments(&self) -> u64 {
        self.directory.count()
    }

    /// Bytes written so far, from the start of the archive.
    pub fn position(&self) -> u64 {
        self.sink.position()
    }

    /// The writer. What is written to it directly breaks the archive.
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

/// A body: each buffer starts aligned, with zeros before it.
struct Padded<'a, W> {
    sink: &'a mut Sink<Stage<W>>,
    alignment: u64,
}

impl<W: Write> Output for Padded<'_, W> {
    fn begin(&mut self, _: u64, _: u64) -> Result<()> {
        const ZEROS: [u8; 4096] = [0; 4096];
        // The body starts aligned.
        let position = self.sink.position();
        let start = format::align_up(position, self.alignment)
            .ok_or_else(|| Error::limit("an archive of more than 2^63 bytes"))?;
        let mut gap = usize::try_from(start - position).unwrap_or(0);
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

/// The file that an [`OArchive`] writes. Dropped without
/// [`commit`](OArchive::commit) or [`finish`](OArchive::finish), it leaves what was there before.
pub struct ArchiveFile {
    held: Held,
    sync: SyncLevel,
    /// The length that the last end mark vouches for.
    committed: u64,
    len: u64,
}

/// By what right an [`ArchiveFile`] is written to.
enum Held {
    /// It has not taken its place yet.
    New(Box<AtomicFile>),
    /// It stands at its place.
    Locked(Locked),
    /// By none: it is finished, and belongs to whoever opens it.
    Finished,
}

impl fmt::Debug for ArchiveFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArchiveFile").field("committed", &self.committed).finish_non_exhaustive()
    }
}

impl ArchiveFile {
    const HOOKS: Hooks<Self> =
        Hooks { settle: Self::settle, commit: Self::commit, undo: Self::undo };

    fn settle(&mut self) -> Result<()> {
        // A new file counts only once it is renamed, which is after the one sync of all.
        let Held::Locked(locked) = &self.held else { return Ok(()) };
        // An end mark in a file that is nowhere to be found would vouch for nothing.
        let there = locked.is_at_its_path();
        if !there.map_err(|error| failed(error, "cannot look at", locked))? {
            let error = io::Error::other("another file has taken its place");
            return Err(failed(error, "cannot commit to", locked));
        }
        self.sync(locked)
    }

    fn sync(&self, locked: &Locked) -> Result<()> {
        match self.sync {
            SyncLevel::Off => Ok(()),
            SyncLevel::Full => {
                locked.file.sync_data().map_err(|error| failed(error, "cannot sync", locked))
            }
        }
    }

    fn commit(&mut self, position: u64, then: Then) -> Result<()> {
        if let Held::Locked(locked) = &self.held {
            self.sync(locked)?;
        }
        self.committed = position;
        self.held = match (std::mem::replace(&mut self.held, Held::Finished), then) {
            (Held::New(new), Then::MoreValues) => {
                // Before others can find the file.
                let locked = new.lock()?;
                new.commit(self.sync)?;
                Held::Locked(locked)
            }
            (Held::New(new), Then::Nothing) => {
                new.commit(self.sync)?;
                Held::Finished
            }
            (held, Then::MoreValues) => held,
            (_, Then::Nothing) => Held::Finished,
        };
        Ok(())
    }

    fn undo(&mut self, position: u64) -> io::Result<bool> {
        if self.len > position {
            let mut file = match &self.held {
                Held::New(new) => new.file(),
                Held::Locked(locked) => &locked.file,
                Held::Finished => return Ok(false),
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
        let written = match &mut self.held {
            Held::New(new) => new.write(bytes)?,
            Held::Locked(locked) => match locked.file.write(bytes) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                    return Err(failed(error, "cannot write", locked).into());
                }
                result => result?,
            },
            Held::Finished => return Err(io::Error::other("the archive is finished")),
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
        if let Held::Locked(locked) = &self.held
            && self.len > self.committed
        {
            // Where this fails the file has a torn tail, as after a crash.
            let _ = locked.file.set_len(self.committed);
        }
    }
}

impl OArchive<ArchiveFile> {
    /// A new archive that takes its place at `path` with the first [`commit`](Self::commit) or
    /// [`finish`](Self::finish), replacing what is there; until then, and after any error, that stays
    /// as it is.
    ///
    /// The file is written beside `path` and renamed. A symbolic link at `path` is replaced, not
    /// followed; the mode of a file replaced is kept.
    ///
    /// # Errors
    /// Where no file can be created there, or the alignment is none.
    pub fn create(path: impl AsRef<Path>, options: SaveOptions) -> Result<Self> {
        let path = path.as_ref();
        options.check()?;
        let new = Box::new(AtomicFile::replacing(path)?);
        let sync = options.sync;
        let file = ArchiveFile { held: Held::New(new), sync, committed: 0, len: 0 };
        Self::started(file, options, ArchiveFile::HOOKS)
    }

    /// Opens an archive to save more values behind its last. Nothing of it is written over: new
    /// segments and a new end mark follow the old end mark, and take effect with
    /// [`commit`](Self::commit) or [`finish`](Self::finish). Dropped without, the file is cut back to
    /// its last end mark.
    ///
    /// What an append that was killed has left behind the last end mark is cut off first. To keep the
    /// whole segments among it, call [`recover`](crate::archive::recover) before.
    ///
    /// The cost does not depend on how much the archive holds, unless something is to be cut off.
    /// Readers that have it open are not disturbed. While it is open here, a second `append` is refused.
    ///
    /// # Errors
    /// Where the file is no archive, has no end mark (see [`recover`](crate::archive::recover)), is damaged with an end
    /// mark behind the damage, or is being appended to.
    pub fn append(path: impl AsRef<Path>) -> Result<Self> {
        Self::append_with(path, SaveOptions::default())
    }

    /// As [`append`](Self::append), with options.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    pub fn append_with(path: impl AsRef<Path>, options: SaveOptions) -> Result<Self> {
        let path = path.as_ref();
        options.check()?;
        let mut locked = lock(path)?;
        let failed = |error| Error::io_at(error, "cannot open", path);
        let len = locked.file.size().map_err(failed)?;
        let committed = scan::last_commit(&locked.file, len);
        let Committed { directory, end, .. } = committed.map_err(|error| error.in_file(path))?;
        if end < len {
            // No other writer has the file open, so that the one that wrote this is gone.
            let failed =
                |error| Error::io_at(error, "cannot cut off an unfinished append to", path);
            locked.file.set_len(end).map_err(failed)?;
        }
        locked.file.seek(io::SeekFrom::Start(end)).map_err(failed)?;
        let sync = options.sync;
        let file = ArchiveFile { held: Held::Locked(locked), sync, committed: end, len: end };
        let sink = Stage::sink_at(file, end);
        Ok(Self { sink, options, directory, hooks: ArchiveFile::HOOKS, broken: false })
    }
}

/// Opens an archive that nobody else may change meanwhile. Of a link, the file that it leads to.
pub fn lock(path: &Path) -> Result<Locked> {
    let failed = |error| Error::io_at(error, "cannot open", path);
    let resolved = std::fs::canonicalize(path).map_err(failed)?;
    Locked::try_existing(&resolved).map_err(failed)
}
