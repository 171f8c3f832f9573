//! Which arrays are tensors: ndarray's, `Vec`, boxed slices, slices and arrays.

use ndarray::{
    ArcArray, Array, ArrayBase, ArrayView, CowArray, Data, Dimension, Ix, IxDyn, RawData,
    ShapeBuilder, StrideShape,
};

use super::{FromTensor, Order, RawTensor, TensorMeta, ToTensor};
use crate::dtype::Element;
use crate::elements::{copied, le_bytes};
use crate::error::{Error, Result};
use crate::mem;

/// Bytes gathered before they are handed on, where elements do not lie as they are written.
const BLOCK: usize = 64 << 10;

impl<A: Element, S: RawData<Elem = A> + Data, D: Dimension> ToTensor for ArrayBase<S, D> {
    fn meta(&self) -> TensorMeta {
        let shape = IxDyn(self.shape());
        TensorMeta { dtype: A::DTYPE, shape, order: order(self) }
    }

    fn as_le_bytes(&self) -> Option<&[u8]> {
        match order(self) {
            Order::C => self.as_slice().and_then(le_bytes),
            Order::F => self.as_slice_memory_order().and_then(le_bytes),
        }
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
                // Rows are copied together, as many as fit.
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

/// C, unless the array lies column-major in memory; strided arrays are written row-major.
fn order<A, S: Data<Elem = A>, D: Dimension>(array: &ArrayBase<S, D>) -> Order {
    if array.is_standard_layout() || !array.view().reversed_axes().is_standard_layout() {
        Order::C
    } else {
        Order::F
    }
}

fn write_slice<A: Element>(values: &[A], put: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
    if let Some(bytes) = le_bytes(values) {
        return put(bytes);
    }
    for block in values.chunks((BLOCK / size_of::<A>()).max(1)) {
        let mut bytes = A::memory(block).to_vec();
        mem::swap_words(&mut bytes, A::DTYPE.word());
        put(&bytes)?;
    }
    Ok(())
}

fn strided<D: Dimension>(meta: &TensorMeta) -> Result<StrideShape<D>> {
    let dim = D::from_dimension(&meta.shape).ok_or_else(|| {
        let expected = D::NDIM.unwrap_or_default();
        let shape = meta.shape.slice();
        Error::data(format!("expected a tensor of {expected} dimensions, found shape {shape:?}"))
    })?;
    Ok(dim.set_f(meta.order == Order::F).into_strided())
}

/// ndarray's `ShapeBuilder` gives a `Shape`, its constructors take a `StrideShape`.
trait IntoStrided<D> {
    fn into_strided(self) -> StrideShape<D>;
}

impl<D: Dimension> IntoStrided<D> for ndarray::Shape<D> {
    fn into_strided(self) -> StrideShape<D> {
        self.into()
    }
}

fn misfit(error: &ndarray::ShapeError) -> Error {
    Error::data(format!("elements do not fit the shape: {error}"))
}

impl<A: Element, D: Dimension> FromTensor<'_> for Array<A, D> {
    fn from_tensor(tensor: RawTensor<'_, '_>) -> Result<Self> {
        let shape = strided(tensor.meta())?;
        Self::from_shape_vec(shape, tensor.into_vec()?).map_err(|error| misfit(&error))
    }
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
}

impl<'de: 'a, 'a, A: Element, D: Dimension> FromTensor<'de> for CowArray<'a, A, D> {
    fn from_tensor(tensor: RawTensor<'de, '_>) -> Result<Self> {
        match tensor.try_borrow::<A>() {
            Some(values) => ArrayView::from_shape(strided(tensor.meta())?, values)
                .map(Self::from)
                .map_err(|error| misfit(&error)),
            // Whatever cannot be borrowed is copied, or is an error there too.
            None => Array::from_tensor(tensor).map(Self::from),
        }
    }
}

macro_rules! slices {
    ($([$($generics:tt)*] $type:ty),*) => {$(
        impl<A: Element $($generics)*> ToTensor for $type {
            fn meta(&self) -> TensorMeta {
                TensorMeta { dtype: A::DTYPE, shape: IxDyn(&[self.len()]), order: Order::C }
            }

            fn as_le_bytes(&self) -> Option<&[u8]> {
                le_bytes(self)
            }

            fn write_blocks(&self, put: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
                write_slice(self, put)
            }
        }
    )*};
}

slices!([] Vec<A>, [] Box<[A]>, [] [A], [, const N: usize] [A; N]);

fn one_dimension(meta: &TensorMeta) -> Result<Ix> {
    match ndarray::Dimension::slice(&meta.shape) {
        &[len] => Ok(len),
        shape => {
            Err(Error::data(format!("expected a tensor of 1 dimension, found shape {shape:?}")))
        }
    }
}

impl<A: Element> FromTensor<'_> for Vec<A> {
    fn from_tensor(tensor: RawTensor<'_, '_>) -> Result<Self> {
        one_dimension(tensor.meta())?;
        tensor.into_vec()
    }
}

impl<A: Element> FromTensor<'_> for Box<[A]> {
    fn from_tensor(tensor: RawTensor<'_, '_>) -> Result<Self> {
        Vec::from_tensor(tensor).map(Vec::into_boxed_slice)
    }
}

impl<A: Element, const N: usize> FromTensor<'_> for [A; N] {
    fn from_tensor(tensor: RawTensor<'_, '_>) -> Result<Self> {
        let found = one_dimension(tensor.meta())?;
        let wrong = || Error::data(format!("expected a tensor of {N} elements, found {found}"));
        if found != N {
            return Err(wrong());
        }
        match tensor.data {
            // On the way to an array, a vector would be one copy too many.
            super::Data::Borrowed(bytes) if tensor.meta.dtype == A::DTYPE => {
                match A::viewed(bytes).and_then(|values| <[A; N]>::try_from(values).ok()) {
                    Some(array) if cfg!(target_endian = "little") => Ok(array),
                    _ => copied(bytes)?.try_into().map_err(|_| wrong()),
                }
            }
            _ => tensor.into_vec()?.try_into().map_err(|_| wrong()),
        }
    }
}

impl<T: ToTensor + ?Sized> ToTensor for &T {
    fn meta(&self) -> TensorMeta {
        (**self).meta()
    }

    fn as_le_bytes(&self) -> Option<&[u8]> {
        (**self).as_le_bytes()
    }

    fn write_blocks(&self, put: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        (**self).write_blocks(put)
    }

    fn byte_len(&self, meta: &TensorMeta) -> Option<usize> {
        (**self).byte_len(meta)
    }
}
