//! Finds the content of a row in columns whose rows have different lengths, or that leave out some rows.

use std::borrow::Cow;
use std::ops::Range;

use super::codes::Codes;
use super::{Column, ColumnData};
use crate::dtype::DType;
use crate::error::Result;
use crate::io::input::Input;
use crate::io::source::SourceBytes;
use crate::mem::shared_bytes::SharedBytes;
use crate::meta::CompactMeta;
use crate::options::Limits;
use crate::shape::Shape;
use crate::wire::encoded;
use crate::wire::reader::Reader;

/// A bit for each row.
pub struct Bitmap<'de>(pub ColumnData<'de>);

impl Bitmap<'_> {
    /// Packs a bit for each row.
    pub fn of(mut bits: impl ExactSizeIterator<Item = bool>) -> Self {
        let mut bytes = vec![0u8; bits.len().div_ceil(8)];
        for byte in &mut bytes {
            for (bit, is_set) in bits.by_ref().take(8).enumerate() {
                *byte |= u8::from(is_set) << bit;
            }
        }
        Self(ColumnData::from(SourceBytes::Owned(bytes)))
    }

    /// Keeps only the bits of these rows.
    pub fn part(self, rows: Range<usize>) -> Self {
        if rows.start == 0 {
            let bytes = rows.end.div_ceil(8);
            return Self(self.0.cut(0..bytes));
        }
        Bitmap::of(rows.map(|row| self.get(row)))
    }

    #[inline]
    pub fn get(&self, row: usize) -> bool {
        let byte = self.0.as_slice().get(row / 8).copied().unwrap_or_default();
        byte >> (row % 8) & 1 == 1
    }

    /// The number of bits of these rows that are 1.
    pub fn count(&self, rows: Range<usize>) -> usize {
        let (first, last) = (rows.start / 8, rows.end / 8);
        let bytes = self.0.as_slice();
        // All bits of whole bytes, without those before the start, and with those before the end.
        let before = |row: usize| {
            let byte = bytes.get(row / 8).copied().unwrap_or_default();
            (byte & !(u8::MAX << (row % 8))).count_ones() as usize
        };
        let whole = bytes.get(first..last).unwrap_or_default();
        // Eight bytes at once, as most of them are.
        let (words, rest) = whole.as_chunks::<8>();
        let words = words.iter().map(|word| u64::from_ne_bytes(*word).count_ones() as usize);
        let rest = rest.iter().map(|byte| byte.count_ones() as usize);
        words.sum::<usize>() + rest.sum::<usize>() + before(rows.end) - before(rows.start)
    }
}

/// The lengths of rows.
pub enum RowLengths<'de> {
    Same(usize),
    /// Little-endian integers of this many bytes.
    Each(usize, ColumnData<'de>),
}

impl RowLengths<'_> {
    /// The length of a row. All lengths together were checked to fit in a `usize`.
    #[inline]
    pub fn get(&self, row: usize) -> usize {
        let (size, bytes) = match self {
            Self::Same(len) => return *len,
            Self::Each(size, data) => (*size, data.as_slice()),
        };
        match size {
            1 => bytes.get(row).copied().unwrap_or_default().into(),
            2 => u16::from_le_bytes(word(bytes, row)).into(),
            4 => usize::try_from(u32::from_le_bytes(word(bytes, row))).unwrap_or_default(),
            _ => usize::try_from(u64::from_le_bytes(word(bytes, row))).unwrap_or_default(),
        }
    }

    /// Keeps only the lengths of these rows.
    pub fn part(self, rows: Range<usize>) -> Self {
        match self {
            Self::Same(len) => Self::Same(len),
            Self::Each(size, data) => {
                Self::Each(size, data.cut(rows.start * size..rows.end * size))
            }
        }
    }

    /// The sum of the lengths of these rows. `None` if it is too large.
    pub fn sum(&self, rows: Range<usize>) -> Option<usize> {
        let (size, data) = match self {
            Self::Same(len) => return len.checked_mul(rows.len()),
            Self::Each(size, data) => (*size, data),
        };
        let bytes = data.as_slice().get(rows.start * size..rows.end * size).unwrap_or_default();
        match size {
            1 => sum_of_bytes(bytes),
            2 => sum_of_pairs(bytes.as_chunks().0),
            4 => sum_of_fours(bytes.as_chunks().0),
            _ => {
                let mut lens = bytes.as_chunks().0.iter().map(|len| u64::from_le_bytes(*len));
                let sum = lens.try_fold(0, u64::checked_add);
                sum.and_then(|sum| usize::try_from(sum).ok())
            }
        }
    }
}

