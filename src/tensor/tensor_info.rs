//! The description of a tensor that is in a file.

use crate::dtype::DType;
use crate::meta::{Order, TensorMeta};
use crate::wire::tensor::{ItemPayload, TensorItem};

/// The description of a tensor in an archive or another file: all but its elements.
///
/// Sequences of numbers that are stored as one block, such as a `Vec<f32>`, are listed as tensors of one
/// dimension.
///
/// ```
/// use ndarray::Array2;
/// use tenarc::{Archive, DType, OArchive, Tensor};
///
/// let mut out = OArchive::new(Vec::new())?;
/// out.save(&std::collections::BTreeMap::from([("weight", Tensor(Array2::<f32>::eye(100)))]))?;
/// let archive = Archive::new(out.finish()?)?;
/// let info = &archive.tensors()?[0];
/// assert_eq!((info.path(), info.dtype(), info.shape()), ("weight", &DType::F32, &[100, 100][..]));
/// assert_eq!(info.byte_len(), 40_000);
/// # Ok::<(), tenarc::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    path: String,
    meta: TensorMeta,
    byte_len: u64,
    buffer: Option<u64>,
}

impl TensorInfo {
    /// Describes a tensor at `path` that is not in a buffer of an archive, such as one of another file format.
    pub fn new(path: String, meta: TensorMeta, byte_len: u64) -> Self {
        Self { path, meta, byte_len, buffer: None }
    }

    /// Describes the tensor item at `path`.
    pub(crate) fn of(path: String, item: &TensorItem) -> Self {
        let buffer = match item.payload {
            ItemPayload::Buffer { number, .. } => Some(number),
            _ => None,
        };
        Self { path, meta: item.meta.clone(), byte_len: item.payload.len() as u64, buffer }
    }

    /// Describes a column of a sequence that is stored as columns. `buffer` is the number of the buffer that holds its
    /// payload, if it is in one.
    pub(crate) fn of_column(
        path: String,
        meta: TensorMeta,
        byte_len: u64,
        buffer: Option<u64>,
    ) -> Self {
        Self { path, meta, byte_len, buffer }
    }

    /// The path of the tensor in the value: field names, map keys and array indices joined by dots, as
    /// [`Archive::tensor`](crate::Archive::tensor) expects it.
    ///
    /// Keys that are not text are written in diagnostic notation: `7`, `true`, `h'00ff'`, `[1, 2]`. If the
    /// dotted path is ambiguous, this is a JSON Pointer (RFC 6901) instead, which starts with a slash.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The type of the elements.
    pub fn dtype(&self) -> &DType {
        &self.meta.dtype
    }

    /// The dimensions.
    pub fn shape(&self) -> &[usize] {
        &self.meta.shape
    }

    /// The order of the elements in memory: row-major (C) or column-major (Fortran).
    pub fn order(&self) -> Order {
        self.meta.order
    }

    /// Dtype, shape and order.
    pub fn meta(&self) -> &TensorMeta {
        &self.meta
    }

    /// The length of the payload in bytes.
    pub fn byte_len(&self) -> u64 {
        self.byte_len
    }

    /// The number of the buffer that holds the payload, counted from zero in its segment. `None` if the
    /// payload is inline in the metadata. Tied tensors share a buffer.
    pub fn buffer(&self) -> Option<u64> {
        self.buffer
    }
}
