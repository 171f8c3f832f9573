//! Writes sequences, tuples, maps and structs element by element.

use serde::Serialize;
use serde::ser;

use super::encoder::Encoder;
use super::pack::{Grab, Kind, Packing};
use crate::error::{Error, Result};
use crate::value;
use crate::wire::apart::Target;
use crate::wire::head;

/// An array or map that is being written.
pub struct Compound<'a, O> {
    pub(super) encoder: &'a mut Encoder<O>,
    /// The number of elements or entries still to come. `None` for an indefinite length.
    left: Option<usize>,
    index: u64,
    /// The levels of nesting that this took: two for an enum variant, otherwise one.
    levels: usize,
    /// The enum variant whose content this is, for paths in errors.
    variant: Option<&'static str>,
    /// Whether a key was written whose value is still to come.
    keyed: bool,
}

impl<'a, O: Target> Compound<'a, O> {
    #[inline]
    pub(super) fn begin(
        encoder: &'a mut Encoder<O>,
        major: u8,
        len: Option<usize>,
    ) -> Result<Self> {
        encoder.enter(1)?;
        encoder.sink.container(major, len)?;
        Ok(Self { encoder, left: len, index: 0, levels: 1, variant: None, keyed: false })
    }

    #[inline]
    pub(super) fn begin_variant(
        encoder: &'a mut Encoder<O>,
        variant: &'static str,
        major: u8,
        len: usize,
    ) -> Result<Self> {
        encoder.enter(2)?;
        encoder.sink.head(head::MAP, 1)?;
        encoder.sink.text(variant)?;
        encoder.sink.head(major, len as u64)?;
        Ok(Self {
            encoder,
            left: Some(len),
            index: 0,
            levels: 2,
            variant: Some(variant),
            keyed: false,
        })
    }

    /// Counts an element or entry. An error if there are more than the value announced.
    #[inline(always)]
    fn count(&mut self) -> Result<()> {
        match &mut self.left {
            Some(0) => Err(self.too_many()),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    #[cold]
    fn too_many(&self) -> Error {
        self.locate(Error::data("more elements than were announced").in_index(self.index))
    }

    #[cold]
    fn locate(&self, error: Error) -> Error {
        match self.variant {
            Some(variant) => error.in_field(variant),
            None => error,
        }
    }

    #[inline]
    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        self.count()?;
        if let Err(error) = value.serialize(&mut *self.encoder) {
            return Err(self.locate(error.in_index(self.index)));
        }
        self.index += 1;
        Ok(())
    }

    // Inlined so that the compiler knows the length of the key.
    #[inline(always)]
    fn field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<()> {
        self.count()?;
        self.encoder.sink.text(key)?;
        match value.serialize(&mut *self.encoder) {
            Ok(()) => Ok(()),
            Err(error) => Err(self.locate(error.in_field(key))),
        }
    }

    #[inline]
    fn finish(self) -> Result<()> {
        if self.keyed {
            return Err(self.locate(unpaired()));
        }
        match self.left {
            Some(0) => {}
            Some(left) => {
                let error = Error::data(format!("{left} fewer elements than were announced"));
                return Err(self.locate(error));
            }
            None => self.encoder.sink.put([head::BREAK])?,
        }
        self.encoder.leave(self.levels)
    }
}

#[cold]
fn unpaired() -> Error {
    Error::data("a map needs a value for each key, and a key for each value")
}

macro_rules! elements {
    ($($trait:ident $method:ident),*) => {$(
        impl<O: Target> ser::$trait for Compound<'_, O> {
            type Ok = ();
            type Error = Error;

            #[inline]
            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
                self.element(value)
            }

            #[inline]
            fn end(self) -> Result<()> {
                self.finish()
            }
        }
    )*};
}

elements!(
    SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field
);

macro_rules! fields {
    ($($trait:ident),*) => {$(
        impl<O: Target> ser::$trait for Compound<'_, O> {
            type Ok = ();
            type Error = Error;

            #[inline(always)]
            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                value: &T,
            ) -> Result<()> {
                self.field(key, value)
            }

            #[inline]
            fn end(self) -> Result<()> {
                self.finish()
            }
        }
    )*};
}

fields!(SerializeStruct, SerializeStructVariant);

