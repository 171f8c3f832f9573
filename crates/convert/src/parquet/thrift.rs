//! Checks the structs that describe a file, before the library reads them: the footer, and the headers of pages. They
//! are written in Thrift's compact protocol.
//!
//! The library skips fields that it does not know. When it skips a list of bools, no element takes a byte, so a list of
//! six bytes makes it count to 2^31. It also reads the fields that it knows without comparing their types, so that a
//! field of another type could hide such a list. Both are refused here. All other elements take at least one byte, and
//! what is missing at the end is an error. So the library does no more work than there are bytes.

use tenarc::{Error, Result};

/// The most levels of structs and lists. The library skips no deeper ones, and a file has ten.
const MAX_DEPTH: usize = 64;

/// The type of a field that the library knows.
#[derive(Debug)]
pub enum Type {
    Bool,
    Byte,
    /// An integer of two, four or eight bytes. All of them are written as varints.
    Int,
    Double,
    Binary,
    List(&'static Type),
    Struct(Fields),
}

/// The fields of a struct by their numbers.
pub type Fields = &'static [(i16, Type)];

use Type::{Binary, Bool, Byte, Double, Int, List, Struct};

/// `FileMetaData`. Here and below, the names are those of `parquet.thrift`. The fields of encrypted files are not among
/// them, because they are skipped.
pub const FILE: Fields = &[
    (1, Int),
    (2, List(&Struct(SCHEMA_ELEMENT))),
    (3, Int),
    (4, List(&Struct(ROW_GROUP))),
    (5, List(&Struct(KEY_VALUE))),
    (6, Binary),
    (7, List(&Struct(COLUMN_ORDER))),
];

/// `PageHeader`.
pub const PAGE: Fields = &[
    (1, Int),
    (2, Int),
    (3, Int),
    (4, Int),
    // `DataPageHeader`.
    (5, Struct(&[(1, Int), (2, Int), (3, Int), (4, Int), (5, Struct(STATISTICS))])),
    // `IndexPageHeader`.
    (6, Struct(&[])),
    // `DictionaryPageHeader`.
    (7, Struct(&[(1, Int), (2, Int), (3, Bool)])),
    (8, Struct(DATA_PAGE_V2)),
];

const DATA_PAGE_V2: Fields = &[
    (1, Int),
    (2, Int),
    (3, Int),
    (4, Int),
    (5, Int),
    (6, Int),
    (7, Bool),
    (8, Struct(STATISTICS)),
];

const SCHEMA_ELEMENT: Fields = &[
    (1, Int),
    (2, Int),
    (3, Int),
    (4, Binary),
    (5, Int),
    (6, Int),
    (7, Int),
    (8, Int),
    (9, Int),
    (10, Struct(LOGICAL_TYPE)),
];

/// A union: a struct with one field.
const LOGICAL_TYPE: Fields = &[
    (1, EMPTY),
    (2, EMPTY),
    (3, EMPTY),
    (4, EMPTY),
    // `DecimalType`.
    (5, Struct(&[(1, Int), (2, Int)])),
    (6, EMPTY),
    // `TimeType` and `TimestampType`.
    (7, Struct(TIME)),
    (8, Struct(TIME)),
    // `IntType`.
    (10, Struct(&[(1, Byte), (2, Bool)])),
    (11, EMPTY),
    (12, EMPTY),
    (13, EMPTY),
    (14, EMPTY),
    (15, EMPTY),
    // `VariantType`, `GeometryType` and `GeographyType`.
    (16, Struct(&[(1, Byte)])),
    (17, Struct(&[(1, Binary)])),
    (18, Struct(&[(1, Binary), (2, Int)])),
    (19, EMPTY),
];

const EMPTY: Type = Struct(&[]);

const TIME: Fields = &[(1, Bool), (2, Struct(&[(1, EMPTY), (2, EMPTY), (3, EMPTY)]))];

const COLUMN_ORDER: Fields = &[(1, EMPTY), (2, EMPTY), (3, EMPTY)];

const KEY_VALUE: Fields = &[(1, Binary), (2, Binary)];

const ROW_GROUP: Fields = &[
    (1, List(&Struct(COLUMN_CHUNK))),
    (2, Int),
    (3, Int),
    // `SortingColumn`.
    (4, List(&Struct(&[(1, Int), (2, Bool), (3, Bool)]))),
    (5, Int),
    (6, Int),
    (7, Int),
];

const COLUMN_CHUNK: Fields =
    &[(1, Binary), (2, Int), (3, Struct(COLUMN_METADATA)), (4, Int), (5, Int), (6, Int), (7, Int)];

const COLUMN_METADATA: Fields = &[
    (1, Int),
    (2, List(&Int)),
    (3, List(&Binary)),
    (4, Int),
    (5, Int),
    (6, Int),
    (7, Int),
    (8, List(&Struct(KEY_VALUE))),
    (9, Int),
    (10, Int),
    (11, Int),
    (12, Struct(STATISTICS)),
    // `PageEncodingStats`.
    (13, List(&Struct(&[(1, Int), (2, Int), (3, Int)]))),
    (14, Int),
    (15, Int),
    // `SizeStatistics`.
    (16, Struct(&[(1, Int), (2, List(&Int)), (3, List(&Int))])),
    // `GeospatialStatistics`.
    (17, Struct(&[(1, Struct(BOUNDING_BOX)), (2, List(&Int))])),
];

const STATISTICS: Fields = &[
    (1, Binary),
    (2, Binary),
    (3, Int),
    (4, Int),
    (5, Binary),
    (6, Binary),
    (7, Bool),
    (8, Bool),
    (9, Int),
];

const BOUNDING_BOX: Fields = &[
    (1, Double),
    (2, Double),
    (3, Double),
    (4, Double),
    (5, Double),
    (6, Double),
    (7, Double),
    (8, Double),
];

impl Type {
    /// Whether the protocol's code for a type is that of this one.
    fn is(&self, code: u8) -> bool {
        match self {
            Bool => is_bool(code),
            Byte => code == 3,
            Int => matches!(code, 4..=6),
            Double => code == 7,
            Binary => code == 8,
            List(_) => code == 9,
            Struct(_) => code == 12,
        }
    }
}

/// In a field, the code is the value: true or false. In a list, writers use one or the other.
fn is_bool(code: u8) -> bool {
    matches!(code, 1 | 2)
}

/// Describes a type for a message.
fn name(code: u8) -> &'static str {
    match code {
        1 | 2 => "a bool",
        3 => "a byte",
        4..=6 => "an integer",
        7 => "a double",
        8 => "bytes",
        9 => "a list",
        10 => "a set",
        11 => "a map",
        12 => "a struct",
        _ => "a UUID",
    }
}

