//! numpy's names of element types, which several formats carry.

use tenarc::{DType, Error, Result};

/// Every dtype that both sides have, as numpy writes it.
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

/// numpy's name of a dtype, if it has one.
pub fn descr_of(dtype: &DType) -> Option<&'static str> {
    KNOWN.iter().find(|(known, _)| known == dtype).map(|(_, descr)| *descr)
}

/// The dtype of a name without its byte order, such as `f4`.
pub fn of_code(code: &[u8]) -> Option<DType> {
    let known = KNOWN.iter().find(|(_, known)| known.as_bytes().get(1..) == Some(code));
    known.map(|(dtype, _)| dtype.clone())
}

/// The dtype of a name, and whether its elements are big-endian.
pub fn parse(text: &[u8]) -> Result<(DType, bool)> {
    let (order, code) = match text {
        [order @ (b'<' | b'>' | b'|' | b'='), code @ ..] => (*order, code),
        code => (b'=', code),
    };
    let Some(dtype) = of_code(code) else { return Err(refused(text, code)) };
    if order == b'|' && dtype.word() > 1 {
        let what = format!("dtype {} has no byte order, which its elements need", shown(text));
        return Err(Error::syntax(what));
    }
    let big_endian = match order {
        b'<' => false,
        b'>' => true,
        // numpy gives its own order to what states none.
        _ => cfg!(target_endian = "big"),
    };
    let swapped = big_endian && dtype.word() > 1;
    Ok((dtype, swapped))
}

#[cold]
fn refused(text: &[u8], code: &[u8]) -> Error {
    let why = match code {
        [b'O', ..] => "an object array is pickled Python, which is never read here",
        [b'S' | b'U' | b'a', ..] => "a string array is no tensor",
        [b'M', b'8', ..] => "dates are no elements of a tensor; save them as integers",
        [b'm', b'8', ..] => "durations are no elements of a tensor; save them as integers",
        [b'V', ..] => "elements of unknown structure (void) are no tensor",
        b"f12" | b"f16" | b"c24" | b"c32" | b"g" | b"G" => {
            "long doubles differ between machines; save them as f8 or c16"
        }
        _ => "expected bool, an integer, a float or a complex dtype",
    };
    Error::data(format!("dtype {} is refused: {why}", shown(text)))
}

/// Bytes of a name that are shown.
const SHOWN: usize = 64;

fn shown(text: &[u8]) -> String {
    let (start, more) = match text.get(..SHOWN) {
        Some(start) if text.len() > SHOWN => (start, "…"),
        _ => (text, ""),
    };
    format!("`{}{more}`", String::from_utf8_lossy(start).escape_debug())
}
