//! Decodes floats of 128 bits, for which Rust has no stable type.

/// How a number between two doubles is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// The nearest double (ties to even).
    Nearest,
    /// The double whose last bit is 1. It can be rounded again, to fewer bits, as if the number had been rounded once.
    Odd,
}

impl Rounding {
    /// Drops the last `count` bits, and rounds.
    pub fn drop_bits(self, number: u128, count: u32) -> u128 {
        let kept = number.checked_shr(count).unwrap_or(0);
        // If all 128 bits are dropped, `kept` is 0.
        let dropped = number ^ kept.checked_shl(count).unwrap_or(0);
        match self {
            Self::Odd => kept | u128::from(dropped != 0),
            Self::Nearest => {
                let half = count.checked_sub(1).and_then(|bit| 1u128.checked_shl(bit));
                match half {
                    Some(half) if dropped > half => kept + 1,
                    Some(half) if dropped == half => kept + (kept & 1),
                    _ => kept,
                }
            }
        }
    }
}

/// Decodes a float of 128 bits to a double.
#[allow(clippy::cast_possible_truncation)]
pub fn to_double(bits: u128, rounding: Rounding) -> f64 {
    let sign = (bits >> 64) as u64 & (1 << 63);
    let exponent = i32::from((bits >> 112) as u16 & 0x7fff) - 16383;
    let fraction = bits & ((1 << 112) - 1);
    let magnitude = match exponent {
        16384 if fraction != 0 => f64::NAN.to_bits(),
        16384 => f64::INFINITY.to_bits(),
        1024.. => match rounding {
            Rounding::Nearest => f64::INFINITY.to_bits(),
            Rounding::Odd => f64::MAX.to_bits(),
        },
        // This includes the subnormal numbers of 128 bits: all of them are far below the smallest double.
        ..-1200 => match rounding {
            Rounding::Odd if bits << 1 != 0 => 1,
            _ => 0,
        },
        _ => {
            let mantissa = 1 << 112 | fraction;
            // Doubles below this exponent are subnormal: they keep the exponent and have fewer bits.
            let lowest = exponent.max(-1022);
            let dropped = 60 + (lowest - exponent).unsigned_abs();
            // The leading 1 of the mantissa adds 1 to the exponent. If the mantissa was rounded up to the next power of
            // two, it adds another 1.
            let mantissa = rounding.drop_bits(mantissa, dropped) as u64;
            (u64::from((lowest + 1022).unsigned_abs()) << 52) + mantissa
        }
    };
    f64::from_bits(sign | magnitude)
}

/// Returns the number that a float of 128 bits represents, if it is whole and fits in an `i128`.
pub fn to_integer(bits: u128) -> Option<i128> {
    if bits << 1 == 0 {
        return Some(0);
    }
    let exponent = (bits >> 112 & 0x7fff).checked_sub(16383).filter(|exponent| *exponent < 127)?;
    let mantissa = 1 << 112 | bits & ((1 << 112) - 1);
    let size: u128 = match exponent {
        112.. => mantissa << (exponent - 112),
        _ => mantissa >> (112 - exponent),
    };
    let is_whole = exponent >= 112 || size << (112 - exponent) == mantissa;
    let size = i128::try_from(size).ok().filter(|_| is_whole)?;
    Some(if bits >> 127 == 1 { -size } else { size })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nearest(bits: u128) -> u64 {
        to_double(bits, Rounding::Nearest).to_bits()
    }

    /// Encodes a float of 128 bits from its exponent and a fraction of 112 bits.
    fn quad(exponent: i32, fraction: u128) -> u128 {
        u128::from((exponent + 16383).unsigned_abs()) << 112 | fraction
    }

    #[test]
    fn decodes_what_doubles_represent() {
        assert_eq!(nearest(0x3fff << 112), 1f64.to_bits());
        assert_eq!(nearest(0xc000_8000 << 96), (-3f64).to_bits());
        assert_eq!(nearest(0x7fff << 112), f64::INFINITY.to_bits());
        assert!(f64::from_bits(nearest(0x7fff_8000 << 96)).is_nan());
        assert_eq!(nearest(0), 0);
        assert_eq!(nearest(1 << 127), (-0.0f64).to_bits());
        assert_eq!(nearest(quad(-1074, 0)), 1);
        assert_eq!(nearest(quad(-1023, 0)), (f64::MIN_POSITIVE / 2.0).to_bits());
    }

    #[test]
    fn rounds_to_the_nearest_double() {
        const HALF: u128 = 1 << 59;
        let one = 1f64.to_bits();
        assert_eq!(nearest(quad(0, HALF)), one);
        assert_eq!(nearest(quad(0, HALF + 1)), one + 1);
        assert_eq!(nearest(quad(0, 3 * HALF)), one + 2);
        assert_eq!(nearest(quad(0, 3 * HALF - 1)), one + 1);
        // These round up to the next exponent and to infinity; the last one does not.
        assert_eq!(nearest(quad(0, (1 << 112) - 1)), 2f64.to_bits());
        assert_eq!(nearest(quad(1023, (1 << 112) - 1)), f64::INFINITY.to_bits());
        assert_eq!(nearest(quad(1023, (1 << 112) - HALF - 1)), f64::MAX.to_bits());
        // Half of the smallest double rounds to 0. A little more rounds up.
        assert_eq!(nearest(quad(-1075, 0)), 0);
        assert_eq!(nearest(quad(-1075, 1)), 1);
        assert_eq!(nearest(quad(-1023, (1 << 112) - 1)), f64::MIN_POSITIVE.to_bits());
    }

    #[test]
    fn rounds_to_odd() {
        let odd = |bits| to_double(bits, Rounding::Odd).to_bits();
        let one = 1f64.to_bits();
        assert_eq!(odd(quad(0, 0)), one);
        assert_eq!(odd(quad(0, 1)), one + 1);
        assert_eq!(odd(quad(0, 1 << 60)), one + 1);
        assert_eq!(odd(quad(0, (1 << 61) - 1)), one + 1);
        assert_eq!(odd(quad(2000, 0)), f64::MAX.to_bits());
        assert_eq!(odd(quad(-2000, 0)), 1);
        assert_eq!(odd(1), 1);
        assert_eq!(odd(0), 0);
    }
}
