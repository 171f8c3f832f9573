//! Floats that Rust has no type for.

use std::cmp::Ordering;

use tenarc::DType;

/// Exponent bits, mantissa bits, exponent bias, and the bits that mean infinity and NaN.
struct Layout {
    mantissa: u32,
    bias: i32,
    special: Special,
}

enum Special {
    /// As in IEEE 754: infinities and NaN have the highest exponent.
    Ieee,
    /// NaN has all bits set except the sign. There are no infinities.
    LastIsNan,
    /// NaN has the bits of negative zero. There are no infinities.
    NegativeZeroIsNan,
}

fn layout(dtype: &DType) -> Option<Layout> {
    Some(match dtype {
        DType::F8E5M2 => Layout { mantissa: 2, bias: 15, special: Special::Ieee },
        DType::F8E4M3 => Layout { mantissa: 3, bias: 7, special: Special::LastIsNan },
        DType::F8E5M2Fnuz => Layout { mantissa: 2, bias: 16, special: Special::NegativeZeroIsNan },
        DType::F8E4M3Fnuz => Layout { mantissa: 3, bias: 8, special: Special::NegativeZeroIsNan },
        _ => return None,
    })
}

/// Decodes a float of 8 bits exactly.
pub fn decode(dtype: &DType, byte: u8) -> Option<f64> {
    if *dtype == DType::F8E8M0 {
        let exact = f64::powi(2.0, i32::from(byte) - 127);
        return Some(if byte == 0xff { f64::NAN } else { exact });
    }
    let Layout { mantissa: width, bias, special } = layout(dtype)?;
    let (negative, rest) = (byte & 0x80 != 0, byte & 0x7f);
    let (exponent, mantissa) = (rest >> width, rest & ((1 << width) - 1));
    let sign = if negative { -1.0 } else { 1.0 };
    let highest = 0x7f >> width;
    match special {
        Special::Ieee if exponent == highest && mantissa == 0 => return Some(sign * f64::INFINITY),
        Special::Ieee if exponent == highest => return Some(f64::NAN),
        Special::LastIsNan if rest == 0x7f => return Some(f64::NAN),
        Special::NegativeZeroIsNan if byte == 0x80 => return Some(f64::NAN),
        _ => {}
    }
    let fraction = f64::from(mantissa) / f64::from(1u32 << width);
    let value = if exponent == 0 {
        fraction * f64::powi(2.0, 1 - bias)
    } else {
        (1.0 + fraction) * f64::powi(2.0, i32::from(exponent) - bias)
    };
    Some(sign * value)
}

/// Encodes the nearest float of 8 bits. If two are equally near, the even one is chosen. A number that is too large
/// becomes infinity, or NaN if the dtype has no infinity. `None` for dtypes of scales, which have powers of two only.
pub fn encode(dtype: &DType, value: f64) -> Option<u8> {
    let Layout { special, .. } = layout(dtype)?;
    let (nan, above) = match special {
        Special::Ieee => (0x7e, 0x7c),
        Special::LastIsNan => (0x7f, 0x7f),
        Special::NegativeZeroIsNan => (0x80, 0x80),
    };
    if value.is_nan() {
        return Some(nan);
    }
    let size = value.abs();
    // Positive floats have the same order as their bits.
    let finite = |byte: u8| decode(dtype, byte).filter(|value| value.is_finite());
    let largest = (0..0x80).rev().find(|&byte| finite(byte).is_some())?;
    let below = (0..=largest).rev().find(|&byte| finite(byte).is_some_and(|at| at <= size))?;
    let here = finite(below)?;
    // The largest float has no next one: use the same distance as to the one before it.
    let next =
        if below < largest { finite(below + 1)? } else { here + (here - finite(below - 1)?) };
    let upward = match (size - here).partial_cmp(&(next - size))? {
        Ordering::Less => false,
        Ordering::Equal => below % 2 == 1,
        Ordering::Greater => true,
    };
    let byte = if !upward {
        below
    } else if below < largest {
        below + 1
    } else {
        above
    };
    let negative = value.is_sign_negative() && byte & 0x80 == 0;
    let has_sign = byte != 0 || !matches!(special, Special::NegativeZeroIsNan);
    Some(if negative && has_sign { byte | 0x80 } else { byte })
}

