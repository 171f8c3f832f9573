//! Decides how tensors and texts are written: as which columns, and with how many rows.

use std::collections::{HashMap, HashSet};

use tenarc::tensor::{Order, TensorMeta, ToTensor};
use tenarc::{DType, Error, Result};

use super::options::Layout;
use super::schema::{LAYOUT, ONE_ROW};
use super::widen;
use crate::exported::{METADATA, Metadata, check_keys};
use crate::{Losses, Options, order};

/// The layout of a file that is to be written.
pub struct Plan<'a> {
    pub columns: Vec<Column<'a>>,
    pub rows: usize,
    pub rows_per_batch: usize,
    pub metadata: Option<Metadata>,
}

/// Columns of texts that are written beside tensors. `starts` has the position of each column in the value, by name.
/// The columns of the file are in the order of these positions.
#[derive(Clone, Copy, Default)]
pub struct Texts<'a> {
    pub texts: &'a [(String, Vec<String>)],
    pub starts: Option<&'a HashMap<String, usize>>,
}

pub struct Column<'a> {
    pub name: &'a str,
    pub data: Data<'a>,
}

pub enum Data<'a> {
    Cells(Cells<'a>),
    Texts(&'a [String]),
}

/// Returns whether texts are too long together for offsets of 32 bits.
pub fn is_large(texts: &[String]) -> bool {
    texts.iter().map(|text| text.len() as u64).sum::<u64>() > i32::MAX as u64
}

/// A tensor as a column.
pub struct Cells<'a> {
    tensor: &'a dyn ToTensor,
    meta: TensorMeta,
    /// The dtype of the elements in the column.
    pub dtype: DType,
    /// The shape of each row. If it has no dimensions, the column is not a list.
    pub cell: Vec<usize>,
    /// The number of elements in a row.
    pub count: usize,
    /// Whether the elements of a row are written in column-major order.
    pub permuted: bool,
}

impl<'a> Plan<'a> {
    pub fn new<N: AsRef<str>, T: ToTensor>(
        tensors: &'a [(N, T)],
        Texts { texts, starts }: Texts<'a>,
        options: &Options,
    ) -> Result<(Self, Losses)> {
        let mut losses = Losses::default();
        let mut names = HashSet::new();
        let mut kept = Vec::new();
        for (name, tensor) in tensors {
            let name = name.as_ref();
            if name == METADATA {
                return Err(Error::data(format!("`{METADATA}` cannot be the name of a tensor")));
            }
            if !names.insert(name) {
                return Err(Error::data("there are two tensors of this name").in_field(name));
            }
            let meta = tensor.meta();
            let Some(dtype) = dtype(name, &meta.dtype, &mut losses) else { continue };
            kept.push((name, tensor as &dyn ToTensor, meta, dtype));
        }
        let firsts: Vec<_> =
            kept.iter().map(|(_, _, meta, _)| meta.shape.first().copied()).collect();
        let one_row = match options.layout {
            Layout::OneRow => true,
            Layout::Auto => {
                firsts.iter().any(|first| first.is_none() || Some(first) != firsts.first())
            }
            Layout::Rows => false,
        };
        let of_texts = texts.first().map(|(_, texts)| texts.len());
        let rows =
            if one_row { 1 } else { firsts.first().copied().flatten().or(of_texts).unwrap_or(0) };
        let mut columns = Vec::new();
        for (name, tensor, meta, dtype) in kept {
            let cells = Cells::new(tensor, meta, dtype, (!one_row).then_some(rows));
            match cells.map_err(|error| error.in_field(name))? {
                None => losses.add_tensor(
                    name,
                    "a cell holds at most 2,147,483,647 elements: the tensor is left out",
                ),
                Some(cells) => {
                    if cells.is_turned() {
                        losses.note(order::TURNED);
                    }
                    columns.push(Column { name, data: Data::Cells(cells) });
                }
            }
        }
        for (name, texts) in texts {
            if one_row || texts.len() != rows {
                let found = texts.len();
                let what = format!(
                    "an array of {found} texts cannot be a column of this table: it is left out"
                );
                losses.add(name, what);
            } else {
                columns.push(Column { name, data: Data::Texts(texts) });
            }
        }
        if let Some(starts) = starts {
            columns.sort_by_key(|column| starts.get(column.name));
        }
        let metadata = metadata(options.metadata.as_deref(), one_row)?;
        let rows_per_batch = options.rows_per_batch.unwrap_or(usize::MAX);
        Ok((Self { columns, rows, rows_per_batch, metadata }, losses))
    }
}

fn metadata(texts: Option<&[(String, String)]>, one_row: bool) -> Result<Option<Metadata>> {
    check_keys(texts.unwrap_or_default()).map_err(|error| error.in_field(METADATA))?;
    if texts.unwrap_or_default().iter().any(|(key, _)| key == LAYOUT) {
        let what = format!("`{LAYOUT}` cannot be a key of the metadata");
        return Err(Error::data(what));
    }
    let mut metadata = texts.map(<[_]>::to_vec);
    if one_row {
        let texts = metadata.get_or_insert_default();
        texts.push((LAYOUT.to_owned(), ONE_ROW.to_owned()));
    }
    Ok(metadata)
}

/// Returns the dtype that the elements get in the column, or `None` if the tensor is left out. Adds what is lost to
/// `losses`.
fn dtype(name: &str, dtype: &DType, losses: &mut Losses) -> Option<DType> {
    match dtype {
        DType::Bool | DType::F16 | DType::F32 | DType::F64 => Some(dtype.clone()),
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => Some(dtype.clone()),
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => Some(dtype.clone()),
        other if widen::can_widen(other) => {
            losses
                .add(name, format!("Arrow has no dtype {other}: its elements become those of f32"));
            Some(DType::F32)
        }
        other => {
            let other = other.name().escape_debug();
            losses.add_tensor(name, format!("Arrow has no dtype {other}: the tensor is left out"));
            None
        }
    }
}

