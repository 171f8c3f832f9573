//! Scans an archive from its start, record by record: to verify it, to find the last end mark if bytes
//! follow it, and to find the intact part of a torn archive.

use std::borrow::Cow;
use std::ops::Range;

use super::directory::{self, Behind, BlockAt, Directory, DirectoryBlock, Entry, Fact};
use super::message;
use crate::buffer::loaded::Loaded;
use crate::buffer::source;
use crate::error::{Advice, Category, Error, Result};
use crate::io::at::ReadAt;
use crate::options::Limits;
use crate::segment::format::{self, MAGIC, RecordKind, TAIL};

/// The result of a scan: the intact part of an archive.
pub struct Scan {
    /// The end of the last complete segment, with its directory blocks and end mark.
    pub end: u64,
    /// The directory of the segments before `end`.
    pub directory: Directory,
    /// Directory blocks that belong at `end` but are missing or wrong.
    pub missing: Vec<u8>,
    /// The end of the last end mark with its tail, if there is one. Everything before it was committed.
    pub vouched: Option<u64>,
    /// The segment at `end`, if its header is complete and the input ends before its body does.
    pub cut: Option<Loaded>,
    /// The end of the record of an intact end mark at `end`, if its tail is not right. Otherwise 0.
    intact_mark: u64,
    /// Whether the tail of the end mark at `end` is wrong, and not merely not written.
    damaged_tail: bool,
    /// Why the scan stopped, if it stopped before the end of the input.
    pub fault: Option<Error>,
}

/// What a scan compares the directory with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    /// The headers: offsets, names and lengths.
    Headers,
    /// Also the numbers of rows, and the digests.
    Everything,
}

/// Reads all records, but only the headers of the segments.
///
/// `each` is called for every complete segment. If it returns an error, the scan stops and reports it as
/// the fault.
pub fn scan(
    source: &dyn ReadAt,
    len: u64,
    compare: Compare,
    mut each: impl FnMut(&Loaded) -> Result<()>,
) -> Result<Scan> {
    check_magic(source, len)?;
    let mut scan = Scan {
        end: MAGIC.len() as u64,
        directory: Directory::default(),
        missing: Vec::new(),
        vouched: None,
        cut: None,
        intact_mark: 0,
        damaged_tail: false,
        fault: None,
    };
    while scan.end < len {
        if let Err(fault) = scan.step(source, len, compare, &mut each) {
            if !fault.is_of_input() {
                return Err(fault);
            }
            scan.fault = Some(fault);
            break;
        }
    }
    Ok(scan)
}

impl Scan {
    fn step(
        &mut self,
        source: &dyn ReadAt,
        len: u64,
        compare: Compare,
        each: &mut impl FnMut(&Loaded) -> Result<()>,
    ) -> Result<()> {
        let at = self.end;
        match kind(source, at, len)? {
            RecordKind::End => return self.end_mark(source, len),
            RecordKind::Auxiliary if at > MAGIC.len() as u64 => {
                self.end += auxiliary(source, at, len)?;
                return Ok(());
            }
            kind @ (RecordKind::Directory | RecordKind::Auxiliary) => {
                return Err(format::misplaced(kind).at(at));
            }
            RecordKind::Segment => {}
        }
        let segment = Loaded::read(source, at, len, Limits::default())?;
        if segment.missing_bytes() > 0 {
            let fault = segment.cut_error();
            self.cut = Some(segment);
            return Err(fault);
        }
        each(&segment)?;
        self.directory.push(match compare {
            Compare::Headers => segment.entry(),
            Compare::Everything => segment.full_entry(source)?,
        });
        self.end = segment.header.layout.end;
        self.blocks(source, len)
    }

