//! A file as a value: flat, or with its names taken apart.

use serde::ser::{Serialize, SerializeMap, Serializer};
use tenarc::tensor::Deferred;
use tenarc::{Result, Tensor};

use super::pickle::{Object, Value};
use super::tree::{lost, object, step};
use crate::nested;
use crate::nested::{Inside, Node};

/// A file as a value that can be saved: see [`TorchFile::flat`](super::TorchFile::flat) and
/// [`TorchFile::nested`](super::TorchFile::nested).
#[derive(Debug)]
pub struct AsValue<'a> {
    objects: &'a [Object],
    leaves: Vec<(&'a str, Part<'a>)>,
    /// Whether the one leaf is the value, rather than an entry of a map.
    bare: bool,
    /// How the leaves, by their numbers, are nested; flat where there is nothing.
    tree: Option<Vec<(&'a str, Node<'a>)>>,
}

/// A tensor, or a value without any.
#[derive(Debug)]
pub enum Part<'a> {
    Tensor(Deferred<'a>),
    Plain(Value),
}

impl<'a> AsValue<'a> {
    pub(super) fn flat(
        objects: &'a [Object],
        leaves: Vec<(&'a str, Part<'a>)>,
        bare: bool,
    ) -> Self {
        Self { objects, leaves, bare, tree: None }
    }

    pub(super) fn nested(mut self) -> Result<Self> {
        if !self.bare {
            self.tree = Some(nested::tree(self.leaves.iter().map(|(name, _)| *name))?);
        }
        Ok(self)
    }

    fn leaf(&self, number: usize) -> Option<Leaf<'_, 'a>> {
        self.leaves.get(number).map(|(_, part)| Leaf { objects: self.objects, part })
    }
}

impl Serialize for AsValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.bare
            && let Some(leaf) = self.leaf(0)
        {
            return leaf.serialize(serializer);
        }
        match &self.tree {
            None => serializer.collect_map(
                self.leaves.iter().map(|(name, part)| (name, Leaf { objects: self.objects, part })),
            ),
            Some(entries) => serializer.collect_map(
                entries
                    .iter()
                    .map(|(step, node)| (step, Inside { node, leaf: |number| self.leaf(number) })),
            ),
        }
    }
}

struct Leaf<'v, 'a> {
    objects: &'a [Object],
    part: &'v Part<'a>,
}

impl Serialize for Leaf<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.part {
            Part::Tensor(tensor) => Tensor(tensor).serialize(serializer),
            Part::Plain(value) => {
                Plain { objects: self.objects, value: *value }.serialize(serializer)
            }
        }
    }
}

/// A value without tensors. What is lost of it is left out of maps, and null in sequences.
struct Plain<'a> {
    objects: &'a [Object],
    value: Value,
}

impl Serialize for Plain<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let objects = self.objects;
        let plain = |value: &Value| Plain { objects, value: *value };
        match self.value {
            Value::None => return serializer.serialize_none(),
            Value::Bool(value) => return serializer.serialize_bool(value),
            Value::Int(value) => return serializer.serialize_i64(value),
            Value::Float(value) => return serializer.serialize_f64(value),
            Value::Object(_) => {}
        }
        match object(objects, self.value) {
            Some(Object::Big(value)) => serializer.serialize_i128(*value),
            Some(Object::Text(text)) => serializer.serialize_str(text),
            Some(Object::Bytes(bytes)) => serializer.serialize_bytes(bytes),
            Some(Object::List(values)) => serializer.collect_seq(values.iter().map(plain)),
            Some(Object::Tuple(values)) => serializer.collect_seq(values.iter().map(plain)),
            Some(Object::Dict(dict)) => {
                let kept =
                    |key, value| step(objects, key).is_some() && lost(objects, value).is_none();
                let entries = || dict.entries.iter().filter(|(key, value)| kept(*key, *value));
                let mut map = serializer.serialize_map(Some(entries().count()))?;
                for (key, value) in entries() {
                    map.serialize_entry(&plain(key), &plain(value))?;
                }
                map.end()
            }
            _ => serializer.serialize_none(),
        }
    }
}
