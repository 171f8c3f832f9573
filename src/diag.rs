//! Diagnostic notation (RFC 8949, section 8): a text form of encoded items for people to read.

use std::fmt::{self, Write as _};

use crate::error::Result;
use crate::io::input::Input;
use crate::options::Limits;
use crate::wire::head::{self, Head};
use crate::wire::number::Numeric;
use crate::wire::reader::Reader;
use crate::wire::tag;
use crate::wire::walk::{Event, Walk};

/// The diagnostic notation of one or more encoded items, separated by commas.
///
/// Floats have an encoding indicator (section 8.1): `1.5_1` is half, `1.5_2` single and `1.5_3` double
/// precision. Items of indefinite length are written as `[_ 1, 2]`, `{_ "a": 1}` and
/// `(_ h'01', h'02')`. Control characters in texts are escaped.
///
/// ```
/// let bytes = tenarc::to_vec(&(1, "a", 0.5f32, Some(Some(()))))?;
/// assert_eq!(tenarc::diag::to_string(&bytes)?, r#"[1, "a", 0.5_2, 1414745933(1414745933(null))]"#);
/// # Ok::<(), tenarc::Error>(())
/// ```
///
/// # Errors
/// If the input is not well-formed, is empty, or is nested deeper than 128 levels.
pub fn to_string(encoded: &[u8]) -> Result<String> {
    let mut wire = Reader::new(Input::slice(encoded), Limits::default());
    let mut notation = Notation { wire: &mut wire, text: String::new(), detail: Detail::Encoding };
    loop {
        notation.item()?;
        if notation.wire.peek()?.is_none() {
            return Ok(notation.text);
        }
        notation.text.push_str(", ");
    }
}

/// The diagnostic notation of the value of the next item. Equal values have the same notation, however
/// they are encoded: there are no indicators for lengths and widths, chunks of strings are joined, and
/// bignums of up to 128 bits are in decimal.
pub(crate) fn value(wire: &mut Reader<'_, '_>) -> Result<String> {
    let mut notation = Notation { wire, text: String::new(), detail: Detail::Value };
    notation.item()?;
    Ok(notation.text)
}

struct Notation<'w, 'de, 'b> {
    wire: &'w mut Reader<'de, 'b>,
    text: String,
    detail: Detail,
}

/// What the notation contains.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Detail {
    /// The value, and how it is encoded.
    Encoding,
    /// Only the value.
    Value,
}

