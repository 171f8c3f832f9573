//! Values to be written to another file, unchanged or changed. A tensor is read only when it is written.

use serde::ser::{Error as _, Serialize, SerializeMap, SerializeSeq, Serializer};
use tenarc::archive::Segment;
use tenarc::tensor::Deferred;
use tenarc::value::{Numbers, RawValue};
use tenarc::{DType, DynTensor, Value};

use crate::change::Change;
use crate::document::Section;
use crate::failure::{Failure, Result};
use crate::fields;
use crate::input::Source;
use crate::node::{Form, Key, Kind, Node, Payload};

/// A value to be written.
pub enum Written<'a> {
    /// A node of the input, unchanged.
    Same(&'a Section<'a>, &'a Node),
    /// A node of the input, with rows in place of columns.
    Plain(&'a Section<'a>, &'a Node),
    /// A tensor of the input, with changed elements.
    Changed(&'a Section<'a>, &'a Node, Change<'a>),
    Array(Vec<Written<'a>>),
    Map(Vec<(WrittenKey<'a>, Written<'a>)>),
    Value(Value),
}

/// A map key.
pub struct WrittenKey<'a> {
    /// The encoded key. `None` for a new key, whose text is `step`.
    item: Option<&'a [u8]>,
    /// The key as a step of a path.
    pub step: String,
}

impl<'a> WrittenKey<'a> {
    pub fn of(section: &'a Section<'a>, key: &Key) -> Self {
        Self { item: Some(section.item(&key.range)), step: key.step.to_string() }
    }

    pub fn text(text: &str) -> Self {
        Self { item: None, step: text.to_owned() }
    }
}

impl<'a> Written<'a> {
    pub fn whole(section: &'a Section<'a>) -> Self {
        Self::Same(section, &section.root)
    }

    /// Returns the failure behind an error that occurred while this value was written to the output of this name.
    pub fn failure(&self, error: tenarc::Error, output: &str) -> Failure {
        self.fault().unwrap_or_else(|| Failure::while_writing(error, output))
    }

    /// Returns the failure that a section kept while the value was written. An error that passes through serde keeps
    /// only its text.
    fn fault(&self) -> Option<Failure> {
        match self {
            Self::Same(section, _) | Self::Plain(section, _) | Self::Changed(section, ..) => {
                section.fault.take().map(|failure| *failure)
            }
            Self::Array(items) => items.iter().find_map(Self::fault),
            Self::Map(entries) => entries.iter().find_map(|(_, value)| value.fault()),
            Self::Value(_) => None,
        }
    }

    /// Returns the whole value with rows in place of columns, for formats that have no columns.
    pub fn plain(section: &'a Section<'a>) -> Self {
        Self::Plain(section, &section.root)
    }
}

impl Serialize for Written<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Same(section, node) => same(section, node, false, serializer),
            Self::Plain(section, node) => same(section, node, true, serializer),
            Self::Changed(section, node, change) => changed(section, node, change, serializer),
            Self::Array(items) => serializer.collect_seq(items),
            Self::Map(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (key, value) in entries {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
            Self::Value(value) => value.serialize(serializer),
        }
    }
}

impl Serialize for WrittenKey<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.item {
            Some(item) => leaf(item, serializer),
            None => serializer.serialize_str(&self.step),
        }
    }
}

/// Creates an error of serde for a failure. The section keeps the failure.
pub fn failed<E: serde::ser::Error>(section: &Section<'_>, failure: impl Into<Failure>) -> E {
    let failure = failure.into();
    let error = E::custom(&failure);
    section.fault.set(Some(Box::new(failure)));
    error
}

/// Serializes an encoded item without payloads, unchanged.
fn leaf<S: Serializer>(item: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    RawValue::from_bytes(item).map_err(S::Error::custom)?.serialize(serializer)
}

/// Serializes an item of a segment as it is stored: columns stay columns, and buffers are never in memory as a whole.
fn stored<S: Serializer>(
    section: &Section<'_>,
    segment: &Segment<'_, Source>,
    node: &Node,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let stored = segment.stored(node.range.clone());
    stored.map_err(|error| failed::<S::Error>(section, error))?.serialize(serializer)
}

fn same<S: Serializer>(
    section: &Section<'_>,
    node: &Node,
    plain: bool,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let part = if plain { Written::Plain } else { Written::Same };
    match &node.kind {
        Kind::Leaf => leaf(section.item(&node.range), serializer),
        Kind::Columns(columns) => {
            if let Some(segment) = section.segment().filter(|_| !plain) {
                return stored(section, segment, node, serializer);
            }
            let table =
                section.table(columns).map_err(|error| failed::<S::Error>(section, error))?;
            fields::serialize_rows(&table, serializer, |error| failed::<S::Error>(section, error))
        }
        Kind::Array(items) if is_numeric(section, items) => {
            // The items are serialized as decoded numbers, so that an archive can store them as one block.
            let value: Value =
                tenarc::from_slice(section.item(&node.range)).map_err(S::Error::custom)?;
            value.serialize(serializer)
        }
        Kind::Array(items) => {
            let mut seq = serializer.serialize_seq(Some(items.len()))?;
            for item in items {
                seq.serialize_element(&part(section, item))?;
            }
            seq.end()
        }
        Kind::Map(entries) => {
            let mut map = serializer.serialize_map(Some(entries.len()))?;
            for (key, value) in entries {
                let key = WrittenKey::of(section, key);
                map.serialize_entry(&key, &part(section, value))?;
            }
            map.end()
        }
        Kind::Tag(_, inner) if !inner.holds_payload() => {
            leaf(section.item(&node.range), serializer)
        }
        Kind::Tag(..) => match section.segment() {
            Some(segment) if !plain => stored(section, segment, node, serializer),
            _ => value(section, node)
                .map_err(|error| failed::<S::Error>(section, error))?
                .serialize(serializer),
        },
        Kind::Payload(payload) if section.compressed(payload).is_some() && !plain => {
            match section.segment() {
                Some(segment) => stored(section, segment, node, serializer),
                None => Err(S::Error::custom("only archives have compressed tensors")),
            }
        }
        Kind::Payload(payload) if payload.form == Form::Tensor => {
            let tensor = Deferred::from_blocks(
                payload.dtype.clone(),
                &payload.shape,
                payload.order,
                |put| {
                    let mut put = |block: &[u8]| Ok(put(block)?);
                    section.blocks(node, &mut put).map_err(Failure::into_library)
                },
            );
            let len = usize::try_from(payload.byte_len).map_err(S::Error::custom)?;
            tenarc::tensor::serialize(&tensor.with_byte_len(len), serializer)
        }
        Kind::Payload(payload) => match section.segment() {
            Some(segment) if payload.buffer.is_some() => stored(section, segment, node, serializer),
            _ => value(section, node)
                .map_err(|error| failed::<S::Error>(section, error))?
                .serialize(serializer),
        },
    }
}

