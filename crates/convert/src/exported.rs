//! Finds the parts of a value that a flat file of named tensors can hold: tensors and texts.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use tenarc::inspect::{COLUMNS, Event, Form, Item, Items, Key, Payload, SOME, TYPE};
use tenarc::tensor::{Deferred, TensorMeta};
use tenarc::{Error, Result, Value};

use super::Losses;
use crate::columns::{FlatColumn, FlatRows, escaped, no_tensor};
use crate::nested::MAX_STEPS;
use crate::stored::Stored;
use crate::typed::Type;

/// The key of the metadata. No tensor of a file can have this name.
pub const METADATA: &str = "__metadata__";

/// Keys and their texts, in order.
pub type Metadata = Vec<(String, String)>;

/// Pairs that are serialized as a map, in their order. The values are texts or of another type.
pub struct AsTexts<'a, T>(pub &'a [(String, T)]);

impl<T: Serialize> Serialize for AsTexts<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, text)| (key, text)))
    }
}

/// Checks that no key occurs twice.
pub fn check_keys(metadata: &[(String, String)]) -> Result<()> {
    let mut keys: Vec<&str> = metadata.iter().map(|(key, _)| key.as_str()).collect();
    keys.sort_unstable();
    let twice = keys.iter().zip(keys.iter().skip(1)).find(|(a, b)| a == b);
    match twice {
        Some((key, _)) => {
            let what = "expected each key once, found this one twice";
            Err(Error::data(what).in_field(*key))
        }
        None => Ok(()),
    }
}

/// The tensors and texts of a value. The name of each is its path, joined by dots.
pub struct Exported<'a> {
    pub tensors: Vec<(String, Deferred<'a>)>,
    /// The named types of tensors, if [`Keep`] asks for them.
    pub types: HashMap<String, Type>,
    /// Arrays of texts and single texts, if [`Keep`] asks for them.
    pub texts: Vec<(String, Vec<String>)>,
    /// The shapes of the `texts` that have another number of dimensions than one. A single text has none.
    pub shapes: HashMap<String, Vec<usize>>,
    /// The offset of each tensor and text in the encoded metadata. Tensors and texts are put in order by it.
    pub starts: HashMap<String, usize>,
    /// The map of texts that the value has under [`METADATA`].
    pub metadata: Option<Metadata>,
    /// Whether the value is nested, and a reader can restore the nesting by splitting names at their dots.
    pub nested: bool,
    /// Everything else in the value.
    pub losses: Losses,
}

/// Which parts of a value are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    Tensors,
    /// Only tensors. The map under [`METADATA`] is not a loss, because the caller reads it.
    TensorsBesideMetadata,
    /// Tensors, and arrays of which all elements are texts.
    TextArrays,
    /// Tensors with their types, arrays of texts, and single texts.
    Texts,
}

