//! [`Element`], the Rust types that tensor elements can have.

use std::fmt;

use half::{bf16, f16};
use num_complex::Complex;

use super::Elements;
use crate::dtype::{DType, for_each_dtype};
use crate::number::{Number, exact_float, exact_int, narrowed};

mod sealed {
    use super::{Elements, Number};
    use crate::mem::Scalar;

    pub trait Sealed: Convert {
        fn into_elements(values: Vec<Self>) -> Elements;
        fn from_elements(elements: Elements) -> Result<Vec<Self>, Elements>;
        fn slice(elements: &Elements) -> Option<&[Self]>;
    }

    pub trait Convert: Scalar {
        fn to_number(self) -> Number;
        /// The number as an element, if that is exact.
        fn from_number(number: Number) -> Option<Self>;
    }
}

pub(super) use sealed::{Convert, Sealed};

/// A Rust type that elements of tensors can have: `bool`, `u8` to `u64`, `i8` to `i64`,
/// [`half::f16`], [`half::bf16`], `f32`, `f64`, and [`Complex`] of `f32` and `f64`.
///
/// This trait is sealed. Elements without a Rust type, such as FP8, can be read and written with
/// [`DynTensor`](crate::DynTensor).
///
/// ```
/// use tenarc::tensor::Element;
///
/// /// Loads a tensor of any element type, and names that type.
/// fn named<A: Element>(bytes: &[u8], path: &str) -> tenarc::Result<(Vec<A>, String)> {
///     Ok((tenarc::Archive::new(bytes)?.tensor(path)?, A::DTYPE.to_string()))
/// }
/// # let mut out = tenarc::OArchive::new(Vec::new())?;
/// # out.save(&std::collections::BTreeMap::from([("bias", vec![0.5f32; 6])]))?;
/// # let bytes = out.finish()?;
/// assert_eq!(named::<f32>(&bytes, "bias")?, (vec![0.5; 6], "f32".to_owned()));
/// # Ok::<(), tenarc::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a type that elements of tensors can have",
    label = "not an element",
    note = "elements are `bool`, integers of 8 to 64 bits, floats and complex numbers: see `tenarc::tensor::Element`",
    note = "the size of `usize` and `isize` differs between machines: use `u64` and `i64`, or `u32` and `i32`",
    note = "a field that holds arrays in something else, such as `Vec<Array1<f32>>`, takes no \
            `#[serde(with = \"tenarc::tensor\")]`: make it a `Vec<Tensor<_>>`"
)]
pub trait Element: sealed::Sealed + fmt::Debug + PartialEq + Send + Sync + 'static {
    /// The dtype of this element type.
    const DTYPE: DType;
}

macro_rules! elements {
    (
        {}
        typed { $($(#[$doc:meta])* $variant:ident: $type:ty { $($row:tt)* })* }
        untyped $others:tt
    ) => {$(
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
        }
    )*};
}

for_each_dtype!(elements {});

/// Implements the conversions from elements to numbers, and back if that is exact.
macro_rules! conversions {
    ($($type:ty, |$value:ident| $to:expr, |$number:ident| $from:expr;)*) => {$(
        impl Convert for $type {
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

conversions! {
    bool, |v| Number::Bool(v), |n| match n {
        Number::Bool(value) => Some(value),
        _ => None,
    };
    u8, |v| Number::Unsigned(v.into()), |n| exact_int(n);
    u16, |v| Number::Unsigned(v.into()), |n| exact_int(n);
    u32, |v| Number::Unsigned(v.into()), |n| exact_int(n);
    u64, |v| Number::Unsigned(v), |n| exact_int(n);
    i8, |v| Number::Signed(v.into()), |n| exact_int(n);
    i16, |v| Number::Signed(v.into()), |n| exact_int(n);
    i32, |v| Number::Signed(v.into()), |n| exact_int(n);
    i64, |v| Number::Signed(v), |n| exact_int(n);
    f16, |v| Number::Float(v.to_f64()), |n| narrowed(n, f16::from_f64, f16::to_f64);
    bf16, |v| Number::Float(v.to_f64()), |n| narrowed(n, bf16::from_f64, bf16::to_f64);
    f32, |v| Number::Float(v.into()), |n| narrowed(
        n,
        #[allow(clippy::cast_possible_truncation)] |v| v as f32,
        f64::from
    );
    f64, |v| Number::Float(v), |n| exact_float(n);
    Complex<f32>, |v| Number::Complex(v.re.into(), v.im.into()), |n| match n {
        Number::Complex(re, im) => Some(Complex::new(
            f32::from_number(Number::Float(re))?,
            f32::from_number(Number::Float(im))?,
        )),
        real => f32::from_number(real).map(|re| Complex::new(re, 0.0)),
    };
    Complex<f64>, |v| Number::Complex(v.re, v.im), |n| match n {
        Number::Complex(re, im) => Some(Complex::new(re, im)),
        real => exact_float(real).map(|re| Complex::new(re, 0.0)),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

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
    }
}
