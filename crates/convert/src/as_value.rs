//! A file as a value that can be saved: a flat map of its tensors, or nested by the dots in their names.

use std::fmt;

use serde::ser::{Error as _, Serialize, SerializeMap as _, SerializeSeq as _, Serializer};
use tenarc::de::Limits;
use tenarc::tensor::{Deferred, TensorInfo, ToTensor as _};
use tenarc::types::{TypeName, Typed};
use tenarc::{Error, Result, Tensor, Value};

use crate::Losses;
use crate::apart::Current;
use crate::exported::{AsTexts, METADATA};
use crate::nested::{self, Inside, Key, Names, Node};
use crate::texts::Texts;

/// A file as a value that can be saved, as [`TensorFile::value`](crate::TensorFile::value) returns it. Each tensor is
/// read when it is written.
#[derive(Debug)]
pub struct AsValue<'a> {
    metadata: Metadata<'a>,
    /// The parts with their names, which are unique.
    parts: Vec<(&'a str, Part<'a>)>,
    /// The structure of the value. Its leaves are indices into `parts`.
    root: Node<'a>,
    losses: Losses,
}

/// The metadata of a file. The value has them under the key [`METADATA`].
#[derive(Debug)]
pub enum Metadata<'a> {
    None,
    Texts(&'a [(String, String)]),
    Values(&'a [(String, Value)]),
}

/// A leaf of a value.
#[derive(Debug)]
pub enum Part<'a> {
    Tensor(Deferred<'a>),
    /// A pair of a name and a tensor.
    Pair(&'a str, Deferred<'a>),
    /// A tensor of a named type.
    Typed(TypeName, Deferred<'a>),
    Strings(Strings<'a>),
    Texts(Texts<'a>),
    #[cfg(feature = "hdf5")]
    Value(&'a Value),
    #[cfg(feature = "torch")]
    Plain(crate::torch::value::Plain<'a>),
}

impl<'a> Part<'a> {
    fn tensor(&self) -> Option<&Deferred<'a>> {
        match self {
            Self::Tensor(tensor) | Self::Pair(_, tensor) | Self::Typed(_, tensor) => Some(tensor),
            Self::Strings(_) | Self::Texts(_) => None,
            #[cfg(feature = "hdf5")]
            Self::Value(_) => None,
            #[cfg(feature = "torch")]
            Self::Plain(_) => None,
        }
    }
}

impl<'a> AsValue<'a> {
    /// Makes a map from names to parts.
    pub(crate) fn flat(parts: Vec<(&'a str, Part<'a>)>) -> Self {
        let leaves = parts
            .iter()
            .enumerate()
            .map(|(number, (name, _))| (Key::Text(name), Node::Leaf(number)));
        Self::of(Node::Map(leaves.collect()), parts)
    }

    /// Makes a value of parts. The leaves of `root` are indices into `parts`.
    pub(crate) fn of(root: Node<'a>, parts: Vec<(&'a str, Part<'a>)>) -> Self {
        Self { metadata: Metadata::None, parts, root, losses: Losses::default() }
    }

    pub(crate) fn with_metadata(self, metadata: Metadata<'a>) -> Self {
        Self { metadata, ..self }
    }

    pub(crate) fn with_texts(self, texts: Option<&'a [(String, String)]>) -> Self {
        self.with_metadata(texts.map_or(Metadata::None, Metadata::Texts))
    }

    pub(crate) fn with_losses(self, losses: Losses) -> Self {
        Self { losses, ..self }
    }

    /// Checks the names and the dimensions of the tensors, and nests the value by the dots in its names if `names` asks
    /// for that. `is_nested` says whether the file was written from a nested value.
    pub(crate) fn named(mut self, names: Names, is_nested: bool) -> Result<Self> {
        for (name, part) in &self.parts {
            let found = part.tensor().map_or(0, |tensor| tensor.meta().shape.len());
            let most = Limits::DEFAULT_RANK;
            if found > most {
                let what = format!("the tensor has {found} dimensions, expected at most {most}");
                return Err(Error::limit(what).in_field(*name));
            }
        }
        let Node::Map(entries) = &self.root else { return Ok(self) };
        let nests = names.are_nested(is_nested);
        let taken = |name: &str| {
            let what = format!(
                "the name cannot be nested: its first step `{METADATA}` is reserved for the metadata"
            );
            Err(Error::data(what).in_field(name))
        };
        if nests {
            let mut names = self.parts.iter().map(|(name, _)| *name);
            if let Some(name) = names.find(|name| name.split('.').next() == Some(METADATA)) {
                return taken(name);
            }
            self.root = Node::Map(nested::tree(self.parts.iter().map(|(name, _)| *name))?);
        } else if !matches!(self.metadata, Metadata::None)
            && entries.iter().any(|(name, _)| *name == Key::Text(METADATA))
        {
            let what = format!(
                "a tensor cannot be named `{METADATA}`, which is reserved for the metadata"
            );
            return Err(Error::data(what).in_field(METADATA));
        }
        Ok(self)
    }

    /// Returns the tensors and their names, in the order of the file.
    pub fn tensors(&self) -> impl Iterator<Item = (&'a str, &Deferred<'a>)> {
        self.parts.iter().filter_map(|(name, part)| Some((*name, part.tensor()?)))
    }

    /// Returns descriptions of the tensors, in the order of the file. The path of each is its name.
    pub fn infos(&self) -> Vec<TensorInfo> {
        let info = |(name, tensor): (&str, &Deferred<'_>)| {
            let meta = tensor.meta();
            let len = tensor.byte_len(&meta).unwrap_or(0) as u64;
            TensorInfo::new(name.to_owned(), meta, len)
        };
        self.tensors().map(info).collect()
    }

    /// Returns what the file holds that the value does not.
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// Returns the losses, and a note if the value holds nothing. Otherwise, an empty file would look like success.
    pub(crate) fn told(&self) -> Losses {
        let mut losses = self.losses.clone();
        if self.parts.is_empty() && matches!(self.metadata, Metadata::None) {
            losses.note("the file holds no tensors");
        }
        losses
    }

    /// Returns the number of parts that are kept: tensors, and others such as texts.
    pub(crate) fn kept(&self) -> usize {
        self.parts.len()
    }

    /// Returns whether the value is a map. An archive lists each tensor of a map by itself, but may store the rows of a
    /// sequence as columns.
    pub(crate) fn is_map(&self) -> bool {
        matches!(self.root, Node::Map(_))
    }

    /// Returns the tensors in the order in which the value is written.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = &Deferred<'a>> {
        fn numbers(node: &Node<'_>, found: &mut Vec<usize>) {
            match node {
                Node::Leaf(number) => found.push(*number),
                #[cfg(feature = "torch")]
                Node::Null => {}
                Node::List(nodes) => nodes.iter().for_each(|node| numbers(node, found)),
                Node::Map(entries) => entries.iter().for_each(|(_, node)| numbers(node, found)),
            }
        }
        let mut found = Vec::new();
        numbers(&self.root, &mut found);
        found.into_iter().filter_map(|number| self.parts.get(number)?.1.tensor())
    }

    pub(crate) fn into_parts(self) -> Vec<(&'a str, Part<'a>)> {
        self.parts
    }

    pub(crate) fn name(&self, number: usize) -> Option<&'a str> {
        self.parts.get(number).map(|(name, _)| *name)
    }

    fn put<S: Serializer>(
        &self,
        current: Option<&Current>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let leaf = |number: usize| {
            let (_, part) = self.parts.get(number)?;
            Some(Leaf { number, part, current })
        };
        let inside = |node| Inside { node, leaf };
        let Node::Map(entries) = &self.root else {
            return inside(&self.root).serialize(serializer);
        };
        let has_metadata = !matches!(self.metadata, Metadata::None);
        let mut map = serializer.serialize_map(Some(entries.len() + usize::from(has_metadata)))?;
        match &self.metadata {
            Metadata::None => {}
            Metadata::Texts(texts) => map.serialize_entry(METADATA, &AsTexts(texts))?,
            Metadata::Values(values) => map.serialize_entry(METADATA, &AsTexts(values))?,
        }
        for (step, node) in entries {
            map.serialize_entry(step, &inside(node))?;
        }
        map.end()
    }
}

impl Serialize for AsValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.put(None, serializer)
    }
}

/// A value that tells which of its parts is being written, if that has a tensor.
pub struct Telling<'v, 'a>(pub &'v AsValue<'a>, pub &'v Current);

impl Serialize for Telling<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.put(Some(self.1), serializer)
    }
}