impl<'a> Exported<'a> {
    /// Finds the tensors and texts in the metadata of a value, without reading the tensors. Checks what reading them will
    /// not check.
    pub fn of(value: &'a dyn Stored, keep: Keep) -> Result<Self> {
        value.verify_unread()?;
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
            changed = changed.or(Some("a key has a dot, so names cannot be split at their dots"));
        }
        if let Some(why) = changed {
            losses.add("", format!("the nesting of the tensors is left out: {why}"));
        }
        for columns in &found.columns {
            let what = "a tensor for each column replaces its rows";
            losses.note(match &*columns.name {
                "" => what.to_owned(),
                name => format!("`{}`: {what}", name.escape_debug()),
            });
        }
        let item = |range: Range<usize>| bytes.get(range).unwrap_or_default();
        let metadata = found.metadata.map(|range| tenarc::from_slice::<Texts>(item(range)));
        let metadata = metadata.transpose()?.map(|Texts(pairs)| pairs);
        let mut starts = HashMap::with_capacity(found.tensors.len() + found.texts.len());
        let mut once = |name: &String, range: &Range<usize>| {
            if starts.insert(name.clone(), range.start).is_none() {
                return Ok(());
            }
            let what = "there are two tensors of this name: joined by dots, their paths are equal";
            Err(Error::data(what).in_field(name))
        };
        let mut types = found.types;
        let mut tensors = Vec::with_capacity(found.tensors.len());
        for (name, payload, range) in found.tensors {
            once(&name, &range)?;
            tensors.push((name, deferred(value, payload, range)));
        }
        let mut texts = Vec::with_capacity(found.texts.len());
        for Columns { pointer, name, at } in found.columns {
            for FlatColumn { name, of, rows } in value.columns(&pointer, &name, &mut losses)? {
                let is_text = matches!(rows, FlatRows::Texts(_));
                if is_text && !matches!(keep, Keep::TextArrays | Keep::Texts) {
                    losses.add(&name, no_tensor("texts"));
                    continue;
                }
                once(&name, &(at..at))?;
                match of.as_ref().map(Type::of) {
                    Some(of) if keep == Keep::Texts && !is_text => {
                        types.insert(name.clone(), of);
                    }
                    Some(of) if is_text && of.is_category() => losses
                        .note(format!("`{}`: its categories become texts", name.escape_debug())),
                    Some(of) => losses.add(&name, of.left_out()),
                    None => {}
                }
                match rows {
                    FlatRows::Tensor(tensor) => tensors.push((name, tensor)),
                    FlatRows::Texts(read) => texts.push((name, read()?)),
                }
            }
        }
        for (name, range) in found.texts {
            once(&name, &range)?;
            let start = range.start as u64;
            let read = match found.shapes.get(&name) {
                None => tenarc::from_slice(item(range)),
                Some(_) => tenarc::from_slice(item(range)).map(|texts| {
                    let mut flat = Vec::new();
                    flatten(texts, &mut flat);
                    flat
                }),
            };
            texts.push((name, read.map_err(|error| error.moved_by(start))?));
        }
        let nested = nested && changed.is_none() && !changed_key;
        let shapes = found.shapes;
        Ok(Self { tensors, types, texts, shapes, starts, metadata, nested, losses })
    }
}

/// Returns the tensor that is the whole value, and its type if it has one. `None` if the value is no tensor.
///
/// # Errors
/// If the metadata are damaged.
pub fn only(value: &dyn Stored) -> Result<Option<(Deferred<'_>, Option<Type>)>> {
    let (mut items, mut of) = (value.items()?, None);
    while let Some(Item { event, range, .. }) = items.next().transpose()? {
        match event {
            Event::Tag(TYPE) => of = Some(Type::read(&mut items, value.metadata()?)?),
            Event::Tag(_) => {}
            Event::Payload(payload) if payload.form != Form::Bytes => {
                return Ok(Some((deferred(value, payload, range), of)));
            }
            _ => break,
        }
    }
    Ok(None)
}

/// Returns a tensor whose bytes are read when it is written.
fn deferred(value: &dyn Stored, payload: Payload, range: Range<usize>) -> Deferred<'_> {
    let len = usize::try_from(payload.byte_len).unwrap_or(usize::MAX);
    let TensorMeta { dtype, shape, order } = payload.meta.clone();
    Deferred::from_blocks(dtype, &shape, order, move |put| {
        value.payload(&payload, range.clone(), put)
    })
    .with_byte_len(len)
}

/// The ranges of tensors and texts in the encoded metadata.
#[derive(Default)]
struct Found {
    tensors: Vec<(String, Payload, Range<usize>)>,
    types: HashMap<String, Type>,
    texts: Vec<(String, Range<usize>)>,
    shapes: HashMap<String, Vec<usize>>,
    metadata: Option<Range<usize>>,
    columns: Vec<Columns>,
}

/// A sequence that is stored as columns.
struct Columns {
    /// The path of the sequence as a JSON Pointer.
    pointer: String,
    /// The path of the sequence as the names of its tensors have it.
    name: String,
    /// The offset of the sequence in the metadata.
    at: usize,
}

/// A walk over the items of a value.
struct Walk<'m> {
    bytes: &'m [u8],
    /// The number of bytes that the remaining names may take.
    left: usize,
    items: Items<'m>,
    keep: Keep,
    /// The keys and indices that lead from the outermost value to the current one.
    steps: Vec<String>,
    found: Found,
    nesting: Nesting,
    losses: Losses,
}

