//! Reads what columns store as blocks of bytes, in place or in a buffer: numbers, tensors, lengths, bits, byte strings
//! and texts.

use std::ops::Range;

use super::heads::{definite, wrong};
use super::range::RowRange;
use super::{
    Bitmap, Column, ColumnData, ColumnKind, ColumnNumbers, NumberType, RowLengths, Tensors,
    TextData,
};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::mem::shared_bytes::SharedBytes;
use crate::meta::{Order, TensorMeta};
use crate::shape::Shape;
use crate::wire::head;
use crate::wire::reader::Reader;
use crate::wire::strings::{Text, not_utf8};
use crate::wire::tag;
use crate::wire::tensor::{self, TensorItem};

/// A byte string or the numbers of a typed array.
pub(super) enum BytesOrNumbers<'de> {
    Bytes(ColumnData<'de>),
    Numbers(NumberType, ColumnData<'de>),
}

impl<'de> Reader<'de, '_> {
    /// Reads a column that is a typed array or a tensor. Its tag was read.
    pub(super) fn block_column(
        &mut self,
        tag: u64,
        rows: RowRange,
        at: u64,
    ) -> Result<ColumnKind<'de>> {
        let item = self.column_block(tag, at)?;
        match item.kind {
            tensor::Kind::Numbers => {
                let Some(kind) = NumberType::of(&item.meta.dtype) else {
                    let dtype = &item.meta.dtype;
                    let what = format!("expected numbers of 8 to 64 bits, found {dtype}");
                    return Err(Error::data(what));
                };
                check_rows(item.payload.len() / kind.size(), rows.all)?;
                let (_, data, _) = self.column_data(item, rows.of_width(kind.size()))?;
                Ok(ColumnKind::Numbers(ColumnNumbers::new(kind, data)))
            }
            tensor::Kind::Tensor => self.tensors(item, rows),
            tensor::Kind::Bytes => {
                Err(Error::data("expected a column, found a byte string in a buffer"))
            }
        }
    }

    /// Reads a typed array, a tensor or a reference up to its payload. Its tag was read. Columns of messages are not more
    /// liberal than those of archives.
    fn column_block(&mut self, tag: u64, at: u64) -> Result<TensorItem> {
        self.strictly(|wire| wire.tensor(tag)).map_err(|error| error.at(at))
    }

    /// Reads one number of the packed sequence that is the next item, as a column of one row.
    pub fn packed_number(&mut self, index: u64) -> Result<Column<'de>> {
        let at = self.offset();
        let tag = self.head()?.arg;
        let item = self.tensor(tag).map_err(|error| error.at(at))?;
        let Some(kind) = NumberType::of(&item.meta.dtype) else {
            let what = format!("expected numbers of 8 to 64 bits, found {}", item.meta.dtype);
            return Err(Error::mismatch(what).at(at));
        };
        let all = item.payload.len() / kind.size();
        let Some(start) = usize::try_from(index).ok().filter(|&start| start < all) else {
            let what = format!("there is no element {index}: there are {all}");
            return Err(Error::not_found(what).at(at));
        };
        let part = start * kind.size()..(start + 1) * kind.size();
        let data = ColumnData::from(self.payload_part(item, part)?.1);
        Ok(Column::new(at, ColumnKind::Numbers(ColumnNumbers::new(kind, data))))
    }

    fn tensors(&mut self, item: TensorItem, rows: RowRange) -> Result<ColumnKind<'de>> {
        check_c_order(&item.meta)?;
        let Some((&found, dims)) = item.meta.shape.split_first() else {
            return Err(Error::data("a column of tensors needs a dimension for the rows"));
        };
        check_rows(found, rows.all)?;
        let shape = Shape::from(dims);
        let dtype = item.meta.dtype.clone();
        let len = match dtype.bits() {
            Some(_) => shape.element_count().and_then(|count| dtype.byte_len(count)),
            // The size of an element is not known, but the rows are equally long.
            None => equal_parts(item.payload.len(), rows.all),
        };
        let Some(len) = len else {
            let what = format!("tensors of {dtype} of shape {shape:?} do not take whole bytes");
            return Err(Error::data(what));
        };
        if len == 0 {
            self.free_rows(rows)?;
        }
        let (_, data, shared) = self.column_data(item, rows.of_width(len))?;
        if dtype == DType::Bool
            && let Some(byte) = data.as_slice().iter().find(|&&byte| byte > 1)
        {
            let what = format!("a bool is stored as the byte {byte}; it must be 0 or 1");
            return Err(Error::data(what));
        }
        Ok(ColumnKind::Tensors(Box::new(Tensors::new(dtype, shape, len, data, shared))))
    }

    /// Part of the payload of a typed array or tensor. `None` is the whole payload.
    pub(super) fn column_data(
        &mut self,
        item: TensorItem,
        part: Option<Range<usize>>,
    ) -> Result<(TensorMeta, ColumnData<'de>, Option<SharedBytes>)> {
        let (shared, (meta, bytes)) = match part {
            None => (self.shared(&item), self.payload_bytes(item)?),
            Some(part) => {
                let shared = self.shared(&item).and_then(|shared| shared.slice(part.clone()));
                (shared, self.payload_part(item, part)?)
            }
        };
        let data = ColumnData::from(bytes);
        Ok((meta, data, shared))
    }

    /// Reads the lengths of rows. Also returns the part of the content of all rows that belongs to the wanted rows.
    /// `is_free` says whether rows take no bytes if all have this length.
    pub(super) fn lengths(
        &mut self,
        rows: RowRange,
        is_free: impl Fn(usize) -> bool,
    ) -> Result<(RowLengths<'de>, RowRange)> {
        let at = self.offset();
        let lengths = if self.initial()? >> 5 == head::UNSIGNED {
            let len = self.head()?.arg;
            let len = usize::try_from(len).map_err(|_| overflow(at))?;
            if is_free(len) {
                self.free_rows(rows)?;
            }
            RowLengths::Same(len)
        } else {
            let expected = "expected lengths: an unsigned integer, or a typed array of them";
            self.each_length(rows, "lengths", expected)?
        };
        let inner = inner_rows(&lengths, rows, at)?;
        Ok((lengths.part(rows.range()), inner))
    }

    /// Reads a typed array with the length of each row. `expected` is the error for numbers of another type.
    fn each_length(
        &mut self,
        rows: RowRange,
        what: &str,
        expected: &str,
    ) -> Result<RowLengths<'de>> {
        let at = self.offset();
        match self.codes(what)? {
            BytesOrNumbers::Numbers(kind, data) if kind.is_unsigned() => {
                check_rows(data.len() / kind.size(), rows.all).map_err(|error| error.at(at))?;
                Ok(RowLengths::Each(kind.size(), data))
            }
            _ => Err(Error::data(expected.to_owned()).at(at)),
        }
    }

    /// Reads the lengths of lists, which are not all equal. Also returns the rows of the column that follows.
    pub(super) fn list_lengths(&mut self, rows: RowRange) -> Result<(RowLengths<'de>, RowRange)> {
        let at = self.offset();
        let what = "the lengths of lists: a typed array of unsigned integers";
        let expected = "expected the lengths of lists as a typed array of unsigned integers";
        let lengths = self.each_length(rows, what, expected)?;
        let first = lengths.get(0);
        if rows.all > 0 && (1..rows.all).all(|row| lengths.get(row) == first) {
            let what = format!(
                "all lists have the length {first}, which must be a column of kind \"array\""
            );
            return Err(Error::data(what).at(at));
        }
        let inner = inner_rows(&lengths, rows, at)?;
        Ok((lengths.part(rows.range()), inner))
    }

    /// Reads the length of arrays. Also returns the rows of the column that follows.
    pub(super) fn array_len(&mut self, rows: RowRange) -> Result<(usize, RowRange)> {
        let at = self.offset();
        let head = self.head()?;
        if head.major() != head::UNSIGNED {
            return Err(wrong("the length of the arrays in a column", head).at(at));
        }
        let len = usize::try_from(head.arg).map_err(|_| overflow(at))?;
        if len == 0 {
            self.free_rows(rows)?;
        }
        Ok((len, inner_rows(&RowLengths::Same(len), rows, at)?))
    }

    /// Reads a byte string or a typed array, which may be in a buffer.
    pub(super) fn codes(&mut self, what: &str) -> Result<BytesOrNumbers<'de>> {
        let at = self.offset();
        let head = self.head()?;
        match head.major() {
            head::BYTES => {
                definite(head, at)?;
                let data = ColumnData::from(self.string(head)?);
                Ok(BytesOrNumbers::Bytes(data))
            }
            head::TAG if tag::is_array(head.arg) => {
                let item = self.column_block(head.arg, at)?;
                let (kind, dtype) = (item.kind, NumberType::of(&item.meta.dtype));
                let (_, data, _) = self.column_data(item, None).map_err(|error| error.at(at))?;
                match (kind, dtype) {
                    (tensor::Kind::Bytes, _) => Ok(BytesOrNumbers::Bytes(data)),
                    (tensor::Kind::Numbers, Some(kind)) => Ok(BytesOrNumbers::Numbers(kind, data)),
                    _ => Err(Error::data(format!("expected {what}, found a tensor")).at(at)),
                }
            }
            _ => Err(wrong(what, head).at(at)),
        }
    }

    pub(super) fn byte_string(&mut self) -> Result<ColumnData<'de>> {
        let at = self.offset();
        match self.codes("a byte string")? {
            BytesOrNumbers::Bytes(bytes) => Ok(bytes),
            BytesOrNumbers::Numbers(..) => {
                Err(Error::data("expected a byte string, found a typed array").at(at))
            }
        }
    }

    /// Reads the bits of all rows, including those that are not wanted.
    pub(super) fn bits(&mut self, rows: RowRange) -> Result<Bitmap<'de>> {
        let at = self.offset();
        let bits = self.byte_string()?;
        check_bits(bits, rows.all).map(Bitmap).map_err(|error| error.at(at))
    }

    /// Reads the bits of optional values. Also returns the rows of the column that follows.
    pub(super) fn marked(&mut self, rows: RowRange) -> Result<(Bitmap<'de>, RowRange)> {
        let bits = self.bits(rows)?;
        let start = bits.count(0..rows.start);
        let end = start + bits.count(rows.range());
        let all = end + bits.count(rows.end..rows.all);
        Ok((bits.part(rows.range()), RowRange { all, start, end }))
    }

    /// Reads a byte string of which a part is wanted.
    pub(super) fn cut_bytes(&mut self, wanted: RowRange) -> Result<ColumnData<'de>> {
        let at = self.offset();
        match self.peek_head()? {
            Some((head, _)) if !wanted.is_whole() && head.major() == head::TAG => {
                let head = self.head()?;
                let item = self.column_block(head.arg, at)?;
                if item.kind != tensor::Kind::Bytes {
                    let what = "expected a byte string, found a typed array";
                    return Err(Error::data(what).at(at));
                }
                check_total(item.payload.len(), wanted.all).map_err(|error| error.at(at))?;
                let (_, data, _) = self.column_data(item, wanted.of_width(1))?;
                Ok(data)
            }
            _ => {
                let bytes = self.byte_string()?;
                check_total(bytes.len(), wanted.all).map_err(|error| error.at(at))?;
                Ok(bytes.cut(wanted.start..wanted.end))
            }
        }
    }

    /// Reads the texts of `rows` rows in one text, and checks that it can be cut between rows.
    pub(super) fn texts(
        &mut self,
        lengths: &RowLengths<'de>,
        rows: usize,
        bytes: RowRange,
    ) -> Result<TextData<'de>> {
        let at = self.offset();
        let text = match self.peek_head()? {
            Some((head, len)) if head.major() == head::TEXT => {
                definite(head, at)?;
                self.src.advance(len);
                let text = match self.text(head)? {
                    Text::Borrowed(text) => TextData::Borrowed(text),
                    Text::Copied(text) => TextData::Owned(text.to_owned()),
                    Text::Owned(text) => TextData::Owned(text),
                };
                check_total(text.as_str().len(), bytes.all).map_err(|error| error.at(at))?;
                text.cut(bytes.start..bytes.end).ok_or_else(|| inside_character(0).at(at))?
            }
            Some((head, _)) if head.major() == head::TAG => match self.cut_bytes(bytes)? {
                ColumnData::Borrowed(bytes) => {
                    let text = std::str::from_utf8(bytes);
                    TextData::Borrowed(text.map_err(|error| not_utf8(error).at(at))?)
                }
                ColumnData::Owned(bytes) => {
                    let bytes = std::rc::Rc::unwrap_or_clone(bytes);
                    let text = String::from_utf8(bytes);
                    TextData::Owned(text.map_err(|error| not_utf8(error.utf8_error()).at(at))?)
                }
            },
            _ => {
                let head = self.head()?;
                return Err(wrong("the texts of a column", head).at(at));
            }
        };
        let all = text.as_str();
        let mut end = 0;
        // In ASCII, texts can be cut everywhere.
        for row in 0..if all.is_ascii() { 0 } else { rows } {
            end += lengths.get(row);
            if !all.is_char_boundary(end) {
                return Err(inside_character(row).at(at));
            }
        }
        Ok(text)
    }
}

