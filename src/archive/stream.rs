//! Reads archives from streams, one value after the other.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::ops::Deref;
use std::vec;

use serde::de::{DeserializeOwned, DeserializeSeed};

use super::directory::{self, Behind, Directory, Entry};
use crate::buffer::stream::{
    Computed, StreamBuffers, cut, discard, last_uses, read_stored_chunk, received, skip_to_body,
    take,
};
use crate::buffer::unpack::{PackedChunks, Unpacking};
use crate::error::{Advice, Category, Error, Result};
use crate::io::chunks::{ChunkHasher, Hashes};
use crate::io::source::IoRead;
use crate::meta::TensorMeta;
use crate::options::DecodeOptions;
use crate::parts::{Buffer, Parts};
use crate::path::list;
use crate::segment::buffers::check_unpacked;
use crate::segment::decode;
use crate::segment::ext::Ext;
use crate::segment::format::{self, BufferPlace, MAGIC, MAX_RECORD_HEAD, RecordKind};
use crate::segment::header::Header;

/// Archive reader: reads values one after the other, over any [`io::Read`]. [`OArchive`](crate::OArchive) writes them.
///
/// Tensors are read directly into their memory, headers through a buffer. There is no seeking. Checksums
/// are verified before a value is returned.
///
/// An end mark is not necessarily the end, because more may have been appended: an archive ends where the input
/// ends. On a socket that stays open, loading one value too many, or [`is_at_end`](Self::is_at_end), waits for
/// more input.
///
/// ```
/// let mut out = tenarc::OArchive::new(Vec::new())?;
/// out.save(&1.5)?.save(&2.5)?;
/// let bytes = out.finish()?;
///
/// let mut input = tenarc::IArchive::new(&bytes[..])?;
/// let mut sum = 0.0;
/// while !input.is_at_end()? {
///     sum += input.load::<f64>()?;
/// }
/// assert_eq!(sum, 4.0);
/// # Ok::<(), tenarc::Error>(())
/// ```
pub struct IArchive<R> {
    read: IoRead<R>,
    options: DecodeOptions,
    directory: Directory,
    /// The segment whose header was read, but not its body.
    next: Option<Box<NextSegment>>,
    /// Offset and extensions of the last record if it was an end mark.
    finished: Option<(u64, Ext)>,
    /// The error after which nothing more can be read.
    fault: Option<Error>,
    /// Whether a value is being read. Stays `true` if its `Deserialize` panics.
    reading: bool,
}

struct NextSegment {
    record: Vec<u8>,
    header: Header,
}

impl NextSegment {
    /// # Errors
    /// If this version cannot read the value as `options` ask for.
    fn known(&self, options: DecodeOptions) -> Result<()> {
        let header = &self.header;
        header.ext.check("the header", header.offset)?;
        if options.checksums && header.count() > 0 {
            return header.check.known().map_err(|error| error.at(header.offset));
        }
        Ok(())
    }

    fn metadata(&self) -> &[u8] {
        self.record.get(self.header.metadata.clone()).unwrap_or_default()
    }
}

/// The next record of an archive.
enum NextRecord {
    Segment(Box<NextSegment>),
    EndMark,
    /// A record that means nothing to this version.
    Auxiliary,
    /// The end of the input, after an end mark.
    End,
}

impl<R> fmt::Debug for IArchive<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IArchive")
            .field("segments", &self.directory.count())
            .finish_non_exhaustive()
    }
}

impl<R: io::Read> IArchive<R> {
    /// Starts to read an archive at the reader's current position.
    ///
    /// # Errors
    /// If the reader fails, or the input does not start like an archive.
    pub fn new(reader: R) -> Result<Self> {
        Self::with_options(reader, DecodeOptions::default())
    }

