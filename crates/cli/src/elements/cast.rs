//! Converts elements to another dtype.

use std::borrow::Cow;

use tenarc::DType;

use super::quad::{self, Rounding};
use super::{Element, decode, size};
use crate::failure::{Failure, Result};
use crate::text::nearest;

/// A conversion from one dtype to another. Numbers are rounded once, to the nearest float (ties to even). Integers must
/// fit in the new dtype. A float can become an integer only if it is a whole number.
#[derive(Clone, Debug)]
pub struct Cast {
    from: DType,
    to: DType,
    whole: Whole,
}

/// Cuts blocks of any length into whole elements.
#[derive(Clone, Debug)]
pub struct Whole {
    size: usize,
    /// The first bytes of an element that continues in the next block.
    carried: Vec<u8>,
}

impl Whole {
    /// For elements of `size` bytes, which are not 0.
    pub fn new(size: usize) -> Self {
        Self { size, carried: Vec::new() }
    }

    /// Returns the elements that end in the next block.
    pub fn of<'b>(&mut self, block: &'b [u8]) -> Cow<'b, [u8]> {
        let whole = |len: usize| len - len % self.size;
        if self.carried.is_empty() {
            let (now, later) = block.split_at(whole(block.len()));
            self.carried.extend_from_slice(later);
            return Cow::Borrowed(now);
        }
        let mut now = std::mem::take(&mut self.carried);
        now.extend_from_slice(block);
        self.carried = now.split_off(whole(now.len()));
        Cow::Owned(now)
    }
}

impl Cast {
    /// Creates a conversion.
    ///
    /// # Errors
    /// If elements of `from` cannot be decoded, or elements of `to` cannot be encoded.
    pub fn new(from: &DType, to: &DType) -> Result<Self> {
        let size = size(from).filter(|_| super::is_decoded(from));
        match size {
            Some(size) if is_made(to) => {
                Ok(Self { from: from.clone(), to: to.clone(), whole: Whole::new(size) })
            }
            _ => {
                let meant =
                    if to.bits().is_none() { did_you_mean(to.name()) } else { String::new() };
                Err(Failure::new(format!("cannot cast {from} to {to}{meant}")))
            }
        }
    }

    /// Converts the next block, which may have any length.
    ///
    /// # Errors
    /// If an element does not fit in the new dtype.
    pub fn block(&mut self, block: &[u8]) -> Result<Vec<u8>> {
        let mut out = Vec::with_capacity(block.len());
        for bytes in self.whole.of(block).chunks_exact(self.whole.size) {
            self.one(bytes, &mut out)?;
        }
        Ok(out)
    }

    fn one(&self, bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let quad = match (&self.from, bytes.try_into()) {
            (DType::F128, Ok(bytes)) => Some(u128::from_le_bytes(bytes)),
            _ => None,
        };
        let element = match quad {
            Some(bits) if super::is_integer(&self.to) => quad::to_integer(bits).map(Element::Int),
            Some(bits) => Some(Element::Float(quad::to_double(bits, rounding(&self.to)), 64)),
            None => decode(&self.from, bytes),
        };
        element.and_then(|element| put(element, &self.to, out)).ok_or_else(|| {
            let shown = decode(&self.from, bytes).map_or_else(|| "?".into(), Element::text);
            Failure::new(format!("{} cannot hold the {} {shown}", self.to, self.from))
        })
    }
}

fn is_made(dtype: &DType) -> bool {
    super::is_integer(dtype)
        || dtype.encode_f8(0.0).is_some()
        || matches!(
            dtype,
            DType::F16 | DType::BF16 | DType::F32 | DType::F64 | DType::C64 | DType::C128
        )
}

/// Returns the end of the message about the unknown name of a dtype.
pub fn did_you_mean(name: &str) -> String {
    nearest(name, DType::names())
}