impl<O: Target> ser::SerializeMap for Compound<'_, O> {
    type Ok = ();
    type Error = Error;

    #[inline]
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<()> {
        if self.keyed {
            return Err(self.locate(unpaired()));
        }
        self.count()?;
        self.keyed = true;
        key.serialize(&mut *self.encoder)
    }

    #[inline]
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        if !self.keyed {
            return Err(self.locate(unpaired()));
        }
        self.keyed = false;
        value.serialize(&mut *self.encoder)
    }

    #[inline]
    fn serialize_entry<K: Serialize + ?Sized, V: Serialize + ?Sized>(
        &mut self,
        key: &K,
        value: &V,
    ) -> Result<()> {
        self.serialize_key(key)?;
        match self.serialize_value(value) {
            Ok(()) => Ok(()),
            Err(error) => Err(self.locate(error.in_field(value::key_text(key)))),
        }
    }

    #[inline]
    fn end(self) -> Result<()> {
        self.finish()
    }
}

/// A sequence that is being written, as a typed array if possible.
pub struct Sequence<'a, O: Target>(State<'a, O>);

enum State<'a, O: Target> {
    Plain(Compound<'a, O>),
    /// Nothing is written yet. The first element decides whether to pack.
    Undecided {
        encoder: &'a mut Encoder<O>,
        len: usize,
    },
    Packing(Gathering<'a, O>),
    /// The state during a change of state. It remains only after an error.
    Failed,
}

/// A typed array whose elements are being collected in a buffer that the sink has lent. Dropping this
/// returns the buffer, also if the value's own code stops half-way.
struct Gathering<'a, O: Target>(Option<(&'a mut Encoder<O>, Packing)>);

impl<O: Target> Drop for Gathering<'_, O> {
    fn drop(&mut self) {
        if let Some((encoder, packing)) = self.0.take() {
            // An error occurred already, and this writes nothing that could fail.
            let _ = packing.abandon(encoder);
        }
    }
}

impl<'a, O: Target> Sequence<'a, O> {
    #[inline]
    pub(super) fn begin(encoder: &'a mut Encoder<O>, len: Option<usize>) -> Result<Self> {
        match len {
            Some(len) if encoder.options.typed_arrays && Kind::may_pack(len) => {
                Ok(Self(State::Undecided { encoder, len }))
            }
            _ => Self::plain(encoder, len),
        }
    }

    #[inline]
    pub(super) fn plain(encoder: &'a mut Encoder<O>, len: Option<usize>) -> Result<Self> {
        Compound::begin(encoder, head::ARRAY, len).map(|compound| Self(State::Plain(compound)))
    }

    /// Writes an element in a state other than [`State::Plain`], and changes the state if needed.
    fn packed<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        match std::mem::replace(&mut self.0, State::Failed) {
            State::Undecided { encoder, len } => match value.serialize(Grab) {
                Ok(number) if number.kind().worth_packing(len) => {
                    let mut packing = Packing::begin(encoder, number.kind(), len)?;
                    packing.push(encoder, number)?;
                    self.0 = State::Packing(Gathering(Some((encoder, packing))));
                    return Ok(());
                }
                _ => *self = Self::plain(encoder, Some(len))?,
            },
            State::Packing(mut gathering) => {
                if let Some((encoder, packing)) = gathering.0.take() {
                    *self = packing.unpack(encoder)?;
                }
            }
            other => self.0 = other,
        }
        ser::SerializeSeq::serialize_element(self, value)
    }
}

impl<O: Target> ser::SerializeSeq for Sequence<'_, O> {
    type Ok = ();
    type Error = Error;

    #[inline]
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        match &mut self.0 {
            State::Plain(compound) => compound.element(value),
            State::Packing(gathering) => {
                if let Ok(number) = value.serialize(Grab)
                    && let Some((encoder, packing)) = &mut gathering.0
                    && packing.push(encoder, number)?
                {
                    return Ok(());
                }
                self.packed(value)
            }
            State::Undecided { .. } => self.packed(value),
            State::Failed => Err(failed()),
        }
    }

    #[inline]
    fn end(self) -> Result<()> {
        match self.0 {
            State::Plain(compound) => compound.finish(),
            State::Packing(mut gathering) => match gathering.0.take() {
                Some((encoder, packing)) if packing.is_full() => packing.finish(encoder),
                Some((encoder, packing)) => ser::SerializeSeq::end(packing.unpack(encoder)?),
                None => Err(failed()),
            },
            State::Undecided { encoder, len } => {
                ser::SerializeSeq::end(Self::plain(encoder, Some(len))?)
            }
            State::Failed => Err(failed()),
        }
    }
}

#[cold]
fn failed() -> Error {
    Error::data("an earlier element failed")
}
