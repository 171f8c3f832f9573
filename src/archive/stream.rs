//! Reading archives from streams: value after value.

use std::fmt;
use std::io;
use std::marker::PhantomData;

use serde::de::{DeserializeOwned, DeserializeSeed};

use super::body::{Body, cut, discard, last_uses, received, skip_to_body, take};
use super::directory::{Directory, Entry};
use crate::error::{Category, Error, Result};
use crate::io::checksum::Hasher;
use crate::io::source::{IoRead, Read as _};
use crate::meta::TensorMeta;
use crate::options::DecodeOptions;
use crate::parts::{Buffer, Parts};
use crate::segment::buffers::wrong_checksum;
use crate::segment::decode;
use crate::segment::format::{self, Kind, MAGIC, MAX_RECORD_HEAD, TAIL};
use crate::segment::header::Header;
use crate::segment::path;

/// Reads values one after the other from an archive, over any [`io::Read`]: the counterpart of
/// [`OArchive`](crate::OArchive).
///
/// Tensors are read straight into their memory, headers through a buffer; nothing seeks. Checksums are
/// verified before a value is given out.
///
/// An end mark need not be the end, as more may have been appended: it is the end of the input that ends
/// an archive. To ask a socket that stays open for one more value, or whether there is one, waits for it.
///
/// See [`OArchive`](crate::OArchive) for an example.
pub struct IArchive<R> {
    read: IoRead<R>,
    options: DecodeOptions,
    directory: Directory,
    /// Blocks of the directory that come next.
    blocks: Vec<u8>,
    /// The segment whose header was read, and whose value was not.
    next: Option<Box<Next>>,
    /// Whether an end mark was the last thing read.
    finished: bool,
    /// Why nothing more can be read.
    fault: Option<Error>,
    /// Whether a value is being read: it stays so where that panics.
    reading: bool,
}

struct Next {
    record: Vec<u8>,
    header: Header,
}

/// What comes next in an archive.
enum Found {
    Segment(Box<Next>),
    EndMark,
    /// The end of the input, behind an end mark.
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
    /// Starts to read an archive, which starts where the reader stands.
    ///
    /// # Errors
    /// Where the reader fails, or gives no archive.
    pub fn new(reader: R) -> Result<Self> {
        Self::with_options(reader, DecodeOptions::default())
    }

