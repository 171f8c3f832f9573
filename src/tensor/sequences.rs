//! Vectors, boxed slices, slices and arrays as tensors of one dimension.

use super::raw_tensor::{CompactTensor, Data};
use super::{FromTensor, Order, RawTensor, TensorMeta, ToTensor};
use crate::elements::{Element, copied, le_bytes};
use crate::error::{Error, Result};
use crate::mem;
use crate::meta::CompactMeta;

/// The size of the blocks, in bytes, in which elements are gathered if they cannot be written directly.
pub const BLOCK: usize = 64 << 10;

pub fn write_slice<A: Element>(
    values: &[A],
    put: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    if let Some(bytes) = le_bytes(values) {
        return put(bytes);
    }
    for block in values.chunks((BLOCK / size_of::<A>()).max(1)) {
        let mut bytes = mem::bytes_of(block).to_vec();
        mem::swap_words(&mut bytes, A::DTYPE.word());
        put(&bytes)?;
    }
    Ok(())
}

macro_rules! slices {
    ($([$($generics:tt)*] $type:ty),*) => {$(
        impl<A: Element $($generics)*> ToTensor for $type {
            fn meta(&self) -> TensorMeta {
                TensorMeta { dtype: A::DTYPE, shape: [self.len()].into(), order: Order::C }
            }

            fn as_le_bytes(&self) -> Option<&[u8]> {
                le_bytes(self)
            }

            #[inline]
            fn as_block(&self) -> Option<CompactTensor<'_>> {
                CompactTensor::new(CompactMeta::of(&A::DTYPE, &[self.len()])?, le_bytes(self)?, false)
            }

            fn write_blocks(&self, put: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
                write_slice(self, put)
            }
        }
    )*};
}

slices!([] Vec<A>, [] Box<[A]>, [] [A], [, const N: usize] [A; N]);

fn one_dimension(meta: &TensorMeta) -> Result<usize> {
    match *meta.shape {
        [len] => Ok(len),
        _ => {
            let shape = &meta.shape;
            Err(Error::mismatch(format!("expected a tensor of 1 dimension, found shape {shape:?}")))
        }
    }
}

impl<A: Element> FromTensor<'_> for Vec<A> {
    fn from_tensor(tensor: RawTensor<'_, '_>) -> Result<Self> {
        one_dimension(tensor.meta())?;
        tensor.into_vec()
    }

    #[inline]
    fn from_block(block: CompactTensor<'_>) -> Result<Self> {
        match block.payload_of::<A>(&mut [0]) {
            Some(payload) => copied(payload),
            None => Self::from_tensor(block.general()?),
        }
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
        let wrong = || Error::mismatch(format!("expected a tensor of {N} elements, found {found}"));
        if found != N {
            return Err(wrong());
        }
        match tensor.data {
            // Avoids the extra copy into a vector.
            Data::Borrowed(bytes) if tensor.meta.dtype == A::DTYPE => {
                match mem::checked::viewed::<A>(bytes)
                    .and_then(|values| <[A; N]>::try_from(values).ok())
                {
                    Some(array) if cfg!(target_endian = "little") => Ok(array),
                    _ => copied(bytes)?.try_into().map_err(|_| wrong()),
                }
            }
            _ => tensor.into_vec()?.try_into().map_err(|_| wrong()),
        }
    }
}