    /// Reads the blocks that the last segment has filled. If one is not there or wrong, it and those after it are missing.
    fn blocks(&mut self, source: &dyn ReadAt, len: u64) -> Result<()> {
        let mut fault = None;
        while let Some((level, mut block)) = self.directory.take_full() {
            if fault.is_none() {
                match same_block(source, len, &block, level, self.end) {
                    Ok(at) => {
                        self.directory.filed(level, at);
                        self.end += at.len;
                        continue;
                    }
                    Err(error) if error.is_of_input() => fault = Some(error),
                    Err(error) => return Err(error),
                }
            }
            if let DirectoryBlock::Segments(entries) = &mut block {
                complete(source, len, entries)?;
            }
            let at = self.mark();
            let record = block.record(level, at)?;
            self.directory.filed(level, BlockAt { offset: at, len: record.len() as u64 });
            self.missing.extend(record);
        }
        fault.map_or(Ok(()), Err)
    }

    /// Reads the end mark at `end`, with its tail.
    fn end_mark(&mut self, source: &dyn ReadAt, len: u64) -> Result<()> {
        let at = self.end;
        let record = source::record(source, at, len, directory::MAX_RECORD)?;
        // The segments before it determine it.
        let (Behind { padding, tail }, _) = self.directory.compare(&record, at)?;
        let behind = at + record.len() as u64;
        self.intact_mark = behind;
        let tail_at = behind + padding.len() as u64;
        let end = tail_at + TAIL as u64;
        let there = source::bytes(source, behind, (len - behind).min(end - behind))?;
        if end > len {
            return Err(Error::torn("the tail of an end mark is cut off").at(len));
        }
        let (found_padding, found_tail) = there.split_at(padding.len());
        if found_tail.iter().all(|&byte| byte == 0) {
            return Err(Error::torn("the tail of an end mark was not written").at(tail_at));
        }
        let differs = |found: &[u8], expected: &[u8], from: u64| {
            let differs = found.iter().zip(expected).position(|(a, b)| a != b)?;
            Some(Error::damaged("an end mark has a wrong tail").at(from + differs as u64))
        };
        let wrong = differs(found_tail, &tail, tail_at);
        if let Some(error) = wrong.or_else(|| differs(found_padding, &padding, behind)) {
            self.damaged_tail = true;
            return Err(error);
        }
        self.end = end;
        self.vouched = Some(end);
        Ok(())
    }

    /// Whether the scan ended right after an end mark.
    pub fn is_finished(&self) -> bool {
        self.vouched == Some(self.end)
    }

    /// Where the next end mark belongs: after the last complete segment and its directory blocks.
    pub fn mark(&self) -> u64 {
        self.end + self.missing.len() as u64
    }

    /// The first intact tail after `end` whose end mark is at `earliest` or later. If there is one, the
    /// archive is damaged and not torn.
    pub fn tail_behind(
        &self,
        source: &dyn ReadAt,
        len: u64,
        earliest: u64,
    ) -> Result<Option<Tail>> {
        match self.cut {
            // The rest of the file belongs to the cut segment, even if it looks like a tail.
            Some(_) => Ok(None),
            None => find_tail(source, self.end..len, earliest, WINDOW),
        }
    }

    /// The reason for the end of the intact part, in parentheses, for an error message.
    pub fn why(&self) -> String {
        match &self.fault {
            Some(fault) if fault.category() != Category::Torn => format!(" ({fault})"),
            _ => String::new(),
        }
    }
}

/// Compares the block at `offset` with what is expected. Returns where it is.
fn same_block(
    source: &dyn ReadAt,
    len: u64,
    expected: &DirectoryBlock,
    level: usize,
    offset: u64,
) -> Result<BlockAt> {
    if offset >= len {
        return Err(Error::torn("a block of the directory is missing").at(offset));
    }
    // A later version is said also of a record that is cut off.
    kind(source, offset, len)?;
    let record = source::record(source, offset, len, directory::MAX_RECORD)?;
    expected.compare(&record, level, offset).map(|(at, _)| at)
}

