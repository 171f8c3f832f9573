//! Code that all serializers and deserializers of this crate share: those for CBOR, and those for
//! [`Value`](crate::Value).

mod bytes;
mod capture;
mod numbers;
mod typed;

use serde::de::{Expected, Unexpected};

pub use self::bytes::{Collect, visit_collected};
pub(crate) use self::capture::refuse;
pub use self::capture::{Capture, PutWhole, blocks, serialize_blocks, stored_blocks};
pub(crate) use self::numbers::for_each_number;
pub use self::typed::{Narrowing, visit_numbers};
use crate::error::{Error, Result};
use crate::options::Limits;
use crate::wire::number::Numeric;

/// Whether the visitor of an identifier takes a key that is neither a text nor bytes.
///
/// serde's visitor for a struct with flattened fields keeps such a key for the map that it belongs to. Its visitors for
/// the fields of other structs and for variants would read a number as an index, which tenarc never writes. What these
/// return is a plain number, and so owns no memory.
pub const fn keeps_any_key<'de, V: serde::de::Visitor<'de>>() -> bool {
    std::mem::needs_drop::<V::Value>()
}

#[cold]
pub fn invalid(found: Unexpected<'_>, expected: &dyn Expected) -> Error {
    Error::mismatch(format!("expected {expected}, found {found}"))
}

#[cold]
pub fn wrong_number(number: Numeric, expected: &dyn Expected) -> Error {
    let found = match number {
        Numeric::Int { .. } => format!("integer {}", number.integer_digits().unwrap_or_default()),
        Numeric::Single(value) => format!("single-precision float {value}"),
        Numeric::Double(value) => format!("double-precision float {value}"),
    };
    invalid(Unexpected::Other(&found), expected)
}

/// Adds one to the number of options that were entered around one value. Fails if there are too many: a
/// recursive type such as `struct A(Option<Box<A>>)` could otherwise recurse forever.
pub fn one_more(somes: u32) -> Result<u32> {
    if usize::try_from(somes).is_ok_and(|somes| somes < Limits::DEFAULT_DEPTH) {
        return Ok(somes + 1);
    }
    Err(Error::limit("options are nested too deeply around one value"))
}
