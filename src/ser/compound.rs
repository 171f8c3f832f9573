//! Writes sequences, tuples, maps and structs element by element.

use serde::Serialize;
use serde::ser;

use super::columns::{self, Columns};
use super::delegate::{elements, fields, unpaired};
use super::look::{self, Leaf, is_record, leaf};
use super::pack::Packing;
use crate::error::{Error, Result};
use crate::io::sink::MAX_ROOM;
use crate::mem::MAX_SHORT;
use crate::value;
use crate::wire::head;
use crate::wire::writer::Writer;

/// The most numbers that are written together.
const RUN: usize = 512;

/// An array or map that is being written.
///
/// Errors are made by functions that get copies of the fields. If they got a reference to the whole, the
/// compiler would have to keep it in memory during a loop over the elements.
pub struct Compound<'a, 'o> {
    pub(super) encoder: &'a mut Writer<'o>,
    /// The number of elements or entries that was announced. `None` for an indefinite length.
    total: Option<usize>,
    /// The number of elements or entries still to come. For an indefinite length it starts with
    /// `usize::MAX`.
    left: usize,
    /// The levels of nesting that this took: two for an enum variant, otherwise one.
    levels: usize,
    /// The enum variant whose content this is, for paths in errors.
    variant: Option<&'static str>,
    /// Whether a key was written whose value is still to come.
    keyed: bool,
}

impl<'a, 'o> Compound<'a, 'o> {
    #[inline]
    pub(super) fn begin(
        encoder: &'a mut Writer<'o>,
        major: u8,
        len: Option<usize>,
    ) -> Result<Self> {
        encoder.enter(1)?;
        encoder.container(major, len)?;
        Ok(Self::unwritten(encoder, len))
    }

    /// An array or map whose head is not written yet.
    #[inline]
    fn unwritten(encoder: &'a mut Writer<'o>, len: Option<usize>) -> Self {
        let left = len.unwrap_or(usize::MAX);
        Self { encoder, total: len, left, levels: 1, variant: None, keyed: false }
    }

    #[inline]
    pub(super) fn begin_variant(
        encoder: &'a mut Writer<'o>,
        variant: &'static str,
        major: u8,
        len: usize,
    ) -> Result<Self> {
        encoder.enter(2)?;
        encoder.head(head::MAP, 1)?;
        encoder.text(variant)?;
        encoder.head(major, len as u64)?;
        Ok(Self { levels: 2, variant: Some(variant), ..Self::unwritten(encoder, Some(len)) })
    }

    /// Counts an element or entry. An error if there are more than the value announced.
    #[inline]
    fn count(&mut self) -> Result<()> {
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(too_many(self.variant, self.total)),
        }
    }

    // Always: 7 % of encoding readings with typed arrays.
    #[inline(always)]
    pub(super) fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        self.count()?;
        match value.serialize(&mut *self.encoder) {
            Ok(()) => Ok(()),
            Err(error) => Err(in_element(error, self.variant, self.total, self.left)),
        }
    }

    /// Writes elements in large steps. `write` gets the sink and a number of elements, at most [`RUN`],
    /// appends up to so many, and returns how many it has appended: fewer if there are no more, and `None`
    /// if the sink only counts bytes.
    // Always: 4 % of encoding short vectors of numbers.
    #[inline(always)]
    pub(super) fn run(
        &mut self,
        mut write: impl FnMut(&mut Writer<'_>, usize) -> Result<Option<usize>>,
    ) -> Result<()> {
        const { assert!(MAX_SHORT * RUN <= MAX_ROOM) };
        while self.left > 0 {
            let step = self.left.min(RUN);
            let Some(done) = write(self.encoder, step)? else { return Ok(()) };
            self.left -= done;
            if done < step {
                return Ok(());
            }
        }
        Ok(())
    }

    // Inlined so that the compiler knows the length of the key.
    // Always: 24 % of appending a tiny message.
    #[inline(always)]
    fn field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<()> {
        self.count()?;
        let result = match leaf(value) {
            Some(leaf) => self.encoder.keyed(key, leaf.plain()),
            None => {
                self.encoder.text(key)?;
                value.serialize(&mut *self.encoder)
            }
        };
        match result {
            Ok(()) => Ok(()),
            Err(error) => Err(in_field(error, self.variant, key)),
        }
    }

    #[inline]
    pub(super) fn finish(self) -> Result<()> {
        if self.keyed || self.left != 0 {
            let left = self.total.map(|_| self.left);
            finish_unusual(self.encoder, self.keyed, left, self.variant)?;
        }
        self.encoder.leave(self.levels)
    }
}