/// Returns how a number is rounded to a double before it is converted to a dtype. If the double is rounded again, it is
/// rounded to odd.
fn rounding(to: &DType) -> Rounding {
    match to {
        DType::F64 | DType::C128 => Rounding::Nearest,
        _ => Rounding::Odd,
    }
}

/// Appends an element as one of `dtype`: floats are rounded. `None` if it does not fit.
pub fn put(element: Element, dtype: &DType, out: &mut Vec<u8>) -> Option<()> {
    let real = |element| real(element, rounding(dtype));
    if let DType::C64 | DType::C128 = dtype {
        let (re, im) = match element {
            Element::Complex(re, im, _) => (re, im),
            other => (real(other)?, 0.0),
        };
        let part = if *dtype == DType::C64 { DType::F32 } else { DType::F64 };
        put(Element::Float(re, 64), &part, out)?;
        return put(Element::Float(im, 64), &part, out);
    }
    macro_rules! integer {
        ($type:ty) => {
            out.extend(<$type>::try_from(integer(element)?).ok()?.to_le_bytes())
        };
    }
    match dtype {
        DType::Bool => out.push(u8::try_from(integer(element)?).ok().filter(|&bit| bit < 2)?),
        DType::U8 => integer!(u8),
        DType::U16 => integer!(u16),
        DType::U32 => integer!(u32),
        DType::U64 => integer!(u64),
        DType::I8 => integer!(i8),
        DType::I16 => integer!(i16),
        DType::I32 => integer!(i32),
        DType::I64 => integer!(i64),
        DType::F16 | DType::BF16 => out.extend(dtype.encode_f16(real(element)?)?.to_le_bytes()),
        #[allow(clippy::cast_possible_truncation)]
        DType::F32 => out.extend((real(element)? as f32).to_le_bytes()),
        DType::F64 => out.extend(real(element)?.to_le_bytes()),
        other => out.push(other.encode_f8(real(element)?)?),
    }
    Some(())
}

/// Returns the element as a real number. `None` if it is complex: its imaginary part would be lost.
fn real(element: Element, rounding: Rounding) -> Option<f64> {
    Some(match element {
        Element::Int(value) => {
            let size = value.unsigned_abs();
            let dropped = (u128::BITS - size.leading_zeros()).saturating_sub(f64::MANTISSA_DIGITS);
            // The remaining bits fit in a double, so both the conversion and the multiplication by a power of two are exact.
            #[allow(clippy::cast_precision_loss)]
            let kept = rounding.drop_bits(size, dropped) as f64;
            let size = kept * f64::powi(2.0, dropped.cast_signed());
            if value < 0 { -size } else { size }
        }
        Element::Float(value, _) => value,
        Element::Bool(value) => f64::from(u8::from(value)),
        Element::Complex(..) => return None,
    })
}

