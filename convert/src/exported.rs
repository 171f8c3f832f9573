//! What of a value in an archive can stand under a name in a flat file: tensors, and arrays of texts.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use tenarc::inspect::{COLUMNS, Event, Form, Item, Items, Key, Payload, SOME};
use tenarc::tensor::{Deferred, TensorMeta};
use tenarc::{Error, Result};

use super::Losses;
use crate::columns::escaped;
use crate::nested::MAX_STEPS;
use crate::stored::Stored;

/// The one key of a file that is no name of a tensor.
pub const METADATA: &str = "__metadata__";

/// Names and their texts.
pub type Metadata = Vec<(String, String)>;

/// Texts, or other values, as a map, in their order.
pub struct AsTexts<'a, T>(pub &'a [(String, T)]);

impl<T: Serialize> Serialize for AsTexts<'_, T> {
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
    /// Texts, as far as they were asked for.
    pub texts: Vec<(String, Vec<String>)>,
    /// The names of those that are single texts, and no arrays.
    pub single: HashSet<String>,
    /// Where each stands in the metadata, by which tensors and texts have an order.
    pub starts: HashMap<String, usize>,
    /// The map of texts under [`METADATA`].
    pub metadata: Option<Metadata>,
    /// Whether the value is nested, and comes back if the names are taken apart.
    pub nested: bool,
    /// All the rest.
    pub losses: Losses,
}

/// Which texts are kept beside tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    Tensors,
    /// Nothing else. What is under [`METADATA`] is no loss: the caller reads it.
    TensorsBesideMetadata,
    /// Arrays of nothing but texts.
    TextArrays,
    /// These, and single texts.
    Texts,
}

impl<'a> Exported<'a> {
    /// Looks through the metadata of a value, without reading its tensors.
    pub fn of(value: &'a dyn Stored, keep: Keep) -> Result<Self> {
        let bytes = value.metadata()?;
        let items = value.items()?;
        let mut walk = Walk {
            bytes,
            left: most(bytes),
            items,
            keep,
            steps: Vec::new(),
            found: Found::default(),
            nesting: Nesting::default(),
            losses: value.lost(),
        };
        let item = walk.next()?;
        walk.item(item)?;
        let Walk { found, nesting, mut losses, .. } = walk;
        let Nesting { nested, dotted, changed_key, mut changed } = nesting;
        if nested && dotted {
            changed = changed.or(Some("a key has a dot, so names cannot be taken apart again"));
        }
        if let Some(why) = changed {
            losses.add("", format!("the nesting of the tensors is left out: {why}"));
        }
        for columns in &found.columns {
            let name = columns.name.escape_debug();
            losses.note(format!("`{name}`: a tensor for each column takes the place of its rows"));
        }
        let item = |range: Range<usize>| bytes.get(range).unwrap_or_default();
        let metadata = found.metadata.map(|range| tenarc::from_slice::<Texts>(item(range)));
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
        for (name, payload, range) in found.tensors {
            once(&name, &range)?;
            tensors.push((name, deferred(value, payload, range)));
        }
        for Columns { pointer, name, at } in found.columns {
            for column in value.columns(&pointer, &name, &mut losses)? {
                once(&column.0, &(at..at))?;
                tensors.push(column);
            }
        }
        let mut texts = Vec::with_capacity(found.texts.len());
        for (name, range) in found.texts {
            once(&name, &range)?;
            let start = range.start as u64;
            let read = if found.single.contains(&name) {
                tenarc::from_slice(item(range)).map(|text| vec![text])
            } else {
                tenarc::from_slice(item(range))
            };
            texts.push((name, read.map_err(|error| error.moved_by(start))?));
        }
        let nested = nested && changed.is_none() && !changed_key;
        let single = found.single;
        Ok(Self { tensors, texts, single, starts, metadata, nested, losses })
    }
}

/// A tensor that is read when it is written.
fn deferred(value: &dyn Stored, payload: Payload, range: Range<usize>) -> Deferred<'_> {
    let len = usize::try_from(payload.byte_len).unwrap_or(usize::MAX);
    let TensorMeta { dtype, shape, order } = payload.meta.clone();
    Deferred::from_blocks(dtype, &shape, order, move |put| {
        value.payload(&payload, range.clone(), put)
    })
    .with_byte_len(len)
}

