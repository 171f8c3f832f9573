//! What a pickle holds, by name: tensors, and plain values between them.

use std::borrow::Cow;
use std::collections::HashSet;

use tenarc::{Error, Result};

use super::pickle::{Dict, Object, Pickle, Value};
use crate::Losses;

/// Levels of containers inside each other. Archives are read with 128, of which names take up to 64.
const MAX_DEPTH: usize = 60;

/// How much all of it may be, written out: an object may be in many places.
const MAX_WEIGHT: u64 = 1 << 22;

/// Bytes of a name, and of all names together.
const MAX_NAME: usize = 64 << 10;
const MAX_NAMES: usize = 64 << 20;

/// Under which the attribute `_metadata` of a dict is found.
const METADATA: &str = "_metadata";

/// A tensor, or a value without any, and where it is found.
#[derive(Debug)]
pub struct Leaf {
    pub name: String,
    pub what: What,
}

#[derive(Clone, Copy, Debug)]
pub enum What {
    /// The number of the object.
    Tensor(usize),
    Plain(Value),
}

/// All leaves, in the order of the pickle, and what is none.
#[derive(Debug, Default)]
pub struct Tree {
    pub leaves: Vec<Leaf>,
    /// Whether the one leaf is all of the pickle, and has no name.
    pub bare: bool,
    pub losses: Losses,
}

impl Tree {
    pub fn new(pickle: &Pickle) -> Result<Self> {
        let objects = &pickle.objects[..];
        let mut scale = Scale { objects, seen: Vec::new() };
        scale.seen.resize_with(objects.len(), || Seen::Not);
        let all = scale.weigh(pickle.root, 0)?;
        if all.height > MAX_DEPTH {
            return Err(too_deep());
        }
        if all.weight > MAX_WEIGHT {
            let what = "the pickle holds more than is read, as its objects are in many places";
            return Err(Error::limit(what));
        }
        let mut walk = Walk {
            scale,
            tree: Self::default(),
            name: String::new(),
            depth: 0,
            names: HashSet::new(),
            len: 0,
        };
        let tensor = matches!(object(objects, pickle.root), Some(Object::Tensor(_)));
        walk.tree.bare = tensor || !all.tensors;
        walk.item(pickle.root)?;
        Ok(walk.tree)
    }
}

#[cold]
fn too_deep() -> Error {
    Error::limit(format!("the pickle nests more than {MAX_DEPTH} levels"))
}

pub fn object(objects: &[Object], value: Value) -> Option<&Object> {
    match value {
        Value::Object(number) => objects.get(number),
        _ => None,
    }
}

/// A key as a step of a name.
pub fn step(objects: &[Object], key: Value) -> Option<Cow<'_, str>> {
    match (key, object(objects, key)) {
        (Value::Int(number), _) => Some(number.to_string().into()),
        (_, Some(Object::Text(text))) => Some((&**text).into()),
        _ => None,
    }
}

/// What an object is that is not kept.
pub fn lost(objects: &[Object], value: Value) -> Option<String> {
    match object(objects, value)? {
        Object::Other(what) => Some(what.to_string()),
        Object::Global(global) => Some(format!("{} itself", global.shown())),
        Object::Storage(_) => Some("a storage without a tensor".to_owned()),
        _ => None,
    }
}

/// What is known of a value and all that is in it.
#[derive(Clone, Copy, Default)]
struct Weighed {
    weight: u64,
    height: usize,
    tensors: bool,
}

impl Weighed {
    fn add(&mut self, inner: Self) {
        self.weight = self.weight.saturating_add(inner.weight);
        self.height = self.height.max(inner.height + 1);
        self.tensors |= inner.tensors;
    }
}

#[derive(Clone, Copy)]
enum Seen {
    Not,
    /// It is being weighed.
    Open,
    Done(Weighed),
}

/// Weighs every object once, however often it is found.
struct Scale<'a> {
    objects: &'a [Object],
    seen: Vec<Seen>,
}

impl Scale<'_> {
    fn weigh(&mut self, value: Value, depth: usize) -> Result<Weighed> {
        let own = |weight| Weighed { weight, ..Weighed::default() };
        let Value::Object(number) = value else { return Ok(own(1)) };
        match self.seen.get(number) {
            Some(Seen::Done(found)) => return Ok(*found),
            Some(Seen::Open) => {
                return Err(Error::data("the pickle has an object that contains itself"));
            }
            _ => {}
        }
        if depth > MAX_DEPTH {
            return Err(too_deep());
        }
        self.mark(number, Seen::Open);
        let objects = self.objects;
        let mut found = own(1);
        match objects.get(number) {
            Some(Object::Text(text)) => found.weight += text.len() as u64 / 16,
            Some(Object::Bytes(bytes)) => found.weight += bytes.len() as u64 / 16,
            Some(Object::Tensor(tensor)) => {
                found.weight += 16 + 2 * tensor.shape.len() as u64;
                found.tensors = true;
            }
            Some(Object::List(values)) => self.add(&mut found, values, depth)?,
            Some(Object::Tuple(values)) => self.add(&mut found, values, depth)?,
            Some(Object::Dict(dict)) => {
                for (key, value) in &dict.entries {
                    if let Some(Object::Text(key)) = object(objects, *key) {
                        found.weight = found.weight.saturating_add(1 + key.len() as u64 / 16);
                    }
                    found.add(self.weigh(*value, depth + 1)?);
                }
                self.add(&mut found, dict.metadata.as_slice(), depth)?;
            }
            _ => {}
        }
        self.mark(number, Seen::Done(found));
        Ok(found)
    }

    fn add(&mut self, to: &mut Weighed, values: &[Value], depth: usize) -> Result<()> {
        for value in values {
            to.add(self.weigh(*value, depth + 1)?);
        }
        Ok(())
    }

    fn mark(&mut self, number: usize, seen: Seen) {
        if let Some(place) = self.seen.get_mut(number) {
            *place = seen;
        }
    }

    fn has_tensors(&self, value: Value) -> bool {
        let Value::Object(number) = value else { return false };
        matches!(self.seen.get(number), Some(Seen::Done(found)) if found.tensors)
    }
}

