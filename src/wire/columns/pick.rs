//! Some of the rows of a column.

use super::dict::DictColumn;
use super::{Bitmap, Column, ColumnData, ColumnKind, ColumnNumbers, Offsets, RowLengths, Tensors};
use crate::budget::Budget;
use crate::error::Result;
use crate::io::source::SourceBytes;

impl Column<'_> {
    /// Keeps only these rows, whose numbers ascend. Numbers, bools and what is read as one tensor are copied. Of other
    /// columns nothing is: the result tells for each of its rows which row of this column it is.
    pub fn pick(self, rows: &[usize], allowance: &Budget) -> Result<Self> {
        let may_be_tensor = self.may_be_tensor();
        let kind = match self.kind {
            ColumnKind::Unit => ColumnKind::Unit,
            ColumnKind::Numbers(numbers) => {
                let all = numbers.bytes();
                let data = match numbers.kind.size() {
                    1 => picked::<1>(all, rows, allowance)?,
                    2 => picked::<2>(all, rows, allowance)?,
                    4 => picked::<4>(all, rows, allowance)?,
                    _ => picked::<8>(all, rows, allowance)?,
                };
                ColumnKind::Numbers(ColumnNumbers::new(numbers.kind, data))
            }
            ColumnKind::Bools(bits) => {
                allowance.charge(rows.len().div_ceil(8) as u64)?;
                ColumnKind::Bools(Bitmap::of(rows.iter().map(|&row| bits.get(row))))
            }
            ColumnKind::Tensors(tensors) => {
                let mut data = Vec::new();
                for &row in rows {
                    allowance.extend(&mut data, tensors.row(row).as_slice())?;
                }
                let Tensors { dtype, shape, len, .. } = *tensors;
                let data = ColumnData::from(SourceBytes::Owned(data));
                ColumnKind::Tensors(Box::new(Tensors::new(dtype, shape, len, data, None)))
            }
            ColumnKind::Lists(lists) if may_be_tensor => {
                let (cuts, column) = *lists;
                let len = cuts.lengths().get(0);
                let mut inside = Vec::new();
                allowance.reserve(&mut inside, rows.len().saturating_mul(len))?;
                inside.extend(rows.iter().flat_map(|row| row * len..(row + 1) * len));
                let column = column.pick(&inside, allowance)?;
                allowance.refund_vec(&inside);
                ColumnKind::Lists(Box::new((Offsets::new(RowLengths::Same(len)), column)))
            }
            ColumnKind::Tuples(columns) if may_be_tensor => {
                let columns = columns.into_iter().map(|column| column.pick(rows, allowance));
                ColumnKind::Tuples(columns.collect::<Result<_>>()?)
            }
            kind => {
                let column = Self::new(self.at, kind);
                ColumnKind::Dict(Box::new(DictColumn::of_rows(column, rows, allowance)?))
            }
        };
        Ok(Self { kind, ..self })
    }

    /// Whether the rows are numbers, bools or tensors, or arrays of them that all have one length.
    fn may_be_tensor(&self) -> bool {
        match &self.kind {
            ColumnKind::Numbers(_) | ColumnKind::Bools(_) | ColumnKind::Tensors(_) => true,
            ColumnKind::Lists(lists) => {
                matches!(lists.0.lengths(), RowLengths::Same(_)) && lists.1.may_be_tensor()
            }
            ColumnKind::Tuples(columns) => columns.iter().all(Self::may_be_tensor),
            _ => false,
        }
    }
}

/// The numbers of these rows, of `N` bytes each.
fn picked<const N: usize>(
    all: &[u8],
    rows: &[usize],
    allowance: &Budget,
) -> Result<ColumnData<'static>> {
    allowance.charge(rows.len().saturating_mul(N) as u64)?;
    let (all, _) = all.as_chunks::<N>();
    let bytes = rows.iter().flat_map(|&row| all.get(row).copied().unwrap_or([0; N]));
    Ok(ColumnData::from(SourceBytes::Owned(bytes.collect())))
}
