//! Floats that Arrow has not, as singles, which hold all of them exactly.

use half::bf16;
use tenarc::DType;

/// Bits of the mantissa, bias of the exponent, and what stands for what is no number.
struct Layout {
    mantissa: u32,
    bias: i32,
    special: Special,
}

enum Special {
    /// As IEEE 754 has them: the highest exponent.
    Ieee,
    /// NaN where all bits but the sign are set; no infinities.
    LastIsNan,
    /// NaN in place of negative zero; no infinities.
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

/// Whether elements can become singles.
pub fn can_widen(dtype: &DType) -> bool {
    matches!(dtype, DType::BF16 | DType::F8E8M0) || layout(dtype).is_some()
}

/// Appends elements, of which there are a whole number, as singles.
pub fn widen(dtype: &DType, elements: &[u8], out: &mut Vec<u8>) {
    if *dtype == DType::BF16 {
        for element in elements.as_chunks().0 {
            out.extend_from_slice(&bf16::from_le_bytes(*element).to_f32().to_le_bytes());
        }
    } else {
        for &byte in elements {
            out.extend_from_slice(&single(dtype, byte).to_le_bytes());
        }
    }
}

fn single(dtype: &DType, byte: u8) -> f32 {
    let Some(Layout { mantissa: width, bias, special }) = layout(dtype) else {
        // A power of two, and nothing else.
        let exact = f32::powi(2.0, i32::from(byte) - 127);
        return if byte == 0xff { f32::NAN } else { exact };
    };
    let (sign, rest) = (if byte & 0x80 != 0 { -1.0 } else { 1.0 }, byte & 0x7f);
    let (exponent, mantissa) = (rest >> width, rest & ((1 << width) - 1));
    let highest = exponent == 0x7f >> width;
    match special {
        Special::Ieee if highest && mantissa == 0 => return sign * f32::INFINITY,
        Special::Ieee if highest => return f32::NAN,
        Special::LastIsNan if rest == 0x7f => return f32::NAN,
        Special::NegativeZeroIsNan if byte == 0x80 => return f32::NAN,
        _ => {}
    }
    let fraction = f32::from(mantissa) / f32::from(1u8 << width);
    let (whole, exponent) = if exponent == 0 { (0.0, 1) } else { (1.0, i32::from(exponent)) };
    sign * (whole + fraction) * f32::powi(2.0, exponent - bias)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn singles_are_what_the_bytes_mean() {
        let cases = [
            (DType::F8E5M2, 0x7b, 57344.0),
            (DType::F8E5M2, 0xfc, f32::NEG_INFINITY),
            (DType::F8E5M2, 0x01, f32::powi(2.0, -16)),
            (DType::F8E4M3, 0x7e, 448.0),
            (DType::F8E4M3, 0x81, -f32::powi(2.0, -9)),
            (DType::F8E5M2Fnuz, 0x7f, 57344.0),
            (DType::F8E4M3Fnuz, 0x7f, 240.0),
            (DType::F8E8M0, 0x00, f32::powi(2.0, -127)),
            (DType::F8E8M0, 0xfe, f32::powi(2.0, 127)),
        ];
        for (dtype, byte, expected) in cases {
            assert_eq!(single(&dtype, byte).to_bits(), expected.to_bits(), "{dtype}");
        }
        for (dtype, byte) in [
            (DType::F8E5M2, 0x7d),
            (DType::F8E4M3, 0xff),
            (DType::F8E5M2Fnuz, 0x80),
            (DType::F8E4M3Fnuz, 0x80),
            (DType::F8E8M0, 0xff),
        ] {
            assert!(single(&dtype, byte).is_nan(), "{dtype}");
        }
        assert!(single(&DType::F8E4M3, 0x80).is_sign_negative());
    }
}
