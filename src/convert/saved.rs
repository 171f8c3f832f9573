//! Values as trees whose tensors are had one at a time: in memory, or in an archive.

use std::ops::Range;

use crate::archive::Segment;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::io::at::ReadAt;
use crate::io::source::SliceRead;
use crate::number::Number;
use crate::segment::path::is_leaf;
use crate::tensor::Numbers;
use crate::value::Value;
use crate::wire::head;
use crate::wire::reader::{Left, Wire};
use crate::wire::tag;

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
            Self::Tag(tag::BIGNUM | tag::NEGATIVE_BIGNUM, _) => Node::Leaf,
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
    let mut values = Vec::with_capacity(numbers.len());
    let done = numbers.0.for_each(&mut |number| {
        values.push(match number {
            Number::Bool(value) => Value::Bool(value),
            Number::Unsigned(value) => Value::Integer(value.into()),
            Number::Signed(value) => Value::Integer(value.into()),
            #[allow(clippy::cast_possible_truncation)]
            Number::Float(value) if numbers.dtype() != DType::F64 => Value::F32(value as f32),
            Number::Float(value) => Value::F64(value),
            Number::Complex(..) => return Err(Error::data("a complex number in a sequence")),
        });
        Ok(())
    });
    done.ok().map(|()| values)
}

/// A value of an archive: leaves are read when they are asked for.
pub enum Saved {
    /// Where it stands in the metadata.
    Leaf(Range<usize>),
    Array(Vec<Saved>),
    Map(Vec<(Value, Saved)>),
    Tag(u64, Box<Saved>),
}

impl Saved {
    /// What a segment holds, without its tensors.
    pub fn of<S: ReadAt + ?Sized>(segment: &Segment<'_, S>) -> Result<Self> {
        let bytes = segment.metadata()?;
        let wire = Wire::new(SliceRead::new(bytes), segment.options.limits);
        Walk { wire, bytes }.item()
    }
}

impl Tree for Saved {
    fn node(&self) -> Node<'_, Self> {
        match self {
            Self::Leaf(_) => Node::Leaf,
            Self::Array(items) => Node::Array(items),
            Self::Map(entries) => Node::Map(entries),
            Self::Tag(tag, inner) => Node::Tag(*tag, inner),
        }
    }

    fn with_leaf<R>(&self, fetch: &Fetch<'_>, f: impl FnOnce(&Value) -> Result<R>) -> Result<R> {
        match self {
            Self::Leaf(range) => f(&fetch(range.clone())?),
            _ => f(&Value::Null),
        }
    }
}

struct Walk<'m> {
    wire: Wire<SliceRead<'m>>,
    bytes: &'m [u8],
}

impl Walk<'_> {
    fn at(&self) -> usize {
        usize::try_from(self.wire.offset()).unwrap_or(usize::MAX)
    }

    fn item(&mut self) -> Result<Saved> {
        let start = self.at();
        let Some((head, _)) = self.wire.peek_head()? else {
            return Err(Error::eof("an item").at(self.wire.offset()));
        };
        match head.major() {
            head::ARRAY => {
                let mut left = self.enter()?;
                let mut items = Vec::new();
                while self.wire.more(&mut left)? {
                    items.push(self.item()?);
                }
                self.wire.leave();
                Ok(Saved::Array(items))
            }
            head::MAP => {
                let mut left = self.enter()?;
                let mut entries = Vec::new();
                while self.wire.more(&mut left)? {
                    entries.push((self.key()?, self.item()?));
                }
                self.wire.leave();
                Ok(Saved::Map(entries))
            }
            head::TAG if !is_leaf(head.arg) => {
                self.wire.head()?;
                self.wire.enter()?;
                let inner = self.item()?;
                self.wire.leave();
                Ok(Saved::Tag(head.arg, Box::new(inner)))
            }
            _ => {
                self.wire.within(0, Wire::skip)?;
                Ok(Saved::Leaf(start..self.at()))
            }
        }
    }

    fn enter(&mut self) -> Result<Left> {
        let head = self.wire.head()?;
        self.wire.enter()?;
        Ok(Left::of(head))
    }

    fn key(&mut self) -> Result<Value> {
        let start = self.at();
        self.wire.within(0, Wire::skip)?;
        // Whatever it is, it stands in the metadata as a whole, but for tensors in buffers.
        let item = self.bytes.get(start..self.at()).unwrap_or_default();
        crate::from_slice(item).map_err(|error| error.moved_by(start as u64))
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
