//! MessagePack, with arrays as the Python packages `msgpack-numpy` and `flax` write them.
//!
//! Any MessagePack is read as a [`Value`]; numpy's arrays, scalars and complex numbers in it as tensors.
//! What is written is what Python's `msgpack.packb(value, default=msgpack_numpy.encode)` writes, to the
//! bit.
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
//! | an array of numpy, big-endian ones too; an array of flax | a tensor |
//! | an array of strings of numpy | nested arrays of texts |
//! | a scalar of numpy or flax, a complex number of Python | a tensor without dimensions |
//! | another extension | a map `{"msgpack_ext": type, "data": bytes}`, which is written as an extension |
//!
//! A scalar of numpy, such as the losses in a training log, fits a field `Tensor<Array0<f32>>`, not a plain `f32`. Two
//! equal keys in a map are refused.
//!
//! A tensor without dimensions is written as a scalar of numpy, and a packed sequence of numbers, which is how
//! archives hold a `Vec<f32>`, number by number, as it was before.
//! Arrays of flax are written as those of msgpack-numpy, which flax does not read.
//! Structured arrays and those of Python objects, which are pickles, are refused. What MessagePack has not is
//! a [`Loss`](super::Loss): tags, integers beyond 64 bits, column-major order, and dtypes that numpy has not
//! (bf16 becomes f32 of the same values; the others become nil).

mod files;
mod flax;
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

/// The field of an extension's type.
const EXTENSION: &str = "msgpack_ext";

/// The field of bytes: of an array, of an extension.
const DATA: &str = "data";

/// Reads one value, which must be all there is.
///
/// Memory follows the bytes received: at most 16 GiB by default.
///
/// # Errors
/// Where the reader fails or ends, gives something else than MessagePack, or goes on behind the value;
/// for strings that are not UTF-8, and arrays that are no tensors.
pub fn read<R: io::Read>(reader: R) -> Result<Value> {
    read_with(reader, Limits::default())
}

/// As [`read`], with limits.
///
/// # Errors
/// As [`read`], and with [`Category::Limit`](tenarc::error::Category::Limit) where there is more.
pub fn read_with<R: io::Read>(reader: R, limits: Limits) -> Result<Value> {
    values::only(read::Reader::new(Stream(reader), limits), "a MessagePack value")
}

/// Reads value after value, each with the limits for itself.
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

/// Writes a value.
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
