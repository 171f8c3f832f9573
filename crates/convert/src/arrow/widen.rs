//! Converts floats that Arrow does not have to `f32`, which represents all of their values exactly.

use half::bf16;
use tenarc::DType;

/// Returns whether the elements are floats that Arrow does not have: bfloat16, or floats of 8 bits.
pub fn can_widen(dtype: &DType) -> bool {
    *dtype == DType::BF16 || dtype.decode_f8(0).is_some()
}

/// Appends the elements to `out` as `f32`. `elements` must hold a whole number of them.
pub fn widen(dtype: &DType, elements: &[u8], out: &mut Vec<u8>) {
    if *dtype == DType::BF16 {
        for element in elements.as_chunks().0 {
            out.extend_from_slice(&bf16::from_le_bytes(*element).to_f32().to_le_bytes());
        }
    } else {
        for element in elements.iter().filter_map(|&byte| dtype.decode_f8(byte)) {
            out.extend_from_slice(&single(element).to_le_bytes());
        }
    }
}

/// Returns the `f32` that equals a decoded float of 8 bits.
#[allow(clippy::cast_possible_truncation)]
fn single(element: f64) -> f32 {
    // Rust does not define the bits of a NaN after a conversion.
    if element.is_nan() { f32::NAN } else { element as f32 }
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
        let single = |dtype: &DType, byte: u8| {
            let mut out = Vec::new();
            widen(dtype, &[byte], &mut out);
            f32::from_le_bytes(out.try_into().unwrap())
        };
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
            assert_eq!(single(&dtype, byte).to_bits(), f32::NAN.to_bits(), "{dtype}");
        }
        assert!(single(&DType::F8E4M3, 0x80).is_sign_negative());
    }
}