/// Where in the metadata of a segment something stands.
#[derive(Default)]
struct Found {
    tensors: Vec<(String, Payload, Range<usize>)>,
    texts: Vec<(String, Range<usize>)>,
    single: HashSet<String>,
    metadata: Option<Range<usize>>,
    columns: Vec<Columns>,
}

/// A sequence that is stored as columns.
struct Columns {
    /// The path of the sequence, as a JSON Pointer, and as it is in names.
    pointer: String,
    name: String,
    at: usize,
}

/// A walk over a value's items.
struct Walk<'m> {
    bytes: &'m [u8],
    /// Bytes that names may still take.
    left: usize,
    items: Items<'m>,
    keep: Keep,
    /// From the outermost value to this one.
    steps: Vec<String>,
    found: Found,
    nesting: Nesting,
    losses: Losses,
}

/// Whether names say how a value is nested.
#[derive(Default)]
struct Nesting {
    /// Whether something that is kept has a name of several steps.
    nested: bool,
    /// Whether a key has a dot on the way to something that is kept.
    dotted: bool,
    /// Whether a key on the way to something that is kept is neither text nor integer.
    changed_key: bool,
    /// Why the nesting does not come back from the names.
    changed: Option<&'static str>,
}

/// Characters of each step, and bytes before the last, that are told of what is lost.
const MAX_PATH: usize = 256;

/// What the names of a value's tensors may take, as paths in archives.
fn most(metadata: &[u8]) -> usize {
    metadata.len().saturating_mul(16).max(1 << 20)
}

impl<'m> Walk<'m> {
    /// The number of tensors and texts that are kept so far. Columns are not counted.
    fn kept(&self) -> usize {
        self.found.tensors.len() + self.found.texts.len()
    }

