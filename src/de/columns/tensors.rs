//! Rows that are tensors, or that are read as tensors.

use std::fmt;

use serde::de::{self, Deserialize, SeqAccess, Unexpected, Visitor};

use super::row::Row;
use super::with_item;
use crate::budget::{Budget, Room};
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
use crate::wire::columns::{Kind, Tensors};
use crate::wire::number::Numeric;

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
                // Floats have the type that they have in a plain array too, and can be borrowed. The type of integers
                // depends on the other rows.
                if let Kind::Numbers(numbers) = &column.kind
                    && numbers.kind.is_float()
                    && !range.is_empty()
                {
                    let bytes = numbers.run(range.clone());
                    if !bytes.is_borrowed() {
                        allowance.charge(bytes.as_slice().len() as u64)?;
                    }
                    let shape = Shape::from([range.len()]);
                    let meta = TensorMeta { dtype: numbers.kind.dtype(), shape, order: Order::C };
                    return show(meta, false, Held::Nothing, bytes, visitor)
                        .map_err(|error| error.at(at));
                }
                row.plain_array(visitor)
            }
            Kind::Tuples(_) => row.plain_array(visitor),
            _ => return Err(row.wrong(&visitor)),
        };
        result.map_err(|error| error.at(at))
    }

    /// Reads a sequence of numbers that is not packed, as a tensor.
    fn plain_array<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let allowance = self.allowance;
        let numbers = self.seq(Room::NONE, PlainArray)?;
        allowance.charge(numbers.elements_len())?;
        numbers.pass_on(visitor)
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
        let shown = ShownRow { tensors, row: self.row, allowance: self.allowance };
        visit_shown(shown, visitor).map_err(|error| error.at(self.column.at))
    }
}

/// A row of tensors as a map.
struct ShownRow<'c, 'de> {
    tensors: &'c Tensors<'de>,
    row: usize,
    allowance: &'c Budget,
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

    fn charge(&mut self, bytes: u64) -> Result<()> {
        self.allowance.charge(bytes)
    }

    fn visit_payload<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let bytes = self.tensors.row(self.row);
        if !bytes.is_borrowed() {
            self.allowance.charge(bytes.as_slice().len() as u64)?;
        }
        visit_bytes(bytes, visitor)
    }
}

fn meta_of(tensors: &Tensors<'_>) -> TensorMeta {
    TensorMeta { dtype: tensors.dtype.clone(), shape: tensors.shape.clone(), order: Order::C }
}

/// Reads a sequence of numbers that is not packed, as the elements of a tensor.
pub struct PlainArray;

impl<'de> Visitor<'de> for PlainArray {
    type Value = PlainNumbers;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a tensor")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<PlainNumbers, A::Error> {
        let mut found = PlainNumbers { numbers: Vec::new(), are_single: true };
        while let Some(PlainNumber { number, is_single }) = seq.next_element()? {
            found.numbers.push(number);
            found.are_single &= is_single;
        }
        Ok(found)
    }
}

/// The elements of a [`PlainArray`].
pub struct PlainNumbers {
    numbers: Vec<Number>,
    are_single: bool,
}

impl PlainNumbers {
    /// The most bytes that the elements of the tensor take.
    pub fn elements_len(&self) -> u64 {
        (self.numbers.len() as u64).saturating_mul(Elements::MAX_NUMBER)
    }

    /// Passes the numbers to this crate's own visitor of tensors.
    pub fn pass_on<'de, V: Visitor<'de>>(&self, visitor: V) -> Result<V::Value> {
        let elements = Elements::of_plain_array(&self.numbers, self.are_single)?;
        let shape = Shape::from([elements.len()]);
        let meta = TensorMeta { dtype: elements.dtype(), shape, order: Order::C };
        let held = Held::Elements(Box::new(elements));
        handoff::offer(Slot::Incoming { meta, stated: false, held }, || visitor.visit_unit())
    }
}

struct PlainNumber {
    number: Number,
    is_single: bool,
}

impl<'de> Deserialize<'de> for PlainNumber {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberVisitor)
    }
}

struct NumberVisitor;

impl Visitor<'_> for NumberVisitor {
    type Value = PlainNumber;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of at most 64 bits")
    }

    fn visit_bool<E>(self, value: bool) -> Result<PlainNumber, E> {
        Ok(PlainNumber { number: Number::Bool(value), is_single: false })
    }

    fn visit_u64<E>(self, value: u64) -> Result<PlainNumber, E> {
        Ok(PlainNumber { number: Number::Unsigned(value), is_single: false })
    }

    fn visit_i64<E>(self, value: i64) -> Result<PlainNumber, E> {
        let number = u64::try_from(value).map_or(Number::Signed(value), Number::Unsigned);
        Ok(PlainNumber { number, is_single: false })
    }

    fn visit_f32<E>(self, value: f32) -> Result<PlainNumber, E> {
        let number = Numeric::Single(value).as_double();
        Ok(PlainNumber { number: Number::Float(number.unwrap_or_default()), is_single: true })
    }

    fn visit_f64<E>(self, value: f64) -> Result<PlainNumber, E> {
        Ok(PlainNumber { number: Number::Float(value), is_single: false })
    }
}