/// Adds pieces of bytes whose sum fits in 16 bits, so that the processor adds eight of them at once.
fn sum_of_bytes(bytes: &[u8]) -> Option<usize> {
    let sum = |piece: &[u8]| piece.iter().map(|&len| u16::from(len)).sum::<u16>();
    bytes.chunks(256).try_fold(0usize, |all, piece| all.checked_add(sum(piece).into()))
}

/// Like [`sum_of_bytes`], for lengths of two bytes.
fn sum_of_pairs(lens: &[[u8; 2]]) -> Option<usize> {
    let sum = |piece: &[[u8; 2]]| {
        piece.iter().map(|len| u32::from(u16::from_le_bytes(*len))).sum::<u32>()
    };
    let mut pieces = lens.chunks(1 << 12);
    pieces.try_fold(0usize, |all, piece| all.checked_add(usize::try_from(sum(piece)).ok()?))
}

/// Like [`sum_of_bytes`], for lengths of four bytes.
fn sum_of_fours(lens: &[[u8; 4]]) -> Option<usize> {
    let sum = |piece: &[[u8; 4]]| {
        piece.iter().map(|len| u64::from(u32::from_le_bytes(*len))).sum::<u64>()
    };
    let mut pieces = lens.chunks(1 << 12);
    pieces.try_fold(0usize, |all, piece| all.checked_add(usize::try_from(sum(piece)).ok()?))
}

/// How many of these bytes are `code`. They are counted in pieces whose count fits in a byte, so that the processor
/// compares and counts 16 of them at once.
fn count_of(code: u8, bytes: &[u8]) -> usize {
    let count = |piece: &[u8]| piece.iter().map(|&other| u8::from(other == code)).sum::<u8>();
    bytes.chunks(240).map(|piece| usize::from(count(piece))).sum()
}

#[inline]
fn word<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let rest = bytes.get(at * N..).and_then(<[u8]>::first_chunk);
    rest.copied().unwrap_or([0; N])
}

/// The positions of the rows in a column whose rows have different lengths. It remembers the position of the row after
/// the one that was asked for last.
pub struct Offsets<'de> {
    lengths: RowLengths<'de>,
    row: usize,
    start: usize,
    /// The position of each row, if rows are asked for in any order. Empty if not, and if all have the same length.
    starts: Vec<usize>,
}

impl<'de> Offsets<'de> {
    pub fn new(lengths: RowLengths<'de>) -> Self {
        Self { lengths, row: 0, start: 0, starts: Vec::new() }
    }

    /// Prepares for rows in any order: see [`Column::index`]. Returns the length of all rows.
    pub fn index(
        &mut self,
        rows: usize,
        charge: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<usize> {
        if let RowLengths::Each(..) = self.lengths {
            charge((rows * size_of::<usize>()) as u64)?;
            self.starts = self.lengths.starts(rows);
        }
        Ok(self.lengths.sum(0..rows).unwrap_or_default())
    }

    pub fn lengths(&self) -> &RowLengths<'de> {
        &self.lengths
    }

    /// The content of a row. Not inlined: arguments and result fit in registers.
    #[inline(never)]
    pub fn range(&mut self, row: usize) -> Range<usize> {
        self.range_here(row)
    }

    /// Like [`range`](Self::range), but inlined, for callers that are not inlined themselves.
    #[inline]
    pub fn range_here(&mut self, row: usize) -> Range<usize> {
        if self.row != row {
            self.move_to(row);
        }
        let start = self.start;
        let end = start + self.lengths.get(row);
        (self.row, self.start) = (row + 1, end);
        start..end
    }

    /// The content of several rows, which are at least one.
    pub fn run(&mut self, rows: Range<usize>) -> Range<usize> {
        let start = self.range(rows.start).start;
        // All lengths together were checked to fit in a `usize`.
        let end = start + self.lengths.sum(rows.clone()).unwrap_or_default();
        (self.row, self.start) = (rows.end, end);
        start..end
    }

    #[cold]
    fn move_to(&mut self, row: usize) {
        if let RowLengths::Same(len) = self.lengths {
            self.start = row * len;
            return;
        }
        if let Some(start) = self.starts.get(row) {
            self.start = *start;
            return;
        }
        if self.row == row + 1 {
            // The row that was asked for last is asked for again.
            self.start -= self.lengths.get(row);
            return;
        }
        if self.row > row {
            (self.row, self.start) = (0, 0);
        }
        self.start += (self.row..row).map(|row| self.lengths.get(row)).sum::<usize>();
    }
}