struct Leaf<'v, 'a> {
    number: usize,
    part: &'v Part<'a>,
    current: Option<&'v Current>,
}

impl Serialize for Leaf<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match (self.current, self.part.tensor()) {
            (Some(current), Some(_)) => {
                current.tensor(self.number, || self.part.serialize(serializer))
            }
            _ => self.part.serialize(serializer),
        }
    }
}

impl Serialize for Part<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Tensor(tensor) => Tensor(tensor).serialize(serializer),
            Self::Pair(name, tensor) => (name, Tensor(tensor)).serialize(serializer),
            Self::Typed(of, tensor) => Typed::new(of, &Tensor(tensor)).serialize(serializer),
            Self::Strings(strings) => strings.serialize(serializer),
            Self::Texts(texts) => texts.serialize(serializer),
            #[cfg(feature = "hdf5")]
            Self::Value(value) => value.serialize(serializer),
            #[cfg(feature = "torch")]
            Self::Plain(plain) => plain.serialize(serializer),
        }
    }
}

/// An array of texts or byte strings that are read when they are written.
pub struct Strings<'a> {
    pub rows: usize,
    pub text: bool,
    pub each: Box<Each<'a>>,
}

/// Passes all strings to a function, one after the other.
pub type Each<'a> = dyn Fn(&mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> + 'a;

impl fmt::Debug for Strings<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Strings").field("rows", &self.rows).finish_non_exhaustive()
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
