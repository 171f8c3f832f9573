//! Floats of 8 bits, as doubles and back. Rust has no types for them.

use crate::dtype::DType;

/// How the 7 bits after the sign represent a number.
struct FloatLayout {
    /// The number of mantissa bits.
    mantissa: u32,
    /// The exponent bias.
    bias: i32,
    special: Special,
}

/// The bits that represent infinity and NaN.
enum Special {
    /// As in IEEE 754: infinities and NaN have the highest exponent.
    Ieee,
    /// NaN has all bits set except the sign. There are no infinities.
    LastIsNan,
    /// NaN has the bits of negative zero. There are no infinities.
    NegativeZeroIsNan,
}

impl FloatLayout {
    /// `None` for [`DType::F8E8M0`], which has no sign and no mantissa.
    fn of(dtype: &DType) -> Option<Self> {
        let (mantissa, bias, special) = match dtype {
            DType::F8E5M2 => (2, 15, Special::Ieee),
            DType::F8E4M3 => (3, 7, Special::LastIsNan),
            DType::F8E5M2Fnuz => (2, 16, Special::NegativeZeroIsNan),
            DType::F8E4M3Fnuz => (3, 8, Special::NegativeZeroIsNan),
            _ => return None,
        };
        Some(Self { mantissa, bias, special })
    }
}

impl DType {
    /// The number that an element of 8 bits represents. It is exact. `None` if this is not a float dtype of 8 bits.
    ///
    /// ```
    /// use tenarc::DType;
    ///
    /// assert_eq!(DType::F8E4M3.decode_f8(0x39), Some(1.125));
    /// assert_eq!(DType::F8E8M0.decode_f8(0x82), Some(8.0));
    /// assert_eq!(DType::U8.decode_f8(0x39), None);
    /// ```
    pub fn decode_f8(&self, byte: u8) -> Option<f64> {
        if *self == Self::F8E8M0 {
            return Some(if byte == 0xff { f64::NAN } else { power(i32::from(byte) - 127) });
        }
        let FloatLayout { mantissa: width, bias, special } = FloatLayout::of(self)?;
        let (sign, rest) = (if byte & 0x80 == 0 { 1.0 } else { -1.0 }, byte & 0x7f);
        let (exponent, mantissa) = (rest >> width, rest & ((1 << width) - 1));
        let is_highest = exponent == 0x7f >> width;
        match special {
            Special::Ieee if is_highest && mantissa == 0 => return Some(sign * f64::INFINITY),
            Special::Ieee if is_highest => return Some(f64::NAN),
            Special::LastIsNan if rest == 0x7f => return Some(f64::NAN),
            Special::NegativeZeroIsNan if byte == 0x80 => return Some(f64::NAN),
            _ => {}
        }
        let fraction = f64::from(mantissa) / f64::from(1u32 << width);
        // The lowest exponent is that of subnormal numbers, which do not have the leading 1.
        let (leading, exponent) = if exponent == 0 { (0.0, 1) } else { (1.0, exponent) };
        Some(sign * (leading + fraction) * power(i32::from(exponent) - bias))
    }

    /// The element of 8 bits that is nearest to `value`. If two are equally near, it is the one whose last bit is 0.
    /// If `value` is too large, it is infinity, or NaN if the dtype has no infinity. `None` if this is not a float
    /// dtype of 8 bits, and for [`DType::F8E8M0`], which is meant for scales: it has no zero and no sign.
    ///
    /// ```
    /// use tenarc::DType;
    ///
    /// assert_eq!(DType::F8E4M3.encode_f8(1.1), Some(0x39));
    /// assert_eq!(DType::F8E5M2.encode_f8(-1e9), Some(0xfc)); // negative infinity
    /// assert_eq!(DType::F8E8M0.encode_f8(1.0), None);
    /// ```
    pub fn encode_f8(&self, value: f64) -> Option<u8> {
        let FloatLayout { mantissa: width, bias, special } = FloatLayout::of(self)?;
        let (nan, largest, above) = match special {
            Special::Ieee => (0x7e, 0x7b, 0x7c),
            Special::LastIsNan => (0x7f, 0x7e, 0x7f),
            Special::NegativeZeroIsNan => (0x80, 0x7f, 0x80),
        };
        if value.is_nan() {
            return Some(nan);
        }
        let size = value.abs();
        // The exponent of the double, but not less than that of the subnormal numbers.
        let lowest = 1 - bias;
        let exponent = ((size.to_bits() >> 52) as i32 - 1023).max(lowest);
        // The highest exponent of a dtype is at most this. The check also keeps infinity out of the calculation.
        let byte = if exponent > bias + 1 {
            above
        } else {
            // Numbers with this exponent are multiples of a power of two. The division by it is exact.
            let unit = power(exponent - width.cast_signed());
            #[allow(clippy::cast_possible_truncation)]
            let multiple = (size / unit).round_ties_even() as i32;
            // The leading 1 of the multiple adds 1 to the exponent. If the multiple was rounded up to the next power
            // of two, it adds another 1.
            let byte = ((exponent - lowest) << width) + multiple;
            u8::try_from(byte).ok().filter(|&byte| byte <= largest).unwrap_or(above)
        };
        let has_sign = match special {
            Special::Ieee | Special::LastIsNan => true,
            Special::NegativeZeroIsNan => byte != 0 && byte != nan,
        };
        Some(if value.is_sign_negative() && has_sign { byte | 0x80 } else { byte })
    }
}

