//! Scans an archive from its start, record by record: to verify it, to find the last end mark if bytes
//! follow it, and to find the intact part of a torn archive.

use std::borrow::Cow;
use std::ops::Range;

use super::directory::Directory;
use super::loaded::Loaded;
use super::message;
use super::source;
use crate::error::{Category, Error, Result};
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
    /// The end of the last end mark, if there is one. Everything before it was committed.
    pub vouched: Option<u64>,
    /// The segment at `end`, if its header is complete and the input ends before its body does.
    pub cut: Option<Loaded>,
    /// Whether the end mark at `end` is damaged, and not merely cut off by the end of the input.
    damaged_mark: bool,
    /// Why the scan stopped, if it stopped before the end of the input.
    pub fault: Option<Error>,
}

/// Reads all records, but only the headers of the segments.
///
/// `each` is called for every complete segment. If it returns an error, the scan stops and reports it as
/// the fault.
pub fn scan<S: ReadAt + ?Sized>(
    source: &S,
    len: u64,
    mut each: impl FnMut(&Loaded) -> Result<()>,
) -> Result<Scan> {
    check_magic(source, len)?;
    let mut scan = Scan {
        end: MAGIC.len() as u64,
        directory: Directory::default(),
        missing: Vec::new(),
        vouched: None,
        cut: None,
        damaged_mark: false,
        fault: None,
    };
    while scan.end < len {
        if let Err(fault) = scan.step(source, len, &mut each) {
            if !is_fault(&fault) {
                return Err(fault);
            }
            scan.fault = Some(fault);
            break;
        }
    }
    Ok(scan)
}

/// Whether an error means that the archive is bad at this place. I/O errors, limits and unknown versions do
/// not.
pub fn is_fault(error: &Error) -> bool {
    !matches!(error.category(), Category::Io | Category::Limit | Category::Version)
}