impl<'a> Cells<'a> {
    /// Lays out a tensor as a column of `rows` rows, or in a single cell if `rows` is `None`. Returns `None` if a row
    /// has more elements than a list of fixed size can have.
    fn new(
        tensor: &'a dyn ToTensor,
        meta: TensorMeta,
        dtype: DType,
        rows: Option<usize>,
    ) -> Result<Option<Self>> {
        let shape = &meta.shape;
        let cell = match rows {
            None => shape,
            Some(rows) => match shape.split_first() {
                Some((&first, cell)) if first == rows => cell,
                _ => {
                    let what =
                        format!("expected a tensor of {rows} rows, found one of shape {shape:?}");
                    return Err(Error::data(what));
                }
            },
        };
        let cell = cell.to_vec();
        let count = cell.iter().try_fold(1usize, |count, &dim| count.checked_mul(dim));
        let Some(count) = count.filter(|&count| i32::try_from(count).is_ok()) else {
            return Ok(None);
        };
        let permuted = rows.is_none() && meta.order == Order::F && cell.len() > 1;
        Ok(Some(Self { tensor, meta, dtype, cell, count, permuted }))
    }

    /// Returns whether the elements are in column-major order and must be converted to row-major order.
    fn is_turned(&self) -> bool {
        !self.permuted && self.meta.order == Order::F && self.meta.shape.len() > 1
    }

    /// Returns the dtype, shape and order that a reader of the file must find.
    pub fn expected(&self) -> TensorMeta {
        let order = if self.permuted { Order::F } else { Order::C };
        TensorMeta { dtype: self.dtype.clone(), shape: self.meta.shape.clone(), order }
    }

    /// Returns how many bytes the rows take in the column, or `None` if there are too many.
    pub fn byte_len(&self, rows: usize) -> Option<usize> {
        let count = rows.checked_mul(self.count)?;
        if self.dtype == DType::Bool { Some(count.div_ceil(8)) } else { self.dtype.byte_len(count) }
    }

    /// Passes some rows to `put`, in the form that they have in the column.
    pub fn write(
        &self,
        rows: std::ops::Range<usize>,
        put: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut packed = Packed { dtype: &self.meta.dtype, part: Vec::new(), bits: Vec::new() };
        // The length of the whole tensor fits a `usize`, so these offsets do as well.
        let at = |row: usize| self.meta.dtype.byte_len(row.saturating_mul(self.count));
        let (start, end) = at(rows.start).zip(at(rows.end)).unwrap_or((0, usize::MAX));
        let len = self.tensor.byte_len(&self.meta).unwrap_or(usize::MAX);
        let mut done = 0usize;
        let mut take = |block: &[u8]| {
            let wanted = start.saturating_sub(done)..end.saturating_sub(done).min(block.len());
            done = done.saturating_add(block.len());
            if done > len {
                return Err(other_length(len));
            }
            match block.get(wanted) {
                Some(block) if !block.is_empty() => packed.put(block, put),
                _ => Ok(()),
            }
        };
        if self.is_turned() {
            order::row_major(self.tensor, &self.meta, &mut take)?;
        } else if let Some(bytes) = self.tensor.as_le_bytes() {
            take(bytes)?;
        } else {
            self.tensor.write_blocks(&mut take)?;
        }
        if done != len {
            return Err(other_length(len));
        }
        packed.finish(put)
    }
}

#[cold]
fn other_length(expected: usize) -> Error {
    Error::data(format!("expected {expected} bytes of a tensor, found another length"))
}

/// Converts elements to the form that they have in the column: bools are packed into bits, and floats that Arrow does
/// not have become `f32`.
struct Packed<'a> {
    dtype: &'a DType,
    /// The bytes that wait for the next block: less than one element, or less than eight bools.
    part: Vec<u8>,
    bits: Vec<u8>,
}

/// The most bytes of a tensor that are converted at once. It is a multiple of eight.
const STEP: usize = 64 << 10;

impl Packed<'_> {
    fn put(&mut self, block: &[u8], put: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let unit = match self.dtype {
            DType::Bool => 8,
            DType::BF16 => 2,
            other if widen::can_widen(other) => 1,
            _ => return put(block),
        };
        let mut rest = block;
        if !self.part.is_empty() {
            let (first, more) = rest.split_at(rest.len().min(unit - self.part.len()));
            self.part.extend_from_slice(first);
            rest = more;
            if self.part.len() < unit {
                return Ok(());
            }
            let part = std::mem::take(&mut self.part);
            self.convert(&part, put)?;
        }
        let (whole, part) = rest.split_at(rest.len() - rest.len() % unit);
        self.part.extend_from_slice(part);
        whole.chunks(STEP).try_for_each(|chunk| self.convert(chunk, put))
    }

    fn convert(&mut self, chunk: &[u8], put: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.bits.clear();
        if *self.dtype == DType::Bool {
            let byte = |bools: &[u8]| {
                bools
                    .iter()
                    .enumerate()
                    .fold(0, |byte, (at, &bool)| byte | u8::from(bool != 0) << at)
            };
            self.bits.extend(chunk.chunks(8).map(byte));
        } else {
            widen::widen(self.dtype, chunk, &mut self.bits);
        }
        put(&self.bits)
    }

    fn finish(&mut self, put: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let part = std::mem::take(&mut self.part);
        if part.is_empty() { Ok(()) } else { self.convert(&part, put) }
    }
}
