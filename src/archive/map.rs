//! Archives in mapped files.

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::path::Path;

use serde::de::DeserializeOwned;

use super::file::Archive;
use super::opened::{Last, Opened};
use super::segment::Segment;
use crate::buffer::source;
use crate::error::{Error, Result};
use crate::io::at::{first_bytes, open_file};
use crate::magic::MAGIC;
use crate::mem::MappedFile;
use crate::options::DecodeOptions;
use crate::tensor::SharedTensor;

/// Buffers that are closer to each other than this are prefetched together.
const MAX_GAP: u64 = 4 << 10;
/// Bytes that are read ahead at the start of the file. Most headers are within them.
const START: usize = 8 << 10;

/// An archive in a mapped file. Views of its tensors use the mapped memory directly, without reading or copying
/// the tensors first. Processes that map the same file share its memory.
///
/// ```
/// use ndarray::{Array2, ArrayView2};
/// use serde::{Deserialize, Serialize};
/// use tenarc::{Map, Tensor};
///
/// #[derive(Serialize)]
/// struct Model {
///     name: String,
///     weight: Tensor<Array2<f32>>,
/// }
///
/// #[derive(Deserialize)]
/// struct ModelView<'a> {
///     name: &'a str,
///     #[serde(borrow)]
///     weight: Tensor<ArrayView2<'a, f32>>,
/// }
///
/// # let dir = std::env::temp_dir().join(format!("tenarc-doc-map-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir)?;
/// # let path = dir.join("model.tenarc");
/// tenarc::save(&path, &Model { name: "identity".into(), weight: Array2::eye(512).into() })?;
///
/// // SAFETY: nobody changes the file while it is mapped; tenarc::save would replace it.
/// let map = unsafe { Map::open(&path)? };
/// let model: ModelView = map.view()?;
/// assert_eq!((model.name, model.weight[[7, 7]]), ("identity", 1.0));
/// # drop(map);
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Views borrow from the map, so they cannot outlive it:
///
/// ```compile_fail
/// # fn view() -> tenarc::Result<()> {
/// let map = unsafe { tenarc::Map::open("model.tenarc")? };
/// let view: tenarc::Tensor<ndarray::ArrayView1<f32>> = map.view()?;
/// drop(map); // error: cannot move out of `map` because it is borrowed
/// println!("{}", view.len());
/// # Ok(())
/// # }
/// ```
///
/// A tensor in a buffer has the archive's alignment, 256 bytes by default. Small tensors are stored inline in the
/// metadata without alignment. The first view of such a tensor copies it to aligned memory, which later views use
/// too.
///
/// A `Map` dereferences to an [`Archive`], and has all of its methods.
#[derive(Debug)]
pub struct Map(Archive<MappedFile>);

