//! Presents the elements of a typed array in a [`Value`](crate::Value) to visitors as a sequence of numbers.

use half::{bf16, f16};
use serde::de::{self, DeserializeSeed, Unexpected, Visitor};
use serde::forward_to_deserialize_any;

use super::{invalid, one_more, wrong_number};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::wire::{self, number::Numeric};

/// The type of the elements.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ElementKind {
    Bool,
    U8,
    U16,
    U32,
    U64,
    I8,
    I16,
    I32,
    I64,
    F16,
    BF16,
    F32,
    F64,
}

/// How an `f64` is converted if the visitor asks for an `f32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Narrowing {
    /// Rounded to the nearest `f32`, like plain numbers.
    Nearest,
    /// Only if the conversion is exact, like the elements of tensors.
    Exact,
}

impl From<wire::tensor::Kind> for Narrowing {
    fn from(kind: wire::tensor::Kind) -> Self {
        match kind {
            wire::tensor::Kind::Tensor => Self::Exact,
            wire::tensor::Kind::Numbers | wire::tensor::Kind::Bytes => Self::Nearest,
        }
    }
}

/// Passes the little-endian elements in `bytes` to a visitor, which must take all of them.
pub fn visit_numbers<'de, V: Visitor<'de>>(
    dtype: &DType,
    narrowing: Narrowing,
    bytes: &[u8],
    visitor: V,
) -> Result<V::Value> {
    let (kind, size) = match dtype {
        DType::Bool => (ElementKind::Bool, 1),
        DType::U8 => (ElementKind::U8, 1),
        DType::U16 => (ElementKind::U16, 2),
        DType::U32 => (ElementKind::U32, 4),
        DType::U64 => (ElementKind::U64, 8),
        DType::I8 => (ElementKind::I8, 1),
        DType::I16 => (ElementKind::I16, 2),
        DType::I32 => (ElementKind::I32, 4),
        DType::I64 => (ElementKind::I64, 8),
        DType::F16 => (ElementKind::F16, 2),
        DType::BF16 => (ElementKind::BF16, 2),
        DType::F32 => (ElementKind::F32, 4),
        DType::F64 => (ElementKind::F64, 8),
        other => {
            let what = format!("expected numbers, found elements of {other}; use a Tensor");
            return Err(Error::mismatch(what));
        }
    };
    let mut seq = TypedSeq { kind, narrowing, left: bytes.chunks_exact(size) };
    let value = visitor.visit_seq(&mut seq)?;
    match seq.left.len() {
        0 => Ok(value),
        left => {
            let what = format!("expected the end of a typed array, found {left} more elements");
            Err(Error::mismatch(what))
        }
    }
}

/// A sequence of elements.
struct TypedSeq<'a> {
    kind: ElementKind,
    narrowing: Narrowing,
    left: std::slice::ChunksExact<'a, u8>,
}

impl<'de> de::SeqAccess<'de> for &mut TypedSeq<'_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>> {
        let Some(bytes) = self.left.next() else { return Ok(None) };
        let (kind, narrowing) = (self.kind, self.narrowing);
        seed.deserialize(TypedElement { kind, narrowing, bytes, somes: 0 }).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left.len())
    }
}

#[derive(Clone, Copy)]
struct TypedElement<'a> {
    kind: ElementKind,
    narrowing: Narrowing,
    /// The bytes of the element.
    bytes: &'a [u8],
    /// The number of options that were entered: see [`one_more`].
    somes: u32,
}

impl TypedElement<'_> {
    fn word<const N: usize>(self) -> [u8; N] {
        self.bytes.first_chunk().copied().unwrap_or([0; N])
    }

    fn number(self) -> Numeric {
        let unsigned = |arg: u64| Numeric::Int { negative: false, arg: arg.into() };
        let signed = |value: i64| Numeric::Int {
            negative: value < 0,
            arg: if value < 0 { !value } else { value }.cast_unsigned().into(),
        };
        match self.kind {
            ElementKind::Bool | ElementKind::U8 => unsigned(u8::from_le_bytes(self.word()).into()),
            ElementKind::U16 => unsigned(u16::from_le_bytes(self.word()).into()),
            ElementKind::U32 => unsigned(u32::from_le_bytes(self.word()).into()),
            ElementKind::U64 => unsigned(u64::from_le_bytes(self.word())),
            ElementKind::I8 => signed(i8::from_le_bytes(self.word()).into()),
            ElementKind::I16 => signed(i16::from_le_bytes(self.word()).into()),
            ElementKind::I32 => signed(i32::from_le_bytes(self.word()).into()),
            ElementKind::I64 => signed(i64::from_le_bytes(self.word())),
            ElementKind::F16 => Numeric::Single(f16::from_le_bytes(self.word()).to_f32()),
            ElementKind::BF16 => Numeric::Single(bf16::from_le_bytes(self.word()).to_f32()),
            ElementKind::F32 => Numeric::Single(f32::from_le_bytes(self.word())),
            ElementKind::F64 => Numeric::Double(f64::from_le_bytes(self.word())),
        }
    }

    /// The element as a number. An error for a bool.
    fn checked_number(self, expected: &dyn de::Expected) -> Result<Numeric> {
        if self.kind == ElementKind::Bool {
            return Err(invalid(Unexpected::Other("bool"), expected));
        }
        Ok(self.number())
    }
}

