//! A file as a value: flat, or with its names taken apart.

use std::collections::HashMap;

use ndarray::Dimension as _;
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::fields::METADATA;
use crate::error::{Error, Result};
use crate::options::Limits;
use crate::tensor::{Deferred, Tensor, ToTensor as _};

/// A name and its tensor.
pub type Named<'a> = (&'a str, Deferred<'a>);

/// Steps that a name is taken apart into. Each is a level of nesting, of which readers allow 128.
const MAX_STEPS: usize = 64;

/// A safetensors file as a value that can be saved: see [`SafeTensors::flat`](super::SafeTensors::flat)
/// and [`SafeTensors::nested`](super::SafeTensors::nested).
#[derive(Debug)]
pub struct AsValue<'a> {
    metadata: Option<&'a [(String, String)]>,
    tensors: Vec<Named<'a>>,
    /// How the tensors, by their numbers, are nested; flat where there is nothing.
    tree: Option<Vec<(&'a str, Node<'a>)>>,
}

#[derive(Debug)]
enum Node<'a> {
    Tensor(usize),
    Map(Vec<(&'a str, Node<'a>)>),
    List(Vec<Node<'a>>),
}

impl<'a> AsValue<'a> {
    pub(super) fn flat(
        metadata: Option<&'a [(String, String)]>,
        tensors: Vec<Named<'a>>,
    ) -> Result<Self> {
        for (name, tensor) in &tensors {
            let (found, most) = (tensor.meta().shape.ndim(), Limits::DEFAULT_RANK);
            if found > most {
                let what = format!("{found} dimensions, archives are read with up to {most}");
                return Err(Error::limit(what).in_field(*name));
            }
        }
        Ok(Self { metadata, tensors, tree: None })
    }

    pub(super) fn nested(
        metadata: Option<&'a [(String, String)]>,
        tensors: Vec<Named<'a>>,
    ) -> Result<Self> {
        let mut flat = Self::flat(metadata, tensors)?;
        let mut root = Branch::default();
        for (number, (name, _)) in flat.tensors.iter().enumerate() {
            root.insert(name, number).map_err(|error| error.in_field(*name))?;
        }
        flat.tree = Some(root.into_entries());
        Ok(flat)
    }

    pub(super) fn tensors(&self) -> &[Named<'a>] {
        &self.tensors
    }

    pub(super) fn metadata(&self) -> Option<&'a [(String, String)]> {
        self.metadata
    }

    fn tensor(&self, number: usize) -> Option<Tensor<&Deferred<'a>>> {
        self.tensors.get(number).map(|(_, tensor)| Tensor(tensor))
    }
}

/// A map in the making.
#[derive(Default)]
struct Branch<'a> {
    entries: Vec<(&'a str, Growing<'a>)>,
    /// Where each key is among them.
    positions: HashMap<&'a str, usize>,
}

enum Growing<'a> {
    Tensor(usize),
    Branch(Branch<'a>),
}

impl<'a> Branch<'a> {
    fn insert(&mut self, name: &'a str, number: usize) -> Result<()> {
        if name.split('.').nth(MAX_STEPS).is_some() {
            let what = format!("a name of more than {MAX_STEPS} steps cannot be nested");
            return Err(Error::limit(what));
        }
        if name.split('.').next() == Some(METADATA) {
            let what = format!("the name cannot be nested: `{METADATA}` is taken");
            return Err(Error::data(what));
        }
        let clash = || {
            Error::data(
                "the name cannot be nested: another one leads through it, or it through another; \
                 save the file flat",
            )
        };
        let (through, last) = name.rsplit_once('.').map_or((None, name), |(a, b)| (Some(a), b));
        let mut branch = self;
        for step in through.into_iter().flat_map(|through| through.split('.')) {
            match branch.at(step, || Growing::Branch(Branch::default())) {
                Some(Growing::Branch(inner)) => branch = inner,
                _ => return Err(clash()),
            }
        }
        if branch.positions.contains_key(last) {
            return Err(clash());
        }
        branch.at(last, || Growing::Tensor(number));
        Ok(())
    }

    fn at(
        &mut self,
        step: &'a str,
        make: impl FnOnce() -> Growing<'a>,
    ) -> Option<&mut Growing<'a>> {
        let at = *self.positions.entry(step).or_insert_with(|| {
            self.entries.push((step, make()));
            self.entries.len() - 1
        });
        self.entries.get_mut(at).map(|(_, next)| next)
    }

    fn into_entries(self) -> Vec<(&'a str, Node<'a>)> {
        let node = |next| match next {
            Growing::Tensor(number) => Node::Tensor(number),
            Growing::Branch(branch) => branch.into_node(),
        };
        self.entries.into_iter().map(|(step, next)| (step, node(next))).collect()
    }

    /// An array where the steps are the numbers from zero on, each written as numbers are.
    fn into_node(self) -> Node<'a> {
        let count = self.entries.len();
        let counts = (0..count).all(|number| {
            // Keys are unique: as many of them as numbers, and each number among them.
            self.positions.contains_key(number.to_string().as_str())
        });
        let mut entries = self.into_entries();
        if !counts {
            return Node::Map(entries);
        }
        entries.sort_by_key(|(step, _)| step.parse().unwrap_or(usize::MAX));
        Node::List(entries.into_iter().map(|(_, node)| node).collect())
    }
}

impl Serialize for AsValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let count = self.tree.as_ref().map_or(self.tensors.len(), Vec::len);
        let count = count + usize::from(self.metadata.is_some());
        let mut map = serializer.serialize_map(Some(count))?;
        if let Some(metadata) = self.metadata {
            map.serialize_entry(METADATA, &Texts(metadata))?;
        }
        match &self.tree {
            None => {
                for (name, tensor) in &self.tensors {
                    map.serialize_entry(name, &Tensor(tensor))?;
                }
            }
            Some(entries) => {
                for (step, node) in entries {
                    map.serialize_entry(step, &Inside { value: self, node })?;
                }
            }
        }
        map.end()
    }
}

struct Texts<'a>(&'a [(String, String)]);

impl Serialize for Texts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, text)| (key, text)))
    }
}

/// A part of the tree.
struct Inside<'v, 'a> {
    value: &'v AsValue<'a>,
    node: &'v Node<'a>,
}

impl Serialize for Inside<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let inside = |node| Inside { value: self.value, node };
        match self.node {
            Node::Tensor(number) => self.value.tensor(*number).serialize(serializer),
            Node::List(nodes) => serializer.collect_seq(nodes.iter().map(inside)),
            Node::Map(entries) => {
                serializer.collect_map(entries.iter().map(|(step, node)| (step, inside(node))))
            }
        }
    }
}
