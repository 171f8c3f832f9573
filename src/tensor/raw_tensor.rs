//! A tensor while it is being decoded.

use std::fmt;

use super::{Order, TensorMeta};
use crate::dtype::DType;
use crate::elements::{self, Element, Elements};
use crate::error::{Error, Result};
use crate::mem;
use crate::mem::shared_bytes::SharedBytes;
use crate::meta::CompactMeta;
use crate::number::Number;

/// A decoded tensor, from which [`FromTensor`](super::FromTensor) makes an array.
pub struct RawTensor<'de, 'a> {
    pub(super) meta: TensorMeta,
    /// Whether the document states the dtype. If not, the elements were plain numbers, and may be read as
    /// any dtype that can hold them.
    pub(super) stated: bool,
    pub(super) cast: bool,
    pub(super) data: Data<'de, 'a>,
    /// Keeps the bytes alive, if they are a whole buffer that can be shared.
    pub(super) shared: Option<SharedBytes>,
}

/// A tensor of the [usual form](CompactMeta), whose payload borrows from the input. The payload has the length that dtype
/// and shape state.
#[derive(Debug)]
pub struct CompactTensor<'de> {
    meta: CompactMeta,
    payload: &'de [u8],
    cast: bool,
}

impl<'de> CompactTensor<'de> {
    /// `None` if the payload has not the length that the metadata states.
    #[inline]
    pub(super) fn new(meta: CompactMeta, payload: &'de [u8], cast: bool) -> Option<Self> {
        let len = meta.byte_len().and_then(|len| usize::try_from(len).ok());
        (len == Some(payload.len())).then_some(Self { meta, payload, cast })
    }

    #[inline]
    pub(super) fn meta(&self) -> CompactMeta {
        self.meta
    }

    #[inline]
    pub(super) fn payload(&self) -> &'de [u8] {
        self.payload
    }

    /// The length of the payload, which is below 2^32: see [`CompactMeta::byte_len`].
    #[inline]
    #[allow(clippy::cast_possible_truncation)]
    pub(super) fn len(&self) -> u32 {
        self.payload.len() as u32
    }

    /// Writes the dimensions to `dims`, and returns the payload. `None` if the tensor has another dtype than `A` or
    /// another number of dimensions.
    #[inline]
    pub(super) fn payload_of<A: Element>(&self, dims: &mut [usize]) -> Option<&'de [u8]> {
        // The tag of complex numbers is that of their parts.
        let tag = A::DTYPE.typed_array_tag().filter(|_| !A::DTYPE.is_complex())?;
        (tag == self.meta.tag() && self.meta.dims_into(dims)).then_some(self.payload)
    }

    /// The same tensor in general form.
    #[inline(never)]
    pub(super) fn general(self) -> Result<RawTensor<'de, 'de>> {
        let Self { meta, payload, cast } = self;
        let (meta, data) = (meta.general()?, Data::Borrowed(payload));
        Ok(RawTensor { meta, stated: true, cast, data, shared: None })
    }
}

pub enum Data<'de, 'a> {
    /// Little-endian bytes that borrow from the input.
    Borrowed(&'de [u8]),
    /// Little-endian bytes in temporary memory.
    Copied(&'a [u8]),
    /// Elements in their own memory.
    Owned(Elements),
    /// Numbers from a human-readable format, without a stated dtype. Floats are rounded to the dtype that
    /// is read. `meta` has a dtype that can hold all of them.
    Numbers(Vec<Number>),
}

impl fmt::Debug for RawTensor<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawTensor").field("meta", &self.meta).finish_non_exhaustive()
    }
}

impl<'a> RawTensor<'_, 'a> {
    /// A tensor of little-endian bytes. Their number must match dtype and shape.
    pub(crate) fn of_bytes(meta: TensorMeta, bytes: &'a [u8]) -> Self {
        Self { meta, stated: true, cast: false, data: Data::Copied(bytes), shared: None }
    }
}

