//! Rows that are tensors, or that are read as tensors.

use serde::de::{Unexpected, Visitor};

use super::row::Row;
use super::with_item;
use crate::budget::Budget;
use crate::de::bulk;
use crate::de::items::{show, visit_bytes};
use crate::de::shown::{Shown, visit_shown};
use crate::dtype::DType;
use crate::elements::Elements;
use crate::error::{Error, Result};
use crate::handoff::{self, Held, Slot};
use crate::meta::{Order, TensorMeta};
use crate::number::Number;
use crate::serde_model::{Narrowing, invalid, visit_numbers};
use crate::shape::Shape;
use crate::wire::columns::{Column, Kind, Tensors};
use crate::wire::tensor;

impl<'de> Row<'_, 'de> {
    /// Passes the row to this crate's own visitor of tensors.
    pub(super) fn tensor<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let row = self.inner();
        let (at, allowance) = (row.column.at, row.allowance);
        let result = match &mut row.column.kind {
            Kind::Items(items) => {
                return with_item(items, row.row, allowance, |de| de.tensor(visitor));
            }
            Kind::Tensors(tensors) => {
                let meta = meta_of(tensors);
                let held = tensors.shared_row(row.row).map_or(Held::Nothing, Held::Shared);
                let copied = if tensors.data.is_borrowed() { 0 } else { tensors.len };
                let bytes = copied.saturating_add(tensors.shape.allocated()) as u64;
                allowance.charge(bytes).map_err(|error| error.at(at))?;
                show(meta, true, held, tensors.row(row.row), visitor)
            }
            // The form that other serde formats write for a tensor.
            Kind::Structs(_) | Kind::Maps(_) | Kind::Enums(_) => visitor.visit_newtype_struct(row),
            Kind::Lists(lists) => {
                let (cuts, column) = &mut **lists;
                let range = cuts.range(row.row);
                // Floats keep their type, and can be borrowed. The type of integers depends on the other rows, so
                // they are read like a plain array.
                if let Kind::Numbers(numbers) = &column.kind
                    && numbers.kind.is_float()
                    && let Some(bytes) = numbers.run(range.clone())
                {
                    let shape = Shape::from([range.len()]);
                    let meta = TensorMeta { dtype: numbers.kind.dtype(), shape, order: Order::C };
                    return show(meta, false, Held::Nothing, bytes, visitor)
                        .map_err(|error| error.at(at));
                }
                let mut numbers = room_for(range.len(), allowance)?;
                for row in range {
                    numbers.push(number(column, row)?);
                }
                plain(&numbers, visitor)
            }
            Kind::Tuples(columns) => {
                let mut numbers = room_for(columns.len(), allowance)?;
                for column in columns {
                    numbers.push(number(column, row.row)?);
                }
                plain(&numbers, visitor)
            }
            _ => return Err(row.wrong(&visitor)),
        };
        result.map_err(|error| error.at(at))
    }

    /// Reads a tensor of one dimension as a sequence.
    pub(super) fn tensor_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let Kind::Tensors(tensors) = &self.column.kind else { return Err(self.wrong(&visitor)) };
        let rank = tensors.shape.len();
        if rank != 1 {
            let found = format!("a tensor of {rank} dimensions");
            return Err(invalid(Unexpected::Other(&found), &visitor).at(self.column.at));
        }
        let bytes = tensors.row(self.row);
        let bytes = bytes.as_slice();
        let value = if bulk::is_vec_of::<V>(&tensors.dtype) {
            self.allowance.charge(bytes.len() as u64)?;
            let made = Elements::copied_from_le(&tensors.dtype, bytes)?.into_vec_as();
            made.ok_or_else(|| Error::data("expected a vector of numbers"))
        } else {
            visit_numbers(&tensors.dtype, Narrowing::Exact, bytes, Some(self.allowance), visitor)
        };
        value.map_err(|error| error.at(self.column.at))
    }

    /// Reads a tensor for any other visitor, which sees a map of dtype, shape, order and data.
    pub(super) fn shown_tensor<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let Kind::Tensors(tensors) = &self.column.kind else { return Err(self.wrong(&visitor)) };
        let shown = ShownRow { tensors, row: self.row };
        visit_shown(shown, visitor).map_err(|error| error.at(self.column.at))
    }
}

/// A row of tensors as a map.
struct ShownRow<'c, 'de> {
    tensors: &'c Tensors<'de>,
    row: usize,
}

impl<'de> Shown<'de> for ShownRow<'_, 'de> {
    fn dtype(&self) -> &DType {
        &self.tensors.dtype
    }

    fn shape(&self) -> &Shape {
        &self.tensors.shape
    }

    fn order(&self) -> Order {
        Order::C
    }

    fn visit_payload<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visit_bytes(self.tensors.row(self.row), visitor)
    }
}

fn meta_of(tensors: &Tensors<'_>) -> TensorMeta {
    TensorMeta { dtype: tensors.dtype.clone(), shape: tensors.shape.clone(), order: Order::C }
}

/// Room for numbers, of which a tensor is then made.
fn room_for(count: usize, allowance: &Budget) -> Result<Vec<Number>> {
    let mut numbers = Vec::new();
    allowance.reserve(&mut numbers, count)?;
    allowance.charge((count as u64).saturating_mul(Elements::MAX_NUMBER))?;
    Ok(numbers)
}

/// An element of a plain array of numbers.
fn number(column: &mut Column<'_>, row: usize) -> Result<Number> {
    let number = match &mut column.kind {
        Kind::Bools(bits) => Some(Number::Bool(bits.get(row))),
        Kind::Numbers(numbers) => tensor::element_of(numbers.number(row)),
        _ => None,
    };
    number.ok_or_else(|| {
        let found = column.kind.name();
        Error::data(format!("expected a number of at most 64 bits, found {found}")).at(column.at)
    })
}

/// Passes a plain array of numbers to this crate's own visitor of tensors.
fn plain<'de, V: Visitor<'de>>(numbers: &[Number], visitor: V) -> Result<V::Value> {
    let Some(elements) = Elements::holding(numbers) else {
        return Err(Error::data("no dtype can represent all elements of the tensor exactly"));
    };
    let shape = Shape::from([elements.len()]);
    let meta = TensorMeta { dtype: elements.dtype(), shape, order: Order::C };
    let held = Held::Elements(Box::new(elements));
    handoff::offer(Slot::Incoming { meta, stated: false, held }, || visitor.visit_unit())
}
