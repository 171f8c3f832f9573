//! Reads values from JSON.

use std::collections::HashSet;

use tenarc::de::Limits;
use tenarc::{Error, Result, Value};

use super::number;
use super::tensor;
use crate::input::{Input, STEP, Source};
use crate::values::{self, ReadValues};

/// The mark that programs of Windows put at the start of a text in UTF-8. It is skipped.
const BOM: [u8; 3] = *b"\xef\xbb\xbf";

/// Reads one JSON value after the other.
pub struct Reader<S> {
    input: Input<S>,
    limits: Limits,
}

impl<S: Source> ReadValues for Reader<S> {
    fn next_value(&mut self) -> Result<Option<Value>> {
        self.start()?;
        match self.space()? {
            None => Ok(None),
            Some(_) => self.value().map(Some),
        }
    }

    fn at(&self) -> u64 {
        self.input.at()
    }
}

impl<S: Source> Reader<S> {
    pub fn new(source: S, limits: Limits) -> Self {
        Self { input: Input::new(source, limits), limits }
    }

    /// Prepares for the next value.
    fn start(&mut self) -> Result<()> {
        self.input.renew(self.limits);
        if self.input.at() == 0 && self.input.peek()? == BOM.first().copied() {
            self.word(&BOM, "a byte order mark", ())?;
        }
        Ok(())
    }

    /// Skips white space, and returns the byte after it without consuming it. `None` at the end of the input.
    fn space(&mut self) -> Result<Option<u8>> {
        loop {
            match self.input.peek()? {
                Some(b' ' | b'\t' | b'\n' | b'\r') => self.input.bump(),
                other => return Ok(other),
            }
        }
    }

    fn unexpected(&mut self, expected: &str) -> Error {
        let at = self.input.at();
        match self.input.peek() {
            Ok(None) => Error::eof(expected).at(at),
            Ok(Some(byte)) => {
                let found = byte.escape_ascii();
                Error::syntax(format!("expected {expected}, found `{found}`")).at(at)
            }
            Err(error) => error,
        }
    }

