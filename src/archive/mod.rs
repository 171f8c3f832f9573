//! Archives: files and streams that hold saved values one after the other.
//!
//! Each saved value is a *segment*: a header with the metadata, then one aligned buffer for each large tensor.
//! Headers and buffers have checksums. An *end mark* after the last segment says that everything before it is
//! complete. An archive is *torn* if it does not end with an end mark, for example after a crash.

mod announce;
mod columns;
mod copy;
mod decoded;
mod digest;
mod directory;
mod file;
mod filter;
mod follow;
mod map;
mod message;
mod opened;
mod recover;
mod salvage;
mod scan;
mod segment;
mod series;
mod snapshot;
pub(crate) mod stored;
mod stream;
mod table;
mod verify;
mod write;

use std::fs::File;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use opened::Opened;

pub use crate::buffer::unpack::CompressedBuffer;
pub use digest::Digest;
pub use directory::Entry;
pub use file::{Archive, Entries, Segments};
pub use filter::{Col, Filter, col};
pub use follow::Follow;
pub use map::Map;
pub use recover::{Recovered, Recovery, recover};
pub use salvage::Salvaged;
pub use segment::Segment;
pub use series::Series;
pub use snapshot::{Background, Snapshot};
pub use stored::Stored;
pub use stream::{IArchive, NamedRows, Records};
pub use table::{Column, Compacted, CompactedTable, Compaction, Filtered, Table, TableRows, Views};

pub use write::{ArchiveFile, OArchive};

pub use crate::segment::options::{Compression, SaveOptions};

use crate::error::Result;
use crate::options::DecodeOptions;
use crate::wire::writer::ToWrite;

/// Saves a value as an archive file at `path`. A file that is already there is replaced.
///
/// The new file appears complete or not at all: it is written beside `path`, synced to disk and renamed. Then
/// the directory is synced. After any error, the old file at `path` is unchanged. A symbolic link at `path` is
/// replaced, not followed. A replaced file's mode is kept.
///
/// Tensors and plain vectors of numbers are written directly from their memory, without a copy.
///
/// ```
/// use serde::Serialize;
/// use tenarc::Tensor;
///
/// #[derive(Serialize)]
/// struct Layer {
///     name: String,
///     weight: Tensor<Vec<f32>>,
/// }
///
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("layer.tenarc");
/// let layer = Layer { name: "dense".into(), weight: Tensor(vec![0.5; 1000]) };
/// tenarc::save(&path, &layer)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// - The value's `Serialize` fails.
/// - The value changed between the two passes, for example because it builds a new `HashMap` whenever
///   it is serialized.
/// - The file cannot be written.
pub fn save<T: Serialize + ?Sized>(path: impl AsRef<Path>, value: &T) -> Result<()> {
    save_with(path, value, SaveOptions::default())
}

/// Like [`save`], with options.
///
/// ```
/// use tenarc::Tensor;
/// use tenarc::archive::{Compression, SaveOptions};
///
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("counts.tenarc");
/// let options = SaveOptions::default()
///     .with_compression(Compression::lz4())
///     .with_note("run", "2026-11-28");
/// tenarc::archive::save_with(&path, &Tensor(vec![7u64; 100_000]), options)?;
/// assert!(std::fs::metadata(&path)?.len() < 10_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// - The alignment is not a power of two from 8 to 65,536.
/// - The value's `Serialize` fails, or the value changed between the two passes; see [`save`].
/// - The file cannot be written.
pub fn save_with<T: Serialize + ?Sized>(
    path: impl AsRef<Path>,
    value: &T,
    options: SaveOptions,
) -> Result<()> {
    save_value(path.as_ref(), &value, options)
}

/// Saves a value of any type. This function is compiled once, and not for each type.
fn save_value(path: &Path, value: &dyn ToWrite, options: SaveOptions) -> Result<()> {
    let mut out = OArchive::create(path, options)?;
    out.segment(None, value)?;
    out.finish().map(drop)
}

