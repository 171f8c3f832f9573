//! Support for ndarray: arrays as tensors, views of tensors as arrays, and its slices.

use ndarray::{
    ArcArray, Array, ArrayBase, ArrayD, ArrayView, ArrayViewD, CowArray, Data, DataMut, Dimension,
    IxDyn, ShapeBuilder, ShapeError, SliceInfo, SliceInfoElem, StrideShape,
};

use super::raw_tensor::CompactTensor;
use super::sequences::{BLOCK, write_slice};
use super::variable::Variable;
use super::{
    AxisSlice, DynTensor, DynView, FromTensor, Order, RawTensor, SharedTensor, Slices, TensorMeta,
    ToTensor,
};
use crate::dtype::DType;
use crate::elements::{Element, copied, le_bytes, viewed};
use crate::error::{Error, Result};
use crate::meta::CompactMeta;

impl<A: Element, S: Data<Elem = A>, D: Dimension> ToTensor for ArrayBase<S, D> {
    fn meta(&self) -> TensorMeta {
        TensorMeta { dtype: A::DTYPE, shape: self.shape().into(), order: order(self) }
    }

    fn as_le_bytes(&self) -> Option<&[u8]> {
        match order(self) {
            Order::C => self.as_slice().and_then(le_bytes),
            Order::F => self.as_slice_memory_order().and_then(le_bytes),
        }
    }

    #[inline]
    fn as_block(&self) -> Option<CompactTensor<'_>> {
        let payload = le_bytes(self.as_slice()?)?;
        CompactTensor::new(CompactMeta::of(&A::DTYPE, self.shape())?, payload, false)
    }

    fn write_blocks(&self, put: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        if let Some(values) = self.as_slice_memory_order()
            && (order(self) == Order::F || self.is_standard_layout())
        {
            return write_slice(values, put);
        }
        let mut block: Vec<A> = Vec::with_capacity((BLOCK / size_of::<A>()).min(self.len()));
        for row in self.rows() {
            if let Some(row) = row.as_slice() {
                // Short rows are gathered into blocks.
                if block.len() + row.len() > block.capacity() {
                    write_slice(&block, put)?;
                    block.clear();
                }
                if row.len() > block.capacity() {
                    write_slice(row, put)?;
                } else {
                    block.extend_from_slice(row);
                }
            } else {
                for &value in row {
                    if block.len() == block.capacity() {
                        write_slice(&block, put)?;
                        block.clear();
                    }
                    block.push(value);
                }
            }
        }
        write_slice(&block, put)
    }
}

/// The order in which an array is written: column-major if its memory is, otherwise row-major.
fn order<A, S: Data<Elem = A>, D: Dimension>(array: &ArrayBase<S, D>) -> Order {
    if array.is_standard_layout() || !array.view().reversed_axes().is_standard_layout() {
        Order::C
    } else {
        Order::F
    }
}

/// The shape of a contiguous tensor, with its order, for an array type with `D` dimensions.
fn strided<D: Dimension>(meta: &TensorMeta) -> Result<StrideShape<D>> {
    let wrong = || {
        let (expected, found) = (D::NDIM.unwrap_or_default(), &meta.shape);
        Error::mismatch(format!(
            "expected a tensor of {expected} dimensions, found shape {found:?}"
        ))
    };
    if D::NDIM.is_some_and(|rank| rank != meta.shape.len()) {
        return Err(wrong());
    }
    let mut dim = D::zeros(meta.shape.len());
    dim.slice_mut().copy_from_slice(&meta.shape);
    Ok(dim.set_f(meta.order == Order::F).into())
}

#[cold]
fn misfit(error: &ShapeError) -> Error {
    Error::data(format!("the elements do not fit the shape: {error}"))
}

impl<A: Element, D: Dimension> FromTensor<'_> for Array<A, D> {
    fn from_tensor(tensor: RawTensor<'_, '_>) -> Result<Self> {
        let shape = strided(tensor.meta())?;
        Self::from_shape_vec(shape, tensor.into_vec()?).map_err(|error| misfit(&error))
    }

    #[inline]
    fn from_block(block: CompactTensor<'_>) -> Result<Self> {
        match dims_and_payload::<A, D>(&block) {
            Some((dims, payload)) => {
                Self::from_shape_vec(dims, copied(payload)?).map_err(|error| misfit(&error))
            }
            None => Self::from_tensor(block.general()?),
        }
    }
}

/// The dimensions and the payload, if the tensor fits an array of `A` with `D` dimensions.
#[inline]
fn dims_and_payload<'de, A: Element, D: Dimension>(
    block: &CompactTensor<'de>,
) -> Option<(D, &'de [u8])> {
    let mut dims = D::zeros(D::NDIM?);
    let payload = block.payload_of::<A>(dims.slice_mut())?;
    Some((dims, payload))
}

impl<A: Element, D: Dimension> FromTensor<'_> for ArcArray<A, D> {
    fn from_tensor(tensor: RawTensor<'_, '_>) -> Result<Self> {
        Array::from_tensor(tensor).map(Array::into_shared)
    }
}

impl<'de: 'a, 'a, A: Element, D: Dimension> FromTensor<'de> for ArrayView<'a, A, D> {
    fn from_tensor(tensor: RawTensor<'de, '_>) -> Result<Self> {
        let shape = strided(tensor.meta())?;
        Self::from_shape(shape, tensor.borrow()?).map_err(|error| misfit(&error))
    }

    #[inline]
    fn from_block(block: CompactTensor<'de>) -> Result<Self> {
        match dims_and_payload::<A, D>(&block) {
            Some((dims, payload)) => {
                Self::from_shape(dims, viewed(payload)?).map_err(|error| misfit(&error))
            }
            None => Self::from_tensor(block.general()?),
        }
    }
}

