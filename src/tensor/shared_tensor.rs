//! A tensor in a buffer with shared ownership.

use std::borrow::Cow;
use std::fmt;

use super::{DynTensor, FromTensor, Order, RawTensor, TensorMeta, ToTensor, dyn_view};
use crate::dtype::DType;
use crate::elements::{self, Element};
use crate::error::Result;
use crate::mem::shared_bytes::SharedBytes;

/// A tensor that uses the elements in an existing buffer without copying them, and keeps that buffer alive. It is
/// loaded with [`Map::load_shared`](crate::Map::load_shared) or
/// [`Parts::load_shared`](crate::parts::Parts::load_shared).
///
/// If it is read in another way, it owns a copy of the elements. A clone of a tensor that shares a buffer shares the
/// buffer too.
///
/// ```
/// use std::sync::Arc;
/// use tenarc::parts::Parts;
/// use tenarc::tensor::{SharedTensor, Tensor};
///
/// let parts = tenarc::to_parts(&Tensor(vec![7u8; 4096]))?;
/// let buffers: Vec<Arc<[u8]>> = parts.buffers().iter().map(|buffer| Arc::from(&buffer[..])).collect();
/// let received = Parts::new(parts.metadata(), buffers.clone())?;
/// let tensor: Tensor<SharedTensor> = received.load_shared()?;
/// assert_eq!(tensor.as_slice::<u8>()?.as_ptr(), buffers[0].as_ptr()); // not copied
/// # Ok::<(), tenarc::Error>(())
/// ```
#[derive(Clone)]
pub struct SharedTensor {
    held: HeldTensor,
}

#[derive(Clone)]
enum HeldTensor {
    Shared(TensorMeta, SharedBytes),
    Own(DynTensor),
}

/// Shows dtype, shape, order and the first 8 elements, in the order in which they are stored.
impl fmt::Debug for SharedTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.held {
            HeldTensor::Shared(meta, bytes) => {
                elements::show_bytes_of_tensor(f, "SharedTensor", meta, bytes)
            }
            HeldTensor::Own(tensor) => {
                elements::show_tensor(f, "SharedTensor", tensor.meta_ref(), tensor.elements())
            }
        }
    }
}

impl SharedTensor {
    /// Makes a tensor of little-endian bytes in the given order.
    ///
    /// # Errors
    /// If the number of bytes does not match dtype and shape, or a byte of a bool tensor is neither 0 nor 1. For
    /// a dtype that this version does not know, any number of bytes is accepted.
    pub fn new(dtype: DType, shape: &[usize], order: Order, bytes: SharedBytes) -> Result<Self> {
        let meta = TensorMeta::new(dtype, shape, order);
        meta.check_len(bytes.len())?;
        Self::of(meta, bytes)
    }

    /// Makes a tensor of bytes. Their number must match dtype and shape.
    fn of(meta: TensorMeta, bytes: SharedBytes) -> Result<Self> {
        dyn_view::check_elements(&meta, &bytes)?;
        Ok(Self { held: HeldTensor::Shared(meta, bytes) })
    }

    pub(super) fn meta_ref(&self) -> &TensorMeta {
        match &self.held {
            HeldTensor::Shared(meta, _) => meta,
            HeldTensor::Own(tensor) => tensor.meta_ref(),
        }
    }

    /// The type of the elements.
    pub fn dtype(&self) -> &DType {
        &self.meta_ref().dtype
    }

    /// The dimensions.
    pub fn shape(&self) -> &[usize] {
        &self.meta_ref().shape
    }

    /// The order of the elements in [`le_bytes`](Self::le_bytes).
    pub fn order(&self) -> Order {
        self.meta_ref().order
    }

    /// Whether the elements are in a shared buffer. Otherwise, the tensor owns a copy of them.
    pub fn is_shared(&self) -> bool {
        matches!(self.held, HeldTensor::Shared(..))
    }

    /// The elements as little-endian bytes. They are copied only if the host is big-endian and the tensor owns its
    /// elements.
    pub fn le_bytes(&self) -> Cow<'_, [u8]> {
        match &self.held {
            HeldTensor::Shared(_, bytes) => Cow::Borrowed(bytes),
            HeldTensor::Own(tensor) => tensor.le_bytes(),
        }
    }

    /// The elements, in the given [`order`](Self::order).
    ///
    /// # Errors
    /// - The elements are not of type `A`.
    /// - A byte of a bool tensor is neither 0 nor 1.
    /// - The buffer is not aligned for `A`. [`to_dyn`](Self::to_dyn) makes a copy instead.
    /// - The elements are in a shared buffer, the host is big-endian, and the elements are longer than a byte.
    ///   [`to_dyn`](Self::to_dyn) makes a copy instead.
    pub fn as_slice<A: Element>(&self) -> Result<&[A]> {
        match &self.held {
            HeldTensor::Own(tensor) => tensor.as_slice(),
            HeldTensor::Shared(meta, bytes) => dyn_view::typed(meta, bytes),
        }
    }

    /// Copies the elements to a new tensor.
    ///
    /// # Errors
    /// If a byte of a bool tensor is neither 0 nor 1.
    pub fn to_dyn(&self) -> Result<DynTensor> {
        match &self.held {
            HeldTensor::Own(tensor) => Ok(tensor.clone()),
            HeldTensor::Shared(meta, bytes) => dyn_view::copied(meta, bytes),
        }
    }
}

impl PartialEq for SharedTensor {
    fn eq(&self, other: &Self) -> bool {
        self.meta_ref() == other.meta_ref() && self.le_bytes() == other.le_bytes()
    }
}

impl ToTensor for SharedTensor {
    fn meta(&self) -> TensorMeta {
        self.meta_ref().clone()
    }

    fn as_le_bytes(&self) -> Option<&[u8]> {
        match &self.held {
            HeldTensor::Shared(_, bytes) => Some(bytes),
            HeldTensor::Own(tensor) => tensor.as_le_bytes(),
        }
    }

    fn write_blocks(&self, put: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        put(&self.le_bytes())
    }

    fn byte_len(&self, meta: &TensorMeta) -> Option<usize> {
        match &self.held {
            HeldTensor::Shared(_, bytes) => Some(bytes.len()),
            HeldTensor::Own(tensor) => tensor.byte_len(meta),
        }
    }
}

impl FromTensor<'_> for SharedTensor {
    fn from_tensor(tensor: RawTensor<'_, '_>) -> Result<Self> {
        match tensor.shared {
            Some(shared) => Self::of(tensor.meta, shared),
            None => Ok(Self { held: HeldTensor::Own(tensor.into_dyn()?) }),
        }
    }
}