/// Two to the power of `exponent`, which is that of a normal double.
fn power(exponent: i32) -> f64 {
    f64::from_bits(u64::from((exponent + 1023).unsigned_abs()) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGNED: [DType; 4] = [DType::F8E5M2, DType::F8E4M3, DType::F8E5M2Fnuz, DType::F8E4M3Fnuz];

    #[test]
    fn decodes_the_ends_of_each_range() {
        let largest = [
            (DType::F8E5M2, 0x7b, 57344.0),
            (DType::F8E4M3, 0x7e, 448.0),
            (DType::F8E5M2Fnuz, 0x7f, 57344.0),
            (DType::F8E4M3Fnuz, 0x7f, 240.0),
            (DType::F8E8M0, 0xfe, f64::powi(2.0, 127)),
        ];
        for (dtype, byte, expected) in largest {
            assert_eq!(dtype.decode_f8(byte), Some(expected), "{dtype}");
        }
        let smallest = [
            (DType::F8E5M2, 0x01, -16),
            (DType::F8E4M3, 0x01, -9),
            (DType::F8E5M2Fnuz, 0x01, -17),
            (DType::F8E4M3Fnuz, 0x01, -10),
            (DType::F8E8M0, 0x00, -127),
        ];
        for (dtype, byte, power) in smallest {
            assert_eq!(dtype.decode_f8(byte), Some(f64::powi(2.0, power)), "{dtype}");
        }
        assert_eq!(DType::F8E5M2.decode_f8(0xfc), Some(f64::NEG_INFINITY));
        assert_eq!(DType::F8E4M3.decode_f8(0x80).map(f64::to_bits), Some((-0.0f64).to_bits()));
        for (dtype, byte) in [
            (DType::F8E5M2, 0x7d),
            (DType::F8E4M3, 0xff),
            (DType::F8E5M2Fnuz, 0x80),
            (DType::F8E4M3Fnuz, 0x80),
            (DType::F8E8M0, 0xff),
        ] {
            assert!(dtype.decode_f8(byte).unwrap().is_nan(), "{dtype}");
        }
    }

    #[test]
    fn other_dtypes_are_not_floats_of_8_bits() {
        for dtype in crate::dtype::KNOWN {
            let is_f8 = dtype.name().starts_with("f8_");
            assert_eq!(dtype.decode_f8(0).is_some(), is_f8, "{dtype}");
            assert_eq!(dtype.encode_f8(1.0).is_some(), SIGNED.contains(dtype), "{dtype}");
        }
    }

    #[test]
    fn rounds_to_the_nearest_float_of_8_bits() {
        for dtype in SIGNED {
            for byte in 0..=0xffu8 {
                let value = dtype.decode_f8(byte).unwrap();
                let back = dtype.encode_f8(value).unwrap();
                assert!(back == byte || value.is_nan(), "{dtype} {byte:#x}: {back:#x}");
            }
            assert!(dtype.decode_f8(dtype.encode_f8(f64::NAN).unwrap()).unwrap().is_nan());
        }
        let near =
            |value| DType::F8E4M3.decode_f8(DType::F8E4M3.encode_f8(value).unwrap()).unwrap();
        let rounded =
            [1.05, 1.0625, 1.1875, -464.0, f64::powi(2.0, -10)].map(|value| near(value).to_bits());
        assert_eq!(rounded, [1.0, 1.0, 1.25, -448.0, 0.0f64].map(f64::to_bits));
        assert!(near(465.0).is_nan() && near(f64::INFINITY).is_nan());
        assert_eq!(DType::F8E5M2.encode_f8(-1e9), Some(0xfc));
        assert_eq!(DType::F8E4M3Fnuz.encode_f8(-0.0), Some(0));
        assert_eq!(DType::F8E4M3Fnuz.encode_f8(-1e-300), Some(0));
        assert_eq!(DType::F8E4M3Fnuz.encode_f8(f64::MIN), Some(0x80));
        assert_eq!(DType::F8E4M3.encode_f8(-f64::MIN_POSITIVE / 2.0), Some(0x80));
    }

    #[test]
    fn no_float_of_8_bits_is_nearer() {
        for dtype in SIGNED {
            let finite: Vec<(u8, f64)> = (0..0x80)
                .map(|byte| (byte, dtype.decode_f8(byte).unwrap()))
                .filter(|(_, value)| value.is_finite())
                .collect();
            for pair in finite.windows(2) {
                let [(low, below), (high, above)] = pair else { unreachable!() };
                let middle = f64::midpoint(*below, *above);
                let even = if low % 2 == 0 { low } else { high };
                assert_eq!(dtype.encode_f8(middle), Some(*even), "{dtype} {middle}");
                assert_eq!(dtype.encode_f8(middle.next_down()), Some(*low), "{dtype} {middle}");
                assert_eq!(dtype.encode_f8(middle.next_up()), Some(*high), "{dtype} {middle}");
                if dtype.encode_f8(-middle) != Some(0) {
                    assert_eq!(dtype.encode_f8(-middle), Some(even | 0x80), "{dtype} {middle}");
                }
            }
            // A number is too large if it is nearer to the number that would come next.
            let [.., (_, before), (last, largest)] = finite[..] else { unreachable!() };
            let middle = largest + (largest - before) / 2.0;
            assert_eq!(dtype.encode_f8(middle.next_down()), Some(last), "{dtype}");
            let above = dtype.encode_f8(middle.next_up()).unwrap();
            assert!(!dtype.decode_f8(above).unwrap().is_finite(), "{dtype}");
            assert_eq!(dtype.encode_f8(middle), Some(if last % 2 == 0 { last } else { above }));
            assert_eq!(dtype.encode_f8(f64::INFINITY), Some(above), "{dtype}");
        }
    }
}
