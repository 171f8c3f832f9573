//! Decoding: serde's [`Deserializer`](serde::Deserializer) for CBOR.

mod access;
mod bulk;
mod columns;
mod decoder;
mod deserializer;
mod fields;
mod items;
mod receive;
mod runs;
mod stream;
mod visit;
mod whole;

use std::io;
use std::marker::PhantomData;

use serde::de::{Deserialize, DeserializeOwned, Visitor};

pub(crate) use self::columns::{ColumnOfGroups, WantedRows};
pub(crate) use self::decoder::ValueDecoder;
pub(crate) use self::fields::fields_at;
pub use self::stream::StreamDeserializer;
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::io::input::Input;
pub use crate::io::source::{IoRead, Read, SliceRead};
use crate::magic::MAGIC;
pub use crate::options::{DecodeOptions, Limits};

/// Decodes the value in `slice`, which must contain exactly one. Strings, byte strings and views can
/// borrow from the slice.
///
/// ```
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Record<'a> {
///     name: &'a str, // borrows from the bytes
///     score: f32,
/// }
///
/// let bytes = tenarc::to_vec(&Record { name: "first", score: 0.5 })?;
/// let record: Record = tenarc::from_slice(&bytes)?;
/// assert_eq!(record.name, "first");
/// # Ok::<(), tenarc::Error>(())
/// ```
///
/// # Errors
/// If the input is not well-formed, does not fit the type, exceeds the [`Limits`], or has more bytes
/// after the value.
///
/// [`Limits`]: crate::de::Limits
pub fn from_slice<'de, T: Deserialize<'de>>(slice: &'de [u8]) -> Result<T> {
    from_slice_with(slice, DecodeOptions::default())
}

/// Like [`from_slice`], with options.
///
/// ```
/// use tenarc::de::{DecodeOptions, Limits};
/// use tenarc::error::Category;
///
/// let bytes = tenarc::to_vec(&[[[[1]]]])?;
/// let options = DecodeOptions::default().with_limits(Limits::default().with_max_depth(3));
/// let error = tenarc::de::from_slice_with::<[[[[i32; 1]; 1]; 1]; 1]>(&bytes, options).unwrap_err();
/// assert_eq!(error.category(), Category::Limit);
/// # Ok::<(), tenarc::Error>(())
/// ```
///
/// # Errors
/// The same errors as [`from_slice`].
pub fn from_slice_with<'de, T: Deserialize<'de>>(
    slice: &'de [u8],
    options: DecodeOptions,
) -> Result<T> {
    ValueDecoder::new(Input::slice(slice), options).message(slice.starts_with(&MAGIC))
}

/// Decodes a value from `reader`, whose input must contain exactly one. Tensors are read directly into
/// their memory. The reader does not need a buffer of its own.
///
/// To read one of several values on a stream, see [`Deserializer::into_iter`].
///
/// ```
/// use tenarc::Tensor;
///
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("message.cbor");
/// tenarc::to_writer(std::fs::File::create(&path)?, &Tensor(vec![1u16; 100]))?;
/// let values: Tensor<Vec<u16>> = tenarc::from_reader(std::fs::File::open(&path)?)?;
/// assert_eq!(values.0, [1; 100]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the input is not well-formed, does not fit the type, exceeds the [`Limits`], or has more bytes
/// after the value, or if the reader fails.
pub fn from_reader<R: io::Read, T: DeserializeOwned>(reader: R) -> Result<T> {
    from_reader_with(reader, DecodeOptions::default())
}

/// Like [`from_reader`], with options.
///
/// # Errors
/// The same errors as [`from_reader`].
pub fn from_reader_with<R: io::Read, T: DeserializeOwned>(
    reader: R,
    options: DecodeOptions,
) -> Result<T> {
    let mut read = IoRead::new(reader);
    read.fill(MAGIC.len())?;
    let is_archive = read.window().starts_with(&MAGIC);
    ValueDecoder::new(Input::stream(&mut read), options).message(is_archive)
}

/// Decodes values from a slice or a reader.
///
/// ```
/// use serde::Deserialize;
///
/// let mut deserializer = tenarc::Deserializer::from_slice(&[0x01, 0x61, b'a']);
/// assert_eq!(u8::deserialize(&mut deserializer)?, 1);
/// assert_eq!(<&str>::deserialize(&mut deserializer)?, "a");
/// deserializer.end()?;
/// # Ok::<(), tenarc::Error>(())
/// ```
#[derive(Debug)]
pub struct Deserializer<R> {
    src: R,
    /// What the values that were read have left of the limits.
    budget: Budget,
}

