//! Converts elements to another dtype.

use half::{bf16, f16};
use tenarc::DType;

use super::{Element, decode, size};
use crate::failure::{Failure, Result};

/// A conversion from one dtype to another. Floats are rounded to the nearest value. Integers must fit in the new
/// dtype. A float can become an integer only if it is a whole number.
#[derive(Clone, Debug)]
pub struct Cast {
    from: DType,
    to: DType,
    size: usize,
    /// The first bytes of an element that continues in the next block.
    carried: Vec<u8>,
}

impl Cast {
    /// # Errors
    /// If elements of `from` cannot be decoded, or elements of `to` cannot be encoded.
    pub fn new(from: &DType, to: &DType) -> Result<Self> {
        let size = size(from).filter(|_| super::is_decoded(from));
        match size {
            Some(size) if is_made(to) => {
                Ok(Self { from: from.clone(), to: to.clone(), size, carried: Vec::new() })
            }
            _ => Err(Failure::new(format!("cannot cast {from} to {to}"))),
        }
    }

    /// Converts the next block, which may have any length.
    ///
    /// # Errors
    /// If an element does not fit in the new dtype.
    pub fn block(&mut self, mut block: &[u8]) -> Result<Vec<u8>> {
        let mut out = Vec::with_capacity(block.len());
        while !self.carried.is_empty() && self.carried.len() < self.size {
            let Some((byte, rest)) = block.split_first() else { return Ok(out) };
            self.carried.push(*byte);
            block = rest;
        }
        if !self.carried.is_empty() {
            let first = std::mem::take(&mut self.carried);
            self.one(&first, &mut out)?;
        }
        let whole = block.chunks_exact(self.size);
        self.carried.extend_from_slice(whole.remainder());
        for bytes in whole {
            self.one(bytes, &mut out)?;
        }
        Ok(out)
    }

    fn one(&self, bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let element = decode(&self.from, bytes);
        element.and_then(|element| put(element, &self.to, out)).ok_or_else(|| {
            let shown = element.map_or_else(|| "?".into(), Element::text);
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

fn put(element: Element, dtype: &DType, out: &mut Vec<u8>) -> Option<()> {
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
        DType::F16 => out.extend(f16::from_f64(real(element)?).to_le_bytes()),
        DType::BF16 => out.extend(bf16::from_f64(real(element)?).to_le_bytes()),
        #[allow(clippy::cast_possible_truncation)]
        DType::F32 => out.extend((real(element)? as f32).to_le_bytes()),
        DType::F64 => out.extend(real(element)?.to_le_bytes()),
        other => out.push(other.encode_f8(real(element)?)?),
    }
    Some(())
}

/// The element as a real number. `None` if it is complex: its imaginary part would be lost.
fn real(element: Element) -> Option<f64> {
    Some(match element {
        #[allow(clippy::cast_precision_loss)]
        Element::Int(value) => value as f64,
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

    #[test]
    fn refuses_what_would_be_another_number() {
        let cast = |from, to, bytes: &[u8]| Cast::new(&from, &to).and_then(|mut c| c.block(bytes));
        assert!(cast(DType::F32, DType::I32, &0.5f32.to_le_bytes()).is_err());
        assert!(cast(DType::I64, DType::U8, &256i64.to_le_bytes()).is_err());
        assert!(cast(DType::C64, DType::F32, &[0; 8]).is_err());
        assert!(cast(DType::U8, DType::Bool, &[2]).is_err());
        assert!(cast(DType::F32, DType::F8E8M0, &[0; 4]).is_err());
        assert_eq!(cast(DType::F32, DType::F8E4M3, &1f32.to_le_bytes()).unwrap(), [0x38]);
        assert_eq!(cast(DType::F32, DType::I8, &(-3f32).to_le_bytes()).unwrap(), [0xfd]);
    }
}
