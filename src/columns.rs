//! Writes a field as columns: `#[serde(with = "tenarc::columns")]`.
//!
//! Sequences of structs, tuples and enums in the field are written as columns, whatever the options are:
//! see [`EncodeOptions::with_columns`](crate::ser::EncodeOptions::with_columns). Other serde formats see
//! the plain value.
//!
//! A struct with a field that is `#[serde(flatten)]` is a map for serde, not a struct. A sequence of such structs is
//! written as an array. Inside other rows, they are stored as a column of maps.
//!
//! ```
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize, PartialEq, Debug)]
//! struct Hit {
//!     id: u32,
//!     score: f32,
//! }
//!
//! #[derive(Serialize, Deserialize, PartialEq, Debug)]
//! struct Answer {
//!     query: String,
//!     #[serde(with = "tenarc::columns")]
//!     hits: Vec<Hit>,
//! }
//!
//! let hits = (0..100).map(|id| Hit { id, score: 0.5 }).collect();
//! let answer = Answer { query: "tensors".into(), hits };
//! let bytes = tenarc::to_vec(&answer)?;
//! assert_eq!(bytes.len(), 547);
//! assert_eq!(tenarc::from_slice::<Answer>(&bytes)?, answer);
//! # Ok::<(), tenarc::Error>(())
//! ```

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::handoff::name;

/// Serializes a value with its sequences of structs, tuples and enums as columns.
///
/// # Errors
/// If the serializer fails.
pub fn serialize<T: Serialize + ?Sized, S: Serializer>(
    value: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_newtype_struct(name::COLUMNS, value)
}

/// Deserializes a value. Columns are read wherever a sequence can be, so this does the same as the type's
/// own `deserialize`.
///
/// # Errors
/// If the deserializer fails.
pub fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    T::deserialize(deserializer)
}
