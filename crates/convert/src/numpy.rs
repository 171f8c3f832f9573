//! Parses numpy's type strings, such as `<f4`, which several formats contain.

#[cfg(any(feature = "msgpack", feature = "npy"))]
pub mod columns;
#[cfg(any(feature = "msgpack", feature = "npy"))]
pub mod literal;
#[cfg(any(
    feature = "arrow",
    feature = "hdf5",
    feature = "msgpack",
    feature = "npy",
    feature = "parquet"
))]
pub mod times;

use tenarc::{DType, Error, Result};

/// Every dtype that both tenarc and numpy have, with the type string that numpy writes.
pub const KNOWN: [(DType, &str); 14] = [
    (DType::Bool, "|b1"),
    (DType::U8, "|u1"),
    (DType::U16, "<u2"),
    (DType::U32, "<u4"),
    (DType::U64, "<u8"),
    (DType::I8, "|i1"),
    (DType::I16, "<i2"),
    (DType::I32, "<i4"),
    (DType::I64, "<i8"),
    (DType::F16, "<f2"),
    (DType::F32, "<f4"),
    (DType::F64, "<f8"),
    (DType::C64, "<c8"),
    (DType::C128, "<c16"),
];

/// Returns numpy's type string of a dtype, if it has one.
pub fn descr_of(dtype: &DType) -> Option<&'static str> {
    KNOWN.iter().find(|(known, _)| known == dtype).map(|(_, descr)| *descr)
}

/// Returns the dtype of a type string without its byte order, such as `f4`.
pub fn of_code(code: &[u8]) -> Option<DType> {
    let known = KNOWN.iter().find(|(_, known)| known.as_bytes().get(1..) == Some(code));
    known.map(|(dtype, _)| dtype.clone())
}

/// Splits a type string into its byte order, `=` if it states none, and the rest.
pub fn byte_order(text: &[u8]) -> (u8, &[u8]) {
    match text {
        [order @ (b'<' | b'>' | b'|' | b'='), code @ ..] => (*order, code),
        code => (b'=', code),
    }
}

/// The dtypes of the Python package `ml_dtypes`, with their names there.
pub const ML_DTYPES: [(&str, DType); 6] = [
    ("bfloat16", DType::BF16),
    ("float8_e5m2", DType::F8E5M2),
    ("float8_e4m3fn", DType::F8E4M3),
    ("float8_e5m2fnuz", DType::F8E5M2Fnuz),
    ("float8_e4m3fnuz", DType::F8E4M3Fnuz),
    ("float8_e8m0fnu", DType::F8E8M0),
];

/// Returns the dtype that numpy calls `name` in `dtype.name`, such as `float32` or `bfloat16`.
pub fn of_name(name: &[u8]) -> Option<DType> {
    if name == b"bool" {
        return Some(DType::Bool);
    }
    let name = std::str::from_utf8(name).ok()?;
    let kinds = [("uint", 'u'), ("int", 'i'), ("float", 'f'), ("complex", 'c')];
    let coded = kinds.iter().find_map(|(kind, code)| {
        let digits = name.strip_prefix(kind)?;
        let bits = digits.parse::<u32>().ok().filter(|_| !digits.starts_with('+'))?;
        of_code(format!("{code}{}", bits / 8).as_bytes()).filter(|_| bits % 8 == 0)
    });
    let other = || ML_DTYPES.into_iter().find(|(known, _)| *known == name);
    coded.or_else(|| other().map(|(_, dtype)| dtype))
}

/// Returns the dtype of a type string, and whether the bytes of its elements must be swapped to be little-endian.
pub fn parse(text: &[u8]) -> Result<(DType, bool)> {
    let (order, code) = byte_order(text);
    let Some(dtype) = of_code(code) else { return Err(refused(text, code)) };
    if order == b'|' && dtype.word() > 1 {
        let what = format!(
            "dtype {} states no byte order, but its elements have several bytes",
            shown(text)
        );
        return Err(Error::syntax(what));
    }
    let big_endian = match order {
        b'<' => false,
        b'>' => true,
        // If a type string states no byte order, numpy uses that of the machine.
        _ => cfg!(target_endian = "big"),
    };
    let swapped = big_endian && dtype.word() > 1;
    Ok((dtype, swapped))
}