/// Tells which rows have a row in an inner column. It remembers how many of the rows before the one that was asked for
/// last have one.
pub struct Validity<'de> {
    bits: Bitmap<'de>,
    row: usize,
    before: usize,
    /// The number of rows with one before each row that is a multiple of [`STEP`](Self::STEP), if rows are asked for in
    /// any order.
    counts: Vec<usize>,
}

impl<'de> Validity<'de> {
    const STEP: usize = 512;

    pub fn new(bits: Bitmap<'de>) -> Self {
        Self { bits, row: 0, before: 0, counts: Vec::new() }
    }

    /// Prepares for rows in any order: see [`Column::index`]. Returns the number of rows of the inner column.
    pub fn index(
        &mut self,
        rows: usize,
        charge: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<usize> {
        charge((rows / Self::STEP * size_of::<usize>()) as u64)?;
        let mut count = 0;
        for start in (0..rows).step_by(Self::STEP) {
            self.counts.push(count);
            count += self.bits.count(start..(start + Self::STEP).min(rows));
        }
        Ok(count)
    }

    #[inline]
    pub fn get(&self, row: usize) -> bool {
        self.bits.get(row)
    }

    /// Counts the rows that have a row in the inner column, among the first `rows` rows.
    pub fn count(&self, rows: usize) -> usize {
        self.bits.count(0..rows)
    }

    /// The marks of those of the first `rows` rows whose row in the inner column is marked in `inner`.
    pub fn and(&self, inner: &Validity<'_>, rows: usize) -> Self {
        let mut bytes = vec![0u8; rows.div_ceil(8)];
        let marked = (0..rows).filter(|&row| self.get(row));
        for (_, row) in marked.enumerate().filter(|&(number, _)| inner.get(number)) {
            if let Some(byte) = bytes.get_mut(row / 8) {
                *byte |= 1 << (row % 8);
            }
        }
        Self::new(Bitmap(ColumnData::from(SourceBytes::Owned(bytes))))
    }

    /// The row of the inner column, if this row has one. Not inlined: arguments and result fit in registers.
    #[inline(never)]
    pub fn inner(&mut self, row: usize) -> Option<usize> {
        self.bits.get(row).then(|| self.before(row))
    }

    /// The number of rows before this one that have a row in the inner column.
    #[inline]
    fn before(&mut self, row: usize) -> usize {
        if self.row != row {
            if let Some(count) = self.counts.get(row / Self::STEP) {
                (self.row, self.before) = (row / Self::STEP * Self::STEP, *count);
            } else if self.row > row {
                (self.row, self.before) = (0, 0);
            }
            self.before += self.bits.count(self.row..row);
            self.row = row;
        }
        self.before
    }

    /// The rows of the inner column that several rows have.
    pub fn run(&mut self, rows: Range<usize>) -> Range<usize> {
        let start = self.before(rows.start);
        let end = start + self.bits.count(rows.clone());
        (self.row, self.before) = (rows.end, end);
        start..end
    }
}

/// Optional values. The column has a row for each "some".
pub struct Optional<'de> {
    pub marks: Validity<'de>,
    pub column: Column<'de>,
}

/// The codes of so few variants are counted one variant after the other. The processor compares many codes at once,
/// which is faster than to look at each code.
const FEW_VARIANTS: usize = 8;

/// Variants, and the columns with their contents.
pub struct Enum<'de> {
    pub names: Vec<Cow<'de, str>>,
    /// A column for each name, or none for a unit variant. Empty if all variants are unit variants.
    pub columns: Vec<Option<Column<'de>>>,
    codes: Codes<'de>,
    row: usize,
    /// The number of occurrences of each code before `row`. Empty if there are no columns.
    before: Vec<usize>,
    /// For each row, the number of earlier occurrences of its code, if rows are asked for in any order.
    ranks: Vec<usize>,
}

impl<'de> Enum<'de> {
    /// The columns are added later, because their lengths follow from the codes.
    pub fn new(codes: Codes<'de>, names: Vec<Cow<'de, str>>) -> Self {
        let (columns, before, ranks) = (Vec::new(), Vec::new(), Vec::new());
        Self { names, columns, codes, row: 0, before, ranks }
    }

    /// Keeps only these rows. Its columns are added later.
    pub fn part(self, rows: Range<usize>) -> Self {
        Self::new(self.codes.part(rows), self.names)
    }