    /// As [`new`](Self::new), with options. The limits hold for each value by itself.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_options(reader: R, options: DecodeOptions) -> Result<Self> {
        let mut read = IoRead::new(reader);
        read.fill(MAGIC.len())?;
        super::scan::check_magic_of_stream(read.window())?;
        read.advance(MAGIC.len());
        let (directory, blocks) = (Directory::default(), Vec::new());
        let (next, fault) = (None, None);
        let (finished, reading) = (false, false);
        Ok(Self { read, options, directory, blocks, next, finished, fault, reading })
    }

    /// The next value.
    ///
    /// Where it does not fit the type, the one behind it can still be loaded.
    ///
    /// # Errors
    /// With [`Category::Eof`] where there are no more, with [`Category::Torn`] where the archive ends
    /// without an end mark, and where the archive is damaged or the value does not fit the type.
    pub fn load<T: DeserializeOwned>(&mut self) -> Result<T> {
        match self.advance()? {
            Some(next) => self.value(&next, PhantomData),
            None => Err(self.at_end("another segment")),
        }
    }

    /// As [`load`](Self::load), by a seed.
    pub(crate) fn load_seed<T, V>(&mut self, seed: T) -> Result<V>
    where
        T: for<'de> DeserializeSeed<'de, Value = V>,
    {
        match self.advance()? {
            Some(next) => self.value(&next, seed),
            None => Err(self.at_end("another segment")),
        }
    }

    /// The keys of the next value, which is a map, and what those are that are tensors. Reads the next
    /// header.
    pub(crate) fn next_entries(&mut self) -> Result<Vec<(String, Option<TensorMeta>)>> {
        let limits = self.options.limits;
        match self.peek()? {
            Some(Next { record, header }) => {
                let metadata = record.get(header.metadata.clone()).unwrap_or_default();
                path::entries(metadata, header, limits)
            }
            None => Err(self.at_end("another segment")),
        }
    }

    /// The next value that was saved under this name; those before it are passed over.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_as<T: DeserializeOwned>(&mut self, name: &str) -> Result<T> {
        while let Some(next) = self.advance()? {
            if next.header.name.as_deref() == Some(name) {
                return self.value(&next, PhantomData);
            }
            self.pass(&next)?;
        }
        Err(self.at_end(&format!("a segment named `{}`", name.escape_debug())))
    }

    /// Passes over the next value without decoding it; `false` where there are no more.
    ///
    /// # Errors
    /// As [`load`](Self::load), but for the end.
    pub fn skip(&mut self) -> Result<bool> {
        match self.advance()? {
            Some(next) => self.pass(&next).map(|()| true),
            None => Ok(false),
        }
    }

    /// Whether there is no further value. Reads the next header.
    ///
    /// # Errors
    /// As [`load`](Self::load), but for the end.
    pub fn is_at_end(&mut self) -> Result<bool> {
        self.peek().map(|next| next.is_none())
    }

    /// The name of the next value, if it has one, where there is one. Reads the next header.
    ///
    /// # Errors
    /// As [`load`](Self::load), but for the end.
    pub fn next_name(&mut self) -> Result<Option<Option<&str>>> {
        self.peek().map(|next| next.map(|next| next.header.name.as_deref()))
    }

    /// All further values, which are of one type. Ends after the first error that leaves nothing more
    /// to read.
    pub fn records<T: DeserializeOwned>(&mut self) -> Records<'_, R, T> {
        Records { archive: self, value: PhantomData }
    }

    /// How many segments were read or passed over.
    pub fn segments(&self) -> u64 {
        self.directory.count()
    }

    /// The reader, and the bytes that were taken from it beyond what was read here.
    pub fn into_inner(self) -> (R, Vec<u8>) {
        self.read.into_inner()
    }

    fn at_end(&self, expected: &str) -> Error {
        let count = self.directory.count();
        let what = format!("the archive ends after {count} segments, expected {expected}");
        Error::new(Category::Eof, what).at(self.read.offset())
    }

    fn peek(&mut self) -> Result<Option<&Next>> {
        if self.next.is_none() {
            self.next = self.advance()?;
        }
        Ok(self.next.as_deref())
    }

    /// Remembers what ends the reading for good.
    fn lasting<T>(&mut self, result: Result<T>) -> Result<T> {
        if let Err(error) = &result {
            self.fault = Some(error.again());
        }
        result
    }

    /// The header of the next segment, unless the archive ends.
    fn advance(&mut self) -> Result<Option<Box<Next>>> {
        if let Some(fault) = &self.fault {
            return Err(fault.again());
        }
        if self.reading {
            // Nobody knows where the reader stands.
            return Err(Error::data("an earlier value panicked while it was read"));
        }
        if let Some(next) = self.next.take() {
            return Ok(Some(next));
        }
        let next = self.read_header();
        self.lasting(next)
    }

    fn read_header(&mut self) -> Result<Option<Box<Next>>> {
        loop {
            match self.read_record()? {
                Found::Segment(next) => return Ok(Some(next)),
                Found::EndMark => {}
                Found::End => return Ok(None),
            }
        }
    }

    /// Reads on until what was read is vouched for: to an end mark, which need not be the end of the input,
    /// or to the header of another segment.
    pub(crate) fn settle(&mut self) -> Result<()> {
        if self.next.is_some() {
            return Ok(());
        }
        let found = self.read_record();
        if let Found::Segment(next) = self.lasting(found)? {
            self.next = Some(next);
        }
        Ok(())
    }

    fn read_record(&mut self) -> Result<Found> {
        self.pass_blocks()?;
        let at = self.read.offset();
        self.read.fill(MAX_RECORD_HEAD)?;
        let window = self.read.window();
        if window.is_empty() {
            if self.finished {
                return Ok(Found::End);
            }
            let count = self.directory.count();
            let what = format!("the archive has no end mark behind {count} whole segments");
            return Err(Error::torn(what).at(at));
        }
        let Some(lengths) = format::record_len(window) else {
            return Err(if window.len() < MAX_RECORD_HEAD {
                Error::torn("the archive ends inside a record").at(at)
            } else {
                Error::damaged("expected a record, found something else").at(at)
            });
        };
        let limit = self.options.limits.alloc_budget(false);
        if lengths.total > limit {
            let found = lengths.total;
            let what = format!("a header of {found} bytes, {limit} are allowed");
            return Err(Error::limit(what).at(at));
        }
        let len = super::source::in_memory(lengths.total, at)?;
        let record = take(&mut self.read, len, "a header")?;
        let opened = format::open_record(&record, at)?;
        match opened.kind {
            Kind::Segment => {
                let header = Header::parse(opened, lengths.total, at)?;
                self.finished = false;
                Ok(Found::Segment(Box::new(Next { record, header })))
            }
            Kind::End => {
                let tail = take(&mut self.read, TAIL, "an end mark")?;
                let expected = self.directory.end_mark(at)?;
                if expected != [record, tail].concat() {
                    let what = "the end mark does not fit the segments before it";
                    return Err(Error::damaged(what).at(at));
                }
                self.finished = true;
                Ok(Found::EndMark)
            }
            Kind::Directory => {
                let what = "a block of the directory where none belongs";
                Err(Error::damaged(what).at(at))
            }
        }
    }

    /// Decodes a value, and reads to the end of its segment in any case.
    fn value<T, V>(&mut self, next: &Next, seed: T) -> Result<V>
    where
        T: for<'de> DeserializeSeed<'de, Value = V>,
    {
        let Next { record, header } = next;
        let metadata = record.get(header.metadata.clone()).unwrap_or_default();
        let uses = match last_uses(metadata, header, self.options.limits) {
            Ok(uses) => uses,
            // Metadata beyond the limits, say: what follows can be read.
            Err(error) => {
                self.pass(next)?;
                return Err(error);
            }
        };
        let checksums = self.options.checksums && header.checked;
        let start = skip_to_body(&mut self.read, header);
        self.lasting(start)?;
        self.reading = true;
        let budget = self.options.limits.alloc_budget(false);
        let mut body = Body::new(&mut self.read, header, uses, checksums, budget);
        let base = header.metadata_offset();
        let value = decode(seed, metadata, base, &mut body, self.options);
        let rest = body.finish();
        self.reading = false;
        let hashes = match rest {
            Ok(hashes) => hashes,
            // The stream broke; why it did is in the value's error, if anywhere.
            Err(error) => {
                let error = match value {
                    Err(cause) if cause.category() != Category::Data => cause,
                    _ => error,
                };
                return self.lasting(Err(error));
            }
        };
        let checked = self.end_segment(header, &hashes);
        self.lasting(checked)?;
        value
    }

    /// The next value as parts, without decoding it: its metadata, and its buffers read into memory, with
    /// checksums verified.
    ///
    /// # Errors
    /// As [`load`](Self::load), but for the type.
    pub fn load_parts(&mut self) -> Result<Parts> {
        let Some(next) = self.advance()? else { return Err(self.at_end("another segment")) };
        let Next { record, header } = &*next;
        let budget = self.options.limits.alloc_budget(false);
        let body = header.layout.buffers.iter().map(|&(_, len)| len).sum::<u64>();
        if body > budget {
            self.pass(&next)?;
            let what = format!("buffers of {body} bytes, {budget} are allowed");
            return Err(Error::limit(what).at(header.offset));
        }
        let read = self.read_parts(header);
        let (buffers, hashes) = self.lasting(read)?;
        let metadata = record.get(header.metadata.clone()).unwrap_or_default();
        Parts::of_segment(header, metadata, &hashes, buffers, self.options)
    }

    /// The buffers of a segment and their checksums, and what stands behind them.
    fn read_parts(&mut self, header: &Header) -> Result<(Vec<Buffer>, Vec<u64>)> {
        let checksums = self.options.checksums && header.checked;
        let alignment = usize::try_from(header.alignment).unwrap_or(1);
        skip_to_body(&mut self.read, header)?;
        let (mut buffers, mut computed) = (Vec::new(), Vec::new());
        for (number, &(start, len)) in header.layout.buffers.iter().enumerate() {
            let gap = start.saturating_sub(self.read.offset());
            discard(&mut self.read, gap)?;
            let len = super::source::in_memory(len, start)?;
            let mut hasher = Hasher::new();
            let mut buffer = Buffer::empty(alignment);
            let proven = received(&self.read);
            buffer.fill_up(len, proven, |step| {
                self.read.read_exact(step, "a tensor").map_err(cut)?;
                if checksums {
                    hasher.update(step);
                }
                Ok(step.len())
            })?;
            buffers.push(buffer);
            if checksums {
                computed.push((number as u64, hasher.finish()));
            }
        }
        let hashes = self.end_segment(header, &computed)?;
        Ok((buffers, hashes))
    }

    /// Passes over a segment.
    fn pass(&mut self, next: &Next) -> Result<()> {
        let header = &next.header;
        let passed = skip_to_body(&mut self.read, header).and_then(|()| {
            let left = header.layout.body_end - header.layout.body_start;
            discard(&mut self.read, left)?;
            self.end_segment(header, &[]).map(drop)
        });
        self.lasting(passed)
    }

    /// Reads what stands behind the body, and checks the buffers that were read; the checksums of all.
    fn end_segment(&mut self, header: &Header, hashes: &[(u64, u64)]) -> Result<Vec<u64>> {
        let layout = &header.layout;
        let mut stored = Vec::new();
        if layout.trailer_len() > 0 {
            let len = super::source::in_memory(layout.trailer_len(), self.read.offset())?;
            let trailer = take(&mut self.read, len, "checksums")?;
            stored = header.open_trailer(&trailer)?;
            for &(number, computed) in hashes {
                let stored = usize::try_from(number).ok().and_then(|at| stored.get(at).copied());
                let (start, _) = header.buffer(number).unwrap_or_default();
                if stored != Some(computed) {
                    let stored = stored.unwrap_or_default();
                    return Err(wrong_checksum(number, computed, stored, start));
                }
            }
        }
        let entry = Entry { offset: header.offset, name: header.name.clone() };
        let at = self.read.offset();
        // They are read when more is asked for: the segment is whole without.
        let blocks = &mut self.blocks;
        self.directory.add(entry, at, |block| {
            blocks.extend_from_slice(block);
            Ok(())
        })?;
        Ok(stored)
    }

    /// Reads the blocks of the directory behind a segment.
    fn pass_blocks(&mut self) -> Result<()> {
        if self.blocks.is_empty() {
            return Ok(());
        }
        let at = self.read.offset();
        let found = take(&mut self.read, self.blocks.len(), "a block of the directory")?;
        if found == self.blocks {
            self.blocks.clear();
            return Ok(());
        }
        format::known_version(&found, at)?;
        Err(Error::damaged("a block of the directory is not what it must be").at(at))
    }
}

/// The values of an archive, one after the other; see [`IArchive::records`].
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
        if self.archive.fault.is_some() || self.archive.reading {
            return None;
        }
        match self.archive.advance() {
            Ok(Some(next)) => Some(self.archive.value(&next, PhantomData)),
            Ok(None) => None,
            Err(error) => Some(Err(error)),
        }
    }
}