#[cold]
fn refused(text: &[u8], code: &[u8]) -> Error {
    let why = match code {
        [b'O', ..] => "an object array consists of pickled Python objects, which are never read",
        [b'S' | b'U' | b'a', ..] => "a string array is not a tensor",
        [b'M' | b'm', ..] => "expected 8 bytes and a unit of numpy for times and durations",
        [b'V', ..] => "elements of a tensor cannot have an unknown structure (void)",
        b"f12" | b"f16" | b"c24" | b"c32" | b"g" | b"G" => {
            "long doubles differ between machines; save them as f8 or c16"
        }
        _ => "expected bool, an integer, a float or a complex dtype",
    };
    Error::unsupported(format!("dtype {} is refused: {why}", shown(text)))
}

/// The greatest number of bytes of a type string that a message shows.
const SHOWN: usize = 64;

fn shown(text: &[u8]) -> String {
    let (start, more) = match text.get(..SHOWN) {
        Some(start) if text.len() > SHOWN => (start, "…"),
        _ => (text, ""),
    };
    format!("`{}{more}`", String::from_utf8_lossy(start).escape_debug())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    Little,
    Big,
}

/// The type of texts of a fixed width, which are padded with zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Texts {
    /// Texts of this many bytes.
    Bytes(usize),
    /// Texts of this many characters of 4 bytes each.
    Unicode(usize, ByteOrder),
}

impl ByteOrder {
    /// Returns the byte order that the first character of a type string states. If it states none, it is that of this
    /// machine.
    pub fn of(order: u8) -> Self {
        let is_big = order == b'>' || order != b'<' && cfg!(target_endian = "big");
        if is_big { Self::Big } else { Self::Little }
    }
}

impl Texts {
    /// Returns the texts that a type string describes. `None` if it describes something else.
    pub fn of(dtype: &[u8]) -> Option<Self> {
        let (order, code) = byte_order(dtype);
        let order = ByteOrder::of(order);
        let (kind, digits) = code.split_first()?;
        let len = std::str::from_utf8(digits).ok()?.parse::<u32>().ok()? as usize;
        match kind {
            b'S' | b'a' => Some(Self::Bytes(len)),
            b'U' => Some(Self::Unicode(len, order)),
            _ => None,
        }
    }

    pub fn byte_len(self) -> usize {
        match self {
            Self::Bytes(len) => len,
            Self::Unicode(chars, _) => chars.saturating_mul(4),
        }
    }

    /// Decodes a text. Zeros at its end are padding; other zeros are a part of the text. Unicode becomes UTF-8.
    ///
    /// # Errors
    /// If a number is not a Unicode character.
    pub fn decode(self, bytes: &[u8]) -> Result<Vec<u8>> {
        let Self::Unicode(_, order) = self else {
            let len = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            return Ok(bytes.iter().take(len).copied().collect());
        };
        let (chars, _) = bytes.as_chunks::<4>();
        let len = chars.iter().rposition(|char| *char != [0; 4]).map_or(0, |last| last + 1);
        let char = |bytes: &[u8; 4]| {
            let number = match order {
                ByteOrder::Little => u32::from_le_bytes(*bytes),
                ByteOrder::Big => u32::from_be_bytes(*bytes),
            };
            let what = || Error::data(format!("{number:#x} is not a Unicode character"));
            char::from_u32(number).ok_or_else(what)
        };
        chars.iter().take(len).map(char).collect::<Result<String>>().map(String::into_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_numpy() {
        for (dtype, descr) in KNOWN {
            let bits = dtype.bits().unwrap();
            let kind = match descr.as_bytes()[1] {
                b'b' => "bool".to_owned(),
                b'u' => format!("uint{bits}"),
                b'i' => format!("int{bits}"),
                b'f' => format!("float{bits}"),
                _ => format!("complex{bits}"),
            };
            assert_eq!(of_name(kind.as_bytes()), Some(dtype));
        }
        assert_eq!(of_name(b"bfloat16"), Some(DType::BF16));
        for other in ["str96", "float", "int+8", "int12", "float128", "uint0", "", "object"] {
            assert_eq!(of_name(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn texts_end_before_the_zeros_that_fill_them_up() {
        assert_eq!(Texts::Bytes(5).decode(b"a\0b\0\0").unwrap(), b"a\0b");
        let bytes: Vec<u8> =
            ['ü', '😀', '\0'].iter().flat_map(|c| u32::from(*c).to_be_bytes()).collect();
        let found = Texts::Unicode(3, ByteOrder::Big).decode(&bytes).unwrap();
        assert_eq!(found, "ü😀".as_bytes());
        assert!(Texts::Unicode(1, ByteOrder::Little).decode(&[0, 0xd8, 0, 0]).is_err());
    }
}
