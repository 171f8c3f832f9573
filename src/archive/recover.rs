//! Repairs torn archives.

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
use crate::io::lock::is_at;

/// The result of recovering an archive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovered {
    /// How many segments were kept unchanged.
    pub segments: u64,
    /// How many of these are damaged. Only segments after the last end mark are checked; a damaged one is
    /// kept if an intact one follows it.
    pub damaged: u64,
    /// How many bytes of the torn file followed the kept segments.
    pub dropped: u64,
    /// What [`recover_to`] kept of the dropped bytes, as one more segment.
    pub salvaged: Option<Salvaged>,
}

/// Repairs a torn archive: cuts the file after its last intact segment, and writes an end mark there.
/// A complete archive is not changed.
///
/// Segments after the last end mark are checked in full. Damaged ones are kept if an intact one follows them,
/// and are counted in [`Recovered::damaged`]. Of the segments before that end mark only the headers
/// are checked; [`Archive::verify`](crate::Archive::verify) checks the rest.
///
/// # Errors
/// - The file is not an archive, cannot be changed, or is open for appending.
/// - The file is damaged rather than torn: an intact end mark follows the damage, and cutting would lose
///   what was committed there.
/// - No segment is complete, so that nothing would be left. The error's category is
///   [`Category::Torn`](crate::error::Category::Torn).
pub fn recover(path: impl AsRef<Path>) -> Result<Recovered> {
    let path = path.as_ref();
    let mut locked = lock(path)?;
    let file = &mut locked.file;
    let (repair, len) = repair_of(file).map_err(|error| error.in_file(path))?;
    repair.check_keeps_something().map_err(|error| error.in_file(path))?;
    let Some(scan) = repair.scan else { return Ok(repair.result) };
    let failed = |error| Error::io_at(error, "cannot recover", path);
    // If the process is killed from here on, the archive is torn as before.
    if scan.end < len {
        file.set_len(scan.end).map_err(failed)?;
    }
    file.seek(io::SeekFrom::Start(scan.end)).map_err(failed)?;
    file.write_all(&scan.missing).map_err(failed)?;
    file.sync_data().map_err(failed)?;
    file.write_all(&end(&scan)?).map_err(failed)?;
    file.sync_data().map_err(failed)?;
    Ok(repair.result)
}

/// Like [`recover`], but writes the result to a new file and does not change the old one.
///
/// If a segment was cut off by the end of the file, its complete tensors are kept too, although they can
/// no longer be verified. [`Recovered::salvaged`] lists them and the missing ones. This is how to read
/// what is there of a model whose download was interrupted.
///
/// # Errors
/// The same errors as [`recover`], with one exception: a file without a complete segment or tensor is an error
/// only if `new` is the same file. Also if the new file cannot be written.
pub fn recover_to(path: impl AsRef<Path>, new: impl AsRef<Path>) -> Result<Recovered> {
    let (path, new) = (path.as_ref(), new.as_ref());
    let (file, _) = open_file(path)?;
    let (mut repair, len) = repair_of(&file).map_err(|error| error.in_file(path))?;
    let cut = repair.scan.as_mut().and_then(|scan| scan.cut.take());
    let salvage = cut.and_then(|segment| Salvage::new(&file, segment));
    if salvage.is_none() && is_at(&file, new).unwrap_or(false) {
        repair.check_keeps_something().map_err(|error| error.in_file(path))?;
    }
    let mut out = AtomicFile::create(new)?;
    let failed = |error| Error::io_at(error, "cannot write", new);
    let kept = repair.scan.as_ref().map_or(len, |scan| scan.end);
    source::in_steps(&file, 0..kept, |bytes| out.write_all(bytes).map_err(failed))?;
    if let Some(scan) = repair.scan {
        out.write_all(&scan.missing).map_err(failed)?;
        let position = scan.mark();
        let mut archive = OArchive::resumed(out, position, scan.directory);
        if let Some(salvage) = salvage {
            repair.result.salvaged = Some(salvage.report()?);
            salvage.save(&mut archive)?;
        }
        out = archive.finish()?;
    }
    out.commit(SyncLevel::Full)?;
    Ok(repair.result)
}

struct Repair {
    /// The scan that ends where the file is to be cut. `None` if the archive is complete.
    scan: Option<Scan>,
    result: Recovered,
}

impl Repair {
    /// Checks that cutting the file leaves more than an empty archive.
    fn check_keeps_something(&self) -> Result<()> {
        match &self.scan {
            Some(scan) if scan.directory.count() == 0 && self.result.dropped > 0 => {
                let dropped = self.result.dropped;
                let what = format!(
                    "no segment is complete: nothing would be left of {dropped} bytes; open_torn reads the complete \
                     tensors of a cut segment, and recover_to writes them to another file"
                );
                Err(Error::torn(what).at(scan.end))
            }
            _ => Ok(()),
        }
    }
}

fn repair_of(file: &File) -> Result<(Repair, u64)> {
    let len = file.size().map_err(Error::io)?;
    if let Some(committed) = scan::finished(file, len)? {
        let result = Recovered { segments: committed.directory.count(), ..Recovered::default() };
        return Ok((Repair { scan: None, result }, len));
    }
    let vouched = scan(file, len, |_| Ok(()))?.vouched.unwrap_or_default();
    // A crash can lose any part of what follows the last end mark, so all of it is verified.
    let (mut last, mut damaged, mut behind) = (None, 0, 0);
    scan(file, len, |segment| {
        let offset = segment.header.offset;
        if offset < vouched {
            return Ok(());
        }
        match verify::body(file, segment, &mut |_| ()) {
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
        verify::body(file, segment, &mut |_| ())
    })?;
    // An intact tail of the end mark at this very place is not a sign of lost segments: only a later end
    // mark is.
    if let Some(tail) = scan.tail_behind(file, len, scan.mark() + 1)? {
        let why = scan.fault.as_ref().map_or_else(String::new, |fault| format!(" ({fault})"));
        return Err(Error::damaged(format!(
            "the archive is damaged{why}, and has a later end mark at byte {}: cutting it off here would \
             lose what follows",
            tail.mark
        ))
        .at(scan.end));
    }
    let (segments, dropped) = (scan.directory.count(), len - scan.end);
    let result = Recovered { segments, damaged, dropped, salvaged: None };
    Ok((Repair { scan: Some(scan), result }, len))
}

/// The end mark to write after the missing blocks.
fn end(scan: &Scan) -> Result<Vec<u8>> {
    scan.directory.end_mark(scan.mark())
}
