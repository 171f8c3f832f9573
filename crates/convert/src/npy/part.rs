//! The columns of an array as parts of a value.

use tenarc::de::Limits;
use tenarc::tensor::{Deferred, Order};
use tenarc::{DType, Error, Result};

use super::header::Array;
use super::input::{Bytes, Input};
use super::payload::Gather;
use crate::as_value::Part;
use crate::numpy::columns::{Column, Elements, unknown};
use crate::texts::Texts;

/// Returns a column of an array, which is read when it is written. `open` returns the input at the start of the
/// elements. `finish` is called with the input at their end.
///
/// # Errors
/// [`Category::Data`](tenarc::error::Category::Data) if the column is neither a tensor nor an array of texts.
pub fn of<'a, B: Bytes + 'a>(
    array: &Array,
    column: &Column,
    open: impl Fn() -> Result<Input<B>> + 'a,
    finish: fn(Input<B>) -> Result<()>,
) -> Result<Part<'a>> {
    let shape: Vec<usize> = array.shape.iter().chain(&column.shape).copied().collect();
    let (found, most) = (shape.len(), Limits::DEFAULT_RANK);
    if found > most {
        return Err(Error::limit(format!(
            "the tensor has {found} dimensions, expected at most {most}"
        )));
    }
    let is_column_major = array.order == Order::F && array.shape.len() > 1;
    let mixed = || {
        Err(Error::unsupported(
            "a field that is an array is not read from records in column-major order",
        ))
    };
    let (record_len, byte_len, column) = (array.record_len, array.byte_len, column.clone());
    match column.elements.clone() {
        Elements::Void(len, _) => Err(unknown(len)),
        Elements::Refused(why) => Err(Error::unsupported(why)),
        Elements::Tensor(..) if is_column_major && !column.shape.is_empty() => mixed(),
        Elements::Tensor(dtype, order) => {
            let (of_blocks, in_order) = (dtype.clone(), array.order);
            Ok(Part::Tensor(Deferred::from_blocks(dtype, &shape, in_order, move |put| {
                let mut gather = Gather::new(record_len, byte_len, column.clone(), open()?);
                gather.blocks(&of_blocks, order, put)?;
                finish(gather.into_input())
            })))
        }
        Elements::Times(..) if is_column_major && !column.shape.is_empty() => mixed(),
        Elements::Times(times, order) => times.part(&shape, array.order, move |put| {
            let mut gather = Gather::new(record_len, byte_len, column.clone(), open()?);
            gather.blocks(&DType::I64, order, put)?;
            finish(gather.into_input())
        }),
        Elements::Texts(_) if is_column_major => {
            Err(Error::unsupported("texts in column-major order are not read"))
        }
        Elements::Texts(texts) => Ok(Part::Texts(Texts::new(&shape, move || {
            Ok(Gather::new(record_len, byte_len, column.clone(), open()?).texts(texts, finish))
        })?)),
    }
}
