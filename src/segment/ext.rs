//! Extensions: what later versions may add to records without a new version of the format (SPEC 5.13).

use std::collections::BTreeMap;

use super::items::{ItemEncoder, head_len};
use crate::error::{Category, Error, Result};
use crate::io::input::Input;
use crate::options::Limits;
use crate::wire::head;
use crate::wire::reader::Reader;
use crate::wire::statistics::StatisticsBuilder;

/// The maximum length of the extensions of a record in bytes.
const MAX: usize = 65_536;

/// The key of the notes in a header.
const NOTES: u64 = 0;
/// The key of the statistics of columns.
const STATISTICS: u64 = 2;

/// The extensions of a record: a map with unsigned keys. Held as it is encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ext(Box<[u8]>);

impl Default for Ext {
    /// No extensions.
    fn default() -> Self {
        Self([head::MAP << 5].into())
    }
}

/// Why extensions are refused, and where in them.
pub struct RefusedExt {
    pub at: usize,
    pub what: String,
}

fn refused(at: usize, what: impl Into<String>) -> RefusedExt {
    RefusedExt { at, what: what.into() }
}

impl Ext {
    /// The extensions of a header with these notes.
    ///
    /// # Errors
    /// If they are too long.
    pub fn of_notes(notes: &BTreeMap<String, String>) -> Result<Self> {
        if notes.is_empty() {
            return Ok(Self::default());
        }
        let mut items = ItemEncoder::new();
        items.head(head::MAP, 1)?.head(head::UNSIGNED, NOTES)?;
        items.head(head::MAP, notes.len() as u64)?;
        for (key, value) in notes {
            items.name(Some(key))?.name(Some(value))?;
        }
        let bytes = items.into_bytes();
        if bytes.len() > MAX {
            let found = bytes.len();
            return Err(Error::limit(format!(
                "expected notes of at most {MAX} bytes in total, found {found} bytes"
            )));
        }
        Ok(Self(bytes.into()))
    }

