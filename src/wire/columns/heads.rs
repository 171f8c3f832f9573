//! Reads heads and names inside columns, where all lengths are definite.

use std::borrow::Cow;

use crate::error::{Error, Result};
use crate::wire::encoded;
use crate::wire::head::{self, Head};
use crate::wire::reader::Reader;

/// Names of fields and variants may be longer than this many bytes. But a reader may copy a name for each row, so
/// each further piece of this length counts as a row without bytes.
const NAME_PIECE: usize = 256;

impl<'de> Reader<'de, '_> {
    /// Reads the head of an array of definite length.
    pub(super) fn array(&mut self, what: &str) -> Result<u64> {
        let at = self.offset();
        let head = self.head()?;
        if head.major() != head::ARRAY {
            return Err(wrong(what, head).at(at));
        }
        definite(head, at)
    }

    /// Reads the name of a field or variant that each of `rows` rows may have.
    pub(super) fn name(&mut self, rows: impl Into<usize>) -> Result<Cow<'de, str>> {
        let at = self.offset();
        let name = self.short_name()?;
        let pieces = name.len().saturating_sub(1) / NAME_PIECE;
        self.free_rows(pieces.saturating_mul(rows.into())).map_err(|error| error.at(at))?;
        Ok(name)
    }

    pub(super) fn short_name(&mut self) -> Result<Cow<'de, str>> {
        let at = self.offset();
        let head = self.head()?;
        if head.major() != head::TEXT {
            return Err(wrong("a name in columns", head).at(at));
        }
        definite(head, at)?;
        Ok(self.text(head)?.into_cow())
    }
}

/// Checks that no name of a field or variant occurs twice.
pub fn check_names<'n>(names: impl Iterator<Item = &'n str> + Clone) -> Result<()> {
    /// Up to so many names, comparing each with each is faster than sorting them.
    const FEW: usize = 16;

    let is_few = names.clone().nth(FEW).is_none();
    let repeated = if is_few {
        let mut left = names.clone();
        names.into_iter().find(|name| {
            left.next();
            left.clone().any(|other| other == *name)
        })
    } else {
        let mut sorted: Vec<_> = names.collect();
        sorted.sort_unstable();
        sorted.windows(2).find_map(|pair| match pair {
            [name, next] if name == next => Some(*name),
            _ => None,
        })
    };
    match repeated {
        None => Ok(()),
        Some(name) => {
            let name: String = name.escape_debug().take(MAX_SHOWN).collect();
            Err(Error::data(format!("the name `{name}` occurs twice in a column")))
        }
    }
}

/// Checks that items of rows, which start at offset `base`, do not refer to buffers.
pub fn check_items(items: &[u8], base: u64) -> Result<()> {
    if encoded::holds_reference(items) {
        let what = "rows that are stored as items must not refer to buffers";
        return Err(Error::data(what).at(base));
    }
    Ok(())
}

/// The number of characters of a name that are shown.
const MAX_SHOWN: usize = 64;

/// The length of an array, map or string in columns.
pub(super) fn definite(head: Head, at: u64) -> Result<u64> {
    head.length().ok_or_else(|| Error::data("columns must have definite lengths").at(at))
}

#[cold]
pub(super) fn wrong(expected: &str, found: Head) -> Error {
    let found = head::name(found.initial);
    Error::data(format!("expected {expected}, found {found}"))
}
