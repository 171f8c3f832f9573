//! What of a value in an archive can stand under a name in a flat file: tensors, and arrays of texts.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use super::Losses;
use crate::archive::Segment;
use crate::error::{Error, Result};
use crate::io::at::ReadAt;
use crate::io::source::SliceRead;
use crate::options::Limits;
use crate::segment::path::{is_leaf, key, tensor_at};
use crate::tensor::{Deferred, DynTensor, Tensor};
use crate::wire::head;
use crate::wire::reader::{Left, Wire};
use crate::wire::tag;
use crate::wire::tensor::Kind;

/// The one key of a file that is no name of a tensor.
pub const METADATA: &str = "__metadata__";

/// Names and their texts.
pub type Metadata = Vec<(String, String)>;

/// Texts as a map, in their order.
pub struct AsTexts<'a>(pub &'a [(String, String)]);

impl Serialize for AsTexts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, text)| (key, text)))
    }
}

/// Refuses keys that stand there twice.
pub fn check_keys(metadata: &[(String, String)]) -> Result<()> {
    let mut keys: Vec<&str> = metadata.iter().map(|(key, _)| key.as_str()).collect();
    keys.sort_unstable();
    let twice = keys.iter().zip(keys.iter().skip(1)).find(|(a, b)| a == b);
    match twice {
        Some((key, _)) => {
            let what = "expected each key once, found one twice";
            Err(Error::data(what).in_field(*key))
        }
        None => Ok(()),
    }
}

/// Tensors and their names, which are their paths, joined by dots.
pub struct Exported<'a> {
    pub tensors: Vec<(String, Deferred<'a>)>,
    /// Arrays of nothing but texts, where they were asked for.
    pub texts: Vec<(String, Vec<String>)>,
    /// Where each stands in the metadata, by which tensors and texts have an order.
    pub starts: HashMap<String, usize>,
    /// The map of texts under [`METADATA`].
    pub metadata: Option<Metadata>,
    /// All the rest.
    pub losses: Losses,
}

impl<'a> Exported<'a> {
    /// Looks through the metadata of a value, without reading its tensors.
    pub fn of<S: ReadAt + ?Sized>(segment: &'a Segment<'_, S>, texts: bool) -> Result<Self> {
        let bytes = segment.metadata()?;
        let limits = segment.options.limits;
        let wire = Wire::new(SliceRead::new(bytes), limits);
        let mut walk = Walk {
            bytes,
            left: most(bytes),
            wire,
            take_texts: texts,
            steps: Vec::new(),
            found: Found::default(),
            losses: Losses::default(),
        };
        walk.item()?;
        let Walk { found, mut losses, .. } = walk;
        let metadata = found.metadata.map(|range| segment.decode::<Texts>(range));
        let metadata = metadata.transpose()?.map(|Texts(pairs)| pairs);
        let mut starts = HashMap::with_capacity(found.tensors.len() + found.texts.len());
        let mut once = |name: &String, range: &Range<usize>| {
            if starts.insert(name.clone(), range.start).is_none() {
                return Ok(());
            }
            let what = "there are two tensors of this name, by paths that read alike";
            Err(Error::data(what).in_field(name))
        };
        let mut tensors = Vec::with_capacity(found.tensors.len());
        for (name, range) in found.tensors {
            let (base, item) = segment.item(range.clone())?;
            let (item, _) = tensor_at(item, base, segment.header(), limits)
                .map_err(|error| error.in_field(name.as_str()))?;
            if item.kind == Kind::Bytes {
                losses.add(&name, "a byte string is no tensor: it is left out");
                continue;
            }
            once(&name, &range)?;
            let (meta, len) = (&item.meta, item.payload.len());
            let read = move |put: &mut dyn FnMut(&[u8]) -> Result<()>| {
                let tensor: Tensor<DynTensor> = segment.decode(range.clone())?;
                put(&tensor.le_bytes())
            };
            let shape = &meta.shape;
            let deferred = Deferred::from_blocks(meta.dtype.clone(), shape, meta.order, read);
            tensors.push((name, deferred.with_byte_len(len)));
        }
        let mut texts = Vec::with_capacity(found.texts.len());
        for (name, range) in found.texts {
            once(&name, &range)?;
            texts.push((name, segment.decode(range)?));
        }
        Ok(Self { tensors, texts, starts, metadata, losses })
    }
}

/// Where in the metadata of a segment something stands.
#[derive(Default)]
struct Found {
    /// Names, and the items that may be tensors.
    tensors: Vec<(String, Range<usize>)>,
    texts: Vec<(String, Range<usize>)>,
    metadata: Option<Range<usize>>,
}

/// A walk over a value's items.
struct Walk<'m> {
    bytes: &'m [u8],
    /// Bytes that names may still take.
    left: usize,
    wire: Wire<SliceRead<'m>>,
    take_texts: bool,
    /// From the outermost value to this one; a key that cannot be named is none.
    steps: Vec<Option<String>>,
    found: Found,
    losses: Losses,
}

/// Characters of each step, and bytes before the last, that are told of what is lost.
const MAX_PATH: usize = 256;

/// What the names of a value's tensors may take, as paths in archives.
fn most(metadata: &[u8]) -> usize {
    metadata.len().saturating_mul(16).max(1 << 20)
}

