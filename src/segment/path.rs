//! What paths there are in the metadata of a segment, and what stands there.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use super::find::find;
use super::header::Header;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::io::buffers::{Buffers, Contents};
use crate::io::source::{Read, SliceRead};
use crate::meta::{Order, TensorMeta};
use crate::options::Limits;
use crate::segment::read::SegmentRead;
use crate::wire::head::{self, Head};
use crate::wire::reader::{Item, Left, Wire, unexpected_break};
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
        &self.meta.shape
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

    fn contents(&mut self) -> Contents<'_, 'de> {
        Contents::Unknown
    }
}

/// Whether a tag is that of a tensor, of numbers, or of another item without keys.
pub fn is_leaf(tag: u64) -> bool {
    matches!(tag, tag::BIGNUM | tag::NEGATIVE_BIGNUM) || tag::is_array(tag)
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
pub fn key<'de, R: Read<'de>>(wire: &mut Wire<R>) -> Result<Option<String>> {
    let head = wire.peek_head()?.map(|(head, _)| head);
    Ok(match head {
        Some(head) if head.major() == head::TEXT => {
            let head = wire.head()?;
            Some(wire.text(head)?.as_str().to_owned())
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
    /// What is to be written at `path`.
    pub(crate) fn to_come(path: String, meta: TensorMeta, len: usize) -> Self {
        Self { path, meta, byte_len: len as u64, buffer: None }
    }

    /// What an item is, which stands at `path`.
    pub(crate) fn of(path: String, item: &TensorItem) -> Self {
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
    inform(metadata, header, limits, &mut |path, item, info| {
        if item.kind != Kind::Bytes && path.is_named() {
            found.push(info()?);
        }
        Ok(())
    })?;
    Ok(found)
}

/// For each buffer, the first payload that it is the content of; `None` where nothing refers to it.
pub fn in_buffers(
    metadata: &[u8],
    header: &Header,
    limits: Limits,
) -> Result<Vec<Option<TensorInfo>>> {
    let mut found = vec![None; header.count()];
    inform(metadata, header, limits, &mut |_, item, info| {
        if let Payload::Buffer { number, .. } = item.payload
            && let Some(first @ None) =
                usize::try_from(number).ok().and_then(|number| found.get_mut(number))
        {
            *first = Some(info()?);
        }
        Ok(())
    })?;
    Ok(found)
}

/// All paths of a value may take so much, however little metadata they stand for.
const PATHS: usize = 16 << 20;

/// What is called with each payload: its path, itself, and what makes a description of it.
type Inform<'a> =
    dyn FnMut(&Path, &TensorItem, &mut dyn FnMut() -> Result<TensorInfo>) -> Result<()> + 'a;

fn inform(metadata: &[u8], header: &Header, limits: Limits, each: &mut Inform<'_>) -> Result<()> {
    let pointers = dots_are_ambiguous(&mut Wire::new(SliceRead::new(metadata), limits))
        .map_err(|error| error.moved_by(header.metadata_offset()))?;
    // One long key stands in the paths of all that is under it.
    let budget = usize::try_from(limits.alloc_budget(false)).unwrap_or(usize::MAX);
    let most = metadata.len().saturating_mul(16).max(PATHS).min(budget);
    let mut left = most;
    let mut result = Ok(());
    visit(metadata, header, limits, &mut |path, item| {
        let mut info = || {
            let text = path.text(pointers);
            left = left.checked_sub(text.len()).ok_or_else(|| {
                Error::limit(format!("paths of tensors take more than {most} bytes"))
            })?;
            Ok(TensorInfo::of(text, item))
        };
        if result.is_ok() {
            result = each(path, item, &mut info);
        }
    })?;
    result
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

/// Bytes of the shortest reference: tag, array, number.
pub const MIN_REFERENCE: usize = 5 + 1 + 1;

/// The first buffer that nothing refers to.
pub fn unreferred(metadata: &[u8], header: &Header, limits: Limits) -> Result<Option<usize>> {
    let mut seen = vec![false; header.count()];
    references(metadata, header, limits, &mut |_, item| {
        if let Payload::Buffer { number, .. } = item.payload
            && let Some(seen) = usize::try_from(number).ok().and_then(|at| seen.get_mut(at))
        {
            *seen = true;
        }
    })?;
    Ok(seen.iter().position(|seen| !seen))
}

/// The steps from the outermost value to one inside.
#[derive(Default)]
pub struct Path(pub(super) Vec<Step>);

#[derive(Clone)]
pub enum Step {
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

/// The keys of a map, and what those are that are tensors.
pub fn entries(
    metadata: &[u8],
    header: &Header,
    limits: Limits,
) -> Result<Vec<(String, Option<TensorMeta>)>> {
    let mut metas = HashMap::new();
    visit(metadata, header, limits, &mut |path, item| {
        if let [Step::Key(key)] = &path.0[..]
            && item.kind != Kind::Bytes
        {
            metas.insert(key.clone(), item.meta.clone());
        }
    })?;
    let keys = keys(metadata, "", limits)?;
    Ok(keys.into_iter().map(|key| (key.clone(), metas.get(&key).cloned())).collect())
}