/// Decodes a float of 128 bits to a double near it.
#[allow(clippy::cast_possible_truncation)]
pub fn quad(bits: u128) -> f64 {
    let sign = (bits >> 64) as u64 & (1 << 63);
    let exponent = (bits >> 112) as u16 & 0x7fff;
    // Only the upper bits of the mantissa: a double cannot represent the others.
    let mantissa = (bits >> 60) as u64 & ((1 << 52) - 1);
    let rest = bits << 16 != 0;
    let magnitude = match i32::from(exponent) - 16383 {
        16384 if rest => f64::NAN.to_bits(),
        1024.. => f64::INFINITY.to_bits(),
        exponent @ -1022..1024 => u64::from((exponent + 1023).unsigned_abs()) << 52 | mantissa,
        _ => 0,
    };
    f64::from_bits(sign | magnitude)
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(decode(&dtype, byte), Some(expected), "{dtype}");
        }
        let smallest = [(DType::F8E5M2, -16), (DType::F8E4M3, -9), (DType::F8E4M3Fnuz, -10)];
        for (dtype, power) in smallest {
            assert_eq!(decode(&dtype, 1), Some(f64::powi(2.0, power)), "{dtype}");
        }
        assert_eq!(decode(&DType::F8E5M2, 0xfc), Some(f64::NEG_INFINITY));
        for (dtype, byte) in [
            (DType::F8E5M2, 0x7d),
            (DType::F8E4M3, 0xff),
            (DType::F8E5M2Fnuz, 0x80),
            (DType::F8E4M3Fnuz, 0x80),
            (DType::F8E8M0, 0xff),
        ] {
            assert!(decode(&dtype, byte).unwrap().is_nan(), "{dtype}");
        }
    }

    #[test]
    fn rounds_to_the_nearest_float_of_8_bits() {
        let dtypes = [DType::F8E5M2, DType::F8E4M3, DType::F8E5M2Fnuz, DType::F8E4M3Fnuz];
        for dtype in dtypes {
            for byte in 0..=0xffu8 {
                let value = decode(&dtype, byte).unwrap();
                let back = encode(&dtype, value).unwrap();
                assert!(back == byte || value.is_nan(), "{dtype} {byte:#x}: {back:#x}");
            }
            assert!(decode(&dtype, encode(&dtype, f64::NAN).unwrap()).unwrap().is_nan());
        }
        let near = |value| decode(&DType::F8E4M3, encode(&DType::F8E4M3, value).unwrap()).unwrap();
        let rounded =
            [1.05, 1.0625, 1.1875, -464.0, f64::powi(2.0, -10)].map(|value| near(value).to_bits());
        assert_eq!(rounded, [1.0, 1.0, 1.25, -448.0, 0.0f64].map(f64::to_bits));
        assert!(near(465.0).is_nan() && near(f64::INFINITY).is_nan());
        assert_eq!(encode(&DType::F8E5M2, -1e9), Some(0xfc));
        assert_eq!(encode(&DType::F8E4M3Fnuz, -0.0), Some(0));
        assert_eq!(encode(&DType::F8E8M0, 1.0), None);
    }

    #[test]
    fn takes_quads_for_the_doubles_they_are_near() {
        let bits = |bits| quad(bits).to_bits();
        assert_eq!(bits(0x3fff << 112), 1f64.to_bits());
        assert_eq!(bits(0xc000_8000 << 96), (-3f64).to_bits());
        assert_eq!(bits(0x7fff << 112), f64::INFINITY.to_bits());
        assert!(quad(0x7fff_8000 << 96).is_nan());
        assert_eq!(bits(0), 0);
    }
}