/// Whether the nesting of a value can be restored from its names.
#[derive(Default)]
struct Nesting {
    /// Whether a kept name has several steps.
    nested: bool,
    /// Whether a key in the path of a kept item has a dot.
    dotted: bool,
    /// Whether a key in the path of a kept item is neither a text nor an integer.
    changed_key: bool,
    /// Why the nesting cannot be restored from the names, if it cannot.
    changed: Option<&'static str>,
}

/// The limit of a path in a loss. It shows at most so many characters of each step, and no further step after so many
/// bytes.
const MAX_PATH: usize = 256;

/// Returns how many bytes the names of a value's tensors may take. Paths in archives have such a limit too.
fn most(metadata: &[u8]) -> usize {
    metadata.len().saturating_mul(16).max(1 << 20)
}

impl<'m> Walk<'m> {
    /// Returns the number of tensors and texts that are kept so far. Columns are not counted.
    fn kept(&self) -> usize {
        self.found.tensors.len() + self.found.texts.len()
    }

    fn next(&mut self) -> Result<Item<'m>> {
        self.items.next().unwrap_or_else(|| Err(Error::eof("an item")))
    }

    /// Returns the name of the current value.
    ///
    /// The length of all names together is limited. Otherwise a small file could fill the memory: one long key is a
    /// part of the name of everything under it.
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

    /// Reads the value that starts with this item. Records the tensors and texts in it, and adds everything else to the
    /// losses.
    fn item(&mut self, item: Item<'m>) -> Result<()> {
        let Item { event, range, .. } = item;
        match event {
            Event::Array
                if matches!(self.keep, Keep::TextArrays | Keep::Texts)
                    && !self.steps.is_empty() =>
            {
                let most = if self.keep == Keep::Texts { usize::MAX } else { 1 };
                let Some(shape) = self.shape_of_texts(range.start, most) else {
                    return self.container(true);
                };
                let name = self.name()?;
                let end = self.items.leave()?;
                if shape.len() > 1 {
                    self.found.shapes.insert(name.clone(), shape);
                }
                self.found.texts.push((name, end.range));
                Ok(())
            }
            Event::Array => self.container(true),
            Event::Map => self.container(false),
            Event::Payload(_) if self.steps.is_empty() => Err(Error::data(
                "the value is a single tensor, which has no name: save it in a map",
            )),
            Event::Payload(payload) => {
                if payload.form == Form::Bytes {
                    self.lose("a byte string is not a tensor: it is left out");
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
            Event::Tag(TYPE) => {
                let of = Type::read(&mut self.items, self.bytes)?;
                let inner = self.next()?;
                let is_tensor =
                    matches!(&inner.event, Event::Payload(found) if found.form != Form::Bytes);
                if is_tensor && self.keep == Keep::Texts {
                    let name = self.name()?;
                    self.found.types.insert(name, of);
                } else if is_tensor || !matches!(inner.event, Event::Integer | Event::Bytes) {
                    self.lose(&of.left_out());
                }
                self.item(inner)?;
                Type::end(&mut self.items)
            }
            Event::Tag(tag) => {
                if tag != SOME {
                    self.lose(&format!("the tag {tag} around it is left out"));
                }
                let inner = self.next()?;
                self.item(inner)
            }
            Event::Text if self.keep == Keep::Texts && !self.steps.is_empty() => {
                let name = self.name()?;
                self.found.shapes.insert(name.clone(), Vec::new());
                self.found.texts.push((name, range));
                Ok(())
            }
            _ if self.steps.is_empty() => {
                let found = kind(&event);
                Err(Error::data(format!("expected a value with tensors, found {found}")))
            }
            _ => {
                self.lose(&format!("{} is not a tensor: it is left out", kind(&event)));
                Ok(())
            }
        }
    }

    /// Returns the shape of the array that starts at this offset, if its elements are texts, or arrays of one length that
    /// are such arrays, and it has at most `most` dimensions. If an element cannot be read, it is not a text, and the walk over the items reports what is wrong with
    /// it.
    fn shape_of_texts(&self, start: usize, most: usize) -> Option<Vec<usize>> {
        let items = Items::new(self.bytes.get(start..).unwrap_or_default());
        // The lengths of the arrays at each depth, which are known at the end of the first one; the elements so far of each
        // array that is open; and how deep the texts are.
        let (mut shape, mut open, mut leaf) = (Vec::<Option<usize>>::new(), Vec::new(), None);
        for item in items {
            let depth = open.len();
            match item.ok()?.event {
                Event::Array if depth < leaf.unwrap_or(most) => {
                    if let Some(count) = open.last_mut() {
                        *count += 1;
                    }
                    open.push(0);
                    shape.resize(shape.len().max(open.len()), None);
                }
                Event::Text if *leaf.get_or_insert(depth) == depth => *open.last_mut()? += 1,
                Event::End => {
                    let (count, len) = (open.pop()?, shape.get_mut(depth.checked_sub(1)?)?);
                    if *len.get_or_insert(count) != count {
                        return None;
                    }
                    if open.is_empty() {
                        let is_nested = shape.len() > 1;
                        let shape = shape.into_iter().collect::<Option<Vec<_>>>()?;
                        return Some(shape).filter(|shape| !is_nested || !shape.contains(&0));
                    }
                }
                _ => return None,
            }
        }
        None
    }

    fn container(&mut self, is_list: bool) -> Result<()> {
        let before = self.kept();
        // The keys of kept entries that are numbers. A map with the keys 0, 1, … would be restored as a list.
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
                self.lose("its key is neither text nor integer: the name shows it as text");
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
                // `lose` has reported this already.
                self.nesting.changed_key = true;
            } else if !is_text {
                self.nesting.changed.get_or_insert("an integer key becomes a text");
            }
            if self.steps.len() >= MAX_STEPS {
                self.nesting.changed.get_or_insert("it is nested too deeply");
            }
        }
        if self.kept() > before {
            numbers.sort_unstable();
            let counts = numbers.len() == inside && numbers.iter().copied().eq(0..inside);
            match (is_list, self.steps.is_empty()) {
                (true, true) => {
                    let why = "the value is a list, whose indices become names";
                    self.nesting.changed.get_or_insert(why);
                }
                (true, false) if !counts => {
                    self.nesting.changed.get_or_insert("a list loses some of its items");
                }
                (false, false) if counts => {
                    self.nesting.changed.get_or_insert("a map has the keys of a list: 0, 1, …");
                }
                _ => {}
            }
        }
        if count == 0 && !self.steps.is_empty() {
            self.lose("it is empty: it is left out");
        }
        Ok(())
    }

    /// Reads the map under `__metadata__`. It is kept if all its values are texts.
    fn metadata(&mut self) -> Result<()> {
        let range = self.items.leave()?.range;
        if self.keep == Keep::TensorsBesideMetadata {
            return Ok(());
        }
        let item = self.bytes.get(range.clone()).unwrap_or_default();
        if self.found.metadata.is_none() && tenarc::from_slice::<Texts>(item).is_ok() {
            self.found.metadata = Some(range);
        } else {
            self.losses.add(METADATA, "it is not a map of texts: it is left out");
        }
        Ok(())
    }
}

/// Adds the texts in nested arrays, in the order of their positions.
fn flatten(value: Value, flat: &mut Vec<String>) {
    match value {
        Value::Text(text) => flat.push(text),
        Value::Array(items) => items.into_iter().for_each(|item| flatten(item, flat)),
        _ => {}
    }
}

/// Returns what a leaf is, for messages.
fn kind(event: &Event<'_>) -> &'static str {
    match event {
        Event::Integer => "an integer",
        Event::Float => "a float",
        Event::Bytes => "a byte string",
        Event::Text => "a text string",
        Event::Bool => "a boolean",
        Event::Null => "null",
        Event::Undefined => "undefined",
        _ => "a simple value",
    }
}

/// A map of texts, in the order in which it is encoded.
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