struct Walk<'a> {
    scale: Scale<'a>,
    tree: Tree,
    name: String,
    /// How many steps lead there.
    depth: usize,
    names: HashSet<String>,
    /// Bytes of all names.
    len: usize,
}

impl<'a> Walk<'a> {
    fn item(&mut self, value: Value) -> Result<()> {
        let objects = self.scale.objects;
        match (object(objects, value), value) {
            (Some(Object::Tensor(tensor)), Value::Object(number)) => {
                if tensor.attributes {
                    self.tree.losses.add(&self.name, "attributes of a tensor");
                }
                self.leaf(What::Tensor(number))
            }
            (Some(Object::Dict(dict)), _) if self.scale.has_tensors(value) => {
                self.dict(dict, &mut Self::item)
            }
            (Some(Object::List(values)), _) if self.scale.has_tensors(value) => {
                self.list(values, &mut Self::item)
            }
            (Some(Object::Tuple(values)), _) if self.scale.has_tensors(value) => {
                self.list(values, &mut Self::item)
            }
            _ => match lost(objects, value) {
                Some(what) => {
                    self.tree.losses.add(&self.name, what);
                    Ok(())
                }
                None => {
                    self.plain(value)?;
                    self.leaf(What::Plain(value))
                }
            },
        }
    }

    /// Finds what is lost inside of a plain value.
    fn plain(&mut self, value: Value) -> Result<()> {
        let objects = self.scale.objects;
        if let Some(what) = lost(objects, value) {
            self.tree.losses.add(&self.name, what);
        }
        match object(objects, value) {
            Some(Object::Dict(dict)) => self.dict(dict, &mut Self::plain),
            Some(Object::List(values)) => self.list(values, &mut Self::plain),
            Some(Object::Tuple(values)) => self.list(values, &mut Self::plain),
            _ => Ok(()),
        }
    }

    fn list(&mut self, values: &'a [Value], each: &mut Each<'a>) -> Result<()> {
        for (number, value) in values.iter().enumerate() {
            self.within(&number.to_string(), *value, each)?;
        }
        Ok(())
    }

    fn dict(&mut self, dict: &'a Dict, each: &mut Each<'a>) -> Result<()> {
        let objects = self.scale.objects;
        let mut steps = HashSet::new();
        for (key, value) in &dict.entries {
            let Some(step) = step(objects, *key) else {
                self.tree
                    .losses
                    .add(&self.name, "an entry whose key is neither a text nor an integer");
                continue;
            };
            if steps.contains(&step) {
                let what = "a dict has two entries under one name";
                return Err(Error::data(what).in_field(&*step).in_field(&*self.name));
            }
            self.within(&step, *value, each)?;
            steps.insert(step);
        }
        if dict.attributes {
            self.tree.losses.add(&self.name, "attributes of a dict");
        }
        match dict.metadata {
            Some(_) if steps.contains(METADATA) => {
                self.tree.losses.add(
                    &self.name,
                    "the attribute `_metadata`, as there is an entry of that name",
                );
                Ok(())
            }
            Some(metadata) => self.within(METADATA, metadata, each),
            None => Ok(()),
        }
    }

    fn within(&mut self, step: &str, value: Value, each: &mut Each<'a>) -> Result<()> {
        let len = self.name.len();
        if self.depth > 0 {
            self.name.push('.');
        }
        self.name.push_str(step);
        if self.name.len() > MAX_NAME {
            return Err(Error::limit(format!("a name of more than {MAX_NAME} bytes")));
        }
        self.depth += 1;
        each(self, value)?;
        self.depth -= 1;
        self.name.truncate(len);
        Ok(())
    }

    fn leaf(&mut self, what: What) -> Result<()> {
        let name = self.name.clone();
        self.len = self.len.saturating_add(name.len());
        if self.len > MAX_NAMES {
            return Err(Error::limit(format!("names of more than {MAX_NAMES} bytes")));
        }
        if !self.names.insert(name.clone()) {
            return Err(Error::data("two values have this name").in_field(name));
        }
        self.tree.leaves.push(Leaf { name, what });
        Ok(())
    }
}

/// What is done with each value inside of another.
type Each<'a> = dyn FnMut(&mut Walk<'a>, Value) -> Result<()>;