    /// Like [`new`](Self::new), with options. The limits apply to each value separately.
    ///
    /// # Errors
    /// If the reader fails, or the input does not start like an archive.
    pub fn with_options(reader: R, options: DecodeOptions) -> Result<Self> {
        let mut read = IoRead::new(reader);
        read.fill(MAGIC.len())?;
        super::scan::check_magic_of_stream(read.window())?;
        read.leave(MAGIC.len());
        let directory = Directory::default();
        let (next, fault) = (None, None);
        let (finished, reading) = (None, false);
        Ok(Self { read, options, directory, next, finished, fault, reading })
    }

    /// Loads the next value.
    ///
    /// If the value does not fit the type, the following value can still be loaded.
    ///
    /// ```
    /// let mut out = tenarc::OArchive::new(Vec::new())?;
    /// out.save(&"first")?.save(&2)?;
    /// let bytes = out.finish()?;
    ///
    /// let mut input = tenarc::IArchive::new(&bytes[..])?; // any `io::Read`
    /// let (text, number): (String, i32) = (input.load()?, input.load()?);
    /// assert_eq!((text.as_str(), number), ("first", 2));
    /// assert!(input.is_at_end()?);
    /// # Ok::<(), tenarc::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`Category::Eof`] if there are no more values.
    /// - [`Category::Torn`] if the input ends without an end mark.
    /// - The reader fails, the archive is damaged, or the value does not fit the type.
    pub fn load<T: DeserializeOwned>(&mut self) -> Result<T> {
        match self.advance()? {
            Some(next) => self.value(&next, PhantomData),
            None => Err(self.at_end("another segment")),
        }
    }

    /// Like [`load`](Self::load), with a seed.
    pub(crate) fn load_seed<T, V>(&mut self, seed: T) -> Result<V>
    where
        T: for<'de> DeserializeSeed<'de, Value = V>,
    {
        match self.advance()? {
            Some(next) => self.value(&next, seed),
            None => Err(self.at_end("another segment")),
        }
    }

    /// The keys of the next value, which must be a map; for each key whose value is a tensor, also the
    /// tensor's description. Reads the next header, but not the value.
    pub(crate) fn next_entries(&mut self) -> Result<Vec<(String, Option<TensorMeta>)>> {
        let options = self.options;
        match self.peek()? {
            Some(next) => {
                next.known(options)?;
                list::entries(next.metadata(), &next.header, options.limits)
            }
            None => Err(self.at_end("another segment")),
        }
    }

    /// Loads the next value that was saved under this name. Values before it are skipped.
    ///
    /// ```
    /// let mut out = tenarc::OArchive::new(Vec::new())?;
    /// out.save_as("config", &0.1)?.save_as("loss", &2.5)?;
    /// let bytes = out.finish()?;
    ///
    /// let mut input = tenarc::IArchive::new(&bytes[..])?;
    /// assert_eq!(input.load_as::<f64>("loss")?, 2.5);
    /// # Ok::<(), tenarc::Error>(())
    /// ```
    ///
    /// # Errors
    /// The same errors as [`load`](Self::load).
    pub fn load_as<T: DeserializeOwned>(&mut self, name: &str) -> Result<T> {
        while let Some(next) = self.advance()? {
            if next.header.name.as_deref() == Some(name) {
                return self.value(&next, PhantomData);
            }
            self.pass(&next)?;
        }
        Err(self.at_end(&format!("a segment named `{}`", name.escape_debug())))
    }

    /// Skips the next value without decoding it. Returns `false` if there are no more.
    ///
    /// # Errors
    /// If the reader fails, the input ends without an end mark, or the archive is damaged.
    pub fn skip(&mut self) -> Result<bool> {
        match self.advance()? {
            Some(next) => self.pass(&next).map(|()| true),
            None => Ok(false),
        }
    }

    /// Whether there are no more values. Reads the next header.
    ///
    /// # Errors
    /// If the reader fails, the input ends without an end mark, or the archive is damaged.
    pub fn is_at_end(&mut self) -> Result<bool> {
        self.peek().map(|next| next.is_none())
    }

