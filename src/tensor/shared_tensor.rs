//! A tensor in a buffer that others may hold too.

use std::borrow::Cow;
use std::fmt;

use super::{DynTensor, FromTensor, Order, RawTensor, TensorMeta, ToTensor, dyn_view};
use crate::dtype::DType;
use crate::elements::{self, Element};
use crate::error::Result;
use crate::mem::shared_bytes::SharedBytes;

/// A tensor that keeps the buffer alive which holds its elements, and is had without copying them: see
/// [`Map::load_shared`](crate::Map::load_shared) and
/// [`Parts::load_shared`](crate::parts::Parts::load_shared).
///
/// Read from anything else, it holds elements of its own. Cloning one that shares a buffer counts a
/// reference.
#[derive(Clone)]
pub struct SharedTensor {
    held: Held,
}

#[derive(Clone)]
enum Held {
    Shared(TensorMeta, SharedBytes),
    Own(DynTensor),
}

/// Shows dtype, shape, order and the first 8 elements, in the order in which they are stored.
impl fmt::Debug for SharedTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.held {
            Held::Shared(meta, bytes) => {
                elements::show_bytes_of_tensor(f, "SharedTensor", meta, bytes)
            }
            Held::Own(tensor) => {
                elements::show_tensor(f, "SharedTensor", tensor.meta_ref(), tensor.elements())
            }
        }
    }
}

impl SharedTensor {
    /// A tensor of little-endian bytes in the order given.
    ///
    /// # Errors
    /// Where the number of bytes does not fit dtype and shape, or a byte of a bool tensor is neither 0 nor 1.
    pub fn new(dtype: DType, shape: &[usize], order: Order, bytes: SharedBytes) -> Result<Self> {
        let meta = TensorMeta::new(dtype, shape, order);
        meta.check_len(bytes.len())?;
        Self::of(meta, bytes)
    }

    /// The tensor, whose bytes fit dtype and shape.
    fn of(meta: TensorMeta, bytes: SharedBytes) -> Result<Self> {
        dyn_view::check_elements(&meta, &bytes)?;
        Ok(Self { held: Held::Shared(meta, bytes) })
    }

    pub(super) fn meta_ref(&self) -> &TensorMeta {
        match &self.held {
            Held::Shared(meta, _) => meta,
            Held::Own(tensor) => tensor.meta_ref(),
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

    /// How the elements follow each other in [`le_bytes`](Self::le_bytes).
    pub fn order(&self) -> Order {
        self.meta_ref().order
    }

    /// Whether the elements lie in a buffer that was shared, and not in memory of their own.
    pub fn is_shared(&self) -> bool {
        matches!(self.held, Held::Shared(..))
    }

    /// The elements as little-endian bytes; a copy only of elements of its own on big-endian hosts.
    pub fn le_bytes(&self) -> Cow<'_, [u8]> {
        match &self.held {
            Held::Shared(_, bytes) => Cow::Borrowed(bytes),
            Held::Own(tensor) => tensor.le_bytes(),
        }
    }

    /// The elements, in the order that [`order`](Self::order) tells.
    ///
    /// # Errors
    /// Where they are not of type `A`, a byte of a bool tensor is neither 0 nor 1, or the buffer is not
    /// aligned for `A` or, on big-endian hosts, of the other byte order; then
    /// [`to_dyn`](Self::to_dyn) copies.
    pub fn as_slice<A: Element>(&self) -> Result<&[A]> {
        match &self.held {
            Held::Own(tensor) => tensor.as_slice(),
            Held::Shared(meta, bytes) => dyn_view::typed(meta, bytes),
        }
    }

    /// A copy that holds elements of its own.
    ///
    /// # Errors
    /// Where a byte of a bool tensor is neither 0 nor 1.
    pub fn to_dyn(&self) -> Result<DynTensor> {
        match &self.held {
            Held::Own(tensor) => Ok(tensor.clone()),
            Held::Shared(meta, bytes) => dyn_view::copied(meta, bytes),
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
            Held::Shared(_, bytes) => Some(bytes),
            Held::Own(tensor) => tensor.as_le_bytes(),
        }
    }

    fn write_blocks(&self, put: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        put(&self.le_bytes())
    }

    fn byte_len(&self, meta: &TensorMeta) -> Option<usize> {
        match &self.held {
            Held::Shared(_, bytes) => Some(bytes.len()),
            Held::Own(tensor) => tensor.byte_len(meta),
        }
    }
}

impl FromTensor<'_> for SharedTensor {
    fn from_tensor(tensor: RawTensor<'_, '_>) -> Result<Self> {
        match tensor.shared {
            Some(shared) => Self::of(tensor.meta, shared),
            None => Ok(Self { held: Held::Own(tensor.into_dyn()?) }),
        }
    }
}
