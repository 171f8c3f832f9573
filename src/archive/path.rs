//! Paths into the metadata of a segment: `layers.3.weight`, or `/layers/3/weight`.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::ops::Range;

use ndarray::Dimension;

use super::header::Header;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::io::apart::{Buffers, SegmentRead};
use crate::io::source::{Read, SliceRead};
use crate::meta::{Order, TensorMeta};
use crate::options::Limits;
use crate::wire::head::{self, Head, Parsed};
use crate::wire::reader::{Item, Left, Text, Wire, unexpected_break};
use crate::wire::tag;
use crate::wire::tensor::{Kind, Payload, TensorItem};

/// A tensor of an archive, without its elements. Sequences of numbers that are stored as one block,
/// such as a `Vec<f32>`, are listed as tensors of one dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    path: String,
    meta: TensorMeta,
    byte_len: u64,
    buffer: Option<u64>,
}

impl TensorInfo {
    /// Where the tensor is in the value: field names, map keys and element numbers joined by dots,
    /// as [`Archive::tensor`](crate::Archive::tensor) takes it. A path that could mean several
    /// values is given as a JSON Pointer instead (RFC 6901), with a leading slash.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The type of the elements.
    pub fn dtype(&self) -> &DType {
        &self.meta.dtype
    }

    /// The dimensions.
    pub fn shape(&self) -> &[usize] {
        self.meta.shape.slice()
    }

    /// How the elements follow each other.
    pub fn order(&self) -> Order {
        self.meta.order
    }

    /// Dtype, shape and order.
    pub fn meta(&self) -> &TensorMeta {
        &self.meta
    }

    /// The number of payload bytes.
    pub fn byte_len(&self) -> u64 {
        self.byte_len
    }

    /// The number of the buffer that the payload is, counted from zero in its segment; `None` where
    /// it stands inline in the metadata. Tied tensors share one.
    pub fn buffer(&self) -> Option<u64> {
        self.buffer
    }
}

/// Knows the lengths of buffers, not their contents.
pub struct Lengths<'a>(pub &'a Header);

fn no_content() -> Error {
    Error::data("contents of buffers are not read here")
}

impl<'de> Buffers<'de> for Lengths<'_> {
    fn len_of(&self, number: u64) -> Option<u64> {
        self.0.buffer(number).map(|(_, len)| len)
    }

    fn count(&self) -> u64 {
        self.0.count() as u64
    }

    fn cost(&mut self, _: u64, _: u64) -> u64 {
        0
    }

    fn lend(&mut self, _: u64) -> Result<&'de [u8]> {
        Err(no_content())
    }

    fn is_backed(&self) -> bool {
        true
    }

    fn start(&mut self, _: u64, _: u64) -> Result<()> {
        Err(no_content())
    }

    fn read(&mut self, _: &mut [u8]) -> Result<()> {
        Err(no_content())
    }

    fn finish(&mut self) -> Result<()> {
        Err(no_content())
    }
}

/// Where the item at `path` stands in `metadata`.
pub fn find(metadata: &[u8], path: &str, limits: Limits) -> Result<Range<usize>> {
    let steps = match path {
        "" => return Ok(0..metadata.len()),
        pointer if pointer.starts_with('/') => Steps::Pointer(pointer),
        dotted => Steps::Dotted(dotted),
    };
    let mut search = Search { bytes: metadata, at: 0, limits, found: None };
    search.descend(steps, limits.max_depth, true).map_err(|error| error.in_field(path))?;
    search.found.ok_or_else(|| {
        Error::data(format!("the archive has no value at `{}`", path.escape_debug()))
    })
}

/// What is left of a path.
#[derive(Clone, Copy)]
enum Steps<'a> {
    Dotted(&'a str),
    /// Empty, or steps that start with a slash each.
    Pointer(&'a str),
}

impl<'a> Steps<'a> {
    fn is_empty(self) -> bool {
        matches!(self, Self::Pointer(""))
    }

    /// The number that the next step is, written as numbers are, and what is left behind it.
    fn index(self) -> (Option<u64>, Option<Self>) {
        let path = match self {
            Self::Dotted(path) => path,
            Self::Pointer(path) => path.get(1..).unwrap_or_default(),
        };
        let digits = path.bytes().take_while(u8::is_ascii_digit).count();
        let number = path.get(..digits).unwrap_or_default();
        let is_plain = number == "0" || !number.starts_with('0');
        (number.parse().ok().filter(|_| is_plain), self.next().after(number.as_bytes()))
    }

    /// The step into a map.
    fn next(self) -> Next<'a> {
        match self {
            Self::Dotted(path) => Next::Dotted(path),
            Self::Pointer(path) => {
                let rest = path.strip_prefix('/').unwrap_or(path);
                let (step, rest) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
                let step = if step.contains('~') {
                    step.replace("~1", "/").replace("~0", "~").into()
                } else {
                    step.into()
                };
                Next::Pointer(step, rest)
            }
        }
    }
}

