//! A tensor whose dtype is known at run time.

use std::borrow::Cow;

use ndarray::{ArrayBase, ArrayD, ArrayViewD, Data, Dimension, IxDyn, ShapeBuilder};

use super::{FromTensor, Order, RawTensor, TensorMeta, ToTensor};
use crate::dtype::{DType, Element};
use crate::elements::Elements;
use crate::elements::Numbers;
use crate::error::{Error, Result};
use crate::meta::element_count;
use crate::wire::payload::read_elements;

/// A tensor of any dtype, shape and order.
///
/// Holds what documents can hold, also of dtypes without a Rust type (FP8, FP6, FP4) and of names
/// this version does not know.
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
#[derive(Clone, Debug, PartialEq)]
pub struct DynTensor {
    meta: TensorMeta,
    elements: Elements,
}

impl DynTensor {
    /// A tensor of little-endian bytes in the order given.
    ///
    /// # Errors
    /// Where the number of bytes does not fit dtype and shape (of a dtype this version does not
    /// know, any number fits), or a byte of a bool tensor is neither 0 nor 1.
    pub fn new(dtype: DType, shape: &[usize], order: Order, bytes: Vec<u8>) -> Result<Self> {
        let elements = Elements::from_le_bytes(&dtype, bytes)?;
        Self::from_parts(TensorMeta { dtype, shape: IxDyn(shape), order }, elements)
    }

    /// A tensor of elements in the order given, without a copy.
    ///
    /// # Errors
    /// Where the number of elements is not that of the shape.
    pub fn from_vec<A: Element>(shape: &[usize], order: Order, elements: Vec<A>) -> Result<Self> {
        let meta = TensorMeta { dtype: A::DTYPE, shape: IxDyn(shape), order };
        Self::from_parts(meta, A::into_elements(elements))
    }

    /// A tensor whose little-endian bytes `read` gives, straight into the memory of the elements. It is
    /// called with pieces of that memory, from front to back, and must fill each.
    ///
    /// Of memory, `proven` bytes at most are taken ahead of what was read; give the number of bytes that are
    /// sure to come, such as the length of a file.
    ///
    /// ```
    /// use std::io::Read;
    /// use ndarray::IxDyn;
    /// use tenarc::{DType, DynTensor};
    /// use tenarc::tensor::{Order, TensorMeta};
    ///
    /// let mut file = &[1, 0, 2, 0][..];
    /// let meta = TensorMeta { dtype: DType::U16, shape: IxDyn(&[2]), order: Order::C };
    /// let tensor = DynTensor::read_with(meta, file.len(), |bytes| Ok(file.read_exact(bytes)?))?;
    /// assert_eq!(tensor.view::<u16>()?.as_slice(), Some(&[1, 2][..]));
    /// # Ok::<(), tenarc::Error>(())
    /// ```
    ///
    /// # Errors
    /// Where `read` fails, dtype and shape do not tell how many bytes there are, or these do not fit memory;
    /// and where a byte of a bool tensor is neither 0 nor 1.
    pub fn read_with(
        meta: TensorMeta,
        proven: usize,
        read: impl FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<Self> {
        let count = element_count(meta.shape.slice());
        let Some(len) = count.and_then(|count| meta.dtype.byte_len(count)) else {
            let (dtype, shape) = (&meta.dtype, meta.shape.slice());
            return Err(Error::data(format!("a {dtype} tensor of shape {shape:?} has no length")));
        };
        let elements = read_elements(&meta.dtype, len, proven, read)?;
        Self::from_parts(meta, elements)
    }

    pub(crate) fn from_parts(mut meta: TensorMeta, elements: Elements) -> Result<Self> {
        if meta.shape.ndim() < 2 {
            meta.order = Order::C;
        }
        let shape = meta.shape.slice();
        let dtype = &meta.dtype;
        let count = element_count(shape)
            .ok_or_else(|| Error::data(format!("shape {shape:?} does not fit memory")))?;
        if dtype.bits().is_some() && dtype.byte_len(count) != Some(elements.byte_len()) {
            let found = elements.byte_len();
            let what = format!("{found} bytes do not make a {dtype} tensor of shape {shape:?}");
            return Err(Error::data(what));
        }
        Ok(Self { meta, elements })
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
        self.meta.shape.slice()
    }

    /// How the elements follow each other in [`le_bytes`](Self::le_bytes).
    pub fn order(&self) -> Order {
        self.meta.order
    }

    /// The elements as little-endian bytes; a copy only on big-endian hosts.
    pub fn le_bytes(&self) -> Cow<'_, [u8]> {
        self.elements.le_bytes()
    }