impl<'de> Deserializer<SliceRead<'de>> {
    /// A deserializer that reads from a slice.
    pub fn from_slice(slice: &'de [u8]) -> Self {
        Self::from_slice_with(slice, DecodeOptions::default())
    }

    /// A deserializer that reads from a slice, with options.
    pub fn from_slice_with(slice: &'de [u8], options: DecodeOptions) -> Self {
        Self { src: SliceRead::new(slice), budget: Budget::new(options.limits) }
    }
}

impl<R: io::Read> Deserializer<IoRead<R>> {
    /// A deserializer that reads from a reader.
    pub fn from_reader(reader: R) -> Self {
        Self::from_reader_with(reader, DecodeOptions::default())
    }

    /// A deserializer that reads from a reader, with options.
    pub fn from_reader_with(reader: R, options: DecodeOptions) -> Self {
        Self { src: IoRead::new(reader), budget: Budget::new(options.limits) }
    }

    /// Returns the reader, and the bytes that were read from it beyond the last value.
    pub fn into_inner(self) -> (R, Vec<u8>) {
        self.src.into_inner()
    }
}

impl<'de, R: Read<'de>> Deserializer<R> {
    /// Calls `read` with a decoder that goes on where this deserializer is.
    fn with<T>(&mut self, read: impl FnOnce(&mut ValueDecoder<'de, '_>) -> Result<T>) -> Result<T> {
        let mut decoder = ValueDecoder::going_on(self.src.input(), &self.budget);
        let result = read(&mut decoder);
        let (offset, budget) = decoder.into_parts();
        self.src.move_to(offset);
        self.budget = budget;
        result
    }

    /// The position in the input after the last decoded value, in bytes from its start.
    pub fn byte_offset(&self) -> u64 {
        self.src.offset()
    }

    /// Checks that the input has ended.
    ///
    /// # Errors
    /// If there are more bytes, or if the reader fails.
    pub fn end(&mut self) -> Result<()> {
        #[allow(clippy::redundant_closure_for_method_calls)]
        // The method itself has fewer lifetimes.
        self.with(|decoder| decoder.end())
    }

    /// Iterates over the values of the input, which is a CBOR sequence (RFC 8742).
    ///
    /// ```
    /// // A CBOR sequence of three numbers.
    /// let numbers = tenarc::Deserializer::from_slice(&[1, 2, 3]).into_iter::<u8>();
    /// assert_eq!(numbers.collect::<Result<Vec<_>, _>>()?, [1, 2, 3]);
    /// # Ok::<(), tenarc::Error>(())
    /// ```
    #[allow(clippy::should_implement_trait)]
    pub fn into_iter<T: Deserialize<'de>>(self) -> StreamDeserializer<'de, R, T> {
        StreamDeserializer::new(self)
    }

    /// Reads the next value, which has all of the limits. `None` if the input has ended.
    fn next_value<T: Deserialize<'de>>(&mut self) -> Result<Option<T>> {
        self.with(|decoder| {
            if decoder.wire.peek()?.is_none() {
                return Ok(None);
            }
            decoder.wire.renew();
            decoder.value(PhantomData).map(Some)
        })
    }
}

macro_rules! forward {
    ($($method:ident($($arg:ident: $type:ty),*))*) => {
        impl<'de, R: Read<'de>> serde::Deserializer<'de> for &mut Deserializer<R> {
            type Error = Error;

            $(fn $method<V: Visitor<'de>>(self, $($arg: $type,)* visitor: V) -> Result<V::Value> {
                self.with(|decoder| decoder.$method($($arg,)* visitor))
            })*

            fn is_human_readable(&self) -> bool {
                false
            }
        }
    };
}

forward! {
    deserialize_any() deserialize_bool()
    deserialize_i8() deserialize_i16() deserialize_i32() deserialize_i64() deserialize_i128()
    deserialize_u8() deserialize_u16() deserialize_u32() deserialize_u64() deserialize_u128()
    deserialize_f32() deserialize_f64() deserialize_char() deserialize_str() deserialize_string()
    deserialize_bytes() deserialize_byte_buf() deserialize_option() deserialize_unit()
    deserialize_unit_struct(name: &'static str)
    deserialize_newtype_struct(name: &'static str)
    deserialize_seq() deserialize_tuple(len: usize)
    deserialize_tuple_struct(name: &'static str, len: usize)
    deserialize_map()
    deserialize_struct(name: &'static str, fields: &'static [&'static str])
    deserialize_enum(name: &'static str, variants: &'static [&'static str])
    deserialize_identifier() deserialize_ignored_any()
}
