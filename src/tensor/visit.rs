//! Deserializes tensors.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{
    Deserializer, EnumAccess, Error as _, MapAccess, SeqAccess, Unexpected, VariantAccess, Visitor,
};

use super::fields::{Fields, Make};
use super::raw_tensor::{CompactTensor, Data};
use super::{FromTensor, RawTensor, TensorMeta};
use crate::error::Result;
use crate::handoff::{self, Held, Slot, name};
use crate::meta::CompactMeta;

pub fn deserialize<'de, T: FromTensor<'de>, D: Deserializer<'de>>(
    deserializer: D,
    cast: bool,
) -> Result<T, D::Error> {
    let visitor = TensorVisitor { cast, target: PhantomData };
    deserializer.deserialize_newtype_struct(name::TENSOR, visitor)
}

struct TensorVisitor<T> {
    cast: bool,
    target: PhantomData<T>,
}

impl<'de, T: FromTensor<'de>> TensorVisitor<T> {
    fn make<E: serde::de::Error>(
        self,
        meta: TensorMeta,
        stated: bool,
        data: Data<'de, '_>,
    ) -> Result<T, E> {
        let tensor = RawTensor { meta, stated, cast: self.cast, data, shared: None };
        T::from_tensor(tensor).map_err(|error| error.through(E::custom))
    }

    /// Makes the tensor. This crate's deserializer has passed the metadata before the bytes.
    fn announced<E: serde::de::Error>(
        self,
        unexpected: Unexpected<'_>,
        data: Option<Data<'de, '_>>,
    ) -> Result<T, E> {
        match (handoff::take(), data) {
            (Slot::Incoming { meta, stated, held: Held::Nothing }, Some(data)) => {
                self.make(meta, stated, data)
            }
            (Slot::Incoming { meta, stated, held: Held::Shared(shared) }, Some(data)) => {
                let shared = Some(shared);
                let tensor = RawTensor { meta, stated, cast: self.cast, data, shared };
                T::from_tensor(tensor).map_err(|error| error.through(E::custom))
            }
            (Slot::Incoming { meta, stated, held: Held::Elements(elements) }, None) => {
                self.make(meta, stated, Data::Owned(*elements))
            }
            _ => Err(E::invalid_type(unexpected, &self)),
        }
    }
}

impl<'de, T: FromTensor<'de>> Visitor<'de> for TensorVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a tensor")
    }

    #[inline]
    fn visit_borrowed_bytes<E: serde::de::Error>(self, bytes: &'de [u8]) -> Result<T, E> {
        self.announced(Unexpected::Bytes(bytes), Some(Data::Borrowed(bytes)))
    }

    #[inline]
    fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<T, E> {
        self.announced(Unexpected::Bytes(bytes), Some(Data::Copied(bytes)))
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<T, E> {
        self.announced(Unexpected::Unit, None)
    }

    /// Called by this crate's deserializer for tensors of the usual form: the variant is [`CompactMeta::head`], and its
    /// content are [`CompactMeta::dims`] and the payload.
    #[inline]
    fn visit_enum<E: EnumAccess<'de>>(self, data: E) -> Result<T, E::Error> {
        let (head, content) = data.variant::<u16>()?;
        let (dims, payload) = content.tuple_variant(2, WholeVisitor)?;
        let meta = CompactMeta { head, dims };
        // Another format may call this too, so everything is checked.
        match CompactTensor::new(meta, payload, self.cast) {
            Some(block) => T::from_block(block).map_err(|error| error.through(E::Error::custom)),
            None => Err(E::Error::invalid_length(payload.len(), &self)),
        }
    }

    /// Called by other formats, and by serde's own buffer.
    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        self.made_by(|make| Fields(make).visit_newtype_struct(deserializer))
    }

    fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<T, M::Error> {
        self.made_by(|make| Fields(make).visit_map(map))
    }

    fn visit_seq<S: SeqAccess<'de>>(self, seq: S) -> Result<T, S::Error> {
        self.made_by(|make| Fields(make).visit_seq(seq))
    }
}

impl<'de, T: FromTensor<'de>> TensorVisitor<T> {
    /// Makes the array from the tensor that `read` passes on.
    fn made_by<E: serde::de::Error>(
        self,
        read: impl FnOnce(&mut Make<'_, 'de>) -> Result<(), E>,
    ) -> Result<T, E> {
        let mut made = None;
        read(&mut |tensor| {
            made = Some(T::from_tensor(RawTensor { cast: self.cast, ..tensor })?);
            Ok(())
        })?;
        made.ok_or_else(|| E::missing_field("data"))
    }
}

/// Reads dimensions and then a payload.
struct WholeVisitor;

impl<'de> Visitor<'de> for WholeVisitor {
    type Value = (u128, &'de [u8]);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the dimensions and the payload of a tensor")
    }

    #[inline]
    fn visit_seq<S: SeqAccess<'de>>(self, mut seq: S) -> Result<Self::Value, S::Error> {
        match (seq.next_element()?, seq.next_element()?) {
            (Some(dims), Some(payload)) => Ok((dims, payload)),
            _ => Err(S::Error::invalid_length(0, &self)),
        }
    }
}
