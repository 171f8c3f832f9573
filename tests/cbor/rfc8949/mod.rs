//! The examples of RFC 8949, read from one table: see `../vectors/rfc8949.txt`.

mod notation;

use std::fmt::Debug;
use std::io::{self, Read};

use notation::{Notation, same_float};
use serde::de::{DeserializeOwned, IgnoredAny};
use tenarc::Value;
use tenarc::error::Category;
use tenarc::value::RawValue;

/// A row of Appendix A.
struct Example {
    bytes: Vec<u8>,
    note: &'static str,
    notation: &'static str,
}

/// A row of Appendix F, with the group it stands in.
struct CounterExample {
    bytes: Vec<u8>,
    category: Category,
    group: &'static str,
}

fn table() -> (Vec<Example>, Vec<CounterExample>) {
    let (mut examples, mut counter_examples, mut group) = (Vec::new(), Vec::new(), "");
    for line in include_str!("../vectors/rfc8949.txt").lines() {
        if let Some(title) = line.strip_prefix("== ") {
            group = title;
            continue;
        }
        let columns: Vec<&'static str> = line.splitn(4, " | ").collect();
        match columns[..] {
            ["A", hex, note, notation] => {
                examples.push(Example { bytes: unhex(hex), note, notation });
            }
            ["F", hex, kind] => {
                let category = match kind {
                    "eof" => Category::Eof,
                    "syntax" => Category::Syntax,
                    other => panic!("unknown kind {other}"),
                };
                counter_examples.push(CounterExample { bytes: unhex(hex), category, group });
            }
            _ => assert!(line.is_empty() || line.starts_with('#'), "unreadable row: {line}"),
        }
    }
    // A row lost to a typing error must not pass unseen.
    assert_eq!((examples.len(), counter_examples.len()), (81, 94));
    (examples, counter_examples)
}

fn unhex(digits: &str) -> Vec<u8> {
    assert!(digits.len().is_multiple_of(2), "odd number of digits: {digits}");
    (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap())
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

/// A reader that gives one byte at a time.
struct OneByte<'a>(&'a [u8]);

impl Read for OneByte<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let len = out.len().min(1);
        self.0.read(&mut out[..len])
    }
}

