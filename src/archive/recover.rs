//! Repairs torn archives.

use std::io::{self, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use super::salvage::{Salvage, Salvaged};
use super::scan::{self, Compare, Scan, scan};
use super::verify;
use super::write::{OArchive, lock};
use crate::buffer::source;
use crate::error::{Advice, Error, Result};
use crate::io::at::{ReadAt, open_file};
use crate::io::atomic::{AtomicFile, SyncLevel};
use crate::io::lock::is_at;
use crate::options::DecodeOptions;
use crate::segment::format::TAIL;

/// What recovering an archive kept.
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
    /// What [`Recovery::to`] kept of the dropped bytes, as one more segment.
    pub salvaged: Option<Salvaged>,
}

/// Repairs a torn archive: cuts the file after its last intact segment, and writes an end mark there.
/// A complete archive is not changed. This is [`Recovery::in_place`] with the default options.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("log.tenarc");
/// let mut out = tenarc::OArchive::new(Vec::new())?;
/// out.save(&"first")?.save(&"second")?;
/// let bytes = out.finish()?;
/// std::fs::write(&path, &bytes[..bytes.len() - 1])?; // the end mark is not complete
/// assert!(tenarc::open(&path).is_err());
///
/// let kept = tenarc::archive::recover(&path)?;
/// assert_eq!((kept.segments, tenarc::open(&path)?.len()), (2, 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The errors of [`Recovery::in_place`].
pub fn recover(path: impl AsRef<Path>) -> Result<Recovered> {
    Recovery::of(path).in_place()
}

/// The repair of a torn archive, which does not end with an end mark.
///
/// Segments after the last end mark are checked in full. Damaged ones are kept if an intact one follows them,
/// and are counted in [`Recovered::damaged`]. Of the segments before that end mark only the headers
/// are checked; [`Archive::verify`](crate::Archive::verify) checks the rest.
///
/// Damage is never hidden: of a damaged tensor, [`Archive::slice`](crate::Archive::slice) reads the parts that are whole, and
/// every other tensor can be read as usual.
///
/// ```
/// use tenarc::archive::Recovery;
/// use tenarc::{OArchive, Tensor};
///
/// # let dir = std::env::temp_dir().join(format!("tenarc-doc-recovery-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir)?;
/// # let (path, new) = (dir.join("download.tenarc"), dir.join("new.tenarc"));
/// let mut out = OArchive::new(Vec::new())?;
/// out.save_as("weights", &[Tensor(vec![0.5f32; 4096]), Tensor(vec![2.0; 4096])])?;
/// let bytes = out.finish()?;
/// // A download that ended inside the second tensor.
/// std::fs::write(&path, &bytes[..20_000])?;
///
/// let kept = Recovery::of(&path).to(&new)?;
/// let salvaged = kept.salvaged.expect("one tensor is complete");
/// assert_eq!((salvaged.tensors[0].path(), salvaged.missing[0].path()), ("0", "1"));
/// assert_eq!(tenarc::open(&new)?.tensor::<Vec<f32>>("0")?, vec![0.5; 4096]);
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Recovery {
    path: PathBuf,
    options: DecodeOptions,
}

impl Recovery {
    /// The repair of this file.
    pub fn of(path: impl AsRef<Path>) -> Self {
        Self { path: path.as_ref().to_owned(), options: DecodeOptions::default() }
    }

    /// Sets the number of threads that verify large tensors, and the limits for what is salvaged of a cut value.
    /// Checksums are verified whatever the options say. The result is the same with any number of threads.
    #[must_use]
    pub fn with_options(mut self, options: DecodeOptions) -> Self {
        self.options = options;
        self
    }

    /// Changes the file itself.
    ///
    /// # Errors
    /// - The file is not an archive, cannot be changed, or is open for appending.
    /// - The file is damaged rather than torn: an intact end mark follows the damage, and cutting would lose
    ///   what was committed there.
    /// - No segment is complete, so that nothing would be left. The error's category is
    ///   [`Category::Torn`](crate::error::Category::Torn).
    pub fn in_place(&self) -> Result<Recovered> {
        let (path, options) = (&*self.path, self.options);
        let mut locked = lock(path)?;
        let file = &mut locked.file;
        let (repair, len) = repair_of(&*file, options).map_err(|error| error.in_file(path))?;
        repair.check_keeps_something().map_err(|error| error.in_file(path))?;
        let Some(mut scan) = repair.scan else { return Ok(repair.result) };
        let (mark, tail) = end(&mut scan, &*file, len)?;
        let failed = |error| Error::io_at(error, "cannot recover", path);
        // If the process is killed from here on, the archive is torn as before.
        if scan.end < len {
            file.set_len(scan.end).map_err(failed)?;
            file.sync_data().map_err(failed)?;
        }
        file.seek(io::SeekFrom::Start(scan.end)).map_err(failed)?;
        file.write_all(&scan.missing).map_err(failed)?;
        file.write_all(&mark).map_err(failed)?;
        // The tail commits everything before it: SPEC 5.7.
        file.sync_data().map_err(failed)?;
        file.write_all(&tail).map_err(failed)?;
        file.sync_data().map_err(failed)?;
        Ok(repair.result)
    }