impl Walk<'_> {
    fn at(&self) -> usize {
        usize::try_from(self.wire.offset()).unwrap_or(usize::MAX)
    }

    /// The name of a tensor here. One long key stands in the names of all that is under it.
    fn name(&mut self) -> Result<String> {
        let len = self.steps.iter().flatten().map(|step| step.len() + 1).sum();
        self.left = self.left.checked_sub(len).ok_or_else(|| {
            let most = most(self.bytes);
            Error::limit(format!("names of tensors take more than {most} bytes"))
        })?;
        let steps: Vec<&str> =
            self.steps.iter().map(|step| step.as_deref().unwrap_or("?")).collect();
        Ok(steps.join("."))
    }

    fn lose(&mut self, what: &str) {
        let mut path = String::new();
        if self.losses.lists_more() {
            for (at, step) in self.steps.iter().enumerate() {
                if path.len() > MAX_PATH {
                    break;
                }
                if at > 0 {
                    path.push('.');
                }
                path.extend(step.as_deref().unwrap_or("?").chars().take(MAX_PATH));
            }
        }
        self.losses.add(&path, what);
    }

    /// Passes over the next item, and keeps what of it can be kept.
    fn item(&mut self) -> Result<()> {
        let start = self.at();
        if self.take_texts
            && !self.steps.is_empty()
            && !self.steps.contains(&None)
            && self.texts()?
        {
            let name = self.name()?;
            self.found.texts.push((name, start..self.at()));
            return Ok(());
        }
        let head = self.wire.head()?;
        match head.major() {
            head::ARRAY | head::MAP => self.container(head),
            head::TAG if tag::is_array(head.arg) => {
                self.wire.within(1, Wire::skip)?;
                if self.steps.is_empty() {
                    return Err(Error::data(
                        "the value is a tensor by itself, which has no name: save it in a map",
                    ));
                }
                if self.steps.contains(&None) {
                    self.lose(
                        "a tensor under a key that is no text and no integer: it is left out",
                    );
                } else {
                    let name = self.name()?;
                    self.found.tensors.push((name, start..self.at()));
                }
                Ok(())
            }
            // What any other tag stands around is where the tag is.
            head::TAG if !is_leaf(head.arg) => {
                if head.arg != tag::SOME {
                    self.lose(&format!("tag {} around it is left out", head.arg));
                }
                self.wire.enter()?;
                self.item()?;
                self.wire.leave();
                Ok(())
            }
            _ if self.steps.is_empty() => {
                let found = head::name(head.initial);
                Err(Error::data(format!("expected a value with tensors, found {found}")))
            }
            major => {
                match major {
                    head::BYTES | head::TEXT => self.wire.string(head).map(drop)?,
                    head::TAG => self.wire.within(1, Wire::skip)?,
                    _ => {}
                }
                self.lose(&format!("{} is no tensor: it is left out", head::name(head.initial)));
                Ok(())
            }
        }
    }

    /// Passes over the next item, if it is an array of nothing but texts; whether it was one.
    fn texts(&mut self) -> Result<bool> {
        let item = self.bytes.get(self.at()..).unwrap_or_default();
        let mut wire = Wire::new(SliceRead::new(item), Limits::default());
        let head = wire.head()?;
        if head.major() != head::ARRAY {
            return Ok(false);
        }
        let mut left = Left::of(head);
        while wire.more(&mut left)? {
            let next = wire.peek_head()?;
            if next.is_none_or(|(head, _)| head.major() != head::TEXT) {
                return Ok(false);
            }
            wire.within(0, Wire::skip)?;
        }
        self.wire.within(0, Wire::skip).map(|()| true)
    }

    fn container(&mut self, head: head::Head) -> Result<()> {
        self.wire.enter()?;
        let mut left = Left::of(head);
        let mut count = 0u64;
        while self.wire.more(&mut left)? {
            let step = if head.major() == head::MAP {
                key(&mut self.wire)?
            } else {
                Some(count.to_string())
            };
            count += 1;
            let is_metadata = self.steps.is_empty() && step.as_deref() == Some(METADATA);
            if is_metadata && self.metadata()? {
                continue;
            }
            self.steps.push(step);
            self.item()?;
            self.steps.pop();
        }
        if count == 0 && !self.steps.is_empty() {
            self.lose("it is empty, and left out");
        }
        self.wire.leave();
        Ok(())
    }

    /// Passes over the map under `__metadata__`, if the next item is a map: kept if it is one of texts.
    /// Whether it was one.
    fn metadata(&mut self) -> Result<bool> {
        let next = self.wire.peek_head()?;
        if next.is_none_or(|(head, _)| head.major() != head::MAP) {
            return Ok(false);
        }
        let start = self.at();
        self.wire.within(0, Wire::skip)?;
        let range = start..self.at();
        let item = self.bytes.get(range.clone()).unwrap_or_default();
        if self.found.metadata.is_none() && crate::from_slice::<Texts>(item).is_ok() {
            self.found.metadata = Some(range);
        } else {
            self.losses.add(METADATA, "it is no map of texts, and left out");
        }
        Ok(true)
    }
}

/// A map of texts, in its order.
struct Texts(Metadata);

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextsVisitor;

        impl<'de> Visitor<'de> for TextsVisitor {
            type Value = Texts;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of texts")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Texts, M::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Texts(pairs))
            }
        }

        deserializer.deserialize_map(TextsVisitor)
    }
}
