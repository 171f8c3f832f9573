//! Element types: names, sizes, RFC 8746 tags and the Rust types behind them.

use std::fmt;
use std::sync::Arc;

use half::{bf16, f16};
use num_complex::Complex;

use crate::elements::Elements;

/// The type of a tensor's elements, by name.
///
/// The set is open: a name this version does not know is [`DType::Other`], and a tensor of it
/// passes through [`DynTensor`](crate::DynTensor) unharmed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DType {
    /// One byte, 0 or 1.
    Bool,
    /// Unsigned, 8 bits.
    U8,
    /// Unsigned, 16 bits.
    U16,
    /// Unsigned, 32 bits.
    U32,
    /// Unsigned, 64 bits.
    U64,
    /// Two's complement, 8 bits.
    I8,
    /// Two's complement, 16 bits.
    I16,
    /// Two's complement, 32 bits.
    I32,
    /// Two's complement, 64 bits.
    I64,
    /// IEEE 754 binary16.
    F16,
    /// The upper half of an IEEE 754 binary32.
    BF16,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
    /// IEEE 754 binary128; Rust has no stable type for it.
    F128,
    /// Two binary32: real, imaginary.
    C64,
    /// Two binary64: real, imaginary.
    C128,
    /// FP8 with 5 exponent and 2 mantissa bits (OCP).
    F8E5M2,
    /// FP8 with 4 exponent and 3 mantissa bits, finite and NaN only (OCP; `float8_e4m3fn`).
    F8E4M3,
    /// FP8 power of two, the scale type of OCP microscaling.
    F8E8M0,
    /// FP8 E5M2 without negative zero and infinities.
    F8E5M2Fnuz,
    /// FP8 E4M3 without negative zero.
    F8E4M3Fnuz,
    /// FP6 with 2 exponent and 3 mantissa bits (OCP microscaling), packed.
    F6E2M3,
    /// FP6 with 3 exponent and 2 mantissa bits (OCP microscaling), packed.
    F6E3M2,
    /// FP4 with 2 exponent bits and 1 mantissa bit (OCP microscaling), packed.
    F4,
    /// Any other name. Its element size is not known, so any number of bytes is taken for it.
    Other(OtherDType),
}

/// The name of a dtype that this version does not know; made by [`DType::from_name`] only.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct OtherDType(Arc<str>);

impl OtherDType {
    /// The name as it stands in the document.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for OtherDType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// The known dtypes in one table: variant, name on the wire, bits an element, width in bytes of
/// the parts that byte order applies to, tag for little-endian typed arrays (RFC 8746, section
/// 2.1) where there is one.
macro_rules! dtypes {
    ($($variant:ident $name:literal $bits:literal $word:literal $tag:expr;)*) => {
        impl DType {
            /// The name, as written in documents.
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$variant => $name,)*
                    Self::Other(name) => name.as_str(),
                }
            }

            /// The dtype of that name.
            pub fn from_name(name: &str) -> Self {
                match name {
                    $($name => Self::$variant,)*
                    other => Self::Other(OtherDType(other.into())),
                }
            }

            /// Bits an element takes; `None` for a dtype this version does not know. FP6 and FP4
            /// elements are packed: the elements of one tensor must fill whole bytes.
            pub fn bits(&self) -> Option<usize> {
                match self {
                    $(Self::$variant => Some($bits),)*
                    Self::Other(_) => None,
                }
            }

            /// Width in bytes of the unit that byte order applies to (for complex numbers, one
            /// part).
            pub fn word(&self) -> usize {
                match self {
                    $(Self::$variant => $word,)*
                    Self::Other(_) => 1,
                }
            }

            /// The tag of a little-endian typed array of these elements (of their parts, for
            /// complex numbers).
            pub(crate) fn typed_array_tag(&self) -> Option<u8> {
                match self {
                    $(Self::$variant => $tag,)*
                    Self::Other(_) => None,
                }
            }
        }

        #[cfg(test)]
        pub(crate) const KNOWN: &[DType] = &[$(DType::$variant,)*];
    };
}