macro_rules! numbers {
    ($($method:ident $visit:ident $type:ty, $kind:ident, $exact:ident;)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            if self.kind == ElementKind::$kind {
                return visitor.$visit(<$type>::from_le_bytes(self.word()));
            }
            let number = self.checked_number(&visitor)?;
            match number.$exact().and_then(|value| <$type>::try_from(value).ok()) {
                Some(value) => visitor.$visit(value),
                None => Err(wrong_number(number, &visitor)),
            }
        }
    )*};
}

impl<'de> de::Deserializer<'de> for TypedElement<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.kind {
            ElementKind::Bool => self.deserialize_bool(visitor),
            ElementKind::U8 => visitor.visit_u8(u8::from_le_bytes(self.word())),
            ElementKind::U16 => visitor.visit_u16(u16::from_le_bytes(self.word())),
            ElementKind::U32 => visitor.visit_u32(u32::from_le_bytes(self.word())),
            ElementKind::U64 => visitor.visit_u64(u64::from_le_bytes(self.word())),
            ElementKind::I8 => visitor.visit_i8(i8::from_le_bytes(self.word())),
            ElementKind::I16 => visitor.visit_i16(i16::from_le_bytes(self.word())),
            ElementKind::I32 => visitor.visit_i32(i32::from_le_bytes(self.word())),
            ElementKind::I64 => visitor.visit_i64(i64::from_le_bytes(self.word())),
            ElementKind::F16 => visitor.visit_f32(f16::from_le_bytes(self.word()).to_f32()),
            ElementKind::BF16 => visitor.visit_f32(bf16::from_le_bytes(self.word()).to_f32()),
            ElementKind::F32 => visitor.visit_f32(f32::from_le_bytes(self.word())),
            ElementKind::F64 => visitor.visit_f64(f64::from_le_bytes(self.word())),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match (self.kind, self.word()) {
            (ElementKind::Bool, [0]) => visitor.visit_bool(false),
            (ElementKind::Bool, [1]) => visitor.visit_bool(true),
            (ElementKind::Bool, [byte]) => {
                let what = format!("a bool is stored as the byte {byte}; it must be 0 or 1");
                Err(Error::data(what))
            }
            _ => Err(wrong_number(self.number(), &visitor)),
        }
    }

    numbers! {
        deserialize_u8 visit_u8 u8, U8, as_int;
        deserialize_u16 visit_u16 u16, U16, as_int;
        deserialize_u32 visit_u32 u32, U32, as_int;
        deserialize_u64 visit_u64 u64, U64, as_int;
        deserialize_i8 visit_i8 i8, I8, as_int;
        deserialize_i16 visit_i16 i16, I16, as_int;
        deserialize_i32 visit_i32 i32, I32, as_int;
        deserialize_i64 visit_i64 i64, I64, as_int;
        deserialize_f64 visit_f64 f64, F64, as_double;
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if self.kind == ElementKind::F32 {
            return visitor.visit_f32(f32::from_le_bytes(self.word()));
        }
        let number = self.checked_number(&visitor)?;
        let single = match self.narrowing {
            Narrowing::Nearest => number.to_single(),
            Narrowing::Exact => number.as_single(),
        };
        match single {
            Some(value) => visitor.visit_f32(value),
            None => Err(wrong_number(number, &visitor)),
        }
    }

    fn deserialize_i128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_any(visitor)
    }

    fn deserialize_u128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_any(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_some(Self { somes: one_more(self.somes)?, ..self })
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct enum
        identifier
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}
