//! Inspects an encoded value without a Rust type for it: which items it consists of, and where they are.
//!
//! [`Items`] iterates over the items of a message, or of the metadata of a
//! [segment](crate::archive::Segment::inspect). For a tensor it returns dtype, shape and location, but
//! does not read the elements. Each item comes with its range of bytes. With this range,
//! [`Segment::decode`](crate::archive::Segment::decode) can decode the item.
//!
//! ```
//! use tenarc::inspect::{Event, Items};
//!
//! let bytes = tenarc::to_vec(&("loss", [0.5, 0.25]))?;
//! let mut texts = Vec::new();
//! for item in Items::new(&bytes) {
//!     let item = item?;
//!     if let Event::Text = item.event {
//!         texts.push(tenarc::from_slice::<&str>(&bytes[item.range])?);
//!     }
//! }
//! assert_eq!(texts, ["loss"]);
//! # Ok::<(), tenarc::Error>(())
//! ```

pub use crate::steps::{dotted, escape_step, unescape_step};

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use crate::error::{Error, Result};
use crate::io::buffers::BufferLengths;
use crate::io::input::Input;
use crate::meta::TensorMeta;
use crate::options::Limits;
use crate::path::find;
use crate::path::spelling::{self, Ambiguous, Of, Written};
use crate::wire::head::{self, Head};
use crate::wire::reader::Reader;
use crate::wire::tag;
use crate::wire::tensor::{ItemPayload, Kind, TensorItem};
use crate::wire::walk::{Event as Found, Walk};

/// The tag for `Some` around a value that would otherwise be read as `None`, such as `Some(())`.
pub const SOME: u64 = tag::SOME;
/// The tag around a sequence that is stored as columns: an array of groups (`SPEC.md`, section 7).
pub const COLUMNS: u64 = tag::COLUMNS;
/// The tag around a value of a type that is named: an array of the name, the parameters and the item (`SPEC.md`,
/// section 7.2).
pub const TYPE: u64 = tag::TYPE;

/// An item, or the end of an array or map.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Item<'a> {
    /// The type of the item.
    pub event: Event<'a>,
    /// The range of the item in the input, in bytes. For [`Array`](Event::Array), [`Map`](Event::Map) and
    /// [`Tag`](Event::Tag), it only covers the head. For [`End`](Event::End), it covers the whole array
    /// or map.
    pub range: Range<usize>,
}

/// The type of an item.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// An array starts: its elements follow, then an [`End`](Self::End).
    Array,
    /// A map starts: keys and values follow in turn, then an [`End`](Self::End).
    Map,
    /// A complete map key. Its value follows.
    Key(Key<'a>),
    /// The end of an array or map.
    End,
    /// A tag around the item that follows. The tags of tensors and bignums are not reported.
    Tag(u64),
    /// A tensor, a typed array of numbers, or a byte string in a buffer.
    Payload(Payload),
    /// An integer of any size.
    Integer,
    /// A float of any width.
    Float,
    /// A byte string that is not in a buffer.
    Bytes,
    /// A text.
    Text,
    /// True or false.
    Bool,
    /// Null.
    Null,
    /// Undefined.
    Undefined,
    /// Another simple value (RFC 8949, section 3.3).
    Simple,
}

/// A map key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key<'a> {
    /// A text.
    Text(Cow<'a, str>),
    /// An integer of at most 64 bits and a sign.
    Integer(i128),
    /// Anything else, in diagnostic notation (RFC 8949, section 8).
    Other(String),
}

impl<'a> Key<'a> {
    /// The key as a step of a path: a text unchanged, any other key in diagnostic notation.
    pub fn into_step(self) -> Cow<'a, str> {
        match self {
            Self::Text(text) => text,
            Self::Integer(integer) => integer.to_string().into(),
            Self::Other(notation) => notation.into(),
        }
    }
}

/// The description of a block of elements. It does not contain the elements.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Payload {
    /// What the block represents.
    pub form: Form,
    /// Dtype, shape and order. Sequences of numbers and byte strings have one dimension.
    pub meta: TensorMeta,
    /// The length of the block in bytes.
    pub byte_len: u64,
    /// The number of the buffer with the payload, counted from zero in its segment. `None` if the payload
    /// is inline.
    pub buffer: Option<u64>,
}

/// What a block of elements represents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// A tensor.
    Tensor,
    /// A sequence of numbers of one type.
    Numbers,
    /// A byte string.
    Bytes,
}

