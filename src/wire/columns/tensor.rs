//! A whole column as one tensor.

use super::{Column, Cuts, Kind, Numbers};
use crate::budget::Budget;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::io::source::Bytes;
use crate::mem::shared_bytes::SharedBytes;

/// All rows of a column as the elements of a tensor of order C. The first dimension counts the rows.
pub struct ColumnTensor<'de, 'c> {
    pub dtype: DType,
    /// The dimensions after the first.
    pub dims: Vec<usize>,
    /// Little-endian elements.
    pub bytes: Bytes<'de, 'c>,
    /// Keeps the bytes alive, if they are a whole buffer that can be shared.
    pub shared: Option<SharedBytes>,
}

impl<'de> Column<'de> {
    /// The rows as one tensor (`SPEC.md`, section 5.10). The bytes are borrowed if they are together in the input.
    ///
    /// # Errors
    /// If the rows are not numbers, or not of one dtype and shape.
    pub fn as_tensor(&self, rows: usize) -> Result<ColumnTensor<'de, '_>> {
        self.kind.as_tensor(rows).map_err(|error| error.at(self.at))
    }
}

impl<'de> Kind<'de> {
    fn as_tensor(&self, rows: usize) -> Result<ColumnTensor<'de, '_>> {
        let plain = |dtype, bytes| ColumnTensor { dtype, dims: Vec::new(), bytes, shared: None };
        Ok(match self {
            Kind::Numbers(numbers) => plain(numbers.kind.dtype(), numbers.all(rows)),
            Kind::Bools(bits) => {
                let bytes = (0..rows).map(|row| u8::from(bits.get(row))).collect();
                plain(DType::Bool, Bytes::Owned(bytes))
            }
            Kind::Tensors(tensors) => ColumnTensor {
                dtype: tensors.dtype.clone(),
                dims: tensors.shape.to_vec(),
                bytes: tensors.data.part(0..rows * tensors.len),
                shared: tensors.shared.clone(),
            },
            Kind::Lists(lists) => {
                let (cuts, column) = &**lists;
                let len = same_len(cuts, rows)?;
                let mut inner = column.as_tensor(rows * len)?;
                inner.dims.insert(0, len);
                inner
            }
            Kind::Tuples(columns) => tuples(columns, rows)?,
            _ => {
                let found = self.name();
                let what = format!(
                    "the column is not a tensor: expected rows of numbers of one shape, found rows such as {found}"
                );
                return Err(Error::data(what));
            }
        })
    }
}

/// The length that all lists have.
fn same_len(cuts: &Cuts<'_>, rows: usize) -> Result<usize> {
    let lengths = cuts.lengths();
    let first = if rows == 0 { 0 } else { lengths.get(0) };
    match (1..rows).find(|&row| lengths.get(row) != first) {
        None => Ok(first),
        Some(row) => {
            let other = lengths.get(row);
            Err(Error::data(format!(
                "the column is not a tensor: row 0 has {first} elements, row {row} has {other}"
            )))
        }
    }
}

fn tuples<'de, 'c>(columns: &'c [Column<'de>], rows: usize) -> Result<ColumnTensor<'de, 'c>> {
    let mut leaves = Vec::new();
    if let Some(dims) = interleaved(columns, &mut leaves)
        && let Some((first, others)) = leaves.split_first()
        && let Some(bytes) = first.together(others, rows)
    {
        return Ok(ColumnTensor { dtype: first.kind.dtype(), dims, bytes, shared: None });
    }
    let parts = columns.iter().map(|column| column.as_tensor(rows)).collect::<Result<Vec<_>>>()?;
    let Some(first) = parts.first() else {
        return Err(Error::data("the column is not a tensor: its tuples are empty"));
    };
    let (dtype, mut dims) = (first.dtype.clone(), first.dims.clone());
    if let Some(other) = parts.iter().find(|block| block.dtype != dtype || block.dims != dims) {
        let (found, shape) = (&other.dtype, &other.dims);
        return Err(Error::data(format!(
            "the column is not a tensor: its tuples hold {dtype}{dims:?} and {found}{shape:?}"
        )));
    }
    let mut bytes = Vec::with_capacity(parts.iter().map(|part| part.bytes.as_slice().len()).sum());
    for row in 0..rows {
        for part in &parts {
            let all = part.bytes.as_slice();
            let len = all.len() / rows;
            bytes.extend_from_slice(all.get(row * len..(row + 1) * len).unwrap_or_default());
        }
    }
    dims.insert(0, columns.len());
    Ok(ColumnTensor { dtype, dims, bytes: Bytes::Owned(bytes), shared: None })
}

