//! A parser of the Python literals that headers consist of. They are read as data and never executed.

use tenarc::{Error, Result};

use crate::shown::shown;

/// The most levels of nested tuples, lists and dicts. Each level of numpy's structured types takes three of them.
const MAX_DEPTH: usize = 32;

/// A Python literal.
#[derive(Debug, PartialEq)]
pub enum Literal<'a> {
    /// The bytes between the quotes. Escapes are not decoded.
    Text(&'a [u8]),
    Bool(bool),
    /// An integer. The value is `None` if it does not fit 64 bits.
    Int {
        negative: bool,
        value: Option<u64>,
    },
    None,
    Tuple(Vec<Self>),
    List(Vec<Self>),
    Dict(Vec<(Self, Self)>),
}

impl Literal<'_> {
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "a string",
            Self::Bool(_) => "a bool",
            Self::Int { .. } => "an integer",
            Self::None => "None",
            Self::Tuple(_) => "a tuple",
            Self::List(_) => "a list",
            Self::Dict(_) => "a dict",
        }
    }
}

/// Parses `bytes`, which must be a single literal. They start at the offset `base` of the input.
pub fn parse(bytes: &[u8], base: u64) -> Result<Literal<'_>> {
    let mut parser = Parser { bytes, at: 0, base };
    let literal = parser.literal(MAX_DEPTH)?;
    parser.space();
    if parser.peek().is_some() {
        return Err(parser.unexpected("the end of the header"));
    }
    Ok(literal)
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

