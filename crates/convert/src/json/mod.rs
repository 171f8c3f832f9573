//! Reads and writes JSON (RFC 8259). Tensors have the form in which `serde_json` writes a [`Tensor`](tenarc::Tensor):
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
//! | a number without fraction and exponent | [`Integer`](Value::Integer); if it exceeds an `i128`, the value that [`to_value`](tenarc::to_value) makes of a `u128` |
//! | another number, and `-0` | [`F64`](Value::F64) |
//! | an object | a tensor, if its keys are `dtype` (which tenarc must know), `shape`, `data` and optionally `order`, and no others; a map otherwise |
//!
//! Two equal keys in an object are an error.
//!
//! Integers of up to 128 bits are written as integers. Floats are written with few digits, which are enough to
//! distinguish them from other floats of their width: the `f32` nearest to 0.1 is written as `0.1`. It is read as the
//! `f64` nearest to 0.1. If the value is deserialized into an `f32` field, it is rounded to the original `f32`.
//! Elements of tensors are rounded to the dtype of the tensor.
//!
//! A packed sequence of numbers, as which archives store a `Vec<f32>`, is written as an array. If the dtype of a tensor
//! has no Rust type, for example FP8, each byte of its elements is written as a number.
//!
//! JSON cannot express some values. A conversion reports each of them as a [`Loss`](super::Loss):
//!
//! - NaN and infinities outside of tensors become null.
//! - Byte strings become arrays of numbers.
//! - Keys that are not texts become texts: integers in decimal, others in diagnostic notation.
//! - Tags are left out.
//! - Column-major tensors are written in row-major order.
//! - The payloads of NaNs are left out.

mod number;
mod read;
mod tensor;
mod write;

use std::fs::File;
use std::io;
use std::path::Path;

pub use super::options::Options;

use super::codec::{Archived, Codec};
use super::input::{Positions, Stream};
use super::values::{self, Each, ReadValues as _};
use super::{Losses, Stored};
use tenarc::de::Limits;
use tenarc::{Error, Result, Value};

/// Reads one value. Only white space may follow it.
///
/// Memory grows with the bytes received, up to a limit of 16 GiB by default.
///
/// # Errors
/// If the reader fails, the input is not valid JSON or ends too early, or something follows the value. Also if an
/// object has two equal keys, an integer exceeds 128 bits, another number exceeds every `f64`, or an object has the
/// keys of a tensor but does not describe a valid one.
pub fn read<R: io::Read>(reader: R) -> Result<Value> {
    read_with(reader, Limits::default())
}

/// Like [`read`], but with limits.
///
/// # Errors
/// The errors of [`read`]. The category is [`Category::Limit`](tenarc::error::Category::Limit) if a limit is exceeded.
pub fn read_with<R: io::Read>(reader: R, limits: Limits) -> Result<Value> {
    values::only(read::Reader::new(Stream(reader), limits), "a JSON value")
}

/// Returns an iterator that reads one value after the other, as in a JSON Lines file. White space between values is
/// optional. The memory limit applies to each value by itself.
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

/// Appends all values of an input to `out`, each as a message of tenarc. Other than with [`values`], a long value is never in
/// memory as a [`Value`], but only as a message.
///
/// ```
/// use tenarc::de::Limits;
///
/// let mut messages = Vec::new();
/// tenarc_convert::json::append_messages(&b"[{\"a\": 1}] 2"[..], Limits::strict(), &mut messages)?;
/// assert_eq!(messages, b"\x81\xa1\x61a\x01\x02");
/// # Ok::<(), tenarc::Error>(())
/// ```
///
/// # Errors
/// The errors of [`values`]. `out` then has a part of the values.
pub fn append_messages<R: io::Read>(reader: R, limits: Limits, out: &mut Vec<u8>) -> Result<()> {
    let mut reader = read::Reader::new(Stream(reader), limits);
    while reader.append_next(out)? {}
    Ok(())
}

/// An iterator over the values of an input: see [`values`].
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

/// Writes a value without white space.
///
/// # Errors
/// If the writer fails, or JSON cannot express a part of the value. In the second case, nothing is written.
pub fn write<W: io::Write>(writer: W, value: &Value) -> Result<()> {
    write_with(writer, value, &Options::default()).map(drop)
}

/// Like [`write()`], but with options. Returns what was lost, if the options accept losses.
///
/// # Errors
/// The errors of [`write()`], except for losses that the options accept.
pub fn write_with<W: io::Write>(writer: W, value: &Value, options: &Options) -> Result<Losses> {
    if options.lines {
        return values::write::<write::Lines>(writer, value, options);
    }
    values::write::<write::Format>(writer, value, options)
}

/// Writes a value of which only one tensor at a time is in memory. Returns what was lost, if the options accept losses.
///
/// # Errors
/// If the value is damaged, the writer fails, or something is lost and the options do not accept losses. Losses are
/// found while the value is written, so a part of it may have been written already.
pub fn export<W: io::Write>(value: &dyn Stored, writer: W, options: &Options) -> Result<Losses> {
    if options.lines {
        return values::export::<write::Lines>(value, writer, options);
    }
    values::export::<write::Format>(value, writer, options)
}

/// Returns whether a file name is that of JSON lines: `.jsonl` or `.ndjson`.
pub fn is_lines(path: &Path) -> bool {
    let is = |end: &str| path.extension().is_some_and(|found| found.eq_ignore_ascii_case(end));
    is("jsonl") || is("ndjson")
}

/// The conversions of JSON files to archives and back. A file holds any number of values. Each value is written on a
/// line of its own, and so is each row of a table in a file of JSON lines.
pub(crate) struct Json;

impl Codec for Json {
    fn holds_values(&self) -> bool {
        true
    }

    fn load(&self, file: &File, options: &Options, out: &mut Archived<'_>) -> Result<Losses> {
        let mut values = read::Reader::new(Positions::new(file)?, options.limits);
        while let Some(value) = values.next_value()? {
            out.save(&value)?;
        }
        Ok(Losses::default())
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

    fn of_name(&self, path: &Path, options: &Options) -> Options {
        options.clone().with_lines(options.lines || is_lines(path))
    }
}
