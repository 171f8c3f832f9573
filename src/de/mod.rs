//! Decoding: serde's [`Deserializer`](serde::Deserializer) for CBOR.

mod access;
mod bulk;
mod columns;
mod fields;
mod hints;
mod items;
mod runs;
mod shown;
mod stream;
mod whole;

use std::io;
use std::marker::PhantomData;

use serde::de::{Deserialize, DeserializeOwned, DeserializeSeed};

pub(crate) use self::columns::{ColumnOfGroups, Wanted};
pub(crate) use self::fields::fields_of;
pub use self::stream::StreamDeserializer;
use crate::error::{Category, Error, Result};
use crate::io::source::Source as _;
pub use crate::io::source::{IoRead, Read, SliceRead};
use crate::magic::{MAGIC, archive_as_message};
pub use crate::options::{DecodeOptions, Limits};
use crate::wire::head;
use crate::wire::reader::Reader;

/// Decodes the value in `slice`, which must contain exactly one. Strings, byte strings and views can
/// borrow from the slice.
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
/// # Errors
/// The same errors as [`from_slice`].
pub fn from_slice_with<'de, T: Deserialize<'de>>(
    slice: &'de [u8],
    options: DecodeOptions,
) -> Result<T> {
    Deserializer::over(SliceRead::new(slice), options).message(slice.starts_with(&MAGIC))
}

/// Decodes a value from `reader`, whose input must contain exactly one. Tensors are read directly into
/// their memory. The reader does not need a buffer of its own.
///
/// To read one of several values on a stream, see [`Deserializer::into_iter`].
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
    mut reader: R,
    options: DecodeOptions,
) -> Result<T> {
    // A trait object, so that the decoder is compiled once and not for each type of reader.
    let reader: &mut dyn io::Read = &mut reader;
    let mut read = IoRead::new(reader);
    read.fill(MAGIC.len())?;
    let is_archive = read.window().starts_with(&MAGIC);
    Deserializer::over(read, options).message(is_archive)
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
    pub(crate) wire: Reader<R>,
    /// The offset at which the last option was entered, and how many were entered at that offset. See
    /// `enter_some`.
    some_at: u64,
    some_count: usize,
}

impl<'de> Deserializer<SliceRead<'de>> {
    /// A deserializer that reads from a slice.
    pub fn from_slice(slice: &'de [u8]) -> Self {
        Self::from_slice_with(slice, DecodeOptions::default())
    }

    /// A deserializer that reads from a slice, with options.
    pub fn from_slice_with(slice: &'de [u8], options: DecodeOptions) -> Self {
        Self::over(SliceRead::new(slice), options)
    }
}

impl<R: io::Read> Deserializer<IoRead<R>> {
    /// A deserializer that reads from a reader.
    pub fn from_reader(reader: R) -> Self {
        Self::from_reader_with(reader, DecodeOptions::default())
    }

    /// A deserializer that reads from a reader, with options.
    pub fn from_reader_with(reader: R, options: DecodeOptions) -> Self {
        Self::over(IoRead::new(reader), options)
    }

    /// Returns the reader, and the bytes that were read from it beyond the last value.
    pub fn into_inner(self) -> (R, Vec<u8>) {
        self.wire.src.into_inner()
    }
}

impl<'de, R: Read<'de>> Deserializer<R> {
    pub(crate) fn over(src: R, options: DecodeOptions) -> Self {
        Self { wire: Reader::new(src, options.limits), some_at: u64::MAX, some_count: 0 }
    }

    /// The position in the input after the last decoded value, in bytes from its start.
    pub fn byte_offset(&self) -> u64 {
        self.wire.offset()
    }

    /// Checks that the input has ended.
    ///
    /// # Errors
    /// If there are more bytes, or if the reader fails.
    pub fn end(&mut self) -> Result<()> {
        match self.wire.peek()? {
            None => Ok(()),
            Some(byte) => {
                let found = head::name(byte);
                let what = format!("expected the end of the input, found {found} after the value");
                Err(Error::syntax(what).at(self.wire.offset()))
            }
        }
    }

    /// Iterates over the values of the input, which is a CBOR sequence (RFC 8742).
    #[allow(clippy::should_implement_trait)]
    pub fn into_iter<T: Deserialize<'de>>(self) -> StreamDeserializer<'de, R, T> {
        StreamDeserializer::new(self)
    }

    /// Reads the only value of the input. Input with the tags of an archive, `starts_as_archive`, may still be a
    /// message. So the error that it is an archive is only returned if it cannot be read as a message.
    fn message<T: Deserialize<'de>>(mut self, starts_as_archive: bool) -> Result<T> {
        let value = self.value(PhantomData).and_then(|value| self.end().map(|()| value));
        value.map_err(|error| match error.category() {
            Category::Io => error,
            _ if starts_as_archive => archive_as_message(),
            _ => error,
        })
    }

    /// Reads one value. An error that the value's own code raised gets the offset of the value.
    pub(crate) fn value<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value> {
        let at = self.wire.offset();
        seed.deserialize(&mut *self).map_err(|error| error.at(at))
    }
}