/// The range of bytes of the value at a path, inside a message or inside the metadata of a segment. Other values are
/// skipped. [`Segment::inspect_at`] does this for segments.
///
/// ```
/// let bytes = tenarc::to_vec(&("loss", [0.5, 0.25]))?;
/// let range = tenarc::inspect::find(&bytes, "1.0", Default::default())?;
/// assert_eq!(tenarc::from_slice::<f64>(&bytes[range])?, 0.5);
/// # Ok::<(), tenarc::Error>(())
/// ```
///
/// [`Segment::inspect_at`]: crate::archive::Segment::inspect_at
///
/// # Errors
/// If there is no such value, or the path could mean several values, or an item on the way is not well-formed.
pub fn find(value: &[u8], path: &str, limits: Limits) -> Result<Range<usize>> {
    find::find_item(value, None, path, limits)
}

/// Writes the paths of the values inside an encoded value. It uses the same form as [`TensorInfo::path`] does for
/// tensors: a path with dots if it leads to one value only, otherwise a JSON Pointer.
///
/// ```
/// use tenarc::inspect::Paths;
///
/// let bytes = tenarc::to_vec(&serde_json::json!({ "a": { "b": 1, "c": 2 }, "a.b": 3 }))?;
/// let paths = Paths::of(&bytes, Default::default())?;
/// assert_eq!(paths.path(&["a", "c"]).text, "a.c");
/// assert_eq!(paths.path(&["a", "b"]).text, "/a/b");
/// assert_eq!(paths.path(&["a.b"]).text, "/a.b");
/// # Ok::<(), tenarc::Error>(())
/// ```
///
/// [`TensorInfo::path`]: crate::tensor::TensorInfo::path
#[derive(Clone)]
pub struct Paths {
    ambiguous: Ambiguous,
}

/// A path as text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Path {
    /// The dotted path or the JSON Pointer.
    pub text: String,
    /// Whether the path leads to this value only. It is `false` if a key on the way occurs twice in its map, because
    /// then no path leads to only one of the values.
    pub is_unique: bool,
}

impl Paths {
    /// Finds the paths that could mean several values inside a message, or inside the metadata of a segment.
    ///
    /// If a key is empty, contains a dot, or occurs twice in its map, this takes memory in proportion to the number of
    /// values. Bytes after the first item are ignored.
    ///
    /// # Errors
    /// If an item is not well-formed, or exceeds the limits.
    pub fn of(value: &[u8], limits: Limits) -> Result<Self> {
        Ok(Self { ambiguous: Ambiguous::of(Of::All, value, limits)? })
    }

    /// Returns the path with these steps from the root. A step is a key as [`Key::into_step`] returns it, or the
    /// position of an element in its array, in decimal digits.
    pub fn path<S: AsRef<str>>(&self, steps: &[S]) -> Path {
        let Written { text, is_unique } = self.ambiguous.written(steps.iter());
        Path { text, is_unique }
    }
}

impl fmt::Debug for Paths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Paths").finish_non_exhaustive()
    }
}

/// An iterator over the items of one or more encoded values. It ends after the first error.
#[derive(Clone, Debug)]
pub struct Items<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The offset of `bytes` in the archive, which is added to the offsets in errors.
    base: u64,
    /// The start and length of each buffer.
    buffers: &'a [(u64, u64)],
    limits: Limits,
    /// Whether the items are known to be the metadata of a segment.
    strict: bool,
    walk: Walk,
}

impl<'a> Items<'a> {
    /// Iterates over the items of a message, or of several messages that follow each other.
    pub fn new(message: &'a [u8]) -> Self {
        let items = Self::of_segment(message, 0..message.len(), 0, &[], Limits::default());
        Self { strict: false, ..items }
    }

    /// Sets the limits, such as those on the depth of nesting and the number of dimensions.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the buffers that the items can refer to, as start and length in bytes, like the result of
    /// [`Segment::buffers`]. Only the lengths are used.
    ///
    /// [`Segment::buffers`]: crate::archive::Segment::buffers
    #[must_use]
    pub fn with_buffers(mut self, buffers: &'a [(u64, u64)]) -> Self {
        self.buffers = buffers;
        self
    }

    pub(crate) fn of_segment(
        metadata: &'a [u8],
        range: Range<usize>,
        base: u64,
        buffers: &'a [(u64, u64)],
        limits: Limits,
    ) -> Self {
        let bytes = metadata.get(..range.end).unwrap_or_default();
        let walk = Walk::default();
        Self { bytes, at: range.start, base, buffers, limits, strict: true, walk }
    }

