//! Writes CBOR items. Heads have the shortest form (RFC 8949, section 4.1). Floats keep the width that
//! they have in Rust.

use super::{head, tag};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::io::sink::{Overflow, Sink};
use crate::mem::Short;
use crate::meta::{CompactMeta, Order, TensorMeta};
use crate::shape::Shape;

/// The additional information for an argument of this width after the initial byte.
const ONE_BYTE: u8 = 0x18;

/// A number or bool as it is written.
#[derive(Clone, Copy, Debug)]
pub enum Plain {
    Bool(bool),
    /// An integer: major type and argument.
    Head(u8, u64),
    /// The bits of an `f32`.
    Single(u32),
    /// The bits of an `f64`.
    Double(u64),
}

impl Plain {
    #[inline]
    pub fn short(self) -> Short {
        match self {
            Self::Bool(value) => Short::new(bool(value), []),
            Self::Head(major, arg) => Short::head(major << 5, arg),
            Self::Single(bits) => Short::new(head::SINGLE, bits.to_be_bytes()),
            Self::Double(bits) => Short::new(head::DOUBLE, bits.to_be_bytes()),
        }
    }
}

/// The one byte of a bool.
#[inline]
pub fn bool(value: bool) -> u8 {
    // The bytes of the two differ by one, so this takes no branch.
    head::FALSE + u8::from(value)
}

/// Major type and argument of an integer.
#[inline]
pub fn signed(value: i64) -> (u8, u64) {
    // The argument of a negative integer n is -1 - n, which is !n (RFC 8949, section 3.1).
    if value < 0 {
        (head::NEGATIVE, !value.cast_unsigned())
    } else {
        (head::UNSIGNED, value.cast_unsigned())
    }
}

/// Whether an integer of 128 bits is negative, and its argument: see [`Sink::wide_integer`].
pub fn wide_signed(value: i128) -> (bool, u128) {
    (value < 0, if value < 0 { !value } else { value }.cast_unsigned())
}

/// The bytes before the payload of a tensor, in a register: the first byte is the lowest one, and the highest byte is
/// their number. In memory, they would be written in small pieces and read in large ones, which takes the processor
/// longer than copying a small tensor.
#[derive(Clone, Copy, Debug)]
pub struct ArrayHead(u128);

impl ArrayHead {
    /// The largest number of bytes. A tensor with one dimension takes at most 14 if it has fewer than 4 GiB.
    const MAX: usize = 15;

    /// The levels of nesting of the tensor: the tag, the array, and the shape or the inner tag.
    pub const LEVELS: usize = 3;

    /// The same bytes as [`Sink::tensor_head`] writes, for a tensor of at least one dimension whose payload has `len`
    /// bytes. `None` if there are too many.
    #[inline]
    pub fn of(meta: CompactMeta, len: u32) -> Option<Self> {
        let rank = meta.rank();
        if !(1..=CompactMeta::MAX_RANK).contains(&rank) {
            return None;
        }
        // The tag for row-major tensors, an array of two, and the array of dimensions.
        let start = u32::from_le_bytes([0xd8, 40, 0x82, head::ARRAY << 5 | rank]);
        let mut head = (start.into(), 4);
        for number in 0..rank {
            push(&mut head, head::UNSIGNED, meta.dim(number))?;
        }
        push(&mut head, head::TAG, meta.tag().into())?;
        push(&mut head, head::BYTES, len)?;
        let (bytes, len) = head;
        Some(Self(bytes | (len as u128) << (8 * Self::MAX)))
    }

    /// The number that [`Sink::array_head`] takes.
    #[inline]
    pub fn packed(self) -> u128 {
        self.0
    }
}

/// Adds the head of an item, in the shortest form, to bytes and their number. `None` if there are too many.
#[inline]
fn push((bytes, len): &mut (u128, usize), major: u8, arg: u32) -> Option<()> {
    let major = major << 5;
    let (head, width) = if arg < 24 {
        (u64::from(major) | u64::from(arg), 0)
    } else {
        // The additional information 24 to 26 means 1, 2 or 4 bytes.
        let class = u8::from(arg > 0xff) + u8::from(arg > 0xffff);
        let width = 1usize << class;
        // Big-endian: the highest byte of the argument comes first.
        let arg = (arg << (32 - 8 * width)).swap_bytes();
        (u64::from(major | (ONE_BYTE + class)) | u64::from(arg) << 8, width)
    };
    if *len + 1 + width > ArrayHead::MAX {
        return None;
    }
    *bytes |= u128::from(head) << (8 * *len);
    *len += 1 + width;
    Some(())
}

