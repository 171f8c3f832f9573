//! Numbers of any element type, and exact conversions between them.

use std::cmp::Ordering;

/// The first integer that is too large for 128 bits, signed. From there on, and below its opposite, `as` saturates.
#[allow(clippy::cast_precision_loss)]
pub const END: f64 = (1u128 << 127) as f64;

/// A number of any element type, as an intermediate form for exact conversions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Complex(f64, f64),
}

/// The number as an integer of type `T`, if that is exact.
pub fn exact_int<T: TryFrom<u64> + TryFrom<i64>>(number: Number) -> Option<T> {
    match number {
        Number::Unsigned(value) => value.try_into().ok(),
        Number::Signed(value) => value.try_into().ok(),
        Number::Float(value) => match float_to_int(value)? {
            value if value < 0 => i64::try_from(value).ok()?.try_into().ok(),
            value => u64::try_from(value).ok()?.try_into().ok(),
        },
        Number::Bool(_) | Number::Complex(..) => None,
    }
}

/// The float as an integer, if that is exact. `None` for negative zero, whose sign would be lost.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::float_cmp)]
pub fn float_to_int(value: f64) -> Option<i128> {
    let exact = value.trunc() == value && (-END..END).contains(&value);
    (exact && !(value == 0.0 && value.is_sign_negative())).then_some(value as i128)
}

/// The order of an integer and a float, which is not NaN. Nothing is rounded.
#[allow(clippy::cast_possible_truncation)]
pub fn order(integer: i128, float: f64) -> Ordering {
    if float >= END {
        return Ordering::Less;
    }
    if float < -END {
        return Ordering::Greater;
    }
    integer.cmp(&(float.trunc() as i128)).then(0.0_f64.total_cmp(&(float.fract() + 0.0)))
}

/// The integer as a float, if that is exact.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
pub fn int_to_float(value: i128) -> Option<f64> {
    let float = value as f64;
    (float as i128 == value && value != i128::MAX).then_some(float)
}

/// The `f64` as an `f32`, if that is exact. The payload of a NaN must be preserved too.
#[allow(clippy::cast_possible_truncation)]
pub fn double_to_single(value: f64) -> Option<f32> {
    if value.is_nan() {
        // A conversion with `as` may turn a signalling NaN into a quiet one, so the bits are moved.
        let bits = value.to_bits();
        let sign = (bits >> 32) as u32 & 0x8000_0000;
        let payload = bits & 0x000f_ffff_ffff_ffff;
        let single = (payload >> 29) as u32;
        let exact = payload.trailing_zeros() >= 29 && single != 0;
        return exact.then(|| f32::from_bits(sign | 0x7f80_0000 | single));
    }
    let single = value as f32;
    (f64::from(single).to_bits() == value.to_bits()).then_some(single)
}

/// The number as an `f64`, if that is exact.
pub fn exact_float(number: Number) -> Option<f64> {
    match number {
        Number::Float(value) => Some(value),
        Number::Unsigned(value) => int_to_float(value.into()),
        Number::Signed(value) => int_to_float(value.into()),
        Number::Bool(_) | Number::Complex(..) => None,
    }
}

/// Converts the number to `f64` and then with `narrow`. `None` unless `widen` converts the result back
/// to the same bits, or both are NaN.
pub fn narrowed<T: Copy>(
    number: Number,
    narrow: impl Fn(f64) -> T,
    widen: impl Fn(T) -> f64,
) -> Option<T> {
    let value = exact_float(number)?;
    let result = narrow(value);
    let back = widen(result);
    (back.to_bits() == value.to_bits() || back.is_nan() && value.is_nan()).then_some(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_and_floats_are_compared_exactly() {
        let floats = [f64::NEG_INFINITY, -END, -1.5, -0.0, 0.0, 0.5, 9_007_199_254_740_994.0, END];
        for (integer, orders) in [
            (i128::MIN, ">=<<<<<<"),
            (-1, ">>><<<<<"),
            (0, ">>>==<<<"),
            (1, ">>>>>><<"),
            (9_007_199_254_740_993, ">>>>>><<"),
            (9_007_199_254_740_995, ">>>>>>><"),
            (i128::MAX, ">>>>>>><"),
        ] {
            let sign = |float: &f64| match order(integer, *float) {
                Ordering::Less => '<',
                Ordering::Equal => '=',
                Ordering::Greater => '>',
            };
            assert_eq!(floats.iter().map(sign).collect::<String>(), orders, "{integer}");
        }
    }

    #[test]
    fn doubles_narrow_with_every_bit() {
        assert_eq!(
            double_to_single(f64::from_bits(0x7ff0_0000_2000_0000)).unwrap().to_bits(),
            0x7f80_0001
        );
        assert_eq!(double_to_single(f64::from_bits(0x7ff0_0000_1000_0000)), None);
        assert_eq!(double_to_single(0.1), None);
    }
}