    /// These extensions, which have at most notes, and the statistics of columns, if there is room for any.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn with_statistics(&self, statistics: StatisticsBuilder) -> Result<Self> {
        let room = MAX.saturating_sub(self.0.len() + 1);
        let Some(statistics) = statistics.encoded(room)? else { return Ok(self.clone()) };
        let mut items = ItemEncoder::with_capacity(self.0.len() + statistics.len());
        items.head(head::MAP, self.entries().count() as u64 + 1)?;
        // The map of at most one entry has a head of one byte.
        items.raw(self.0.get(1..).unwrap_or_default())?;
        items.head(head::UNSIGNED, STATISTICS)?.raw(&statistics)?;
        Ok(Self(items.into_bytes().into()))
    }

    /// Reads extensions from the start of `bytes`.
    pub fn parse(bytes: &[u8]) -> Result<Self, RefusedExt> {
        let (major, ..) = head::definite(bytes)
            .ok_or_else(|| refused(0, "expected a map of extensions, found other bytes"))?;
        let whole = head::item_len(bytes).filter(|_| major == head::MAP);
        let Some(len) = whole else {
            return Err(refused(0, "expected a map of extensions with definite lengths"));
        };
        if len > MAX {
            let what = format!("expected extensions of at most {MAX} bytes, found {len} bytes");
            return Err(refused(0, what));
        }
        let item = bytes.get(..len).unwrap_or_default();
        let mut wire = Reader::new(Input::slice(item), Limits::default());
        if let Err(error) = wire.skip() {
            let at = error.offset().and_then(|at| usize::try_from(at).ok());
            return Err(refused(at.unwrap_or_default(), error.message()));
        }
        if let Some(at) = longer_head(item) {
            return Err(refused(at, "expected the shortest head in the extensions"));
        }
        let ext = Self(item.into());
        let mut before = None;
        for (at, key, value) in ext.entries() {
            let Some(key) = key else {
                return Err(refused(at, "expected an unsigned integer as the key of an extension"));
            };
            if before >= Some(key) {
                let what = format!("the extension {key} is not after the one before it");
                return Err(refused(at, what));
            }
            before = Some(key);
            if key == NOTES
                && let Err(what) = notes_in(value)
            {
                return Err(refused(at, what));
            }
        }
        Ok(ext)
    }

    /// The extensions as they are encoded.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The offset, the key and the encoded value of each entry. The key is `None` if it is no unsigned integer.
    fn entries(&self) -> impl Iterator<Item = (usize, Option<u64>, &[u8])> {
        let (entries, mut at) =
            head::definite(&self.0).map_or((0, 0), |(_, entries, head)| (entries, head));
        (0..entries).map_while(move |_| {
            let start = at;
            let rest = self.0.get(start..)?;
            let key_len = head::item_len(rest)?;
            let value_len = head::item_len(rest.get(key_len..)?)?;
            at += key_len + value_len;
            let key = match head::definite(rest) {
                Some((head::UNSIGNED, key, _)) => Some(key),
                _ => None,
            };
            Some((start, key, rest.get(key_len..key_len + value_len)?))
        })
    }

    /// The first key that a reader must know and that this version does not know. They are odd.
    fn unknown(&self) -> Option<u64> {
        self.entries().filter_map(|(_, key, _)| key).find(|key| key % 2 == 1)
    }

    /// Whether this version may read what the record says.
    pub fn is_known(&self) -> bool {
        self.unknown().is_none()
    }

    /// # Errors
    /// If there is an extension that a reader must know. `what` is the thing that it extends.
    pub fn check(&self, what: &str, offset: u64) -> Result<()> {
        self.unknown().map_or(Ok(()), |key| {
            let what = format!(
                "{what} has the extension {key}, which this version of tenarc does not know and must not ignore"
            );
            Err(Error::new(Category::Version, what).at(offset))
        })
    }

    /// Those extensions that change what the record means, for a digest.
    pub fn of_meaning(&self) -> Result<Self> {
        let odd = || self.entries().filter(|(_, key, _)| key.is_some_and(|key| key % 2 == 1));
        let mut items = ItemEncoder::new();
        items.head(head::MAP, odd().count() as u64)?;
        for (_, key, value) in odd() {
            items.head(head::UNSIGNED, key.unwrap_or_default())?.raw(value)?;
        }
        Ok(Self(items.into_bytes().into()))
    }

    /// The notes of a header.
    pub fn notes(&self) -> BTreeMap<String, String> {
        self.value(NOTES).and_then(|notes| notes_in(notes).ok()).unwrap_or_default()
    }

    /// The statistics of columns in a header, as they are encoded.
    pub fn statistics(&self) -> Option<&[u8]> {
        self.value(STATISTICS)
    }

    fn value(&self, wanted: u64) -> Option<&[u8]> {
        self.entries().find(|(_, key, _)| *key == Some(wanted)).map(|(_, _, value)| value)
    }
}

/// Reads notes: a map from texts to texts, with ascending keys.
fn notes_in(value: &[u8]) -> Result<BTreeMap<String, String>, String> {
    let mut wire = Reader::new(Input::slice(value), Limits::default());
    let text = |wire: &mut Reader<'_, '_>| {
        let head = wire.head()?;
        if head.major() != head::TEXT {
            return Err(Error::data("expected a text in the notes"));
        }
        Ok(wire.text(head)?.as_str().to_owned())
    };
    let mut read = || {
        let map = wire.head()?;
        if map.major() != head::MAP {
            return Err(Error::data("expected a map as the notes"));
        }
        let mut notes = BTreeMap::new();
        for _ in 0..map.arg {
            let (key, note) = (text(&mut wire)?, text(&mut wire)?);
            if notes.last_key_value().is_some_and(|(last, _)| *last >= key) {
                return Err(Error::data("the keys of the notes do not ascend"));
            }
            notes.insert(key, note);
        }
        Ok(notes)
    };
    read().map_err(|error: Error| error.message())
}

