//! [`TensorMeta`], the metadata of a tensor: dtype, shape and order.

use std::fmt;
use std::str::FromStr;

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

/// The [name](Order::name).
impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Order {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::from_name(name).ok_or_else(|| {
            Error::data(format!(
                "expected C or F as a memory order, found `{}`",
                name.escape_debug()
            ))
        })
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
        let too_large =
            || Error::data(format!("a tensor of shape {shape:?} does not fit in memory"));
        let count = self.element_count().ok_or_else(too_large)?;
        let Some(bits) = dtype.bits() else { return Ok(()) };
        if count == 0 {
            // The dimensions other than 0 must fit in memory, too. Their product does not overflow: they were counted.
            let others: usize = shape.iter().filter(|dim| **dim > 0).product();
            if others as u128 * bits as u128 / 8 > isize::MAX.unsigned_abs() as u128 {
                return Err(too_large());
            }
        }
        if dtype.byte_len(count) == Some(found) {
            return Ok(());
        }
        Err(Error::data(format!("{found} bytes do not make a {dtype} tensor of shape {shape:?}")))
    }
}

/// The metadata of a tensor of the usual form, in registers. In memory, it would be written in small pieces and read in
/// large ones, which takes the processor longer than copying a small tensor.
///
/// The usual form is a little-endian typed array of real numbers in row-major order. It has up to four dimensions, of
/// which none is 0 and each is below 2^32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactMeta {
    /// The tag of the typed array, and the number of dimensions times 256.
    pub head: u16,
    /// The dimensions, each in 32 bits. The first one is the lowest.
    pub dims: u128,
}

impl CompactMeta {
    /// The highest number of dimensions.
    pub const MAX_RANK: u8 = 4;

    /// The metadata of a row-major tensor. `None` if it is not of the usual form.
    #[inline]
    pub fn of(dtype: &DType, shape: &[usize]) -> Option<Self> {
        // Complex numbers have another tag around that of their parts.
        let tag = dtype.typed_array_tag().filter(|_| !dtype.is_complex())?;
        let rank = u8::try_from(shape.len()).ok().filter(|&rank| rank <= Self::MAX_RANK)?;
        let mut dims = 0;
        for (number, &dim) in shape.iter().enumerate() {
            let dim = u32::try_from(dim).ok().filter(|&dim| dim > 0)?;
            dims |= u128::from(dim) << (32 * number);
        }
        Some(Self { head: u16::from_le_bytes([tag, rank]), dims })
    }

    /// The tag of the typed array.
    #[inline]
    pub fn tag(self) -> u8 {
        self.head.to_le_bytes()[0]
    }

    /// The number of dimensions.
    #[inline]
    pub fn rank(self) -> u8 {
        self.head.to_le_bytes()[1]
    }

    /// The dimension of this number.
    #[inline]
    #[allow(clippy::cast_possible_truncation)]
    pub fn dim(self, number: u8) -> u32 {
        (self.dims >> (32 * number)) as u32
    }

    /// The number of bytes that the elements take. `None` if this is not the usual form, or the number is above `u32::MAX`.
    #[inline]
    pub fn byte_len(self) -> Option<u32> {
        if self.rank() > Self::MAX_RANK {
            return None;
        }
        let mut len = DType::size_of_little_endian(self.tag())? as u64;
        for number in 0..self.rank() {
            // No overflow: both are below 2^32.
            len *= u64::from(self.dim(number));
            if len == 0 || len > u32::MAX.into() {
                return None;
            }
        }
        u32::try_from(len).ok()
    }

    /// Writes the dimensions to `dims`. Returns `false` and writes nothing if the tensor has another number of dimensions.
    #[inline]
    pub fn dims_into(self, dims: &mut [usize]) -> bool {
        if dims.len() != usize::from(self.rank()) {
            return false;
        }
        for (number, dim) in (0..).zip(dims) {
            *dim = self.dim(number) as usize;
        }
        true
    }

    /// The same metadata in general form.
    ///
    /// # Errors
    /// If it is not of the usual form.
    #[inline(never)]
    pub fn general(self) -> Result<TensorMeta> {
        let dtype = DType::from_typed_array_tag(self.tag().into());
        let mut dims = [0; Self::MAX_RANK as usize];
        match (dtype, dims.get_mut(..self.rank().into())) {
            (Some((dtype, _)), Some(dims)) => {
                self.dims_into(dims);
                Ok(TensorMeta { dtype, shape: Shape::from(&*dims), order: Order::C })
            }
            _ => Err(Error::mismatch(format!(
                "expected a row-major tensor of at most {} dimensions with the dtype of a typed array, found dtype number {} \
                 and {} dimensions",
                Self::MAX_RANK,
                self.tag(),
                self.rank()
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usual(tag: u8, rank: u8, dims: u128) -> CompactMeta {
        CompactMeta { head: u16::from_le_bytes([tag, rank]), dims }
    }

    #[test]
    fn orders_come_back_from_their_names() {
        for order in [Order::C, Order::F] {
            assert_eq!(order.to_string().parse::<Order>().ok(), Some(order));
        }
        let error = "c".parse::<Order>().unwrap_err();
        assert_eq!(error.to_string(), "expected C or F as a memory order, found `c`");
    }

    #[test]
    fn usual_metadata_in_general_form() {
        let three = usual(85, 3, 2 | 3 << 32 | 5 << 64);
        assert_eq!(three.general().ok(), Some(TensorMeta::new(DType::F32, [2, 3, 5], Order::C)));
        assert_eq!((three.rank(), three.byte_len()), (3, Some(120)));
        assert_eq!(CompactMeta::of(&DType::F32, &[2, 3, 5]), Some(three));
        let mut dims = [0; 3];
        assert!(three.dims_into(&mut dims) && !three.dims_into(&mut dims[..2]));
        assert_eq!(dims, [2, 3, 5]);
        let single = usual(86, 0, 0);
        assert_eq!(single.general().ok(), Some(TensorMeta::new(DType::F64, [], Order::C)));
        assert_eq!(single.byte_len(), Some(8));
    }

    #[test]
    fn other_forms_are_not_usual() {
        let len = |tag, rank, dims| usual(tag, rank, dims).byte_len();
        assert_eq!(len(85, 5, u128::MAX), None);
        assert_eq!(usual(85, 5, 1).general().ok(), None);
        assert_eq!(CompactMeta::of(&DType::F32, &[1; 5]), None);
        assert_eq!(CompactMeta::of(&DType::F32, &[2, 0]), None);
        // With pointers of 32 bits, no dimension is that large.
        if let Ok(large) = usize::try_from(1_u64 << 32) {
            assert_eq!(CompactMeta::of(&DType::F32, &[large]), None);
        }
        assert_eq!(CompactMeta::of(&DType::C64, &[1]), None);
        assert_eq!(CompactMeta::of(&DType::BF16, &[1]), None);
        // Big-endian, reserved, and no typed array.
        assert_eq!((len(81, 1, 1), len(76, 1, 1), len(40, 1, 1)), (None, None, None));
        assert_eq!((len(64, 2, 1), len(64, 1, 0)), (None, None));
        assert_eq!(len(64, 1, u32::MAX.into()), Some(u32::MAX));
        assert_eq!((len(69, 1, u32::MAX.into()), len(64, 4, u128::MAX)), (None, None));
    }

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
