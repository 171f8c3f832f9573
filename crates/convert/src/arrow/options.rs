//! Options for writing files and streams.

use std::path::Path;

use crate::Options;

/// The way in which tensors become columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layout {
    /// [`Rows`](Self::Rows) if all tensors have the same first dimension, [`OneRow`](Self::OneRow) otherwise.
    #[default]
    Auto,
    /// The column of a tensor has a row for each index of its first dimension, which all tensors must have in common.
    Rows,
    /// There is a single row, and each of its cells holds a whole tensor. Tensors may have any shapes. The key
    /// `tenarc.layout` in the metadata marks such a file, so that readers of this crate return the same tensors.
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
    /// Returns [`Stream`](Self::Stream) if the name ends in `.arrows`, otherwise [`File`](Self::File).
    #[must_use]
    pub fn of_name(path: &Path) -> Self {
        let is_stream = path.extension().is_some_and(|extension| extension == "arrows");
        if is_stream { Self::Stream } else { Self::File }
    }
}

/// Options for files and streams of Arrow.
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
    /// Sets the way in which tensors become columns. The default is [`Layout::Auto`].
    #[must_use]
    pub fn with_layout(mut self, layout: Layout) -> Self {
        self.layout = layout;
        self
    }

    /// Sets whether a file or a stream is written. By default, the name decides: a stream is saved if it ends in
    /// `.arrows`, a file otherwise. A writer gets a stream by default.
    #[must_use]
    pub fn with_container(mut self, container: Container) -> Self {
        self.container = Some(container);
        self
    }

    /// Sets the number of rows in a record batch, which is at least one. By default, tensors are written as one batch.
    /// A tensor that is not in memory in the form in which it is written is read again for each batch.
    #[must_use]
    pub fn with_rows_per_batch(mut self, rows: usize) -> Self {
        self.rows_per_batch = Some(rows.max(1));
        self
    }
}
