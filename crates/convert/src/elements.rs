//! Elements of tensors: collects bytes into typed memory, and converts elements from and to numbers.

use half::{bf16, f16};
use num_complex::Complex;
use tenarc::tensor::{Element, TensorMeta};
use tenarc::value::Numbers;
use tenarc::{DType, DynTensor, Error, Result};

use crate::support::{reserve, swap_words};

/// One number of any element type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Complex(f64, f64),
}

/// An element type whose values can be converted from and to [`Number`].
pub trait Numeric: Element + Copy {
    fn as_number(self) -> Number;

    /// Returns the element that is equal to an integer, or nearest to a float. `None` if the number does not fit.
    fn nearest(number: Number) -> Option<Self>;

    /// Appends elements that are given as little-endian bytes.
    fn gather(values: &mut Vec<Self>, bytes: &[u8]) -> Result<()>;
}

/// Evaluates `$do` with the Rust type of the dtype as `$type`, or `$raw` if the dtype has no Rust type.
macro_rules! with_type {
    ($dtype:expr, $type:ident => $do:expr, _ => $raw:expr) => {
        $crate::elements::with_type!(
            @ $dtype, $type => $do, _ => $raw;
            Bool bool, U8 u8, U16 u16, U32 u32, U64 u64, I8 i8, I16 i16, I32 i32, I64 i64,
            F16 half::f16, BF16 half::bf16, F32 f32, F64 f64,
            C64 num_complex::Complex<f32>, C128 num_complex::Complex<f64>
        )
    };
    (@ $dtype:expr, $type:ident => $do:expr, _ => $raw:expr; $($variant:ident $element:ty),*) => {
        match $dtype {
            $(tenarc::DType::$variant => {
                type $type = $element;
                $do
            })*
            _ => $raw,
        }
    };
}
pub(crate) use with_type;

/// Makes a tensor of the elements that `blocks` passes on as little-endian bytes. Each block must hold whole elements.
/// Memory for `len` bytes is reserved at once, so the caller must know that so many bytes will come.
pub fn collected(
    meta: &TensorMeta,
    len: usize,
    blocks: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()>,
) -> Result<DynTensor> {
    let (shape, order) = (&meta.shape, meta.order);
    with_type!(
        meta.dtype,
        A => {
            let mut values: Vec<A> = Vec::new();
            reserve(&mut values, len / size_of::<A>())?;
            blocks(&mut |block| A::gather(&mut values, block))?;
            DynTensor::from_vec(shape, order, values)
        },
        _ => {
            let mut bytes = Vec::new();
            reserve(&mut bytes, len)?;
            blocks(&mut |block| {
                bytes.extend_from_slice(block);
                Ok(())
            })?;
            DynTensor::new(meta.dtype.clone(), shape, order, bytes)
        }
    )
}

/// Returns whether a dtype has a Rust type. Elements of other dtypes are handled as bytes.
pub fn is_typed(dtype: &DType) -> bool {
    with_type!(
        dtype,
        A => {
            let _: Option<A> = None;
            true
        },
        _ => false
    )
}

/// Returns a packed sequence of elements that are given as little-endian bytes. `None` if the dtype has no Rust type.
pub fn packed(dtype: &DType, bytes: &[u8]) -> Result<Option<Numbers>> {
    with_type!(
        dtype,
        A => {
            let mut values: Vec<A> = Vec::new();
            A::gather(&mut values, bytes)?;
            Ok(Some(values.into()))
        },
        _ => Ok(None)
    )
}

/// Passes the elements of a row-major tensor to `put` as numbers. If the dtype has no Rust type, it passes the bytes.
pub fn each_number(tensor: &DynTensor, put: &mut dyn FnMut(Number) -> Result<()>) -> Result<()> {
    with_type!(
        tensor.dtype(),
        A => tensor.as_slice::<A>()?.iter().try_for_each(|value| put(value.as_number())),
        _ => tensor.le_bytes().iter().try_for_each(|&byte| put(Number::Unsigned(byte.into())))
    )
}

/// Returns the numbers of a packed sequence. `None` if their dtype has no Rust type.
pub fn numbers(numbers: &Numbers) -> Option<Vec<Number>> {
    with_type!(
        numbers.dtype(),
        A => Some(numbers.as_slice::<A>()?.iter().map(|value| value.as_number()).collect()),
        _ => None
    )
}

/// Makes a tensor of numbers that were read from text. Floats are rounded to the dtype: a text has only as many digits
/// as are needed to distinguish the values of the dtype. If the dtype has no Rust type, the numbers are bytes.
pub fn from_numbers(meta: &TensorMeta, numbers: &[Number]) -> Result<DynTensor> {
    fn all<A: Numeric>(numbers: &[Number]) -> Result<Vec<A>> {
        let element = |&number| A::nearest(number).ok_or_else(|| does_not_fit(number, &A::DTYPE));
        numbers.iter().map(element).collect()
    }
    let (shape, order) = (&meta.shape, meta.order);
    with_type!(
        meta.dtype,
        A => DynTensor::from_vec(shape, order, all::<A>(numbers)?),
        _ => DynTensor::new(meta.dtype.clone(), shape, order, all::<u8>(numbers)?)
    )
}

#[cold]
fn does_not_fit(number: Number, dtype: &DType) -> Error {
    let number = match number {
        Number::Bool(value) => value.to_string(),
        Number::Unsigned(value) => value.to_string(),
        Number::Signed(value) => value.to_string(),
        Number::Float(value) => value.to_string(),
        Number::Complex(re, im) => format!("{re}{im:+}i"),
    };
    Error::data(format!("element {number} cannot be stored as {dtype}"))
}

