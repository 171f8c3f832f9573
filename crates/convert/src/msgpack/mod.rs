//! Reads and writes MessagePack, with arrays in the forms of the Python packages `msgpack-numpy` and `flax`.
//!
//! Any MessagePack value is read as a [`Value`]. Arrays, scalars and complex numbers of numpy in it are read as
//! tensors. The output is byte for byte that of Python's `msgpack.packb(value, default=msgpack_numpy.encode)`.
//!
//! ```
//! use ndarray::array;
//! use tenarc_convert::msgpack;
//! use tenarc::{Value, to_value};
//!
//! // Python: msgpack.packb({"lr": 0.5, "w": np.eye(2)}, default=msgpack_numpy.encode)
//! let value = Value::Map(vec![
//!     (Value::Text("lr".into()), Value::F64(0.5)),
//!     (Value::Text("w".into()), to_value(&tenarc::Tensor(array![[1.0, 0.0], [0.0, 1.0]]))?),
//! ]);
//! let mut bytes = Vec::new();
//! msgpack::write(&mut bytes, &value)?;
//! assert_eq!(msgpack::read(&bytes[..])?, value);
//! # Ok::<(), tenarc::Error>(())
//! ```
//!
//! | MessagePack | [`Value`] |
//! |---|---|
//! | nil, bool, int, str, bin, array, map | the same; keys of maps may be anything |
//! | float 32, float 64 | [`F32`](Value::F32), [`F64`](Value::F64) |
//! | an array of numpy, little-endian or big-endian; an array of flax | a tensor |
//! | an array of strings of numpy | nested arrays of texts |
//! | a structured array of numpy | a map from the names of its fields to such arrays |
//! | a scalar of numpy or flax, a complex number of Python | a tensor without dimensions |
//! | another extension | a map `{"msgpack_ext": type, "data": bytes}`, which is written as an extension |
//!
//! A scalar of numpy, such as a loss in a training log, is deserialized into a `Tensor<Array0<f32>>`, not into an
//! `f32`.
//!
//! Two equal keys in a map are an error. So is an array that no value can hold, such as one of Python objects, because it is a
//! pickle; a conversion of a file reports it as a [`Loss`](super::Loss), and writes null in its place.
//!
//! A tensor without dimensions is written as a scalar of numpy. A packed sequence of numbers, as which archives store a
//! `Vec<f32>`, is written as an array of numbers. An array that was read from the form of flax is written in the form
//! of msgpack-numpy, which flax does not read.
//!
//! MessagePack cannot express some values. A conversion reports each of them as a [`Loss`](super::Loss):
//!
//! - Tags are left out.
//! - Integers of more than 64 bits become strings.
//! - Column-major tensors are written in row-major order.
//! - A tensor whose dtype numpy does not have becomes nil. But bf16 becomes f32, which keeps the values.

mod files;
mod flax;
mod item;
mod numpy;
mod read;
mod write;

use std::io;

pub use super::options::Options;
pub(crate) use files::Msgpack;

use super::input::Stream;
use super::values::{self, Each};
use super::{Losses, Stored};
use tenarc::de::Limits;
use tenarc::{Result, Value};

/// Reads one value. Nothing may follow it.
///
/// Memory grows with the bytes received, up to a limit of 16 GiB by default.
///
/// # Errors
/// If the reader fails, the input is not valid MessagePack or ends too early, or something follows the value. Also if a
/// string is not UTF-8, a map has two equal keys, or an array of numpy cannot be read as a tensor or as texts.
pub fn read<R: io::Read>(reader: R) -> Result<Value> {
    read_with(reader, Limits::default())
}

/// Like [`read`], but with limits.
///
/// # Errors
/// The errors of [`read`]. The category is [`Category::Limit`](tenarc::error::Category::Limit) if a limit is exceeded.
pub fn read_with<R: io::Read>(reader: R, limits: Limits) -> Result<Value> {
    values::only(read::Reader::new(Stream(reader), limits), "a MessagePack value")
}

/// Returns an iterator that reads one value after the other. The memory limit applies to each value by itself.
///
/// ```
/// use tenarc_convert::msgpack;
/// use tenarc::Value;
/// use tenarc::de::Limits;
///
/// let values: Vec<Value> = msgpack::values(&b"\x01\xc0"[..], Limits::strict()).collect::<Result<_, _>>()?;
/// assert_eq!(values, [Value::Integer(1), Value::Null]);
/// # Ok::<(), tenarc::Error>(())
/// ```
pub fn values<R: io::Read>(reader: R, limits: Limits) -> Values<R> {
    Values { each: Each::new(read::Reader::new(Stream(reader), limits)) }
}

/// Appends all values of an input to `out`, each as a message of tenarc. Other than with [`values`], a long value is never in
/// memory as a [`Value`], but only as a message. Arrays that no value can hold, such as those of Python objects, become null and
/// are added to `losses`.
///
/// ```
/// use tenarc::de::Limits;
/// use tenarc_convert::{Losses, msgpack};
///
/// let mut messages = Vec::new();
/// msgpack::append_messages(&b"\x91\x81\xa1a\x01"[..], Limits::strict(), &mut Losses::default(), &mut messages)?;
/// assert_eq!(messages, b"\x81\xa1\x61a\x01");
/// # Ok::<(), tenarc::Error>(())
/// ```
///
/// # Errors
/// The errors of [`values`]. `out` then has a part of the values.
pub fn append_messages<R: io::Read>(
    reader: R,
    limits: Limits,
    losses: &mut Losses,
    out: &mut Vec<u8>,
) -> Result<()> {
    let mut reader = read::Reader::new(Stream(reader), limits);
    while reader.append_next(out, losses)? {}
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

/// Writes a value.
///
/// # Errors
/// If the writer fails, or MessagePack cannot express a part of the value. In the second case, nothing is written.
pub fn write<W: io::Write>(writer: W, value: &Value) -> Result<()> {
    write_with(writer, value, &Options::default()).map(drop)
}

/// Like [`write()`], but with options. Returns what was lost, if the options accept losses.
///
/// # Errors
/// The errors of [`write()`], except for losses that the options accept.
pub fn write_with<W: io::Write>(writer: W, value: &Value, options: &Options) -> Result<Losses> {
    values::write::<write::Format>(writer, value, options)
}

/// Writes a value of which only one tensor at a time is in memory. Returns what was lost, if the options accept losses.
///
/// # Errors
/// If the value is damaged, the writer fails, or something is lost and the options do not accept losses. Losses are
/// found while the value is written, so a part of it may have been written already.
pub fn export<W: io::Write>(value: &dyn Stored, writer: W, options: &Options) -> Result<Losses> {
    values::export::<write::Format>(value, writer, options)
}