fn integer(element: Element) -> Option<i128> {
    match element {
        Element::Bool(value) => Some(value.into()),
        Element::Int(value) => Some(value),
        #[allow(clippy::cast_possible_truncation, clippy::float_cmp)]
        Element::Float(value, _) => {
            // 1e30 fits in 128 bits, and is larger than every integer dtype allows.
            (value.trunc() == value && value.abs() < 1e30).then_some(value as i128)
        }
        Element::Complex(..) => None,
    }
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};

    use super::*;

    #[test]
    fn converts_blocks_of_any_size_alike() {
        let floats: Vec<u8> =
            [1.0f32, -2.5, 65504.0].iter().flat_map(|v| v.to_le_bytes()).collect();
        let expected: Vec<u8> =
            [1.0, -2.5, 65504.0].iter().flat_map(|&v| f16::from_f64(v).to_le_bytes()).collect();
        for size in 1..=12 {
            let mut cast = Cast::new(&DType::F32, &DType::F16).unwrap();
            let blocks = floats.chunks(size).map(|block| cast.block(block).unwrap());
            assert_eq!(blocks.collect::<Vec<_>>().concat(), expected, "{size}");
        }
    }

    fn cast<const N: usize>(from: &DType, to: &DType, bytes: [u8; N]) -> Option<Vec<u8>> {
        Cast::new(from, to).and_then(|mut cast| cast.block(&bytes)).ok()
    }

    #[test]
    fn rounds_once() {
        let bf16 = |bits| Some(bf16::from_bits(bits).to_le_bytes().to_vec());
        let f16 = |value| Some(f16::from_f32(value).to_le_bytes().to_vec());
        let f32 = |value: f32| Some(value.to_le_bytes().to_vec());
        let single = 0x3ca4_8007u32.to_le_bytes();
        assert_eq!(cast(&DType::F32, &DType::BF16, single), bf16(0x3ca5));
        // Each number is slightly above the middle between two floats. If it were first rounded to a wider float, the
        // difference from the middle would be lost, and the result would be wrong.
        let above = 1.0 + f64::powi(2.0, -11) + f64::powi(2.0, -40);
        assert_eq!(cast(&DType::F64, &DType::F16, above.to_le_bytes()), f16(1.0 + 1.0 / 1024.0));
        let above = (1i64 << 62) + (1 << 38) + 1;
        let expected = f32::powi(2.0, 62) + f32::powi(2.0, 39);
        assert_eq!(cast(&DType::I64, &DType::F32, above.to_le_bytes()), f32(expected));
        assert_eq!(cast(&DType::I64, &DType::F32, (-above).to_le_bytes()), f32(-expected));
        assert_eq!(
            cast(&DType::I64, &DType::C64, above.to_le_bytes()).unwrap()[..4],
            f32(expected).unwrap()
        );
        let most = u64::MAX.to_le_bytes();
        let double = Some(f64::powi(2.0, 64).to_le_bytes().to_vec());
        assert_eq!(cast(&DType::U64, &DType::F64, most), double);
        let above = (0x3fffu128 << 112 | 1 << 88 | 1).to_le_bytes();
        assert_eq!(cast(&DType::F128, &DType::F32, above), f32(1.0 + f32::EPSILON));
        let above = (0x3fffu128 << 112 | 1 << 59 | 1).to_le_bytes();
        let double = Some((1.0 + f64::EPSILON).to_le_bytes().to_vec());
        assert_eq!(cast(&DType::F128, &DType::F64, above), double);
    }

    #[test]
    fn takes_whole_numbers_of_quads_exactly() {
        let quad = |exponent: u128, fraction: u128| (exponent + 16383) << 112 | fraction;
        let to = |to: DType, bits: u128| cast(&DType::F128, &to, bits.to_le_bytes());
        let number = (1u64 << 63) + 1;
        assert_eq!(to(DType::U64, quad(63, 1 << 49)), Some(number.to_le_bytes().to_vec()));
        assert_eq!(to(DType::U64, quad(63, 1 << 48)), None);
        assert_eq!(to(DType::I8, quad(1, 0) | 1 << 127), Some(vec![0xfe]));
        assert_eq!(to(DType::I8, 0), Some(vec![0]));
        assert_eq!(to(DType::I8, 1), None);
        assert_eq!(to(DType::I8, 0x7fff << 112), None);
    }

    #[test]
    fn refuses_what_would_be_another_number() {
        assert!(cast(&DType::F32, &DType::I32, 0.5f32.to_le_bytes()).is_none());
        assert!(cast(&DType::I64, &DType::U8, 256i64.to_le_bytes()).is_none());
        assert!(cast(&DType::C64, &DType::F32, [0; 8]).is_none());
        assert!(cast(&DType::U8, &DType::Bool, [2]).is_none());
        assert!(cast(&DType::F32, &DType::F8E8M0, [0; 4]).is_none());
        assert_eq!(cast(&DType::F32, &DType::F8E4M3, 1f32.to_le_bytes()).unwrap(), [0x38]);
        assert_eq!(cast(&DType::F32, &DType::I8, (-3f32).to_le_bytes()).unwrap(), [0xfd]);
    }
}
