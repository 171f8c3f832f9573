//! Parses the numbers of JSON.

use tenarc::{Error, Result, Value};

/// The greatest length of a number that is read. The exact decimal form of every `f64` is shorter.
pub const MAX_LEN: usize = 2048;

/// Parses a number. Without a fraction and an exponent it is an integer, which must fit an `i128` or a `u128`.
/// Otherwise it is an `f64`, as is `-0`.
pub fn parse(text: &str) -> Result<Value> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, rest) = split(digits);
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => {
            let (fraction, rest) = split(rest);
            (Some(fraction), rest)
        }
        None => (None, rest),
    };
    let (exponent, rest) = match rest.strip_prefix(['e', 'E']) {
        Some(rest) => {
            let (exponent, rest) = split(rest.strip_prefix(['+', '-']).unwrap_or(rest));
            (Some(exponent), rest)
        }
        None => (None, rest),
    };
    let leading_zero = whole.len() > 1 && whole.starts_with('0');
    let empty = whole.is_empty() || fraction == Some("") || exponent == Some("");
    if leading_zero || empty || !rest.is_empty() {
        return Err(Error::syntax(format!("`{}` is not a JSON number", shown(text))));
    }
    // An integer cannot hold the sign of `-0`, but a float can.
    if fraction.is_none() && exponent.is_none() && text != "-0" {
        let integer = text.parse().map(Value::Integer);
        return integer.or_else(|_| text.parse::<u128>().map(Value::from)).map_err(|_| {
            let shown = shown(text);
            Error::unsupported(format!("the integer `{shown}` has more than 128 bits"))
        });
    }
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(Value::F64(value)),
        _ => Err(Error::unsupported(format!(
            "the number `{}` is too large for a 64-bit float",
            shown(text)
        ))),
    }
}

fn split(text: &str) -> (&str, &str) {
    let end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

/// Returns the start of a text for an error. All its characters are ASCII.
fn shown(text: &str) -> &str {
    text.get(..64).unwrap_or(text)
}
