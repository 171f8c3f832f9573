//! Walking an archive from its start: to verify it, to find the last end mark where bytes follow it,
//! and to see what of a torn archive is whole.

use std::borrow::Cow;
use std::ops::Range;

use super::directory::Directory;
use super::loaded::Loaded;
use super::message;
use super::source;
use crate::error::{Category, Error, Result};
use crate::io::at::ReadAt;
use crate::options::Limits;
use crate::segment::format::{self, Kind, MAGIC, TAIL};

/// What an archive is from its start up to where it is no more.
pub struct Scan {
    /// Behind the last whole segment, its directory blocks and end mark.
    pub end: u64,
    /// The directory there.
    pub directory: Directory,
    /// Blocks of the directory that should stand at `end` and do not.
    pub missing: Vec<u8>,
    /// Behind the last end mark, if there is one: what stands before was vouched for.
    pub vouched: Option<u64>,
    /// A segment at `end` whose header is whole, and which the input ends in.
    pub cut: Option<Loaded>,
    /// Whether an end mark stands at `end` that is damaged, rather than cut by the end of the input.
    damaged_mark: bool,
    /// Why it ends there, if not at the end of the input.
    pub fault: Option<Error>,
}

/// Walks all records. `each` is given every segment that is all there, and ends the walk by an error,
/// which is then the fault. Of the segments themselves only the headers are read.
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

/// Whether an error says that the archive ends here; others say nothing about it.
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
        if kind(source, at, len)? == Kind::End {
            // What it says follows from what stands before it.
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

    /// Whether the last whole thing is an end mark.
    pub fn is_finished(&self) -> bool {
        self.vouched == Some(self.end)
    }

    /// Where an end mark belongs: behind the last whole segment and its directory blocks.
    pub fn mark(&self) -> u64 {
        self.end + self.missing.len() as u64
    }

    /// The first intact tail behind the end, of an end mark at `earliest` or later. Where there is one, what
    /// stands before it is damaged rather than torn.
    pub fn tail_behind<S: ReadAt + ?Sized>(
        &self,
        source: &S,
        len: u64,
        earliest: u64,
    ) -> Result<Option<Tail>> {
        match self.cut {
            // All that follows belongs to the segment, whatever it looks like.
            Some(_) => Ok(None),
            None => find_tail(source, self.end..len, earliest, WINDOW),
        }
    }

    /// What to add to an error that is about the end.
    pub fn why(&self) -> String {
        match &self.fault {
            Some(fault) if fault.category() != Category::Torn => format!(" ({fault})"),
            _ => String::new(),
        }
    }
}

/// What the last end mark vouches for.
pub struct Committed {
    pub directory: Directory,
    /// Where the end mark starts.
    pub mark: u64,
    /// Behind its tail: where the archive ends. Bytes that follow belong to an append that is under way
    /// or was cut short.
    pub end: u64,
}

/// The state of the end mark with which an archive ends, if it ends with one.
pub fn finished<S: ReadAt + ?Sized>(source: &S, len: u64) -> Result<Option<Committed>> {
    check_magic(source, len)?;
    let end = read_end(source, len)?;
    Ok(end.map(|(directory, mark)| Committed { directory, mark, end: len }))
}

/// The state of the last end mark.
///
/// Most archives end with it. Otherwise all headers are walked over, from the first on. A search from the end
/// would be misled by what looks like an end mark inside a tensor; the walk never looks inside one.
///
/// # Errors
/// With [`Category::Torn`] where there is no end mark. Where the walk ends at damage behind an end mark, an earlier
/// state could hide what was committed since, so that it is an error too: with [`Category::Torn`] if it is the
/// next end mark itself that is damaged, with [`Category::Damaged`] if there is an intact tail further behind.
pub fn last_commit<S: ReadAt + ?Sized>(source: &S, len: u64) -> Result<Committed> {
    if let Some(committed) = finished(source, len)? {
        return Ok(committed);
    }
    match last_before(source, len) {
        // A writer may have taken a value back and written another while the walk passed there. What an end
        // mark vouches for does not change any more.
        Err(error) if is_fault(&error) => last_before(source, len),
        found => found,
    }
}

/// More than is searched for a later end mark: sparse files may claim to be of any length.
const MAX_SEARCH: u64 = 16 << 30;