impl Map {
    /// Maps an archive file up to its last end mark; see [`Archive::unfinished_bytes`].
    ///
    /// The file stays open as long as the map exists.
    ///
    /// Views do not verify the checksums of tensors, because that would read all their bytes. Call
    /// [`verify`](Archive::verify) to do it.
    ///
    /// # Errors
    /// If the file cannot be mapped, is not an archive, is damaged, or has no end mark.
    ///
    /// # Safety
    /// Nobody may change or truncate the file, in this process or another, as long as the map, a view of it, or a
    /// tensor or buffer shared from it ([`share`](Self::share), [`Segment::share_buffer`](super::Segment::share_buffer)) exists. Otherwise views change while they are used, strings can become
    /// invalid UTF-8, and an access after the new end of the file ends the process with a signal.
    ///
    /// Two operations of this crate are safe meanwhile. [`tenarc::save`] to the same path puts a new file there, and
    /// the mapped file stays until it is unmapped. [`OArchive::append`] changes nothing before the last end mark.
    ///
    /// If you cannot guarantee this, use [`tenarc::open`](crate::open), which reads instead of mapping.
    ///
    /// [`tenarc::save`]: crate::save
    /// [`OArchive::append`]: crate::OArchive::append
    #[allow(unsafe_code)]
    pub unsafe fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let (file, len) = open_file(path)?;
        let (opened, start) = look(&file, len, path)?;
        // An append may cut off the bytes after the end mark at any time, so they must not be mapped.
        // SAFETY: the caller promises what `MappedFile::new` requires.
        let mapped = unsafe { MappedFile::new(file, opened.len, start) };
        let mapped = mapped.map_err(|error| cannot_map(error, path))?;
        Ok(Self(Archive::opened(mapped, opened)))
    }

    /// Sets the options for everything that is read from now on; see [`Archive::with_options`].
    #[must_use]
    pub fn with_options(self, options: DecodeOptions) -> Self {
        Self(self.0.with_options(options))
    }

    /// Loads the only value with tensors that keep the file mapped; see
    /// [`Segment::load_shared`](super::Segment::load_shared).
    ///
    /// # Errors
    /// If the archive does not hold exactly one value; also the errors of
    /// [`Segment::load_shared`](super::Segment::load_shared).
    pub fn load_shared<T: DeserializeOwned>(&self) -> Result<T> {
        self.only()?.load_shared()
    }

    /// Reads the tensors in the only value at `path` from the drive; see [`Segment::prefetch`](super::Segment::prefetch).
    ///
    /// # Errors
    /// If the archive does not hold exactly one value; also the errors of
    /// [`Segment::prefetch`](super::Segment::prefetch).
    pub fn prefetch(&self, path: &str) -> Result<()> {
        self.only()?.prefetch(path)
    }

    /// The tensor at `path`, which keeps the file mapped; see [`Segment::share`](super::Segment::share).
    ///
    /// # Errors
    /// If the archive does not hold exactly one value; also the errors of
    /// [`Segment::share`](super::Segment::share).
    pub fn share(&self, path: &str) -> Result<SharedTensor> {
        self.only()?.share(path)
    }
}

/// Segments of mapped files.
impl Segment<'_, MappedFile> {
    /// Reads the tensors, numbers and byte strings in the value at `path` from the drive, so that using the mapped
    /// memory need not wait for the drive. The path `""` is the whole value.
    ///
    /// Without it, mapped bytes are read when they are used for the first time. How fast this is depends on how far the
    /// system reads ahead: 128 KiB by default on Linux, and then a drive may take twice as long. This function reads
    /// 2 MiB at a time, and returns when all bytes are in the page cache. Call it on another thread to go on
    /// meanwhile. Bytes that are in the page cache already are copied once, to memory of 2 MiB that is freed at the end.
    ///
    /// It also finds bytes that the drive cannot read: they are an error here, but end the process if they are
    /// first read through the mapped memory.
    ///
    /// # Errors
    /// If there is no such value, or the file cannot be read.
    pub fn prefetch(&self, path: &str) -> Result<()> {
        let mut memory = Vec::new();
        let mut read = |range| {
            source::in_pieces(self.source.file(), range, &mut memory, |_| Ok(()))
                .map_err(|error| error.under(path))
        };
        // Small buffers that lie one behind the other are read at once, with the padding between them.
        let mut next = 0..0;
        for number in self.numbers_at(path)? {
            let place = self.loaded.buffer(number, self.options)?;
            let (start, end) = (place.start(), place.start() + place.stored_len());
            if start.saturating_sub(next.end) >= MAX_GAP {
                read(std::mem::replace(&mut next, start..end))?;
            }
            next.end = end;
        }
        read(next)
    }
}

/// Finds the last end mark of a file of `len` bytes, and reads its first bytes.
fn look(file: &File, len: u64, path: &Path) -> Result<(Opened, Vec<u8>)> {
    let most = usize::try_from(len).unwrap_or(usize::MAX).min(START);
    let start = || first_bytes(file, most).map_err(|error| cannot_map(error, path));
    // Most files end with an end mark. Then the magic bytes need no read of their own. The start is read after the
    // end mark, because from then on no writer changes what is before it.
    let last = |file: &File| Opened::ended(file, Last::of(file)?.0, len);
    if let Ok(Some(opened)) = last(file) {
        let start = start()?;
        if start.starts_with(&MAGIC) {
            return Ok((opened, start));
        }
    }
    let opened = Opened::committed(file).map_err(|error| error.in_file(path))?;
    Ok((opened, start()?))
}

#[cold]
fn cannot_map(error: io::Error, path: &Path) -> Error {
    Error::io_at(error, "cannot map", path)
}

impl Deref for Map {
    type Target = Archive<MappedFile>;

    fn deref(&self) -> &Archive<MappedFile> {
        &self.0
    }
}
