//! Reads rows of numbers or bools into a `Vec` at once.

use std::ops::Range;

use bytemuck::Pod;

use crate::budget::Budget;
use crate::de::bulk::Fill;
use crate::elements::{self, Element, Elements};
use crate::error::Result;
use crate::mem::{self, AnyVec};
use crate::wire::columns::{Column, ColumnKind, NumberType, Tensors};

/// The `Vec` of these elements that some rows make. `None` if the rows have to be read one by one.
pub fn vec_of_rows(
    column: &Column<'_>,
    rows: Range<usize>,
    allowance: &Budget,
    fill: Fill,
) -> Option<Result<AnyVec>> {
    macro_rules! by_type {
        ($($read:ident $kind:ident $type:ty;)*) => {
            match fill {
                $(Fill::Number(kind @ NumberType::$kind) => {
                    $read::<$type>(kind, column, rows, allowance)?.map(AnyVec::from)
                })*
                Fill::Number(NumberType::F16) => return None,
                Fill::Bool => bools(column, rows, allowance)?.map(AnyVec::from),
            }
        };
    }
    Some(by_type! {
        floats F32 f32; floats F64 f64;
        integers U8 u8; integers U16 u16; integers U32 u32; integers U64 u64;
        integers I8 i8; integers I16 i16; integers I32 i32; integers I64 i64;
    })
}

/// Copies numbers that have the type of the elements.
#[inline]
fn floats<A: Element + Pod>(
    kind: NumberType,
    column: &Column<'_>,
    rows: Range<usize>,
    allowance: &Budget,
) -> Option<Result<Vec<A>>> {
    let ColumnKind::Numbers(numbers) = &column.kind else { return None };
    let bytes = numbers.next_run(kind, rows)?;
    if let Err(error) = allowance.charge(bytes.len() as u64) {
        return Some(Err(error));
    }
    if cfg!(target_endian = "little") {
        return mem::plain::copied(bytes).map(Ok);
    }
    Some(elements::copied(bytes))
}

/// Like [`floats`], but integers may be written in fewer bytes than the elements have.
#[inline]
fn integers<A: Element + Pod + TryFrom<i64>>(
    kind: NumberType,
    column: &Column<'_>,
    rows: Range<usize>,
    allowance: &Budget,
) -> Option<Result<Vec<A>>> {
    match floats(kind, column, rows.clone(), allowance) {
        Some(values) => Some(values),
        None => converted(column, rows, allowance),
    }
}

/// Converts integers of another type. If one does not fit, it is reported by the code that reads them one by one.
#[inline(never)]
fn converted<A: TryFrom<i64>>(
    column: &Column<'_>,
    rows: Range<usize>,
    allowance: &Budget,
) -> Option<Result<Vec<A>>> {
    let ColumnKind::Numbers(numbers) = &column.kind else { return None };
    if let Err(error) = charge::<A>(rows.len(), allowance) {
        return Some(Err(error));
    }
    let mut values = Vec::with_capacity(rows.len());
    for row in rows {
        values.push(A::try_from(numbers.integer(row)?).ok()?);
    }
    Some(Ok(values))
}

#[inline]
fn bools(column: &Column<'_>, rows: Range<usize>, allowance: &Budget) -> Option<Result<Vec<bool>>> {
    let ColumnKind::Bools(bits) = &column.kind else { return None };
    Some(match charge::<bool>(rows.len(), allowance) {
        Ok(()) => Ok(rows.map(|row| bits.get(row)).collect()),
        Err(error) => Err(error),
    })
}

#[inline]
fn charge<A>(rows: usize, allowance: &Budget) -> Result<()> {
    allowance.charge((rows as u64).saturating_mul(size_of::<A>() as u64))
}

/// The `Vec` of the elements of a row of tensors, if they have the type that the `Vec` has.
pub fn vec_of_tensor(
    tensors: &Tensors<'_>,
    row: usize,
    allowance: &Budget,
    fill: Fill,
) -> Option<Result<AnyVec>> {
    if tensors.shape.len() != 1 || !fill.is(&tensors.dtype) {
        return None;
    }
    let bytes = tensors.row(row);
    let bytes = bytes.as_slice();
    let charged = allowance.charge(bytes.len() as u64);
    let made = charged.and_then(|()| Elements::copied_from_le(&tensors.dtype, bytes));
    made.map(Elements::into_any_vec).transpose()
}