    /// Skips the rest of the innermost array or map, and returns its [`End`](Event::End).
    ///
    /// # Errors
    /// If a skipped item is not well-formed, if the input ends, or if the iterator is not inside an array
    /// or map.
    pub fn leave(&mut self) -> Result<Item<'a>> {
        let outside = || Error::data("there is no array or map to leave").at(self.offset());
        let depth = self.walk.innermost().ok_or_else(outside)?;
        loop {
            match self.next().transpose()? {
                Some(item) if self.walk.depth() <= depth && item.event == Event::End => {
                    return Ok(item);
                }
                Some(_) => {}
                None => return Err(Error::eof("the end of an array or map").at(self.offset())),
            }
        }
    }

    fn offset(&self) -> u64 {
        self.base.saturating_add(self.at as u64)
    }

    fn step(&mut self) -> Result<Option<Item<'a>>> {
        let from = self.offset();
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let mut lengths = BufferLengths(self.buffers);
        let source = Input::segment(rest, from, &mut lengths);
        let mut wire = Reader::new(source, self.limits).with_strict(self.strict);
        let walk = &mut self.walk;
        let found = wire.within(walk.depth(), |wire| event(walk, wire))?;
        let place = |offset: u64| usize::try_from(offset - self.base).unwrap_or(usize::MAX);
        self.at = place(wire.offset());
        Ok(found.map(|(start, event)| Item { event, range: place(start)..self.at }))
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = Result<Item<'a>>;

    fn next(&mut self) -> Option<Result<Item<'a>>> {
        let item = self.step().transpose();
        if let Some(Err(_)) = item {
            self.walk = Walk::default();
            self.at = self.bytes.len();
        }
        item
    }
}

/// Reads up to the next event that is reported. Also returns the offset at which its item starts. Returns
/// `None` at the end of the input.
fn event<'a>(walk: &mut Walk, wire: &mut Reader<'a, '_>) -> Result<Option<(u64, Event<'a>)>> {
    // The events that are not reported take no bytes.
    let start = wire.offset();
    loop {
        if walk.depth() == 0 && wire.peek()?.is_none() {
            return Ok(None);
        }
        let event = match walk.next(wire)? {
            None
            | Some(Found::Element(_) | Found::Value { .. } | Found::End { major: head::TAG, .. }) =>
            {
                continue;
            }
            Some(Found::Key(_)) => Event::Key(key(walk.take(wire))?),
            Some(Found::Array(_)) => Event::Array,
            Some(Found::Map(_)) => Event::Map,
            Some(Found::End { start, .. }) => return Ok(Some((start, Event::End))),
            Some(Found::Tag(tag::BIGNUM | tag::NEGATIVE_BIGNUM)) => {
                walk.take(wire).within(1, Reader::skip)?;
                Event::Integer
            }
            Some(Found::Tag(tag)) if tag::is_array(tag) => {
                let item = walk.take(wire).tensor(tag)?;
                wire.skip_payload(&item)?;
                Event::Payload(Payload::of(item))
            }
            Some(Found::Tag(tag)) => Event::Tag(tag),
            Some(Found::Leaf(head)) => leaf(wire, head)?,
        };
        return Ok(Some((start, event)));
    }
}

/// Reads a map key.
fn key<'a>(wire: &mut Reader<'a, '_>) -> Result<Key<'a>> {
    let head = wire.peek_head()?.map(|(head, _)| head);
    let step = spelling::key(wire)?;
    Ok(match head {
        Some(head) if head.major() == head::TEXT => Key::Text(step),
        Some(head) if head.major() == head::UNSIGNED => Key::Integer(head.arg.into()),
        // The argument of a negative integer n is -1 - n, which is !n (RFC 8949, section 3.1).
        Some(head) if head.major() == head::NEGATIVE => Key::Integer(!i128::from(head.arg)),
        _ => Key::Other(step.into_owned()),
    })
}

/// Reads the content of an item that is not an array, map or tag. Its head was read.
fn leaf<'a>(wire: &mut Reader<'a, '_>, head: Head) -> Result<Event<'a>> {
    Ok(match head.major() {
        head::UNSIGNED | head::NEGATIVE => Event::Integer,
        head::BYTES => wire.string(head).map(|_| Event::Bytes)?,
        head::TEXT => wire.text(head).map(|_| Event::Text)?,
        _ => match head.initial {
            head::FALSE | head::TRUE => Event::Bool,
            head::NULL => Event::Null,
            head::UNDEFINED => Event::Undefined,
            head::HALF | head::SINGLE | head::DOUBLE => Event::Float,
            _ => Event::Simple,
        },
    })
}

impl Payload {
    fn of(item: TensorItem) -> Self {
        let form = match item.kind {
            Kind::Tensor => Form::Tensor,
            Kind::Numbers => Form::Numbers,
            Kind::Bytes => Form::Bytes,
        };
        let buffer = match item.payload {
            ItemPayload::Buffer { number, .. } => Some(number),
            _ => None,
        };
        Self { form, byte_len: item.payload.len() as u64, buffer, meta: item.meta }
    }
}
