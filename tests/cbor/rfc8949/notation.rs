//! A reader of diagnostic notation (RFC 8949, section 8), just large enough for the RFC's examples
//! and for what `tenarc::diag` prints of them.
//!
//! Two texts that differ only in layout, string escapes, the way a number is spelled or a bignum
//! is shown read to the same [`Notation`].

/// What a notation says. Indefinite lengths and the width of floats are kept, so that they can be
/// compared where both sides state them.
#[derive(Clone, Debug, PartialEq)]
pub enum Notation {
    Integer(i128),
    Float(Float),
    Bytes(Vec<u8>),
    Text(String),
    Array {
        indefinite: bool,
        items: Vec<Notation>,
    },
    Map {
        indefinite: bool,
        entries: Vec<(Notation, Notation)>,
    },
    /// The chunks of a string of indefinite length.
    Chunks(Vec<Notation>),
    Tag(u64, Box<Notation>),
    /// `false`, `true`, `null` and `undefined` are 20 to 23.
    Simple(u8),
}

/// A float and the encoding indicator behind it: 1 for half, 2 for single, 3 for double.
#[derive(Clone, Copy, Debug)]
pub struct Float {
    pub value: f64,
    pub width: Option<u8>,
}

impl PartialEq for Float {
    /// Equal in value, the sign of zero included. The RFC's table states no widths and prints all
    /// digits of the double, where a printer that states single width need not.
    #[allow(clippy::cast_possible_truncation)]
    fn eq(&self, other: &Self) -> bool {
        let narrow = matches!(self.width.or(other.width), Some(1 | 2));
        let seen = |value: f64| if narrow { f64::from(value as f32) } else { value };
        same_float(seen(self.value), seen(other.value))
    }
}

/// All NaNs are one: notation has no way to tell them apart.
pub fn same_float(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

pub fn parse(text: &str) -> Notation {
    let mut parser = Parser { text, at: 0 };
    let item = parser.item();
    parser.space();
    assert_eq!(parser.rest(), "", "text behind the item of {text}");
    item
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn space(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn take(&mut self, prefix: &str) -> bool {
        let found = self.rest().starts_with(prefix);
        if found {
            self.at += prefix.len();
        }
        found
    }

    fn expect(&mut self, prefix: &str) {
        assert!(self.take(prefix), "no `{prefix}` at {} in {}", self.at, self.text);
    }

    fn take_while(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn item(&mut self) -> Notation {
        self.space();
        match self.rest().as_bytes() {
            [b'"', ..] => Notation::Text(self.text_string()),
            [b'h', b'\'', ..] => Notation::Bytes(self.byte_string()),
            [b'[', ..] => {
                self.at += 1;
                let indefinite = self.take("_");
                let items = self.until("]", Self::item);
                Notation::Array { indefinite, items }
            }
            [b'{', ..] => {
                self.at += 1;
                let indefinite = self.take("_");
                let entries = self.until("}", |parser| {
                    let key = parser.item();
                    parser.space();
                    parser.expect(":");
                    (key, parser.item())
                });
                Notation::Map { indefinite, entries }
            }
            [b'(', ..] => {
                self.at += 1;
                self.expect("_");
                Notation::Chunks(self.until(")", Self::item))
            }
            [b'a'..=b'z', ..] => self.simple(),
            _ => self.number(),
        }
    }

    /// Items with commas between them, up to the closing text.
    fn until<T>(&mut self, close: &str, mut item: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let mut items = Vec::new();
        loop {
            self.space();
            if self.take(close) {
                return items;
            }
            if !items.is_empty() {
                self.expect(",");
            }
            items.push(item(self));
        }
    }

    fn simple(&mut self) -> Notation {
        let name = self.take_while(|c| c.is_ascii_lowercase());
        Notation::Simple(match name {
            "false" => 20,
            "true" => 21,
            "null" => 22,
            "undefined" => 23,
            "simple" => {
                self.expect("(");
                let number = self.take_while(|c| c.is_ascii_digit()).parse().unwrap();
                self.expect(")");
                number
            }
            other => panic!("unknown word {other} in {}", self.text),
        })
    }

    fn number(&mut self) -> Notation {
        let text = self.take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.'));
        let width =
            self.take("_").then(|| self.take_while(|c| c.is_ascii_digit()).parse().unwrap());
        if self.take("(") {
            let content = self.item();
            self.space();
            self.expect(")");
            return tagged(text.parse().unwrap(), content);
        }
        let value = match text {
            "Infinity" => f64::INFINITY,
            "-Infinity" => f64::NEG_INFINITY,
            "NaN" => f64::NAN,
            number if number.contains(['.', 'e', 'E']) => number.parse().unwrap(),
            number => return Notation::Integer(number.parse().unwrap()),
        };
        Notation::Float(Float { value, width })
    }

    fn byte_string(&mut self) -> Vec<u8> {
        self.expect("h'");
        let digits = self.take_while(|c| c.is_ascii_hexdigit());
        self.expect("'");
        super::unhex(digits)
    }

    /// Escapes are those of JSON: the RFC writes characters outside ASCII as UTF-16 in `\u`.
    fn text_string(&mut self) -> String {
        let rest = self.rest();
        let mut escaped = false;
        let end = rest[1..].find(|c| {
            let closes = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            closes
        });
        let literal = &rest[..end.expect("an open string") + 2];
        self.at += literal.len();
        serde_json::from_str(literal).unwrap()
    }
}

/// A bignum is a number, whichever of its two notations was chosen.
fn tagged(tag: u64, content: Notation) -> Notation {
    if let (2 | 3, Notation::Bytes(bytes)) = (tag, &content) {
        let number = bytes.iter().fold(0, |sum, byte| sum << 8 | i128::from(*byte));
        return Notation::Integer(if tag == 2 { number } else { -1 - number });
    }
    Notation::Tag(tag, Box::new(content))
}
