//! Passes a tensor to this crate's visitor through serde's calls alone.
//!
//! Most tensors pass through the slot of [`crate::handoff`], which takes longer than copying a small
//! tensor. A tensor of the most common form instead looks like a variant of an enum: the variant's
//! index is the tag of the typed array, and its content are the dimensions and then the payload.

use serde::de::value::{BorrowedBytesDeserializer, U8Deserializer, U64Deserializer};
use serde::de::{self, DeserializeSeed, EnumAccess, SeqAccess, VariantAccess, Visitor};

use crate::error::{Error, Result};
use crate::wire::tensor::Common;

pub struct WholeTensor<'de> {
    tensor: Common,
    payload: &'de [u8],
    /// The number of dimensions that were passed on.
    at: usize,
    is_done: bool,
}

impl<'de> WholeTensor<'de> {
    #[inline(always)]
    pub fn new(tensor: Common, payload: &'de [u8]) -> Self {
        Self { tensor, payload, at: 0, is_done: false }
    }
}

impl<'de> EnumAccess<'de> for WholeTensor<'de> {
    type Error = Error;
    type Variant = Self;

    #[inline(always)]
    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self)> {
        let tag = seed.deserialize(U8Deserializer::<Error>::new(self.tensor.tag))?;
        Ok((tag, self))
    }
}

impl<'de> VariantAccess<'de> for WholeTensor<'de> {
    type Error = Error;

    #[inline(always)]
    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value> {
        visitor.visit_seq(self)
    }

    fn unit_variant(self) -> Result<()> {
        Err(only_a_tensor())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, _: T) -> Result<T::Value> {
        Err(only_a_tensor())
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], _: V) -> Result<V::Value> {
        Err(only_a_tensor())
    }
}

impl<'de> SeqAccess<'de> for WholeTensor<'de> {
    type Error = Error;

    #[inline(always)]
    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>> {
        if self.at < self.tensor.rank
            && let Some(&dim) = self.tensor.dims.get(self.at)
        {
            self.at += 1;
            return seed.deserialize(U64Deserializer::<Error>::new(dim as u64)).map(Some);
        }
        if std::mem::replace(&mut self.is_done, true) {
            return Ok(None);
        }
        seed.deserialize(BorrowedBytesDeserializer::<Error>::new(self.payload)).map(Some)
    }

    #[inline(always)]
    fn size_hint(&self) -> Option<usize> {
        Some(self.tensor.rank - self.at + usize::from(!self.is_done))
    }
}

#[cold]
fn only_a_tensor() -> Error {
    de::Error::custom("a tensor is only given to the visitor of this crate")
}