/// The numbers in nested tuples, in order, and the dimensions of the tuples. `None` if there is anything else, or
/// tuples have different lengths.
fn interleaved<'c, 'de>(
    columns: &'c [Column<'de>],
    leaves: &mut Vec<&'c Numbers<'de>>,
) -> Option<Vec<usize>> {
    let mut inner: Option<Vec<usize>> = None;
    for column in columns {
        let dims = match &column.kind {
            Kind::Numbers(numbers) => {
                leaves.push(numbers);
                Vec::new()
            }
            Kind::Tuples(columns) => interleaved(columns, leaves)?,
            _ => return None,
        };
        if inner.as_ref().is_some_and(|inner| *inner != dims) {
            return None;
        }
        inner = Some(dims);
    }
    let mut dims = inner?;
    dims.insert(0, columns.len());
    Some(dims)
}

impl<'de> Numbers<'de> {
    /// The numbers of all rows without gaps.
    fn all(&self, rows: usize) -> Bytes<'de, '_> {
        self.run(0..rows).unwrap_or_else(|| Bytes::Owned(self.picked(self.kind.size(), rows)))
    }

    /// The numbers of all rows of several columns, if they follow each other in each row: those of this column,
    /// then those of the others.
    fn together(&self, others: &[&Self], rows: usize) -> Option<Bytes<'de, '_>> {
        let (size, stride) = (self.kind.size(), self.stride());
        let follows = |(at, other): (usize, &&Self)| {
            other.kind == self.kind
                && other.has_data_of(self)
                && other.stride() == stride
                && other.start() == self.start() + (at + 1) * size
        };
        let len = size * (1 + others.len());
        if len > stride || !others.iter().enumerate().all(follows) {
            return None;
        }
        if len == stride {
            return Some(self.data_at(self.start(), rows * stride));
        }
        Some(Bytes::Owned(self.picked(len, rows)))
    }

    /// Returns the `len` bytes from the number of each row on.
    fn picked(&self, len: usize, rows: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(len * rows);
        for row in 0..rows {
            let start = self.start() + row * self.stride();
            bytes.extend_from_slice(self.data_at(start, len).as_slice());
        }
        bytes
    }
}

/// The rows of the same column of several groups as one tensor. The bytes are borrowed only if there is one group.
///
/// # Errors
/// If the rows of all groups are not numbers of one dtype and shape, or memory runs out.
pub fn tensor_of_groups<'de, 'c>(
    groups: &'c [(usize, Column<'de>)],
    allowance: &Budget,
) -> Result<ColumnTensor<'de, 'c>> {
    let Some(((rows, column), others)) = groups.split_first() else {
        return Err(Error::data("the column is not a tensor: there are no rows, and so no dtype"));
    };
    let mut all = column.as_tensor(*rows)?;
    if others.is_empty() {
        return Ok(all);
    }
    let mut bytes = Vec::new();
    let mut add = |part: &ColumnTensor<'_, '_>| -> Result<()> {
        let len = part.bytes.as_slice().len();
        allowance.charge(len as u64)?;
        crate::io::source::reserve(&mut bytes, len)?;
        bytes.extend_from_slice(part.bytes.as_slice());
        Ok(())
    };
    add(&all)?;
    for (rows, column) in others {
        let part = column.as_tensor(*rows)?;
        if (&part.dtype, &part.dims) != (&all.dtype, &all.dims) {
            let (dtype, dims, found, shape) = (&all.dtype, &all.dims, &part.dtype, &part.dims);
            let what = format!(
                "the column is not a tensor: some of its rows are {dtype}{dims:?}, others {found}{shape:?}"
            );
            return Err(Error::data(what).at(column.at));
        }
        add(&part)?;
    }
    (all.bytes, all.shared) = (Bytes::Owned(bytes), None);
    Ok(all)
}
