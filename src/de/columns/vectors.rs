//! Reads rows of numbers or bools into a `Vec` at once.

use std::any::TypeId;
use std::ops::Range;

use bytemuck::Pod;
use serde::de::Visitor;

use crate::budget::Budget;
use crate::de::bulk;
use crate::elements::{self, Element};
use crate::error::Result;
use crate::mem;
use crate::wire::columns::{Column, Kind, NumberType};

/// The `Vec` that the visitor `V` would make of some rows. `None` if it is not serde's own visitor for a `Vec` of
/// numbers or bools (see [`bulk`]), or if the rows have to be read one by one.
///
/// All of it is inlined. So the three words of the vector stay in registers until they are written where they
/// belong. Each copy of words that were just written waits for these writes: for rows of 1 KiB, that was a third of
/// the time.
#[inline(always)]
pub fn vec_of_rows<'de, V: Visitor<'de>>(
    column: &Column<'de>,
    rows: Range<usize>,
    allowance: &Budget,
) -> Option<Result<V::Value>> {
    // The compiler knows the type, and drops all but one of these branches.
    let wanted = typeid::of::<V::Value>();
    macro_rules! by_type {
        ($($read:ident $kind:ident $type:ty;)*) => {$(
            if wanted == TypeId::of::<Vec<$type>>() {
                if !bulk::is_vec_of::<V>(&<$type>::DTYPE) {
                    return None;
                }
                return finish($read::<$type>(NumberType::$kind, column, rows, allowance)?);
            }
        )*};
    }
    by_type! {
        floats F32 f32; floats F64 f64;
        integers U8 u8; integers U16 u16; integers U32 u32; integers U64 u64;
        integers I8 i8; integers I16 i16; integers I32 i32; integers I64 i64;
    }
    if wanted == TypeId::of::<Vec<bool>>() && bulk::is_vec_of_bools::<V>() {
        return finish(bools(column, rows, allowance)?);
    }
    None
}

#[inline(always)]
fn finish<A: mem::Scalar, T>(values: Result<Vec<A>>) -> Option<Result<T>> {
    match values {
        Ok(values) => mem::vec_as(values).ok().map(Ok),
        Err(error) => Some(Err(error)),
    }
}

/// Copies numbers that have the type of the elements.
#[inline(always)]
fn floats<A: Element + Pod>(
    kind: NumberType,
    column: &Column<'_>,
    rows: Range<usize>,
    allowance: &Budget,
) -> Option<Result<Vec<A>>> {
    let Kind::Numbers(numbers) = &column.kind else { return None };
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
#[inline(always)]
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
    let Kind::Numbers(numbers) = &column.kind else { return None };
    if let Err(error) = charge::<A>(rows.len(), allowance) {
        return Some(Err(error));
    }
    let mut values = Vec::with_capacity(rows.len());
    for row in rows {
        values.push(A::try_from(numbers.integer(row)?).ok()?);
    }
    Some(Ok(values))
}

#[inline(always)]
fn bools(column: &Column<'_>, rows: Range<usize>, allowance: &Budget) -> Option<Result<Vec<bool>>> {
    let Kind::Bools(bits) = &column.kind else { return None };
    Some(match charge::<bool>(rows.len(), allowance) {
        Ok(()) => Ok(rows.map(|row| bits.get(row)).collect()),
        Err(error) => Err(error),
    })
}

#[inline(always)]
fn charge<A>(rows: usize, allowance: &Budget) -> Result<()> {
    allowance.charge((rows as u64).saturating_mul(size_of::<A>() as u64))
}
