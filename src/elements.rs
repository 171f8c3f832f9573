//! Elements of any dtype in typed memory.

use std::borrow::Cow;

use half::{bf16, f16};
use num_complex::Complex;
use serde::ser::{Serialize, SerializeSeq};

use crate::dtype::{DType, Element, Number, Sealed as _};
use crate::error::{Error, Result};
use crate::mem;
use crate::shape::Shape;
use crate::strided::{Axis, positions};

/// Elements of a dtype that is known at run time.
#[derive(Clone, Debug, PartialEq)]
pub enum Elements {
    Bool(Vec<bool>),
    U8(Vec<u8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
    U64(Vec<u64>),
    I8(Vec<i8>),
    I16(Vec<i16>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    F16(Vec<f16>),
    BF16(Vec<bf16>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    C64(Vec<Complex<f32>>),
    C128(Vec<Complex<f64>>),
    /// Little-endian bytes of a dtype without a Rust type.
    Raw(DType, Vec<u8>),
}

/// Does `$do` with the typed vector, or `$raw` with dtype and bytes.
macro_rules! each {
    ($elements:expr, $values:ident => $do:expr, ($dtype:ident, $bytes:ident) => $raw:expr) => {
        match $elements {
            Elements::Bool($values) => $do,
            Elements::U8($values) => $do,
            Elements::U16($values) => $do,
            Elements::U32($values) => $do,
            Elements::U64($values) => $do,
            Elements::I8($values) => $do,
            Elements::I16($values) => $do,
            Elements::I32($values) => $do,
            Elements::I64($values) => $do,
            Elements::F16($values) => $do,
            Elements::BF16($values) => $do,
            Elements::F32($values) => $do,
            Elements::F64($values) => $do,
            Elements::C64($values) => $do,
            Elements::C128($values) => $do,
            Elements::Raw($dtype, $bytes) => $raw,
        }
    };
}

/// Calls `$do` with `$type` standing for the Rust type of the dtype, or `$raw`.
macro_rules! with_type {
    ($dtype:expr, $type:ident => $do:expr, _ => $raw:expr) => {
        match $dtype {
            DType::Bool => {
                type $type = bool;
                $do
            }
            DType::U8 => {
                type $type = u8;
                $do
            }
            DType::U16 => {
                type $type = u16;
                $do
            }
            DType::U32 => {
                type $type = u32;
                $do
            }
            DType::U64 => {
                type $type = u64;
                $do
            }
            DType::I8 => {
                type $type = i8;
                $do
            }
            DType::I16 => {
                type $type = i16;
                $do
            }
            DType::I32 => {
                type $type = i32;
                $do
            }
            DType::I64 => {
                type $type = i64;
                $do
            }
            DType::F16 => {
                type $type = f16;
                $do
            }
            DType::BF16 => {
                type $type = bf16;
                $do
            }
            DType::F32 => {
                type $type = f32;
                $do
            }
            DType::F64 => {
                type $type = f64;
                $do
            }
            DType::C64 => {
                type $type = Complex<f32>;
                $do
            }
            DType::C128 => {
                type $type = Complex<f64>;
                $do
            }
            _ => $raw,
        }
    };
}

impl Elements {
    pub fn dtype(&self) -> DType {
        fn of<A: Element>(_: &[A]) -> DType {
            A::DTYPE
        }
        each!(self, values => of(values), (dtype, _bytes) => dtype.clone())
    }

    /// The number of elements; of bytes, for a dtype of unknown size.
    pub fn len(&self) -> usize {
        each!(self, values => values.len(), (dtype, bytes) => {
            bytes.len().saturating_mul(8) / dtype.bits().unwrap_or(8)
        })
    }

    pub fn byte_len(&self) -> usize {
        each!(self, values => size_of_val(values.as_slice()), (_dtype, bytes) => bytes.len())
    }

    /// The bytes in memory, if they are in document order.
    pub fn as_le_bytes(&self) -> Option<&[u8]> {
        fn of<A: Element>(values: &[A]) -> Option<&[u8]> {
            le_bytes(values)
        }
        each!(self, values => of(values), (_dtype, bytes) => Some(bytes))
    }

    pub fn to_le_bytes(&self) -> Vec<u8> {
        self.le_bytes().into_owned()
    }

    pub fn le_bytes(&self) -> Cow<'_, [u8]> {
        fn of<A: Element>(values: &[A]) -> Cow<'_, [u8]> {
            if let Some(bytes) = le_bytes(values) {
                return Cow::Borrowed(bytes);
            }
            let mut bytes = A::memory(values).to_vec();
            mem::swap_words(&mut bytes, A::DTYPE.word());
            Cow::Owned(bytes)
        }
        each!(self, values => of(values), (_dtype, bytes) => Cow::Borrowed(bytes))
    }

    pub fn copied_from_le(dtype: &DType, bytes: &[u8]) -> Result<Self> {
        with_type!(
            dtype,
            A => copied::<A>(bytes).map(A::into_elements),
            _ => Ok(Self::Raw(dtype.clone(), bytes.to_vec()))
        )
    }

    /// As [`Elements::copied_from_le`], without a copy where the bytes are the elements.
    pub fn from_le_bytes(dtype: &DType, bytes: Vec<u8>) -> Result<Self> {
        match dtype {
            DType::U8 => Ok(Self::U8(bytes)),
            _ => with_type!(
                dtype,
                A => copied::<A>(&bytes).map(A::into_elements),
                _ => Ok(Self::Raw(dtype.clone(), bytes))
            ),
        }
    }

    /// Elements that `blocks` hands over as little-endian bytes, a whole number of them at a time;
    /// `len` bytes together, which are sure to come.
    #[cfg_attr(not(any(feature = "arrow", feature = "torch")), allow(dead_code))]
    pub fn collected(
        dtype: &DType,
        len: usize,
        blocks: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()>,
    ) -> Result<Self> {
        with_type!(
            dtype,
            A => {
                let mut values: Vec<A> = Vec::new();
                crate::io::source::reserve(&mut values, len / size_of::<A>())?;
                blocks(&mut |block| {
                    values.extend_from_slice(&copied::<A>(block)?);
                    Ok(())
                })?;
                Ok(A::into_elements(values))
            },
            _ => {
                let mut bytes = Vec::new();
                crate::io::source::reserve(&mut bytes, len)?;
                blocks(&mut |block| {
                    bytes.extend_from_slice(block);
                    Ok(())
                })?;
                Ok(Self::Raw(dtype.clone(), bytes))
            }
        )
    }

    /// The narrowest of bool, i64, u64, f64 and c128 that holds all numbers exactly.
    pub fn holding(numbers: &[Number]) -> Option<Self> {
        fn all<A: Element>(numbers: &[Number]) -> Option<Elements> {
            let values = numbers.iter().map(|&number| A::from_number(number));
            values.collect::<Option<Vec<A>>>().map(A::into_elements)
        }
        let integers = numbers.iter().all(|n| matches!(n, Number::Unsigned(_) | Number::Signed(_)));
        if integers {
            return all::<i64>(numbers).or_else(|| all::<u64>(numbers));
        }
        all::<bool>(numbers)
            .or_else(|| all::<f64>(numbers))
            .or_else(|| all::<Complex<f64>>(numbers))
    }

    /// Numbers as a format for people holds them: floats are rounded to the dtype, which prints
    /// as many digits as tell its values apart.
    pub fn from_plain(dtype: &DType, numbers: &[Number]) -> Result<Self> {
        /// The nearest value; a finite number is not rounded to an infinite one.
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
                DType::F16 => near(value, f16::from_f64(value).to_f64()),
                DType::BF16 => near(value, bf16::from_f64(value).to_f64()),
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

    /// Hands over the elements as numbers; those of a dtype without a Rust type as bytes.
    #[cfg_attr(not(feature = "json"), allow(dead_code))]
    pub fn for_each(&self, put: &mut dyn FnMut(Number) -> Result<()>) -> Result<()> {
        each!(self, values => {
            values.iter().try_for_each(|value| put(value.to_number()))
        }, (_dtype, bytes) => {
            bytes.iter().try_for_each(|&byte| put(Number::Unsigned(byte.into())))
        })
    }

    /// The elements as another type, if all are held exactly.
    pub fn cast<A: Element>(self) -> Result<Vec<A>> {
        fn each_of<B: Element, A: Element>(values: &[B]) -> Result<Vec<A>> {
            let cast = |&value: &B| {
                let number = value.to_number();
                A::from_number(number).ok_or_else(|| does_not_fit(number, &A::DTYPE))
            };
            values.iter().map(cast).collect()
        }
        let elements = match A::from_elements(self) {
            Ok(values) => return Ok(values),
            Err(elements) => elements,
        };
        each!(&elements, values => each_of(values), (dtype, _bytes) => {
            Err(Error::data(format!("{dtype} elements do not convert to {}", A::DTYPE)))
        })
    }

    /// Column-major elements of a shape in row-major order; an error for packed and unknown dtypes, and
    /// where there are fewer than the shape tells.
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
            _ => Err(Error::data(format!("elements of {dtype} cannot be put in another order"))),
        })
    }

    /// The vector as a `T`, if that is what it is.
    pub fn into_vec_as<T>(self) -> Option<T> {
        each!(self, values => mem::vec_as(values).ok(), (_dtype, _bytes) => None)
    }

    /// Writes the elements one by one, for formats meant for people.
    /// A dtype without a Rust type gives its bytes.
    pub fn serialize_plain<S: SerializeSeq>(&self, seq: &mut S) -> Result<(), S::Error> {
        each!(self, values => {
            for &value in values {
                seq.serialize_element(&Plain(value))?;
            }
        }, (_dtype, bytes) => {
            for byte in bytes {
                seq.serialize_element(byte)?;
            }
        });
        Ok(())
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
    Error::data(format!("element {number} is no exact {dtype}"))
}

