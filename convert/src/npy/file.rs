//! Reading an npy file at any position.

use std::fmt;

use tenarc::de::Limits;
use tenarc::io::ReadAt;
use tenarc::tensor::{Deferred, TensorMeta};
use tenarc::{Error, Result};

use super::header::Header;
use super::input::{Input, Stream};
use super::{check_len, payload};
use crate::as_value::{AsValue, Part};
use crate::nested::{Names, Node};
use crate::{TensorFile, part};

/// An npy file whose elements are read when they are asked for.
///
/// ```
/// use tenarc_convert::npy::{self, NpyFile};
///
/// let mut bytes = Vec::new();
/// npy::write(&mut bytes, &ndarray::array![[1.0f32, 2.0]])?;
/// let file = NpyFile::new(bytes)?;
/// assert_eq!(file.meta().shape, [1, 2]);
/// tenarc::to_vec(&tenarc::Tensor(file.deferred()))?;
/// # Ok::<(), tenarc::Error>(())
/// ```
pub struct NpyFile<S> {
    source: S,
    header: Header,
    /// Where the elements start.
    start: u64,
}

impl<S> fmt::Debug for NpyFile<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NpyFile").field("meta", &self.header.meta).finish_non_exhaustive()
    }
}

impl<S: ReadAt> NpyFile<S> {
    /// Reads the header. The array must be all there is.
    ///
    /// # Errors
    /// Where reading fails, the header is none, the array is no tensor, and where the source holds more or less
    /// than it.
    pub fn new(source: S) -> Result<Self> {
        let size = source.size().map_err(Error::io)?;
        let mut input = Input::new(Stream(part::Part::new(&source, 0..size)));
        let header = Header::read(&mut input, Limits::default())?;
        let start = input.position();
        check_len(&header, start, size)?;
        Ok(Self { source, header, start })
    }

    /// What the file is read from.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// Dtype, shape and order.
    pub fn meta(&self) -> &TensorMeta {
        &self.header.meta
    }

    /// Where in the source the elements start, if they lie there as they are read; `None` of big-endian ones.
    pub fn position(&self) -> Option<u64> {
        (!self.header.big_endian).then_some(self.start)
    }

    /// The array, which is read when it is written, in steps.
    pub fn deferred(&self) -> Deferred<'_> {
        let TensorMeta { dtype, shape, order } = &self.header.meta;
        Deferred::from_blocks(dtype.clone(), shape, *order, |put| {
            let end = self.start.saturating_add(self.header.byte_len as u64);
            let mut input = Input::new(Stream(part::Part::new(&self.source, self.start..end)));
            let read = payload::blocks(&self.header, &mut input, put);
            read.map_err(|error| error.moved_by(self.start))
        })
    }
}

impl<S: ReadAt> TensorFile for NpyFile<S> {
    fn value(&self, names: Names) -> Result<AsValue<'_>> {
        let part = Part::Tensor(self.deferred());
        AsValue::of(Node::Leaf(0), vec![("", part)]).named(names, false)
    }

    fn deferred(&self, name: &str) -> Result<Deferred<'_>> {
        match name {
            "" => Ok(self.deferred()),
            _ => Err(Error::data("the one array of an npy file has no name").in_field(name)),
        }
    }

    fn place(&self, _: &str) -> Result<Option<(&dyn ReadAt, u64)>> {
        Ok(self.position().map(|at| (&self.source as &dyn ReadAt, at)))
    }
}
