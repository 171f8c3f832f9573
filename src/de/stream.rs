//! Many values on one stream.

use std::marker::PhantomData;

use serde::de::Deserialize;

use super::Deserializer;
use crate::error::Result;
use crate::io::source::Read;

/// The values of a CBOR sequence (RFC 8742), decoded one at a time; made by
/// [`Deserializer::into_iter`].
///
/// Ends at the end of the input between two values, and after the first error: behind that,
/// nothing tells where a value starts.
///
/// ```
/// let bytes = [0x01, 0x02, 0x18, 0x2a];
/// let stream = tenarc::Deserializer::from_slice(&bytes).into_iter::<u8>();
/// assert_eq!(stream.collect::<Result<Vec<_>, _>>()?, [1, 2, 42]);
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

    /// Position in the input, behind the last value.
    pub fn byte_offset(&self) -> u64 {
        self.de.byte_offset()
    }

    /// The deserializer, to go on with values of another type.
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
        let item = match self.de.wire.peek() {
            Ok(None) => return None,
            Ok(Some(_)) => self.de.value(PhantomData),
            Err(error) => Err(error),
        };
        self.failed = item.is_err();
        Some(item)
    }
}

impl<'de, R: Read<'de>, T: Deserialize<'de>> std::iter::FusedIterator
    for StreamDeserializer<'de, R, T>
{
}