/// The rows of the column with the content of rows that have these lengths.
fn inner_rows(lengths: &RowLengths<'_>, rows: RowRange, at: u64) -> Result<RowRange> {
    // Each length is added only once, because adding takes most of the time if one row of many is read.
    let start = lengths.sum(0..rows.start);
    let end = plus(start, lengths.sum(rows.range()));
    let all = plus(end, lengths.sum(rows.end..rows.all));
    let all = all.filter(|&all| isize::try_from(all).is_ok());
    let (Some(start), Some(end), Some(all)) = (start, end, all) else {
        return Err(overflow(at));
    };
    Ok(RowRange { all, start, end })
}

fn plus(sum: Option<usize>, more: Option<usize>) -> Option<usize> {
    sum?.checked_add(more?)
}

/// The length of each of `count` equal parts. `None` if there are no such parts.
fn equal_parts(len: usize, count: usize) -> Option<usize> {
    match len.checked_rem(count) {
        Some(0) => Some(len / count),
        Some(_) => None,
        None => (len == 0).then_some(0),
    }
}

pub(super) fn check_rows(found: usize, expected: usize) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(Error::data(format!("expected a column of {expected} rows, found one of {found}")))
}

pub(super) fn check_total(found: usize, expected: usize) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(Error::data(format!("the lengths of all rows add up to {expected} bytes, found {found}")))
}

fn check_bits(bits: ColumnData<'_>, rows: usize) -> Result<ColumnData<'_>> {
    let (found, expected) = (bits.len(), rows.div_ceil(8));
    if found != expected {
        let what = format!("expected {expected} bytes for the bits of {rows} rows, found {found}");
        return Err(Error::data(what));
    }
    let last = bits.as_slice().last().copied().unwrap_or_default();
    if !rows.is_multiple_of(8) && last >> (rows % 8) != 0 {
        return Err(Error::data("the unused bits after the last row must be 0"));
    }
    Ok(bits)
}

pub(super) fn check_c_order(meta: &TensorMeta) -> Result<()> {
    match meta.order {
        Order::C => Ok(()),
        Order::F => Err(Error::data("the tensor of a column must have order C, found F")),
    }
}

#[cold]
fn inside_character(row: usize) -> Error {
    Error::syntax(format!("the text of row {row} ends inside a character"))
}

#[cold]
fn overflow(at: u64) -> Error {
    Error::data("the lengths of all rows together do not fit in memory").at(at)
}
