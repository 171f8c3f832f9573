//! The numbers of a document, before they are converted to the type that is asked for.

use super::head::{self, Head};
use crate::number::{double_to_single, float_to_int, int_to_float};
use half::f16;

/// The value of one item that is a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Numeric {
    /// An integer, in the form that heads and bignums use: the value is `arg`, or `-1 - arg` if
    /// `negative`.
    Int {
        negative: bool,
        arg: u128,
    },
    Single(f32),
    Double(f64),
}

impl Numeric {
    pub fn from_head(head: Head) -> Option<Self> {
        match head.initial {
            head::HALF => Some(Self::Single(half_to_single(head.arg))),
            #[allow(clippy::cast_possible_truncation)]
            head::SINGLE => Some(Self::Single(f32::from_bits(head.arg as u32))),
            head::DOUBLE => Some(Self::Double(f64::from_bits(head.arg))),
            _ => match head.major() {
                head::UNSIGNED => Some(Self::Int { negative: false, arg: head.arg.into() }),
                head::NEGATIVE => Some(Self::Int { negative: true, arg: head.arg.into() }),
                _ => None,
            },
        }
    }

    /// The decimal digits of an integer, with a minus sign if it is negative. `None` for a float.
    pub fn integer_digits(self) -> Option<String> {
        let Self::Int { negative, arg } = self else { return None };
        Some(match (negative, arg.checked_add(1)) {
            (false, _) => arg.to_string(),
            (true, Some(magnitude)) => format!("-{magnitude}"),
            // -2^128.
            (true, None) => "-340282366920938463463374607431768211456".to_owned(),
        })
    }

    /// The number as an integer. `None` if the number is not an integer or does not fit in `i128`.
    pub fn as_int(self) -> Option<i128> {
        match self {
            Self::Int { negative, arg } => {
                let value = i128::try_from(arg).ok()?;
                Some(if negative { !value } else { value })
            }
            Self::Single(value) => float_to_int(value.into()),
            Self::Double(value) => float_to_int(value),
        }
    }

    pub fn as_unsigned(self) -> Option<u128> {
        match self {
            Self::Int { negative: false, arg } => Some(arg),
            other => u128::try_from(other.as_int()?).ok(),
        }
    }

    pub fn as_double(self) -> Option<f64> {
        match self {
            Self::Int { .. } => int_to_float(self.as_int()?),
            Self::Single(value) => Some(single_to_double(value)),
            Self::Double(value) => Some(value),
        }
    }

    /// The number as an `f32`, if that is exact.
    pub fn as_single(self) -> Option<f32> {
        match self {
            Self::Single(value) => Some(value),
            other => double_to_single(other.as_double()?),
        }
    }

    /// The number as an `f32`. A double is rounded to the nearest `f32`, because most other writers
    /// never write single-precision floats. `None` for a finite double beyond the range of `f32`,
    /// and for an integer that `f32` cannot represent exactly.
    #[allow(clippy::cast_possible_truncation)]
    pub fn to_single(self) -> Option<f32> {
        match self {
            Self::Double(value) => double_to_single(value).or_else(|| {
                let nearest = value as f32;
                (nearest.is_finite() || value.is_nan()).then_some(nearest)
            }),
            other => other.as_single(),
        }
    }
}

#[allow(clippy::cast_possible_truncation)]
fn half_to_single(bits: u64) -> f32 {
    let bits = bits as u16;
    if bits & 0x7c00 == 0x7c00 {
        // A conversion by value may turn a signalling NaN into a quiet one, so the bits are moved.
        let sign = u32::from(bits & 0x8000) << 16;
        return f32::from_bits(sign | 0x7f80_0000 | u32::from(bits & 0x03ff) << 13);
    }
    f16::from_bits(bits).to_f32()
}

/// Converts to `f64` and preserves the payload of a NaN.
pub fn single_to_double(value: f32) -> f64 {
    if value.is_nan() {
        let bits = value.to_bits();
        let sign = u64::from(bits & 0x8000_0000) << 32;
        return f64::from_bits(sign | 0x7ff0_0000_0000_0000 | u64::from(bits & 0x007f_ffff) << 29);
    }
    value.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_nan_payloads_across_widths() {
        for bits in [0x7fc0_0000, 0x7f80_0001, 0xffff_ffff, 0xff80_0000, 0x8000_0000] {
            let wide = Numeric::Double(single_to_double(f32::from_bits(bits)));
            assert_eq!(wide.as_single().map(f32::to_bits), Some(bits), "{bits:x}");
        }
        assert_eq!(half_to_single(0x7c01).to_bits(), 0x7f80_2000);
        assert_eq!(half_to_single(0xfc00).to_bits(), 0xff80_0000);
        assert_eq!(half_to_single(0x3c00).to_bits(), 1f32.to_bits());
    }

    #[test]
    fn integers_are_exact() {
        let most_negative = Numeric::Int { negative: true, arg: u64::MAX.into() };
        assert_eq!(most_negative.as_int(), Some(-(1i128 << 64)));
        assert_eq!(most_negative.as_double(), Some(-18_446_744_073_709_551_616.0));
        let huge = Numeric::Int { negative: false, arg: u128::MAX };
        assert_eq!((huge.as_int(), huge.as_unsigned()), (None, Some(u128::MAX)));
        let digits = |negative, arg| Numeric::Int { negative, arg }.integer_digits().unwrap();
        assert_eq!(digits(false, u128::MAX), u128::MAX.to_string());
        assert_eq!(digits(true, 0), "-1");
        assert_eq!(digits(true, (1 << 127) - 1), i128::MIN.to_string());
        assert_eq!(digits(true, u128::MAX - 1), format!("-{}", u128::MAX));
        assert_eq!(digits(true, u128::MAX), "-340282366920938463463374607431768211456");
        assert_eq!(Numeric::Single(1.0).integer_digits(), None);
        assert_eq!(Numeric::Double(3.0).as_int(), Some(3));
        assert_eq!(Numeric::Single(f32::NAN).as_int(), None);
    }

    #[test]
    fn doubles_are_rounded_to_singles_within_their_range() {
        let single = |value| Numeric::Double(value).to_single();
        assert_eq!(single(0.1), Some(0.1));
        assert_eq!(single(f64::from(f32::MAX) * (1.0 + 1e-9)), Some(f32::MAX));
        assert_eq!(single(1e39), None);
        assert_eq!(single(-1e300), None);
        assert_eq!(single(1e-300), Some(0.0));
        assert_eq!(single(f64::NEG_INFINITY), Some(f32::NEG_INFINITY));
        assert!(single(f64::from_bits(0x7ff8_0000_0000_0001)).unwrap().is_nan());
        assert!(single(f64::from_bits(0x7ff0_0000_0000_0001)).unwrap().is_nan());
        let signalling = f64::from_bits(0x7ff0_0000_2000_0000);
        assert_eq!(single(signalling).unwrap().to_bits(), 0x7f80_0001);
        assert_eq!(Numeric::Int { negative: false, arg: (1 << 24) + 1 }.to_single(), None);
    }
}