impl<'de> RawTensor<'de, '_> {
    /// Dtype, shape and order.
    pub fn meta(&self) -> &TensorMeta {
        &self.meta
    }

    /// Returns the elements, in the order given by [`meta`](Self::meta).
    ///
    /// # Errors
    /// If the stored dtype is not that of `A`; under [`cast`](mod@super::cast), if an element does not fit `A`.
    pub fn into_vec<A: Element>(self) -> Result<Vec<A>> {
        if self.meta.dtype != A::DTYPE && !matches!(self.data, Data::Numbers(_)) {
            if !self.cast && self.stated {
                return Err(self.wrong_dtype(&A::DTYPE));
            }
            return self.into_elements()?.cast();
        }
        match self.data {
            Data::Borrowed(bytes) | Data::Copied(bytes) => elements::copied(bytes),
            Data::Owned(elements) => elements.cast(),
            Data::Numbers(numbers) => Elements::from_plain(&A::DTYPE, &numbers)?.cast(),
        }
    }

    /// Returns a view of the elements in the input, in the order given by [`meta`](Self::meta).
    ///
    /// # Errors
    /// If the stored dtype is not that of `A`, or the elements cannot be borrowed: they are not aligned, are
    /// stored in chunks or in another byte order, or come from a reader.
    pub fn borrow<A: Element>(&self) -> Result<&'de [A]> {
        if self.meta.dtype != A::DTYPE {
            return Err(self.wrong_dtype(&A::DTYPE));
        }
        elements::viewed(self.borrow_bytes()?)
    }

    /// Returns the little-endian bytes of the elements in the input, in the order given by [`meta`](Self::meta).
    ///
    /// # Errors
    /// If the bytes cannot be borrowed: they come from a reader, or are stored in chunks or in big-endian order.
    pub fn borrow_bytes(&self) -> Result<&'de [u8]> {
        match self.data {
            Data::Borrowed(bytes) => Ok(bytes),
            _ => Err(Error::unsupported(
                "the tensor cannot be borrowed: it comes from a reader, in chunks, or in another \
                 byte order; read it into an owned array or a CowArray",
            )),
        }
    }

    /// Like [`borrow`](Self::borrow), without a reason for the failure.
    #[cfg_attr(not(feature = "ndarray"), allow(dead_code))]
    pub(super) fn try_borrow<A: Element>(&self) -> Option<&'de [A]> {
        match self.data {
            Data::Borrowed(bytes) if self.meta.dtype == A::DTYPE => {
                let plain = A::DTYPE.word() == 1 || cfg!(target_endian = "little");
                plain.then(|| mem::checked::viewed::<A>(bytes)).flatten()
            }
            _ => None,
        }
    }

    /// Returns the tensor in row-major order. The elements are only moved if they are in another order.
    ///
    /// # Errors
    /// The same errors as [`DynTensor::into_row_major`](super::DynTensor::into_row_major).
    pub fn into_row_major(mut self) -> Result<Self> {
        if self.meta.order == Order::F {
            let (meta, stated, cast) = (self.meta.clone(), self.stated, self.cast);
            let elements = self.into_elements()?.row_major(&meta.shape)?;
            let meta = TensorMeta { order: Order::C, ..meta };
            self = Self { meta, stated, cast, data: Data::Owned(elements), shared: None };
        }
        Ok(self)
    }

    pub(super) fn into_elements(self) -> Result<Elements> {
        match self.data {
            Data::Borrowed(bytes) | Data::Copied(bytes) => {
                Elements::copied_from_le(&self.meta.dtype, bytes)
            }
            Data::Owned(elements) => Ok(elements),
            Data::Numbers(numbers) => Elements::holding(&numbers).ok_or_else(different_kinds),
        }
    }

    #[cold]
    fn wrong_dtype(&self, expected: &DType) -> Error {
        let (found, shape) = (&self.meta.dtype, &self.meta.shape);
        Error::mismatch(format!(
            "expected a tensor of {expected}, found one of {found} and shape {shape:?}"
        ))
    }
}

#[cold]
pub fn different_kinds() -> Error {
    Error::data("the elements of a tensor must have one type, found different ones")
}