/// Loads the value of an archive file that holds exactly one value. Verifies the checksums of everything it
/// reads. Tensors are read directly into their final memory.
///
/// Fields that the type does not have are skipped, and their tensors are not read.
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use tenarc::Tensor;
///
/// #[derive(Serialize, Deserialize)]
/// struct Layer {
///     name: String,
///     weight: Tensor<Vec<f32>>,
/// }
///
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("layer.tenarc");
/// # tenarc::save(&path, &Layer { name: "dense".into(), weight: Tensor(vec![0.5; 1000]) })?;
/// let layer: Layer = tenarc::load(&path)?;
/// assert_eq!((layer.name.as_str(), layer.weight.len()), ("dense", 1000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The type must own its content, because the file is closed before this function returns. For a struct with fields that
/// borrow, such as `Tensor<ArrayView2<'a, f32>>` or `&'a str`, the compiler says that `Deserialize` "is not general enough":
/// open a [`Map`] and call [`Map::view`](Archive::view) instead.
///
/// # Errors
/// - The file cannot be read, or is not an archive. If it does not exist, [`Error::io_error_kind`](crate::Error::io_error_kind)
///   is `NotFound`.
/// - The archive is damaged or torn.
/// - The archive does not hold exactly one value. Read several with [`IArchive`] or [`open`].
/// - The value does not fit the type.
pub fn load<T: DeserializeOwned>(path: impl AsRef<Path>) -> Result<T> {
    load_with(path, DecodeOptions::default())
}

/// Like [`load`], with options.
///
/// ```
/// use tenarc::Tensor;
/// use tenarc::de::{DecodeOptions, Limits};
///
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("untrusted.tenarc");
/// # tenarc::save(&path, &Tensor(vec![1u8; 5000]))?;
/// // A file from a stranger may take at most 1 MiB for everything but the tensors that are in it.
/// let limits = Limits::default().with_max_alloc(1 << 20);
/// let value: Tensor<Vec<u8>> =
///     tenarc::archive::load_with(&path, DecodeOptions::default().with_limits(limits))?;
/// assert_eq!(value.len(), 5000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The same errors as [`load`].
pub fn load_with<T: DeserializeOwned>(path: impl AsRef<Path>, options: DecodeOptions) -> Result<T> {
    let path = path.as_ref();
    let archive = open(path)?;
    archive.with_options(options).load().map_err(|error| error.in_file(path))
}

/// Opens an archive file to read parts of it: single tensors, slices, or the value at a path.
///
/// Opening reads only headers. Other processes may replace the file or append to it meanwhile. The archive consists of
/// the values that were complete at the last end mark. Bytes after that belong to an append that is in progress or was
/// interrupted: [`Archive::unfinished_bytes`] counts them, and [`open_torn`] reads them.
///
/// ```
/// use std::collections::BTreeMap;
/// use tenarc::Tensor;
///
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("model.tenarc");
/// let model = BTreeMap::from([("bias", Tensor(vec![0.0f32; 512])), ("weight", Tensor(vec![1.0; 4096]))]);
/// tenarc::save(&path, &model)?;
///
/// let file = tenarc::open(&path)?;
/// for tensor in file.tensors()? {
///     println!("{} {} {:?}", tensor.path(), tensor.dtype(), tensor.shape());
/// }
/// let bias: Vec<f32> = file.tensor("bias")?; // reads no more than this tensor
/// assert_eq!(bias.len(), 512);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// - The file cannot be read, is not an archive, or is damaged.
/// - The file has no end mark. The category is [`Category::Torn`](crate::error::Category::Torn). Then
///   [`open_torn`] reads the complete values, and [`recover`] repairs the file.
pub fn open(path: impl AsRef<Path>) -> Result<Archive<File>> {
    Archive::open(path)
}

/// Like [`open`], but also reads the values after the last end mark, and archives without an end mark: see
/// [`Archive::new_torn`].
///
/// ```
/// use tenarc::{OArchive, Tensor};
///
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("log.tenarc");
/// let mut out = OArchive::new(Vec::new())?;
/// out.save(&Tensor(vec![1.0f32; 1000]))?.save(&Tensor(vec![2.0f32; 1000]))?;
/// let bytes = out.finish()?;
/// std::fs::write(&path, &bytes[..bytes.len() - 2000])?; // the end is missing
///
/// let torn = tenarc::archive::open_torn(&path)?;
/// let first: Tensor<Vec<f32>> = torn.segment(0)?.load()?;
/// assert_eq!(first.len(), 1000);
/// assert!(torn.torn().is_some()); // the error says what is missing
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the file cannot be read, or is not an archive.
pub fn open_torn(path: impl AsRef<Path>) -> Result<Archive<File>> {
    Archive::open_as(path.as_ref(), Opened::torn)
}
