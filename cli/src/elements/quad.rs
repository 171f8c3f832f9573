//! Floats of 128 bits, for which Rust has no stable type.

/// Decodes a float of 128 bits to a double near it.
#[allow(clippy::cast_possible_truncation)]
pub fn to_double(bits: u128) -> f64 {
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
    fn takes_quads_for_the_doubles_they_are_near() {
        let bits = |bits| to_double(bits).to_bits();
        assert_eq!(bits(0x3fff << 112), 1f64.to_bits());
        assert_eq!(bits(0xc000_8000 << 96), (-3f64).to_bits());
        assert_eq!(bits(0x7fff << 112), f64::INFINITY.to_bits());
        assert!(to_double(0x7fff_8000 << 96).is_nan());
        assert_eq!(bits(0), 0);
    }
}
