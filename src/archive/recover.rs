//! Making a torn archive whole again.

use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::path::Path;

use super::scan::{self, Scan, scan};
use super::source;
use super::verify;
use super::write::lock;
use crate::error::{Error, Result};
use crate::io::at::{ReadAt, open_file};
use crate::io::atomic::{AtomicFile, SyncLevel};
use crate::io::checksum::STEP;

/// What became of a torn archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// How many segments it has.
    pub segments: u64,
    /// How many of them are damaged, of those that no end mark vouched for: whole ones follow them.
    pub damaged: u64,
    /// How many bytes behind them were cut off.
    pub dropped: u64,
}

/// Cuts off what stands behind the last whole segment of a torn archive, and writes an end mark there.
/// A whole archive is left as it is.
///
/// Segments behind the last end mark count as whole where every byte of them is; damaged ones before a whole one
/// stay, and are counted. Of those before the end mark only the headers are looked at, and
/// [`Archive::verify`](crate::Archive::verify) tells about the rest.
///
/// # Errors
/// Where the file is no archive, cannot be changed, or is open for appending; and where it is not
/// torn but damaged, with an end mark behind the damage: cutting would lose what that vouches for.
pub fn recover(path: impl AsRef<Path>) -> Result<Recovered> {
    let path = path.as_ref();
    let mut locked = lock(path)?;
    let file = &mut locked.file;
    let (plan, len) = plan(file).map_err(|error| error.in_file(path))?;
    let Some(scan) = plan.scan else { return Ok(plan.result) };
    let failed = |error| Error::io_at(error, "cannot recover", path);
    // Should this end half-way, the archive is torn as before.
    if scan.end < len {
        file.set_len(scan.end).map_err(failed)?;
    }
    file.seek(io::SeekFrom::Start(scan.end)).map_err(failed)?;
    file.write_all(&scan.missing).map_err(failed)?;
    file.sync_data().map_err(failed)?;
    file.write_all(&end(&scan)?).map_err(failed)?;
    file.sync_data().map_err(failed)?;
    Ok(plan.result)
}

/// As [`recover`], into a new file: the old one stays as it is.
///
/// # Errors
/// As [`recover`], and where the new file cannot be written.
pub fn recover_to(path: impl AsRef<Path>, new: impl AsRef<Path>) -> Result<Recovered> {
    let (path, new) = (path.as_ref(), new.as_ref());
    let (file, _) = open_file(path)?;
    let (plan, len) = plan(&file).map_err(|error| error.in_file(path))?;
    let mut out = AtomicFile::create(new)?;
    let failed = |error| Error::io_at(error, "cannot write", new);
    let kept = plan.scan.as_ref().map_or(len, |scan| scan.end);
    let mut at = 0;
    while at < kept {
        let bytes = source::bytes(&file, at, (STEP as u64).min(kept - at))?;
        out.write_all(&bytes).map_err(failed)?;
        at += bytes.len() as u64;
    }
    if let Some(scan) = &plan.scan {
        out.write_all(&scan.missing).map_err(failed)?;
        out.write_all(&end(scan)?).map_err(failed)?;
    }
    out.commit(SyncLevel::Full)?;
    Ok(plan.result)
}

struct Plan {
    /// Where to cut, unless the archive is whole.
    scan: Option<Scan>,
    result: Recovered,
}

fn plan(file: &File) -> Result<(Plan, u64)> {
    let len = file.size().map_err(Error::io)?;
    scan::check_magic(file, len)?;
    if let Some((directory, _)) = scan::read_end(file, len)? {
        let result = Recovered { segments: directory.count(), damaged: 0, dropped: 0 };
        return Ok((Plan { scan: None, result }, len));
    }
    let vouched = scan(file, len, |_| Ok(()))?.vouched;
    // A crash may have lost any part of what no end mark vouches for.
    let (mut last, mut damaged, mut behind) = (None, 0, 0);
    let mut step = vec![0; STEP];
    scan(file, len, |segment| {
        let offset = segment.header.offset;
        if offset < vouched {
            return Ok(());
        }
        match verify::body(file, segment, &mut step, &mut |_| ()) {
            Ok(()) => {
                last = Some(offset);
                damaged += std::mem::take(&mut behind);
            }
            Err(error) if scan::is_fault(&error) => behind += 1,
            Err(error) => return Err(error),
        }
        Ok(())
    })?;
    let scan = scan(file, len, |segment| {
        let offset = segment.header.offset;
        if offset < vouched || Some(offset) <= last {
            return Ok(());
        }
        verify::body(file, segment, &mut step, &mut |_| ())
    })?;
    let mark = scan.end + scan.missing.len() as u64;
    if let Some(tail) = scan::has_tail_behind(file, scan.end, len, mark)? {
        let why = scan.fault.as_ref().map_or_else(String::new, |fault| format!(" ({fault})"));
        return Err(Error::damaged(format!(
            "the archive is damaged{why}, and goes on to an end mark at byte {tail}: cutting it off \
             here would lose what follows"
        ))
        .at(scan.end));
    }
    let result = Recovered { segments: scan.directory.count(), damaged, dropped: len - scan.end };
    Ok((Plan { scan: Some(scan), result }, len))
}

/// The end mark to write behind the missing blocks.
fn end(scan: &Scan) -> Result<Vec<u8>> {
    scan.directory.end_mark(scan.end + scan.missing.len() as u64)
}
