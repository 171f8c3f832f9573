//! Serializes tensors.

use serde::ser::{Error as _, Serialize, SerializeSeq, SerializeStruct, Serializer};
use serde_bytes::Bytes;

use super::{Order, TensorMeta, ToTensor};
use crate::elements::Elements;
use crate::error::{Error, Result};
use crate::handoff::{self, Slot, name};
use crate::serde_model::serialize_blocks;
use crate::shape::Shape;
use crate::wire::items::ArrayHead;
use crate::wire::writer::is_writer;

#[inline]
pub fn serialize<T: ToTensor + ?Sized, S: Serializer>(
    array: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    // A shortcut for most tensors. Writing such a tensor takes a third of the time with it.
    if is_writer::<S>()
        && let Some(block) = array.as_block()
        && let Some(head) = ArrayHead::of(block.meta(), block.len())
    {
        let whole = Whole { head: head.packed(), payload: block.payload(), array: &array };
        return serializer.serialize_newtype_struct(name::WHOLE_TENSOR, &whole);
    }
    serialize_any(array, serializer)
}

/// A tensor for [`PutWhole`](crate::serde_model::PutWhole).
struct Whole<'a> {
    /// An [`ArrayHead`], packed.
    head: u128,
    payload: &'a [u8],
    array: &'a dyn ToTensor,
}

impl Serialize for Whole<'_> {
    // Always: 5 % of encoding small arrays of ndarray.
    #[inline(always)]
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // The encoder may write it to a buffer of an archive.
        if is_writer::<S>() {
            return serialize_any(self.array, serializer);
        }
        let mut seq = serializer.serialize_seq(Some(2))?;
        seq.serialize_element(&self.head)?;
        seq.serialize_element(Bytes::new(self.payload))?;
        seq.end()
    }
}

#[inline(never)]
fn serialize_any<T: ToTensor + ?Sized, S: Serializer>(
    array: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let meta = array.meta();
    let len = array.byte_len(&meta).ok_or_else(|| S::Error::custom(sizeless(&meta)))?;
    handoff::offer(Slot::Outgoing(meta, len), || {
        serializer.serialize_newtype_struct(name::TENSOR, &Payload(&array))
    })
}

#[cold]
fn sizeless(meta: &TensorMeta) -> String {
    let (dtype, shape) = (&meta.dtype, &meta.shape);
    let Some(bits) = dtype.bits() else {
        return format!(
            "the element size of `{dtype}` is not known: the tensor must give its length in bytes"
        );
    };
    match shape.element_count().and_then(|count| count.checked_mul(bits)) {
        None => format!("a {dtype} tensor of shape {shape:?} does not fit in memory"),
        Some(_) => format!("a {dtype} tensor of shape {shape:?} does not fill whole bytes"),
    }
}

/// A trait object, so that the code is compiled once for each serializer and not for each array type.
struct Payload<'a>(&'a dyn ToTensor);

impl Serialize for Payload<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match handoff::take() {
            Slot::Blocks => self.blocks(serializer),
            _ if serializer.is_human_readable() => self.plain(serializer),
            _ => self.binary(serializer),
        }
    }
}

impl Payload<'_> {
    /// For this crate's serializers: only the bytes, in one or more blocks.
    fn blocks<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Some(bytes) = self.0.as_le_bytes() {
            return serializer.serialize_bytes(bytes);
        }
        serialize_blocks(serializer, |put| self.0.write_blocks(put))
    }

    /// For other binary formats: a struct with a fixed number of fields.
    fn binary<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let meta = self.0.meta();
        let mut fields = serializer.serialize_struct("Tensor", 4)?;
        fields.serialize_field("dtype", meta.dtype.name())?;
        fields.serialize_field("shape", &*meta.shape)?;
        fields.serialize_field("order", meta.order.name())?;
        match self.0.as_le_bytes() {
            Some(bytes) => fields.serialize_field("data", Bytes::new(bytes))?,
            None => fields.serialize_field("data", Bytes::new(&self.gather(&meta)?))?,
        }
        fields.end()
    }

    /// For human-readable formats: numbers in row-major order.
    fn plain<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let meta = self.0.meta();
        let bytes = self.gather(&meta)?;
        let elements = Elements::from_le_bytes(&meta.dtype, bytes)
            .map_err(|error| error.through(S::Error::custom))?;
        let raw = matches!(elements, Elements::Raw(..));
        let elements = if meta.order == Order::F && !raw {
            elements.row_major(&meta.shape).map_err(|error| error.through(S::Error::custom))?
        } else {
            elements
        };
        // Elements without a Rust type are written as bytes, in their original order.
        let order = meta.order == Order::F && raw;
        let mut fields = serializer.serialize_struct("Tensor", 3 + usize::from(order))?;
        fields.serialize_field("dtype", meta.dtype.name())?;
        fields.serialize_field("shape", &*meta.shape)?;
        if order {
            fields.serialize_field("order", meta.order.name())?;
        }
        fields.serialize_field("data", &OneByOne(&elements))?;
        fields.end()
    }

    /// Gathers all bytes and checks their number, because other formats do not.
    fn gather<E: serde::ser::Error>(&self, meta: &TensorMeta) -> Result<Vec<u8>, E> {
        let len = self.0.byte_len(meta).ok_or_else(|| E::custom(sizeless(meta)))?;
        let mut bytes = Vec::new();
        let wrong =
            |how| Error::data(format!("expected {len} bytes of a tensor, found {how} bytes"));
        self.0
            .write_blocks(&mut |block| {
                if block.len() > len - bytes.len() {
                    return Err(wrong("more"));
                }
                bytes.extend_from_slice(block);
                Ok(())
            })
            .map_err(|error| error.through(E::custom))?;
        if bytes.len() < len {
            return Err(E::custom(wrong("fewer")));
        }
        Ok(bytes)
    }
}

/// Writes elements one by one.
pub struct OneByOne<'a>(pub &'a Elements);

impl Serialize for OneByOne<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(Some(self.0.plain_len()))?;
        self.0.serialize_plain(&mut seq)?;
        seq.end()
    }
}

/// Writes elements as a typed array without a shape.
pub fn serialize_numbers<S: Serializer>(
    elements: &Elements,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let dtype = elements.dtype();
    if dtype.typed_array_tag().is_none() {
        return OneByOne(elements).serialize(serializer);
    }
    let meta = TensorMeta { dtype, shape: Shape::from([elements.len()]), order: Order::C };
    handoff::offer(Slot::Outgoing(meta, elements.byte_len()), || {
        serializer.serialize_newtype_struct(name::NUMBERS, &NumbersPayload(elements))
    })
}

struct NumbersPayload<'a>(&'a Elements);

impl Serialize for NumbersPayload<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match handoff::take() {
            Slot::Blocks => serializer.serialize_bytes(&self.0.le_bytes()),
            _ => OneByOne(self.0).serialize(serializer),
        }
    }
}
