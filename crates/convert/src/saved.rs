//! Values as trees whose tensors are read one at a time. A value is in memory or in an archive.

use std::ops::Range;

use tenarc::inspect::{COLUMNS, Event, Item, Items, TYPE};
use tenarc::value::Numbers;
use tenarc::{DType, Error, Result, Value};

use crate::elements::{self, Number};
use crate::stored::Stored;
use crate::typed::Type;

/// Unsigned bignum (RFC 8949, section 3.4.3).
const BIGNUM: u64 = 2;
/// Negative bignum (RFC 8949, section 3.4.3).
const NEGATIVE_BIGNUM: u64 = 3;

/// A node of a tree, with its children.
pub enum Node<'t, T> {
    Array(&'t [T]),
    Map(&'t [(Value, T)]),
    Tag(u64, &'t T),
    /// A value of a named type.
    Named(&'t Type, &'t T),
    Leaf,
}

/// A value in memory or in an archive.
pub trait Tree: Sized {
    fn node(&self) -> Node<'_, Self>;

    /// Calls `f` with a leaf. If the leaf is not in memory, `fetch` reads it.
    fn with_leaf<R>(&self, fetch: &Fetch<'_>, f: impl FnOnce(&Value) -> Result<R>) -> Result<R>;
}

/// Reads the value at a range of the metadata.
pub type Fetch<'a> = dyn Fn(Range<usize>) -> Result<Value> + 'a;

/// The [`Fetch`] of values in memory. It always fails, because such values have no metadata to read from.
pub fn nowhere(_: Range<usize>) -> Result<Value> {
    Err(Error::data("a value in memory has no metadata to read from"))
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

/// Returns the numbers of a packed sequence as plain values. `None` if no plain value can hold them.
pub fn unpacked(numbers: &Numbers) -> Option<Vec<Value>> {
    if numbers.dtype().is_complex() || numbers.dtype() == DType::F128 {
        return None;
    }
    // No conversion to `f64` and back, which might change the bits of NaNs.
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

/// A value of an archive, whose leaves are read when they are needed.
pub enum Saved {
    /// A leaf, as its range in the metadata.
    Leaf(Range<usize>),
    /// A leaf that was read already, because it belongs to rows that are stored as columns.
    Known(Value),
    Array(Vec<Saved>),
    Map(Vec<(Value, Saved)>),
    Tag(u64, Box<Saved>),
    Named(Type, Box<Saved>),
}

impl Saved {
    /// Reads the structure of a value, without its tensors.
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
            Self::Named(_, inner) => Value::Tag(TYPE, Box::new(inner.into_value(fetch)?)),
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
            Self::Named(of, inner) => Node::Named(of, &**inner),
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

    /// Reads the value that starts with this item.
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
                // Columns are read as rows.
                self.next()?;
                let end = self.items.leave()?.range.end;
                Ok(Saved::known((self.fetch)(item.range.start..end)?))
            }
            Event::Tag(TYPE) => {
                let of = Type::read(&mut self.items, self.bytes)?;
                let item = self.item()?;
                Type::end(&mut self.items)?;
                Ok(Saved::Named(of, Box::new(item)))
            }
            Event::Tag(tag) => Ok(Saved::Tag(tag, Box::new(self.item()?))),
            _ => Ok(Saved::Leaf(item.range)),
        }
    }

    fn key(&self, range: Range<usize>) -> Result<Value> {
        // A key is in the metadata as a whole, unless it is or holds a tensor in a buffer.
        let start = range.start as u64;
        let item = self.bytes.get(range).unwrap_or_default();
        tenarc::from_slice(item).map_err(|error| error.moved_by(start))
    }
}

/// The path of an item in a value, for messages about losses.
#[derive(Default)]
pub struct Path {
    text: String,
}

/// A path of so many bytes gets no further steps. Each step shows at most so many characters.
const MAX_PATH: usize = 256;

impl Path {
    /// Adds a step. Returns the argument for [`leave`](Self::leave), which removes the step.
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
