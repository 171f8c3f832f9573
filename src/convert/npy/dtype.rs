//! numpy's names of element types.

use super::literal::Literal;
use crate::convert::shown;
use crate::dtype::DType;
use crate::error::{Error, Result};

/// Every dtype that both sides have, as numpy writes it.
const KNOWN: [(DType, &str); 14] = [
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

/// numpy's name of a dtype.
///
/// # Errors
/// Where numpy has none: writing it as something else would lose what it is.
pub fn descr_of(dtype: &DType) -> Result<&'static str> {
    let known = KNOWN.iter().find(|(known, _)| known == dtype);
    known.map(|(_, descr)| *descr).ok_or_else(|| {
        let name = dtype.name().escape_debug();
        Error::data(format!("npy has no dtype for {name}; convert the elements to one it has"))
    })
}

/// The dtype that a header describes, and whether its elements are big-endian.
pub fn parse(descr: &Literal<'_>) -> Result<(DType, bool)> {
    let text = match descr {
        Literal::Text(text) => *text,
        Literal::List(_) | Literal::Tuple(_) => {
            return Err(Error::data("a structured array is no tensor; save each field by itself"));
        }
        other => {
            let found = other.kind();
            return Err(Error::syntax(format!("expected a string for `descr`, found {found}")));
        }
    };
    let (order, code) = match text {
        [order @ (b'<' | b'>' | b'|' | b'='), code @ ..] => (*order, code),
        code => (b'=', code),
    };
    let known = KNOWN.iter().find(|(_, known)| known.as_bytes().get(1..) == Some(code));
    let Some((dtype, _)) = known else { return Err(refused(text, code)) };
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
    Ok((dtype.clone(), big_endian && dtype.word() > 1))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(descr: &str) -> Result<(DType, bool)> {
        parse(&Literal::Text(descr.as_bytes()))
    }

    #[test]
    fn every_name_comes_back_in_every_order() {
        for (dtype, descr) in &KNOWN {
            assert_eq!(descr_of(dtype).unwrap(), *descr);
            assert_eq!(parsed(descr).unwrap(), (dtype.clone(), false));
            let code = &descr[1..];
            let wide = dtype.word() > 1;
            assert_eq!(parsed(&format!(">{code}")).unwrap(), (dtype.clone(), wide));
            let native = (dtype.clone(), wide && cfg!(target_endian = "big"));
            assert_eq!(parsed(&format!("={code}")).unwrap(), native);
            assert_eq!(parsed(code).unwrap(), native);
            assert_eq!(parsed(&format!("|{code}")).is_ok(), !wide);
        }
    }

    #[test]
    fn what_is_no_tensor_is_refused_by_its_name() {
        let cases = [
            ("|O", "pickled"),
            ("<U2", "string"),
            ("|S2", "string"),
            ("<M8[s]", "dates"),
            ("<m8[ms]", "durations"),
            ("|V3", "void"),
            ("<f16", "long doubles"),
            ("<f3", "expected bool"),
            ("", "expected bool"),
            ("<", "expected bool"),
        ];
        for (descr, why) in cases {
            let error = parsed(descr).unwrap_err().to_string();
            assert!(error.contains(why) && error.contains(descr), "{error}");
        }
        assert!(descr_of(&DType::BF16).unwrap_err().to_string().contains("bf16"));
        assert!(descr_of(&DType::from_name("q4\u{1b}")).is_err());
    }
}
