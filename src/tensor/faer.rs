//! Support for faer: its matrices, columns and rows as tensors.

use faer::{Col, ColRef, Mat, Row};

use super::sequences::{BLOCK, write_slice};
use super::{FromTensor, Order, RawTensor, TensorMeta, ToTensor};
use crate::elements::{Element, le_bytes};
use crate::error::{Error, Result};

/// faer makes a matrix without rows column by column, although there is nothing to do. A short input may claim any number.
const MOST_EMPTY_COLUMNS: usize = 1 << 24;

/// A column-major tensor of two dimensions. In memory, faer's columns have gaps between them. They are not written.
impl<A: Element> ToTensor for Mat<A> {
    fn meta(&self) -> TensorMeta {
        TensorMeta::new(A::DTYPE, [self.nrows(), self.ncols()], Order::F)
    }

    fn as_le_bytes(&self) -> Option<&[u8]> {
        None
    }

    fn write_blocks(&self, put: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        // Short columns are gathered into blocks.
        let mut block = Vec::new();
        for column in (0..self.ncols()).map(|column| self.col_as_slice(column)) {
            let is_long = size_of_val(column) >= BLOCK;
            if is_long || size_of_val(&*block) >= BLOCK {
                write_slice(&block, put)?;
                block.clear();
            }
            if is_long {
                write_slice(column, put)?;
            } else {
                block.extend_from_slice(column);
            }
        }
        write_slice(&block, put)
    }
}

impl<A: Element> FromTensor<'_> for Mat<A> {
    fn from_tensor(tensor: RawTensor<'_, '_>) -> Result<Self> {
        let &[rows, columns] = &*tensor.meta().shape else {
            return Err(misfit("a matrix", &tensor));
        };
        let mut matrix = Self::new();
        if rows == 0 && columns > MOST_EMPTY_COLUMNS || matrix.try_reserve(rows, columns).is_err() {
            return Err(misfit("a matrix that fits into memory", &tensor));
        }
        let order = tensor.meta().order;
        let elements: Vec<A> = tensor.into_vec()?;
        matrix.resize_with(rows, columns, |row, column| match order {
            Order::F => elements[column * rows + row],
            Order::C => elements[row * columns + column],
        });
        Ok(matrix)
    }
}

/// Columns and rows have one index, and are tensors of one dimension. They are also read from a matrix of one column or row.
macro_rules! vectors {
    ($($type:ident, $len:ident, $column:ident, $name:literal, $of_matrix:pat,)*) => {$(
        impl<A: Element> ToTensor for $type<A> {
            fn meta(&self) -> TensorMeta {
                TensorMeta::new(A::DTYPE, [self.$len()], Order::C)
            }

            fn as_le_bytes(&self) -> Option<&[u8]> {
                le_bytes(slice(self.$column()))
            }

            fn write_blocks(&self, put: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
                write_slice(slice(self.$column()), put)
            }
        }

        impl<A: Element> FromTensor<'_> for $type<A> {
            fn from_tensor(tensor: RawTensor<'_, '_>) -> Result<Self> {
                match *tensor.meta().shape {
                    [_] | $of_matrix => Ok(tensor.into_vec()?.into_iter().collect()),
                    _ => Err(misfit($name, &tensor)),
                }
            }
        }
    )*};
}

vectors! {
    Col, nrows, as_ref, "a column", [_, 1],
    Row, ncols, transpose, "a row", [1, _],
}

fn slice<A>(column: ColRef<'_, A>) -> &[A] {
    column.try_as_col_major().expect("what a column owns has no gaps").as_slice()
}

#[cold]
fn misfit(expected: &str, found: &RawTensor<'_, '_>) -> Error {
    Error::mismatch(format!("expected {expected}, found shape {:?}", found.meta().shape))
}
