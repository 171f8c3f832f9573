//! Passes a tensor to this crate's visitor through serde's calls alone.
//!
//! Most tensors pass through the slot of [`crate::handoff`], which takes longer than copying a small
//! tensor. A tensor of the [usual form](CompactMeta) instead looks like a variant of an enum. The variant's index is
//! [`CompactMeta::head`], and its content are [`CompactMeta::dims`] and the payload.

use serde::de::value::{BorrowedBytesDeserializer, U16Deserializer, U128Deserializer};
use serde::de::{self, DeserializeSeed, EnumAccess, SeqAccess, VariantAccess, Visitor};

use crate::error::{Error, Result};
use crate::meta::CompactMeta;

pub struct WholeTensor<'de> {
    meta: CompactMeta,
    payload: &'de [u8],
    /// The number of elements that were passed on.
    passed: u8,
}

impl<'de> WholeTensor<'de> {
    #[inline]
    pub fn new(meta: CompactMeta, payload: &'de [u8]) -> Self {
        Self { meta, payload, passed: 0 }
    }
}

impl<'de> EnumAccess<'de> for WholeTensor<'de> {
    type Error = Error;
    type Variant = Self;

    #[inline]
    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self)> {
        let head = seed.deserialize(U16Deserializer::<Error>::new(self.meta.head))?;
        Ok((head, self))
    }
}

impl<'de> VariantAccess<'de> for WholeTensor<'de> {
    type Error = Error;

    #[inline]
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

    #[inline]
    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>> {
        self.passed += 1;
        match self.passed {
            1 => seed.deserialize(U128Deserializer::<Error>::new(self.meta.dims)).map(Some),
            2 => seed.deserialize(BorrowedBytesDeserializer::<Error>::new(self.payload)).map(Some),
            _ => {
                self.passed = 2;
                Ok(None)
            }
        }
    }

    #[inline]
    fn size_hint(&self) -> Option<usize> {
        Some(2 - usize::from(self.passed))
    }
}

#[cold]
fn only_a_tensor() -> Error {
    de::Error::custom("a tensor is only given to the visitor of this crate")
}
