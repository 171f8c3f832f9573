//! A tensor of burn in memory, as a tensor of tenarc.

use burn_core::tensor::DType;
use burn_store::burn_pack::{Bytes, Tensor as PackTensor};
use tenarc::tensor::{FromTensor, Order, RawTensor, TensorMeta, ToTensor};
use tenarc::{Error, Result};

use crate::dtype::{Elements, from_burn, to_burn};

/// The elements of a tensor, with dtype and shape.
pub struct Held {
    dtype: tenarc::DType,
    shape: Vec<usize>,
    bytes: Bytes,
}

impl Held {
    /// Takes a tensor out of a burnpack. Its elements are not copied if they are in memory.
    pub fn of_pack(tensor: PackTensor) -> Result<Self> {
        let refused =
            || Error::unsupported(format!("burn's dtype {:?} cannot be saved", tensor.dtype));
        let dtype = from_burn(tensor.dtype).ok_or_else(refused)?;
        let shape = tensor.shape.to_vec();
        let bytes = tensor.into_bytes().map_err(|error| Error::data(error.to_string()))?;
        Ok(Self { dtype, shape, bytes })
    }

    pub fn into_pack(self, name: String, id: Option<u64>) -> Result<PackTensor> {
        let dtype = burn_dtype(&self.dtype)?;
        Ok(PackTensor::new(name, dtype, self.shape, id, self.bytes))
    }
}

fn burn_dtype(dtype: &tenarc::DType) -> Result<DType> {
    to_burn(dtype).ok_or_else(|| Error::unsupported(format!("burn has no tensors of {dtype}")))
}

impl ToTensor for Held {
    fn meta(&self) -> TensorMeta {
        TensorMeta::new(self.dtype.clone(), self.shape.as_slice(), Order::C)
    }

    fn as_le_bytes(&self) -> Option<&[u8]> {
        Some(&self.bytes)
    }

    fn write_blocks(&self, put: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        put(&self.bytes)
    }
}

impl FromTensor<'_> for Held {
    fn from_tensor(tensor: RawTensor<'_, '_>) -> Result<Self> {
        let (dtype, shape) = (tensor.meta().dtype.clone(), tensor.meta().shape.to_vec());
        let Elements(bytes) = Elements::from_tensor(tensor)?;
        Ok(Self { dtype, shape, bytes })
    }
}