/// Adds what neither a scan nor an end mark says of segments that end before `len`. A segment that is damaged has no digest.
pub fn complete(source: &dyn ReadAt, len: u64, entries: &mut [Entry]) -> Result<()> {
    for entry in entries.iter_mut().filter(|entry| entry.digest == Fact::Unknown) {
        let loaded = Loaded::read(source, entry.offset, len, Limits::default());
        match loaded.and_then(|loaded| loaded.full_entry(source)) {
            Ok(full) => *entry = full,
            Err(error) if error.category() == Category::Io => return Err(error),
            Err(_) => {}
        }
    }
    Ok(())
}

/// Verifies the auxiliary record at `at`, which means nothing to this version. Returns its length.
fn auxiliary(source: &dyn ReadAt, at: u64, len: u64) -> Result<u64> {
    let record = source::record(source, at, len, format::MAX_AUXILIARY)?;
    format::check_auxiliary(&record, at)?;
    Ok(record.len() as u64)
}

/// The state of an archive at its last end mark.
pub struct Committed {
    pub directory: Directory,
    /// Offset of the end mark.
    pub mark: u64,
    /// The end of its tail, where the archive ends. Bytes after it belong to an append that is in progress or
    /// was interrupted.
    pub end: u64,
}

/// Reads the end mark at the end of the archive. `None` if the archive does not end with one.
pub fn finished(source: &dyn ReadAt, len: u64) -> Result<Option<Committed>> {
    let end = read_end(source, len)?;
    Ok(end.map(|(directory, mark)| Committed { directory, mark, end: len }))
}

/// Finds the last end mark.
///
/// Most archives end with it. Otherwise the headers are scanned from the start. A search backwards from the end
/// could find bytes inside a tensor that look like an end mark; the scan never looks inside tensors.
///
/// # Errors
/// - [`Category::Torn`] if there is no end mark.
/// - [`Category::Damaged`] if the scan stops at damage and an intact tail follows it. The earlier state is not
///   returned then, because it would hide what was committed later.
pub fn last_commit(source: &dyn ReadAt, len: u64) -> Result<Committed> {
    if let Some(committed) = finished(source, len)? {
        return Ok(committed);
    }
    last_before(source, len)
}

/// Like [`last_commit`], for a source that does not end with an end mark.
pub fn last_before(source: &dyn ReadAt, len: u64) -> Result<Committed> {
    match search(source, len) {
        // During the scan, a writer may have undone a value and written another one. Committed bytes do not change, so
        // a second scan shows whether the archive is really at fault.
        Err(error) if error.is_of_input() => search(source, len),
        found => found,
    }
}

/// The largest number of bytes that are searched for a later end mark. A sparse file can claim any length.
const MAX_SEARCH: u64 = 16 << 30;

/// Finds the last end mark, which does not end at `len`.
fn search(source: &dyn ReadAt, len: u64) -> Result<Committed> {
    let mut scan = scan(source, len, Compare::Headers, |_| Ok(()))?;
    if scan.damaged_tail {
        let fault = scan.fault.take().unwrap_or_else(|| torn(&scan, len));
        return Err(fault);
    }
    if scan.cut.is_none() && len - scan.end > MAX_SEARCH {
        return Err(torn(&scan, len));
    }
    if let Some(tail) = scan.tail_behind(source, len, scan.end.max(scan.intact_mark))? {
        let (end, why) = (scan.end, scan.why());
        return Err(if tail.mark == end {
            Error::damaged(format!(
                "the end mark at byte {end} is damaged{why}, but its tail is intact: recover writes the end mark again"
            ))
        } else {
            let mark = tail.mark;
            let what =
                format!("the archive is damaged at byte {end}{why}, and has a later end mark at byte {mark}");
            Error::damaged(what).with_advice(Advice::OpenTorn)
        }
        .at(scan.end));
    }
    let Some(end) = scan.vouched else { return Err(torn(&scan, len)) };
    match read_end(source, end)? {
        Some((directory, mark)) => Ok(Committed { directory, mark, end }),
        None => Err(Error::damaged("the last end mark changed during reading").at(end)),
    }
}