impl Notation<'_, '_, '_> {
    fn item(&mut self) -> Result<()> {
        let mut walk = Walk::default();
        while let Some(event) = walk.next(self.wire)? {
            match event {
                Event::Element(0) | Event::Key(0) => {}
                Event::Element(_) | Event::Key(_) => self.text.push_str(", "),
                Event::Value { .. } => self.text.push_str(": "),
                Event::Array(head) => self.open('[', head),
                Event::Map(head) => self.open('{', head),
                Event::Tag(tag) => {
                    if let Some(integer) = self.integer(tag) {
                        walk.take(self.wire).within(1, Reader::skip)?;
                        self.text.push_str(&integer);
                    } else {
                        self.put(tag);
                        self.text.push('(');
                    }
                }
                Event::End { major, .. } => self.text.push(match major {
                    head::ARRAY => ']',
                    head::MAP => '}',
                    _ => ')',
                }),
                Event::Leaf(head) => self.leaf(head)?,
            }
        }
        Ok(())
    }

    fn open(&mut self, bracket: char, head: Head) {
        self.text.push(bracket);
        if head.is_indefinite() && self.detail == Detail::Encoding {
            self.text.push_str("_ ");
        }
    }

    fn leaf(&mut self, head: Head) -> Result<()> {
        match head.major() {
            head::UNSIGNED => self.put(head.arg),
            head::NEGATIVE => self.put(!i128::from(head.arg)),
            head::BYTES | head::TEXT => self.string(head)?,
            _ => self.simple(head),
        }
        Ok(())
    }

    /// The number in decimal, if this tag is that of a bignum. The content of the tag is next in the input. `None` if
    /// the notation shows the encoding, if the number does not fit in 128 bits, or if the bignum is not valid.
    fn integer(&self, tag: u64) -> Option<String> {
        if self.detail == Detail::Encoding || !matches!(tag, tag::BIGNUM | tag::NEGATIVE_BIGNUM) {
            return None;
        }
        let mut ahead = Reader::new(Input::slice(self.wire.src.window()), self.wire.limits());
        let Ok(Numeric::Int { negative, arg }) = ahead.bignum(tag) else { return None };
        match i128::try_from(arg) {
            Ok(arg) if negative => Some((!arg).to_string()),
            Err(_) if negative => None,
            _ => Some(arg.to_string()),
        }
    }

    fn put(&mut self, value: impl fmt::Display) {
        // Writing to a string cannot fail.
        let _ = write!(self.text, "{value}");
    }

    fn string(&mut self, head: Head) -> Result<()> {
        if !head.is_indefinite() || self.detail == Detail::Value {
            return self.chunk(head);
        }
        // RFC 8949, section 8.1, has a special notation for an empty string of indefinite length.
        let mut first = true;
        while let Some(chunk) = self.wire.next_chunk(head)? {
            self.text.push_str(if first { "(_ " } else { ", " });
            first = false;
            self.chunk(chunk)?;
        }
        match (first, head.major()) {
            (false, _) => self.text.push(')'),
            (true, head::BYTES) => self.text.push_str("''_"),
            (true, _) => self.text.push_str("\"\"_"),
        }
        Ok(())
    }

    fn chunk(&mut self, head: Head) -> Result<()> {
        if head.major() == head::TEXT {
            let text = self.wire.text(head)?;
            // Writing to a string cannot fail.
            let _ = write!(self.text, "{}", QuotedText(text.as_str()));
        } else {
            let bytes = self.wire.string(head)?;
            // Writing to a string cannot fail.
            let _ = write!(self.text, "{}", HexBytes(bytes.as_slice()));
        }
        Ok(())
    }

    fn simple(&mut self, head: Head) {
        match head.initial {
            head::FALSE => self.text.push_str("false"),
            head::TRUE => self.text.push_str("true"),
            head::NULL => self.text.push_str("null"),
            _ => match Numeric::from_head(head) {
                Some(Numeric::Double(value)) => self.float(Float(value), head),
                Some(Numeric::Single(value)) if self.detail == Detail::Value => {
                    self.float(Float(f64::from(value)), head);
                }
                Some(Numeric::Single(value)) => self.float(Float(value), head),
                #[allow(clippy::cast_possible_truncation)]
                _ => self.put(Simple(head.arg as u8)),
            },
        }
    }

    fn float(&mut self, float: impl fmt::Display, head: Head) {
        self.put(float);
        if self.detail == Detail::Encoding {
            self.put(format_args!("_{}", head.initial - head::HALF + 1));
        }
    }
}

/// A text in quotes.
pub(crate) struct QuotedText<'a>(pub &'a str);

impl fmt::Display for QuotedText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                '\n' => f.write_str("\\n")?,
                c if c.is_control() => write!(f, "\\u{:04x}", u32::from(c))?,
                c => f.write_char(c)?,
            }
        }
        f.write_char('"')
    }
}

/// A byte string, in hexadecimal.
pub(crate) struct HexBytes<'a>(pub &'a [u8]);

impl fmt::Display for HexBytes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("h'")?;
        for byte in self.0 {
            write!(f, "{byte:02x}")?;
        }
        f.write_char('\'')
    }
}

/// A simple value other than false, true and null.
pub(crate) struct Simple(pub u8);

impl fmt::Display for Simple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            23 => f.write_str("undefined"),
            number => write!(f, "simple({number})"),
        }
    }
}

/// A float, without an encoding indicator.
pub(crate) struct Float<T>(pub T);

impl<T: Into<f64> + fmt::Debug + Copy> fmt::Display for Float<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wide = self.0.into();
        if wide.is_nan() {
            f.write_str("NaN")
        } else if wide.is_infinite() {
            f.write_str(if wide > 0.0 { "Infinity" } else { "-Infinity" })
        } else {
            // Debug gives the shortest digits of this width, and a point or an exponent.
            write!(f, "{:?}", self.0)
        }
    }
}