impl Scan {
    fn step<S: ReadAt + ?Sized>(
        &mut self,
        source: &S,
        len: u64,
        each: &mut impl FnMut(&Loaded) -> Result<()>,
    ) -> Result<()> {
        let at = self.end;
        if kind(source, at, len)? == RecordKind::End {
            // The end mark is determined by the segments before it.
            let mark = self.directory.end_mark(at)?;
            let fits = expect(source, at, len, &mark, "an end mark");
            self.damaged_mark =
                fits.as_ref().is_err_and(|error| error.category() == Category::Damaged);
            fits?;
            self.end += mark.len() as u64;
            self.vouched = Some(self.end);
            return Ok(());
        }
        let segment = Loaded::read(source, at, len, Limits::default())?;
        if segment.missing_bytes() > 0 {
            let fault = segment.cut_error();
            self.cut = Some(segment);
            return Err(fault);
        }
        each(&segment)?;
        let end = segment.header.layout.end;
        let mut blocks = Vec::new();
        self.directory.add(segment.entry(), end, |block| {
            blocks.extend_from_slice(block);
            Ok(())
        })?;
        self.end = end;
        if let Err(fault) = expect(source, self.end, len, &blocks, "a block of the directory") {
            self.missing = blocks;
            return Err(fault);
        }
        self.end += blocks.len() as u64;
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
    pub fn tail_behind<S: ReadAt + ?Sized>(
        &self,
        source: &S,
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
pub fn finished<S: ReadAt + ?Sized>(source: &S, len: u64) -> Result<Option<Committed>> {
    check_magic(source, len)?;
    let end = read_end(source, len)?;
    Ok(end.map(|(directory, mark)| Committed { directory, mark, end: len }))
}

/// Finds the last end mark.
///
/// Most archives end with it. Otherwise the headers are scanned from the start. A search backwards from the end
/// could find bytes inside a tensor that look like an end mark; the scan never looks inside tensors.
///
/// # Errors
/// - [`Category::Torn`] if there is no end mark, or if the next end mark itself is damaged.
/// - [`Category::Damaged`] if the scan stops at damage and an intact tail follows it. The earlier state is not
///   returned then, because it would hide what was committed later.
pub fn last_commit<S: ReadAt + ?Sized>(source: &S, len: u64) -> Result<Committed> {
    if let Some(committed) = finished(source, len)? {
        return Ok(committed);
    }
    match last_before(source, len) {
        // During the scan, a writer may have undone a value and written another one. Committed bytes do not change, so
        // a second scan shows whether the archive is really at fault.
        Err(error) if is_fault(&error) => last_before(source, len),
        found => found,
    }
}

/// The largest number of bytes that are searched for a later end mark. A sparse file can claim any length.
const MAX_SEARCH: u64 = 16 << 30;

/// Finds the last end mark, which does not end at `len`.
fn last_before<S: ReadAt + ?Sized>(source: &S, len: u64) -> Result<Committed> {
    let scan = scan(source, len, |_| Ok(()))?;
    let Some(end) = scan.vouched else { return Err(torn(&scan, len)) };
    // If only the end mark is bad, everything else may be intact: recovery can write it again.
    if scan.damaged_mark || (scan.cut.is_none() && len - scan.end > MAX_SEARCH) {
        return Err(torn(&scan, len));
    }
    match scan.tail_behind(source, len, scan.mark())? {
        None => {}
        Some(tail) if tail.mark == scan.mark() => return Err(torn(&scan, len)),
        Some(tail) => {
            let what = format!(
                "the archive is damaged at byte {}{}, and has a later end mark at byte {}; open_torn reads the \
                 segments before the damage",
                scan.end,
                scan.why(),
                tail.mark
            );
            return Err(Error::damaged(what).at(scan.end));
        }
    }
    match read_end(source, end)? {
        Some((directory, mark)) => Ok(Committed { directory, mark, end }),
        None => Err(Error::damaged("the last end mark changed during reading").at(end)),
    }
}

/// Checks that the input starts with the magic bytes of an archive.
pub fn check_magic<S: ReadAt + ?Sized>(source: &S, len: u64) -> Result<()> {
    check_magic_of(source, len, len)
}

/// Like [`check_magic`], for a stream that starts with these bytes.
pub fn check_magic_of_stream(start: &[u8]) -> Result<()> {
    check_magic_of(start, start.len() as u64, message::LONGEST)
}

fn check_magic_of<S: ReadAt + ?Sized>(source: &S, known: u64, len: u64) -> Result<()> {
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
fn kind<S: ReadAt + ?Sized>(source: &S, at: u64, len: u64) -> Result<RecordKind> {
    let start = source::bytes(source, at, (len - at).min(32))?;
    let found = format::record_len(&start).and_then(|lengths| {
        let tag = start.get(lengths.head..)?.first_chunk::<5>()?;
        [RecordKind::End, RecordKind::Directory].into_iter().find(|kind| kind.starts_with(*tag))
    });
    match found {
        Some(RecordKind::Directory) => {
            Err(Error::damaged("unexpected block of the directory").at(at))
        }
        Some(kind) => Ok(kind),
        None => Ok(RecordKind::Segment),
    }
}

/// Checks that the `expected` bytes are at `at`.
fn expect<S: ReadAt + ?Sized>(
    source: &S,
    at: u64,
    len: u64,
    expected: &[u8],
    what: &str,
) -> Result<()> {
    let there = (len - at).min(expected.len() as u64);
    let found = source::bytes(source, at, there)?;
    if *found == *expected {
        return Ok(());
    }
    format::known_version(&found, at)?;
    let differs = found.iter().zip(expected).position(|(a, b)| a != b);
    Err(match differs {
        None => Error::torn(format!("{what} is cut off")).at(at + there),
        Some(differs) => Error::damaged(format!("{what} has wrong bytes")).at(at + differs as u64),
    })
}

/// Reads the end mark that ends at `len`. Returns the directory and the offset of the end mark, or `None` if
/// no end mark ends there. If a crash left the tail but not the whole end mark, this is `None` too.
pub fn read_end<S: ReadAt + ?Sized>(source: &S, len: u64) -> Result<Option<(Directory, u64)>> {
    // Longer than any valid end mark.
    const MAX_MARK: u64 = 256 << 10;

    // Most end marks are shorter than this, so that one read gets all of it.
    const NEAR: u64 = 256;

    let Some(tail_at) = len.checked_sub(TAIL as u64) else { return Ok(None) };
    let near = len.min(NEAR);
    let Some(end) = still_there(source, len - near, near)? else { return Ok(None) };
    let tail = end.last_chunk();
    let Some(mark_at) = tail.and_then(|tail| format::open_tail(tail, tail_at)) else {
        return Ok(None);
    };
    let mark_len = tail_at - mark_at;
    if mark_len > MAX_MARK {
        return Err(Error::damaged(format!(
            "expected an end mark of at most {MAX_MARK} bytes, found {mark_len} bytes"
        ))
        .at(mark_at));
    }
    let at_hand = usize::try_from(mark_len).ok().and_then(|mark_len| {
        let behind = end.len().checked_sub(TAIL)?;
        end.get(behind.checked_sub(mark_len)?..behind)
    });
    let mark = match at_hand {
        Some(mark) => Cow::Borrowed(mark),
        None => source::bytes(source, mark_at, mark_len)?,
    };
    let opened = match format::open_record(&mark, mark_at) {
        Err(error) if error.category() == Category::Damaged => return Ok(None),
        opened => opened?,
    };
    let directory = Directory::parse(opened, mark_at).map_err(|error| error.at(mark_at))?;
    Ok(Some((directory, mark_at)))
}

/// Reads bytes. `None` if the file became shorter: a writer may have cut off an unfinished value.
fn still_there<S: ReadAt + ?Sized>(
    source: &S,
    offset: u64,
    len: u64,
) -> Result<Option<Cow<'_, [u8]>>> {
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
fn find_tail<S: ReadAt + ?Sized>(
    source: &S,
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
                && let Some(mark) = format::open_tail(tail, position)
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
        "{what}: {segments} complete segments end at byte {}, {behind} bytes follow{why}; open_torn reads \
         the segments, recover cuts off the rest",
        scan.end
    ))
    .at(scan.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: u64 = 1000;

    fn find(bytes: &[u8], from: usize, earliest: u64) -> Option<Tail> {
        find_tail(bytes, from as u64..bytes.len() as u64, earliest, WINDOW).unwrap()
    }

    #[test]
    #[cfg_attr(miri, ignore = "takes minutes when interpreted")]
    fn tails_at_every_place_are_found_across_windows_too() {
        const LEN: usize = 2500;
        for from in [0, 1, 17] {
            let mut bytes = vec![0; LEN];
            for at in from..=LEN - TAIL {
                let place = at..at + TAIL;
                bytes[place.clone()].copy_from_slice(&format::tail(0, at as u64));
                let tail =
                    format::open_tail(bytes[place.clone()].first_chunk().unwrap(), at as u64);
                let expected = tail.map(|mark| Tail { position: at as u64, mark });
                assert_eq!(find(&bytes, from, 0), expected, "{at} from {from}");
                assert_eq!(find(&bytes, from, 1), None, "{at} from {from}");
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
            bytes[position..].copy_from_slice(&format::tail(0, position as u64));
            let expected = Tail { position: position as u64, mark: 0 };
            assert_eq!(find(&bytes, 0, 0), Some(expected), "{len}");
        }
    }
}
