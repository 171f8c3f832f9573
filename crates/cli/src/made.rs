//! Changed values that can be written in any format, without a temporary file.

use std::cell::RefCell;

use serde::ser::{Serialize, Serializer};
use tenarc_convert::{Apart, Current, Put, Stored};

use crate::change::Change;
use crate::document::Section;
use crate::failure::{Failure, Result};
use crate::node::{Kind, Node};
use crate::written::{Written, is_numeric};

/// The name in messages of a changed value that is not yet written to a file.
const THE_VALUE: &str = "the changed value";

/// A changed value: its metadata, and the sources of its tensors.
struct Made<'a> {
    apart: Apart,
    /// All tensors of the value, in its order.
    sources: Vec<Source<'a>>,
}

/// A tensor of an input, and how its elements change.
struct Source<'a> {
    section: &'a Section<'a>,
    node: &'a Node,
    change: Option<Change<'a>>,
}

impl<'a> Made<'a> {
    /// Creates the metadata of a value without reading its tensors. Returns `None` if the value has columns, or tensors
    /// inside tags: these have no single source.
    ///
    /// # Errors
    /// If the value cannot be written.
    fn new(value: &Written<'a>) -> Result<Option<Self>> {
        let Some(sources) = sources(value)? else { return Ok(None) };
        let current = Current::default();
        let telling = Telling { value, current: &current, next: RefCell::default() };
        let apart = Apart::new(&telling, &current);
        let apart = apart.map_err(|error| value.failure(error, THE_VALUE))?;
        Ok(Some(Self { apart, sources }))
    }
}

impl<'a> Section<'a> {
    /// Creates a section from a changed value. Returns `None` if the value has columns, or tensors inside tags.
    ///
    /// # Errors
    /// If the value cannot be written.
    pub fn made(name: Option<&str>, value: &Written<'a>) -> Result<Option<Self>> {
        let made = Made::new(value)?;
        made.map(|made| Self::of_changed(name, Box::new(made))).transpose()
    }
}

impl Stored for Made<'_> {
    fn metadata(&self) -> tenarc::Result<&[u8]> {
        Ok(self.apart.metadata())
    }

    fn buffers(&self) -> &[(u64, u64)] {
        self.apart.buffers()
    }

    fn blocks(&self, buffer: usize, put: &mut Put<'_>) -> tenarc::Result<()> {
        let Some(source) = self.sources.get(self.apart.number(buffer)?) else { return Ok(()) };
        let Source { section, node, change } = source;
        let changing = change.as_ref().zip(node.payload());
        let changing = changing.map(|(change, payload)| change.start(&payload.dtype));
        let mut changing = changing.transpose().map_err(Failure::into_library)?;
        // The error of `put` is kept here, because a failure would lose its source.
        let mut refused = None;
        let mut put = |block: &[u8]| {
            put(block).map_err(|error| {
                refused = Some(error);
                Failure::new("writing was stopped")
            })
        };
        let read = section.blocks(node, &mut |block| match &mut changing {
            Some(changing) => put(&changing.block(block)?),
            None => put(block),
        });
        match refused {
            Some(error) => Err(error),
            None => read.map_err(Failure::into_library),
        }
    }
}

/// Returns the tensors of a value, in its order. `None` if some have no single source.
fn sources<'a>(value: &Written<'a>) -> Result<Option<Vec<Source<'a>>>> {
    fn add<'a>(value: &Written<'a>, found: &mut Vec<Source<'a>>) -> Result<bool> {
        match value {
            Written::Same(section, node) | Written::Plain(section, node) => {
                Ok(add_node(section, node, found))
            }
            Written::Changed(section, node, change) => {
                let from = node.payload().ok_or_else(|| Failure::new("expected a tensor"))?;
                change.check(&from.dtype)?;
                found.push(Source { section, node, change: Some(change.clone()) });
                Ok(true)
            }
            Written::Array(items) => all(items.iter(), found),
            Written::Map(entries) => all(entries.iter().map(|(_, value)| value), found),
            Written::Value(_) => Ok(true),
        }
    }
    fn all<'v, 'a: 'v>(
        values: impl Iterator<Item = &'v Written<'a>>,
        found: &mut Vec<Source<'a>>,
    ) -> Result<bool> {
        for value in values {
            if !add(value, found)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
    fn add_node<'a>(section: &'a Section<'a>, node: &'a Node, found: &mut Vec<Source<'a>>) -> bool {
        match &node.kind {
            Kind::Leaf => true,
            Kind::Payload(_) => {
                found.push(Source { section, node, change: None });
                true
            }
            Kind::Columns(_) => false,
            Kind::Tag(_, inner) => !inner.holds_payload(),
            Kind::Array(items) => items.iter().all(|item| add_node(section, item, found)),
            Kind::Map(entries) => entries.iter().all(|(_, node)| add_node(section, node, found)),
        }
    }
    let mut found = Vec::new();
    Ok(add(value, &mut found)?.then_some(found))
}

/// A value that tells which of its tensors is being written.
struct Telling<'v, 'a> {
    value: &'v Written<'a>,
    current: &'v Current,
    /// The number of the next tensor.
    next: RefCell<usize>,
}

impl Serialize for Telling<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.next.replace(0);
        Part { whole: self, part: self.value }.serialize(serializer)
    }
}

#[derive(Clone, Copy)]
struct Part<'v, 'a> {
    whole: &'v Telling<'v, 'a>,
    part: &'v Written<'a>,
}

impl Part<'_, '_> {
    /// Writes the next tensor.
    fn tensor<S: Serializer>(self, serializer: S) -> Result<S::Ok, S::Error> {
        let number = self.whole.next.replace_with(|next| *next + 1);
        self.whole.current.tensor(number, || self.part.serialize(serializer))
    }
}

impl Serialize for Part<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { whole, part } = *self;
        match part {
            Written::Array(items) => {
                serializer.collect_seq(items.iter().map(|part| Part { whole, part }))
            }
            Written::Map(entries) => serializer
                .collect_map(entries.iter().map(|(key, part)| (key, Part { whole, part }))),
            Written::Changed(..) => self.tensor(serializer),
            Written::Same(section, node) | Written::Plain(section, node) => match &node.kind {
                Kind::Payload(_) => self.tensor(serializer),
                Kind::Array(items) if !is_numeric(section, items) => {
                    serializer.collect_seq(items.iter().map(|node| Inside { whole, section, node }))
                }
                Kind::Map(entries) => serializer.collect_map(entries.iter().map(|(key, node)| {
                    (crate::written::WrittenKey::of(section, key), Inside { whole, section, node })
                })),
                _ => part.serialize(serializer),
            },
            Written::Value(_) => part.serialize(serializer),
        }
    }
}

/// A node inside a node that is written unchanged.
struct Inside<'v, 'a> {
    whole: &'v Telling<'v, 'a>,
    section: &'a Section<'a>,
    node: &'a Node,
}

impl Serialize for Inside<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let part = Written::Same(self.section, self.node);
        Part { whole: self.whole, part: &part }.serialize(serializer)
    }
}