impl<'de: 'a, 'a, A: Element, D: Dimension> FromTensor<'de> for CowArray<'a, A, D> {
    fn from_tensor(tensor: RawTensor<'de, '_>) -> Result<Self> {
        match tensor.try_borrow::<A>() {
            Some(values) => ArrayView::from_shape(strided(tensor.meta())?, values)
                .map(Self::from)
                .map_err(|error| misfit(&error)),
            // The elements cannot be borrowed. They are copied, or this reports what is wrong, such as the dtype.
            None => Array::from_tensor(tensor).map(Self::from),
        }
    }
}

impl DynTensor {
    /// A view of the tensor as an array of `A`.
    ///
    /// # Errors
    /// If the elements are not of type `A`.
    pub fn view<A: Element>(&self) -> Result<ArrayViewD<'_, A>> {
        let shape = strided::<IxDyn>(self.meta_ref())?;
        ArrayViewD::from_shape(shape, self.as_slice()?).map_err(|error| misfit(&error))
    }

    /// Converts the tensor to an array of `A` without a copy.
    ///
    /// # Errors
    /// If the elements are not of type `A`.
    pub fn into_array<A: Element>(self) -> Result<ArrayD<A>> {
        let shape = strided::<IxDyn>(self.meta_ref())?;
        ArrayD::from_shape_vec(shape, self.into_vec()?).map_err(|error| misfit(&error))
    }

    /// Converts the elements to `A`. The conversion must be exact for each of them.
    ///
    /// # Errors
    /// If an element has no exact value in `A`. The error names the first such element.
    pub fn cast<A: Element>(self) -> Result<ArrayD<A>> {
        let shape = strided::<IxDyn>(self.meta_ref())?;
        ArrayD::from_shape_vec(shape, self.into_vec_cast()?).map_err(|error| misfit(&error))
    }
}

impl<A: Element, S: Data<Elem = A>, D: Dimension> From<ArrayBase<S, D>> for DynTensor {
    /// Column-major arrays stay column-major. The elements are copied only if the array does not own them
    /// or is not contiguous.
    fn from(array: ArrayBase<S, D>) -> Self {
        let order = order(&array);
        let owned = if order == Order::C && !array.is_standard_layout() {
            array.as_standard_layout().into_owned()
        } else {
            array.into_owned()
        };
        let meta = TensorMeta { dtype: A::DTYPE, shape: owned.shape().into(), order };
        let count = owned.len();
        let (values, offset) = owned.into_raw_vec_and_offset();
        let start = offset.unwrap_or(0);
        let values = if start == 0 && values.len() == count {
            values
        } else {
            values.get(start..start + count).unwrap_or_default().to_vec()
        };
        Self::of_vec(meta, values)
    }
}

impl<'a> DynView<'a> {
    /// A view as an array of `A`.
    ///
    /// # Errors
    /// The same errors as [`as_slice`](Self::as_slice). [`to_dyn`](Self::to_dyn) makes a copy instead.
    pub fn view<A: Element>(&self) -> Result<ArrayViewD<'a, A>> {
        let shape = strided::<IxDyn>(self.meta_ref())?;
        ArrayViewD::from_shape(shape, self.as_slice()?).map_err(|error| misfit(&error))
    }
}

impl SharedTensor {
    /// A view of the tensor as an array of `A`.
    ///
    /// # Errors
    /// The same errors as [`as_slice`](Self::as_slice). [`to_array`](Self::to_array) makes a copy instead.
    pub fn view<A: Element>(&self) -> Result<ArrayViewD<'_, A>> {
        let shape = strided::<IxDyn>(self.meta_ref())?;
        ArrayViewD::from_shape(shape, self.as_slice()?).map_err(|error| misfit(&error))
    }

    /// Copies the tensor to an array of `A`. The buffer need not be aligned.
    ///
    /// # Errors
    /// If the elements are not of type `A`, or a byte of a bool tensor is neither 0 nor 1.
    pub fn to_array<A: Element>(&self) -> Result<ArrayD<A>> {
        self.to_dyn()?.into_array()
    }
}

impl<A: Element, S: DataMut<Elem = A>, D: Dimension> Variable for ArrayBase<S, D> {
    fn tensor_dtype(&self) -> DType {
        A::DTYPE
    }

    fn tensor_shape(&self) -> &[usize] {
        self.shape()
    }

    fn load_tensor(&mut self, tensor: DynTensor) -> Result<()> {
        // With another shape, `assign` would broadcast or panic.
        if tensor.shape() != self.shape() {
            let (found, expected) = (tensor.shape(), self.shape());
            return Err(Error::mismatch(format!("expected shape {expected:?}, found {found:?}")));
        }
        self.assign(&tensor.into_tensor::<Array<A, D>>()?);
        Ok(())
    }
}

/// The result of ndarray's `s![..]`.
impl<T, In, Out> From<SliceInfo<T, In, Out>> for Slices
where
    T: AsRef<[SliceInfoElem]>,
    In: Dimension,
    Out: Dimension,
{
    fn from(slices: SliceInfo<T, In, Out>) -> Self {
        Self::from(slices.as_ref())
    }
}

impl From<&[SliceInfoElem]> for Slices {
    fn from(slices: &[SliceInfoElem]) -> Self {
        slices.iter().copied().collect()
    }
}

impl From<SliceInfoElem> for AxisSlice {
    fn from(slice: SliceInfoElem) -> Self {
        match slice {
            SliceInfoElem::Slice { start, end, step } => Self::Range { start, end, step },
            SliceInfoElem::Index(index) => Self::Index(index),
            SliceInfoElem::NewAxis => Self::NewAxis,
        }
    }
}
