//! Converts the elements of tensors to numbers, for all known dtypes whose elements take whole bytes.

mod cast;
mod numbers;
mod quad;

use half::{bf16, f16};
use tenarc::DType;

pub use cast::{Cast, Whole, did_you_mean, put};
pub use numbers::{Blocks, Numbers};
use quad::Rounding;

/// One element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Element {
    Bool(bool),
    Int(i128),
    /// A float, and the width of its type in bits, which decides how many digits are printed.
    Float(f64, u8),
    Complex(f64, f64, u8),
}

/// Returns the number of bytes of an element. `None` if the elements are not whole bytes, or of unknown size.
pub fn size(dtype: &DType) -> Option<usize> {
    dtype.bits().filter(|bits| bits % 8 == 0).map(|bits| bits / 8)
}

/// Returns whether the elements can be decoded to numbers.
pub fn is_decoded(dtype: &DType) -> bool {
    size(dtype).is_some_and(|size| decode(dtype, &[0; 16][..size.min(16)]).is_some())
}

/// Returns whether the elements are integers (or bools).
pub fn is_integer(dtype: &DType) -> bool {
    use DType::{Bool, I8, I16, I32, I64, U8, U16, U32, U64};
    matches!(dtype, Bool | U8 | U16 | U32 | U64 | I8 | I16 | I32 | I64)
}

/// Decodes one element. `None` if `bytes` have the wrong length or the dtype cannot be decoded.
pub fn decode(dtype: &DType, bytes: &[u8]) -> Option<Element> {
    macro_rules! from {
        ($type:ty) => {
            <$type>::from_le_bytes(bytes.try_into().ok()?)
        };
    }
    Some(match dtype {
        DType::Bool => Element::Bool(from!(u8) != 0),
        DType::U8 => Element::Int(from!(u8).into()),
        DType::U16 => Element::Int(from!(u16).into()),
        DType::U32 => Element::Int(from!(u32).into()),
        DType::U64 => Element::Int(from!(u64).into()),
        DType::I8 => Element::Int(from!(i8).into()),
        DType::I16 => Element::Int(from!(i16).into()),
        DType::I32 => Element::Int(from!(i32).into()),
        DType::I64 => Element::Int(from!(i64).into()),
        DType::F16 => Element::Float(from!(f16).to_f64(), 16),
        DType::BF16 => Element::Float(from!(bf16).to_f64(), 16),
        DType::F32 => Element::Float(from!(f32).into(), 32),
        DType::F64 => Element::Float(from!(f64), 64),
        DType::F128 => Element::Float(quad::to_double(from!(u128), Rounding::Nearest), 64),
        DType::C64 => {
            let (re, im) = bytes.split_at_checked(4)?;
            let part = |bytes: &[u8]| Some(f32::from_le_bytes(bytes.try_into().ok()?).into());
            Element::Complex(part(re)?, part(im)?, 32)
        }
        DType::C128 => {
            let (re, im) = bytes.split_at_checked(8)?;
            let part = |bytes: &[u8]| Some(f64::from_le_bytes(bytes.try_into().ok()?));
            Element::Complex(part(re)?, part(im)?, 64)
        }
        _ => Element::Float(dtype.decode_f8(from!(u8))?, 16),
    })
}

/// Decodes the whole elements in `bytes` and appends them to `numbers`. A complex element gives two numbers.
pub fn widen(dtype: &DType, bytes: &[u8], numbers: &mut Vec<f64>) {
    macro_rules! each {
        ($type:ty, $widen:expr) => {
            numbers.extend(
                bytes.as_chunks().0.iter().map(|&bytes| $widen(<$type>::from_le_bytes(bytes))),
            )
        };
    }
    match dtype {
        DType::F32 | DType::C64 => each!(f32, f64::from),
        DType::F64 | DType::C128 => each!(f64, |value| value),
        DType::F16 => each!(f16, f16::to_f64),
        DType::BF16 => each!(bf16, bf16::to_f64),
        DType::U8 | DType::Bool => each!(u8, f64::from),
        other => {
            let Some(size) = size(other) else { return };
            numbers.extend(bytes.chunks_exact(size).filter_map(|bytes| {
                Some(match decode(other, bytes)? {
                    #[allow(clippy::cast_precision_loss)]
                    Element::Int(value) => value as f64,
                    Element::Float(value, _) | Element::Complex(value, _, _) => value,
                    Element::Bool(value) => f64::from(u8::from(value)),
                })
            }));
        }
    }
}

impl Element {
    /// Returns the number as text, with the fewest digits that identify it exactly.
    pub fn text(self) -> String {
        match self {
            Self::Bool(value) => value.to_string(),
            Self::Int(value) => value.to_string(),
            Self::Float(value, bits) => float(value, bits),
            Self::Complex(re, im, bits) => {
                let im = float(im, bits);
                let sign = if im.starts_with('-') { "" } else { "+" };
                format!("{}{sign}{im}j", float(re, bits))
            }
        }
    }

    /// Returns the element as JSON. A complex number becomes a pair. A number that JSON lacks, such as NaN, becomes a
    /// string.
    pub fn json(self) -> serde_json::Value {
        let number = |value: f64| match serde_json::Number::from_f64(value) {
            Some(number) => serde_json::Value::Number(number),
            None => value.to_string().into(),
        };
        match self {
            Self::Bool(value) => value.into(),
            Self::Int(value) => integer_json(value),
            Self::Float(value, _) => number(value),
            Self::Complex(re, im, _) => serde_json::Value::Array(vec![number(re), number(im)]),
        }
    }
}

/// Returns an integer as a JSON number, or as a string if it has more than 64 bits.
pub fn integer_json(value: i128) -> serde_json::Value {
    match (i64::try_from(value), u64::try_from(value)) {
        (Ok(value), _) => value.into(),
        (_, Ok(value)) => value.into(),
        _ => value.to_string().into(),
    }
}

#[allow(clippy::cast_possible_truncation)]
fn float(value: f64, bits: u8) -> String {
    let shown = if bits == 64 { format!("{value:?}") } else { format!("{:?}", value as f32) };
    shown.trim_end_matches(".0").to_owned() + if shown.ends_with(".0") { "." } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_numbers_in_their_own_width() {
        let text = |dtype, bytes: &[u8]| decode(&dtype, bytes).unwrap().text();
        assert_eq!(text(DType::F32, &0.1f32.to_le_bytes()), "0.1");
        assert_eq!(text(DType::F64, &1f64.to_le_bytes()), "1.");
        assert_eq!(text(DType::I64, &i64::MIN.to_le_bytes()), "-9223372036854775808");
        assert_eq!(text(DType::C64, &[0, 0, 128, 63, 0, 0, 0, 192]), "1.-2.j");
        assert_eq!(text(DType::F32, &f32::NAN.to_le_bytes()), "NaN");
        assert_eq!(decode(&DType::F4, &[0]), None);
    }

    #[test]
    fn widens_every_dtype_as_it_decodes_it() {
        for dtype in [DType::I8, DType::U64, DType::F16, DType::F8E4M3, DType::Bool, DType::F128] {
            let size = size(&dtype).unwrap();
            let mut bytes = vec![0; size];
            bytes[0] = 1;
            let mut numbers = Vec::new();
            widen(&dtype, &bytes, &mut numbers);
            let expected = match decode(&dtype, &bytes).unwrap() {
                Element::Bool(value) => f64::from(u8::from(value)),
                Element::Int(value) => f64::from(i8::try_from(value).unwrap()),
                Element::Float(value, _) | Element::Complex(value, ..) => value,
            };
            assert_eq!(numbers, [expected], "{dtype}");
        }
    }
}
