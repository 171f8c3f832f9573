//! Reads a [`Value`] from items.

use super::{Numbers, Value, columns, with_types};
use crate::budget::Growth;
use crate::elements::Elements;
use crate::error::Result;
use crate::io::source::SourceBytes;
use crate::tensor::DynTensor;
use crate::wire::head;
use crate::wire::number::Numeric;
use crate::wire::reader::{Left, Reader, unexpected_break};
use crate::wire::strings::Text;
use crate::wire::tag;
use crate::wire::tensor::Kind;

/// Reads one item.
pub fn read(wire: &mut Reader<'_, '_>) -> Result<Value> {
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
#[inline]
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
            let of = if with_types::are_kept() {
                Some(wire.type_of_item(Reader::named_type)?)
            } else {
                wire.type_head()?;
                None
            };
            let inner = read(wire)?;
            wire.leave();
            wire.leave();
            match of {
                Some(of) => with_types::tagged(&of, inner, &wire.allowance()),
                None => Ok(inner),
            }
        }
        tag::COLUMNS => columns::read_columns(wire).map_err(|error| error.at(at)),
        tag::BIGNUM | tag::NEGATIVE_BIGNUM => read_bignum(wire, tag),
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

fn read_bignum(wire: &mut Reader<'_, '_>, tag: u64) -> Result<Value> {
    wire.enter()?;
    wire.charge(size_of::<Value>() as u64)?;
    let head = wire.bignum_head()?;
    let value = Value::Tag(tag, Box::new(Value::Bytes(owned_bytes(wire, head)?)));
    wire.leave();
    // A bignum that fits becomes an integer.
    Ok(value.number().and_then(Numeric::as_int).map_or(value, Value::Integer))
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
