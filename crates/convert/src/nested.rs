//! Nested values, whose structure comes from names that are split at their dots.

use std::collections::HashMap;

use serde::ser::{Error as _, Serialize, Serializer};
use tenarc::{Error, Result};

/// Whether names of tensors become keys of an archive as they are, or are split at their dots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Names {
    /// As the file says: split if the file was written from a nested value, and kept otherwise.
    #[default]
    Stored,
    /// Names are kept: the value is that of [`flat`](crate::TensorFile::flat).
    Flat,
    /// Names are split at their dots: the value is that of [`nested`](crate::TensorFile::nested).
    Nested,
}

/// The most steps that a name is split into. Each step is a level of nesting, and readers allow 128 levels.
pub const MAX_STEPS: usize = 64;

impl Names {
    /// Returns whether names are split. `stored` says whether the file was written from a nested value.
    pub(crate) fn are_nested(self, stored: bool) -> bool {
        match self {
            Self::Stored => stored,
            Self::Flat => false,
            Self::Nested => true,
        }
    }
}

/// The key in the metadata that marks a file as written from a nested value.
pub const KEY: &str = "tenarc.names";
pub const NESTED: &str = "nested";

/// The comment of a zip file that was written from a nested value. Zip files have no other place for metadata.
pub const COMMENT: &str = "tenarc.names: nested";

/// Adds a mark to metadata. It says that names are paths of a nested value.
pub fn mark(metadata: &mut Option<Vec<(String, String)>>) {
    let texts = metadata.get_or_insert_default();
    texts.retain(|(key, _)| key != KEY);
    texts.push((KEY.to_owned(), NESTED.to_owned()));
}

/// Removes from metadata the mark that [`mark`] adds. Returns whether it was there.
pub fn take_mark(metadata: &mut Option<Vec<(String, String)>>) -> bool {
    let is_mark = |(key, text): &(String, String)| key == KEY && text == NESTED;
    let Some(texts) = metadata.as_mut().filter(|texts| texts.iter().any(is_mark)) else {
        return false;
    };
    texts.retain(|pair| !is_mark(pair));
    if texts.is_empty() {
        *metadata = None;
    }
    true
}

/// A node of a nested value. A leaf is the number of a named part.
#[derive(Debug)]
pub enum Node<'a> {
    Leaf(usize),
    Map(Vec<(Key<'a>, Node<'a>)>),
    List(Vec<Node<'a>>),
    /// Replaces an item of a list that is left out.
    #[cfg(feature = "torch")]
    Null,
}

/// A key of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key<'a> {
    Text(&'a str),
    #[cfg(feature = "torch")]
    Integer(i64),
}

impl Serialize for Key<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            #[cfg(feature = "torch")]
            Self::Integer(number) => serializer.serialize_i64(*number),
        }
    }
}

/// A node that can be serialized. `leaf` returns the part with a given number.
pub struct Inside<'v, 'a, F> {
    pub node: &'v Node<'a>,
    pub leaf: F,
}

impl<T: Serialize, F: Fn(usize) -> Option<T> + Copy> Serialize for Inside<'_, '_, F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let inside = |node| Inside { node, leaf: self.leaf };
        match self.node {
            // The leaf is not written as an option: an option of null is another value than null.
            Node::Leaf(number) => match (self.leaf)(*number) {
                Some(leaf) => leaf.serialize(serializer),
                None => {
                    Err(S::Error::custom("a leaf has the number of a part that does not exist"))
                }
            },
            #[cfg(feature = "torch")]
            Node::Null => serializer.serialize_none(),
            Node::List(nodes) => serializer.collect_seq(nodes.iter().map(inside)),
            Node::Map(entries) => {
                serializer.collect_map(entries.iter().map(|(step, node)| (step, inside(node))))
            }
        }
    }
}

/// Returns the entries of the nested map that names describe. An inner map with the keys 0, 1, … becomes a list.
pub fn tree<'a>(names: impl Iterator<Item = &'a str>) -> Result<Vec<(Key<'a>, Node<'a>)>> {
    let mut root = Branch::default();
    for (number, name) in names.enumerate() {
        root.insert(name, number).map_err(|error| error.in_field(name))?;
    }
    Ok(root.into_entries())
}

/// A map that is being built.
#[derive(Default)]
struct Branch<'a> {
    entries: Vec<(&'a str, Growing<'a>)>,
    /// The index in `entries` of each key.
    positions: HashMap<&'a str, usize>,
}

enum Growing<'a> {
    Leaf(usize),
    Branch(Branch<'a>),
}

impl<'a> Branch<'a> {
    fn insert(&mut self, name: &'a str, number: usize) -> Result<()> {
        if name.split('.').nth(MAX_STEPS).is_some() {
            let what = format!("the name cannot be nested: it has more than {MAX_STEPS} steps");
            return Err(Error::limit(what));
        }
        let clash = || {
            Error::data(
                "the name cannot be nested: one name is the start of another, such as `a` and `a.b`; \
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
        branch.at(last, || Growing::Leaf(number));
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

    fn into_entries(self) -> Vec<(Key<'a>, Node<'a>)> {
        let node = |next| match next {
            Growing::Leaf(number) => Node::Leaf(number),
            Growing::Branch(branch) => branch.into_node(),
        };
        self.entries.into_iter().map(|(step, next)| (Key::Text(step), node(next))).collect()
    }

    /// Returns a list if the keys are the numbers 0, 1, … without leading zeros, and a map otherwise.
    fn into_node(self) -> Node<'a> {
        let count = self.entries.len();
        let counts = (0..count).all(|number| {
            // Keys are unique. So if there are as many keys as numbers and each number is a key, there are no other
            // keys.
            self.positions.contains_key(number.to_string().as_str())
        });
        let mut entries = self.into_entries();
        if !counts {
            return Node::Map(entries);
        }
        entries.sort_by_key(|(step, _)| match step {
            Key::Text(step) => step.parse().unwrap_or(usize::MAX),
            #[cfg(feature = "torch")]
            Key::Integer(_) => usize::MAX,
        });
        Node::List(entries.into_iter().map(|(_, node)| node).collect())
    }
}
