//! Reads and writes files and streams of [Arrow](https://arrow.apache.org/docs/format/Columnar.html)'s IPC format, and
//! converts them to archives and back. Their columns are read as tensors, or as the fields of a table of records.
//!
//! ```
//! use ndarray::{Array1, Array2};
//! use tenarc::tensor::ToTensor;
//! use tenarc_convert::arrow;
//!
//! # let dir = std::env::temp_dir().join(format!("tenarc-doc-arrow-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir)?;
//! # let path = dir.join("data.arrow");
//! let (images, labels) = (Array2::<f32>::zeros((100, 784)), Array1::<u8>::zeros(100));
//! let columns: [(&str, &dyn ToTensor); 2] = [("images", &images), ("labels", &labels)];
//! arrow::save(&path, &columns)?;                      // a row for each image
//!
//! let file = arrow::open(&path)?;
//! assert_eq!(file.rows(), 100);
//! let again: Array2<f32> = file.tensor("images")?;
//! assert_eq!(again, images);
//! # std::fs::remove_dir_all(&dir)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | to | use |
//! |---|---|
//! | read a file, or a stream that can be read at any position | [`open`], [`ArrowFile`] |
//! | read a stream batch by batch | [`Batches`] |
//! | write a file or a stream | [`save`], [`save_with`], [`to_writer`] |
//! | convert a file to an archive, and back | [`Format`](super::Format) |
//! | save a file as a part of a value | [`TensorFile::value`] |
//! | write a value of an archive | [`Export`] |
//! | read and write tables of records | [`TableFile`], [`segments_to_writer`] |
//!
//! | a column of | is read as |
//! |---|---|
//! | integers, floats, bools | a tensor `[rows]` |
//! | lists of fixed size of these, which may be nested | a tensor `[rows, size, …]` |
//! | `arrow.fixed_shape_tensor` | a tensor `[rows, shape…]`, with its dimensions in the order of its permutation |
//! | `arrow.bool8` | a tensor of bools |
//! | byte strings of fixed size | a tensor of `u8`, `[rows, size]` |
//! | timestamps, dates, times, durations | a tensor of their integers; the unit is a [`Loss`](super::Loss) |
//! | texts, byte strings | an array of texts or byte strings |
//! | structs | a map |
//! | any other type, or any column with nulls | a loss: it is left out. Conversions read such a file as a table |
//!
//! Record batches are concatenated along the first dimension. Buffers may be compressed with LZ4 or zstd.
//!
//! If all tensors have the same first dimension, each is written as a column with a row for each index of that
//! dimension. Otherwise, the file has a single row, and each cell holds a whole tensor: see [`Layout`]. Either way, the
//! same tensors are read back.

mod batch;
mod body;
mod cells;
mod container;
mod contents;
mod elements;
mod encode;
mod export;
mod message;
pub(crate) mod options;
mod physical;
mod plain;
mod plan;
mod read;
mod records;
mod schema;
mod stream;
mod strings;
mod table;
mod widen;
mod write;

use std::fs::File;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;

pub use super::options::Options;
pub use export::Export;
pub use options::{Container, Layout};
pub use read::ArrowFile;
pub use records::{are_table, segments_to_archive, segments_to_file, segments_to_writer};
pub use stream::{Batches, Body};
pub use table::TableFile;
pub use tenarc_arrow::Rows;

use super::codec::Codec;
use super::{Losses, Stored, TensorFile};
use plan::Texts;
use tenarc::tensor::ToTensor;
use tenarc::{Archive, Error, Result};

/// Opens a file or a stream: see [`ArrowFile::new`].
///
/// # Errors
/// If the file cannot be opened. Also the errors of [`ArrowFile::new`].
pub fn open(path: impl AsRef<Path>) -> Result<ArrowFile<File>> {
    ArrowFile::open(path.as_ref())
}

/// Saves named tensors as a file, or as a stream if the name ends in `.arrows`. Replaces the file at `path` if there is
/// one.
///
/// The file appears complete or not at all, as with [`tenarc::save`]. Tensors of several types can be passed as
/// `&dyn ToTensor`. Of [`Deferred`](tenarc::tensor::Deferred) tensors, only the part that is being written is in
/// memory.
///
/// # Errors
/// If a tensor cannot be kept as it is, if two tensors have the same name, if one has the name `__metadata__`, or if
/// the file cannot be written.
pub fn save<N: AsRef<str>, T: ToTensor>(path: impl AsRef<Path>, tensors: &[(N, T)]) -> Result<()> {
    save_with(path, tensors, &Options::default()).map(drop)
}

/// Like [`save`], with options. If they accept losses, returns what was lost.
///
/// # Errors
/// The errors of [`save`]. Also if the layout is [`Layout::Rows`] and the first dimensions of the tensors are not all
/// the same.
pub fn save_with<N: AsRef<str>, T: ToTensor>(
    path: impl AsRef<Path>,
    tensors: &[(N, T)],
    options: &Options,
) -> Result<Losses> {
    write::save(path.as_ref(), tensors, Texts::default(), options)
}

/// Writes named tensors as a stream, to any writer. It need not be able to seek.
///
/// # Errors
/// The errors of [`save`]. Also if the writer fails.
pub fn to_writer<W: Write, N: AsRef<str>, T: ToTensor>(
    writer: W,
    tensors: &[(N, T)],
) -> Result<()> {
    to_writer_with(writer, tensors, &Options::default()).map(drop)
}

/// Like [`to_writer`], with options. If they accept losses, returns what was lost.
///
/// # Errors
/// The errors of [`to_writer`] and [`save_with`].
pub fn to_writer_with<W: Write, N: AsRef<str>, T: ToTensor>(
    writer: W,
    tensors: &[(N, T)],
    options: &Options,
) -> Result<Losses> {
    write::to_writer(writer, tensors, Texts::default(), options)
}

/// The conversions of Arrow's IPC format.
pub(crate) struct Arrow;

impl Codec for Arrow {
    fn open_or_convert(
        &self,
        file: File,
        (from, to): (&Path, &Path),
        options: &Options,
    ) -> Result<ControlFlow<Losses, Box<dyn TensorFile>>> {
        let of_source = |error: Error| error.in_file(from);
        let table = if options.table.is_some() {
            TableFile::new(file).map(|file| file.with_limits(options.limits))
        } else {
            let file = ArrowFile::new(file).map_err(of_source)?.with_limits(options.limits);
            if !file.is_table() {
                return Ok(ControlFlow::Continue(Box::new(file)));
            }
            file.into_table()
        };
        let table = table.map_err(of_source)?;
        table.groups().into_archive((from, to), options).map(ControlFlow::Break)
    }

    fn table_from_archive(
        &self,
        archive: &Archive<File>,
        to: &Path,
        options: &Options,
    ) -> Result<Option<Losses>> {
        records::from_archive(archive, to, options)
    }

    fn open(&self, file: File, _: Option<&Path>, options: &Options) -> Result<Box<dyn TensorFile>> {
        Ok(Box::new(ArrowFile::new(file)?.with_limits(options.limits)))
    }

    fn of_name(&self, path: &Path, options: &Options) -> Options {
        let by_name = Container::of_name(path);
        options.clone().with_container(options.container.unwrap_or(by_name))
    }

    fn write(&self, value: &dyn Stored, out: &mut dyn Write, options: &Options) -> Result<Losses> {
        let options = self.of_name(Path::new(""), options);
        Export::new(value)?.to_writer(out, &options)
    }
}