    /// The name of the next value. The outer `Option` is `None` if there are no more values, the inner one if the
    /// value has no name. Reads the next header.
    ///
    /// # Errors
    /// If the reader fails, the input ends without an end mark, or the archive is damaged.
    pub fn next_name(&mut self) -> Result<Option<Option<&str>>> {
        self.peek().map(|next| next.map(|next| next.header.name.as_deref()))
    }

    /// Iterates over all further values, which must have one type. The iterator ends after an error that
    /// makes further reading impossible.
    pub fn records<T: DeserializeOwned>(&mut self) -> Records<'_, R, T> {
        Records { archive: self, value: PhantomData }
    }

    /// Iterates over the rows of all further values that were saved under this name, which must be sequences. Other
    /// values are skipped. At most the rows of one value are in memory.
    ///
    /// For a file, [`Archive::table`](crate::Archive::table) can also read single rows and columns.
    ///
    /// ```
    /// use tenarc::{IArchive, OArchive};
    ///
    /// let mut out = OArchive::new(Vec::new())?;
    /// out.save_as("events", &[(1, "start"), (2, "stop")])?;
    /// out.save("something else")?;
    /// out.save_as("events", &[(3, "start")])?;
    /// let file = out.finish()?;
    ///
    /// let mut archive = IArchive::new(&file[..])?;
    /// let events: Vec<(u32, String)> = archive.rows("events").collect::<tenarc::Result<_>>()?;
    /// assert_eq!(events.len(), 3);
    /// # Ok::<(), tenarc::Error>(())
    /// ```
    ///
    /// After an error in one value, the iterator goes on with the next value, if that can be read.
    pub fn rows<'n, T: DeserializeOwned>(&mut self, name: &'n str) -> NamedRows<'_, 'n, R, T> {
        NamedRows { archive: self, name, ready: Vec::new().into_iter() }
    }

    /// The number of segments that were read or skipped.
    pub fn segments(&self) -> u64 {
        self.directory.count()
    }

    /// Returns the reader, and the bytes that were read from it ahead.
    pub fn into_inner(self) -> (R, Vec<u8>) {
        self.read.into_inner()
    }

    fn at_end(&self, expected: &str) -> Error {
        let count = self.directory.count();
        let what = format!("the archive ends after {count} segments, expected {expected}");
        Error::new(Category::Eof, what).at(self.read.offset())
    }

    fn peek(&mut self) -> Result<Option<&NextSegment>> {
        if self.next.is_none() {
            self.next = self.advance()?;
        }
        Ok(self.next.as_deref())
    }

    /// Stores an error after which nothing more can be read.
    fn lasting<T>(&mut self, result: Result<T>) -> Result<T> {
        if let Err(error) = &result {
            self.fault = Some(error.again());
        }
        result
    }

    /// Reads the header of the next segment. `None` at the end of the archive.
    fn advance(&mut self) -> Result<Option<Box<NextSegment>>> {
        if let Some(fault) = &self.fault {
            return Err(fault.again());
        }
        if self.reading {
            // The position in the stream is unknown.
            return Err(Error::data("reading an earlier value panicked; nothing more can be read"));
        }
        if let Some(next) = self.next.take() {
            return Ok(Some(next));
        }
        let next = self.read_header();
        self.lasting(next)
    }

    /// Like [`advance`](Self::advance), for an iterator. `None` also after an error that was returned before and makes
    /// further reading impossible: otherwise, the iterator would not end.
    fn advance_in_iterator(&mut self) -> Option<Result<Box<NextSegment>>> {
        if self.fault.is_some() || self.reading {
            return None;
        }
        self.advance().transpose()
    }

    fn read_header(&mut self) -> Result<Option<Box<NextSegment>>> {
        loop {
            match self.read_record()? {
                NextRecord::Segment(next) => return Ok(Some(next)),
                NextRecord::EndMark | NextRecord::Auxiliary => {}
                NextRecord::End => return Ok(None),
            }
        }
    }

    /// Reads the record after a value: an end mark or the header of another segment. Either confirms that the
    /// value is complete.
    pub(crate) fn confirm(&mut self) -> Result<()> {
        if self.next.is_some() {
            return Ok(());
        }
        loop {
            let found = self.read_record();
            match self.lasting(found)? {
                NextRecord::Segment(next) => self.next = Some(next),
                NextRecord::Auxiliary => continue,
                NextRecord::EndMark | NextRecord::End => {}
            }
            return Ok(());
        }
    }

    fn read_record(&mut self) -> Result<NextRecord> {
        self.pass_blocks()?;
        let at = self.read.offset();
        self.read.fill(MAX_RECORD_HEAD)?;
        if self.read.window().is_empty() {
            if let Some((at, ext)) = &self.finished {
                ext.check("the end mark", *at)?;
                return Ok(NextRecord::End);
            }
            let count = self.directory.count();
            let what = format!("the archive has no end mark after {count} complete segments");
            return Err(Error::torn(what).at(at));
        }
        let limit = self.options.limits.longest();
        let record = self.take_record(limit, "a header")?;
        match RecordKind::of(&record) {
            Some(RecordKind::End) => {
                self.finished = Some((at, self.end_mark(&record, at)?));
                Ok(NextRecord::EndMark)
            }
            Some(RecordKind::Auxiliary) if at > MAGIC.len() as u64 => {
                format::check_auxiliary(&record, at)?;
                self.finished = None;
                Ok(NextRecord::Auxiliary)
            }
            kind => {
                let opened = format::open_record(&record, at)?;
                if let Some(kind @ (RecordKind::Directory | RecordKind::Auxiliary)) = kind {
                    return Err(format::misplaced(kind).at(at));
                }
                let header = Header::parse(opened, record.len() as u64, at)?;
                self.finished = None;
                Ok(NextRecord::Segment(Box::new(NextSegment { record, header })))
            }
        }
    }

    /// Reads a whole record of at most `limit` bytes.
    fn take_record(&mut self, limit: u64, what: &str) -> Result<Vec<u8>> {
        let at = self.read.offset();
        self.read.fill(MAX_RECORD_HEAD)?;
        let window = self.read.window();
        let Some(lengths) = format::record_len(window) else {
            return Err(if window.len() < MAX_RECORD_HEAD {
                Error::torn("the archive ends inside a record").at(at)
            } else {
                Error::damaged("expected a record, found other bytes").at(at)
            });
        };
        if lengths.total > limit {
            let found = lengths.total;
            let what = format!("a header has {found} bytes, the limit is {limit}");
            return Err(Error::limit(what).with_advice(Advice::MaxAlloc).at(at));
        }
        let len = crate::buffer::source::in_memory(lengths.total, at)?;
        take(&mut self.read, len, what)
    }

    /// Compares an end mark with the segments before it, and reads what follows it. Returns its extensions.
    fn end_mark(&mut self, record: &[u8], at: u64) -> Result<Ext> {
        let (Behind { padding, tail }, ext) = self.directory.compare(record, at)?;
        let behind = self.read.offset();
        let rest = take(&mut self.read, padding.len() + tail.len(), "an end mark")?;
        let expected = padding.iter().chain(&tail);
        match rest.iter().zip(expected).position(|(found, expected)| found != expected) {
            None => Ok(ext),
            Some(differs) => {
                let what = "an end mark has a wrong tail";
                Err(Error::damaged(what).at(behind + differs as u64))
            }
        }
    }

    /// Decodes a value. Reads to the end of its segment even if decoding fails.
    fn value<T, V>(&mut self, next: &NextSegment, seed: T) -> Result<V>
    where
        T: for<'de> DeserializeSeed<'de, Value = V>,
    {
        let (header, metadata) = (&next.header, next.metadata());
        let uses = next.known(self.options);
        let uses = uses.and_then(|()| last_uses(metadata, header, self.options.limits));
        let uses = match uses {
            Ok(uses) => uses,
            // For example, the metadata exceeds a limit. The next segment can still be read.
            Err(error) => {
                self.pass(next)?;
                return Err(error);
            }
        };
        let start = skip_to_body(&mut self.read, header);
        self.lasting(start)?;
        self.reading = true;
        let mut body = StreamBuffers::new(&mut self.read, header, uses, self.options);
        let base = header.metadata_offset();
        let value = decode(seed, metadata, base, &mut body, self.options);
        let rest = body.finish();
        self.reading = false;
        let hashes = match rest {
            Ok(hashes) => hashes,
            // The stream failed. If decoding failed for the same reason, its error says more.
            Err(error) => {
                let error = match value {
                    Err(cause) if !cause.is_of_value() => cause,
                    _ => error,
                };
                return self.lasting(Err(error));
            }
        };
        let checked = self.end_segment(next, &hashes);
        self.lasting(checked)?;
        value
    }

    /// Loads the next value as parts, without decoding it. The buffers are read into memory and their
    /// checksums are verified.
    ///
    /// # Errors
    /// - [`Category::Eof`] if there are no more values.
    /// - [`Category::Torn`] if the input ends without an end mark.
    /// - [`Category::Limit`] if the buffers exceed the memory limit.
    /// - The reader fails, or the archive is damaged.
    pub fn load_parts(&mut self) -> Result<Parts> {
        let Some(next) = self.advance()? else { return Err(self.at_end("another segment")) };
        let header = &next.header;
        if let Err(error) = next.known(self.options) {
            self.pass(&next)?;
            return Err(error);
        }
        let budget = self.options.limits.longest();
        let body = header.layout.places().fold(0u64, |sum, place| sum.saturating_add(place.len()));
        if body > budget {
            self.pass(&next)?;
            let what = format!("the buffers have {body} bytes, the limit is {budget}");
            return Err(Error::limit(what).with_advice(Advice::MaxAlloc).at(header.offset));
        }
        let read = self.read_parts(&next);
        let (buffers, hashes) = self.lasting(read)?;
        Parts::of_segment(header, next.metadata(), &hashes, buffers, self.options)
    }

    /// Reads the buffers and the trailer of a segment. Returns the buffers and their checksums.
    fn read_parts(&mut self, next: &NextSegment) -> Result<(Vec<Buffer>, Hashes)> {
        let header = &next.header;
        let checksums = self.options.checksums && header.is_checked();
        let alignment = usize::try_from(header.alignment).unwrap_or(1);
        skip_to_body(&mut self.read, header)?;
        let (mut buffers, mut computed): (Vec<Buffer>, _) = (Vec::new(), Vec::new());
        let (mut unpacked, mut input) = (0u64, (header.layout.body_start - header.offset, 0u64));
        for (number, place) in header.layout.places().enumerate() {
            let gap = place.start().saturating_sub(self.read.offset());
            discard(&mut self.read, gap)?;
            let (start, len) = match place {
                BufferPlace::Plain { start, len } => {
                    input.0 = input.0.saturating_add(len);
                    (start, len)
                }
                BufferPlace::Packed(place) => {
                    unpacked = unpacked.saturating_add(place.len);
                    input.1 = input.1.saturating_add(place.how.stored_len());
                    check_unpacked(unpacked, self.options.limits, input)?;
                    let number = number as u64;
                    let chunks = PackedChunks::new(header, number, place, self.options, input)?;
                    let mut unpacking = Unpacking::new(chunks);
                    let len = crate::buffer::source::in_memory(place.len, place.start)?;
                    let mut buffer = Buffer::empty(alignment);
                    let proven = received(&self.read);
                    buffer.fill_up(len, proven, |step| {
                        unpacking.read(step, |chunk, stored| {
                            let computed = checksums.then_some(&mut computed);
                            let bytes =
                                read_stored_chunk(&mut self.read, number, chunk, stored, computed);
                            bytes.map(Cow::Owned)
                        })?;
                        Ok(step.len())
                    })?;
                    buffers.push(buffer);
                    continue;
                }
            };
            let mut hasher = ChunkHasher::new(header.chunk_len, len);
            let len = crate::buffer::source::in_memory(len, start)?;
            let mut buffer = Buffer::empty(alignment);
            let proven = received(&self.read);
            buffer.fill_up(len, proven, |step| {
                self.read.read_exact(step, "a tensor").map_err(cut)?;
                if checksums {
                    Computed::add(&mut computed, &mut hasher, number as u64, step);
                }
                Ok(step.len())
            })?;
            buffers.push(buffer);
        }
        let hashes = self.end_segment(next, &computed)?;
        let content = |number: usize| buffers.get(number).map(Deref::deref);
        let hashes = header.unpacked_hashes(&hashes, content).into_owned();
        Ok((buffers, hashes))
    }

    /// Skips the body and trailer of a segment.
    fn pass(&mut self, next: &NextSegment) -> Result<()> {
        let header = &next.header;
        let passed = skip_to_body(&mut self.read, header).and_then(|()| {
            let left = header.layout.body_end - header.layout.body_start;
            discard(&mut self.read, left)?;
            self.end_segment(next, &[]).map(drop)
        });
        self.lasting(passed)
    }

    /// Reads the trailer, compares the hashes of the chunks that were read, and returns all stored checksums.
    fn end_segment(&mut self, next: &NextSegment, computed: &[Computed]) -> Result<Hashes> {
        let header = &next.header;
        let layout = &header.layout;
        let mut stored = Hashes::default();
        if layout.trailer_len() > 0 {
            let at = self.read.offset();
            let len = crate::buffer::source::in_memory(layout.trailer_len(), at)?;
            let trailer = take(&mut self.read, len, "checksums")?;
            stored = header.open_trailer(&trailer, at)?;
            for found in computed {
                found.check(header, &stored).map_err(|error| {
                    list::in_content(next.metadata(), header, found.buffer, error)
                })?;
            }
        }
        // The blocks are read before the next record: the segment is complete without them.
        self.directory.push(Entry::of(header));
        Ok(stored)
    }

    /// Reads and checks the directory blocks after a segment.
    fn pass_blocks(&mut self) -> Result<()> {
        while let Some((level, expected)) = self.directory.take_full() {
            let offset = self.read.offset();
            let record = self.take_record(directory::MAX_RECORD, "a block of the directory")?;
            let (at, ext) = expected.compare(&record, level, offset)?;
            ext.check("a block of the directory", offset)?;
            self.directory.filed(level, at);
        }
        Ok(())
    }
}

