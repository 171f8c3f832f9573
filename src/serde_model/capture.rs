//! A serializer that only accepts bytes, and a macro for serializers that reject most types.

use std::cell::Cell;
use std::fmt;

use serde::Serialize;
use serde::ser::{self, Error as _, SerializeSeq as _, Serializer};
use serde_bytes::Bytes;

use crate::error::{Error, Result};
use crate::handoff::{self, Slot, name};
use crate::wire::writer::Writer;

/// Defines serializer methods that always return `$error`.
macro_rules! refuse {
    ($error:expr; $($kind:ident)*) => {
        $(refuse!(@ $error, $kind);)*
    };
    (@ $error:expr, bool) => {
        refuse!(@@ $error; serialize_bool(bool));
    };
    (@ $error:expr, scalars) => {
        refuse!(@ $error, most_scalars);
        refuse!(@@ $error; serialize_u128(u128));
    };
    (@ $error:expr, most_scalars) => {
        refuse!(@ $error, plain_scalars);
        refuse!(@ $error, unit_variant);
    };
    (@ $error:expr, plain_scalars) => {
        refuse!(@@ $error; serialize_char(char); serialize_str(&str);
            serialize_i128(i128); serialize_none(); serialize_unit();
            serialize_unit_struct(&'static str));
    };
    (@ $error:expr, unit_variant) => {
        refuse!(@@ $error; serialize_unit_variant(&'static str, u32, &'static str));
    };
    (@ $error:expr, numbers) => {
        $crate::serde_model::for_each_number!(refuse { $error });
    };
    ({ $error:expr } $($variant:ident $type:ty, $method:ident;)*) => {
        refuse!(@@ $error; $($method($type));*);
    };
    (@ $error:expr, bytes) => {
        refuse!(@@ $error; serialize_bytes(&[u8]));
    };
    (@ $error:expr, wrappers) => {
        refuse!(@ $error, newtype_struct);
        refuse!(@ $error, other_wrappers);
    };
    (@ $error:expr, newtype_struct) => {
        #[inline]
        fn serialize_newtype_struct<T: Serialize + ?Sized>(
            self,
            _: &'static str,
            _: &T,
        ) -> Result<Self::Ok, Self::Error> {
            Err($error)
        }
    };
    (@ $error:expr, other_wrappers) => {
        #[inline]
        fn serialize_some<T: Serialize + ?Sized>(self, _: &T) -> Result<Self::Ok, Self::Error> {
            Err($error)
        }

        refuse!(@ $error, newtype_variant);
    };
    (@ $error:expr, newtype_variant) => {
        #[inline]
        fn serialize_newtype_variant<T: Serialize + ?Sized>(
            self,
            _: &'static str,
            _: u32,
            _: &'static str,
            _: &T,
        ) -> Result<Self::Ok, Self::Error> {
            Err($error)
        }
    };
    (@ $error:expr, seq) => {
        type SerializeSeq = serde::ser::Impossible<Self::Ok, Self::Error>;

        #[inline]
        fn serialize_seq(self, _: Option<usize>) -> Result<Self::SerializeSeq, Self::Error> {
            Err($error)
        }

        #[inline]
        fn collect_seq<I>(self, _: I) -> Result<Self::Ok, Self::Error>
        where
            I: IntoIterator,
            I::Item: Serialize,
        {
            Err($error)
        }
    };
    (@ $error:expr, compounds) => {
        refuse!(@ $error, tuples_and_structs);
        refuse!(@ $error, map);
        refuse!(@ $error, text);
    };
    (@ $error:expr, tuples_and_structs) => {
        type SerializeTuple = serde::ser::Impossible<Self::Ok, Self::Error>;
        type SerializeTupleStruct = serde::ser::Impossible<Self::Ok, Self::Error>;
        type SerializeTupleVariant = serde::ser::Impossible<Self::Ok, Self::Error>;
        type SerializeStruct = serde::ser::Impossible<Self::Ok, Self::Error>;
        type SerializeStructVariant = serde::ser::Impossible<Self::Ok, Self::Error>;

        #[inline]
        fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, Self::Error> {
            Err($error)
        }

        #[inline]
        fn serialize_tuple_struct(
            self,
            _: &'static str,
            _: usize,
        ) -> Result<Self::SerializeTupleStruct, Self::Error> {
            Err($error)
        }

        #[inline]
        fn serialize_tuple_variant(
            self,
            _: &'static str,
            _: u32,
            _: &'static str,
            _: usize,
        ) -> Result<Self::SerializeTupleVariant, Self::Error> {
            Err($error)
        }

        #[inline]
        fn serialize_struct(
            self,
            _: &'static str,
            _: usize,
        ) -> Result<Self::SerializeStruct, Self::Error> {
            Err($error)
        }

        #[inline]
        fn serialize_struct_variant(
            self,
            _: &'static str,
            _: u32,
            _: &'static str,
            _: usize,
        ) -> Result<Self::SerializeStructVariant, Self::Error> {
            Err($error)
        }
    };
    (@ $error:expr, map) => {
        type SerializeMap = serde::ser::Impossible<Self::Ok, Self::Error>;

        #[inline]
        fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, Self::Error> {
            Err($error)
        }
    };
    (@ $error:expr, text) => {
        #[inline]
        fn collect_str<T: fmt::Display + ?Sized>(self, _: &T) -> Result<Self::Ok, Self::Error> {
            Err($error)
        }

        #[inline]
        fn is_human_readable(&self) -> bool {
            false
        }
    };
    (@@ $error:expr; $($method:ident($($type:ty),*));*) => {$(
        #[inline]
        fn $method(self, $(_: $type),*) -> Result<Self::Ok, Self::Error> {
            Err($error)
        }
    )*};
}

pub(crate) use refuse;

/// A serializer that accepts a byte string, or a sequence of byte strings, and calls the function with
/// each of them. The function is a trait object, so that a value is compiled for one such serializer.
pub struct Capture<'a>(pub &'a mut dyn FnMut(&[u8]) -> Result<()>);

#[cold]
fn not_bytes() -> Error {
    Error::data("only bytes can be written here")
}

impl<'a> Serializer for Capture<'a> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = CaptureSeq<'a>;

    #[inline]
    fn serialize_bytes(self, bytes: &[u8]) -> Result<()> {
        (self.0)(bytes)
    }

    #[inline]
    fn serialize_seq(self, _: Option<usize>) -> Result<CaptureSeq<'a>> {
        Ok(CaptureSeq(self.0))
    }

    refuse!(not_bytes(); bool scalars numbers wrappers compounds);
}

