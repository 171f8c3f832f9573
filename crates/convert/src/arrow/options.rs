//! What the options for writing files and streams choose from.

use std::path::Path;

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