/// Checks that the input starts with the magic bytes of an archive.
pub fn check_magic(source: &dyn ReadAt, len: u64) -> Result<()> {
    check_magic_of(source, len, len)
}

/// Like [`check_magic`], for a stream that starts with these bytes.
pub fn check_magic_of_stream(start: &[u8]) -> Result<()> {
    check_magic_of(&start, start.len() as u64, message::LONGEST)
}

fn check_magic_of(source: &dyn ReadAt, known: u64, len: u64) -> Result<()> {
    let start = source::bytes(source, 0, known.min(MAGIC.len() as u64))?;
    if *start == MAGIC {
        return Ok(());
    }
    if MAGIC.starts_with(&start) {
        return Err(Error::torn(format!(
            "the archive is cut off after {known} bytes, inside its first 12"
        ))
        .at(0));
    }
    let (expected, found) = (MAGIC.escape_ascii(), start.escape_ascii());
    let mut what = format!("not a tenarc archive: expected `{expected}`, found `{found}`");
    if message::may_be_message(source, known, len) {
        what += "; it may be a message: read it with tenarc::from_slice or tenarc::from_reader";
    }
    Err(Error::syntax(what).at(0))
}

/// Determines the kind of the record at `at` from its first bytes.
///
/// # Errors
/// If it has another version, even if it is not complete: what a later version wrote is not unfinished.
fn kind(source: &dyn ReadAt, at: u64, len: u64) -> Result<RecordKind> {
    let start = source::bytes(source, at, (len - at).min(32))?;
    format::known_version(&start, at)?;
    Ok(RecordKind::of(&start).unwrap_or(RecordKind::Segment))
}

/// Reads the end mark that ends at `len`. Returns the directory and the offset of the end mark, or `None` if
/// no intact end mark ends there.
///
/// # Errors
/// If reading fails, or the end mark has an extension that this version does not know and must not ignore.
pub fn read_end(source: &dyn ReadAt, len: u64) -> Result<Option<(Directory, u64)>> {
    // Most end marks are shorter than this, so that one read gets all of it.
    const NEAR: u64 = 512;

    let near = len.min(NEAR);
    let Some(end) = still_there(source, len - near, near)? else { return Ok(None) };
    read_end_in(source, &end, len)
}

/// Like [`read_end`]. `end` are the last bytes of these `len` bytes.
pub fn read_end_in(source: &dyn ReadAt, end: &[u8], len: u64) -> Result<Option<(Directory, u64)>> {
    let Some(tail_at) = len.checked_sub(TAIL as u64) else { return Ok(None) };
    let tail = end.last_chunk().and_then(|tail| format::open_tail(tail, tail_at));
    let Some((mark_at, mark_len)) = tail else { return Ok(None) };
    if mark_len > directory::MAX_RECORD {
        let most = directory::MAX_RECORD;
        return Err(Error::damaged(format!(
            "expected an end mark of at most {most} bytes, found {mark_len} bytes"
        ))
        .at(mark_at));
    }
    // With the padding, if there is one.
    let padded_len = tail_at - mark_at;
    let at_hand = usize::try_from(len - mark_at).ok().and_then(|behind| {
        let mark = end.get(end.len().checked_sub(behind)?..)?;
        mark.get(..usize::try_from(padded_len).ok()?)
    });
    let padded = match at_hand {
        Some(padded) => Cow::Borrowed(padded),
        None => source::bytes(source, mark_at, padded_len)?,
    };
    let at = usize::try_from(mark_len).unwrap_or_default();
    let Some((mark, padding)) = padded.split_at_checked(at) else { return Ok(None) };
    match Directory::open(mark, mark_at) {
        Ok((directory, ext)) => {
            if padding != Behind::of(mark_at, mark_len)?.padding {
                return Ok(None);
            }
            ext.check("the end mark", mark_at)?;
            Ok(Some((directory, mark_at)))
        }
        Err(error) if error.category() == Category::Damaged => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads bytes. `None` if the file became shorter: a writer may have cut off an unfinished value.
fn still_there(source: &dyn ReadAt, offset: u64, len: u64) -> Result<Option<Cow<'_, [u8]>>> {
    match source::bytes(source, offset, len) {
        Err(error) if error.category() == Category::Eof => Ok(None),
        found => found.map(Some),
    }
}

/// The number of bytes that are searched for a tail at a time.
const WINDOW: u64 = 1 << 20;

/// An intact tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail {
    /// Offset of the tail.
    pub position: u64,
    /// Offset of its end mark.
    pub mark: u64,
}