fn changed<S: Serializer>(
    section: &Section<'_>,
    node: &Node,
    change: &Change<'_>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let expected = || S::Error::custom("expected a tensor");
    let payload = node.payload().ok_or_else(expected)?;
    change.check(&payload.dtype).map_err(S::Error::custom)?;
    let dtype = change.dtype(&payload.dtype);
    let blocks = |put: &mut dyn FnMut(&[u8]) -> tenarc::Result<()>| {
        let mut changing = change.start(&payload.dtype).map_err(Failure::into_library)?;
        let mut each = |block: &[u8]| Ok(put(&changing.block(block)?)?);
        section.blocks(node, &mut each).map_err(Failure::into_library)
    };
    if payload.form == Form::Tensor {
        let shape = &payload.shape;
        let tensor = Deferred::from_blocks(dtype.clone(), shape, payload.order, blocks);
        return tenarc::tensor::serialize(&tensor, serializer);
    }
    let mut bytes = Vec::new();
    blocks(&mut |block| {
        bytes.extend_from_slice(block);
        Ok(())
    })
    .map_err(|error| failed::<S::Error>(section, error))?;
    let numbers = numbers(dtype, &bytes).ok_or_else(expected)?;
    numbers.serialize(serializer)
}

/// Returns whether an array outside of archives has at least eight items that are all integers, or floats of 32 or 64
/// bits.
pub fn is_numeric(section: &Section<'_>, items: &[Node]) -> bool {
    section.segment().is_none()
        && items.len() >= 8
        && items.iter().all(|item| {
            let initial = section.item(&item.range).first().copied().unwrap_or(0xff);
            matches!(item.kind, Kind::Leaf) && matches!(initial, 0x00..0x40 | 0xfa | 0xfb)
        })
}

/// Reads a node, with its tensors, into memory.
///
/// # Errors
/// If the node cannot be read.
pub fn value(section: &Section<'_>, node: &Node) -> Result<Value> {
    Ok(match &node.kind {
        Kind::Leaf => tenarc::from_slice(section.item(&node.range))?,
        Kind::Columns(columns) => {
            let table = section.table(columns)?;
            let rows = fields::rows(&table).collect::<tenarc::Result<_>>()?;
            Value::Array(rows)
        }
        Kind::Array(items) => {
            let items = items.iter().map(|item| value(section, item));
            Value::Array(items.collect::<Result<_>>()?)
        }
        Kind::Map(entries) => {
            let entries = entries.iter().map(|(key, inner)| {
                let key = tenarc::from_slice(section.item(&key.range))?;
                Ok((key, value(section, inner)?))
            });
            Value::Map(entries.collect::<Result<_>>()?)
        }
        Kind::Tag(tag, inner) => Value::Tag(*tag, Box::new(value(section, inner)?)),
        Kind::Payload(payload) => {
            let bytes = section.payload_bytes(node)?;
            payload_value(payload, bytes)?
        }
    })
}

fn payload_value(payload: &Payload, bytes: Vec<u8>) -> Result<Value> {
    let Payload { form, dtype, shape, order, .. } = payload;
    Ok(match form {
        Form::Bytes => Value::Bytes(bytes),
        Form::Numbers => match numbers(dtype, &bytes) {
            Some(numbers) => Value::Numbers(Box::new(numbers)),
            // `Numbers` lacks this dtype, so the sequence becomes a tensor.
            None => Value::Tensor(Box::new(DynTensor::new(dtype.clone(), shape, *order, bytes)?)),
        },
        Form::Tensor => {
            Value::Tensor(Box::new(DynTensor::new(dtype.clone(), shape, *order, bytes)?))
        }
    })
}

/// Decodes bytes to a sequence of numbers. Returns `None` if [`Numbers`] lacks the dtype.
fn numbers(dtype: &DType, bytes: &[u8]) -> Option<Numbers> {
    macro_rules! of {
        ($type:ty) => {
            Numbers::from(
                bytes
                    .as_chunks()
                    .0
                    .iter()
                    .map(|&bytes| <$type>::from_le_bytes(bytes))
                    .collect::<Vec<_>>(),
            )
        };
    }
    Some(match dtype {
        DType::U8 => of!(u8),
        DType::U16 => of!(u16),
        DType::U32 => of!(u32),
        DType::U64 => of!(u64),
        DType::I8 => of!(i8),
        DType::I16 => of!(i16),
        DType::I32 => of!(i32),
        DType::I64 => of!(i64),
        DType::F16 => of!(half::f16),
        DType::F32 => of!(f32),
        DType::F64 => of!(f64),
        _ => return None,
    })
}