/// What each kind of source makes of the bytes.
fn from_everywhere<T: DeserializeOwned>(bytes: &[u8]) -> [(&'static str, tenarc::Result<T>); 3] {
    [
        ("slice", tenarc::from_slice(bytes)),
        ("reader", tenarc::from_reader(bytes)),
        ("one-byte reader", tenarc::from_reader(OneByte(bytes))),
    ]
}

fn says(value: &Value, notation: &Notation) -> bool {
    match (value, notation) {
        (Value::Null, Notation::Simple(22)) => true,
        (Value::Bool(value), Notation::Simple(code)) => 20 + u8::from(*value) == *code,
        (Value::Simple(value), Notation::Simple(code)) => value == code,
        (Value::Integer(value), Notation::Integer(number)) => value == number,
        (Value::F32(value), Notation::Float(float)) => {
            // Single and half floats are printed as the doubles of the same value.
            same_float(f64::from(*value), float.value)
        }
        (Value::F64(value), Notation::Float(float)) => same_float(*value, float.value),
        (Value::Bytes(value), Notation::Bytes(bytes)) => value == bytes,
        (Value::Bytes(value), Notation::Chunks(chunks)) => {
            let bytes = chunks.iter().map(|chunk| match chunk {
                Notation::Bytes(bytes) => bytes.as_slice(),
                other => panic!("chunk {other:?}"),
            });
            *value == bytes.collect::<Vec<_>>().concat()
        }
        (Value::Text(value), Notation::Text(text)) => value == text,
        (Value::Text(value), Notation::Chunks(chunks)) => {
            let texts = chunks.iter().map(|chunk| match chunk {
                Notation::Text(text) => text.as_str(),
                other => panic!("chunk {other:?}"),
            });
            *value == texts.collect::<String>()
        }
        (Value::Array(values), Notation::Array { items, .. }) => {
            values.len() == items.len()
                && values.iter().zip(items).all(|(value, item)| says(value, item))
        }
        (Value::Map(pairs), Notation::Map { entries, .. }) => {
            pairs.len() == entries.len()
                && pairs
                    .iter()
                    .zip(entries)
                    .all(|((key, value), (name, item))| says(key, name) && says(value, item))
        }
        (Value::Tag(tag, value), Notation::Tag(number, content)) => {
            tag == number && says(value, content)
        }
        _ => false,
    }
}

#[test]
fn examples_are_read_from_every_source() {
    for Example { bytes, notation, .. } in table().0 {
        let expected = notation::parse(notation);
        for (source, value) in from_everywhere::<Value>(&bytes) {
            let value = value.unwrap_or_else(|error| panic!("{notation} from {source}: {error}"));
            assert!(says(&value, &expected), "{notation} from {source} is {value:?}");
            match bytes[0] {
                0xf9 | 0xfa => assert!(matches!(value, Value::F32(_)), "{notation}: {value:?}"),
                0xfb => assert!(matches!(value, Value::F64(_)), "{notation}: {value:?}"),
                _ => {}
            }
        }
    }
}

#[test]
fn examples_in_preferred_form_are_written_as_they_stand() {
    for Example { bytes, note, notation } in table().0 {
        let value: Value = tenarc::from_slice(&bytes).unwrap();
        let written = tenarc::to_vec(&value).unwrap();
        match note {
            "same" => assert_eq!(hex(&written), hex(&bytes), "{notation}"),
            "half" | "indef" => {
                assert_ne!(hex(&written), hex(&bytes), "{notation}");
                let again: Value = tenarc::from_slice(&written).unwrap();
                assert!(says(&again, &notation::parse(notation)), "{notation}: {again:?}");
            }
            other => panic!("unknown note {other}"),
        }
    }
}

#[test]
fn examples_can_be_skipped_and_captured() {
    for Example { bytes, notation, .. } in table().0 {
        for (source, skipped) in from_everywhere::<IgnoredAny>(&bytes) {
            skipped.unwrap_or_else(|error| panic!("{notation} from {source}: {error}"));
        }
        for (source, raw) in from_everywhere::<Box<RawValue>>(&bytes) {
            let raw = raw.unwrap_or_else(|error| panic!("{notation} from {source}: {error}"));
            assert_eq!(hex(raw.as_bytes()), hex(&bytes), "{notation} from {source}");
        }
        let raw: &RawValue = tenarc::from_slice(&bytes).unwrap();
        assert_eq!(raw.as_bytes().as_ptr(), bytes.as_ptr(), "{notation} was copied");
    }
}

#[test]
fn diagnostic_notation_is_that_of_the_rfc() {
    for Example { bytes, notation, .. } in table().0 {
        let printed = tenarc::diag::to_string(&bytes).unwrap();
        let parsed = notation::parse(&printed);
        assert_eq!(parsed, notation::parse(notation), "{printed} for {notation}");
        if let Notation::Float(float) = parsed {
            // The additional information 25, 26, 27 as an encoding indicator (RFC 8949, 8.1).
            assert_eq!(float.width, Some((bytes[0] & 31) - 24), "{printed} for {notation}");
        }
    }
}

#[test]
fn ciborium_reads_the_same() {
    fn same(theirs: &ciborium::Value, notation: &Notation) -> bool {
        use ciborium::Value as Theirs;
        match (theirs, notation) {
            (Theirs::Null, Notation::Simple(22 | 23)) => true,
            (Theirs::Bool(value), Notation::Simple(code)) => 20 + u8::from(*value) == *code,
            (Theirs::Integer(value), Notation::Integer(number)) => i128::from(*value) == *number,
            // ciborium's value keeps bignums beyond 64 bits as they are.
            (Theirs::Tag(2, _), Notation::Integer(number)) => *number == 1 << 64,
            (Theirs::Tag(3, _), Notation::Integer(number)) => *number == -1 - (1 << 64),
            (Theirs::Float(value), Notation::Float(float)) => same_float(*value, float.value),
            (Theirs::Bytes(value), _) => says(&Value::Bytes(value.clone()), notation),
            (Theirs::Text(value), _) => says(&Value::Text(value.clone()), notation),
            (Theirs::Tag(tag, value), Notation::Tag(number, content)) => {
                tag == number && same(value, content)
            }
            (Theirs::Array(values), Notation::Array { items, .. }) => {
                values.len() == items.len()
                    && values.iter().zip(items).all(|(value, item)| same(value, item))
            }
            (Theirs::Map(pairs), Notation::Map { entries, .. }) => {
                pairs.len() == entries.len()
                    && pairs
                        .iter()
                        .zip(entries)
                        .all(|((key, value), (name, item))| same(key, name) && same(value, item))
            }
            _ => false,
        }
    }

    let mut refused = Vec::new();
    for Example { bytes, notation, .. } in table().0 {
        match ciborium::from_reader::<ciborium::Value, _>(&bytes[..]) {
            Ok(value) => {
                assert!(same(&value, &notation::parse(notation)), "{notation} is {value:?}");
            }
            Err(_) => refused.push(notation),
        }
    }
    // Its value has no place for other simple values.
    assert_eq!(refused, ["simple(16)", "simple(255)"]);
}

fn refuses<T: DeserializeOwned + Debug>(bytes: &[u8], category: Category, what: &str) {
    let name = std::any::type_name::<T>();
    for (source, result) in from_everywhere::<T>(bytes) {
        let place = format!("{} ({what}) as {name} from {source}", hex(bytes));
        let Err(error) = result else { panic!("{place}: {result:?}") };
        // A reader cannot know that a string of exabytes will not come, only that it is too long.
        let too_long = source != "slice" && matches!(bytes[..], [0x5b | 0x7b, 0x7f | 0xff, ..]);
        let refused = error.category();
        assert!(
            refused == category || too_long && refused == Category::Limit,
            "{place}: {refused:?}, {error}"
        );
    }
}

#[test]
fn counter_examples_are_refused() {
    for CounterExample { bytes, category, group } in table().1 {
        refuses::<Value>(&bytes, category, group);
        refuses::<IgnoredAny>(&bytes, category, group);
        refuses::<Box<RawValue>>(&bytes, category, group);
        assert!(tenarc::from_slice::<&RawValue>(&bytes).is_err(), "{} ({group})", hex(&bytes));
        assert!(tenarc::diag::to_string(&bytes).is_err(), "{} ({group})", hex(&bytes));
    }
}

#[test]
fn too_much_data_is_refused() {
    for Example { mut bytes, notation, .. } in table().0 {
        for extra in [0x00, 0xff, 0x18] {
            bytes.push(extra);
            refuses::<Value>(&bytes, Category::Syntax, notation);
            refuses::<IgnoredAny>(&bytes, Category::Syntax, notation);
            refuses::<Box<RawValue>>(&bytes, Category::Syntax, notation);
            bytes.pop();
        }
    }
}

#[test]
fn every_beginning_of_an_example_is_refused() {
    for Example { bytes, notation, .. } in table().0 {
        for len in 0..bytes.len() {
            refuses::<Value>(&bytes[..len], Category::Eof, notation);
            refuses::<IgnoredAny>(&bytes[..len], Category::Eof, notation);
            refuses::<Box<RawValue>>(&bytes[..len], Category::Eof, notation);
        }
    }
}
