//! Making a torn archive whole again.

use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::path::Path;

use super::salvage::{Salvage, Salvaged};
use super::scan::{self, Scan, scan};
use super::source;
use super::verify;
use super::write::{OArchive, lock};
use crate::error::{Error, Result};
use crate::io::at::{ReadAt, open_file};
use crate::io::atomic::{AtomicFile, SyncLevel};
use crate::io::checksum::STEP;
use crate::io::lock::is_at;

/// What became of a torn archive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovered {
    /// How many segments were kept as they are.
    pub segments: u64,
    /// How many of them are damaged, of those that no end mark vouched for: whole ones follow them.
    pub damaged: u64,
    /// How many bytes stood behind them in the torn file.
    pub dropped: u64,
    /// What [`recover_to`] kept of these bytes, as one more segment.
    pub salvaged: Option<Salvaged>,
}

/// Cuts off what stands behind the last whole segment of a torn archive, and writes an end mark there.
/// A whole archive is left as it is.
///
/// Segments behind the last end mark count as whole where every byte of them is; damaged ones before a whole one
/// stay, and are counted. Of those before the end mark only the headers are looked at, and
/// [`Archive::verify`](crate::Archive::verify) tells about the rest.
///
/// # Errors
/// Where the file is no archive, cannot be changed, or is open for appending; where it is not
/// torn but damaged, with an end mark behind the damage: cutting would lose what that vouches for; and with
/// [`Category::Torn`](crate::error::Category::Torn) where no segment is whole, so that nothing would be left.
pub fn recover(path: impl AsRef<Path>) -> Result<Recovered> {
    let path = path.as_ref();
    let mut locked = lock(path)?;
    let file = &mut locked.file;
    let (plan, len) = plan(file).map_err(|error| error.in_file(path))?;
    plan.check_keeps_something().map_err(|error| error.in_file(path))?;
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
/// Of a segment that the file ends in, the tensors that are all there are kept, too, though nothing can verify
/// them any more. [`Recovered::salvaged`] names them, and those that are missing. This is how to get at what
/// there is of a model whose download was interrupted.
///
/// # Errors
/// As [`recover`], though a file without a whole segment is an error only where `new` is the same file and
/// no tensor is there either; and where the new file cannot be written.
pub fn recover_to(path: impl AsRef<Path>, new: impl AsRef<Path>) -> Result<Recovered> {
    let (path, new) = (path.as_ref(), new.as_ref());
    let (file, _) = open_file(path)?;
    let (mut plan, len) = plan(&file).map_err(|error| error.in_file(path))?;
    let cut = plan.scan.as_mut().and_then(|scan| scan.cut.take());
    let salvage = cut.and_then(|segment| Salvage::new(&file, segment));
    if salvage.is_none() && is_at(&file, new).unwrap_or(false) {
        plan.check_keeps_something().map_err(|error| error.in_file(path))?;
    }
    let mut out = AtomicFile::create(new)?;
    let failed = |error| Error::io_at(error, "cannot write", new);
    let kept = plan.scan.as_ref().map_or(len, |scan| scan.end);
    let mut at = 0;
    while at < kept {
        let bytes = source::bytes(&file, at, (STEP as u64).min(kept - at))?;
        out.write_all(&bytes).map_err(failed)?;
        at += bytes.len() as u64;
    }
    if let Some(scan) = plan.scan {
        out.write_all(&scan.missing).map_err(failed)?;
        let position = scan.mark();
        let mut archive = OArchive::resumed(out, position, scan.directory);
        if let Some(salvage) = salvage {
            plan.result.salvaged = Some(salvage.report()?);
            salvage.save(&mut archive)?;
        }
        out = archive.finish()?;
    }
    out.commit(SyncLevel::Full)?;
    Ok(plan.result)
}

struct Plan {
    /// Where to cut, unless the archive is whole.
    scan: Option<Scan>,
    result: Recovered,
}

impl Plan {
    /// That cutting the file leaves more of it than an empty archive.
    fn check_keeps_something(&self) -> Result<()> {
        match &self.scan {
            Some(scan) if scan.directory.count() == 0 && self.result.dropped > 0 => {
                let dropped = self.result.dropped;
                let what = format!(
                    "no segment is whole: nothing would be left of {dropped} bytes; open_torn reads what is \
                     there of a cut segment, and recover_to writes that to another file"
                );
                Err(Error::torn(what).at(scan.end))
            }
            _ => Ok(()),
        }
    }
}

fn plan(file: &File) -> Result<(Plan, u64)> {
    let len = file.size().map_err(Error::io)?;
    if let Some(committed) = scan::finished(file, len)? {
        let result = Recovered { segments: committed.directory.count(), ..Recovered::default() };
        return Ok((Plan { scan: None, result }, len));
    }
    let vouched = scan(file, len, |_| Ok(()))?.vouched.unwrap_or_default();
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
    // The tail of an end mark that belongs here, and is damaged, vouches for no segment behind.
    if let Some(tail) = scan.tail_behind(file, len, scan.mark() + 1)? {
        let why = scan.fault.as_ref().map_or_else(String::new, |fault| format!(" ({fault})"));
        return Err(Error::damaged(format!(
            "the archive is damaged{why}, and goes on to an end mark at byte {}: cutting it off \
             here would lose what follows",
            tail.mark
        ))
        .at(scan.end));
    }
    let (segments, dropped) = (scan.directory.count(), len - scan.end);
    let result = Recovered { segments, damaged, dropped, salvaged: None };
    Ok((Plan { scan: Some(scan), result }, len))
}

/// The end mark to write behind the missing blocks.
fn end(scan: &Scan) -> Result<Vec<u8>> {
    scan.directory.end_mark(scan.mark())
}
