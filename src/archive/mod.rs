//! Archives: a log of saved values, each a small block of metadata followed by its tensors, aligned
//! and checksummed.

mod body;
mod copy;
mod directory;
mod file;
mod loaded;
mod map;
mod message;
mod positioned;
mod recover;
mod salvage;
mod scan;
mod segment;
mod slice;
pub(crate) mod source;
mod stream;
mod verify;
mod write;

use std::fs::File;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use file::Opened;

pub use file::Archive;
pub use map::Map;
pub use recover::{Recovered, recover, recover_to};
pub use salvage::Salvaged;
pub use segment::Segment;
pub use stream::{IArchive, Records};
pub use write::{ArchiveFile, OArchive};

pub use crate::segment::options::SaveOptions;

use crate::error::Result;
use crate::options::DecodeOptions;

/// Saves a value as an archive file, in place of what is at `path`.
///
/// The file appears whole or not at all: it is written beside `path`, synced, renamed, and the
/// directory is synced. On any error what was there before stays. A symbolic link at `path` is
/// replaced, not followed; the mode of a file replaced is kept.
///
/// Tensors are handed to the file as they lie in memory, and so are plain vectors of numbers; no copy of
/// them is made.
///
/// # Errors
/// Where the value's own `Serialize` fails or gives something else when it is walked again, and where
/// the file cannot be written.
pub fn save<T: Serialize + ?Sized>(path: impl AsRef<Path>, value: &T) -> Result<()> {
    save_with(path, value, SaveOptions::default())
}

/// As [`save`], with options.
///
/// # Errors
/// As [`save`], and where the alignment is none.
pub fn save_with<T: Serialize + ?Sized>(
    path: impl AsRef<Path>,
    value: &T,
    options: SaveOptions,
) -> Result<()> {
    let mut out = OArchive::create(path, options)?;
    out.save(value)?;
    out.finish().map(drop)
}

/// Loads the value of an archive file that holds one, with all checksums verified. Tensors are read
/// straight into their memory.
///
/// Fields that the type does not know are passed over, without reading their tensors.
///
/// # Errors
/// Where the file cannot be read, is no archive, a damaged or a torn one, holds several values (see
/// [`IArchive`] and [`open`]), or the value does not fit the type.
pub fn load<T: DeserializeOwned>(path: impl AsRef<Path>) -> Result<T> {
    load_with(path, DecodeOptions::default())
}

/// As [`load`], with options.
///
/// # Errors
/// As [`load`].
pub fn load_with<T: DeserializeOwned>(path: impl AsRef<Path>, options: DecodeOptions) -> Result<T> {
    let path = path.as_ref();
    let archive = open(path)?;
    archive.with_options(options).load().map_err(|error| error.in_file(path))
}

/// Opens an archive file, to read parts of it: single tensors, or whatever a path names.
///
/// Reads headers only, with reads at positions: it is safe while other processes replace the file, or
/// append to it. While they append, and after an append that was killed, the archive is what the last end mark
/// vouches for, and [`Archive::unfinished_bytes`] says that more bytes follow; [`open_torn`] reads those.
///
/// # Errors
/// Where the file cannot be read, is no archive, or a damaged one, and with
/// [`Category::Torn`](crate::error::Category::Torn) where it has no end mark: then
/// [`open_torn`] reads what is whole of it, and [`recover`] mends it.
pub fn open(path: impl AsRef<Path>) -> Result<Archive<File>> {
    Archive::open(path)
}

/// As [`open`], and reads what stands behind the last end mark too, or what there is of a file without
/// any: see [`Archive::new_torn`].
///
/// # Errors
/// As [`open`], but for torn archives.
pub fn open_torn(path: impl AsRef<Path>) -> Result<Archive<File>> {
    Archive::open_as(path.as_ref(), Opened::torn)
}
