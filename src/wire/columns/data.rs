//! The bytes of a column.

use std::ops::Range;
use std::rc::Rc;

use crate::io::source::SourceBytes;
use crate::mem;

/// Shorter parts are not prefetched, because the instructions would cost more than they save.
const MIN_PREFETCH: usize = 256;

/// The distance in bytes from the end of the current row to the bytes that are prefetched.
const AHEAD: usize = 4096;

/// The bytes of a payload, which several columns may share.
#[derive(Clone)]
pub enum ColumnData<'de> {
    Borrowed(&'de [u8]),
    Owned(Rc<Vec<u8>>),
}

impl<'de> ColumnData<'de> {
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Owned(bytes) => bytes,
        }
    }

    /// Whether the bytes are those of the input.
    pub fn is_borrowed(&self) -> bool {
        matches!(self, Self::Borrowed(_))
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
            SourceBytes::Borrowed(bytes) => SourceBytes::Borrowed(bytes),
            other => SourceBytes::Owned(other.as_slice().to_vec()),
        })
    }

    /// A part of the bytes, which is empty if they are too few.
    #[inline]
    pub fn part(&self, range: Range<usize>) -> SourceBytes<'de, '_> {
        match self {
            Self::Borrowed(bytes) => SourceBytes::Borrowed(bytes.get(range).unwrap_or_default()),
            Self::Owned(bytes) => SourceBytes::Copied(bytes.get(range).unwrap_or_default()),
        }
    }

    /// Takes the bytes, which are not asked for again. They are not copied unless others have them, too.
    pub fn take(&mut self) -> SourceBytes<'de, 'static> {
        match std::mem::replace(self, Self::Borrowed(&[])) {
            Self::Borrowed(bytes) => SourceBytes::Borrowed(bytes),
            Self::Owned(bytes) => SourceBytes::Owned(Rc::unwrap_or_clone(bytes)),
        }
    }

    /// A part of the bytes, which is about to be copied. The caller is going to ask for the parts behind it next.
    ///
    /// The processor notices by itself that memory is read from start to end, but it starts again at each page of
    /// 4 KiB. Rows of 1 KiB are copied in half the time if it is told earlier.
    #[inline]
    pub fn next_part(&self, range: Range<usize>) -> &[u8] {
        let bytes = self.as_slice();
        if range.len() >= MIN_PREFETCH {
            let start = range.end.saturating_add(AHEAD);
            let end = start.saturating_add(range.len().min(AHEAD)).min(bytes.len());
            mem::prefetch(bytes.get(start..end).unwrap_or_default());
        }
        bytes.get(range).unwrap_or_default()
    }
}

impl<'de> From<SourceBytes<'de, '_>> for ColumnData<'de> {
    fn from(bytes: SourceBytes<'de, '_>) -> Self {
        match bytes {
            SourceBytes::Borrowed(bytes) => Self::Borrowed(bytes),
            SourceBytes::Copied(bytes) => Self::Owned(Rc::new(bytes.to_vec())),
            SourceBytes::Owned(bytes) => Self::Owned(Rc::new(bytes)),
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

    #[inline]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Owned(text) => text,
        }
    }
}
