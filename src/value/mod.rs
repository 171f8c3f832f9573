//! [`Value`]: any CBOR value, for documents whose types are not known.

mod columns;
mod de;
mod from;
mod index;
mod kinds;
mod numbers;
mod offer;
mod ser;
mod show;

use std::fmt;

use serde::de::{Deserialize, Deserializer, Unexpected, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

pub use crate::mem::RawValue;
pub(crate) use columns::read_row;
pub use de::from_value;
pub use index::Index;
pub use numbers::Numbers;
pub(crate) use offer::{encode, offer};
pub use ser::to_value;
pub(crate) use ser::{key_text, tensor_of};

use crate::budget::Growth;
use crate::elements::Elements;
use crate::error::Result;
use crate::handoff::{self, Slot, name};
use crate::io::source::SourceBytes;
use crate::tensor::DynTensor;
use crate::wire::head;
use crate::wire::number::Numeric;
use crate::wire::reader::{Left, Reader, unexpected_break};
use crate::wire::strings::Text;
use crate::wire::tag;
use crate::wire::tensor::Kind;

/// Any CBOR item, tensors included.
///
/// Maps keep the order of their entries, and entries with equal keys. Unknown tags are kept. The encoded length of
/// a number is not kept: for example, a half-precision float becomes [`F32`](Self::F32). [`RawValue`] keeps the
/// exact bytes.
///
/// The interface is that of `serde_json::Value`: [`is_map`](Self::is_map), [`as_str`](Self::as_str) and others tell
/// what a value is. Parts are found by key or position with [`get`](Self::get) or `value["layers"][0]`, which is
/// null if there is no such part, and with [JSON Pointers](Self::pointer). `From` makes values of numbers, texts,
/// tensors, and collections of these.
///
/// ```
/// use tenarc::{DType, DynTensor, Value};
/// use tenarc::tensor::Order;
///
/// let bytes = tenarc::to_vec(&("x", [1u8, 2]))?;
/// let value: Value = tenarc::from_slice(&bytes)?;
/// assert_eq!(value.pointer("/1/0"), Some(&Value::Integer(1)));
/// assert_eq!((value[0].as_str(), value[1][1].as_i64()), (Some("x"), Some(2)));
/// assert!(value[2]["no such key"].is_null());
///
/// let mut run = Value::from_iter([("loss", Value::from(0.25)), ("tags", vec!["a", "b"].into())]);
/// run["step"] = 7.into();
/// run["mask"] = DynTensor::new(DType::U8, &[2], Order::C, vec![0, 1])?.into();
/// if let Some(tag) = run.pointer_mut("/tags/0") {
///     *tag = Value::Bytes(vec![0xff]); // `Value::from(vec![0xffu8])` is an array of one integer
/// }
/// assert_eq!(
///     run.to_string(),
///     r#"{"loss": 0.25_3, "tags": [h'ff', "b"], "step": 7, "mask": u8[2]}"#
/// );
/// # Ok::<(), tenarc::Error>(())
/// ```
#[derive(Clone, Default, PartialEq)]
pub enum Value {
    /// Null: `None` or `()`.
    #[default]
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer that fits in an `i128`. Larger ones are bignums: [`Tag`](Self::Tag) 2 or 3 around bytes.
    Integer(i128),
    /// A float of half or single precision.
    F32(f32),
    /// A float of double precision.
    F64(f64),
    /// A byte string.
    Bytes(Vec<u8>),
    /// A text string.
    Text(String),
    /// An array.
    Array(Vec<Value>),
    /// A map: its entries, in the order of the document.
    Map(Vec<(Value, Value)>),
    /// A tag around a value.
    Tag(u64, Box<Value>),
    /// A simple value other than false, true and null. 23 is *undefined*.
    Simple(u8),
    /// A typed array without a shape (RFC 8746, section 2).
    Numbers(Box<Numbers>),
    /// A tensor: elements with dtype, shape and order.
    Tensor(Box<DynTensor>),
}

/// Reads one item.
pub(crate) fn read(wire: &mut Reader<'_, '_>) -> Result<Value> {
    let at = wire.offset();
    let head = wire.head()?;
    Ok(match head.major() {
        head::UNSIGNED => Value::Integer(head.arg.into()),
        head::NEGATIVE => Value::Integer(!i128::from(head.arg)),
        head::BYTES => Value::Bytes(owned_bytes(wire, head)?),
        head::TEXT => Value::Text(owned_text(wire, head)?),
        head::ARRAY => return read_array(wire, head),
        head::MAP => return read_map(wire, head),
        head::TAG => return read_tagged(wire, head.arg, at),
        _ => return simple(head).map_err(|error| error.at(at)),
    })
}

// These are separate functions so that `read` uses little stack. It calls itself for nested items.

fn simple(head: head::Head) -> Result<Value> {
    Ok(match head.initial {
        head::FALSE => Value::Bool(false),
        head::TRUE => Value::Bool(true),
        head::NULL => Value::Null,
        head::BREAK => return Err(unexpected_break()),
        #[allow(clippy::cast_possible_truncation)]
        _ => match Numeric::from_head(head) {
            Some(Numeric::Single(value)) => Value::F32(value),
            Some(Numeric::Double(value)) => Value::F64(value),
            _ => Value::Simple(head.arg as u8),
        },
    })
}

fn owned_text(wire: &mut Reader<'_, '_>, head: head::Head) -> Result<String> {
    Ok(match wire.text(head)? {
        Text::Owned(text) => text,
        Text::Borrowed(text) => {
            wire.charge(text.len() as u64)?;
            text.to_owned()
        }
        Text::Copied(text) => text.to_owned(),
    })
}

fn owned_bytes(wire: &mut Reader<'_, '_>, head: head::Head) -> Result<Vec<u8>> {
    Ok(match wire.string(head)? {
        SourceBytes::Owned(bytes) => bytes,
        SourceBytes::Copied(bytes) => bytes.to_vec(),
        SourceBytes::Borrowed(bytes) => {
            wire.charge(bytes.len() as u64)?;
            bytes.to_vec()
        }
    })
}

/// Makes room for one more item of an array or map. After it, `left` items are left. If the input is in memory, there is room
/// for all of them at once, but for no more items than the document has bytes.
#[inline(always)]
fn make_room<T>(wire: &mut Reader<'_, '_>, items: &mut Vec<T>, left: Left) -> Result<()> {
    if items.len() < items.capacity() { Ok(()) } else { make_more_room(wire, items, left) }
}

#[inline(never)]
fn make_more_room<T>(wire: &mut Reader<'_, '_>, items: &mut Vec<T>, left: Left) -> Result<()> {
    // While a block grows, there are two. Items can take a single byte, so a long array grows by less than its length: it has
    // to stay within the budget.
    const LONG: usize = 1 << 20;
    // Most arrays are short. This takes fewer steps than the way below.
    const SHORT: usize = 1 << 10;
    let more = match items.len() {
        0 => match wire.size_hint(left).map_or(4, |hint| hint.saturating_add(1)) {
            more @ ..SHORT => {
                wire.charge((more * size_of::<T>()) as u64)?;
                *items = Vec::with_capacity(more);
                return Ok(());
            }
            more => more,
        },
        len => {
            let most =
                left.known().map_or(usize::MAX, |left| usize::try_from(left).unwrap_or(usize::MAX));
            (if len < LONG { len } else { len / 8 }).min(most.saturating_add(1))
        }
    };
    Growth::by(items, more).reserve(items, |growth| wire.grow(growth))
}

fn read_array(wire: &mut Reader<'_, '_>, head: head::Head) -> Result<Value> {
    wire.enter()?;
    let mut left = Left::of(head);
    let mut items = Vec::new();
    while wire.more(&mut left)? {
        make_room(wire, &mut items, left)?;
        let item = read(wire).map_err(|error| error.in_index(items.len() as u64))?;
        items.push(item);
    }
    wire.leave();
    Ok(Value::Array(items))
}

fn read_map(wire: &mut Reader<'_, '_>, head: head::Head) -> Result<Value> {
    wire.enter()?;
    let mut left = Left::of(head);
    let mut entries = Vec::new();
    while wire.more(&mut left)? {
        make_room(wire, &mut entries, left)?;
        let key = read(wire)?;
        let value = read(wire).map_err(|error| error.in_field(key.to_step()))?;
        entries.push((key, value));
    }
    wire.leave();
    Ok(Value::Map(entries))
}

fn read_tagged(wire: &mut Reader<'_, '_>, tag: u64, at: u64) -> Result<Value> {
    match tag {
        array if tag::is_array(array) => read_tensor(wire, tag, at),
        // The item stands for itself.
        tag::TYPE => {
            wire.enter()?;
            wire.enter()?;
            wire.type_head()?;
            let inner = read(wire)?;
            wire.leave();
            wire.leave();
            Ok(inner)
        }
        tag::COLUMNS => columns::read_columns(wire).map_err(|error| error.at(at)),
        tag::BIGNUM | tag::NEGATIVE_BIGNUM => {
            wire.enter()?;
            wire.charge(size_of::<Value>() as u64)?;
            let head = wire.bignum_head()?;
            let value = Value::Tag(tag, Box::new(Value::Bytes(owned_bytes(wire, head)?)));
            wire.leave();
            // A bignum that fits becomes an integer.
            Ok(value.number().and_then(Numeric::as_int).map_or(value, Value::Integer))
        }
        _ => {
            wire.check_tag(tag)?;
            wire.enter()?;
            wire.charge(size_of::<Value>() as u64)?;
            let inner = read(wire)?;
            wire.leave();
            Ok(Value::Tag(tag, Box::new(inner)))
        }
    }
}

fn read_tensor(wire: &mut Reader<'_, '_>, tag: u64, at: u64) -> Result<Value> {
    let item = wire.tensor(tag).map_err(|error| error.at(at))?;
    let kind = item.kind;
    wire.charge(size_of::<DynTensor>() as u64)?;
    let (meta, elements) = wire.payload_elements(item)?;
    Ok(match (kind, elements) {
        (Kind::Tensor, elements) => Value::Tensor(Box::new(DynTensor::from_parts(meta, elements)?)),
        (Kind::Bytes, Elements::U8(bytes)) => Value::Bytes(bytes),
        (_, elements) => Value::Numbers(Box::new(Numbers::new(elements))),
    })
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Integer(value) => match (u64::try_from(*value), i64::try_from(*value)) {
                (Ok(value), _) => serializer.serialize_u64(value),
                (_, Ok(value)) => serializer.serialize_i64(value),
                _ => serializer.serialize_i128(*value),
            },
            Self::F32(value) => serializer.serialize_f32(*value),
            Self::F64(value) => serializer.serialize_f64(*value),
            Self::Bytes(bytes) => serializer.serialize_bytes(bytes),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Array(items) => serializer.collect_seq(items),
            Self::Map(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (key, value) in entries {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
            Self::Tag(tag, inner) => handoff::offer(Slot::Number(*tag), || {
                serializer.serialize_newtype_struct(name::TAGGED, &Content(inner))
            }),
            Self::Simple(number) => handoff::offer(Slot::Number((*number).into()), || {
                serializer.serialize_newtype_struct(name::SIMPLE, &Unit)
            }),
            Self::Numbers(numbers) => numbers.serialize(serializer),
            Self::Tensor(tensor) => crate::tensor::serialize(&**tensor, serializer),
        }
    }
}

/// The content of a tag. For serializers of other formats, which ignore the tag, this is the whole value. It takes the
/// slot first, so that a newtype inside the content does not find it.
struct Content<'a>(&'a Value);