    /// A view as an array of `A`.
    ///
    /// # Errors
    /// Where the elements are not of type `A`.
    pub fn view<A: Element>(&self) -> Result<ArrayViewD<'_, A>> {
        let values = A::slice(&self.elements).ok_or_else(|| self.wrong_dtype(&A::DTYPE))?;
        let shape = self.meta.shape.clone().set_f(self.meta.order == Order::F);
        ArrayViewD::from_shape(shape, values).map_err(|error| Error::data(error.to_string()))
    }

    /// The array of `A`, without a copy.
    ///
    /// # Errors
    /// Where the elements are not of type `A`.
    pub fn into_array<A: Element>(self) -> Result<ArrayD<A>> {
        if self.meta.dtype != A::DTYPE {
            return Err(self.wrong_dtype(&A::DTYPE));
        }
        self.cast()
    }

    /// The array with its elements converted to `A`, if that holds each of them exactly.
    ///
    /// # Errors
    /// Where an element is no exact `A`: the first such element is named.
    pub fn cast<A: Element>(self) -> Result<ArrayD<A>> {
        let shape = self.meta.shape.set_f(self.meta.order == Order::F);
        ArrayD::from_shape_vec(shape, self.elements.cast()?)
            .map_err(|error| Error::data(error.to_string()))
    }

    /// The tensor with its elements in row-major order; moved only where they are not.
    ///
    /// # Errors
    /// Where elements are packed into less than bytes (FP6, FP4), or of unknown size.
    pub fn into_row_major(mut self) -> Result<Self> {
        if self.meta.order == Order::F {
            self.elements = self.elements.row_major(&self.meta.shape)?;
            self.meta.order = Order::C;
        }
        Ok(self)
    }

    fn wrong_dtype(&self, expected: &DType) -> Error {
        Error::data(format!("expected a tensor of {expected}, found one of {}", self.meta.dtype))
    }
}

impl<A: Element, S: Data<Elem = A>, D: Dimension> From<ArrayBase<S, D>> for DynTensor {
    /// Column-major arrays stay so; a copy is made only of what is not owned or not contiguous.
    fn from(array: ArrayBase<S, D>) -> Self {
        let mut meta = array.meta();
        if meta.shape.ndim() < 2 {
            meta.order = Order::C;
        }
        let owned = if meta.order == Order::C && !array.is_standard_layout() {
            array.as_standard_layout().into_owned()
        } else {
            array.into_owned()
        };
        let (values, offset) = owned.into_raw_vec_and_offset();
        let count = element_count(meta.shape.slice()).unwrap_or(0);
        let start = offset.unwrap_or(0);
        let values = if start == 0 && values.len() == count {
            values
        } else {
            values.get(start..start + count).unwrap_or_default().to_vec()
        };
        Self { meta, elements: A::into_elements(values) }
    }
}

impl From<Numbers> for DynTensor {
    /// A tensor of one dimension.
    fn from(numbers: Numbers) -> Self {
        let (dtype, shape) = (numbers.dtype(), IxDyn(&[numbers.len()]));
        Self { meta: TensorMeta { dtype, shape, order: Order::C }, elements: numbers.0 }
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
