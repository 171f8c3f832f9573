//! A file as a value: flat, or with its names taken apart.

use std::fmt;

use serde::ser::{Error as _, Serialize, SerializeMap as _, SerializeSeq as _, Serializer};
use tenarc::tensor::Deferred;
use tenarc::{Error, Result, Tensor};

use crate::exported::{AsTexts, METADATA};
use crate::nested::{Inside, Node};

/// A file, or a batch, as a value that can be saved: see [`ArrowFile::flat`](super::ArrowFile::flat) and
/// [`ArrowFile::nested`](super::ArrowFile::nested).
#[derive(Debug)]
pub struct AsValue<'a> {
    pub(super) metadata: Option<&'a [(String, String)]>,
    /// Columns by their numbers in the tree.
    pub(super) parts: Vec<Part<'a>>,
    pub(super) tree: Vec<(&'a str, Node<'a>)>,
}

impl<'a> AsValue<'a> {
    /// The tensors, in the order in which they are written.
    pub(super) fn tensors(&self) -> impl Iterator<Item = &Deferred<'a>> {
        fn numbers(node: &Node<'_>, found: &mut Vec<usize>) {
            match node {
                Node::Leaf(number) => found.push(*number),
                Node::List(nodes) => nodes.iter().for_each(|node| numbers(node, found)),
                Node::Map(entries) => entries.iter().for_each(|(_, node)| numbers(node, found)),
            }
        }
        let mut found = Vec::new();
        self.tree.iter().for_each(|(_, node)| numbers(node, &mut found));
        found.into_iter().filter_map(|number| match self.parts.get(number) {
            Some(Part::Tensor(tensor)) => Some(tensor),
            _ => None,
        })
    }
}

/// A column that is no struct.
#[derive(Debug)]
pub enum Part<'a> {
    Tensor(Deferred<'a>),
    Strings(Strings<'a>),
}

/// An array of texts or of byte strings, which are read when they are written.
pub struct Strings<'a> {
    pub rows: usize,
    pub text: bool,
    pub each: Box<Each<'a>>,
}

/// Hands over all strings.
pub type Each<'a> = dyn Fn(&mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> + 'a;

impl fmt::Debug for Strings<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Strings").field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl Serialize for AsValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let count = self.tree.len() + usize::from(self.metadata.is_some());
        let mut map = serializer.serialize_map(Some(count))?;
        if let Some(metadata) = self.metadata {
            map.serialize_entry(METADATA, &AsTexts(metadata))?;
        }
        for (step, node) in &self.tree {
            map.serialize_entry(step, &Inside { node, leaf: |number| self.parts.get(number) })?;
        }
        map.end()
    }
}

impl Serialize for Part<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Tensor(tensor) => Tensor(tensor).serialize(serializer),
            Self::Strings(strings) => strings.serialize(serializer),
        }
    }
}

impl Serialize for Strings<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(Some(self.rows))?;
        let mut failed = None;
        let done = (self.each)(&mut |string| {
            let put = match std::str::from_utf8(string) {
                Ok(text) if self.text => seq.serialize_element(text),
                _ => seq.serialize_element(serde_bytes::Bytes::new(string)),
            };
            put.map_err(|error| {
                failed = Some(error);
                Error::data("cannot be written")
            })
        });
        match (failed, done) {
            (Some(error), _) => Err(error),
            (None, Err(error)) => Err(S::Error::custom(error)),
            (None, Ok(())) => seq.end(),
        }
    }
}