/// A step into a map, before it is known which keys that has.
enum Next<'a> {
    /// Any key that starts the path, and ends where a dot or the path's end is.
    Dotted(&'a str),
    /// One key, and what is left behind it.
    Pointer(Cow<'a, str>, &'a str),
}

impl<'a> Next<'a> {
    /// What is left behind a step by `key`, if that is a way on.
    #[inline]
    fn after(&self, key: &[u8]) -> Option<Steps<'a>> {
        match self {
            Self::Dotted(path) => {
                let rest = path.as_bytes().strip_prefix(key)?;
                match rest.first() {
                    None => Some(Steps::Pointer("")),
                    Some(b'.') => path.get(key.len() + 1..).map(Steps::Dotted),
                    Some(_) => None,
                }
            }
            Self::Pointer(step, rest) => (step.as_bytes() == key).then_some(Steps::Pointer(rest)),
        }
    }
}

/// A search through encoded items, which passes over whatever is not on the way.
struct Search<'a> {
    bytes: &'a [u8],
    at: usize,
    limits: Limits,
    found: Option<Range<usize>>,
}

impl<'a> Search<'a> {
    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    fn head(&mut self) -> Result<Head> {
        match head::parse(self.rest()) {
            Parsed::Head(head, len) => {
                self.at += len;
                Ok(head)
            }
            Parsed::Short(_) => Err(Error::eof("more metadata").at(self.at as u64)),
            Parsed::Malformed(why) => Err(Error::syntax(why).at(self.at as u64)),
        }
    }

    fn skip(&mut self) -> Result<()> {
        match head::item_len(self.rest()) {
            Some(len) => self.at += len,
            // Lengths that are not stated, or worse.
            None => {
                let mut wire = Wire::new(SliceRead::new(self.rest()), self.limits);
                wire.skip().map_err(|error| error.moved_by(self.at as u64))?;
                self.at += usize::try_from(wire.offset()).unwrap_or(usize::MAX);
            }
        }
        Ok(())
    }

    /// Whether a container has one more item.
    fn more(&mut self, left: &mut Left) -> bool {
        if left.known().is_none() && self.rest().first() == Some(&head::BREAK) {
            self.at += 1;
            return false;
        }
        left.take_one()
    }

    /// Looks for what `steps` lead to in the next item, and passes over it. If it is the `last` that
    /// steps can lead to, what stands behind the value need not be passed over. A map is looked
    /// through to its end: a key that stands there twice names nothing.
    fn descend(&mut self, steps: Steps<'_>, depth: usize, last: bool) -> Result<()> {
        if steps.is_empty() {
            let start = self.at;
            self.skip()?;
            if self.found.replace(start..self.at).is_some() {
                return Err(Error::data(
                    "several values are there, by a key that stands twice or by keys with dots, of \
                     which a JSON Pointer names one, as in /a.b/c",
                ));
            }
            return Ok(());
        }
        let start = self.at;
        let depth = depth
            .checked_sub(1)
            .ok_or_else(|| Error::limit("nesting is deeper than the limit").at(start as u64))?;
        let head = self.head()?;
        match head.major() {
            head::ARRAY => {
                let (wanted, behind) = steps.index();
                let mut left = Left::of(head);
                let mut count = 0u64;
                while self.more(&mut left) {
                    let steps = if wanted == Some(count) { behind } else { None };
                    self.step(steps, depth, last)?;
                    // No other element has this number.
                    if last && self.found.is_some() {
                        return Ok(());
                    }
                    count += 1;
                }
            }
            head::MAP => {
                let next = steps.next();
                let mut left = Left::of(head);
                while self.more(&mut left) {
                    let steps = self.key(&next)?;
                    self.step(steps, depth, last && left.known() == Some(0))?;
                }
            }
            // A tensor is a leaf; what any other tag stands around is where the tag is.
            head::TAG if !is_leaf(head.arg) => self.descend(steps, depth, last)?,
            _ => {
                self.at = start;
                self.skip()?;
            }
        }
        Ok(())
    }