impl<O: Overflow + ?Sized, C> Sink<O, C> {
    /// Writes a head of major type `major`, with its argument in the fewest bytes.
    #[inline]
    #[allow(clippy::cast_possible_truncation)]
    pub fn head(&mut self, major: u8, arg: u64) -> Result<()> {
        let major = major << 5;
        if arg < 24 { self.put([major | arg as u8]) } else { self.long_head(major, arg) }
    }

    #[inline(never)]
    fn long_head(&mut self, major: u8, arg: u64) -> Result<()> {
        self.short(Short::head(major, arg))
    }

    #[inline]
    pub fn short(&mut self, short: Short) -> Result<()> {
        if self.fit_short([], &[], short) { Ok(()) } else { self.last_short(short) }
    }

    /// Writes a short item if the buffer might be too small for it. Takes it by value: a reference to it would force the
    /// caller to keep it in memory.
    #[cold]
    #[inline(never)]
    fn last_short(&mut self, short: Short) -> Result<()> {
        let (bytes, len) = short.bytes();
        self.put_slice(bytes.get(..len).unwrap_or_default())
    }

    #[inline]
    pub fn single(&mut self, value: f32) -> Result<()> {
        self.short(Plain::Single(value.to_bits()).short())
    }

    #[inline]
    pub fn double(&mut self, value: f64) -> Result<()> {
        self.short(Plain::Double(value.to_bits()).short())
    }

    /// Writes a text and a number or bool after it, such as a field of a struct.
    // Always: 7 % of encoding a mesh as rows.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)]
    pub fn keyed(&mut self, key: &str, number: Plain) -> Result<()> {
        let bytes = key.as_bytes();
        let initial = head::TEXT << 5;
        let number = number.short();
        let done = match bytes.len() {
            len @ 0..24 => self.fit_short([initial | len as u8], bytes, number),
            len @ 24..256 => self.fit_short([initial | ONE_BYTE, len as u8], bytes, number),
            _ => false,
        };
        if done { Ok(()) } else { self.last_keyed(key, number) }
    }

    #[cold]
    #[inline(never)]
    fn last_keyed(&mut self, key: &str, number: Short) -> Result<()> {
        self.text(key)?;
        self.last_short(number)
    }

    #[inline]
    pub fn signed(&mut self, value: i64) -> Result<()> {
        let (major, arg) = signed(value);
        self.head(major, arg)
    }

    /// Writes an integer of up to 128 bits: as a plain integer if its argument fits in 64 bits, otherwise
    /// as a bignum. The value is `arg`, or `-1 - arg` if `negative`.
    pub fn wide_integer(&mut self, negative: bool, arg: u128) -> Result<()> {
        if let Ok(arg) = u64::try_from(arg) {
            return self.head(if negative { head::NEGATIVE } else { head::UNSIGNED }, arg);
        }
        self.head(head::TAG, if negative { tag::NEGATIVE_BIGNUM } else { tag::BIGNUM })?;
        let bytes = arg.to_be_bytes();
        let zeros = arg.leading_zeros() as usize / 8;
        self.bytes(bytes.get(zeros..).unwrap_or_default())
    }

