//! JSON (RFC 8259), as far as headers, indices and types need it: read strictly, from front to back, into nothing
//! but what is asked for.
//!
//! No general library does: an object's key that stands there twice must be seen, and a crate that brings
//! one in changes what types can be inferred in every program that uses it.

use tenarc::{Error, Result};

/// Levels of arrays and objects that are passed over.
const MAX_DEPTH: usize = 128;

/// A text that is read from front to back.
pub struct Json<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Json<'t> {
    pub fn new(text: &'t [u8]) -> Result<Self> {
        let text = std::str::from_utf8(text).map_err(|error| {
            let at = error.valid_up_to() as u64;
            Error::syntax("expected UTF-8, found something else").at(at)
        })?;
        Ok(Self { text, at: 0 })
    }

    pub fn offset(&self) -> u64 {
        self.at as u64
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The next byte that is no white space.
    fn peek(&mut self) -> Option<u8> {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
        self.rest().bytes().next()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// An error at the next value: of another kind than expected, or none at all.
    #[cold]
    fn unexpected(&mut self, expected: &str) -> Error {
        let found = match self.peek() {
            Some(b'{') => "an object",
            Some(b'[') => "an array",
            Some(b'"') => "a text",
            Some(b'-' | b'0'..=b'9') => "a number",
            Some(b't' | b'f') => "a bool",
            Some(b'n') => "null",
            Some(_) => return self.malformed(expected),
            None => return self.ended(expected),
        };
        Error::data(format!("expected {expected}, found {found}")).at(self.offset())
    }

    #[cold]
    fn malformed(&self, expected: &str) -> Error {
        let found = match self.rest().chars().next() {
            Some(found) => format!("`{}`", found.escape_debug()),
            None => return self.ended(expected),
        };
        Error::syntax(format!("expected {expected}, found {found}")).at(self.offset())
    }

    #[cold]
    fn ended(&self, expected: &str) -> Error {
        Error::syntax(format!("expected {expected}, found the end of the text")).at(self.offset())
    }

    /// Reads an object: `each` reads the value of each key, and is told where that stands.
    pub fn object(
        &mut self,
        expected: &str,
        mut each: impl FnMut(&mut Self, String, u64) -> Result<()>,
    ) -> Result<()> {
        if !self.take(b'{') {
            return Err(self.unexpected(expected));
        }
        if self.take(b'}') {
            return Ok(());
        }
        loop {
            self.peek();
            let at = self.offset();
            let key = match self.peek() {
                Some(b'"') => self.text("a key")?,
                _ => return Err(self.malformed("a key")),
            };
            if !self.take(b':') {
                return Err(self.malformed("`:`"));
            }
            each(self, key, at)?;
            if self.take(b'}') {
                return Ok(());
            }
            if !self.take(b',') {
                return Err(self.malformed("`,` or `}`"));
            }
        }
    }

    /// Reads an array: `each` reads an element.
    pub fn array(
        &mut self,
        expected: &str,
        mut each: impl FnMut(&mut Self) -> Result<()>,
    ) -> Result<()> {
        if !self.take(b'[') {
            return Err(self.unexpected(expected));
        }
        if self.take(b']') {
            return Ok(());
        }
        loop {
            each(self)?;
            if self.take(b']') {
                return Ok(());
            }
            if !self.take(b',') {
                return Err(self.malformed("`,` or `]`"));
            }
        }
    }

    pub fn text(&mut self, expected: &str) -> Result<String> {
        if !self.take(b'"') {
            return Err(self.unexpected(expected));
        }
        let mut text = String::new();
        loop {
            let rest = self.rest();
            let plain = rest.find(|c| c == '"' || c == '\\' || c < ' ').unwrap_or(rest.len());
            text.push_str(rest.get(..plain).unwrap_or_default());
            self.at += plain;
            match self.rest().bytes().next() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => text.push(self.escape()?),
                Some(_) => return Err(self.malformed("no control character")),
                None => return Err(self.ended("a closing quote")),
            }
        }
    }

    fn escape(&mut self) -> Result<char> {
        let (start, escaped) = (self.at, self.rest().as_bytes().get(1).copied());
        self.at += 2;
        let char = match escaped {
            Some(plain @ (b'"' | b'\\' | b'/')) => Some(char::from(plain)),
            Some(b'b') => Some('\u{8}'),
            Some(b'f') => Some('\u{c}'),
            Some(b'n') => Some('\n'),
            Some(b'r') => Some('\r'),
            Some(b't') => Some('\t'),
            Some(b'u') => self.code_unit().and_then(|unit| self.completed(unit)),
            _ => None,
        };
        char.ok_or_else(|| Error::syntax("expected an escape, found none").at(start as u64))
    }

    /// Four hexadecimal digits.
    fn code_unit(&mut self) -> Option<u32> {
        let digits = self.rest().get(..4)?;
        let all = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        self.at += 4;
        u32::from_str_radix(digits, 16).ok().filter(|_| all)
    }

    /// The character that a code unit is, or is the first half of.
    fn completed(&mut self, unit: u32) -> Option<char> {
        if !(0xd800..0xdc00).contains(&unit) {
            return char::from_u32(unit);
        }
        self.at += self.rest().starts_with("\\u").then_some(2)?;
        let low = self.code_unit().filter(|low| (0xdc00..0xe000).contains(low))?;
        char::from_u32(0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00))
    }

    /// A whole number without a sign; `None` for any other number.
    fn number(&mut self) -> Result<Option<u64>> {
        let rest = self.rest();
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let mut len = usize::from(rest.starts_with('-'));
        let tail = |len: usize| rest.get(len..).unwrap_or_default();
        let whole = digits(tail(len));
        let plain = whole == 1 || whole > 1 && !tail(len).starts_with('0');
        len += whole;
        let mut sound = plain;
        if tail(len).starts_with('.') {
            let fraction = digits(tail(len + 1));
            sound &= fraction > 0;
            len += 1 + fraction;
        }
        if tail(len).starts_with(['e', 'E']) {
            len += 1 + usize::from(tail(len + 1).starts_with(['+', '-']));
            let exponent = digits(tail(len));
            sound &= exponent > 0;
            len += exponent;
        }
        if !sound {
            return Err(Error::syntax("expected a number, found none").at(self.offset()));
        }
        self.at += len;
        // `parse` would take a sign.
        let number = rest.get(..len).unwrap_or_default();
        Ok(number
            .bytes()
            .all(|digit| digit.is_ascii_digit())
            .then(|| number.parse().ok())
            .flatten())
    }

    pub fn unsigned(&mut self, expected: &str) -> Result<u64> {
        match self.peek() {
            Some(b'-' | b'0'..=b'9') => {}
            _ => return Err(self.unexpected(expected)),
        }
        let start = self.offset();
        self.number()?.ok_or_else(|| {
            let what =
                format!("expected {expected}, found one with sign, fraction or too many digits");
            Error::data(what).at(start)
        })
    }

    /// Passes over null, if that is next.
    pub fn null(&mut self) -> bool {
        self.peek();
        self.word("null")
    }

    fn word(&mut self, word: &str) -> bool {
        let found = self.rest().starts_with(word);
        self.at += if found { word.len() } else { 0 };
        found
    }

    /// Passes over a value; if it is a whole number, which.
    pub fn any(&mut self) -> Result<Option<u64>> {
        self.within(MAX_DEPTH)
    }

    fn within(&mut self, levels: usize) -> Result<Option<u64>> {
        let inside = |json: &mut Self| {
            let levels = levels.checked_sub(1).ok_or_else(|| {
                Error::limit(format!("more than {MAX_DEPTH} levels")).at(json.offset())
            })?;
            json.within(levels).map(drop)
        };
        match self.peek() {
            Some(b'{') => self.object("an object", |json, _, _| inside(json))?,
            Some(b'[') => self.array("an array", inside)?,
            Some(b'"') => drop(self.text("a text")?),
            Some(b'-' | b'0'..=b'9') => return self.number(),
            _ if self.word("null") || self.word("true") || self.word("false") => {}
            _ => return Err(self.malformed("a value")),
        }
        Ok(None)
    }

    /// Nothing but white space follows.
    pub fn end(mut self) -> Result<()> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.malformed("the end of the text")),
        }
    }
}