    /// Prepares for rows in any order: see [`Column::index`]. Returns the number of rows of each variant.
    pub fn index(
        &mut self,
        rows: usize,
        charge: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<Vec<usize>> {
        let mut counts = vec![0; self.columns.len()];
        if counts.is_empty() {
            return Ok(counts);
        }
        charge((rows * size_of::<usize>()) as u64)?;
        for row in 0..rows {
            let count = counts.get_mut(self.codes.get(row));
            self.ranks.push(count.as_deref().copied().unwrap_or_default());
            if let Some(count) = count {
                *count += 1;
            }
        }
        Ok(counts)
    }

    #[inline]
    pub fn code(&self, row: usize) -> usize {
        self.codes.get(row)
    }

    /// Counts how often each code occurs in some rows. If one has no name, returns the first such row.
    pub fn count(&self, rows: Range<usize>) -> std::result::Result<Vec<usize>, usize> {
        if let Some(codes) = self.codes.bytes()
            && self.names.len() <= FEW_VARIANTS
        {
            let codes = codes.get(rows.clone()).unwrap_or_default();
            let count = |(code, _)| count_of(code, codes);
            let counts: Vec<usize> = (0..).zip(&self.names).map(count).collect();
            if counts.iter().sum::<usize>() == rows.len() {
                return Ok(counts);
            }
        }
        let mut counts = vec![0; self.names.len()];
        for row in rows {
            *counts.get_mut(self.code(row)).ok_or(row)? += 1;
        }
        Ok(counts)
    }

    /// Whether a row is a unit variant.
    pub fn is_unit(&self, row: usize) -> bool {
        !matches!(self.columns.get(self.code(row)), Some(Some(_)))
    }

    /// Adds the columns.
    pub fn set_columns(&mut self, columns: Vec<Option<Column<'de>>>) {
        self.before = vec![0; columns.len()];
        self.columns = columns;
    }

    /// Returns the code of a row, and the number of its row in the column of that variant.
    #[inline]
    pub fn entry(&mut self, row: usize) -> (usize, usize) {
        let code = self.code(row);
        if self.columns.is_empty() {
            return (code, 0);
        }
        if let Some(rank) = self.ranks.get(row) {
            return (code, *rank);
        }
        if self.row > row {
            self.row = 0;
            self.before.fill(0);
        }
        while self.row < row {
            let passed = self.code(self.row);
            if let Some(before) = self.before.get_mut(passed) {
                *before += 1;
            }
            self.row += 1;
        }
        (code, self.before.get(code).copied().unwrap_or_default())
    }
}

/// Tensors of one shape, one after the other.
pub struct Tensors<'de> {
    pub dtype: DType,
    /// The shape of each row.
    pub shape: Shape,
    /// The length of a row in bytes.
    pub len: usize,
    pub data: ColumnData<'de>,
    /// Keeps the data alive, if it is a whole buffer that can be shared.
    pub shared: Option<SharedBytes>,
    /// The metadata of each row, if the rows are of the usual form.
    usual: Option<CompactMeta>,
}

impl<'de> Tensors<'de> {
    pub fn new(
        dtype: DType,
        shape: Shape,
        len: usize,
        data: ColumnData<'de>,
        shared: Option<SharedBytes>,
    ) -> Self {
        let usual = CompactMeta::of(&dtype, &shape);
        Self { dtype, shape, len, data, shared, usual }
    }

    /// The payloads of several rows.
    pub fn run(&self, rows: Range<usize>) -> SourceBytes<'de, '_> {
        self.data.part(rows.start * self.len..rows.end * self.len)
    }

    /// A row of the usual form, if it can be borrowed and need not be shared.
    #[inline]
    pub fn usual_row(&self, row: usize) -> Option<(CompactMeta, &'de [u8])> {
        match (self.usual, &self.data, &self.shared) {
            (Some(meta), ColumnData::Borrowed(bytes), None) => {
                Some((meta, bytes.get(self.range(row))?))
            }
            _ => None,
        }
    }

    fn range(&self, row: usize) -> Range<usize> {
        row * self.len..(row + 1) * self.len
    }

    /// The payload of a row.
    pub fn row(&self, row: usize) -> SourceBytes<'de, '_> {
        self.run(row..row + 1)
    }

    /// The payload of a row with shared ownership, if the data can be shared.
    pub fn shared_row(&self, row: usize) -> Option<SharedBytes> {
        self.shared.as_ref()?.slice(self.range(row))
    }
}

/// Encoded items, one after the other. They were checked to be well-formed.
pub struct EncodedRows<'de> {
    data: ColumnData<'de>,
    /// The offset of the first item in the input.
    base: u64,
    /// The number of levels of nesting that an item may have.
    pub levels: usize,
    row: usize,
    start: usize,
    /// The position of each item, if rows are asked for in any order.
    starts: Vec<usize>,
}

impl<'de> EncodedRows<'de> {
    pub fn new(data: ColumnData<'de>, base: u64, levels: usize) -> Self {
        Self { data, base, levels, row: 0, start: 0, starts: Vec::new() }
    }

