//! A row that is an item of its own.

use crate::budget::Budget;
use crate::de::ValueDecoder;
use crate::wire::columns::EncodedRows;
use crate::wire::reader::Reader;

/// The item of a row, and its decoder.
pub struct RowItem<'de, 'b> {
    pub decoder: ValueDecoder<'de, 'b>,
    base: u64,
}

impl<'de> RowItem<'de, '_> {
    #[inline(never)]
    pub fn of(items: &mut EncodedRows<'de>, row: usize, allowance: &Budget) -> Self {
        let levels = items.levels;
        let (input, base) = items.input(row);
        Self { decoder: ValueDecoder::of(Reader::inside(input, levels, allowance)), base }
    }

    /// Ends the item. Returns its offset.
    #[inline(never)]
    pub fn end(
        self,
        items: &mut EncodedRows<'de>,
        row: usize,
        allowance: &Budget,
        is_read: bool,
    ) -> u64 {
        let (end, after) = self.decoder.into_parts();
        allowance.take_over(&after);
        if is_read {
            items.took(row, usize::try_from(end - self.base).unwrap_or(usize::MAX));
        }
        self.base
    }
}
