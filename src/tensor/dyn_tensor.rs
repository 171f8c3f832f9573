//! A tensor whose dtype is known at run time.

use std::borrow::Cow;
use std::fmt;

use super::raw_tensor::Data;
use super::{FromTensor, Order, RawTensor, TensorMeta, ToTensor};
use crate::dtype::DType;
use crate::elements::{Element, Elements, show_tensor};
use crate::error::{Error, Result};
use crate::wire::payload::read_elements;

/// A tensor of any dtype, shape and order.
///
/// It can hold every tensor that can be stored, also with dtypes that have no Rust type (FP8, FP6, FP4) and
/// with dtype names that this version does not know.
///
/// ```
/// use tenarc::{DType, DynTensor, Tensor};
/// use tenarc::tensor::Order;
///
/// let scales = DynTensor::new(DType::F8E8M0, &[2, 2], Order::C, vec![127, 128, 126, 127])?;
/// let bytes = tenarc::to_vec(&Tensor(scales))?;
/// let back: Tensor<DynTensor> = tenarc::from_slice(&bytes)?;
/// assert_eq!((back.dtype(), back.shape()), (&DType::F8E8M0, &[2, 2][..]));
/// assert!(back.view::<f32>().is_err());
/// # Ok::<(), tenarc::Error>(())
/// ```
#[derive(Clone, PartialEq)]
pub struct DynTensor {
    meta: TensorMeta,
    elements: Elements,
}

/// Shows dtype, shape, order and the first 8 elements, in the order in which they are stored.
impl fmt::Debug for DynTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show_tensor(f, "DynTensor", &self.meta, &self.elements)
    }
}

impl DynTensor {
    /// Makes a tensor from little-endian bytes in the given order.
    ///
    /// # Errors
    /// If the number of bytes does not match dtype and shape, or a byte of a bool tensor is neither 0 nor 1. For
    /// a dtype that this version does not know, any number of bytes is accepted.
    pub fn new(dtype: DType, shape: &[usize], order: Order, bytes: Vec<u8>) -> Result<Self> {
        let elements = Elements::from_le_bytes(&dtype, bytes)?;
        Self::from_parts(TensorMeta::new(dtype, shape, order), elements)
    }

    /// Makes a tensor from elements in the given order, without a copy.
    ///
    /// # Errors
    /// If the number of elements does not match the shape.
    pub fn from_vec<A: Element>(shape: &[usize], order: Order, elements: Vec<A>) -> Result<Self> {
        Self::from_parts(TensorMeta::new(A::DTYPE, shape, order), A::into_elements(elements))
    }

    /// Makes a tensor from little-endian bytes that `read` fills in, directly in the memory of the elements. `read`
    /// is called with parts of that memory, from front to back, and must fill each of them.
    ///
    /// `proven` is the number of bytes that are sure to come, such as the length of a file. Memory beyond it
    /// is only allocated as bytes arrive.
    ///
    /// ```
    /// use std::io::Read;
    /// use tenarc::{DType, DynTensor};
    /// use tenarc::tensor::{Order, TensorMeta};
    ///
    /// let mut file = &[1, 0, 2, 0][..];
    /// let meta = TensorMeta::new(DType::U16, [2], Order::C);
    /// let tensor = DynTensor::read_with(meta, file.len(), |bytes| Ok(file.read_exact(bytes)?))?;
    /// assert_eq!(tensor.as_slice::<u16>()?, [1, 2]);
    /// # Ok::<(), tenarc::Error>(())
    /// ```
    ///
    /// # Errors
    /// - `read` fails.
    /// - The number of bytes does not follow from dtype and shape, or does not fit in memory.
    /// - A byte of a bool tensor is neither 0 nor 1.
    pub fn read_with(
        meta: TensorMeta,
        proven: usize,
        read: impl FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<Self> {
        let Some(len) = meta.byte_len() else {
            let TensorMeta { dtype, shape, .. } = &meta;
            return Err(Error::unsupported(format!(
                "cannot compute the byte length of a {dtype} tensor of shape {shape:?}"
            )));
        };
        let elements = read_elements(&meta.dtype, len, proven, read)?;
        Self::from_parts(meta, elements)
    }

    pub(crate) fn from_parts(meta: TensorMeta, elements: Elements) -> Result<Self> {
        meta.check_len(elements.byte_len())?;
        let meta = TensorMeta::new(meta.dtype, meta.shape, meta.order);
        Ok(Self { meta, elements })
    }

    /// A tensor of one dimension.
    pub(crate) fn of_elements(elements: Elements) -> Self {
        Self { meta: TensorMeta::new(elements.dtype(), [elements.len()], Order::C), elements }
    }

    /// Makes a tensor. The number of values must match the shape.
    #[cfg_attr(not(feature = "ndarray"), allow(dead_code))]
    pub(super) fn of_vec<A: Element>(meta: TensorMeta, values: Vec<A>) -> Self {
        Self { meta, elements: A::into_elements(values) }
    }

    pub(super) fn meta_ref(&self) -> &TensorMeta {
        &self.meta
    }

    pub(crate) fn elements(&self) -> &Elements {
        &self.elements
    }

    pub(crate) fn into_parts(self) -> (TensorMeta, Elements) {
        (self.meta, self.elements)
    }

    /// The type of the elements.
    pub fn dtype(&self) -> &DType {
        &self.meta.dtype
    }

    /// The dimensions.
    pub fn shape(&self) -> &[usize] {
        &self.meta.shape
    }

    /// The order of the elements in [`le_bytes`](Self::le_bytes).
    pub fn order(&self) -> Order {
        self.meta.order
    }

    /// The elements as little-endian bytes. On little-endian hosts this is not a copy.
    pub fn le_bytes(&self) -> Cow<'_, [u8]> {
        self.elements.le_bytes()
    }