    #[inline]
    fn step(&mut self, steps: Option<Steps<'_>>, depth: usize, last: bool) -> Result<()> {
        match steps {
            Some(steps) => self.descend(steps, depth, last),
            None => self.skip(),
        }
    }

    /// Passes over a map key; what is left of the path behind it.
    fn key<'s>(&mut self, next: &Next<'s>) -> Result<Option<Steps<'s>>> {
        if let Some((head::TEXT, key_len, len)) = head::definite(self.rest())
            && let Some(rest) = self.rest().get(len..)
            && let Some(key) = usize::try_from(key_len).ok().and_then(|len| rest.get(..len))
        {
            self.at += len + key.len();
            return Ok(next.after(key));
        }
        let mut wire = Wire::new(SliceRead::new(self.rest()), self.limits);
        let key = key(&mut wire).map_err(|error| error.moved_by(self.at as u64))?;
        self.at += usize::try_from(wire.offset()).unwrap_or(usize::MAX);
        Ok(key.and_then(|key| next.after(key.as_bytes())))
    }
}

/// Whether a tag is that of a tensor, of numbers, or of another item without keys.
fn is_leaf(tag: u64) -> bool {
    matches!(
        tag,
        tag::BIGNUM
            | tag::NEGATIVE_BIGNUM
            | tag::ROW_MAJOR
            | tag::COLUMN_MAJOR
            | tag::COMPLEX
            | tag::TENSOR
            | tag::BUFFER
            | 64..=75
            | 77..=87
    )
}

/// Passes over the rest of an item that is no container, and whose head was read.
fn pass(wire: &mut Wire<SliceRead<'_>>, head: Head) -> Result<()> {
    match head.major() {
        head::BYTES | head::TEXT => wire.string(head).map(drop),
        head::TAG => wire.within(1, Wire::skip),
        _ if head.initial == head::BREAK => Err(unexpected_break().at(wire.offset() - 1)),
        _ => Ok(()),
    }
}

/// The next map key as a step of a path: a text, or an integer in decimal.
fn key<'de, R: Read<'de>>(wire: &mut Wire<R>) -> Result<Option<String>> {
    let head = wire.peek_head()?.map(|(head, _)| head);
    Ok(match head {
        Some(head) if head.major() == head::TEXT => {
            let head = wire.head()?;
            Some(match wire.text(head)? {
                Text::Borrowed(text) => text.to_owned(),
                Text::Copied(text) => text.to_owned(),
                Text::Owned(text) => text,
            })
        }
        Some(head) if head.major() == head::UNSIGNED => Some(wire.head()?.arg.to_string()),
        Some(head) if head.major() == head::NEGATIVE => {
            Some((!i128::from(wire.head()?.arg)).to_string())
        }
        _ => {
            wire.within(0, Wire::skip)?;
            None
        }
    })
}

/// The keys of a map or the positions of an array; an error for anything else.
pub fn keys(metadata: &[u8], path: &str, limits: Limits) -> Result<Vec<String>> {
    let range = find(metadata, path, limits)?;
    let item = metadata.get(range).unwrap_or_default();
    let mut wire = Wire::new(SliceRead::new(item), limits);
    let mut head = wire.head()?;
    while head.major() == head::TAG && !is_leaf(head.arg) {
        head = wire.head()?;
    }
    let mut left = Left::of(head);
    let mut keys = Vec::new();
    match head.major() {
        head::ARRAY => {
            while wire.more(&mut left)? {
                wire.within(0, Wire::skip)?;
                keys.push(keys.len().to_string());
            }
        }
        head::MAP => {
            while wire.more(&mut left)? {
                // A key that is neither text nor integer is no step of a path.
                keys.extend(key(&mut wire)?);
                wire.within(0, Wire::skip)?;
            }
        }
        _ => {
            let found = head::name(head.initial);
            let what = format!("expected a map or an array with keys, found {found}");
            return Err(Error::data(what).in_field(path));
        }
    }
    Ok(keys)
}

