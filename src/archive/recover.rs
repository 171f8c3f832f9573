//! Repairs torn archives.

use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::path::Path;
use std::sync::Arc;

use super::directory::Entry;
use super::file::Archive;
use super::mend::{Lost, Mended, damaged_chunks, mend};
use super::opened::Opened;
use super::salvage::{Salvage, Salvaged};
use super::scan::{self, Committed, Compare, Scan, scan};
use super::segment::Segment;
use super::verify;
use super::write::{OArchive, lock};
use crate::buffer::loaded::Loaded;
use crate::buffer::source;
use crate::error::{Error, Result};
use crate::io::at::{ReadAt, open_file};
use crate::io::atomic::{AtomicFile, SyncLevel};
use crate::io::lock::is_at;
use crate::options::DecodeOptions;
use crate::segment::format::TAIL;

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
    /// The segments in which [`recover_filled`] replaced damaged bytes. They are counted in `segments`, not in `damaged`.
    pub mended: Vec<Mended>,
    /// The segments that [`recover_filled`] left out.
    pub lost: Vec<Lost>,
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
    recover_with(path, DecodeOptions::default())
}

/// Like [`recover`], with options: the number of threads that verify large tensors. The limits count for what is
/// salvaged of a cut value ([`recover_to_with`]) and for [`recover_filled_with`]. Checksums are verified whatever the
/// options say. The result is the same with any number of threads.
///
/// # Errors
/// The same errors as [`recover`].
pub fn recover_with(path: impl AsRef<Path>, options: DecodeOptions) -> Result<Recovered> {
    let path = path.as_ref();
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
    recover_to_with(path, new, DecodeOptions::default())
}