/// Appends a text as the reference implementation writes it.
pub fn put_text(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    for &byte in text.as_bytes() {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0..0x20 => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

/// Appends an object of texts.
pub fn put_texts(out: &mut Vec<u8>, pairs: &[(String, String)]) {
    out.push(b'{');
    for (number, (key, text)) in pairs.iter().enumerate() {
        if number > 0 {
            out.push(b',');
        }
        put_text(out, key);
        out.push(b':');
        put_text(out, text);
    }
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(json: &str) -> Result<String> {
        let mut json = Json::new(json.as_bytes())?;
        let text = json.text("a text")?;
        json.end().map(|()| text)
    }

    #[test]
    fn texts_are_unescaped() {
        let escapes = r#" "\"\\\/\b\f\n\r\t\u00e9\u00E9\ud83d\ude00é" "#;
        assert_eq!(text(escapes).unwrap(), "\"\\/\u{8}\u{c}\n\r\téé😀é");
        for wrong in [
            r#"""""#,
            r#"""#,
            r#""\"#,
            r#""\""#,
            r#""\x""#,
            r#""\u12""#,
            r#""\u+123""#,
            r#""\u12é""#,
            r#""\ud83d""#,
            r#""\ud83d\n""#,
            r#""\ud83d\u0041""#,
            r#""\ude00""#,
            "\"\n\"",
            "\"\u{0}\"",
        ] {
            text(wrong).unwrap_err();
        }
    }

    #[test]
    fn texts_come_back() {
        let all: String =
            (0..0x250).filter_map(char::from_u32).chain("\u{2028}\u{10ffff}".chars()).collect();
        let mut out = Vec::new();
        put_text(&mut out, &all);
        assert_eq!(text(std::str::from_utf8(&out).unwrap()).unwrap(), all);
        assert_eq!(serde_json::to_string(&all).unwrap().as_bytes(), out);
    }

    #[test]
    fn numbers_are_whole_or_only_passed_over() {
        let number = |text: &str| Json::new(text.as_bytes()).unwrap().unsigned("a number");
        assert_eq!(number("18446744073709551615").unwrap(), u64::MAX);
        assert_eq!(number(" 0").unwrap(), 0);
        for other in ["-1", "-0", "1.0", "1e3", "1E+3", "0.5e-7", "18446744073709551616"] {
            number(other).unwrap_err();
            let mut json = Json::new(other.as_bytes()).unwrap();
            assert_eq!(json.any().unwrap(), None);
            json.end().unwrap();
        }
        for wrong in ["00", "01", "-", "1.", ".5", "1e", "1e+", "+1", "0x1", "1_000", "--1", "NaN"]
        {
            let mut json = Json::new(wrong.as_bytes()).unwrap();
            assert!(json.any().and_then(|_| json.end()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn anything_is_passed_over_down_to_a_depth() {
        let any = |text: &str| {
            let mut json = Json::new(text.as_bytes())?;
            json.any().and_then(|_| json.end())
        };
        for sound in ["null", "[]", "{}", "[1,[true,{\"a\":false}],\"\"]", "{\"a\":1,\"a\":[ ]}"] {
            any(sound).unwrap();
        }
        for wrong in
            ["", "nul", "[1,]", "[,1]", "{\"a\"}", "{\"a\":1,}", "{a:1}", "[1 2]", "[", "{\"a\":"]
        {
            any(wrong).unwrap_err();
        }
        any(&format!("{}{}", "[".repeat(128), "]".repeat(128))).unwrap();
        let deep = any(&"[".repeat(1_000_000)).unwrap_err();
        assert_eq!(deep.category(), tenarc::error::Category::Limit);
    }
}
