//! Support for nalgebra: its matrices and vectors as tensors.

use nalgebra::allocator::Allocator;
use nalgebra::{DefaultAllocator, Dim, IsContiguous, Matrix, OMatrix, RawStorage};

use super::sequences::write_slice;
use super::{FromTensor, Order, RawTensor, TensorMeta, ToTensor};
use crate::elements::{Element, le_bytes};
use crate::error::{Error, Result};

/// A type with one column, such as `DVector` and `Vector3`, is a tensor of one dimension. All others are column-major tensors of two.
impl<A, R, C, S> ToTensor for Matrix<A, R, C, S>
where
    A: Element,
    R: Dim,
    C: Dim,
    S: RawStorage<A, R, C> + IsContiguous,
{
    fn meta(&self) -> TensorMeta {
        let (rows, columns) = self.shape();
        match C::try_to_usize() {
            Some(1) => TensorMeta::new(A::DTYPE, [rows], Order::C),
            _ => TensorMeta::new(A::DTYPE, [rows, columns], Order::F),
        }
    }

    fn as_le_bytes(&self) -> Option<&[u8]> {
        le_bytes(self.as_slice())
    }

    fn write_blocks(&self, put: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        write_slice(self.as_slice(), put)
    }
}

/// Vectors are read from tensors of one dimension, too. The dimensions that a type fixes must be those of the tensor.
impl<A, R, C> FromTensor<'_> for OMatrix<A, R, C>
where
    A: Element,
    R: Dim,
    C: Dim,
    DefaultAllocator: Allocator<R, C>,
{
    fn from_tensor(tensor: RawTensor<'_, '_>) -> Result<Self> {
        let (fixed_rows, fixed_columns) = (R::try_to_usize(), C::try_to_usize());
        let found = match (&*tensor.meta().shape, fixed_rows, fixed_columns) {
            (&[rows, columns], ..) => Some((rows, columns)),
            (&[rows], _, Some(1)) => Some((rows, 1)),
            (&[columns], Some(1), _) => Some((1, columns)),
            _ => None,
        };
        let fits = |(rows, columns): &(usize, usize)| {
            fixed_rows.is_none_or(|fixed| fixed == *rows)
                && fixed_columns.is_none_or(|fixed| fixed == *columns)
        };
        let Some((rows, columns)) = found.filter(fits) else {
            return Err(misfit(fixed_rows, fixed_columns, &tensor.meta().shape));
        };
        let (rows, columns) = (R::from_usize(rows), C::from_usize(columns));
        let order = tensor.meta().order;
        let elements: Vec<A> = tensor.into_vec()?;
        Ok(match order {
            Order::F => Self::from_vec_generic(rows, columns, elements),
            Order::C => Self::from_row_slice_generic(rows, columns, &elements),
        })
    }
}

#[cold]
fn misfit(rows: Option<usize>, columns: Option<usize>, found: &[usize]) -> Error {
    let shown = |len: Option<usize>| len.map_or("any".to_owned(), |len| len.to_string());
    let (rows, columns) = (shown(rows), shown(columns));
    Error::mismatch(format!(
        "expected a matrix of {rows} rows and {columns} columns, found shape {found:?}"
    ))
}