pub struct CaptureSeq<'a>(&'a mut dyn FnMut(&[u8]) -> Result<()>);

impl ser::SerializeSeq for CaptureSeq<'_> {
    type Ok = ();
    type Error = Error;

    #[inline]
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        value.serialize(CaptureBlock(&mut *self.0))
    }

    #[inline]
    fn end(self) -> Result<()> {
        Ok(())
    }
}

/// A serializer that accepts one byte string.
struct CaptureBlock<'a>(&'a mut dyn FnMut(&[u8]) -> Result<()>);

impl Serializer for CaptureBlock<'_> {
    type Ok = ();
    type Error = Error;

    #[inline]
    fn serialize_bytes(self, bytes: &[u8]) -> Result<()> {
        (self.0)(bytes)
    }

    /// Returns the error of a [`Failed`] block: see [`serialize_blocks`].
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        _: &T,
    ) -> Result<()> {
        match (name, handoff::take()) {
            (name::FAILED, Slot::Failed(error)) => Err(error),
            _ => Err(not_bytes()),
        }
    }

    refuse!(not_bytes(); bool scalars numbers other_wrappers seq compounds);
}

/// Serializes the blocks that `write` passes on. The serializer must be one of this crate that asked for blocks. If
/// `write` fails, it returns the same error. Other serializers would only keep its text.
pub fn serialize_blocks<S: Serializer>(
    serializer: S,
    write: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()>,
) -> Result<S::Ok, S::Error> {
    let mut seq = serializer.serialize_seq(None)?;
    let mut refused = None;
    let written = write(&mut |block| {
        seq.serialize_element(Bytes::new(block)).map_err(|error| {
            refused = Some(error);
            Error::data("block was not written")
        })
    });
    match (refused, written) {
        (Some(error), _) => return Err(error),
        (None, Err(error)) => seq.serialize_element(&Failed(Cell::new(Some(error))))?,
        (None, Ok(())) => {}
    }
    seq.end()
}

/// The error because of which there is no block. It is serialized in place of the block.
struct Failed(Cell<Option<Error>>);

impl Serialize for Failed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(error) = self.0.take() else {
            return Err(S::Error::custom("a block was not written"));
        };
        handoff::offer(Slot::Failed(error), || {
            serializer.serialize_newtype_struct(name::FAILED, &())
        })
    }
}

/// Calls `put` for each block of the payload. An error if the blocks are not exactly `len` bytes.
pub fn blocks<T: Serialize + ?Sized>(
    len: usize,
    payload: &T,
    put: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    blocks_of(Slot::Blocks, len, payload, put)
}

/// Like [`blocks`], for a payload that is compressed already. It has `len` stored bytes, which are passed on as they
/// are.
pub fn stored_blocks<T: Serialize + ?Sized>(
    len: usize,
    payload: &T,
    put: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    blocks_of(Slot::StoredBlocks, len, payload, put)
}

fn blocks_of<T: Serialize + ?Sized>(
    slot: Slot,
    len: usize,
    payload: &T,
    put: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let mut left = len;
    let mut counted = |block: &[u8]| {
        left = left.checked_sub(block.len()).ok_or_else(|| {
            Error::data(format!("expected {len} bytes of a tensor, found more bytes"))
        })?;
        put(block)
    };
    handoff::offer(slot, || payload.serialize(Capture(&mut counted)))?;
    if left != 0 {
        return Err(Error::data(format!(
            "expected {len} bytes of a tensor, found {left} bytes fewer"
        )));
    }
    Ok(())
}

/// Slices from this length on are appended as blocks.
const LONG: usize = 1 << 20;

/// A serializer that writes a tensor. It accepts a sequence of two elements: the bytes before the payload,
/// as an [`ArrayHead`](crate::wire::items::ArrayHead) that is packed into an integer, and the payload.
pub struct PutWhole<'a, 'o>(pub &'a mut Writer<'o>);

impl Serializer for PutWhole<'_, '_> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Self;

    #[inline]
    fn serialize_bytes(self, bytes: &[u8]) -> Result<()> {
        // `put_slice` is made for short slices, `put_block` for long ones.
        if bytes.len() < LONG { self.0.put_slice(bytes) } else { self.0.put_block(bytes) }
    }

    #[inline]
    fn serialize_seq(self, _: Option<usize>) -> Result<Self> {
        Ok(self)
    }

    #[inline]
    fn serialize_u128(self, head: u128) -> Result<()> {
        self.0.array_head(head)
    }

    refuse!(not_bytes(); bool most_scalars numbers wrappers compounds);
}

impl ser::SerializeSeq for PutWhole<'_, '_> {
    type Ok = ();
    type Error = Error;

    #[inline]
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        value.serialize(PutWhole(&mut *self.0))
    }

    #[inline]
    fn end(self) -> Result<()> {
        Ok(())
    }
}
