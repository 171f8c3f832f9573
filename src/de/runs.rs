//! Reads plain arrays of numbers into a `Vec` in one loop.
//!
//! serde asks for one element after the other, and each can fail in its own way. If the visitor is
//! serde's own for a `Vec` of numbers (see [`super::bulk`]), and all elements are in the input's window
//! and have the form that this crate writes, they are read here in one tight loop. In every other
//! case nothing is taken from the input, and the general code reads the array or reports the error.

use std::any::TypeId;

use serde::de::Visitor;

use super::bulk;
use crate::elements::Element;
use crate::io::source::Read;
use crate::mem;
use crate::wire::head::{self, Head};
use crate::wire::reader::Reader;

/// The `Vec` that the visitor `V` would make of the array whose head was read, or `None`.
#[inline(always)]
pub fn plain_numbers<'de, V: Visitor<'de>, R: Read<'de>>(
    wire: &mut Reader<R>,
    head: Head,
) -> Option<V::Value> {
    // The compiler knows the type, and drops all but one of these branches.
    let wanted = typeid::of::<V::Value>();
    macro_rules! by_type {
        ($($read:ident $type:ty;)*) => {$(
            if wanted == TypeId::of::<Vec<$type>>() {
                if !bulk::is_vec_of::<V>(&<$type>::DTYPE) {
                    return None;
                }
                return mem::vec_as::<$type, _>($read(wire, head)?).ok();
            }
        )*};
    }
    by_type! {
        singles f32;
        doubles f64;
        whole u8; whole u16; whole u32; whole u64;
        whole i8; whole i16; whole i32; whole i64;
    }
    None
}

// Not generic over the visitor: otherwise a build without optimization compiles ten of these for each visitor.

fn singles<'de, R: Read<'de>>(wire: &mut Reader<R>, head: Head) -> Option<Vec<f32>> {
    run(wire, head, |bytes, len| {
        words(bytes, len, head::SINGLE, |[_, word @ ..]: &[u8; 5]| f32::from_be_bytes(*word))
    })
}

fn doubles<'de, R: Read<'de>>(wire: &mut Reader<R>, head: Head) -> Option<Vec<f64>> {
    run(wire, head, |bytes, len| {
        words(bytes, len, head::DOUBLE, |[_, word @ ..]: &[u8; 9]| f64::from_be_bytes(*word))
    })
}

fn whole<'de, R: Read<'de>, A: TryFrom<i128>>(wire: &mut Reader<R>, head: Head) -> Option<Vec<A>> {
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
fn run<'de, R: Read<'de>, A>(
    wire: &mut Reader<R>,
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
#[inline(always)]
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
#[inline(always)]
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