/// The state of the last end mark, which stands somewhere before `len`.
fn last_before<S: ReadAt + ?Sized>(source: &S, len: u64) -> Result<Committed> {
    let scan = scan(source, len, |_| Ok(()))?;
    let Some(end) = scan.vouched else { return Err(torn(&scan, len)) };
    // All but the end mark may be whole: then it can be written again.
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
        None => Err(Error::damaged("the last end mark changed while it was read").at(end)),
    }
}

/// Whether the input is an archive of this version's kind.
pub fn check_magic<S: ReadAt + ?Sized>(source: &S, len: u64) -> Result<()> {
    check_magic_of(source, len, len)
}

/// As [`check_magic`], of a stream of which these are the first bytes.
pub fn check_magic_of_stream(start: &[u8]) -> Result<()> {
    check_magic_of(start, start.len() as u64, message::LONGEST)
}

fn check_magic_of<S: ReadAt + ?Sized>(source: &S, known: u64, len: u64) -> Result<()> {
    let start = source::bytes(source, 0, known.min(MAGIC.len() as u64))?;
    if *start == MAGIC {
        return Ok(());
    }
    if MAGIC.starts_with(&start) {
        return Err(
            Error::torn(format!("an archive of {known} bytes: cut in its first bytes")).at(0)
        );
    }
    let (expected, found) = (MAGIC.escape_ascii(), start.escape_ascii());
    let mut what = format!("no tenarc archive: expected `{expected}`, found `{found}`");
    if message::may_be_message(source, known, len) {
        what += "; it may be a message: read it with tenarc::from_slice or tenarc::from_reader";
    }
    Err(Error::syntax(what).at(0))
}

/// What the record at `at` is, of which only the start is read.
fn kind<S: ReadAt + ?Sized>(source: &S, at: u64, len: u64) -> Result<Kind> {
    let start = source::bytes(source, at, (len - at).min(32))?;
    let found = format::record_len(&start).and_then(|lengths| {
        let tag = start.get(lengths.head..)?.first_chunk::<5>()?;
        [Kind::End, Kind::Directory].into_iter().find(|kind| kind.starts_with(*tag))
    });
    match found {
        Some(Kind::Directory) => {
            Err(Error::damaged("a block of the directory where none belongs").at(at))
        }
        Some(kind) => Ok(kind),
        None => Ok(Kind::Segment),
    }
}

/// That certain bytes stand at `at`.
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
        None => Error::torn(format!("{what} that is cut short")).at(at + there),
        Some(differs) => {
            Error::damaged(format!("{what} is not what it must be")).at(at + differs as u64)
        }
    })
}

/// The directory of an archive that ends where `len` is, read from there, and where its end mark
/// starts; `None` where no end mark stands before `len`. A crash may leave the end of an end mark and not
/// its start, which is none either.
fn read_end<S: ReadAt + ?Sized>(source: &S, len: u64) -> Result<Option<(Directory, u64)>> {
    // More than any end mark takes.
    const MAX_MARK: u64 = 256 << 10;

    // Most end marks are that short, so that one read gets all.
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
        return Err(Error::damaged(format!("an end mark of {mark_len} bytes")).at(mark_at));
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

/// `None` where the file has become shorter: a writer may have cut off what it did not finish.
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

/// How much is searched at a time for a tail.
const WINDOW: u64 = 1 << 20;

/// An intact tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail {
    /// Where it stands.
    pub position: u64,
    /// Where its end mark starts.
    pub mark: u64,
}

/// The first intact tail in a part of the source whose end mark starts at `earliest` or later. Reads so many bytes
/// at a time as `window` says.
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
        // Tails may lie across windows.
        at += (window.len() - TAIL + 1) as u64;
    }
    Ok(None)
}

/// An archive without an end mark at its end as an error.
pub fn torn(scan: &Scan, len: u64) -> Error {
    let segments = scan.directory.count();
    let behind = len - scan.end;
    let why = scan.why();
    let what = match scan.vouched {
        None => "the archive has no end mark",
        Some(_) => "the archive goes on behind its last end mark",
    };
    Error::torn(format!(
        "{what}: {segments} whole segments end at byte {}, with {behind} bytes behind them{why}; \
         open_torn reads the segments, recover cuts the rest off",
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