/// Like [`recover_to`], with options: see [`recover_with`].
///
/// # Errors
/// The same errors as [`recover_to`].
pub fn recover_to_with(
    path: impl AsRef<Path>,
    new: impl AsRef<Path>,
    options: DecodeOptions,
) -> Result<Recovered> {
    let (path, new) = (path.as_ref(), new.as_ref());
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

/// Like [`recover_to`], but for damaged archives too: writes zeros in place of damaged chunks, so that everything else can be
/// read as usual.
///
/// The new file has good checksums, so **readers can no longer tell that these bytes were damaged**.
/// [`Recovered::mended`] names them: tensor, chunk, bytes and rows. A segment whose header is damaged is left out, and is in
/// [`Recovered::lost`]. If nothing is damaged, the new file holds the same segments as the old one.
///
/// ```
/// use std::collections::BTreeMap;
///
/// use tenarc::Tensor;
/// use tenarc::archive::recover_filled;
///
/// # let dir = std::env::temp_dir().join(format!("tenarc-doc-fill-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir)?;
/// # let (path, new) = (dir.join("model.tenarc"), dir.join("mended.tenarc"));
/// let weights = Tensor(vec![7u8; 5 << 20]);
/// tenarc::save(&path, &BTreeMap::from([("weights", &weights)]))?;
/// # let mut bytes = std::fs::read(&path)?;
/// # bytes[2_500_000] ^= 1;
/// # std::fs::write(&path, bytes)?;
/// // A bit in the third MiB changes.
/// assert!(tenarc::open(&path)?.tensor::<Vec<u8>>("weights").is_err());
///
/// let recovered = recover_filled(&path, &new)?;
/// let filled = &recovered.mended[0].filled[0];
/// assert_eq!(filled.tensors[0].path(), "weights");
/// assert_eq!(filled.chunks[0].bytes, 2 << 20..3 << 20);
/// let found: Vec<u8> = tenarc::open(&new)?.tensor("weights")?;
/// assert!(found[2 << 20..3 << 20].iter().all(|&byte| byte == 0));
/// assert_eq!(found[3 << 20..], weights[3 << 20..]);
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// - The file cannot be read at some place. Copy it first, with a program that puts zeros in such places.
/// - The file is not an archive.
/// - A header or the directory is damaged so that segments which follow cannot be found.
/// - The metadata of a damaged segment is not valid.
/// - The new file cannot be written.
pub fn recover_filled(path: impl AsRef<Path>, new: impl AsRef<Path>) -> Result<Recovered> {
    recover_filled_with(path, new, DecodeOptions::default())
}

/// Like [`recover_filled`], with options: see [`recover_with`].
///
/// # Errors
/// The same errors as [`recover_filled`].
pub fn recover_filled_with(
    path: impl AsRef<Path>,
    new: impl AsRef<Path>,
    options: DecodeOptions,
) -> Result<Recovered> {
    let (path, new) = (path.as_ref(), new.as_ref());
    let (file, _) = open_file(path)?;
    let found = FoundSegments::new(&file).map_err(|error| error.in_file(path))?;
    let salvage = found.cut.and_then(|segment| Salvage::of_cut(&file, segment, options));
    let is_empty = found.entries.is_empty() && salvage.is_none();
    if is_empty && found.dropped > 0 && is_at(&file, new).unwrap_or(false) {
        return Err(nothing_left(found.dropped).in_file(path));
    }
    let mut out = OArchive::new(AtomicFile::create(new)?)?;
    let mut result = Recovered { dropped: found.dropped, ..Recovered::default() };
    let mut before = 0;
    for (number, Entry { offset, name, .. }) in (0..).zip(found.entries) {
        if offset < before {
            let what = format!("directory: segment {number} starts inside of the one before it");
            return Err(Error::damaged(what).at(offset).in_file(path));
        }
        let loaded = Loaded::read(&file, offset, found.end, options.limits);
        let loaded = loaded.and_then(|loaded| match loaded.missing_bytes() {
            0 => Ok(loaded),
            _ => Err(loaded.cut_error()),
        });
        match loaded {
            Ok(loaded) => {
                before = loaded.header.layout.end;
                let mended = save_filled(&file, loaded, &mut out, options);
                result.mended.extend(mended.map_err(|error| error.in_file(path))?);
            }
            Err(fault) if scan::is_fault(&fault) => {
                let (name, error) = (name.map(|name| name.to_string()), fault.to_string());
                result.lost.push(Lost { number, name, error });
            }
            Err(error) => return Err(error.in_file(path)),
        }
    }
    result.segments = out.segments();
    if let Some(salvage) = salvage {
        result.salvaged = Some(salvage.report()?);
        salvage.save(&mut out)?;
    }
    out.finish()?.commit(SyncLevel::Full)?;
    Ok(result)
}

/// Writes a segment. If chunks of it are damaged, writes zeros in their place, and returns what was in them.
fn save_filled(
    file: &File,
    loaded: Loaded,
    out: &mut OArchive<AtomicFile>,
    options: DecodeOptions,
) -> Result<Option<Mended>> {
    let options = options.with_checksums(true);
    let damaged = damaged_chunks(file, &loaded, options)?;
    if damaged.is_empty() {
        let loaded = Arc::new(loaded);
        out.save_segment(&Segment { source: file, arena: None, loaded, options })?;
        return Ok(None);
    }
    let (salvage, mended) = mend(file, loaded, damaged, out.segments(), options)?;
    salvage.save(out)?;
    Ok(Some(mended))
}

/// The segments of an archive that may be torn and damaged.
struct FoundSegments {
    entries: Vec<Entry>,
    /// Where the segments end.
    end: u64,
    /// The segment behind them that was cut.
    cut: Option<Loaded>,
    /// How many bytes follow them.
    dropped: u64,
}

impl FoundSegments {
    fn new(file: &File) -> Result<Self> {
        let len = file.size().map_err(Error::io)?;
        scan::check_magic(file, len)?;
        if let Some(Committed { directory, mark, .. }) = scan::finished(file, len)? {
            let archive = Archive::opened(file, Opened::of(directory, mark, len));
            let entries = archive.entries().collect::<Result<_>>()?;
            return Ok(Self { entries, end: mark, cut: None, dropped: 0 });
        }
        let mut entries = Vec::new();
        let mut scan = scan(file, len, Compare::Headers, |segment| {
            entries.push(segment.entry());
            Ok(())
        })?;
        check_behind(&scan, file, len)?;
        Ok(Self { entries, end: scan.end, cut: scan.cut.take(), dropped: len - scan.end })
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
            Err(error) if scan::is_fault(&error) => behind += 1,
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
    Error::torn(format!(
        "no segment is complete: nothing would be left of {dropped} bytes; open_torn reads the complete tensors of a \
         cut segment, and recover_to writes them to another file"
    ))
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
    use crate::{OArchive, Tensor};

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

    #[test]
    fn two_threads_look_for_damaged_chunks() {
        let mut source = source();
        let damaged = usize::try_from(source.start.start).unwrap() + (3 << 20);
        source.bytes[damaged] ^= 1;
        let end = source.size().unwrap();
        let offset = crate::magic::MAGIC.len() as u64;
        let loaded = Loaded::read(&source, offset, end, two_threads().limits).unwrap();
        let found = damaged_chunks(&source, &loaded, two_threads()).unwrap();
        assert!(found.into_iter().eq([(0, vec![3])]));
    }
}
