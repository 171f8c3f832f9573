//! Parses the structure of an item, without reading its payloads.

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::ops::Range;
use std::rc::Rc;

use tenarc::inspect::{self, COLUMNS, Event, Item, Items};
use tenarc::tensor::Order;
use tenarc::{DType, Value};

use super::{Form, Key, Kind, Node, Payload};
use crate::failure::{Failure, Result};

/// Byte strings of at least this many bytes count as payloads: an archive stores them in buffers.
const LARGE: usize = 2048;

/// Parses one item. `buffers` has the offset and length of each buffer that the item may refer to.
///
/// # Errors
/// If the bytes are not one well-formed item, or refer to a buffer that does not exist.
pub fn parse(bytes: &[u8], buffers: &[(u64, u64)]) -> Result<Node> {
    parse_items(bytes, Items::new(bytes).with_buffers(buffers))
}

/// Like [`parse`], with the items in the bytes.
pub fn parse_items<'a>(bytes: &'a [u8], items: Items<'a>) -> Result<Node> {
    let mut parser = Parser { bytes, items, steps: HashSet::new(), entries: Vec::new() };
    let first = parser.next()?;
    let node = parser.node(first)?;
    if parser.items.next().is_some() {
        let at = node.range.end;
        return Err(Failure::new(format!("expected the end of the value (byte {at})")));
    }
    Ok(node)
}

/// Returns the end of each item in a sequence of items.
///
/// # Errors
/// If an item is not well-formed.
pub fn items(bytes: &[u8]) -> Result<Vec<usize>> {
    let mut found = Vec::new();
    let mut items = Items::new(bytes);
    while let Some(first) = items.next().transpose()? {
        let mut last = first;
        while let Event::Tag(_) = last.event {
            last = next(&mut items)?;
        }
        if matches!(last.event, Event::Array | Event::Map) {
            last = items.leave()?;
        }
        found.push(last.range.end);
    }
    Ok(found)
}

fn next<'a>(items: &mut Items<'a>) -> Result<Item<'a>> {
    let item = items.next().transpose()?;
    item.ok_or_else(|| Failure::new("input ended, expected a value"))
}

struct Parser<'a> {
    bytes: &'a [u8],
    items: Items<'a>,
    /// Some of the keys. The rows of a table all have the same ones.
    steps: HashSet<Rc<str>>,
    /// The entries of the maps that are being read.
    entries: Vec<(Key, Node)>,
}

/// The most keys that are kept to be used again.
const KEPT: usize = 1 << 12;

impl<'a> Parser<'a> {
    fn step(&mut self, step: &str) -> Rc<str> {
        if let Some(known) = self.steps.get(step) {
            return known.clone();
        }
        let step = Rc::<str>::from(step);
        if self.steps.len() < KEPT {
            self.steps.insert(step.clone());
        }
        step
    }

    fn next(&mut self) -> Result<Item<'a>> {
        next(&mut self.items)
    }

    /// Parses the node that starts with this item.
    fn node(&mut self, item: Item<'a>) -> Result<Node> {
        let Item { event, mut range, .. } = item;
        let kind = match event {
            Event::Array => {
                let mut nodes = Vec::new();
                loop {
                    let item = self.next()?;
                    if item.event == Event::End {
                        range.end = item.range.end;
                        nodes.shrink_to_fit();
                        break Kind::Array(nodes);
                    }
                    nodes.push(self.node(item)?);
                }
            }
            Event::Map => {
                let start = self.entries.len();
                loop {
                    let Item { event, range: at, .. } = self.next()?;
                    let Event::Key(key) = event else {
                        range.end = at.end;
                        // An allocation of its own that grew would leave gaps in memory.
                        break Kind::Map(self.entries.drain(start..).collect());
                    };
                    let step = self.step(&key.into_step());
                    let value = self.next()?;
                    let value = self.node(value)?;
                    self.entries.push((Key { range: at, step }, value));
                }
            }
            Event::Tag(tag) => {
                let inner = self.next()?;
                if tag == COLUMNS && inner.event == Event::Array {
                    range.end = self.items.leave()?.range.end;
                    Kind::Columns(Box::default())
                } else {
                    let inner = self.node(inner)?;
                    range.end = inner.range.end;
                    Kind::Tag(tag, Box::new(inner))
                }
            }
            Event::Payload(payload) => Kind::Payload(Box::new(Payload::try_from(payload)?)),
            Event::Bytes if range.len() >= LARGE => self.byte_string(range.clone())?,
            _ => Kind::Leaf,
        };
        Ok(Node { range, kind })
    }

    fn byte_string(&self, range: Range<usize>) -> Result<Kind> {
        let item = self.bytes.get(range).unwrap_or_default();
        let Value::Bytes(bytes) = tenarc::from_slice(item)? else {
            return Err(Failure::new("expected bytes"));
        };
        Ok(Kind::Payload(Box::new(Payload {
            form: Form::Bytes,
            dtype: DType::U8,
            shape: vec![bytes.len()],
            order: Order::C,
            byte_len: bytes.len() as u64,
            buffer: None,
            column: None,
        })))
    }
}

impl TryFrom<inspect::Payload> for Payload {
    type Error = Failure;

    fn try_from(payload: inspect::Payload) -> Result<Self> {
        let inspect::Payload { form, meta, byte_len, buffer, .. } = payload;
        let buffer = buffer.map(usize::try_from).transpose();
        let buffer =
            buffer.map_err(|_| Failure::new("the number of a buffer does not fit in memory"))?;
        let shape = meta.shape.to_vec();
        let (dtype, order) = (meta.dtype, meta.order);
        Ok(Self { form, dtype, shape, order, byte_len, buffer, column: None })
    }
}
