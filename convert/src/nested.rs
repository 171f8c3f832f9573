//! Names taken apart at their dots.

use std::collections::HashMap;

use serde::ser::{Error as _, Serialize, Serializer};
use tenarc::{Error, Result};

/// How the names of tensors are taken into an archive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Names {
    /// As the file says: nested if it was written from a nested value, and flat otherwise.
    #[default]
    Stored,
    /// As they are: the value is that of [`flat`](crate::TensorFile::flat).
    Flat,
    /// Taken apart at their dots: the value is that of [`nested`](crate::TensorFile::nested).
    Nested,
}

/// Steps that a name is taken apart into. Each is a level of nesting, of which readers allow 128.
pub const MAX_STEPS: usize = 64;

impl Names {
    /// Whether names are taken apart. `stored` says whether the file was written from a nested value.
    pub(crate) fn are_nested(self, stored: bool) -> bool {
        match self {
            Self::Stored => stored,
            Self::Flat => false,
            Self::Nested => true,
        }
    }
}

/// The key of metadata under which a file says that it was written from a nested value.
pub const KEY: &str = "tenarc.names";
pub const NESTED: &str = "nested";

/// The comment of a zip file that was written from a nested value. Zip files have no other place for metadata.
pub const COMMENT: &str = "tenarc.names: nested";

/// Adds to metadata that names are paths of a nested value.
pub fn mark(metadata: &mut Option<Vec<(String, String)>>) {
    let texts = metadata.get_or_insert_default();
    texts.retain(|(key, _)| key != KEY);
    texts.push((KEY.to_owned(), NESTED.to_owned()));
}

/// Removes from metadata what [`mark`] adds. Returns whether it was there.
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

/// A part of a tree of names; what is named is given by its number.
#[derive(Debug)]
pub enum Node<'a> {
    Leaf(usize),
    Map(Vec<(Key<'a>, Node<'a>)>),
    List(Vec<Node<'a>>),
    /// In place of an item of a list that is left out.
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

/// A part of a tree as a value; what is named is had by its number.
pub struct Inside<'v, 'a, F> {
    pub node: &'v Node<'a>,
    pub leaf: F,
}

impl<T: Serialize, F: Fn(usize) -> Option<T> + Copy> Serialize for Inside<'_, '_, F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let inside = |node| Inside { node, leaf: self.leaf };
        match self.node {
            // Not as an option: of null, it would be another one.
            Node::Leaf(number) => match (self.leaf)(*number) {
                Some(leaf) => leaf.serialize(serializer),
                None => Err(S::Error::custom("there is nothing of this number")),
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

/// The tree that names make, which is a map; inside, steps that count from zero make a list.
pub fn tree<'a>(names: impl Iterator<Item = &'a str>) -> Result<Vec<(Key<'a>, Node<'a>)>> {
    let mut root = Branch::default();
    for (number, name) in names.enumerate() {
        root.insert(name, number).map_err(|error| error.in_field(name))?;
    }
    Ok(root.into_entries())
}

/// A map in the making.
#[derive(Default)]
struct Branch<'a> {
    entries: Vec<(&'a str, Growing<'a>)>,
    /// Where each key is among them.
    positions: HashMap<&'a str, usize>,
}

enum Growing<'a> {
    Leaf(usize),
    Branch(Branch<'a>),
}

impl<'a> Branch<'a> {
    fn insert(&mut self, name: &'a str, number: usize) -> Result<()> {
        if name.split('.').nth(MAX_STEPS).is_some() {
            let what = format!("a name of more than {MAX_STEPS} steps cannot be nested");
            return Err(Error::limit(what));
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
        entries.sort_by_key(|(step, _)| match step {
            Key::Text(step) => step.parse().unwrap_or(usize::MAX),
            #[cfg(feature = "torch")]
            Key::Integer(_) => usize::MAX,
        });
        Node::List(entries.into_iter().map(|(_, node)| node).collect())
    }
}