/// The tensor that an item is, up to its payload, and where an inline payload stands.
pub fn tensor_at<'de>(
    item: &'de [u8],
    base: u64,
    header: &Header,
    limits: Limits,
) -> Result<(TensorItem, &'de [u8])> {
    let mut lengths = Lengths(header);
    let mut wire = Wire::new(SegmentRead::new(item, base, &mut lengths), limits);
    let at = wire.offset();
    let found = loop {
        match wire.item()? {
            Item::Tag(tag::SOME) => {}
            Item::Tag(tag) if is_leaf(tag) => break wire.tensor(tag)?,
            Item::Head(head) => {
                let found = head::name(head.initial);
                return Err(Error::data(format!("expected a tensor, found {found}")).at(at));
            }
            Item::Tag(tag) => {
                return Err(Error::data(format!("expected a tensor, found tag {tag}")).at(at));
            }
        }
    };
    let start = usize::try_from(wire.offset() - base).unwrap_or(usize::MAX);
    Ok((found, item.get(start..).unwrap_or_default()))
}

impl TensorInfo {
    /// What an item is, which stands at `path`.
    pub(super) fn of(path: String, item: &TensorItem) -> Self {
        let buffer = match item.payload {
            Payload::Buffer { number, .. } => Some(number),
            _ => None,
        };
        Self { path, meta: item.meta.clone(), byte_len: item.payload.len() as u64, buffer }
    }
}

/// All tensors of a segment, in the order of the metadata.
pub fn list(metadata: &[u8], header: &Header, limits: Limits) -> Result<Vec<TensorInfo>> {
    let mut found = Vec::new();
    let pointers = dots_are_ambiguous(&mut Wire::new(SliceRead::new(metadata), limits))
        .map_err(|error| error.moved_by(header.metadata_offset()))?;
    visit(metadata, header, limits, &mut |path, item| {
        if item.kind != Kind::Bytes && path.is_named() {
            found.push(TensorInfo::of(path.text(pointers), item));
        }
    })?;
    Ok(found)
}

/// Whether in any map a key with dots, as safetensors files have, reads like a path through another
/// key beside it.
fn dots_are_ambiguous(wire: &mut Wire<SliceRead<'_>>) -> Result<bool> {
    let head = wire.head()?;
    let mut ambiguous = false;
    match head.major() {
        head::ARRAY => {
            wire.enter()?;
            let mut left = Left::of(head);
            while wire.more(&mut left)? {
                ambiguous |= dots_are_ambiguous(wire)?;
            }
            wire.leave();
        }
        head::MAP => {
            wire.enter()?;
            let mut left = Left::of(head);
            let mut keys = Vec::new();
            while wire.more(&mut left)? {
                keys.extend(key(wire)?);
                ambiguous |= dots_are_ambiguous(wire)?;
            }
            wire.leave();
            ambiguous |= one_leads_through_another(&keys);
        }
        head::TAG if !is_leaf(head.arg) => {
            wire.enter()?;
            ambiguous = dots_are_ambiguous(wire)?;
            wire.leave();
        }
        _ => pass(wire, head)?,
    }
    Ok(ambiguous)
}

fn one_leads_through_another(keys: &[String]) -> bool {
    if !keys.iter().any(|key| key.contains('.')) {
        return false;
    }
    let all: HashSet<&str> = keys.iter().map(String::as_str).collect();
    let leads = |key: &String| {
        key.match_indices('.').any(|(at, _)| all.contains(key.get(..at).unwrap_or_default()))
    };
    keys.iter().any(leads)
}

/// Calls `each` with every tensor, sequence of numbers and byte string in a buffer.
pub fn visit(
    metadata: &[u8],
    header: &Header,
    limits: Limits,
    each: &mut dyn FnMut(&Path, &TensorItem),
) -> Result<()> {
    let mut lengths = Lengths(header);
    let base = header.metadata_offset();
    let mut wire = Wire::new(SegmentRead::new(metadata, base, &mut lengths), limits);
    let mut path = Path::default();
    let visited = visit_item(&mut wire, Some(&mut path), &mut |path, _, item| {
        if let Some(path) = path {
            each(path, item);
        }
    });
    visited.map_err(
        |error| if path.0.is_empty() { error } else { error.in_field(path.text(false)) },
    )?;
    if wire.peek()?.is_some() {
        return Err(Error::data("expected one item of metadata, found more").at(wire.offset()));
    }
    Ok(())
}

/// Calls `each` with every tensor, sequence of numbers and byte string, and the position behind it up
/// to its payload.
pub fn references(
    metadata: &[u8],
    header: &Header,
    limits: Limits,
    each: &mut dyn FnMut(u64, &TensorItem),
) -> Result<()> {
    let mut lengths = Lengths(header);
    let base = header.metadata_offset();
    let mut wire = Wire::new(SegmentRead::new(metadata, base, &mut lengths), limits);
    visit_item(&mut wire, None, &mut |_, at, item| each(at, item))
}

