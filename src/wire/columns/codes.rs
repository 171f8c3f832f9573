//! Numbers that say which row of a dict, or which variant, each row is.

use std::ops::Range;

use super::ColumnData;

/// A number for each row, of the type u8 or u16.
pub struct Codes<'de> {
    pub data: ColumnData<'de>,
    pub is_wide: bool,
}

impl Codes<'_> {
    #[inline]
    pub fn get(&self, row: usize) -> usize {
        let bytes = self.data.as_slice();
        if self.is_wide {
            let code = bytes.get(row * 2..).and_then(<[u8]>::first_chunk);
            code.copied().map_or(0, u16::from_le_bytes).into()
        } else {
            bytes.get(row).copied().unwrap_or_default().into()
        }
    }

    pub fn len(&self) -> usize {
        self.data.len() / if self.is_wide { 2 } else { 1 }
    }

    /// The greatest code of these rows, or 0.
    pub fn greatest(&self, rows: Range<usize>) -> usize {
        let bytes = self.data.as_slice();
        // `Iterator::max` would compare one code at a time.
        if self.is_wide {
            let (codes, _) =
                bytes.get(rows.start * 2..rows.end * 2).unwrap_or_default().as_chunks();
            codes.iter().map(|code| u16::from_le_bytes(*code)).fold(0, u16::max).into()
        } else {
            bytes.get(rows).unwrap_or_default().iter().copied().fold(0, u8::max).into()
        }
    }

    /// The codes, if they are bytes.
    pub fn bytes(&self) -> Option<&[u8]> {
        (!self.is_wide).then(|| self.data.as_slice())
    }

    /// Keeps only the codes of these rows.
    pub fn part(self, rows: Range<usize>) -> Self {
        let size = if self.is_wide { 2 } else { 1 };
        Self { data: self.data.cut(rows.start * size..rows.end * size), ..self }
    }
}
