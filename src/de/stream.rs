//! Iterating over the values of a stream.

use std::marker::PhantomData;

use serde::de::Deserialize;

use super::Deserializer;
use crate::error::Result;
use crate::io::source::Read;

/// An iterator that decodes the values of a CBOR sequence (RFC 8742) one at a time. It is made by
/// [`Deserializer::into_iter`].
///
/// It ends when the input ends between two values. It also ends after the first error, because then it
/// is unknown where the next value starts.
///
/// ```
/// let mut bytes = tenarc::to_vec(&("loss", 0.5))?;
/// tenarc::append_to(&mut bytes, &("loss", 0.25))?;
///
/// let mut losses = tenarc::Deserializer::from_slice(&bytes).into_iter::<(&str, f64)>();
/// assert_eq!(losses.next().transpose()?, Some(("loss", 0.5)));
/// assert_eq!(losses.next().transpose()?, Some(("loss", 0.25)));
/// assert!(losses.next().is_none());
/// # Ok::<(), tenarc::Error>(())
/// ```
#[derive(Debug)]
pub struct StreamDeserializer<'de, R, T> {
    de: Deserializer<R>,
    failed: bool,
    input: PhantomData<&'de [u8]>,
    values: PhantomData<T>,
}

impl<'de, R: Read<'de>, T> StreamDeserializer<'de, R, T> {
    pub(super) fn new(de: Deserializer<R>) -> Self {
        Self { de, failed: false, input: PhantomData, values: PhantomData }
    }

    /// The position in the input after the last decoded value, in bytes from its start.
    pub fn byte_offset(&self) -> u64 {
        self.de.byte_offset()
    }

    /// Returns the deserializer, to read values of another type next.
    pub fn into_inner(self) -> Deserializer<R> {
        self.de
    }
}

impl<'de, R: Read<'de>, T: Deserialize<'de>> Iterator for StreamDeserializer<'de, R, T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        if self.failed {
            return None;
        }
        // It stays set if the value's own code panics.
        self.failed = true;
        let item = self.de.next_value().transpose();
        self.failed = matches!(item, Some(Err(_)));
        item
    }
}

impl<'de, R: Read<'de>, T: Deserialize<'de>> std::iter::FusedIterator
    for StreamDeserializer<'de, R, T>
{
}
