//! [`TensorMeta`], the metadata of a tensor: dtype, shape and order.

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::Shape;

/// The order of the elements of a tensor, in memory and in a document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Order {
    /// Row-major: the last index changes fastest.
    #[default]
    C,
    /// Column-major (Fortran): the first index changes fastest.
    F,
}

impl Order {
    /// The name in documents: `C` or `F`.
    pub fn name(self) -> &'static str {
        match self {
            Self::C => "C",
            Self::F => "F",
        }
    }

    /// The order with this [name](Self::name).
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "C" => Some(Self::C),
            "F" => Some(Self::F),
            _ => None,
        }
    }
}

/// The metadata of a tensor: everything except its elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorMeta {
    /// The type of the elements.
    pub dtype: DType,
    /// The dimensions.
    pub shape: Shape,
    /// The order of the elements.
    pub order: Order,
}

impl TensorMeta {
    /// Metadata with this dtype, shape and order. With fewer than two dimensions both orders are the
    /// same, and the order is set to [`Order::C`].
    ///
    /// ```
    /// use tenarc::DType;
    /// use tenarc::tensor::{Order, TensorMeta};
    ///
    /// let meta = TensorMeta::new(DType::F32, [10, 20], Order::C);
    /// assert_eq!((meta.element_count(), meta.byte_len()), (Some(200), Some(800)));
    /// ```
    #[inline]
    pub fn new(dtype: DType, shape: impl Into<Shape>, order: Order) -> Self {
        let shape = shape.into();
        let order = if shape.len() < 2 { Order::C } else { order };
        Self { dtype, shape, order }
    }

    /// The number of elements. `None` if it is too large for memory: see [`Shape::element_count`].
    #[inline]
    pub fn element_count(&self) -> Option<usize> {
        self.shape.element_count()
    }

    /// The number of bytes that the elements take. `None` if the size of the dtype is unknown, if the
    /// elements do not fill a whole number of bytes, or if the number overflows.
    #[inline]
    pub fn byte_len(&self) -> Option<usize> {
        self.dtype.byte_len(self.element_count()?)
    }

    /// Checks that the elements take `found` bytes. For a dtype of unknown size, any number is accepted.
    pub(crate) fn check_len(&self, found: usize) -> Result<()> {
        let Self { dtype, shape, .. } = self;
        let count = self.element_count().ok_or_else(|| {
            Error::data(format!("a tensor of shape {shape:?} does not fit in memory"))
        })?;
        if dtype.bits().is_none() || dtype.byte_len(count) == Some(found) {
            return Ok(());
        }
        Err(Error::data(format!("{found} bytes do not make a {dtype} tensor of shape {shape:?}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_of_whole_bytes() {
        let meta = |dtype, dims: &[usize]| TensorMeta::new(dtype, dims, Order::F);
        assert_eq!(meta(DType::F64, &[3, 5]).byte_len(), Some(120));
        assert_eq!(meta(DType::F64, &[]).byte_len(), Some(8));
        assert_eq!(meta(DType::F4, &[3, 2]).byte_len(), Some(3));
        assert_eq!(meta(DType::F4, &[3, 3]).byte_len(), None);
        assert_eq!(meta(DType::F64, &[usize::MAX / 4]).byte_len(), None);
        assert_eq!(meta(DType::from_name("posit8"), &[3]).byte_len(), None);
        assert!(meta(DType::from_name("posit8"), &[3]).check_len(17).is_ok());
        assert!(meta(DType::U8, &[3]).check_len(17).is_err());
    }

    #[test]
    fn order_is_told_of_two_dimensions_and_more() {
        let order = |dims: &[usize]| TensorMeta::new(DType::U8, dims, Order::F).order;
        assert_eq!((order(&[]), order(&[3]), order(&[3, 1])), (Order::C, Order::C, Order::F));
    }
}