impl std::fmt::Display for Type {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(name(match self {
            Bool => 1,
            Byte => 3,
            Int => 4,
            Double => 7,
            Binary => 8,
            List(_) => 9,
            Struct(_) => 12,
        }))
    }
}

/// Why a struct cannot be read.
pub enum Fault {
    /// The bytes end inside of the struct.
    CutOff,
    Damage(Error),
}

/// Checks the struct at the start of `bytes`. `start` is their offset in the file.
pub fn check(bytes: &[u8], fields: Fields, start: u64) -> Result<(), Fault> {
    Walk { bytes, left: bytes, start }.fields(Some(fields), MAX_DEPTH)
}

struct Walk<'a> {
    bytes: &'a [u8],
    /// The bytes that were not read yet.
    left: &'a [u8],
    start: u64,
}

impl Walk<'_> {
    /// Walks over the fields of a struct. `known` are those that the library knows. `None` if it skips the struct.
    fn fields(&mut self, known: Option<Fields>, depth: usize) -> Result<(), Fault> {
        let mut id = 0i16;
        loop {
            let head = self.byte()?;
            let (delta, code) = (head >> 4, head & 0xf);
            match code {
                0 => return Ok(()),
                1..=13 => {}
                _ => return Err(self.damage(format!("a field has the unknown type {code}"))),
            }
            id = match delta {
                // Zigzag, of which the library keeps sixteen bits.
                0 => {
                    let number = self.varint()?;
                    let number = (number >> 1) ^ (number & 1).wrapping_neg();
                    let [low, high, ..] = number.to_le_bytes();
                    i16::from_le_bytes([low, high])
                }
                _ => id
                    .checked_add(delta.into())
                    .ok_or_else(|| self.damage("the number of a field is too large".into()))?,
            };
            let known = known.and_then(|known| known.iter().find(|known| known.0 == id));
            let known = known.map(|(_, known)| known);
            if let Some(expected) = known.filter(|known| !known.is(code)) {
                let what = format!("field {id} should be {expected}, found {}", name(code));
                return Err(self.damage(what));
            }
            // The value of a bool is in its type.
            if !is_bool(code) {
                self.value(code, known, depth)?;
            }
        }
    }

    /// Walks over a value. It is no bool.
    fn value(&mut self, code: u8, known: Option<&Type>, depth: usize) -> Result<(), Fault> {
        let Some(depth) = depth.checked_sub(1) else {
            let what = format!("structs are nested more deeply than {MAX_DEPTH} levels");
            return Err(self.damage(what));
        };
        match code {
            3 => self.skip(1),
            4..=6 => self.varint().map(drop),
            7 => self.skip(8),
            8 => {
                let len = self.varint()?;
                self.skip(len)
            }
            9 | 10 => self.list(known, depth),
            11 => {
                let count = self.varint()?;
                if count == 0 {
                    return Ok(());
                }
                let head = self.byte()?;
                let (key, value) = (head >> 4, head & 0xf);
                self.check_element(key)?;
                self.check_element(value)?;
                for _ in 0..count {
                    self.value(key, None, depth)?;
                    self.value(value, None, depth)?;
                }
                Ok(())
            }
            12 => match known {
                Some(Struct(fields)) => self.fields(Some(fields), depth),
                _ => self.fields(None, depth),
            },
            _ => self.skip(16),
        }
    }

    fn list(&mut self, known: Option<&Type>, depth: usize) -> Result<(), Fault> {
        let head = self.byte()?;
        let (count, code) = (head >> 4, head & 0xf);
        let count = if count == 15 { self.varint()? } else { count.into() };
        if count == 0 {
            return Ok(());
        }
        self.check_element(code)?;
        let of = match known {
            Some(List(of)) if !of.is(code) => {
                let what = format!("a list should have {of} as elements, found {}", name(code));
                return Err(self.damage(what));
            }
            Some(List(of)) => Some(*of),
            _ => None,
        };
        for _ in 0..count {
            self.value(code, of, depth)?;
        }
        Ok(())
    }

    /// Checks the type of the elements of a list or a map that is not empty.
    fn check_element(&self, code: u8) -> Result<(), Fault> {
        match code {
            1 | 2 => Err(self.damage("a list or a map of bools, which no Parquet file has".into())),
            3..=13 => Ok(()),
            _ => Err(self.damage(format!("an element has the unknown type {code}"))),
        }
    }

    fn byte(&mut self) -> Result<u8, Fault> {
        let (first, left) = self.left.split_first().ok_or(Fault::CutOff)?;
        self.left = left;
        Ok(*first)
    }

    fn skip(&mut self, len: u64) -> Result<(), Fault> {
        let left = usize::try_from(len).ok().and_then(|len| self.left.get(len..));
        self.left = left.ok_or(Fault::CutOff)?;
        Ok(())
    }

    fn varint(&mut self) -> Result<u64, Fault> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(self.damage("an integer has more than ten bytes".into()))
    }

    #[cold]
    fn damage(&self, what: String) -> Fault {
        let at = self.bytes.len().saturating_sub(self.left.len()) as u64;
        Fault::Damage(Error::damaged(what).at(self.start.saturating_add(at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(bytes: &[u8], fields: Fields) -> String {
        match check(bytes, fields, 100) {
            Ok(()) => String::new(),
            Err(Fault::CutOff) => "cut off".to_owned(),
            Err(Fault::Damage(error)) => error.to_string(),
        }
    }

    #[test]
    fn fields_that_are_not_known_are_walked_over() {
        // A list of two integers, a map from bytes to texts, a double, a UUID, and a struct in a list of lists.
        let bytes = [
            &[0x09, 0xc8, 1, 0x25, 1, 0x80, 1][..],
            &[0x1b, 1, 0x38, 7, 2, b'a', b'b'],
            &[0x17, 0, 0, 0, 0, 0, 0, 0, 0],
            &[&[0x1d][..], &[0; 16]].concat(),
            &[0x19, 0x19, 0x1c, 0x11, 0],
            &[0],
        ]
        .concat();
        assert_eq!(message(&bytes, FILE), "");
        for len in 0..bytes.len() {
            assert_eq!(message(&bytes[..len], FILE), "cut off", "{len}");
        }
    }

    #[test]
    fn what_takes_no_bytes_is_refused() {
        let bools = "a list or a map of bools, which no Parquet file has";
        for code in [1, 2] {
            let list = [0x09, 0xc8, 1, 0xf0 | code, 0xff, 0xff, 0xff, 0xff, 7];
            assert!(message(&list, FILE).contains(bools), "{}", message(&list, FILE));
            // A list of one bool in a list of lists in a struct.
            let inner = [0x0c, 0xc8, 1, 0x19, 0x19, 0x19, 0x10 | code, 0, 0];
            assert!(message(&inner, FILE).contains(bools), "{}", message(&inner, FILE));
            let map = [0x0b, 0xc8, 1, 0xff, 0xff, 3, 0x10 * code + 3];
            assert!(message(&map, PAGE).contains(bools), "{}", message(&map, PAGE));
            let map = [0x0b, 0xc8, 1, 0xff, 0xff, 3, 0x30 + code];
            assert!(message(&map, PAGE).contains(bools), "{}", message(&map, PAGE));
        }
        // None are in it.
        assert_eq!(message(&[0x09, 0xc8, 1, 0x02, 0x1b, 0, 0], FILE), "");
    }

    /// Otherwise the library would read one thing, and this check another.
    #[test]
    fn known_fields_have_their_types() {
        let say = |bytes: &[u8], fields, what: &str| {
            let found = message(bytes, fields);
            assert!(found.contains(what), "{found}");
        };
        say(&[0x18, 1, 0], FILE, "field 1 should be an integer, found bytes (byte 101)");
        say(&[0x15, 2, 0x1c], FILE, "field 2 should be a list, found a struct (byte 103)");
        say(&[0x29, 0x15, 2], FILE, "a list should have a struct as elements, found an integer");
        // The name of an element of the schema.
        say(&[0x29, 0x1c, 0x45], FILE, "field 4 should be bytes, found an integer");
        say(&[0x6c, 0x15], PAGE, "cut off");
        say(&[0x7c, 0x35], PAGE, "field 3 should be a bool, found an integer");
        say(&[0x1e], PAGE, "a field has the unknown type 14");
        say(&[0x09, 0xc8, 1, 0x1e], PAGE, "an element has the unknown type 14");
        say(&[0xff; 20], PAGE, "a field has the unknown type 15");
        say(&[&[0x15][..], &[0x80; 12]].concat(), PAGE, "an integer has more than ten bytes");
        say(&[&[0x0c, 0xc8, 1][..], &[0x1c; 70]].concat(), PAGE, "more deeply than 64 levels");
    }
}
