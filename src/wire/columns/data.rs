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
    #[inline(always)]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Owned(text) => text,
        }
    }
}
