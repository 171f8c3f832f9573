//! Tensors whose elements are had when they are written.

use std::fmt;

use crate::shape::Shape;

use super::{Order, TensorMeta, ToTensor};
use crate::dtype::DType;
use crate::elements::{Element, Elements};
use crate::error::{Error, Result};

/// A tensor whose dtype and shape are known, and whose elements are fetched when they are written:
/// one that lies on a GPU, in another file, or is computed.
///
/// While a value with many of them is saved, one at a time is in memory. What is fetched must be the same
/// each time; how often that is, for one tensor in a buffer
/// ([`SaveOptions::with_inline_below`](crate::archive::SaveOptions::with_inline_below)):
///
/// | | fetched |
/// |---|---|
/// | [`save`](crate::save), [`OArchive`](crate::OArchive), [`to_parts`](crate::to_parts) | once |
/// | [`Split`](crate::parts::Split): made with checksums, which stand in front of what they check | once |
/// | [`Split`](crate::parts::Split): each time its buffers are handed out or written | once |
/// | any of these, [with dedup](crate::archive::SaveOptions::with_dedup), which compares first (a `Split` as it is made) | once more |
/// | [`to_writer`](crate::to_writer) | once |
/// | [`to_vec`](crate::to_vec), [`append_to`](crate::append_to) | twice if the value has blocks of 1 MiB, else once |
///
/// One that stays inline is fetched when the metadata is made, and again whenever that is compared: as
/// buffers are written, and where a sequence of numbers that goes to a buffer turns out to be of several types.
///
/// Where fetching fails, so does the save; a tensor in a buffer is fetched when what stands before it has
/// been written, so that an [`OArchive`](crate::OArchive) over a stream is broken there, while a file stays as it
/// was.
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
/// // Where a `Vec` comes from: `tensor.flatten_all()?.to_vec1()` in candle, say.
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
    /// The number of bytes, for dtypes whose names do not tell.
    len: Option<usize>,
    blocks: Box<Blocks<'a>>,
}

/// Hands over all bytes in blocks.
type Blocks<'a> = dyn Fn(&mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> + 'a;

impl fmt::Debug for Deferred<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deferred").field("meta", &self.meta).finish_non_exhaustive()
    }
}

impl<'a> Deferred<'a> {
    /// A tensor whose elements `fetch` gives in row-major order.
    ///
    /// Saving it is an error where `fetch` fails, or gives another number of elements than the shape
    /// has.
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

    /// A tensor whose bytes `write` hands over in blocks of any size: little-endian, in the order
    /// given. So not even one tensor need be in memory as a whole.
    ///
    /// Saving it is an error where `write` fails, or hands over more or fewer bytes than dtype and
    /// shape take, or, as bools, others than 0 and 1. Errors of other kinds are brought in by
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
            // Nobody would read them.
            write(&mut |block| match block.iter().find(|&&byte| byte > 1) {
                Some(byte) => {
                    Err(Error::data(format!("a deferred bool is neither 0 nor 1 but {byte}")))
                }
                None => put(block),
            })
        };
        Self::of(TensorMeta::new(dtype, shape, order), None, write)
    }

    /// The number of bytes that the elements take together, for a dtype that this version does not know;
    /// of those it knows, it knows that as well.
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

/// A deferred tensor can stand where one of any element type is wanted.
impl From<super::DynTensor> for Deferred<'_> {
    fn from(tensor: super::DynTensor) -> Self {
        let (meta, elements): (_, Elements) = tensor.into_parts();
        let len = Some(elements.byte_len());
        Self::of(meta, len, move |put| put(&elements.le_bytes()))
    }
}
