//! Files and streams of [Arrow](https://arrow.apache.org/docs/format/Columnar.html)'s IPC format: tensors in
//! columns and tables of records, read, written, and converted to archives and back.
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
//! | lists of fixed size of these, also in each other | a tensor `[rows, size, …]` |
//! | `arrow.fixed_shape_tensor` | a tensor `[rows, shape…]`, of the shape that its permutation makes |
//! | `arrow.bool8` | a tensor of bools |
//! | byte strings of fixed size | a tensor of `u8`, `[rows, size]` |
//! | timestamps, dates, times, durations | a tensor of their integers; the unit is a [`Loss`](super::Loss) |
//! | texts, byte strings | an array of them |
//! | structs | a map |
//! | anything else; anything with nulls | a loss: it is left out. Conversions read such a file as a table |
//!
//! Record batches are put together along the first dimension. Buffers that are compressed, by LZ4 or zstd, are
//! decompressed as they are read.
//!
//! Tensors of one length along their first dimension are written as columns of its rows; others whole, each in
//! the cell of a single row: see [`Layout`]. Either way the same tensors are read back.

mod batch;
mod body;
mod cells;
mod container;
mod contents;
mod elements;
mod encode;
mod export;
mod message;
mod options;
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
use std::path::Path;

pub use super::options::Options;
pub use super::records::Rows;
pub use export::Export;
pub use options::{Container, Layout};
pub use read::ArrowFile;
pub use records::{are_table, segments_to_writer};
pub use stream::{Batches, Body};
pub use table::TableFile;

use super::format::Codec;
use super::{Losses, Stored, TensorFile};
use plan::Texts;
use tenarc::tensor::ToTensor;
use tenarc::{Archive, Error, Result};

/// Opens a file or a stream, to read what is asked for of it: see [`ArrowFile::new`].
///
/// # Errors
/// Where the file cannot be read, or is neither.
pub fn open(path: impl AsRef<Path>) -> Result<ArrowFile<File>> {
    ArrowFile::open(path.as_ref())
}

/// Saves named tensors as a file, or as a stream if the name ends in `.arrows`, in place of what is at `path`.
///
/// The file appears whole or not at all, as with [`tenarc::save`]. Tensors of several types
/// go together as `&dyn ToTensor`. Of [`Deferred`](tenarc::tensor::Deferred) ones, nothing is in memory but what is being
/// written.
///
/// # Errors
/// Where a tensor cannot be kept as it is, two have one name, one is named `__metadata__`, or the file
/// cannot be written.
pub fn save<N: AsRef<str>, T: ToTensor>(path: impl AsRef<Path>, tensors: &[(N, T)]) -> Result<()> {
    save_with(path, tensors, &Options::default()).map(drop)
}

/// As [`save`], with options; what was not kept, where that is accepted.
///
/// # Errors
/// As [`save`]; and where the options ask for [rows](Layout::Rows) of tensors that have not the same number.
pub fn save_with<N: AsRef<str>, T: ToTensor>(
    path: impl AsRef<Path>,
    tensors: &[(N, T)],
    options: &Options,
) -> Result<Losses> {
    write::save(path.as_ref(), tensors, Texts::default(), options)
}

/// Writes named tensors as a stream, to any writer; nothing seeks.
///
/// # Errors
/// As [`save`], where the writer fails.
pub fn to_writer<W: Write, N: AsRef<str>, T: ToTensor>(
    writer: W,
    tensors: &[(N, T)],
) -> Result<()> {
    to_writer_with(writer, tensors, &Options::default()).map(drop)
}

/// As [`to_writer`], with options; what was not kept, where that is accepted.
///
/// # Errors
/// As [`to_writer`] and [`save_with`].
pub fn to_writer_with<W: Write, N: AsRef<str>, T: ToTensor>(
    writer: W,
    tensors: &[(N, T)],
    options: &Options,
) -> Result<Losses> {
    write::to_writer(writer, tensors, Texts::default(), options)
}

/// Arrow among the formats.
pub(crate) struct Arrow;

impl Codec for Arrow {
    fn table_to_archive(
        &self,
        file: &File,
        (from, to): (&Path, &Path),
        options: &Options,
    ) -> Result<Option<Losses>> {
        let of_source = |error: Error| error.in_file(from);
        if options.table.is_none() && !ArrowFile::new(file).map_err(of_source)?.is_table() {
            return Ok(None);
        }
        let table = TableFile::new(file).map_err(of_source)?;
        let (losses, columns) = (table.losses().clone(), table.columns());
        super::records::to_archive(
            (from, to),
            table.table(),
            columns,
            losses,
            table.batches(),
            options,
        )
        .map(Some)
    }

    fn table_from_archive(
        &self,
        archive: &Archive<File>,
        to: &Path,
        options: &Options,
    ) -> Result<Option<Losses>> {
        records::from_archive(archive, to, &self.of_name(to, options))
    }

    fn open(&self, file: File, _: Option<&Path>, _: &Options) -> Result<Box<dyn TensorFile>> {
        Ok(Box::new(ArrowFile::new(file)?))
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
