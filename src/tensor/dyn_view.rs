//! A view of a tensor whose dtype is known at run time.

use std::fmt;

use super::{DynTensor, FromTensor, Order, RawTensor, TensorMeta, ToTensor};
use crate::dtype::DType;
use crate::elements::{self, Element, Elements};
use crate::error::{Error, Result};

/// A view of a tensor of any dtype, shape and order. It borrows its elements from the input, and [`DynTensor`] owns
/// them.
///
/// ```
/// use std::collections::BTreeMap;
///
/// use tenarc::tensor::DynView;
/// use tenarc::{Archive, DType, OArchive, Tensor};
///
/// let mut out = OArchive::new(Vec::new())?;
/// out.save(&BTreeMap::from([("weight", Tensor(ndarray::Array2::<f64>::eye(64)))]))?;
/// let bytes = out.finish()?;
///
/// let archive = Archive::new(bytes)?; // Or a `Map` of a file.
/// let weight: Tensor<DynView> = archive.view_at("weight")?;
/// assert_eq!((weight.dtype(), weight.shape()), (&DType::F64, &[64, 64][..]));
/// assert_eq!(weight.bytes().len(), 64 * 64 * 8);
/// assert!(weight.view::<f32>().is_err());
/// # Ok::<(), tenarc::Error>(())
/// ```
#[derive(Clone, PartialEq)]
pub struct DynView<'a> {
    meta: TensorMeta,
    bytes: &'a [u8],
}

/// Shows dtype, shape, order and the first 8 elements, in the order in which they are stored.
impl fmt::Debug for DynView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        elements::show_bytes_of_tensor(f, "DynView", &self.meta, self.bytes)
    }
}

impl<'a> DynView<'a> {
    /// Makes a view of little-endian bytes in the given order.
    ///
    /// # Errors
    /// If the number of bytes does not match dtype and shape, or a byte of a bool tensor is neither 0 nor 1. For
    /// a dtype that this version does not know, any number of bytes is accepted.
    pub fn new(dtype: DType, shape: &[usize], order: Order, bytes: &'a [u8]) -> Result<Self> {
        let meta = TensorMeta::new(dtype, shape, order);
        meta.check_len(bytes.len())?;
        Self::of(meta, bytes)
    }

    /// Makes a view of bytes. Their number must match dtype and shape.
    fn of(meta: TensorMeta, bytes: &'a [u8]) -> Result<Self> {
        check_elements(&meta, bytes)?;
        Ok(Self { meta, bytes })
    }

    #[cfg_attr(not(feature = "ndarray"), allow(dead_code))]
    pub(super) fn meta_ref(&self) -> &TensorMeta {
        &self.meta
    }

    /// The type of the elements.
    pub fn dtype(&self) -> &DType {
        &self.meta.dtype
    }

    /// The dimensions.
    pub fn shape(&self) -> &[usize] {
        &self.meta.shape
    }

    /// The order of the elements in [`bytes`](Self::bytes).
    pub fn order(&self) -> Order {
        self.meta.order
    }

    /// The elements as little-endian bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The elements, in the given [`order`](Self::order).
    ///
    /// # Errors
    /// - The elements are not of type `A`.
    /// - The bytes are not aligned for `A`. [`to_dyn`](Self::to_dyn) makes a copy instead.
    /// - The host is big-endian and the elements are longer than a byte. [`to_dyn`](Self::to_dyn) makes a copy instead.
    pub fn as_slice<A: Element>(&self) -> Result<&'a [A]> {
        typed(&self.meta, self.bytes)
    }

    /// Copies the elements to a new tensor.
    ///
    /// # Errors
    /// There are none at present.
    pub fn to_dyn(&self) -> Result<DynTensor> {
        copied(&self.meta, self.bytes)
    }
}

/// Checks that the bytes of a tensor are valid elements. Only bytes of bools can be invalid.
pub fn check_elements(meta: &TensorMeta, bytes: &[u8]) -> Result<()> {
    match meta.dtype {
        DType::Bool => elements::viewed::<bool>(bytes).map(drop),
        _ => Ok(()),
    }
}

/// The elements of a tensor, borrowed from its bytes.
pub fn typed<'a, A: Element>(meta: &TensorMeta, bytes: &'a [u8]) -> Result<&'a [A]> {
    if meta.dtype != A::DTYPE {
        let (found, expected) = (&meta.dtype, A::DTYPE);
        return Err(Error::mismatch(format!(
            "expected a tensor of {expected}, found one of {found}"
        )));
    }
    elements::viewed(bytes)
}

/// Copies these bytes to a new tensor.
pub fn copied(meta: &TensorMeta, bytes: &[u8]) -> Result<DynTensor> {
    DynTensor::from_parts(meta.clone(), Elements::copied_from_le(&meta.dtype, bytes)?)
}

impl ToTensor for DynView<'_> {
    fn meta(&self) -> TensorMeta {
        self.meta.clone()
    }

    fn as_le_bytes(&self) -> Option<&[u8]> {
        Some(self.bytes)
    }

    fn write_blocks(&self, put: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        put(self.bytes)
    }

    fn byte_len(&self, _: &TensorMeta) -> Option<usize> {
        Some(self.bytes.len())
    }
}

impl<'de: 'a, 'a> FromTensor<'de> for DynView<'a> {
    fn from_tensor(tensor: RawTensor<'de, '_>) -> Result<Self> {
        let bytes = tensor.borrow_bytes()?;
        Self::of(tensor.meta, bytes)
    }
}
