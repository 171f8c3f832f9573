//! Rounds doubles to floats of 16 bits. `from_f64` of the crate half drops the lower 32 bits of a double first, so it
//! rounds some of them the wrong way.

use half::{bf16, f16};

use crate::dtype::DType;

impl DType {
    /// The bits of the float of 16 bits that is nearest to `value`. If two are equally near, it is the one whose last
    /// bit is 0. If `value` is too large, it is infinity. `None` if this is neither [`DType::F16`] nor
    /// [`DType::BF16`].
    ///
    /// ```
    /// use tenarc::DType;
    ///
    /// assert_eq!(DType::F16.encode_f16(1.0), Some(0x3c00));
    /// assert_eq!(DType::BF16.encode_f16(1.0), Some(0x3f80));
    /// assert_eq!(DType::F16.encode_f16(-1e9), Some(0xfc00)); // negative infinity
    /// assert_eq!(DType::F32.encode_f16(1.0), None);
    /// ```
    pub fn encode_f16(&self, value: f64) -> Option<u16> {
        match self {
            Self::F16 => Some(nearest_f16(value).to_bits()),
            Self::BF16 => Some(nearest_bf16(value).to_bits()),
            _ => None,
        }
    }
}

/// The `f16` that is nearest to `value`.
pub fn nearest_f16(value: f64) -> f16 {
    f16::from_f32(odd(value))
}

/// The `bf16` that is nearest to `value`.
pub fn nearest_bf16(value: f64) -> bf16 {
    bf16::from_f32(odd(value))
}

/// Rounds to odd: a value between two floats becomes the one whose last bit is 1. It can be rounded again to at least
/// two bits fewer, and the result is the same as if the double had been rounded once. See Boldo and Melquiond,
/// "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008.
#[allow(clippy::cast_possible_truncation, clippy::float_cmp)]
fn odd(value: f64) -> f32 {
    let nearest = value as f32;
    if f64::from(nearest) == value || value.is_nan() {
        return nearest;
    }
    let is_beyond = f64::from(nearest).abs() > value.abs();
    let towards_zero = nearest.to_bits() - u32::from(is_beyond);
    f32::from_bits(towards_zero | 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks all floats of one sign, from zero to infinity, and all doubles around the middle of two neighbours.
    fn check(infinity: u16, encode: impl Fn(f64) -> u16, decode: impl Fn(u16) -> f64) {
        for low in 0..infinity {
            let (small, high) = (decode(low), low + 1);
            assert_eq!(encode(small), low);
            assert_eq!(encode(small.next_up()), low);
            // Values are rounded as if the exponents went on above the largest one.
            let large = if high < infinity { decode(high) } else { 2.0 * small - decode(low - 1) };
            let middle = small + (large - small) / 2.0;
            let even = if low % 2 == 0 { low } else { high };
            for (value, expected) in [
                (middle, even),
                (middle.next_down(), low),
                (middle.next_up(), high),
                // The same distance from the middle in a single.
                (middle - (large - small) / 8192.0, low),
                (middle + (large - small) / 8192.0, high),
                (large.next_down(), high),
            ] {
                assert_eq!(encode(value), expected, "{value:e}");
                assert_eq!(encode(-value), expected | 0x8000, "{:e}", -value);
            }
        }
        assert_eq!(encode(f64::INFINITY), infinity);
        assert_eq!(encode(f64::MAX), infinity);
        assert_eq!(encode(f64::MIN_POSITIVE), 0);
        assert_eq!(encode(-f64::MIN_POSITIVE), 0x8000);
        assert!(encode(f64::NAN) & 0x7fff > infinity);
    }

    // Too slow under Miri, and there is nothing unsafe in it.
    #[test]
    #[cfg_attr(miri, ignore)]
    fn rounds_to_the_nearest_f16() {
        check(0x7c00, |v| nearest_f16(v).to_bits(), |bits| f16::from_bits(bits).to_f64());
    }

    #[test]
    #[cfg_attr(miri, ignore)]
    fn rounds_to_the_nearest_bf16() {
        check(0x7f80, |v| nearest_bf16(v).to_bits(), |bits| bf16::from_bits(bits).to_f64());
        assert_eq!(DType::BF16.encode_f16(f32::from_bits(0x3ca4_8007).into()), Some(0x3ca5));
    }
}