/// Ends an array or map of indefinite length, or one that has another length than was announced.
#[inline(never)]
fn finish_unusual(
    encoder: &mut Writer<'_>,
    keyed: bool,
    left: Option<usize>,
    variant: Option<&'static str>,
) -> Result<()> {
    match left {
        _ if keyed => Err(locate(unpaired(), variant)),
        None => encoder.put([head::BREAK]),
        Some(left) => {
            let error =
                Error::data(format!("`Serialize` wrote {left} fewer elements than it announced"));
            Err(locate(error, variant))
        }
    }
}

#[cold]
#[inline(never)]
fn too_many(variant: Option<&'static str>, total: Option<usize>) -> Error {
    let index = total.unwrap_or(usize::MAX) as u64;
    locate(
        Error::data("`Serialize` wrote more elements than it announced").in_index(index),
        variant,
    )
}

/// Adds the index of an element to its error. `left` no longer counts the element.
#[cold]
#[inline(never)]
fn in_element(
    error: Error,
    variant: Option<&'static str>,
    total: Option<usize>,
    left: usize,
) -> Error {
    let index = (total.unwrap_or(usize::MAX) - left - 1) as u64;
    locate(error.in_index(index), variant)
}

#[cold]
#[inline(never)]
fn in_field(error: Error, variant: Option<&'static str>, key: &'static str) -> Error {
    locate(error.in_field(key), variant)
}

#[cold]
fn locate(error: Error, variant: Option<&'static str>) -> Error {
    match variant {
        Some(variant) => error.in_field(variant),
        None => error,
    }
}

elements! {
    impl[] for Compound<'_, '_>: (), Error;
    SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field
}

fields! {
    impl[] for Compound<'_, '_>: (), Error;
    SerializeStruct, SerializeStructVariant
}

impl ser::SerializeMap for Compound<'_, '_> {
    type Ok = ();
    type Error = Error;

    #[inline]
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<()> {
        if self.keyed {
            return Err(locate(unpaired(), self.variant));
        }
        self.count()?;
        self.keyed = true;
        key.serialize(&mut *self.encoder)
    }

    #[inline]
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        if !self.keyed {
            return Err(locate(unpaired(), self.variant));
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
            Err(error) => Err(locate(error.in_field(value::key_text(key)), self.variant)),
        }
    }

    #[inline]
    fn end(self) -> Result<()> {
        self.finish()
    }
}

/// A sequence that is being written, as a typed array if possible.
///
/// Functions that are not inlined get its parts by value and return them, so that the parts can stay in
/// registers during a loop over the elements.
pub struct Sequence<'a, 'o> {
    compound: Compound<'a, 'o>,
    mode: Mode,
    /// The typed array whose elements are being collected, in [`Mode::Packing`]. Its buffer was lent by
    /// the sink.
    packing: Option<Packing>,
    /// The columns that are being collected, in [`Mode::Columns`].
    columns: Option<Box<Columns>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Plain,
    /// Nothing is written yet. The first element decides whether to pack, or to write columns.
    Undecided,
    Packing,
    Columns,
    /// The mode after an error.
    Failed,
}

/// Returns the lent buffer, also if the value's own code stops half-way.
impl Drop for Sequence<'_, '_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(packing) = self.packing.take() {
            abandon(self.compound.encoder, packing);
        }
    }
}

#[cold]
#[inline(never)]
fn abandon(encoder: &mut Writer<'_>, packing: Packing) {
    // An error occurred already, and this writes nothing that could fail.
    let _ = packing.abandon(encoder);
}

impl<'a, 'o> Sequence<'a, 'o> {
    #[inline]
    pub(super) fn begin(encoder: &'a mut Writer<'o>, len: Option<usize>) -> Result<Self> {
        let may_pack = encoder.context.options.typed_arrays && len.is_some();
        let (compound, mode) = if may_pack || columns::are_possible(encoder, len) {
            (Compound::unwritten(encoder, len), Mode::Undecided)
        } else {
            (Compound::begin(encoder, head::ARRAY, len)?, Mode::Plain)
        };
        Ok(Self { compound, mode, packing: None, columns: None })
    }
}