    /// Writes the result to a new file, and does not change the old one.
    ///
    /// If a segment was cut off by the end of the file, its complete tensors are kept too, although they can
    /// no longer be verified. [`Recovered::salvaged`] lists them and the missing ones. This is how to read
    /// what is there of a model whose download was interrupted.
    ///
    /// # Errors
    /// The same errors as [`in_place`](Self::in_place), with one exception: a file without a complete segment or tensor is
    /// an error only if `new` is the same file. Also if the new file cannot be written.
    pub fn to(&self, new: impl AsRef<Path>) -> Result<Recovered> {
        let (path, new, options) = (&*self.path, new.as_ref(), self.options);
        let (file, _) = open_file(path)?;
        let (mut repair, len) = repair_of(&file, options).map_err(|error| error.in_file(path))?;
        let cut = repair.scan.as_mut().and_then(|scan| scan.cut.take());
        let salvage = cut.and_then(|segment| Salvage::of_cut(&file, segment, options));
        if salvage.is_none() && is_at(&file, new).unwrap_or(false) {
            repair.check_keeps_something().map_err(|error| error.in_file(path))?;
        }
        let mut out = AtomicFile::create(new)?;
        let failed = |error| Error::io_at(error, "cannot write", new);
        let kept = repair.scan.as_ref().map_or(len, |scan| scan.end);
        let write = |bytes: &[u8]| out.write_all(bytes).map_err(failed);
        source::in_pieces(&file, 0..kept, &mut Vec::new(), write)?;
        if let Some(mut scan) = repair.scan {
            scan::complete(&file, len, scan.directory.entries_mut())?;
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
                Err(nothing_left(self.result.dropped).at(scan.end))
            }
            _ => Ok(()),
        }
    }
}

fn repair_of<S: ReadAt>(file: &S, options: DecodeOptions) -> Result<(Repair, u64)> {
    let len = file.size().map_err(Error::io)?;
    scan::check_magic(file, len)?;
    if let Some(committed) = scan::finished(file, len)? {
        let result = Recovered { segments: committed.directory.count(), ..Recovered::default() };
        return Ok((Repair { scan: None, result }, len));
    }
    let vouched = scan(file, len, Compare::Headers, |_| Ok(()))?.vouched.unwrap_or_default();
    // A crash can lose any part of what follows the last end mark, so all of it is verified.
    let (mut last, mut damaged, mut behind) = (None, 0, 0);
    scan(file, len, Compare::Headers, |segment| {
        let offset = segment.header.offset;
        if offset < vouched {
            return Ok(());
        }
        match verify::body(file, segment, options, &mut |_| ()) {
            Ok(()) => {
                last = Some(offset);
                damaged += std::mem::take(&mut behind);
            }
            Err(error) if error.is_of_input() => behind += 1,
            Err(error) => return Err(error),
        }
        Ok(())
    })?;
    let scan = scan(file, len, Compare::Headers, |segment| {
        let offset = segment.header.offset;
        if offset < vouched || Some(offset) <= last {
            return Ok(());
        }
        verify::body(file, segment, options, &mut |_| ())
    })?;
    check_behind(&scan, file, len)?;
    let (segments, dropped) = (scan.directory.count(), len - scan.end);
    let result = Recovered { segments, damaged, dropped, ..Recovered::default() };
    Ok((Repair { scan: Some(scan), result }, len))
}

/// Checks that no committed segments follow what was scanned.
fn check_behind<S: ReadAt>(scan: &Scan, file: &S, len: u64) -> Result<()> {
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
    Ok(())
}

#[cold]
fn nothing_left(dropped: u64) -> Error {
    Error::torn(format!("no segment is complete: nothing would be left of {dropped} bytes"))
        .with_advice(Advice::Salvage)
}

/// The end mark to write after the missing blocks.
fn end<S: ReadAt>(scan: &mut Scan, file: &S, len: u64) -> Result<(Vec<u8>, [u8; TAIL])> {
    scan::complete(file, len, scan.directory.entries_mut())?;
    scan.directory.end_mark(scan.mark())
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;
    use std::ops::Range;

    use tenarc_test_support::Meeting;

    use super::*;
    use crate::{Archive, OArchive, Tensor};

    /// An archive of a tensor. Each read in the first 4 MiB of the tensor waits until two threads read.
    struct MeetingSource {
        bytes: Vec<u8>,
        start: Range<u64>,
        readers: Meeting,
    }

    impl ReadAt for MeetingSource {
        fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
            if self.start.contains(&offset) {
                self.readers.wait()?;
            }
            self.bytes.read_at(out, offset)
        }

        fn size(&self) -> io::Result<u64> {
            self.bytes.size()
        }
    }

    fn source() -> MeetingSource {
        let mut out = OArchive::new(Vec::new()).unwrap();
        out.save(&Tensor(vec![7u8; 5 << 20])).unwrap();
        let bytes = out.finish().unwrap();
        let (start, _) = Archive::new(&bytes[..]).unwrap().only().unwrap().buffers()[0];
        MeetingSource { bytes, start: start..start + (4 << 20), readers: Meeting::of(2) }
    }

    fn two_threads() -> DecodeOptions {
        DecodeOptions::default().with_threads(NonZeroUsize::new(2).unwrap())
    }

    #[test]
    fn two_threads_verify_what_follows_the_last_end_mark() {
        let mut source = source();
        source.bytes.pop();
        let (repair, _) = repair_of(&source, two_threads()).unwrap();
        assert_eq!((repair.result.segments, repair.result.damaged), (1, 0));
    }
}
