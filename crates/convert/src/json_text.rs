//! Reads and writes JSON texts of a known form, such as headers, indices and the parameters of extension types.
//! `serde_json` parses them. This module converts its errors to those of tenarc, and reads objects without losing the
//! order of entries.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use serde_json::error::Category as Kind;
use serde_path_to_error::Segment;
use tenarc::error::Category;
use tenarc::{Error, Result};

/// The greatest length of a message, in characters. Messages of `serde_json` quote the text, which can be of any
/// length.
const MAX_MESSAGE: usize = 200;

/// Parses a text that is a single JSON object.
pub fn parse<'t, T: FromObject<'t>>(text: &'t [u8]) -> Result<T> {
    let mut json = serde_json::Deserializer::from_slice(text);
    let Object(found) = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().clone();
        let steps: Vec<_> = path.iter().collect();
        steps.into_iter().rev().fold(refused(error.inner(), text), |error, step| match step {
            Segment::Map { key } => error.in_field(key),
            Segment::Seq { index } => error.in_index(*index as u64),
            Segment::Enum { .. } | Segment::Unknown => error,
        })
    })?;
    json.end().map_err(|error| refused(&error, text))?;
    Ok(found)
}

#[cold]
fn refused(error: &serde_json::Error, text: &[u8]) -> Error {
    let (line, column) = (error.line(), error.column());
    let what = error.to_string();
    let what = what.trim_end_matches(&format!(" at line {line} column {column}"));
    let more = if what.chars().nth(MAX_MESSAGE).is_some() { "…" } else { "" };
    let what: String = what.chars().take(MAX_MESSAGE).collect();
    let what = what.replace(char::is_control, "\u{fffd}") + more;
    let category = match error.classify() {
        Kind::Data => Category::Data,
        // The text is complete, because its length is known. So an early end is a syntax error, not a truncated file.
        Kind::Io | Kind::Syntax | Kind::Eof => Category::Syntax,
    };
    let lines = text.split_inclusive(|&byte| byte == b'\n').take(line.saturating_sub(1));
    let at = lines.map(<[u8]>::len).sum::<usize>() + column.saturating_sub(1);
    Error::new(category, what).at(at as u64)
}

/// Appends a value as JSON without white space.
pub fn put<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) -> Result<()> {
    serde_json::to_writer(out, value).map_err(|error| Error::io(error.into()))
}

/// A type that is read from the entries of a JSON object.
pub trait FromObject<'de>: Sized {
    /// A description of what is expected, for errors.
    const WHAT: &'static str;

    fn from_entries<A: MapAccess<'de>>(entries: A) -> Result<Self, A::Error>;
}

/// Reads entries whose values have one type, in their order. Equal keys are kept, so that the caller can refuse them.
impl<'de, T: Deserialize<'de>> FromObject<'de> for Vec<(String, T)> {
    const WHAT: &'static str = "an object";

    fn from_entries<A: MapAccess<'de>>(mut entries: A) -> Result<Self, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = entries.next_entry()? {
            pairs.push(pair);
        }
        Ok(pairs)
    }
}

/// Reads a struct that derives `Deserialize` from the entries of an object.
pub fn fields<'de, A: MapAccess<'de>, T: Deserialize<'de>>(entries: A) -> Result<T, A::Error> {
    T::deserialize(MapAccessDeserializer::new(entries))
}

/// A value that is read from a JSON object only. A struct that derives `Deserialize` also accepts an array, which the
/// formats do not allow.
pub struct Object<T>(pub T);

impl<'de, T: FromObject<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        struct Entries<T>(PhantomData<T>);

        impl<'de, T: FromObject<'de>> Visitor<'de> for Entries<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(T::WHAT)
            }

            fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<Object<T>, A::Error> {
                T::from_entries(entries).map(Object)
            }
        }

        json.deserialize_map(Entries(PhantomData))
    }
}

/// Serializes pairs as an object.
pub fn as_object<S: Serializer>(pairs: &[(String, String)], json: S) -> Result<S::Ok, S::Error> {
    json.collect_map(pairs.iter().map(|(key, text)| (key, text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_tell_path_and_offset() {
        type Lists = Vec<(String, Vec<u8>)>;
        let error = |text: &str| parse::<Lists>(text.as_bytes()).unwrap_err();
        let found = |text| (error(text).category(), error(text).path(), error(text).offset());
        let (data, syntax) = (Category::Data, Category::Syntax);
        assert_eq!(found("{\"a\":[],\r\n\"b.c\":\n[1,\n-2]}"), (data, "b.c.1".into(), Some(22)));
        assert_eq!(found("{\n\"a\":[1}"), (syntax, "a".into(), Some(8)));
        assert_eq!(found("{}\n\n ]"), (syntax, String::new(), Some(5)));
        assert_eq!(found("[]"), (data, String::new(), Some(0)));
        let pairs = parse::<Lists>(b" {\"b\":[1],\"a\":[],\"b\":[2]} ").unwrap();
        let expected = [("b", vec![1]), ("a", vec![]), ("b", vec![2])];
        assert_eq!(pairs, expected.map(|(key, list)| (key.to_owned(), list)));
    }
}