struct Parser<'a> {
    bytes: &'a [u8],
    at: usize,
    base: u64,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.rest().first().copied()
    }

    fn space(&mut self) {
        self.at += self.rest().iter().take_while(|&&byte| is_blank(byte)).count();
    }

    fn take(&mut self, token: &[u8]) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    #[cold]
    fn unexpected(&self, expected: &str) -> Error {
        let error = match self.rest() {
            [] => Error::syntax(format!("expected {expected}, but the header ends")),
            rest => Error::syntax(format!(
                "expected {expected}, found {}; expressions in a header are not evaluated",
                shown(rest)
            )),
        };
        error.at(self.base.saturating_add(self.at as u64))
    }

    fn literal(&mut self, depth: usize) -> Result<Literal<'a>> {
        self.space();
        let at = self.base.saturating_add(self.at as u64);
        let down = depth.checked_sub(1).ok_or_else(|| {
            Error::limit(format!("the header is nested more than {MAX_DEPTH} levels deep")).at(at)
        });
        match self.peek() {
            Some(quote @ (b'\'' | b'"')) => self.text(quote),
            Some(b'0'..=b'9' | b'-') => self.int(),
            Some(b'(') => {
                self.at += 1;
                let (mut items, commas) = self.items(b')', down?)?;
                // Parentheses around a literal without a comma do not make a tuple.
                match (items.pop(), commas) {
                    (Some(item), false) if items.is_empty() => Ok(item),
                    (item, _) => {
                        items.extend(item);
                        Ok(Literal::Tuple(items))
                    }
                }
            }
            Some(b'[') => {
                self.at += 1;
                self.items(b']', down?).map(|(items, _)| Literal::List(items))
            }
            Some(b'{') => {
                self.at += 1;
                self.entries(down?).map(Literal::Dict)
            }
            _ => self.word(),
        }
    }

    fn word(&mut self) -> Result<Literal<'a>> {
        let part_of_name = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
        let len = self.rest().iter().take_while(part_of_name).count();
        let literal = match self.rest().get(..len) {
            Some(b"True") => Literal::Bool(true),
            Some(b"False") => Literal::Bool(false),
            Some(b"None") => Literal::None,
            _ => return Err(self.unexpected("a literal")),
        };
        self.at += len;
        Ok(literal)
    }

    fn text(&mut self, quote: u8) -> Result<Literal<'a>> {
        let inside = self.rest().get(1..).unwrap_or_default();
        let mut escaped = false;
        let end = inside.iter().position(|&byte| {
            let closes = byte == quote && !escaped;
            escaped = byte == b'\\' && !escaped;
            closes
        });
        let Some(text) = end.and_then(|end| inside.get(..end)) else {
            return Err(self.unexpected("the end of a string"));
        };
        self.at += text.len() + 2;
        Ok(Literal::Text(text))
    }

    fn int(&mut self) -> Result<Literal<'a>> {
        let start = self.at;
        let negative = self.take(b"-");
        let digits = self.rest().iter().take_while(|byte| byte.is_ascii_digit()).count();
        let text = self.rest().get(..digits).unwrap_or_default();
        let plain = !text.is_empty() && (digits == 1 || !text.starts_with(b"0"));
        self.at += digits;
        // Python 2 writes long integers with this suffix.
        let _ = self.take(b"L");
        let ends = self
            .peek()
            .is_none_or(|byte| is_blank(byte) || matches!(byte, b',' | b')' | b']' | b'}' | b':'));
        if !plain || !ends {
            self.at = start;
            return Err(self.unexpected("an integer"));
        }
        let value = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
        Ok(Literal::Int { negative, value })
    }

    /// Parses literals with commas in between, up to the closing bracket. Also returns whether they make a tuple if the
    /// bracket is a parenthesis.
    fn items(&mut self, close: u8, depth: usize) -> Result<(Vec<Literal<'a>>, bool)> {
        let (mut items, mut commas) = (Vec::new(), false);
        loop {
            self.space();
            if self.take(&[close]) {
                break;
            }
            items.push(self.literal(depth)?);
            if !self.comma_or(close)? {
                break;
            }
            commas = true;
        }
        // `()` is a tuple although it has no comma.
        commas |= items.is_empty();
        Ok((items, commas))
    }

    fn entries(&mut self, depth: usize) -> Result<Vec<(Literal<'a>, Literal<'a>)>> {
        let mut entries = Vec::new();
        loop {
            self.space();
            if self.take(b"}") {
                break;
            }
            let key = self.literal(depth)?;
            self.space();
            if !self.take(b":") {
                return Err(self.unexpected("`:`"));
            }
            entries.push((key, self.literal(depth)?));
            if !self.comma_or(b'}')? {
                break;
            }
        }
        Ok(entries)
    }

    /// Consumes a comma or the closing bracket. Returns whether it was a comma.
    fn comma_or(&mut self, close: u8) -> Result<bool> {
        self.space();
        if self.take(b",") {
            return Ok(true);
        }
        if self.take(&[close]) {
            return Ok(false);
        }
        Err(self.unexpected(&format!("`,` or `{}`", char::from(close))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(value: u64) -> Literal<'static> {
        Literal::Int { negative: false, value: Some(value) }
    }

    #[test]
    fn literals_are_those_of_python() {
        use Literal::{Bool, Dict, List, Text, Tuple};
        let cases: &[(&str, Literal<'_>)] = &[
            ("()", Tuple(vec![])),
            ("(3,)", Tuple(vec![int(3)])),
            ("(3)", int(3)),
            ("(2L, 3L)", Tuple(vec![int(2), int(3)])),
            (" [ 1 , 2 , ] \n", List(vec![int(1), int(2)])),
            ("-7", Literal::Int { negative: true, value: Some(7) }),
            ("99999999999999999999", Literal::Int { negative: false, value: None }),
            (r"'it\'s'", Text(br"it\'s")),
            ("{\"a\": True}", Dict(vec![(Text(b"a"), Bool(true))])),
            ("{}", Dict(vec![])),
        ];
        for (text, expected) in cases {
            assert_eq!(&parse(text.as_bytes(), 0).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn everything_else_is_refused_where_it_stands() {
        let cases = [
            ("", 0),
            ("__import__('os').getpid()", 0),
            ("(1, f())", 4),
            ("1 + 1", 2),
            ("1.5", 0),
            ("02", 0),
            ("1_000", 0),
            ("0x10", 0),
            ("-", 0),
            ("TrueTrue", 0),
            ("'open", 0),
            (r"'open\'", 0),
            ("(1, 2", 5),
            ("(,)", 1),
            ("(1 2)", 3),
            ("{'a' 1}", 5),
            ("{'a': }", 6),
            ("[1] [2]", 4),
            ("b'x'", 0),
            ("'a' 'b'", 4),
        ];
        for (text, at) in cases {
            let error = parse(text.as_bytes(), 10).unwrap_err();
            assert_eq!(error.offset(), Some(10 + at), "{text}: {error}");
        }
        let deep = "(".repeat(100_000);
        assert_eq!(
            parse(deep.as_bytes(), 0).unwrap_err().category(),
            tenarc::error::Category::Limit
        );
    }
}
