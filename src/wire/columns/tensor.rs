//! A whole column as one tensor.

use std::borrow::Cow;

use super::{Column, ColumnKind, Offsets, cast, holding};
use crate::budget::Budget;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::io::source::SourceBytes;
use crate::mem::shared_bytes::SharedBytes;

/// All rows of a column as the elements of a tensor of order C. The first dimension counts the rows.
pub struct ColumnTensor<'de, 'c> {
    pub dtype: DType,
    /// The dimensions after the first.
    pub dims: Vec<usize>,
    /// Little-endian elements.
    pub bytes: SourceBytes<'de, 'c>,
    /// Keeps the bytes alive, if they are a whole buffer that can be shared.
    pub shared: Option<SharedBytes>,
}

impl<'de> Column<'de> {
    /// The rows as one tensor (`SPEC.md`, annex A). The bytes are borrowed if they are together in the input.
    ///
    /// # Errors
    /// If the rows are not numbers, or not of one dtype and shape.
    pub fn as_tensor(&self, rows: usize) -> Result<ColumnTensor<'de, '_>> {
        self.kind.as_tensor(rows).map_err(|error| error.at(self.at))
    }
}

impl<'de> ColumnKind<'de> {
    fn as_tensor(&self, rows: usize) -> Result<ColumnTensor<'de, '_>> {
        let plain = |dtype, bytes| ColumnTensor { dtype, dims: Vec::new(), bytes, shared: None };
        Ok(match self {
            ColumnKind::Numbers(numbers) => plain(numbers.kind.dtype(), numbers.run(0..rows)),
            ColumnKind::Bools(bits) => {
                let bytes = (0..rows).map(|row| u8::from(bits.get(row))).collect();
                plain(DType::Bool, SourceBytes::Owned(bytes))
            }
            ColumnKind::Tensors(tensors) => ColumnTensor {
                dtype: tensors.dtype.clone(),
                dims: tensors.shape.to_vec(),
                bytes: tensors.data.part(0..rows * tensors.len),
                shared: tensors.shared.clone(),
            },
            ColumnKind::Lists(lists) => {
                let (cuts, column) = &**lists;
                let len = same_len(cuts, rows)?;
                let mut inner = column.as_tensor(rows * len)?;
                inner.dims.insert(0, len);
                inner
            }
            ColumnKind::Tuples(columns) => tuples(columns, rows)?,
            _ => {
                let found = self.name();
                let what = format!(
                    "the column is not a tensor: expected rows of numbers of one shape, found rows such as {found}"
                );
                return Err(Error::mismatch(what));
            }
        })
    }
}

/// The length that all lists have.
fn same_len(cuts: &Offsets<'_>, rows: usize) -> Result<usize> {
    let lengths = cuts.lengths();
    let first = if rows == 0 { 0 } else { lengths.get(0) };
    match (1..rows).find(|&row| lengths.get(row) != first) {
        None => Ok(first),
        Some(row) => {
            let other = lengths.get(row);
            Err(Error::mismatch(format!(
                "the column is not a tensor: row 0 has {first} elements, row {row} has {other}"
            )))
        }
    }
}

fn tuples<'de, 'c>(columns: &'c [Column<'de>], rows: usize) -> Result<ColumnTensor<'de, 'c>> {
    let parts = columns.iter().map(|column| column.as_tensor(rows)).collect::<Result<Vec<_>>>()?;
    let Some(first) = parts.first() else {
        return Err(Error::mismatch("the column is not a tensor: its tuples are empty"));
    };
    let (mut dtype, mut dims) = (first.dtype.clone(), first.dims.clone());
    for other in &parts {
        match holding(&dtype, &other.dtype).filter(|_| other.dims == dims) {
            Some(both) => dtype = both,
            None => {
                let (found, shape) = (&other.dtype, &other.dims);
                return Err(Error::mismatch(format!(
                    "the column is not a tensor: its tuples hold {dtype}{dims:?} and {found}{shape:?}"
                )));
            }
        }
    }
    let all = parts.iter().map(|part| part.bytes_as(&dtype)).collect::<Vec<_>>();
    let mut bytes = Vec::with_capacity(all.iter().map(|part| part.len()).sum());
    for row in 0..rows {
        for part in &all {
            let len = part.len() / rows;
            bytes.extend_from_slice(part.get(row * len..(row + 1) * len).unwrap_or_default());
        }
    }
    dims.insert(0, columns.len());
    Ok(ColumnTensor { dtype, dims, bytes: SourceBytes::Owned(bytes), shared: None })
}

impl ColumnTensor<'_, '_> {
    /// The elements in a dtype that holds them.
    fn bytes_as(&self, dtype: &DType) -> Cow<'_, [u8]> {
        cast(Cow::Borrowed(self.bytes.as_slice()), &self.dtype, dtype)
    }
}

/// The rows of the same column of several groups as one tensor. Its dtype holds the elements of all groups, and those of
/// `dtype`. The bytes are borrowed only if there is one group.
///
/// # Errors
/// If the rows of all groups are not numbers of one shape and of dtypes that one dtype holds, or memory runs out.
pub fn tensor_of_groups<'de, 'c>(
    groups: &'c [(usize, Column<'de>)],
    dtype: Option<&DType>,
    allowance: &Budget,
) -> Result<ColumnTensor<'de, 'c>> {
    let parts = groups.iter().map(|(rows, column)| column.as_tensor(*rows));
    let mut parts = parts.collect::<Result<Vec<_>>>()?;
    let Some(first) = parts.first() else {
        return Err(Error::mismatch(
            "the column is not a tensor: there are no rows, and so no dtype",
        ));
    };
    let dims = first.dims.clone();
    let mut all = dtype.unwrap_or(&first.dtype).clone();
    for (part, (_, column)) in parts.iter().zip(groups) {
        let Some(both) = holding(&all, &part.dtype).filter(|_| part.dims == dims) else {
            let (found, shape) = (&part.dtype, &part.dims);
            let what = format!(
                "the column is not a tensor: some of its rows are {all}{dims:?}, others {found}{shape:?}"
            );
            return Err(Error::mismatch(what).at(column.at));
        };
        all = both;
    }
    if let [part] = &*parts
        && part.dtype == all
        && let Some(part) = parts.pop()
    {
        return Ok(part);
    }
    let mut bytes = Vec::new();
    for part in &parts {
        let part = part.bytes_as(&all);
        allowance.charge(part.len() as u64)?;
        crate::io::source::reserve(&mut bytes, part.len())?;
        bytes.extend_from_slice(&part);
    }
    Ok(ColumnTensor { dtype: all, dims, bytes: SourceBytes::Owned(bytes), shared: None })
}