    #[inline]
    pub fn text(&mut self, text: &str) -> Result<()> {
        let bytes = text.as_bytes();
        let initial = head::TEXT << 5;
        #[allow(clippy::cast_possible_truncation)]
        match bytes.len() {
            len @ 0..24 => return self.put_headed([initial | len as u8], bytes),
            len @ 24..256 => return self.put_headed([initial | ONE_BYTE, len as u8], bytes),
            _ => {}
        }
        self.head(head::TEXT, bytes.len() as u64)?;
        self.put_slice(bytes)
    }

    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.head(head::BYTES, bytes.len() as u64)?;
        self.put_slice(bytes)
    }

    /// Writes the head of an array or map of `len` items or entries, or of indefinite length.
    #[inline]
    pub fn container(&mut self, major: u8, len: Option<usize>) -> Result<()> {
        match len {
            Some(len) => self.head(major, len as u64),
            None => {
                self.overflow_mut().unknown_length();
                self.put([major << 5 | head::INDEFINITE])
            }
        }
    }

    /// Writes an [`ArrayHead`], which is [packed](ArrayHead::packed).
    #[inline]
    pub fn array_head(&mut self, packed: u128) -> Result<()> {
        let bytes = packed.to_le_bytes();
        self.put_first(bytes, usize::from(bytes[ArrayHead::MAX]))
    }

    /// Writes the part of a tensor before its payload. The caller must write the `len` bytes of the
    /// payload next.
    pub fn tensor_head(
        &mut self,
        dtype: &DType,
        shape: &Shape,
        order: Order,
        len: usize,
    ) -> Result<()> {
        // RFC 8746, section 3.1.1, does not allow a dimension of 0.
        match dtype.typed_array_tag() {
            Some(typed) if !shape.contains(&0) => {
                let multi = match order {
                    Order::C => tag::ROW_MAJOR,
                    Order::F => tag::COLUMN_MAJOR,
                };
                self.head(head::TAG, multi)?;
                self.head(head::ARRAY, 2)?;
                self.shape(shape)?;
                if dtype.is_complex() {
                    self.head(head::TAG, tag::COMPLEX)?;
                }
                self.head(head::TAG, typed.into())?;
            }
            _ => {
                self.head(head::TAG, tag::TENSOR)?;
                self.head(head::ARRAY, 4)?;
                self.text(dtype.name())?;
                self.shape(shape)?;
                self.text(order.name())?;
            }
        }
        self.head(head::BYTES, len as u64)
    }

    /// Writes a tensor whose payload is the buffer of this number.
    pub fn tensor_reference(&mut self, meta: &TensorMeta, number: u64) -> Result<()> {
        self.head(head::TAG, tag::BUFFER)?;
        self.head(head::ARRAY, 4)?;
        self.text(meta.dtype.name())?;
        self.shape(&meta.shape)?;
        self.text(meta.order.name())?;
        self.head(head::UNSIGNED, number)
    }

    /// Writes a sequence of numbers whose payload is the buffer of this number.
    pub fn numbers_reference(&mut self, dtype: &DType, number: u64) -> Result<()> {
        self.head(head::TAG, tag::BUFFER)?;
        self.head(head::ARRAY, 2)?;
        self.text(dtype.name())?;
        self.head(head::UNSIGNED, number)
    }

    /// Writes a byte string whose content is the buffer of this number.
    pub fn bytes_reference(&mut self, number: u64) -> Result<()> {
        self.head(head::TAG, tag::BUFFER)?;
        self.head(head::ARRAY, 1)?;
        self.head(head::UNSIGNED, number)
    }

    fn shape(&mut self, dims: &[usize]) -> Result<()> {
        self.head(head::ARRAY, dims.len() as u64)?;
        dims.iter().try_for_each(|&dim| self.head(head::UNSIGNED, dim as u64))
    }

    /// Writes the head of a typed array of `len` bytes without a shape.
    pub fn typed_array_head(&mut self, dtype: &DType, len: usize) -> Result<()> {
        let Some(typed) = dtype.typed_array_tag() else {
            return Err(Error::unsupported(format!("RFC 8746 has no typed array of {dtype}")));
        };
        if dtype.is_complex() {
            self.head(head::TAG, tag::COMPLEX)?;
        }
        self.head(head::TAG, typed.into())?;
        self.head(head::BYTES, len as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::sink::Memory;

    #[test]
    fn a_head_in_one_piece_is_the_same() {
        let shapes: [&[usize]; 9] = [
            &[1],
            &[23, 24],
            &[255, 256, 0xffff],
            &[0x1_0000, 0xffff_fffe, usize::MAX / 3, usize::MAX],
            &[],
            &[0],
            &[3, 0],
            &[1; 5],
            &[7; 4],
        ];
        let mut found = 0;
        for dtype in [DType::U8, DType::F16, DType::F64, DType::BF16, DType::C64] {
            for shape in shapes {
                for len in [0, 23, 0xff_ffff, u32::MAX] {
                    let mut sink = Sink::new(Vec::new(), Memory::growing());
                    sink.tensor_head(&dtype, &Shape::from(shape), Order::C, len as usize).unwrap();
                    let expected = sink.into_parts().0;
                    let usual = CompactMeta::of(&dtype, shape);
                    let Some(head) = usual.and_then(|meta| ArrayHead::of(meta, len)) else {
                        let unusual = expected.len() > ArrayHead::MAX
                            || !(1..=4).contains(&shape.len())
                            || shape.contains(&0)
                            || shape.iter().any(|&dim| dim > u32::MAX as usize)
                            || !matches!(dtype, DType::U8 | DType::F16 | DType::F64);
                        assert!(unusual, "{dtype} {shape:?}");
                        continue;
                    };
                    found += 1;
                    let mut packed = Sink::new(Vec::new(), Memory::growing());
                    packed.array_head(head.packed()).unwrap();
                    assert_eq!(packed.into_parts().0, expected, "{dtype} {shape:?}");
                }
            }
        }
        assert!(found > 20, "{found}");
    }
}