    fn value(&mut self) -> Result<Value> {
        const WORDS: &str = "null, true or false";
        self.input.charge(size_of::<Value>() as u64)?;
        match self.space()? {
            Some(b'{') => self.map(),
            Some(b'[') => self.array(),
            Some(b'"') => self.text().map(Value::Text),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b'n') => self.word(b"null", WORDS, Value::Null),
            Some(b't') => self.word(b"true", WORDS, Value::Bool(true)),
            Some(b'f') => self.word(b"false", WORDS, Value::Bool(false)),
            _ => Err(self.unexpected("a JSON value")),
        }
    }

    /// Appends the next value to `out` as a message. Returns `false` at the end. Only one value at a time is in memory that has no
    /// arrays or maps in it, or is a tensor.
    pub fn append_next(&mut self, out: &mut Vec<u8>) -> Result<bool> {
        self.start()?;
        let Some(_) = self.space()? else { return Ok(false) };
        self.append(out)?;
        Ok(true)
    }

    fn append(&mut self, out: &mut Vec<u8>) -> Result<()> {
        match self.space()? {
            Some(b'[') => self.append_array(out),
            Some(b'{') => self.append_map(out),
            _ => tenarc::append_to(out, &self.value()?),
        }
    }

    fn append_array(&mut self, out: &mut Vec<u8>) -> Result<()> {
        self.input.enter()?;
        self.input.bump();
        if !matches!(self.space()?, Some(b'[' | b'{')) {
            let items = self.items()?;
            return tenarc::append_to(out, &items);
        }
        let (start, mut count) = (out.len(), 0);
        while self.more(count == 0, b']', "`,` or `]`")? {
            self.append(out).map_err(|error| error.in_index(count))?;
            count += 1;
        }
        self.input.leave();
        out.splice(start..start, values::head(false, count));
        Ok(())
    }

    fn append_map(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let at = self.input.at();
        self.input.enter()?;
        self.input.bump();
        let (start, mut keys) = (out.len(), HashSet::new());
        while self.more(keys.is_empty(), b'}', "`,` or `}`")? {
            let key = self.key(&mut keys)?;
            if keys.len() == 1 && tensor::is_part(&key) {
                let value = self.entries(at, keys, Some(key))?;
                return tenarc::append_to(out, &value);
            }
            tenarc::append_to(out, &key)?;
            self.append(out).map_err(|error| error.in_field(key))?;
        }
        self.input.leave();
        out.splice(start..start, values::head(true, keys.len() as u64));
        Ok(())
    }

    fn word<T>(&mut self, word: &[u8], expected: &str, value: T) -> Result<T> {
        for &byte in word {
            if self.input.peek()? != Some(byte) {
                return Err(self.unexpected(expected));
            }
            self.input.bump();
        }
        Ok(value)
    }

    /// Consumes the comma before the next item, or `end`. Returns whether an item follows. No comma precedes the first
    /// item.
    fn more(&mut self, first: bool, end: u8, expected: &str) -> Result<bool> {
        match self.space()? {
            Some(byte) if byte == end => {
                self.input.bump();
                Ok(false)
            }
            Some(_) if first => Ok(true),
            Some(b',') => {
                self.input.bump();
                Ok(true)
            }
            _ => Err(self.unexpected(expected)),
        }
    }

    fn array(&mut self) -> Result<Value> {
        self.input.enter()?;
        self.input.bump();
        self.items()
    }

    /// Reads the items of an array whose start was read, and its end.
    fn items(&mut self) -> Result<Value> {
        let mut items = Vec::new();
        while self.more(items.is_empty(), b']', "`,` or `]`")? {
            let item = self.value().map_err(|error| error.in_index(items.len() as u64))?;
            items.push(item);
        }
        self.input.leave();
        Ok(Value::Array(items))
    }

    fn map(&mut self) -> Result<Value> {
        let at = self.input.at();
        self.input.enter()?;
        self.input.bump();
        self.entries(at, HashSet::new(), None)
    }

    /// Reads the entries of a map that starts at this offset, and its end. `first` is the first key, if it was read.
    fn entries(
        &mut self,
        at: u64,
        mut keys: HashSet<String>,
        mut first: Option<String>,
    ) -> Result<Value> {
        let mut entries = Vec::new();
        while first.is_some() || self.more(entries.is_empty(), b'}', "`,` or `}`")? {
            let key = match first.take() {
                Some(key) => key,
                None => self.key(&mut keys)?,
            };
            match self.value() {
                Ok(value) => entries.push((Value::Text(key), value)),
                Err(error) => return Err(error.in_field(key)),
            }
        }
        self.input.leave();
        tensor::recognised(entries, self.limits).map_err(|error| error.at(at))
    }

    /// Reads a key and the colon after it. It must not be in `keys`, to which it is added.
    fn key(&mut self, keys: &mut HashSet<String>) -> Result<String> {
        let key_at = self.input.at();
        if self.space()? != Some(b'"') {
            return Err(self.unexpected("a string as key"));
        }
        let key = self.text()?;
        // The memory of the key's value, and of the copy of the key in `keys`.
        self.input.charge((size_of::<Value>() + size_of::<String>() + key.len()) as u64)?;
        if !keys.insert(key.clone()) {
            let what = "there are two entries of this key";
            return Err(Error::data(what).at(key_at).in_field(key));
        }
        if self.space()? != Some(b':') {
            return Err(self.unexpected("`:`").in_field(key));
        }
        self.input.bump();
        Ok(key)
    }

    fn number(&mut self) -> Result<Value> {
        let at = self.input.at();
        let mut text = String::new();
        while let Some(byte @ (b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9')) =
            self.input.peek()?
        {
            if text.len() == number::MAX_LEN {
                let most = number::MAX_LEN;
                return Err(
                    Error::limit(format!("a number has more than {most} characters")).at(at)
                );
            }
            text.push(byte.into());
            self.input.bump();
        }
        number::parse(&text).map_err(|error| error.at(at))
    }

    fn text(&mut self) -> Result<String> {
        const WHAT: &str = "the end of a string";
        let start = self.input.at();
        self.input.bump();
        let mut bytes = Vec::new();
        let mut charged = 0;
        loop {
            let at = self.input.at();
            match self.input.byte(WHAT)? {
                b'"' => break,
                b'\\' => {
                    let char = self.escape()?;
                    bytes.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
                }
                byte @ ..0x20 => {
                    let what = format!(
                        "a string has the control character {byte:#04x}, which must be escaped"
                    );
                    return Err(Error::syntax(what).at(at));
                }
                byte => bytes.push(byte),
            }
            if bytes.len() >= charged {
                self.input.charge(STEP.min(bytes.len().max(32)) as u64)?;
                charged = bytes.len() + STEP.min(bytes.len().max(32));
            }
        }
        String::from_utf8(bytes).map_err(|_| Error::syntax("a string is not UTF-8").at(start))
    }

    fn escape(&mut self) -> Result<char> {
        let at = self.input.at();
        let known = |code| match code {
            b'"' | b'\\' | b'/' => Some(char::from(code)),
            b'b' => Some('\u{8}'),
            b'f' => Some('\u{c}'),
            b'n' => Some('\n'),
            b'r' => Some('\r'),
            b't' => Some('\t'),
            _ => None,
        };
        let code = self.input.byte("an escaped character")?;
        if code != b'u' {
            let found = code.escape_ascii();
            let unknown = || Error::syntax(format!("`\\{found}` is not an escape of JSON")).at(at);
            return known(code).ok_or_else(unknown);
        }
        let wrong =
            || Error::syntax("found half of a surrogate pair, which is not a character").at(at);
        let first = self.hex()?;
        if !(0xd800..0xe000).contains(&first) {
            return char::from_u32(first).ok_or_else(wrong);
        }
        if first >= 0xdc00 {
            return Err(wrong());
        }
        for expected in *b"\\u" {
            if self.input.byte("the other half of a surrogate pair")? != expected {
                return Err(wrong());
            }
        }
        match self.hex()? {
            second @ 0xdc00..0xe000 => {
                let code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                char::from_u32(code).ok_or_else(wrong)
            }
            _ => Err(wrong()),
        }
    }

    fn hex(&mut self) -> Result<u32> {
        let mut code = 0;
        for _ in 0..4 {
            let at = self.input.at();
            let byte = self.input.byte("a hexadecimal digit")?;
            let digit = char::from(byte).to_digit(16);
            let digit =
                digit.ok_or_else(|| Error::syntax("expected four hexadecimal digits").at(at))?;
            code = code << 4 | digit;
        }
        Ok(code)
    }
}