/// Iterator over the values of an archive; see [`IArchive::records`].
pub struct Records<'a, R, T> {
    archive: &'a mut IArchive<R>,
    value: PhantomData<fn() -> T>,
}

impl<R, T> fmt::Debug for Records<'_, R, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Records").finish_non_exhaustive()
    }
}

impl<R: io::Read, T: DeserializeOwned> Iterator for Records<'_, R, T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        let next = self.archive.advance_in_iterator()?;
        Some(next.and_then(|next| self.archive.value(&next, PhantomData)))
    }
}

/// Iterator over the rows of the values with one name; see [`IArchive::rows`].
pub struct NamedRows<'a, 'n, R, T> {
    archive: &'a mut IArchive<R>,
    name: &'n str,
    /// Rows of the last value that was read.
    ready: vec::IntoIter<T>,
}

impl<R, T> fmt::Debug for NamedRows<'_, '_, R, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NamedRows").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<R: io::Read, T: DeserializeOwned> Iterator for NamedRows<'_, '_, R, T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        loop {
            if let Some(row) = self.ready.next() {
                return Some(Ok(row));
            }
            // The memory of the rows that were given out is freed before the next ones are read.
            self.ready = Vec::new().into_iter();
            let next = match self.archive.advance_in_iterator()? {
                Ok(next) => next,
                Err(error) => return Some(Err(error)),
            };
            if next.header.name.as_deref() == Some(self.name) {
                match self.archive.value(&next, PhantomData::<Vec<T>>) {
                    Ok(rows) => self.ready = rows.into_iter(),
                    Err(error) => return Some(Err(error)),
                }
            } else if let Err(error) = self.archive.pass(&next) {
                return Some(Err(error));
            }
        }
    }
}
