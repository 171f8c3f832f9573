//! Values as trees whose tensors are had one at a time: in memory, or in an archive.

use std::ops::Range;

use tenarc::inspect::{COLUMNS, Event, Item, Items};
use tenarc::value::Numbers;
use tenarc::{DType, Error, Result, Value};

use crate::elements::{self, Number};
use crate::stored::Stored;

/// Unsigned bignum (RFC 8949, section 3.4.3).
const BIGNUM: u64 = 2;
/// Negative bignum (RFC 8949, section 3.4.3).
const NEGATIVE_BIGNUM: u64 = 3;

/// What a node of a tree is.
pub enum Node<'t, T> {
    Array(&'t [T]),
    Map(&'t [(Value, T)]),
    Tag(u64, &'t T),
    Leaf,
}

/// A value, wherever it is.
pub trait Tree: Sized {
    fn node(&self) -> Node<'_, Self>;

    /// Does something with a leaf, which `fetch` reads if it is not there.
    fn with_leaf<R>(&self, fetch: &Fetch<'_>, f: impl FnOnce(&Value) -> Result<R>) -> Result<R>;
}

/// Reads what stands at a place of the metadata.
pub type Fetch<'a> = dyn Fn(Range<usize>) -> Result<Value> + 'a;

/// For values in memory.
pub fn nowhere(_: Range<usize>) -> Result<Value> {
    Err(Error::data("a value in memory is nowhere else"))
}

impl Tree for Value {
    fn node(&self) -> Node<'_, Self> {
        match self {
            Self::Array(items) => Node::Array(items),
            Self::Map(entries) => Node::Map(entries),
            Self::Tag(BIGNUM | NEGATIVE_BIGNUM, _) => Node::Leaf,
            Self::Tag(tag, inner) => Node::Tag(*tag, inner),
            _ => Node::Leaf,
        }
    }

    fn with_leaf<R>(&self, _: &Fetch<'_>, f: impl FnOnce(&Value) -> Result<R>) -> Result<R> {
        f(self)
    }
}

/// The plain numbers that a packed sequence stands for; none where they are more than numbers.
pub fn unpacked(numbers: &Numbers) -> Option<Vec<Value>> {
    if numbers.dtype().is_complex() || numbers.dtype() == DType::F128 {
        return None;
    }
    // No detour, on which NaNs might lose bits.
    if let Some(values) = numbers.as_slice::<f32>() {
        return Some(values.iter().copied().map(Value::F32).collect());
    }
    let plain = |number| match number {
        Number::Bool(value) => Some(Value::Bool(value)),
        Number::Unsigned(value) => Some(Value::Integer(value.into())),
        Number::Signed(value) => Some(Value::Integer(value.into())),
        #[allow(clippy::cast_possible_truncation)]
        Number::Float(value) if numbers.dtype() != DType::F64 => Some(Value::F32(value as f32)),
        Number::Float(value) => Some(Value::F64(value)),
        Number::Complex(..) => None,
    };
    elements::numbers(numbers)?.into_iter().map(plain).collect()
}

/// A value of an archive: leaves are read when they are asked for.
pub enum Saved {
    /// Where it stands in the metadata.
    Leaf(Range<usize>),
    /// A leaf of rows that are stored as columns.
    Known(Value),
    Array(Vec<Saved>),
    Map(Vec<(Value, Saved)>),
    Tag(u64, Box<Saved>),
}

impl Saved {
    /// A value, without its tensors.
    pub fn of(value: &dyn Stored) -> Result<Self> {
        let fetch = |range| value.decode(range);
        Walk { items: value.items()?, bytes: value.metadata()?, fetch: &fetch }.item()
    }

    /// What is under a key of text.
    pub fn entry(self, key: &str) -> Option<Self> {
        let Self::Map(entries) = self else { return None };
        let found = entries.into_iter().find(|(found, _)| found.as_str() == Some(key));
        found.map(|(_, value)| value)
    }

    /// The value, with all that is in it.
    pub fn into_value(self, fetch: &Fetch<'_>) -> Result<Value> {
        Ok(match self {
            Self::Leaf(range) => fetch(range)?,
            Self::Known(value) => value,
            Self::Array(items) => {
                let items = items.into_iter().map(|item| item.into_value(fetch));
                Value::Array(items.collect::<Result<_>>()?)
            }
            Self::Map(entries) => {
                let entries = entries.into_iter();
                let entries = entries.map(|(key, value)| Ok((key, value.into_value(fetch)?)));
                Value::Map(entries.collect::<Result<_>>()?)
            }
            Self::Tag(tag, inner) => Value::Tag(tag, Box::new(inner.into_value(fetch)?)),
        })
    }

    /// A value that was read, for example the rows of columns.
    fn known(value: Value) -> Self {
        match value {
            Value::Array(items) => Self::Array(items.into_iter().map(Self::known).collect()),
            Value::Map(entries) => {
                let entries = entries.into_iter().map(|(key, value)| (key, Self::known(value)));
                Self::Map(entries.collect())
            }
            Value::Tag(tag, inner) if !matches!(tag, BIGNUM | NEGATIVE_BIGNUM) => {
                Self::Tag(tag, Box::new(Self::known(*inner)))
            }
            leaf => Self::Known(leaf),
        }
    }
}

impl Tree for Saved {
    fn node(&self) -> Node<'_, Self> {
        match self {
            Self::Leaf(_) | Self::Known(_) => Node::Leaf,
            Self::Array(items) => Node::Array(items),
            Self::Map(entries) => Node::Map(entries),
            Self::Tag(tag, inner) => Node::Tag(*tag, inner),
        }
    }

    fn with_leaf<R>(&self, fetch: &Fetch<'_>, f: impl FnOnce(&Value) -> Result<R>) -> Result<R> {
        match self {
            Self::Leaf(range) => f(&fetch(range.clone())?),
            Self::Known(value) => f(value),
            _ => f(&Value::Null),
        }
    }
}

struct Walk<'m, 'f> {
    items: Items<'m>,
    bytes: &'m [u8],
    fetch: &'f Fetch<'f>,
}

impl<'m> Walk<'m, '_> {
    fn next(&mut self) -> Result<Item<'m>> {
        self.items.next().unwrap_or_else(|| Err(Error::eof("an item")))
    }

    fn item(&mut self) -> Result<Saved> {
        let item = self.next()?;
        self.rest(item)
    }

    /// What starts with this item.
    fn rest(&mut self, item: Item<'m>) -> Result<Saved> {
        match item.event {
            Event::Array => {
                let mut items = Vec::new();
                loop {
                    match self.next()? {
                        Item { event: Event::End, .. } => return Ok(Saved::Array(items)),
                        item => items.push(self.rest(item)?),
                    }
                }
            }
            Event::Map => {
                let mut entries = Vec::new();
                loop {
                    match self.next()? {
                        Item { event: Event::End, .. } => return Ok(Saved::Map(entries)),
                        key => entries.push((self.key(key.range)?, self.item()?)),
                    }
                }
            }
            Event::Tag(COLUMNS) => {
                // They are read as the rows that they stand for.
                self.next()?;
                let end = self.items.leave()?.range.end;
                Ok(Saved::known((self.fetch)(item.range.start..end)?))
            }
            Event::Tag(tag) => Ok(Saved::Tag(tag, Box::new(self.item()?))),
            _ => Ok(Saved::Leaf(item.range)),
        }
    }

    fn key(&self, range: Range<usize>) -> Result<Value> {
        // Whatever it is, it stands in the metadata as a whole, but for tensors in buffers.
        let start = range.start as u64;
        let item = self.bytes.get(range).unwrap_or_default();
        tenarc::from_slice(item).map_err(|error| error.moved_by(start))
    }
}

/// Where in a value something is, for those that are told of what is lost.
#[derive(Default)]
pub struct Path {
    text: String,
}

/// Bytes of a path that are told.
const MAX_PATH: usize = 256;

impl Path {
    /// Goes a step further; what [`leave`](Self::leave) takes to go back.
    pub fn enter(&mut self, step: impl FnOnce() -> String) -> usize {
        let before = self.text.len();
        if before < MAX_PATH {
            if before > 0 {
                self.text.push('.');
            }
            self.text.extend(step().chars().take(MAX_PATH));
        }
        before
    }

    pub fn leave(&mut self, before: usize) {
        self.text.truncate(before);
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }
}