/// Returns the float that is equal to an integer, if there is one.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
pub fn int_to_float(value: i128) -> Option<f64> {
    let float = value as f64;
    (float as i128 == value && value != i128::MAX).then_some(float)
}

/// Returns the integer that is equal to a float, if there is one. Negative zero has none: its sign would be lost.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::float_cmp)]
fn float_to_int(value: f64) -> Option<i128> {
    // `as` saturates at floats outside of this range.
    const END: f64 = (1u128 << 127) as f64;
    let exact = value.trunc() == value && (-END..END).contains(&value);
    (exact && !(value == 0.0 && value.is_sign_negative())).then_some(value as i128)
}

fn integer(number: Number) -> Option<i128> {
    match number {
        Number::Unsigned(value) => Some(value.into()),
        Number::Signed(value) => Some(value.into()),
        Number::Float(value) => float_to_int(value),
        Number::Bool(_) | Number::Complex(..) => None,
    }
}

fn double(number: Number) -> Option<f64> {
    match number {
        Number::Float(value) => Some(value),
        Number::Unsigned(value) => int_to_float(value.into()),
        Number::Signed(value) => int_to_float(value.into()),
        Number::Bool(_) | Number::Complex(..) => None,
    }
}

/// Converts a number to a float with `narrow`. Returns `None` if an integer would change, or if a finite float would
/// become infinite.
#[allow(clippy::float_cmp)]
fn narrowed<T: Copy + Into<f64>>(number: Number, narrow: impl Fn(f64) -> T) -> Option<T> {
    let value = double(number)?;
    let result = narrow(value);
    let wide: f64 = result.into();
    let fits = match number {
        Number::Float(_) => wide.is_finite() || !value.is_finite(),
        _ => wide == value,
    };
    fits.then_some(result)
}

/// Rounds to a float of 16 bits, once. The functions of `half` round to `f32` first.
fn rounded(dtype: &DType, value: f64) -> u16 {
    dtype.encode_f16(value).unwrap_or_default()
}

#[allow(clippy::cast_possible_truncation)]
fn single(number: Number) -> Option<f32> {
    narrowed(number, |value| value as f32)
}

fn gather_plain<A: Element + bytemuck::Pod>(values: &mut Vec<A>, bytes: &[u8]) -> Result<()> {
    let size = size_of::<A>();
    if !bytes.len().is_multiple_of(size) {
        let (found, dtype) = (bytes.len(), A::DTYPE);
        return Err(Error::data(format!(
            "{found} bytes are not a whole number of {dtype} elements"
        )));
    }
    let done = values.len();
    reserve(values, bytes.len() / size)?;
    values.resize(done + bytes.len() / size, A::zeroed());
    let new = bytemuck::must_cast_slice_mut(values.get_mut(done..).unwrap_or_default());
    new.copy_from_slice(bytes);
    if cfg!(target_endian = "big") {
        swap_words(new, A::DTYPE.word());
    }
    Ok(())
}

macro_rules! numeric {
    ($($type:ty, |$value:ident| $to:expr, |$number:ident| $from:expr;)*) => {$(
        impl Numeric for $type {
            fn as_number(self) -> Number {
                let $value = self;
                $to
            }

            fn nearest($number: Number) -> Option<Self> {
                $from
            }

            fn gather(values: &mut Vec<Self>, bytes: &[u8]) -> Result<()> {
                gather_plain(values, bytes)
            }
        }
    )*};
}

numeric! {
    u8, |v| Number::Unsigned(v.into()), |n| integer(n)?.try_into().ok();
    u16, |v| Number::Unsigned(v.into()), |n| integer(n)?.try_into().ok();
    u32, |v| Number::Unsigned(v.into()), |n| integer(n)?.try_into().ok();
    u64, |v| Number::Unsigned(v), |n| integer(n)?.try_into().ok();
    i8, |v| Number::Signed(v.into()), |n| integer(n)?.try_into().ok();
    i16, |v| Number::Signed(v.into()), |n| integer(n)?.try_into().ok();
    i32, |v| Number::Signed(v.into()), |n| integer(n)?.try_into().ok();
    i64, |v| Number::Signed(v), |n| integer(n)?.try_into().ok();
    f16, |v| Number::Float(v.to_f64()), |n| narrowed(n, |v| f16::from_bits(rounded(&DType::F16, v)));
    bf16, |v| Number::Float(v.to_f64()), |n| narrowed(n, |v| bf16::from_bits(rounded(&DType::BF16, v)));
    f32, |v| Number::Float(v.into()), |n| single(n);
    f64, |v| Number::Float(v), |n| double(n);
    Complex<f32>, |v| Number::Complex(v.re.into(), v.im.into()), |n| match n {
        Number::Complex(re, im) => {
            Some(Complex::new(single(Number::Float(re))?, single(Number::Float(im))?))
        }
        real => single(real).map(|re| Complex::new(re, 0.0)),
    };
    Complex<f64>, |v| Number::Complex(v.re, v.im), |n| match n {
        Number::Complex(re, im) => Some(Complex::new(re, im)),
        real => double(real).map(|re| Complex::new(re, 0.0)),
    };
}

impl Numeric for bool {
    fn as_number(self) -> Number {
        Number::Bool(self)
    }

    fn nearest(number: Number) -> Option<Self> {
        match number {
            Number::Bool(value) => Some(value),
            _ => None,
        }
    }

    fn gather(values: &mut Vec<Self>, bytes: &[u8]) -> Result<()> {
        if let Some(byte) = bytes.iter().find(|&&byte| byte > 1) {
            return Err(Error::data(format!(
                "a bool is stored as the byte {byte}; it must be 0 or 1"
            )));
        }
        reserve(values, bytes.len())?;
        values.extend(bytes.iter().map(|&byte| byte == 1));
        Ok(())
    }
}