    /// The elements, in the given [`order`](Self::order).
    ///
    /// # Errors
    /// If the elements are not of type `A`.
    pub fn as_slice<A: Element>(&self) -> Result<&[A]> {
        A::slice(&self.elements).ok_or_else(|| self.wrong_dtype(&A::DTYPE))
    }

    /// Returns the elements without a copy, in the given [`order`](Self::order).
    ///
    /// # Errors
    /// If the elements are not of type `A`.
    pub fn into_vec<A: Element>(self) -> Result<Vec<A>> {
        if self.meta.dtype != A::DTYPE {
            return Err(self.wrong_dtype(&A::DTYPE));
        }
        self.elements.cast()
    }

    /// The elements converted to `A`, with the rules of [`cast`](mod@super::cast).
    #[cfg_attr(not(feature = "ndarray"), allow(dead_code))]
    pub(super) fn into_vec_cast<A: Element>(self) -> Result<Vec<A>> {
        self.elements.cast()
    }

    /// Converts the tensor to any type that can be read from a tensor.
    ///
    /// # Errors
    /// If the dtype or the number of dimensions does not fit that type.
    pub fn into_tensor<T: for<'de> FromTensor<'de>>(self) -> Result<T> {
        let data = Data::Owned(self.elements);
        let raw = RawTensor { meta: self.meta, stated: true, cast: false, data, shared: None };
        T::from_tensor(raw)
    }

    /// Returns the tensor in row-major order. The elements are only moved if they are in another order.
    ///
    /// # Errors
    /// If elements must be moved but are smaller than a byte (FP6, FP4) or of unknown size.
    pub fn into_row_major(mut self) -> Result<Self> {
        if self.meta.order == Order::F {
            self.elements = self.elements.row_major(&self.meta.shape)?;
            self.meta.order = Order::C;
        }
        Ok(self)
    }

    fn wrong_dtype(&self, expected: &DType) -> Error {
        Error::mismatch(format!(
            "expected a tensor of {expected}, found one of {}",
            self.meta.dtype
        ))
    }
}

impl ToTensor for DynTensor {
    fn meta(&self) -> TensorMeta {
        self.meta.clone()
    }

    fn as_le_bytes(&self) -> Option<&[u8]> {
        self.elements.as_le_bytes()
    }

    fn write_blocks(&self, put: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        put(&self.le_bytes())
    }

    fn byte_len(&self, _: &TensorMeta) -> Option<usize> {
        Some(self.elements.byte_len())
    }
}

impl FromTensor<'_> for DynTensor {
    fn from_tensor(tensor: RawTensor<'_, '_>) -> Result<Self> {
        tensor.into_dyn()
    }
}

impl RawTensor<'_, '_> {
    /// Returns the whole tensor, whatever its dtype is.
    ///
    /// # Errors
    /// If a bit pattern is not a valid element, such as 2 for a bool.
    pub fn into_dyn(self) -> Result<DynTensor> {
        let meta = self.meta.clone();
        DynTensor::from_parts(meta, self.into_elements()?)
    }
}