/// Finds the first intact tail in `part` whose end mark is at `earliest` or later. Reads `window` bytes
/// at a time.
fn find_tail(
    source: &dyn ReadAt,
    part: Range<u64>,
    earliest: u64,
    window: u64,
) -> Result<Option<Tail>> {
    let mut at = part.start;
    while at + TAIL as u64 <= part.end {
        let Some(window) = still_there(source, at, window.min(part.end - at))? else { break };
        for (start, bytes) in window.windows(TAIL).enumerate() {
            let position = at + start as u64;
            if format::starts_tail(bytes)
                && let Some(tail) = bytes.first_chunk()
                && let Some((mark, _)) = format::intact_tail(tail, position)
                && mark >= earliest
            {
                return Ok(Some(Tail { position, mark }));
            }
        }
        // A tail may cross the border between two windows.
        at += (window.len() - TAIL + 1) as u64;
    }
    Ok(None)
}

/// The error for an archive that does not end with an end mark.
pub fn torn(scan: &Scan, len: u64) -> Error {
    let segments = scan.directory.count();
    let behind = len - scan.end;
    let why = scan.why();
    let what = match scan.vouched {
        None => "the archive has no end mark",
        Some(_) => "more bytes follow the last end mark of the archive",
    };
    Error::torn(format!(
        "{what}: {segments} complete segments end at byte {}, {behind} bytes follow{why}",
        scan.end
    ))
    .with_advice(Advice::Recover)
    .at(scan.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: u64 = 1000;

    fn find(bytes: &[u8], from: usize, earliest: u64) -> Option<Tail> {
        find_tail(&bytes, from as u64..bytes.len() as u64, earliest, WINDOW).unwrap()
    }

    /// A tail at `position`, directly after an end mark.
    fn tail(position: u64) -> [u8; TAIL] {
        format::tail(position - 1, 1, position)
    }

    #[test]
    #[cfg_attr(miri, ignore = "takes minutes when interpreted")]
    fn tails_at_every_place_are_found_across_windows_too() {
        const LEN: usize = 2500;
        for from in [0, 1, 17] {
            let mut bytes = vec![0; LEN];
            for at in from..=LEN - TAIL {
                if at == 0 || at % 512 > 470 {
                    continue;
                }
                let place = at..at + TAIL;
                bytes[place.clone()].copy_from_slice(&tail(at as u64));
                let mark = at as u64 - 1;
                let expected = Some(Tail { position: at as u64, mark });
                assert_eq!(find(&bytes, from, mark), expected, "{at} from {from}");
                assert_eq!(find(&bytes, from, mark + 1), None, "{at} from {from}");
                bytes[place].fill(0);
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "takes minutes when interpreted")]
    fn tails_are_found_however_short_the_last_window_is() {
        for len in TAIL..2500 {
            let mut bytes = vec![0; len + 1];
            let position = bytes.len() - TAIL;
            if position % 512 > 470 {
                continue;
            }
            bytes[position..].copy_from_slice(&tail(position as u64));
            let mark = position as u64 - 1;
            let expected = Tail { position: position as u64, mark };
            assert_eq!(find(&bytes, 0, 0), Some(expected), "{len}");
        }
    }
}