dtypes! {
    Bool "bool" 8 1 None;
    U8 "u8" 8 1 Some(64);
    U16 "u16" 16 2 Some(69);
    U32 "u32" 32 4 Some(70);
    U64 "u64" 64 8 Some(71);
    I8 "i8" 8 1 Some(72);
    I16 "i16" 16 2 Some(77);
    I32 "i32" 32 4 Some(78);
    I64 "i64" 64 8 Some(79);
    F16 "f16" 16 2 Some(84);
    BF16 "bf16" 16 2 None;
    F32 "f32" 32 4 Some(85);
    F64 "f64" 64 8 Some(86);
    F128 "f128" 128 16 Some(87);
    C64 "c64" 64 4 Some(85);
    C128 "c128" 128 8 Some(86);
    F8E5M2 "f8_e5m2" 8 1 None;
    F8E4M3 "f8_e4m3" 8 1 None;
    F8E8M0 "f8_e8m0" 8 1 None;
    F8E5M2Fnuz "f8_e5m2fnuz" 8 1 None;
    F8E4M3Fnuz "f8_e4m3fnuz" 8 1 None;
    F6E2M3 "f6_e2m3" 6 1 None;
    F6E3M2 "f6_e3m2" 6 1 None;
    F4 "f4" 4 1 None;
}

impl DType {
    /// The dtype of a typed-array tag and whether its payload is big-endian (RFC 8746, section
    /// 2.1). `None` for 76, which is reserved, and for tags that are no typed array.
    pub(crate) fn from_typed_array_tag(tag: u64) -> Option<(Self, bool)> {
        Some(match tag {
            // 68 is uint8 with clamped arithmetic: the same bytes.
            64 | 68 => (Self::U8, false),
            65 => (Self::U16, true),
            66 => (Self::U32, true),
            67 => (Self::U64, true),
            69 => (Self::U16, false),
            70 => (Self::U32, false),
            71 => (Self::U64, false),
            72 => (Self::I8, false),
            73 => (Self::I16, true),
            74 => (Self::I32, true),
            75 => (Self::I64, true),
            77 => (Self::I16, false),
            78 => (Self::I32, false),
            79 => (Self::I64, false),
            80 => (Self::F16, true),
            81 => (Self::F32, true),
            82 => (Self::F64, true),
            83 => (Self::F128, true),
            84 => (Self::F16, false),
            85 => (Self::F32, false),
            86 => (Self::F64, false),
            87 => (Self::F128, false),
            _ => return None,
        })
    }

    /// Whether elements are complex numbers, of two parts each.
    pub fn is_complex(&self) -> bool {
        matches!(self, Self::C64 | Self::C128)
    }

    /// Bytes that `count` elements take, or `None` where that overflows or does not fill whole
    /// bytes. An unknown dtype has no answer either: see [`DType::bits`].
    pub fn byte_len(&self, count: usize) -> Option<usize> {
        let bits = self.bits()?;
        if bits % 8 == 0 {
            return count.checked_mul(bits / 8);
        }
        let total = count.checked_mul(bits)?;
        (total % 8 == 0).then_some(total / 8)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

mod sealed {
    use super::{Elements, Number};

    pub trait Sealed: Sized + Copy {
        fn into_elements(values: Vec<Self>) -> Elements;
        fn from_elements(elements: Elements) -> Result<Vec<Self>, Elements>;
        fn slice(elements: &Elements) -> Option<&[Self]>;
        /// The elements as they lie in memory.
        fn memory(values: &[Self]) -> &[u8];
        /// A copy of elements that lie in memory order in `bytes`; `None` where the length is no
        /// multiple of the element size or a byte pattern is none of this type.
        fn copied(bytes: &[u8]) -> Option<Vec<Self>>;
        /// A view of elements that lie in memory order in `bytes`; as `copied`, and `None` where
        /// the address is not aligned too.
        fn viewed(bytes: &[u8]) -> Option<&[Self]>;
        fn to_number(self) -> Number;
        /// The element that holds the number exactly.
        fn from_number(number: Number) -> Option<Self>;
    }
}

pub(crate) use sealed::Sealed;

/// A Rust type that tensors can have as elements: `bool`, `u8` to `u64`, `i8` to `i64`,
/// [`half::f16`], [`half::bf16`], `f32`, `f64`, and [`Complex`] of `f32` and `f64`.
///
/// This trait is sealed. Element types without a Rust type, such as FP8, pass through
/// [`DynTensor`](crate::DynTensor).
pub trait Element: sealed::Sealed + fmt::Debug + PartialEq + Send + Sync + 'static {
    /// The dtype of this element type.
    const DTYPE: DType;
}

/// One number of any element type, for conversions that must be exact.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Complex(f64, f64),
}