/// The elements' bytes, if memory order is document order.
#[inline]
pub fn le_bytes<A: Element>(values: &[A]) -> Option<&[u8]> {
    (cfg!(target_endian = "little") || A::DTYPE.word() == 1).then(|| A::memory(values))
}

/// A copy of elements in little-endian bytes.
#[inline]
pub fn copied<A: Element>(bytes: &[u8]) -> Result<Vec<A>> {
    let values = if cfg!(target_endian = "little") || A::DTYPE.word() == 1 {
        A::copied(bytes)
    } else {
        let mut swapped = bytes.to_vec();
        mem::swap_words(&mut swapped, A::DTYPE.word());
        A::copied(&swapped)
    };
    values.ok_or_else(|| not_elements::<A>(bytes))
}

#[cold]
fn not_elements<A: Element>(bytes: &[u8]) -> Error {
    if bytes.len().is_multiple_of(size_of::<A>())
        && let Some(byte) = bytes.iter().find(|&&byte| byte > 1)
    {
        return Error::data(format!("byte {byte} is no {}", A::DTYPE));
    }
    Error::data(format!("{} bytes are no whole number of {} elements", bytes.len(), A::DTYPE))
}

/// A view of little-endian elements, where they lie as they must in memory.
pub fn viewed<A: Element>(bytes: &[u8]) -> Result<&[A]> {
    if bytes.is_empty() {
        // No elements lie nowhere, so any address will do.
        return Ok(&[]);
    }
    if A::DTYPE.word() > 1 && cfg!(target_endian = "big") {
        return Err(Error::data(
            "a little-endian tensor cannot be borrowed here; read it into an owned array",
        ));
    }
    A::viewed(bytes).ok_or_else(|| not_viewable::<A>(bytes))
}

