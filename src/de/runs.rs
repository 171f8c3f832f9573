//! Reads plain arrays of numbers into a `Vec` in one loop.
//!
//! serde asks for one element after the other, and each can fail in its own way. If the visitor is
//! serde's own for a `Vec` of numbers (see [`super::bulk`]), and all elements are in the input's window
//! and have the form that this crate writes, they are read here in one tight loop. In every other
//! case nothing is taken from the input, and the general code reads the array or reports the error.

use serde::de::Visitor;

use super::bulk::{self, Fill};
use crate::mem::AnyVec;
use crate::wire::columns::NumberType;
use crate::wire::head::{self, Head};
use crate::wire::reader::Reader;

/// The `Vec` that the visitor `V` would make of the array whose head was read, or `None`.
#[inline]
pub fn plain_numbers<'de, V: Visitor<'de>>(
    wire: &mut Reader<'de, '_>,
    head: Head,
) -> Option<V::Value> {
    let Fill::Number(kind) = bulk::fills::<V>()? else { return None };
    numbers(wire, head, kind)?.into()
}

#[inline(never)]
fn numbers(wire: &mut Reader<'_, '_>, head: Head, kind: NumberType) -> Option<AnyVec> {
    Some(match kind {
        NumberType::U8 => whole::<u8>(wire, head)?.into(),
        NumberType::U16 => whole::<u16>(wire, head)?.into(),
        NumberType::U32 => whole::<u32>(wire, head)?.into(),
        NumberType::U64 => whole::<u64>(wire, head)?.into(),
        NumberType::I8 => whole::<i8>(wire, head)?.into(),
        NumberType::I16 => whole::<i16>(wire, head)?.into(),
        NumberType::I32 => whole::<i32>(wire, head)?.into(),
        NumberType::I64 => whole::<i64>(wire, head)?.into(),
        NumberType::F32 => singles(wire, head)?.into(),
        NumberType::F64 => doubles(wire, head)?.into(),
        NumberType::F16 => return None,
    })
}

fn singles(wire: &mut Reader<'_, '_>, head: Head) -> Option<Vec<f32>> {
    run(wire, head, |bytes, len| {
        words(bytes, len, head::SINGLE, |[_, word @ ..]: &[u8; 5]| f32::from_be_bytes(*word))
    })
}

fn doubles(wire: &mut Reader<'_, '_>, head: Head) -> Option<Vec<f64>> {
    run(wire, head, |bytes, len| {
        words(bytes, len, head::DOUBLE, |[_, word @ ..]: &[u8; 9]| f64::from_be_bytes(*word))
    })
}

fn whole<A: TryFrom<i128>>(wire: &mut Reader<'_, '_>, head: Head) -> Option<Vec<A>> {
    run(wire, head, |bytes, len| {
        integers(bytes, len, |negative, arg| {
            let value = if negative { !i128::from(arg) } else { arg.into() };
            value.try_into().ok()
        })
    })
}

/// `read` gets the window and the number of elements, and returns them with the number of bytes that
/// they take.
#[inline(never)]
fn run<A>(
    wire: &mut Reader<'_, '_>,
    head: Head,
    read: impl FnOnce(&[u8], usize) -> Option<(Vec<A>, usize)>,
) -> Option<Vec<A>> {
    let window = wire.src.window();
    // Each element takes at least one byte.
    let len = usize::try_from(head.length()?).ok().filter(|&len| len <= window.len())?;
    // If the budget does not allow the elements, the general code reports it.
    if !wire.has_levels(1) || wire.charge((len * size_of::<A>()) as u64).is_err() {
        return None;
    }
    let Some((values, taken)) = read(wire.src.window(), len) else {
        wire.refund((len * size_of::<A>()) as u64);
        return None;
    };
    wire.src.advance(taken);
    Some(values)
}

/// Reads floats of `N - 1` bytes.
#[inline]
fn words<A, const N: usize>(
    bytes: &[u8],
    len: usize,
    initial: u8,
    get: impl Fn(&[u8; N]) -> A,
) -> Option<(Vec<A>, usize)> {
    let taken = len.checked_mul(N)?;
    let items = bytes.get(..taken)?.as_chunks::<N>().0;
    if !items.iter().all(|item| item.first() == Some(&initial)) {
        return None;
    }
    Some((items.iter().map(get).collect(), taken))
}

/// Reads integers of any width. `make` gets the sign and the argument (RFC 8949, section 3.1).
#[inline]
fn integers<A>(
    bytes: &[u8],
    len: usize,
    make: impl Fn(bool, u64) -> Option<A>,
) -> Option<(Vec<A>, usize)> {
    let mut values = Vec::with_capacity(len);
    let mut rest = bytes;
    for _ in 0..len {
        let (major, arg, taken) = head::definite(rest)?;
        if major > head::NEGATIVE {
            return None;
        }
        values.push(make(major == head::NEGATIVE, arg)?);
        rest = rest.get(taken..)?;
    }
    Some((values, bytes.len() - rest.len()))
}