impl Serialize for Content<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        handoff::take();
        self.0.serialize(serializer)
    }
}

struct Unit;

impl Serialize for Unit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_unit()
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(name::VALUE, ValueVisitor)
    }
}

/// This crate's deserializers pass a finished `Value`. For other formats, this visitor builds it.
struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, de: D) -> Result<Value, D::Error> {
        de.deserialize_any(self)
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(offer::take().unwrap_or(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, de: D) -> Result<Value, D::Error> {
        Value::deserialize(de).map(Value::some)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Integer(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Integer(value.into()))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Value, E> {
        Ok(Value::Integer(value))
    }

    fn visit_u128<E>(self, value: u128) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f32<E>(self, value: f32) -> Result<Value, E> {
        Ok(Value::F32(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::F64(value))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(Value::Text(text))
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Value, E> {
        Ok(Value::Bytes(bytes.to_vec()))
    }

    fn visit_byte_buf<E>(self, bytes: Vec<u8>) -> Result<Value, E> {
        Ok(Value::Bytes(bytes))
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Value::Map(entries))
    }

    fn visit_enum<A: serde::de::EnumAccess<'de>>(self, _: A) -> Result<Value, A::Error> {
        Err(serde::de::Error::invalid_type(Unexpected::Enum, &self))
    }
}