/// The steps from the outermost value to one inside.
#[derive(Default)]
pub struct Path(Vec<Step>);

enum Step {
    Key(String),
    Index(u64),
    /// By a key that is neither text nor integer, or into one.
    Unnamed,
}

impl Path {
    /// Whether the path can be asked for.
    fn is_named(&self) -> bool {
        !self.0.iter().any(|step| matches!(step, Step::Unnamed))
    }

    /// Dotted, unless a key holds a dot, starts with a slash or is empty: then a JSON Pointer.
    pub fn text(&self, pointer: bool) -> String {
        let plain = !pointer
            && self.0.iter().enumerate().all(|(at, step)| match step {
                Step::Key(key) => {
                    !key.is_empty() && !key.contains('.') && (at > 0 || !key.starts_with('/'))
                }
                Step::Index(_) | Step::Unnamed => true,
            });
        // A flat key with dots, as safetensors files have, is its own path.
        if let [Step::Key(key)] = &self.0[..]
            && !pointer
            && !key.is_empty()
            && !key.starts_with('/')
        {
            return key.clone();
        }
        let mut text = String::new();
        for (at, step) in self.0.iter().enumerate() {
            if !plain {
                text.push('/');
            } else if at > 0 {
                text.push('.');
            }
            match step {
                Step::Key(key) if plain => text.push_str(key),
                Step::Key(key) => text.push_str(&key.replace('~', "~0").replace('/', "~1")),
                Step::Index(index) => {
                    let _ = write!(text, "{index}");
                }
                Step::Unnamed => text.push('?'),
            }
        }
        text
    }
}

/// What is called with each tensor: its path if that is kept, the position behind it up to its
/// payload, and itself.
type Each<'a> = dyn FnMut(Option<&Path>, u64, &TensorItem) + 'a;

fn visit_item<'de, R: Read<'de>>(
    wire: &mut Wire<R>,
    mut path: Option<&mut Path>,
    each: &mut Each<'_>,
) -> Result<()> {
    match wire.item()? {
        Item::Tag(tag::BIGNUM | tag::NEGATIVE_BIGNUM) => wire.within(1, Wire::skip),
        Item::Tag(tag::SOME) => {
            wire.enter()?;
            visit_item(wire, path, each)?;
            wire.leave();
            Ok(())
        }
        Item::Tag(tag) => {
            let item = wire.tensor(tag)?;
            each(path.as_deref(), wire.offset(), &item);
            wire.pass_payload(&item)
        }
        Item::Head(head) => match head.major() {
            head::ARRAY | head::MAP => {
                wire.enter()?;
                let mut left = Left::of(head);
                let mut index = 0;
                while wire.more(&mut left)? {
                    if head.major() == head::MAP {
                        visit_key(wire, path.as_deref_mut(), each)?;
                    } else if let Some(path) = &mut path {
                        path.0.push(Step::Index(index));
                    }
                    visit_item(wire, path.as_deref_mut(), each)?;
                    if let Some(path) = &mut path {
                        path.0.pop();
                    }
                    index += 1;
                }
                wire.leave();
                Ok(())
            }
            head::BYTES => wire.string(head).map(drop),
            head::TEXT => wire.text(head).map(drop),
            _ if head.initial == head::BREAK => Err(unexpected_break().at(wire.offset() - 1)),
            _ => Ok(()),
        },
    }
}

/// Passes over a key, which may hold tensors too, and makes it the last step of the path.
fn visit_key<'de, R: Read<'de>>(
    wire: &mut Wire<R>,
    mut path: Option<&mut Path>,
    each: &mut Each<'_>,
) -> Result<()> {
    let named = wire.peek_head()?.is_some_and(|(head, _)| {
        matches!(head.major(), head::TEXT | head::UNSIGNED | head::NEGATIVE)
    });
    match path.as_deref_mut() {
        Some(path) if named => path.0.push(Step::Key(key(wire)?.unwrap_or_default())),
        None if named => wire.within(0, Wire::skip)?,
        _ => {
            if let Some(path) = path.as_deref_mut() {
                path.0.push(Step::Unnamed);
            }
            visit_item(wire, path, each)?;
        }
    }
    Ok(())
}
