//! How files are written.

use std::path::Path;

use crate::Options;

/// How tensors are laid out in columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layout {
    /// In rows, if all tensors have the same first dimension; else in one row.
    #[default]
    Auto,
    /// Each tensor is a column of its rows: along its first dimension.
    Rows,
    /// Each tensor is whole in the cell of a single row, whatever its dimensions. `tenarc.layout` in the
    /// metadata says so, so that the same tensors are read back.
    OneRow,
}

/// The containers of Arrow's IPC format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Container {
    /// A file, which ends with a list of its batches: `.arrow`, also known as version 2 of `.feather`.
    File,
    /// A stream: `.arrows`.
    Stream,
}

impl Container {
    /// A stream if the name ends in `.arrows`, else a file.
    #[must_use]
    pub fn of_name(path: &Path) -> Self {
        let is_stream = path.extension().is_some_and(|extension| extension == "arrows");
        if is_stream { Self::Stream } else { Self::File }
    }
}

/// For Arrow's files and streams.
///
/// ```
/// use ndarray::{Array1, Array2};
/// use tenarc::tensor::ToTensor;
/// use tenarc_convert::Options;
/// use tenarc_convert::arrow::{self, ArrowFile, Container};
///
/// let (x, y) = (Array2::<f32>::zeros((1000, 28)), Array1::<u8>::zeros(1000));
/// let options = Options::default().with_container(Container::File).with_rows_per_batch(256);
/// let mut bytes = Vec::new();
/// let columns: [(&str, &dyn ToTensor); 2] = [("x", &x), ("y", &y)];
/// arrow::to_writer_with(&mut bytes, &columns, &options)?;
/// let file = ArrowFile::new(bytes)?;
/// assert_eq!((file.rows(), file.info("x")?.shape()), (1000, &[1000, 28][..]));
/// # Ok::<(), tenarc::Error>(())
/// ```
impl Options {
    /// How tensors are laid out in columns.
    #[must_use]
    pub fn with_layout(mut self, layout: Layout) -> Self {
        self.layout = layout;
        self
    }

    /// Whether a file or a stream is written. By default, a save to a name that ends in `.arrows` writes a stream
    /// and any other a file; to a writer, a stream is written.
    #[must_use]
    pub fn with_container(mut self, container: Container) -> Self {
        self.container = Some(container);
        self
    }

    /// How many rows go into a record batch, one at least; by default, all go into one. Tensors that do not
    /// lie in memory as they are written are fetched once for each batch.
    #[must_use]
    pub fn with_rows_per_batch(mut self, rows: usize) -> Self {
        self.rows_per_batch = Some(rows.max(1));
        self
    }
}
