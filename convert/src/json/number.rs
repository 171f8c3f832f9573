//! Numbers of JSON.

use tenarc::{Error, Result, Value};

/// The longest number that is read: more digits than any float has.
pub const MAX_LEN: usize = 2048;

/// The number: an integer where it is written as one and fits an `i128` or a `u128`, a double
/// otherwise.
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
        return Err(Error::syntax(format!("`{}` is no number of JSON", shown(text))));
    }
    // The sign of zero is none of an integer's.
    if fraction.is_none() && exponent.is_none() && text != "-0" {
        let integer = text.parse().map(Value::Integer);
        return integer.or_else(|_| text.parse::<u128>().map(Value::from)).map_err(|_| {
            let shown = shown(text);
            Error::data(format!("integer `{shown}` has more than 128 bits"))
        });
    }
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(Value::F64(value)),
        _ => Err(Error::data(format!("number `{}` is beyond every double", shown(text)))),
    }
}

fn split(text: &str) -> (&str, &str) {
    let end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

/// The first letters, which are digits and the like.
fn shown(text: &str) -> &str {
    text.get(..64).unwrap_or(text)
}