/// The parts of a [`Sequence`] that an element can change.
struct Parts {
    mode: Mode,
    packing: Option<Packing>,
    columns: Option<Box<Columns>>,
    total: Option<usize>,
    left: usize,
}

/// Writes an element in a mode other than [`Mode::Plain`], and changes the mode if needed.
#[inline(never)]
fn packed<T: Serialize + ?Sized>(
    encoder: &mut Writer<'_>,
    mut parts: Parts,
    value: &T,
) -> (Parts, Result<()>) {
    let mode = std::mem::replace(&mut parts.mode, Mode::Failed);
    let result = decide(encoder, mode, &mut parts, value);
    (parts, result)
}

fn decide<T: Serialize + ?Sized>(
    encoder: &mut Writer<'_>,
    mode: Mode,
    parts: &mut Parts,
    value: &T,
) -> Result<()> {
    let mut compound = match (mode, parts.packing.take(), parts.total) {
        (Mode::Undecided, _, total)
            if columns::are_possible(encoder, total) && is_record(value) =>
        {
            if let Some(columns) =
                Columns::new(encoder.context.options, total).first(encoder, &value)?
            {
                parts.columns = Some(Box::new(columns));
                parts.mode = Mode::Columns;
                return Ok(());
            }
            Compound::begin(encoder, head::ARRAY, total)?
        }
        (Mode::Undecided, _, None) => Compound::begin(encoder, head::ARRAY, None)?,
        (Mode::Undecided, _, Some(len)) => match look::number(value) {
            Some(number)
                if encoder.context.options.typed_arrays && number.kind().worth_packing(len) =>
            {
                let mut packing = Packing::begin(encoder, number.kind(), len)?;
                packing.push(encoder, number)?;
                parts.packing = Some(packing);
                parts.mode = Mode::Packing;
                return Ok(());
            }
            _ => Compound::begin(encoder, head::ARRAY, Some(len))?,
        },
        (Mode::Packing, Some(mut packing), _) => {
            if let Some(number) = look::number(value)
                && packing.push(encoder, number)?
            {
                parts.packing = Some(packing);
                parts.mode = Mode::Packing;
                return Ok(());
            }
            packing.unpack(encoder)?
        }
        _ => return Err(failed()),
    };
    parts.mode = Mode::Plain;
    let result = compound.element(value);
    parts.left = compound.left;
    result
}

impl ser::SerializeSeq for Sequence<'_, '_> {
    type Ok = ();
    type Error = Error;

    #[inline]
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        if self.mode == Mode::Plain {
            return self.compound.element(value);
        }
        if let Some(Leaf::Number(number)) = leaf(value)
            && let Some(packing) = &mut self.packing
            && packing.push_here(number)
        {
            return Ok(());
        }
        if let Some(columns) = &mut self.columns {
            return columns.push(self.compound.encoder, value);
        }
        let (total, left) = (self.compound.total, self.compound.left);
        let (mode, packing) = (self.mode, self.packing.take());
        let parts = Parts { mode, packing, columns: None, total, left };
        let (parts, result) = packed(self.compound.encoder, parts, value);
        self.mode = parts.mode;
        self.packing = parts.packing;
        self.columns = parts.columns;
        self.compound.left = parts.left;
        result
    }

    #[inline]
    fn end(mut self) -> Result<()> {
        let (packing, columns) = (self.packing.take(), self.columns.take());
        let Compound { total, left, levels, variant, keyed, .. } = self.compound;
        let encoder = &mut *self.compound.encoder;
        match self.mode {
            Mode::Plain => Compound { encoder, total, left, levels, variant, keyed }.finish(),
            mode => end_packed(encoder, Parts { mode, packing, columns, total, left }),
        }
    }
}

#[inline(never)]
fn end_packed(encoder: &mut Writer<'_>, parts: Parts) -> Result<()> {
    if let Some(columns) = parts.columns {
        return columns.finish(encoder);
    }
    match (parts.mode, parts.packing) {
        (Mode::Packing, Some(packing)) if packing.is_full() => packing.finish(encoder),
        (Mode::Packing, Some(packing)) => packing.unpack(encoder)?.finish(),
        (Mode::Undecided, _) => Compound::begin(encoder, head::ARRAY, parts.total)?.finish(),
        _ => Err(failed()),
    }
}

#[cold]
fn failed() -> Error {
    Error::data(
        "an earlier element could not be written, and `Serialize` went on; it must return that error",
    )
}
