//! The bytes of a column.

use std::ops::Range;
use std::rc::Rc;

use crate::io::source::Bytes;

/// The bytes of a payload, which several columns may share.
#[derive(Clone)]
pub enum Data<'de> {
    Borrowed(&'de [u8]),
    Owned(Rc<Vec<u8>>),
}

impl<'de> Data<'de> {
    #[inline(always)]
    pub fn as_slice(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Owned(bytes) => bytes,
        }
    }

    pub fn len(&self) -> usize {
        self.as_slice().len()
    }

    /// Keeps only a part of the bytes.
    pub fn cut(self, range: Range<usize>) -> Self {
        if range == (0..self.len()) {
            return self;
        }
        Self::from(match self.part(range) {
            Bytes::Borrowed(bytes) => Bytes::Borrowed(bytes),
            other => Bytes::Owned(other.as_slice().to_vec()),
        })
    }

    /// A part of the bytes, which is empty if they are too few.
    #[inline]
    pub fn part(&self, range: Range<usize>) -> Bytes<'de, '_> {
        match self {
            Self::Borrowed(bytes) => Bytes::Borrowed(bytes.get(range).unwrap_or_default()),
            Self::Owned(bytes) => Bytes::Copied(bytes.get(range).unwrap_or_default()),
        }
    }
}

impl<'de> From<Bytes<'de, '_>> for Data<'de> {
    fn from(bytes: Bytes<'de, '_>) -> Self {
        match bytes {
            Bytes::Borrowed(bytes) => Self::Borrowed(bytes),
            Bytes::Copied(bytes) => Self::Owned(Rc::new(bytes.to_vec())),
            Bytes::Owned(bytes) => Self::Owned(Rc::new(bytes)),
        }
    }
}

/// The texts of all rows, one after the other.
pub enum TextData<'de> {
    Borrowed(&'de str),
    Owned(String),
}

impl TextData<'_> {
    /// Keeps only these bytes of the text. `None` if they begin or end inside a character.
    pub fn cut(self, range: Range<usize>) -> Option<Self> {
        Some(match self {
            Self::Borrowed(text) => Self::Borrowed(text.get(range)?),
            Self::Owned(text) if range == (0..text.len()) => Self::Owned(text),
            Self::Owned(text) => Self::Owned(text.get(range)?.to_owned()),
        })
    }

    #[inline(always)]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Owned(text) => text,
        }
    }
}