    fn next(&mut self) -> Result<Item<'m>> {
        self.items.next().unwrap_or_else(|| Err(Error::eof("an item")))
    }

    /// The name of a tensor here. One long key stands in the names of all that is under it.
    fn name(&mut self) -> Result<String> {
        let len = self.steps.iter().map(|step| step.len() + 1).sum();
        self.left = self.left.checked_sub(len).ok_or_else(|| {
            let most = most(self.bytes);
            Error::limit(format!("names of tensors take more than {most} bytes"))
        })?;
        Ok(self.steps.join("."))
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
                path.extend(step.chars().take(MAX_PATH));
            }
        }
        self.losses.add(&path, what);
    }

    /// Passes over what starts with this item, and keeps what of it can be kept.
    fn item(&mut self, item: Item<'m>) -> Result<()> {
        let Item { event, range, .. } = item;
        match event {
            Event::Array
                if matches!(self.keep, Keep::TextArrays | Keep::Texts)
                    && !self.steps.is_empty()
                    && self.is_texts(range.start)? =>
            {
                let name = self.name()?;
                let end = self.items.leave()?;
                self.found.texts.push((name, end.range));
                Ok(())
            }
            Event::Array => self.container(true),
            Event::Map => self.container(false),
            Event::Payload(_) if self.steps.is_empty() => Err(Error::data(
                "the value is a tensor by itself, which has no name: save it in a map",
            )),
            Event::Payload(payload) => {
                if payload.form == Form::Bytes {
                    self.lose("a byte string is no tensor: it is left out");
                } else {
                    let name = self.name()?;
                    self.found.tensors.push((name, payload, range));
                }
                Ok(())
            }
            Event::Tag(COLUMNS) => {
                let pointer = self.steps.iter().map(|step| escaped(step)).collect();
                let name = self.name()?;
                self.next()?;
                self.items.leave()?;
                self.found.columns.push(Columns { pointer, name, at: range.start });
                Ok(())
            }
            Event::Tag(tag) => {
                if tag != SOME {
                    self.lose(&format!("tag {tag} around it is left out"));
                }
                let inner = self.next()?;
                self.item(inner)
            }
            Event::Text if self.keep == Keep::Texts && !self.steps.is_empty() => {
                let name = self.name()?;
                self.found.single.insert(name.clone());
                self.found.texts.push((name, range));
                Ok(())
            }
            _ if self.steps.is_empty() => {
                let found = kind(&event);
                Err(Error::data(format!("expected a value with tensors, found {found}")))
            }
            _ => {
                self.lose(&format!("{} is no tensor: it is left out", kind(&event)));
                Ok(())
            }
        }
    }

    /// Whether the array that starts there is one of nothing but texts.
    fn is_texts(&self, start: usize) -> Result<bool> {
        let mut items = Items::new(self.bytes.get(start..).unwrap_or_default());
        items.next().transpose()?;
        for item in items {
            match item?.event {
                Event::Text => {}
                Event::End => return Ok(true),
                _ => break,
            }
        }
        Ok(false)
    }

    fn container(&mut self, is_list: bool) -> Result<()> {
        let before = self.kept();
        // The keys of kept entries that are numbers: a map with the keys 0, 1, … would come back as a list.
        let (mut numbers, mut inside) = (Vec::new(), 0usize);
        let mut count = 0u64;
        loop {
            let item = self.next()?;
            let (mut is_plain, mut is_text) = (true, true);
            let (step, item) = match item.event {
                Event::End => break,
                Event::Key(key) => {
                    is_plain = !matches!(key, Key::Other(_));
                    is_text = matches!(key, Key::Text(_));
                    (key.into_step().into_owned(), self.next()?)
                }
                _ => (count.to_string(), item),
            };
            count += 1;
            let is_metadata = self.steps.is_empty() && step == METADATA;
            if is_metadata && item.event == Event::Map {
                self.metadata()?;
                continue;
            }
            self.steps.push(step);
            if !is_plain {
                self.lose("its key is neither text nor integer: names have it as text");
            }
            let so_far = self.kept();
            self.item(item)?;
            let Some(step) = self.steps.pop().filter(|_| self.kept() > so_far) else { continue };
            inside += 1;
            self.nesting.dotted |= step.contains('.');
            self.nesting.nested |= !self.steps.is_empty();
            let number = step.parse().ok().filter(|number: &usize| number.to_string() == step);
            numbers.extend(number);
            if !is_plain {
                // This is reported as a loss of its own.
                self.nesting.changed_key = true;
            } else if !is_text {
                self.nesting.changed.get_or_insert("a key that is no text becomes one");
            }
            if self.steps.len() >= MAX_STEPS {
                self.nesting.changed.get_or_insert("it is too deep");
            }
        }
        if self.kept() > before {
            numbers.sort_unstable();
            let counts = numbers.len() == inside && numbers.iter().copied().eq(0..inside);
            match (is_list, self.steps.is_empty()) {
                (true, true) => {
                    let why = "the value is a list, whose positions become names";
                    self.nesting.changed.get_or_insert(why);
                }
                (true, false) if !counts => {
                    self.nesting.changed.get_or_insert("a list loses some of its items");
                }
                (false, false) if counts => {
                    self.nesting.changed.get_or_insert("a map has the keys of a list");
                }
                _ => {}
            }
        }
        if count == 0 && !self.steps.is_empty() {
            self.lose("it is empty, and left out");
        }
        Ok(())
    }

    /// Passes over the map under `__metadata__`: kept if it is one of texts.
    fn metadata(&mut self) -> Result<()> {
        let range = self.items.leave()?.range;
        if self.keep == Keep::TensorsBesideMetadata {
            return Ok(());
        }
        let item = self.bytes.get(range.clone()).unwrap_or_default();
        if self.found.metadata.is_none() && tenarc::from_slice::<Texts>(item).is_ok() {
            self.found.metadata = Some(range);
        } else {
            self.losses.add(METADATA, "it is no map of texts, and left out");
        }
        Ok(())
    }
}

/// What a leaf is, for those that are told of what is lost.
fn kind(event: &Event<'_>) -> &'static str {
    match event {
        Event::Integer => "integer",
        Event::Float => "float",
        Event::Bytes => "byte string",
        Event::Text => "text string",
        Event::Bool => "boolean",
        Event::Null => "null",
        Event::Undefined => "undefined",
        _ => "simple value",
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