#[cold]
fn not_viewable<A: Element>(bytes: &[u8]) -> Error {
    let address = bytes.as_ptr() as usize;
    if address.is_multiple_of(align_of::<A>()) {
        return not_elements::<A>(bytes);
    }
    Error::data(format!(
        "a view of {} needs memory aligned to {} bytes, found address {address:#x}; read it into \
         an owned array or a CowArray",
        A::DTYPE,
        align_of::<A>()
    ))
}

/// One element as a plain number.
struct Plain<A>(A);

impl<A: Element> Serialize for Plain<A> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.to_number() {
            Number::Bool(value) => serializer.serialize_bool(value),
            Number::Unsigned(value) => serializer.serialize_u64(value),
            Number::Signed(value) => serializer.serialize_i64(value),
            Number::Float(value) => PlainFloat(value, A::DTYPE == DType::F64).serialize(serializer),
            Number::Complex(re, im) => {
                let double = A::DTYPE == DType::C128;
                (PlainFloat(re, double), PlainFloat(im, double)).serialize(serializer)
            }
        }
    }
}

/// A float and whether it is a double.
struct PlainFloat(f64, bool);

impl Serialize for PlainFloat {
    #[allow(clippy::cast_possible_truncation)]
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(value, double) = *self;
        // JSON has no such numbers; the names are those that `str::parse` takes.
        if !value.is_finite() && serializer.is_human_readable() {
            return serializer.collect_str(&value);
        }
        if double {
            serializer.serialize_f64(value)
        } else {
            serializer.serialize_f32(value as f32)
        }
    }
}