    /// Prepares for rows in any order: see [`Column::index`].
    pub fn index(&mut self, rows: usize, charge: &mut dyn FnMut(u64) -> Result<()>) -> Result<()> {
        charge((rows * size_of::<usize>()) as u64)?;
        for row in 0..rows {
            self.at(row);
            self.starts.push(self.start);
        }
        Ok(())
    }

    /// Returns the bytes from the item of a row to the end of all items, and the offset of this item in the input.
    pub fn at(&mut self, row: usize) -> (SourceBytes<'de, '_>, u64) {
        if let Some(start) = self.starts.get(row) {
            (self.row, self.start) = (row, *start);
        } else if self.row > row {
            (self.row, self.start) = (0, 0);
        }
        while self.row < row {
            let rest = self.data.as_slice().get(self.start..).unwrap_or_default();
            let limits = Limits::default().with_max_depth(self.levels);
            let mut wire = Reader::new(Input::slice(rest), limits);
            // The items were skipped before in the same way, so this cannot fail.
            if wire.skip().is_err() {
                break;
            }
            self.start += rest.len() - wire.bytes_left();
            self.row += 1;
        }
        let start = self.start;
        (self.data.part(start..self.data.len()), self.base + start as u64)
    }

    /// The input of the item of a row, and the offset of this item.
    pub fn input<'b>(&mut self, row: usize) -> (Input<'de, 'b>, u64) {
        let (_, base) = self.at(row);
        let input = match &self.data {
            ColumnData::Borrowed(bytes) => {
                Input::items(bytes.get(self.start..).unwrap_or_default(), base)
            }
            ColumnData::Owned(bytes) => Input::kept_items(bytes.clone(), self.start, base),
        };
        (input, base)
    }

    /// Returns the item of a row.
    pub fn item(&mut self, row: usize) -> &[u8] {
        self.at(row);
        let start = self.start;
        self.at(row + 1);
        self.data.as_slice().get(start..self.start).unwrap_or_default()
    }

    /// Reports that the item of a row took this many bytes, so that it need not be skipped.
    pub fn took(&mut self, row: usize, bytes: usize) {
        if self.row == row {
            (self.row, self.start) = (row + 1, self.start + bytes);
        }
    }

    /// Whether an option that is read from the item of a row depends on `Some` tags.
    pub fn reads_as_none(&mut self, row: usize) -> bool {
        let (item, _) = self.at(row);
        encoded::reads_as_none(item.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(size: usize, lens: &[u64]) -> RowLengths<'static> {
        let bytes = lens.iter().flat_map(|len| len.to_le_bytes()[..size].to_vec()).collect();
        RowLengths::Each(size, ColumnData::from(SourceBytes::Owned(bytes)))
    }

    #[test]
    fn sums_are_the_sums_of_the_lengths() {
        for size in [1, 2, 4, 8] {
            let max = u64::MAX >> (64 - 8 * size.min(4));
            // More than one piece, except under Miri, which takes minutes for it.
            let count = if cfg!(miri) { 600 } else { 10_000 };
            let lens: Vec<u64> = (0..count).map(|row| max - row % 5).collect();
            let count = lens.len();
            let all = lengths(size, &lens);
            for rows in [0..0, 3..4, 0..257, 255..count - 1, 0..count] {
                let sum: u64 = lens[rows.clone()].iter().sum();
                assert_eq!(all.sum(rows.clone()), usize::try_from(sum).ok(), "{size} {rows:?}");
            }
        }
        assert_eq!(lengths(8, &[u64::MAX, 1]).sum(0..2), None);
        assert_eq!(RowLengths::Same(usize::MAX).sum(0..2), None);
    }

    #[test]
    fn counts_are_the_numbers_of_bits_and_codes() {
        let bytes: Vec<u8> = (0..2_000u32).map(|at| (at * at / 7 % 3) as u8).collect();
        for range in [0..0, 0..7, 5..1_000, 0..2_000] {
            for code in 0..4 {
                let count = range.clone().filter(|&at| bytes[at] == code).count();
                assert_eq!(count_of(code, &bytes[range.clone()]), count, "{code} {range:?}");
            }
            let bits = Bitmap(ColumnData::from(SourceBytes::Owned(bytes.clone())));
            let rows = range.start * 8 + 3..range.end * 8;
            let rows = if rows.is_empty() { 0..0 } else { rows };
            let count = rows.clone().filter(|&row| bits.get(row)).count();
            assert_eq!(bits.count(rows.clone()), count, "{rows:?}");
        }
        assert_eq!(count_of(1, &[1; 1_000]), 1_000);
    }
}