fn exact_int<T: TryFrom<u64> + TryFrom<i64>>(number: Number) -> Option<T> {
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

/// The integer that a float holds exactly. Negative zero is none: its sign would be lost.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::float_cmp)]
pub(crate) fn float_to_int(value: f64) -> Option<i128> {
    // Beyond, `as` saturates.
    const END: f64 = (1u128 << 127) as f64;
    let exact = value.trunc() == value && (-END..END).contains(&value);
    (exact && !(value == 0.0 && value.is_sign_negative())).then_some(value as i128)
}

/// The float that holds an integer exactly.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
pub(crate) fn int_to_float(value: i128) -> Option<f64> {
    let float = value as f64;
    (float as i128 == value && value != i128::MAX).then_some(float)
}

/// The single that holds a double exactly, NaN payloads included.
#[allow(clippy::cast_possible_truncation)]
pub(crate) fn double_to_single(value: f64) -> Option<f32> {
    if value.is_nan() {
        // Widening back through `as` may quiet a signalling NaN, so the bits are moved by hand.
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

fn exact_float(number: Number) -> Option<f64> {
    match number {
        Number::Float(value) => Some(value),
        Number::Unsigned(value) => int_to_float(value.into()),
        Number::Signed(value) => int_to_float(value.into()),
        Number::Bool(_) | Number::Complex(..) => None,
    }
}

/// Narrows a double by `narrow` if widening the result gives the same double, or both are NaN.
fn narrowed<T: Copy>(
    number: Number,
    narrow: impl Fn(f64) -> T,
    widen: impl Fn(T) -> f64,
) -> Option<T> {
    let value = exact_float(number)?;
    let result = narrow(value);
    let back = widen(result);
    (back.to_bits() == value.to_bits() || back.is_nan() && value.is_nan()).then_some(result)
}

macro_rules! elements {
    ($($variant:ident $type:ty, $cast:ident, |$value:ident| $to:expr, |$number:ident| $from:expr;)*) => {$(
        impl Element for $type {
            const DTYPE: DType = DType::$variant;
        }

        impl Sealed for $type {
            fn into_elements(values: Vec<Self>) -> Elements {
                Elements::$variant(values)
            }

            fn from_elements(elements: Elements) -> Result<Vec<Self>, Elements> {
                match elements {
                    Elements::$variant(values) => Ok(values),
                    other => Err(other),
                }
            }

            fn slice(elements: &Elements) -> Option<&[Self]> {
                match elements {
                    Elements::$variant(values) => Some(values),
                    _ => None,
                }
            }

            #[inline]
            fn memory(values: &[Self]) -> &[u8] {
                crate::mem::bytes_of(values)
            }

            #[inline]
            fn copied(bytes: &[u8]) -> Option<Vec<Self>> {
                crate::mem::$cast::copied(bytes)
            }

            #[inline]
            fn viewed(bytes: &[u8]) -> Option<&[Self]> {
                crate::mem::$cast::viewed(bytes)
            }

            #[inline]
            fn to_number(self) -> Number {
                let $value = self;
                $to
            }

            #[inline]
            fn from_number($number: Number) -> Option<Self> {
                $from
            }
        }
    )*};
}

elements! {
    Bool bool, checked, |v| Number::Bool(v), |n| match n {
        Number::Bool(value) => Some(value),
        _ => None,
    };
    U8 u8, plain, |v| Number::Unsigned(v.into()), |n| exact_int(n);
    U16 u16, plain, |v| Number::Unsigned(v.into()), |n| exact_int(n);
    U32 u32, plain, |v| Number::Unsigned(v.into()), |n| exact_int(n);
    U64 u64, plain, |v| Number::Unsigned(v), |n| exact_int(n);
    I8 i8, plain, |v| Number::Signed(v.into()), |n| exact_int(n);
    I16 i16, plain, |v| Number::Signed(v.into()), |n| exact_int(n);
    I32 i32, plain, |v| Number::Signed(v.into()), |n| exact_int(n);
    I64 i64, plain, |v| Number::Signed(v), |n| exact_int(n);
    F16 f16, plain, |v| Number::Float(v.to_f64()), |n| narrowed(n, f16::from_f64, f16::to_f64);
    BF16 bf16, plain, |v| Number::Float(v.to_f64()), |n| narrowed(n, bf16::from_f64, bf16::to_f64);
    F32 f32, plain, |v| Number::Float(v.into()), |n| narrowed(
        n,
        #[allow(clippy::cast_possible_truncation)] |v| v as f32,
        f64::from
    );
    F64 f64, plain, |v| Number::Float(v), |n| exact_float(n);
    C64 Complex<f32>, plain, |v| Number::Complex(v.re.into(), v.im.into()), |n| match n {
        Number::Complex(re, im) => Some(Complex::new(
            f32::from_number(Number::Float(re))?,
            f32::from_number(Number::Float(im))?,
        )),
        real => f32::from_number(real).map(|re| Complex::new(re, 0.0)),
    };
    C128 Complex<f64>, plain, |v| Number::Complex(v.re, v.im), |n| match n {
        Number::Complex(re, im) => Some(Complex::new(re, im)),
        real => exact_float(real).map(|re| Complex::new(re, 0.0)),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_tags_come_back() {
        for dtype in KNOWN {
            assert_eq!(&DType::from_name(dtype.name()), dtype);
            if let (Some(tag), false) = (dtype.typed_array_tag(), dtype.is_complex()) {
                assert_eq!(DType::from_typed_array_tag(tag.into()), Some((dtype.clone(), false)));
            }
        }
        assert_eq!(DType::from_name("posit16").name(), "posit16");
        assert_eq!(DType::from_typed_array_tag(76), None);
        assert_eq!(DType::from_typed_array_tag(64 + 256), None);
    }

    #[test]
    fn sizes_do_not_wrap() {
        assert_eq!(DType::F32.byte_len(3), Some(12));
        assert_eq!(DType::F4.byte_len(4), Some(2));
        assert_eq!(DType::F4.byte_len(3), None);
        assert_eq!(DType::F6E2M3.byte_len(4), Some(3));
        assert_eq!(DType::F64.byte_len(usize::MAX / 8 + 1), None);
        assert_eq!(DType::F4.byte_len(usize::MAX), None);
    }

    #[test]
    fn numbers_convert_exactly_or_not_at_all() {
        assert_eq!(u8::from_number(Number::Signed(-1)), None);
        assert_eq!(u8::from_number(Number::Float(255.0)), Some(255));
        assert_eq!(u8::from_number(Number::Float(0.5)), None);
        assert_eq!(i64::from_number(Number::Float(-0.0)), None);
        assert_eq!(i64::from_number(Number::Unsigned(u64::MAX)), None);
        assert_eq!(f32::from_number(Number::Unsigned(1 << 24)), Some(16_777_216.0));
        assert_eq!(f32::from_number(Number::Unsigned((1 << 24) + 1)), None);
        assert_eq!(f64::from_number(Number::Unsigned(u64::MAX)), None);
        assert_eq!(f16::from_number(Number::Float(0.1)), None);
        assert_eq!(bf16::from_number(Number::Float(1.5)), Some(bf16::from_f32(1.5)));
        assert_eq!(
            double_to_single(f64::from_bits(0x7ff0_0000_2000_0000)).unwrap().to_bits(),
            0x7f80_0001
        );
        assert_eq!(double_to_single(f64::from_bits(0x7ff0_0000_1000_0000)), None);
        assert_eq!(double_to_single(0.1), None);
    }
}
