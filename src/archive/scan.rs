//! Walking an archive from its start: to verify it, to see what of a torn one is whole, and to cut
//! that off.

use std::borrow::Cow;

use super::directory::{Directory, Entry};
use super::loaded::Loaded;
use super::source;
use crate::error::{Category, Error, Result};
use crate::io::at::ReadAt;
use crate::options::Limits;
use crate::segment::format::{self, Kind, MAGIC, TAIL};
use crate::segment::header::Header;

/// What an archive is from its start up to where it is no more.
pub struct Scan {
    /// Behind the last whole segment, its directory blocks and end mark.
    pub end: u64,
    /// The directory there.
    pub directory: Directory,
    /// Blocks of the directory that should stand at `end` and do not.
    pub missing: Vec<u8>,
    /// Whether the last whole thing is an end mark.
    pub finished: bool,
    /// Behind the last end mark, or the magic: what stands before was vouched for.
    pub vouched: u64,
    /// Why it ends there, if not at the end of the input.
    pub fault: Option<Error>,
}

/// Walks all records. `each` is given every whole segment, and ends the walk by an error, which is
/// then the fault.
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
        finished: false,
        vouched: MAGIC.len() as u64,
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
            expect(source, at, len, &mark, "an end mark")?;
            self.end += mark.len() as u64;
            self.finished = true;
            self.vouched = self.end;
            return Ok(());
        }
        let segment = Loaded::read(source, at, len, Limits::default())?;
        segment.hashes(source)?;
        each(&segment)?;
        let Header { offset, name, layout, .. } = &segment.header;
        let entry = Entry { offset: *offset, name: name.clone() };
        let mut blocks = Vec::new();
        self.directory.add(entry, layout.end, |block| {
            blocks.extend_from_slice(block);
            Ok(())
        })?;
        self.end = layout.end;
        self.finished = false;
        if let Err(fault) = expect(source, self.end, len, &blocks, "a block of the directory") {
            self.missing = blocks;
            return Err(fault);
        }
        self.end += blocks.len() as u64;
        Ok(())
    }
}

/// Whether the input is an archive of this version's kind.
pub fn check_magic<S: ReadAt + ?Sized>(source: &S, len: u64) -> Result<()> {
    let start = source::bytes(source, 0, len.min(MAGIC.len() as u64))?;
    if *start == MAGIC {
        return Ok(());
    }
    if MAGIC.starts_with(&start) {
        return Err(Error::torn(format!("an archive of {len} bytes: cut in its first bytes")).at(0));
    }
    let (expected, found) = (MAGIC.escape_ascii(), start.escape_ascii());
    Err(Error::syntax(format!("no tenarc archive: expected `{expected}`, found `{found}`")).at(0))
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

/// The directory of a whole archive, read from its end; `None` where that is no end mark, so that the
/// archive is torn. A crash may leave the end of an end mark and not its start, which is torn too.
pub fn read_end<S: ReadAt + ?Sized>(source: &S, len: u64) -> Result<Option<(Directory, u64)>> {
    // More than any end mark takes.
    const MAX_MARK: u64 = 256 << 10;

    // Most end marks are that short, so that one read gets all.
    const NEAR: u64 = 256;

    let Some(tail_at) = len.checked_sub(TAIL as u64) else { return Ok(None) };
    let near = len.min(NEAR);
    let end = source::bytes(source, len - near, near)?;
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

/// Whether somewhere behind `from` there is an intact tail: then what stands before it is damaged
/// rather than torn. That of an end mark at `mark` or before does not count: no segment stands between.
pub fn has_tail_behind<S: ReadAt + ?Sized>(
    source: &S,
    from: u64,
    len: u64,
    mark: u64,
) -> Result<Option<u64>> {
    const WINDOW: u64 = 1 << 20;

    let mut at = from;
    while at + TAIL as u64 <= len {
        let window = source::bytes(source, at, WINDOW.min(len - at))?;
        for (start, bytes) in window.windows(TAIL).enumerate() {
            let position = at + start as u64;
            if format::starts_tail(bytes)
                && let Some(tail) = bytes.first_chunk()
                && format::open_tail(tail, position).is_some_and(|start| start > mark)
            {
                return Ok(Some(position));
            }
        }
        // Tails may lie across windows.
        at += (window.len() - TAIL + 1) as u64;
    }
    Ok(None)
}

/// The torn tail of an archive as an error.
pub fn torn(scan: &Scan, len: u64) -> Error {
    let segments = scan.directory.count();
    let behind = len - scan.end;
    let why = match &scan.fault {
        Some(fault) if fault.category() != Category::Torn => format!(" ({fault})"),
        _ => String::new(),
    };
    Error::torn(format!(
        "the archive has no end mark: {segments} whole segments end at byte {}, with {behind} bytes \
         behind them{why}; open_torn reads the segments, recover cuts the rest off",
        scan.end
    ))
    .at(scan.end)
}
