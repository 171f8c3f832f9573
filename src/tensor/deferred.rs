//! Tensors whose elements are computed or fetched while they are written.

use std::fmt;

use crate::shape::Shape;

use super::{Order, TensorMeta, ToTensor};
use crate::dtype::DType;
use crate::elements::{Element, Elements};
use crate::error::{Error, Result};

/// A tensor with a known dtype and shape, whose elements are fetched only when they are written. Use it for
/// tensors on a GPU, in another file, or computed on the fly.
///
/// While a value with many of them is saved, only one at a time is in memory. A tensor may be fetched several
/// times and must give the same elements each time. For a tensor that goes to a buffer
/// ([`SaveOptions::with_inline_below`](crate::archive::SaveOptions::with_inline_below)):
///
/// | | fetched |
/// |---|---|
/// | [`save`](crate::save), [`OArchive`](crate::OArchive), [`to_parts`](crate::to_parts) | once |
/// | making a [`Split`](crate::parts::Split) with checksums, which are sent before the buffers | once |
/// | each time a [`Split`](crate::parts::Split) passes on or writes its buffers | once |
/// | any of these [with dedup](crate::archive::SaveOptions::with_dedup), for the comparison (for a `Split`, when it is made) | once more |
/// | [`to_writer`](crate::to_writer) | once |
/// | [`to_vec`](crate::to_vec), [`append_to`](crate::append_to) | twice if the value has blocks of 1 MiB, else once |
///
/// A tensor that stays inline is fetched when the metadata is written, and again whenever the metadata is written
/// again: in the second pass, which writes the buffers, and if a sequence of numbers turns out to have several
/// types.
///
/// If fetching fails, the save fails. A tensor in a buffer is fetched after everything before it was written.
/// An [`OArchive`](crate::OArchive) over a stream is broken then; a file is left as it was.
///
/// It is written like any other tensor, and read back as an array.
///
/// ```
/// use ndarray::Array2;
/// use serde::Serialize;
/// use tenarc::{IArchive, OArchive, Tensor};
/// use tenarc::tensor::Deferred;
///
/// #[derive(Serialize)]
/// struct Layer<'a> {
///     weight: Tensor<Deferred<'a>>,
/// }
///
/// // Any source of a `Vec`, such as `tensor.flatten_all()?.to_vec1()` in candle.
/// let fetch = || Ok::<_, std::io::Error>(vec![0.5f32; 6]);
/// let layer = Layer { weight: Deferred::new(&[2, 3], fetch).into() };
/// let mut out = OArchive::new(Vec::new())?;
/// out.save(&layer)?;
///
/// # #[derive(serde::Deserialize)] struct Owned { weight: Tensor<Array2<f32>> }
/// let layer: Owned = IArchive::new(&out.finish()?[..])?.load()?;
/// assert_eq!(*layer.weight, Array2::from_elem((2, 3), 0.5));
/// # Ok::<(), tenarc::Error>(())
/// ```
pub struct Deferred<'a> {
    meta: TensorMeta,
    /// The number of bytes, for dtypes of unknown size.
    len: Option<usize>,
    blocks: Box<Blocks<'a>>,
}

/// Passes all bytes, in blocks, to the given function.
type Blocks<'a> = dyn Fn(&mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> + 'a;

impl fmt::Debug for Deferred<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deferred").field("meta", &self.meta).finish_non_exhaustive()
    }
}

impl<'a> Deferred<'a> {
    /// A tensor whose elements are returned by `fetch`, in row-major order.
    ///
    /// Saving it fails if `fetch` fails or returns a number of elements other than that of the shape.
    pub fn new<A: Element, E: fmt::Display>(
        shape: &[usize],
        fetch: impl Fn() -> Result<Vec<A>, E> + 'a,
    ) -> Self {
        let meta = TensorMeta { dtype: A::DTYPE, shape: Shape::from(shape), order: Order::C };
        let (expected, dims) = (meta.element_count(), meta.shape.clone());
        Self::of(meta, None, move |put| {
            let values = fetch().map_err(|error| failed(&error))?;
            if Some(values.len()) != expected {
                let found = values.len();
                return Err(Error::data(format!(
                    "a deferred tensor of shape {dims:?} was fetched with {found} elements"
                )));
            }
            put(&A::into_elements(values).le_bytes())
        })
    }

    /// A tensor whose bytes `write` passes on in blocks of any size: little-endian, in the given order. The
    /// tensor as a whole need never be in memory.
    ///
    /// Saving it fails if `write` fails, if the number of bytes does not match dtype and shape, or if a byte of
    /// a bool tensor is neither 0 nor 1. To return an error of another type from `write`, convert it with
    /// [`serde::ser::Error::custom`].
    ///
    /// ```
    /// use tenarc::{DType, Tensor};
    /// use tenarc::tensor::{Deferred, Order};
    ///
    /// let rows = Deferred::from_blocks(DType::F32, &[1000, 256], Order::C, |put| {
    ///     for row in 0..1000u16 {
    ///         put(&[f32::from(row).to_le_bytes(); 256].concat())?;
    ///     }
    ///     Ok(())
    /// });
    /// let bytes = tenarc::to_vec(&Tensor(rows))?;
    /// # let back: Tensor<ndarray::Array2<f32>> = tenarc::from_slice(&bytes)?;
    /// # assert_eq!(back[[999, 255]], 999.0);
    /// # Ok::<(), tenarc::Error>(())
    /// ```
    pub fn from_blocks(
        dtype: DType,
        shape: &[usize],
        order: Order,
        write: impl Fn(&mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> + 'a,
    ) -> Self {
        let bools = dtype == DType::Bool;
        let write = move |put: &mut dyn FnMut(&[u8]) -> Result<()>| {
            if !bools {
                return write(put);
            }
            // A file with such bytes could not be read.
            write(&mut |block| match block.iter().find(|&&byte| byte > 1) {
                Some(byte) => Err(Error::data(format!(
                    "expected 0 or 1 in a deferred bool tensor, found {byte}"
                ))),
                None => put(block),
            })
        };
        Self::of(TensorMeta::new(dtype, shape, order), None, write)
    }

    /// Sets the total length of the elements in bytes. This is needed for a dtype that this version does not
    /// know, and has no effect otherwise.
    #[must_use]
    pub fn with_byte_len(mut self, bytes: usize) -> Self {
        self.len = Some(bytes);
        self
    }

    fn of(
        meta: TensorMeta,
        len: Option<usize>,
        blocks: impl Fn(&mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> + 'a,
    ) -> Self {
        Self { meta, len, blocks: Box::new(blocks) }
    }
}

#[cold]
fn failed(error: &dyn fmt::Display) -> Error {
    Error::data(format!("cannot fetch a deferred tensor: {error}"))
}

impl ToTensor for Deferred<'_> {
    fn meta(&self) -> TensorMeta {
        self.meta.clone()
    }

    fn as_le_bytes(&self) -> Option<&[u8]> {
        None
    }

    fn write_blocks(&self, put: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        (self.blocks)(put)
    }

    fn byte_len(&self, meta: &TensorMeta) -> Option<usize> {
        match meta.dtype.bits() {
            None => self.len,
            Some(_) => meta.byte_len(),
        }
    }
}

/// Lets a `DynTensor` be used in place of a deferred tensor.
impl From<super::DynTensor> for Deferred<'_> {
    fn from(tensor: super::DynTensor) -> Self {
        let (meta, elements): (_, Elements) = tensor.into_parts();
        let len = Some(elements.byte_len());
        Self::of(meta, len, move |put| put(&elements.le_bytes()))
    }
}
