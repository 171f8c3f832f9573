//! JSON (RFC 8259), with tensors as `serde_json` writes a [`Tensor`](tenarc::Tensor):
//! `{"dtype":"f32","shape":[2],"data":[0.5,"NaN"]}`.
//!
//! ```
//! use tenarc::Value;
//! use tenarc_convert::json;
//!
//! let text = r#"{"name":"fc","weight":{"dtype":"f32","shape":[2],"data":[0.5,"NaN"]}}"#;
//! let value = json::read(text.as_bytes())?;
//! assert_eq!(value.get("weight").and_then(Value::as_tensor).unwrap().view::<f32>()?[0], 0.5);
//!
//! let mut again = Vec::new();
//! json::write(&mut again, &value)?;
//! assert_eq!(again, text.as_bytes());
//! # Ok::<(), tenarc::Error>(())
//! ```
//!
//! | JSON | [`Value`] |
//! |---|---|
//! | null, true, false, a string, an array | the same |
//! | a number without fraction and exponent | [`Integer`](Value::Integer), or what [`to_value`](tenarc::to_value) makes of a `u128` |
//! | another number, and `-0` | [`F64`](Value::F64) |
//! | a map | a tensor, where its fields are `dtype` (of one that tenarc knows), `shape` and `data`, perhaps `order`, and nothing else; else a map |
//!
//! Two equal keys in a map are refused. Integers of up to 128 bits are written as integers; floats with as
//! few digits as tell them from others of their width: a single as `0.1`. That is read as the double nearest to 0.1, and
//! an `f32` field takes the single again, as it rounds doubles. Elements of tensors are rounded to their dtype.
//!
//! A packed sequence of numbers, which is how archives hold a `Vec<f32>`, is written as an array. Elements without a
//! Rust type, as those of FP8, are bytes, one number each.
//!
//! What JSON has not is a [`Loss`](super::Loss): NaN and infinities outside of tensors (null), byte strings
//! (arrays of numbers), keys that are no texts (diagnostic notation), tags, column-major order, and the
//! payloads of NaNs.

mod number;
mod read;
mod tensor;
mod write;

use std::fs::File;
use std::io;

pub use super::options::Options;

use super::format::{Archived, Codec};
use super::input::{Positions, Stream};
use super::values::{self, Each, ReadValues as _};
use super::{Losses, Stored};
use tenarc::de::Limits;
use tenarc::{Error, Result, Value};

/// Reads one value, which must be all there is.
///
/// Memory follows the bytes received: at most 16 GiB by default.
///
/// # Errors
/// Where the reader fails or ends, gives something else than JSON, or goes on behind the value; for two
/// equal keys in a map, numbers beyond 128 bits or every double, and tensors that are none.
pub fn read<R: io::Read>(reader: R) -> Result<Value> {
    read_with(reader, Limits::default())
}

/// As [`read`], with limits.
///
/// # Errors
/// As [`read`], and with [`Category::Limit`](tenarc::error::Category::Limit) where there is more.
pub fn read_with<R: io::Read>(reader: R, limits: Limits) -> Result<Value> {
    values::only(read::Reader::new(Stream(reader), limits), "a JSON value")
}

/// Reads value after value, with white space or nothing between them, as in files of JSON lines; each with
/// the limits for itself.
///
/// ```
/// use tenarc_convert::json;
/// use tenarc::Value;
/// use tenarc::de::Limits;
///
/// let lines = b"1\n{}\n";
/// let values: Vec<Value> = json::values(&lines[..], Limits::strict()).collect::<Result<_, _>>()?;
/// assert_eq!(values, [Value::Integer(1), Value::Map(vec![])]);
/// # Ok::<(), tenarc::Error>(())
/// ```
pub fn values<R: io::Read>(reader: R, limits: Limits) -> Values<R> {
    Values { each: Each::new(read::Reader::new(Stream(reader), limits)) }
}

/// Values one after the other: see [`values`].
pub struct Values<R> {
    each: Each<read::Reader<Stream<R>>>,
}

impl<R> std::fmt::Debug for Values<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Values").field("ended", &self.each.is_ended()).finish_non_exhaustive()
    }
}

impl<R: io::Read> Iterator for Values<R> {
    type Item = Result<Value>;

    fn next(&mut self) -> Option<Result<Value>> {
        self.each.next()
    }
}

/// Writes a value, without white space.
///
/// # Errors
/// Where the writer fails, and where something cannot be kept: then nothing was written.
pub fn write<W: io::Write>(writer: W, value: &Value) -> Result<()> {
    write_with(writer, value, &Options::default()).map(drop)
}

/// As [`write()`], with options; what was not kept, where that is accepted.
///
/// # Errors
/// As [`write()`].
pub fn write_with<W: io::Write>(writer: W, value: &Value, options: &Options) -> Result<Losses> {
    values::write::<write::Format>(writer, value, options)
}

/// Writes a value, one tensor at a time in memory; what was not kept, where that is accepted.
///
/// # Errors
/// Where the value is damaged, the writer fails, and where something cannot be kept and that is not accepted:
/// that is found out while the value is written.
pub fn export<W: io::Write>(value: &dyn Stored, writer: W, options: &Options) -> Result<Losses> {
    values::export::<write::Format>(value, writer, options)
}

/// JSON among the formats: values one after the other, each on a line of its own.
pub(crate) struct Json;

impl Codec for Json {
    fn holds_values(&self) -> bool {
        true
    }

    fn load(&self, file: &File, options: &Options, out: &mut Archived<'_>) -> Result<()> {
        let mut values = read::Reader::new(Positions::new(file)?, options.limits);
        while let Some(value) = values.next_value()? {
            out.save(&value)?;
        }
        Ok(())
    }

    fn write(
        &self,
        value: &dyn Stored,
        out: &mut dyn io::Write,
        options: &Options,
    ) -> Result<Losses> {
        let losses = export(value, &mut *out, options)?;
        out.write_all(b"\n").map_err(Error::io)?;
        Ok(losses)
    }
}
