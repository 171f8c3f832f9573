//! Archives in mapped files.

use std::ops::Deref;
use std::path::Path;

use serde::de::DeserializeOwned;

use super::file::{Archive, Opened};
use crate::error::{Error, Result};
use crate::io::at::{first_bytes, open_file};
use crate::mem::MappedFile;
use crate::options::DecodeOptions;
use crate::tensor::SharedTensor;

/// As many bytes as most archives have headers in.
const START: usize = 8 << 10;

/// An archive in a mapped file: views of its tensors are had without reading them, and processes that
/// map one file share its memory.
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
/// Views borrow from the map, so that they cannot outlive it:
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
/// A tensor in a buffer lies as aligned as the archive is, 256 bytes by default. Small ones, which stand
/// inline in the metadata, are copied to aligned memory at the first view, once.
///
/// It derefs to an [`Archive`], whose methods read from it.
#[derive(Debug)]
pub struct Map(Archive<MappedFile>);

impl Map {
    /// Maps an archive file, up to its last end mark: see [`Archive::unfinished_bytes`].
    ///
    /// Checksums of tensors are not verified, as that would read them; [`verify`](Archive::verify) does.
    ///
    /// # Errors
    /// Where the file cannot be mapped, or is no archive, a damaged one, or one without an end mark.
    ///
    /// # Safety
    /// While the map, any view of it or any tensor [shared](Self::share) from it lives, nobody may change the
    /// file's contents or cut it short, in this process or another: views would change under their readers, text
    /// would cease to be UTF-8,
    /// and memory behind the new end would raise a signal that ends the process. [`tenarc::save`]
    /// is safe to use on the path meanwhile: it puts a new file in its place, and the mapped one lives
    /// on until it is unmapped. So is [`OArchive::append`], which changes nothing before the last end mark. Where that
    /// cannot be vouched for, use [`tenarc::open`](crate::open), which reads.
    ///
    /// [`tenarc::save`]: crate::save
    /// [`OArchive::append`]: crate::OArchive::append
    #[allow(unsafe_code)]
    pub unsafe fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let (file, len) = open_file(path)?;
        // Bytes behind the end mark may be cut off at any time, so that they must not be mapped.
        let opened = Opened::committed(&file, len).map_err(|error| error.in_file(path))?;
        let failed = |error| Error::io_at(error, "cannot map", path);
        let start = first_bytes(&file, START).map_err(failed)?;
        // SAFETY: what this asks is asked of the caller.
        let mapped = unsafe { MappedFile::new(&file, opened.len, start) }.map_err(failed)?;
        Ok(Self(Archive::opened(mapped, opened)))
    }

    /// Sets how values are read.
    #[must_use]
    pub fn with_options(self, options: DecodeOptions) -> Self {
        Self(self.0.with_options(options))
    }

    /// The whole value with tensors that keep the file mapped; see
    /// [`Segment::load_shared`](super::Segment::load_shared).
    ///
    /// # Errors
    /// Where not exactly one value was saved, and as [`Segment::load_shared`](super::Segment::load_shared).
    pub fn load_shared<T: DeserializeOwned>(&self) -> Result<T> {
        self.only()?.load_shared()
    }

    /// The tensor at `path`, which keeps the file mapped; see [`Segment::share`](super::Segment::share).
    ///
    /// # Errors
    /// Where not exactly one value was saved, and as [`Segment::share`](super::Segment::share).
    pub fn share(&self, path: &str) -> Result<SharedTensor> {
        self.only()?.share(path)
    }
}

impl Deref for Map {
    type Target = Archive<MappedFile>;

    fn deref(&self) -> &Archive<MappedFile> {
        &self.0
    }
}
