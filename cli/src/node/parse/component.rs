//! Map keys as components of paths, as the library has them (section 5.10 of the specification): a
//! text as it is, any other key in diagnostic notation of its value.

use std::fmt::Write as _;
use std::ops::Range;

use tenarc::Value;

use super::Parser;
use crate::failure::Result;

const BIGNUM: u64 = 2;
const NEGATIVE_BIGNUM: u64 = 3;

impl Parser<'_> {
    /// The next item as a component.
    pub(super) fn component(&mut self) -> Result<String> {
        let start = self.at;
        if self.peek()? >> 5 == 3 {
            self.skip()?;
            if let Value::Text(text) = self.value(start..self.at)? {
                return Ok(text);
            }
            self.at = start;
        }
        let mut text = String::new();
        self.notation(&mut text)?;
        Ok(text)
    }

    fn notation(&mut self, out: &mut String) -> Result<()> {
        let start = self.at;
        let head = self.head()?;
        match head.major {
            4 | 5 => {
                let (open, close) = if head.major == 4 { ('[', ']') } else { ('{', '}') };
                self.enter()?;
                out.push(open);
                let mut done = 0;
                while self.more(head, done)? {
                    if done > 0 {
                        out.push_str(", ");
                    }
                    self.notation(out)?;
                    if head.major == 5 {
                        out.push_str(": ");
                        self.notation(out)?;
                    }
                    done += 1;
                }
                out.push(close);
                self.depth -= 1;
            }
            6 => {
                let content = self.at;
                self.skip()?;
                match self.integer(head.arg, start..self.at) {
                    Some(integer) => out.push_str(&integer),
                    None => {
                        self.at = content;
                        self.enter()?;
                        // Writing to a string cannot fail.
                        let _ = write!(out, "{}(", head.arg);
                        self.notation(out)?;
                        out.push(')');
                        self.depth -= 1;
                    }
                }
            }
            _ => {
                self.at = start;
                self.skip()?;
                leaf(&self.value(start..self.at)?, out);
            }
        }
        Ok(())
    }

    /// A bignum of up to 128 bits in decimal.
    fn integer(&self, tag: u64, item: Range<usize>) -> Option<String> {
        if !matches!(tag, BIGNUM | NEGATIVE_BIGNUM) {
            return None;
        }
        match self.value(item).ok()? {
            Value::Integer(integer) => Some(integer.to_string()),
            // Beyond what a signed integer holds.
            Value::Tag(BIGNUM, content) => {
                let bytes = content.as_bytes()?;
                let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
                let digits = bytes.get(zeros..).filter(|digits| digits.len() <= 16)?;
                let fold = |number: u128, &digit: &u8| number << 8 | u128::from(digit);
                Some(digits.iter().fold(0, fold).to_string())
            }
            _ => None,
        }
    }
}

fn leaf(value: &Value, out: &mut String) {
    let _ = match value {
        Value::Integer(integer) => write!(out, "{integer}"),
        Value::Bool(value) => write!(out, "{value}"),
        Value::Null => out.write_str("null"),
        Value::Simple(23) => out.write_str("undefined"),
        Value::Simple(number) => write!(out, "simple({number})"),
        Value::F32(value) => float((*value).into(), out),
        Value::F64(value) => float(*value, out),
        Value::Bytes(bytes) => {
            out.push_str("h'");
            for byte in bytes {
                let _ = write!(out, "{byte:02x}");
            }
            out.write_char('\'')
        }
        Value::Text(text) => quoted(text, out),
        // No leaves.
        Value::Array(_) | Value::Map(_) | Value::Tag(..) | Value::Numbers(_) | Value::Tensor(_) => {
            Ok(())
        }
    };
}

fn float(value: f64, out: &mut String) -> std::fmt::Result {
    if value.is_nan() {
        out.write_str("NaN")
    } else if value.is_infinite() {
        out.write_str(if value > 0.0 { "Infinity" } else { "-Infinity" })
    } else {
        write!(out, "{value:?}")
    }
}

fn quoted(text: &str, out: &mut String) -> std::fmt::Result {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => write!(out, "\\u{:04x}", u32::from(c))?,
            c => out.push(c),
        }
    }
    out.write_char('"')
}
