//! Writes CBOR items. Heads have the shortest form (RFC 8949, section 4.1). Floats keep the width that
//! they have in Rust.

use super::{head, tag};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::io::sink::{Overflow, Sink};
use crate::meta::{Order, TensorMeta};
use crate::shape::Shape;

/// The additional information for an argument of this width after the initial byte.
const ONE_BYTE: u8 = 0x18;
const TWO_BYTES: u8 = 0x19;
const FOUR_BYTES: u8 = 0x1a;
const EIGHT_BYTES: u8 = 0x1b;

impl<O: Overflow> Sink<O> {
    /// Writes a head of major type `major`, with its argument in the fewest bytes.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)]
    pub fn head(&mut self, major: u8, arg: u64) -> Result<()> {
        let major = major << 5;
        if arg < 24 { self.put([major | arg as u8]) } else { self.long_head(major, arg) }
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)]
    fn long_head(&mut self, major: u8, arg: u64) -> Result<()> {
        if arg <= 0xff {
            self.put_headed([major | ONE_BYTE], &[arg as u8])
        } else if arg <= 0xffff {
            self.put_headed([major | TWO_BYTES], &(arg as u16).to_be_bytes())
        } else if arg <= 0xffff_ffff {
            self.put_headed([major | FOUR_BYTES], &(arg as u32).to_be_bytes())
        } else {
            self.put_headed([major | EIGHT_BYTES], &arg.to_be_bytes())
        }
    }

    #[inline(always)]
    pub fn single(&mut self, value: f32) -> Result<()> {
        self.put_headed([head::SINGLE], &value.to_bits().to_be_bytes())
    }

    #[inline(always)]
    pub fn double(&mut self, value: f64) -> Result<()> {
        self.put_headed([head::DOUBLE], &value.to_bits().to_be_bytes())
    }

    #[inline(always)]
    pub fn signed(&mut self, value: i64) -> Result<()> {
        // The argument of a negative integer n is -1 - n, which is !n (RFC 8949, section 3.1).
        if value < 0 {
            self.head(head::NEGATIVE, !value.cast_unsigned())
        } else {
            self.head(head::UNSIGNED, value.cast_unsigned())
        }
    }

    /// Writes an integer of up to 128 bits: as a plain integer if its argument fits in 64 bits, otherwise
    /// as a bignum. The value is `arg`, or `-1 - arg` if `negative`.
    pub fn wide(&mut self, negative: bool, arg: u128) -> Result<()> {
        if let Ok(arg) = u64::try_from(arg) {
            return self.head(if negative { head::NEGATIVE } else { head::UNSIGNED }, arg);
        }
        self.head(head::TAG, if negative { tag::NEGATIVE_BIGNUM } else { tag::BIGNUM })?;
        let bytes = arg.to_be_bytes();
        let zeros = arg.leading_zeros() as usize / 8;
        self.bytes(bytes.get(zeros..).unwrap_or_default())
    }

    #[inline(always)]
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
            None => self.put([major << 5 | head::INDEFINITE]),
        }
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
            return Err(Error::data(format!("RFC 8746 has no typed array of {dtype}")));
        };
        if dtype.is_complex() {
            self.head(head::TAG, tag::COMPLEX)?;
        }
        self.head(head::TAG, typed.into())?;
        self.head(head::BYTES, len as u64)
    }
}
