//! [`Elements`], a typed vector of the elements of a tensor whose dtype is known at run time.

mod bytes;
mod element;
mod f8;
mod plain;
mod rounding;
mod show;

use num_complex::Complex;

pub use bytes::{copied, le_bytes, viewed};
use element::Convert as _;
pub use element::Element;
use rounding::{nearest_bf16, nearest_f16};
pub use show::{FirstOf, show_bytes_of_tensor, show_tensor};

use crate::dtype::{DType, for_each_dtype};
use crate::error::{Error, Result};
use crate::mem;
use crate::number::Number;
use crate::shape::Shape;
use crate::strided::{Axis, positions};

macro_rules! define {
    (
        {}
        typed { $($(#[$doc:meta])* $variant:ident: $type:ty { $($row:tt)* })* }
        untyped $others:tt
    ) => {
        /// The elements of a tensor whose dtype is known at run time.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Elements {
            $($variant(Vec<$type>),)*
            /// Little-endian bytes, for a dtype without a Rust type.
            Raw(DType, Vec<u8>),
        }
    };
}

for_each_dtype!(define {});

/// Evaluates `$do` with the typed vector, or `$raw` with dtype and bytes.
macro_rules! each {
    ($($given:tt)*) => {
        crate::dtype::for_each_dtype!(crate::elements::each_variant { $($given)* })
    };
}

macro_rules! each_variant {
    (
        { $elements:expr, $values:ident => $do:expr, ($dtype:ident, $bytes:ident) => $raw:expr }
        typed { $($(#[$doc:meta])* $variant:ident: $type:ty { $($row:tt)* })* }
        untyped $others:tt
    ) => {
        match $elements {
            $(Elements::$variant($values) => $do,)*
            Elements::Raw($dtype, $bytes) => $raw,
        }
    };
}

/// Evaluates `$do` with `$alias` as the Rust type of the dtype, or `$raw` if there is none.
macro_rules! with_type {
    ($($given:tt)*) => {
        crate::dtype::for_each_dtype!(crate::elements::each_type { $($given)* })
    };
}

macro_rules! each_type {
    (
        { $dtype:expr, $alias:ident => $do:expr, _ => $raw:expr }
        typed { $($(#[$doc:meta])* $variant:ident: $type:ty { $($row:tt)* })* }
        untyped $others:tt
    ) => {
        match $dtype {
            $(crate::dtype::DType::$variant => {
                type $alias = $type;
                $do
            })*
            _ => $raw,
        }
    };
}

use {each, each_variant};
pub(crate) use {each_type, with_type};

impl Elements {
    pub fn dtype(&self) -> DType {
        fn of<A: Element>(_: &[A]) -> DType {
            A::DTYPE
        }
        each!(self, values => of(values), (dtype, _bytes) => dtype.clone())
    }

    /// The number of elements. For a dtype of unknown size, the number of bytes.
    pub fn len(&self) -> usize {
        each!(self, values => values.len(), (dtype, bytes) => {
            bytes.len().saturating_mul(8) / dtype.bits().unwrap_or(8)
        })
    }

    pub fn byte_len(&self) -> usize {
        each!(self, values => size_of_val(values.as_slice()), (_dtype, bytes) => bytes.len())
    }

    /// The size of the largest number that [`holding`](Self::holding) makes, in bytes.
    pub const MAX_NUMBER: u64 = size_of::<Complex<f64>>() as u64;

    /// The numbers as elements of the first of bool, i64, u64, f64 and c128 that can represent all of
    /// them exactly. `None` if none can.
    pub fn holding(numbers: &[Number]) -> Option<Self> {
        fn all<A: Element>(numbers: &[Number]) -> Option<Elements> {
            let mut values = Vec::with_capacity(numbers.len());
            for &number in numbers {
                values.push(A::from_number(number)?);
            }
            Some(A::into_elements(values))
        }
        let integers = numbers.iter().all(|n| matches!(n, Number::Unsigned(_) | Number::Signed(_)));
        if integers {
            return all::<i64>(numbers).or_else(|| all::<u64>(numbers));
        }
        all::<bool>(numbers)
            .or_else(|| all::<f64>(numbers))
            .or_else(|| all::<Complex<f64>>(numbers))
    }

    /// The elements of a tensor that is written as a plain array. `are_single` says whether all numbers are floats of
    /// single precision, or of half. They become `f32`, as in a packed sequence.
    pub fn of_plain_array(numbers: &[Number], are_single: bool) -> Result<Self> {
        let singles = || -> Option<Self> {
            let values = numbers.iter().map(|&number| f32::from_number(number));
            values.collect::<Option<Vec<_>>>().map(Self::F32)
        };
        let elements = if are_single && !numbers.is_empty() { singles() } else { None };
        elements
            .or_else(|| Self::holding(numbers))
            .ok_or_else(|| Error::data("no dtype can represent all elements of the tensor exactly"))
    }

    /// Converts numbers that were read from a human-readable format. Floats are rounded to the dtype:
    /// such formats only contain as many digits as are needed to distinguish its values.
    pub fn from_plain(dtype: &DType, numbers: &[Number]) -> Result<Self> {
        /// The nearest value. `None` if a finite number would become infinite.
        fn near(value: f64, nearest: f64) -> Option<f64> {
            (nearest.is_finite() || !value.is_finite()).then_some(nearest)
        }
        #[allow(clippy::cast_possible_truncation)]
        fn single(value: f64) -> Option<f64> {
            near(value, f64::from(value as f32))
        }
        fn rounded<A: Element>(number: Number) -> Option<A> {
            let float = |value: f64| match A::DTYPE {
                DType::F32 => single(value),
                DType::F16 => near(value, nearest_f16(value).to_f64()),
                DType::BF16 => near(value, nearest_bf16(value).to_f64()),
                _ => None,
            };
            A::from_number(number).or_else(|| match number {
                Number::Float(value) => A::from_number(Number::Float(float(value)?)),
                Number::Complex(re, im) if A::DTYPE == DType::C64 => {
                    A::from_number(Number::Complex(single(re)?, single(im)?))
                }
                _ => None,
            })
        }
        fn all<A: Element>(numbers: &[Number]) -> Result<Elements> {
            numbers
                .iter()
                .map(|&number| rounded::<A>(number).ok_or_else(|| does_not_fit(number, &A::DTYPE)))
                .collect::<Result<Vec<A>>>()
                .map(A::into_elements)
        }
        with_type!(
            dtype,
            A => all::<A>(numbers),
            _ => match all::<u8>(numbers)? {
                Self::U8(bytes) => Ok(Self::Raw(dtype.clone(), bytes)),
                other => Ok(other),
            }
        )
    }

    /// Converts the elements to another type. It is an error if a conversion is not exact.
    pub fn cast<A: Element>(self) -> Result<Vec<A>> {
        let elements = match A::from_elements(self) {
            Ok(values) => return Ok(values),
            Err(elements) => elements,
        };
        let mut values = Vec::new();
        // Read by code that does not know `A`, and so is not compiled for each of them.
        let mut numbers = [Number::Unsigned(0); 128];
        loop {
            let Some(some) = elements.numbers(values.len(), &mut numbers) else {
                let (from, to) = (elements.dtype(), A::DTYPE);
                return Err(Error::mismatch(format!("{from} elements do not convert to {to}")));
            };
            if some.is_empty() {
                return Ok(values);
            }
            // Not before it is known that the elements are numbers.
            values.reserve_exact(elements.len() - values.len());
            for &number in some {
                let value = A::from_number(number);
                values.push(value.ok_or_else(|| does_not_fit(number, &A::DTYPE))?);
            }
        }
    }

    /// Writes the numbers from element `from` on to `out`. Returns those that there are, and `None` if the elements are no
    /// numbers.
    fn numbers<'o>(&self, from: usize, out: &'o mut [Number]) -> Option<&'o [Number]> {
        fn of<'o, A: Element>(values: &[A], from: usize, out: &'o mut [Number]) -> &'o [Number] {
            let values = values.get(from..).unwrap_or_default();
            let count = values.len().min(out.len());
            out.iter_mut().zip(values).for_each(|(to, value)| *to = value.to_number());
            out.get(..count).unwrap_or_default()
        }
        each!(self, values => Some(of(values, from, out)), (_dtype, _bytes) => None)
    }

    /// Changes elements of this shape from column-major to row-major order. It is an error if the dtype is packed or
    /// unknown, or if the number of elements does not match the shape.
    pub fn row_major(self, shape: &Shape) -> Result<Self> {
        fn turned<T: Copy>(values: &[T], shape: &Shape) -> Result<Vec<T>> {
            let mut stride = 1;
            let axes: Vec<Axis> = shape
                .iter()
                .map(|&count| {
                    let axis = Axis { count, stride };
                    stride = stride.saturating_mul(count.cast_signed());
                    axis
                })
                .collect();
            let mut turned = Vec::with_capacity(values.len());
            turned.extend(positions(0, &axes).map_while(|at| values.get(at)));
            if turned.len() == values.len() && shape.element_count() == Some(values.len()) {
                Ok(turned)
            } else {
                let found = values.len();
                Err(Error::data(format!("{found} elements do not fit shape {shape:?}")))
            }
        }
        fn of<A: Element>(values: &[A], shape: &Shape) -> Result<Elements> {
            turned(values, shape).map(A::into_elements)
        }
        each!(&self, values => of(values, shape), (dtype, bytes) => match dtype.bits() {
            Some(8) => Ok(Self::Raw(dtype.clone(), turned(bytes, shape)?)),
            _ => Err(Error::unsupported(format!("elements of {dtype} cannot be put in another order"))),
        })
    }

    /// Returns the vector as a `T` if `T` is the type of the vector.
    pub fn into_vec_as<T>(self) -> Option<T> {
        self.into_any_vec()?.into()
    }

    /// The vector, whose type is only asked for later.
    pub fn into_any_vec(self) -> Option<mem::AnyVec> {
        each!(self, values => Some(values.into()), (_dtype, _bytes) => None)
    }
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
    Error::mismatch(format!("element {number} cannot be represented exactly as {dtype}"))
}