/// Where an item with definite lengths has a head that is longer than it must be.
pub fn longer_head(item: &[u8]) -> Option<usize> {
    let mut at = 0usize;
    while let Some((major, arg, len)) = item.get(at..).and_then(head::definite) {
        match major {
            // The widths of floats are not free, and a simple value has one encoding.
            head::SIMPLE if len == 2 && arg < 32 => return Some(at),
            head::SIMPLE => {}
            _ if len as u64 != head_len(arg) => return Some(at),
            _ => {}
        }
        at += len;
        if matches!(major, head::BYTES | head::TEXT) {
            at = at.saturating_add(usize::try_from(arg).unwrap_or(usize::MAX));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(bytes: &[u8]) -> Result<Ext, String> {
        Ext::parse(bytes).map_err(|refused| format!("{}: {}", refused.at, refused.what))
    }

    #[test]
    fn keys_ascend_and_odd_ones_must_be_known() {
        assert_eq!(parsed(b"\xa0").unwrap(), Ext::default());
        let even = parsed(b"\xa2\x02\x01\x18\x20\x82\x01\x41x").unwrap();
        assert_eq!((even.unknown(), even.bytes().len()), (None, 9));
        assert_eq!(even.of_meaning().unwrap(), Ext::default());
        let odd = parsed(b"\xa3\x02\x01\x03\x60\x05\xf6rest").unwrap();
        assert_eq!(odd.unknown(), Some(3));
        assert_eq!(odd.bytes(), b"\xa3\x02\x01\x03\x60\x05\xf6");
        assert_eq!(odd.of_meaning().unwrap().bytes(), b"\xa2\x03\x60\x05\xf6");
        let error = odd.check("the header", 12).unwrap_err();
        assert_eq!((error.category(), error.offset()), (Category::Version, Some(12)));
        assert!(error.to_string().contains("the extension 3"), "{error}");
    }

    #[test]
    fn there_is_one_encoding() {
        for bytes in [
            &b"\x80"[..],
            b"\xb8\x00",
            b"\xbf\xff",
            b"\xa1",
            b"\xa1\x02",
            b"\xa1\x61a\x01",
            b"\xa1\x20\x01",
            b"\xa2\x04\x01\x02\x01",
            b"\xa2\x02\x01\x02\x01",
            b"\xa1\x18\x02\x01",
            b"\xa1\x02\x18\x01",
            b"\xa1\x02\x9f\xff",
            b"\xa1\x02\x5f\x41a\xff",
            b"\xa1\x02\xf8\x14",
            b"\xa1\x02\x61\xff",
            b"\xa1\x00\x01",
            b"\xa1\x00\xa1\x61a\x01",
            b"\xa1\x00\xa2\x61b\x60\x61a\x60",
            b"\xa1\x00\xa1\x61\xff\x60",
        ] {
            assert!(parsed(bytes).is_err(), "{bytes:x?}");
        }
        let mut long = b"\xa1\x02\x59\xff\xff".to_vec();
        long.resize(long.len() + 65_535, 0);
        assert!(parsed(&long).unwrap_err().contains("65536"));
    }

    #[test]
    fn notes_are_texts_by_texts() {
        let notes = [("title", "a model"), ("author", "me")];
        let notes = notes.map(|(key, note)| (key.to_owned(), note.to_owned())).into();
        let ext = Ext::of_notes(&notes).unwrap();
        assert_eq!(ext.bytes(), b"\xa1\x00\xa2\x66author\x62me\x65title\x67a model");
        assert_eq!(parsed(ext.bytes()).unwrap().notes(), notes);
        assert_eq!(Ext::of_notes(&BTreeMap::new()).unwrap(), Ext::default());
        let long = BTreeMap::from([(String::new(), "x".repeat(65_536))]);
        assert_eq!(Ext::of_notes(&long).unwrap_err().category(), Category::Limit);
    }
}
