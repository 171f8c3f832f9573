//! A file of named tensors as a value: flat, or with its names taken apart.

use serde::ser::{Serialize, SerializeMap, Serializer};
use tenarc::de::Limits;
use tenarc::tensor::{Deferred, ToTensor as _};
use tenarc::{Error, Result, Tensor};

use crate::exported::{AsTexts, METADATA};
use crate::nested::{self, Inside, Names, Node};

/// A name and its tensor.
pub type Named<'a> = (&'a str, Deferred<'a>);

/// A file of named tensors as a value that can be saved.
#[derive(Debug)]
pub struct AsValue<'a> {
    metadata: Option<&'a [(String, String)]>,
    tensors: Vec<Named<'a>>,
    /// How the tensors, by their numbers, are nested; flat where there is nothing.
    tree: Option<Vec<(&'a str, Node<'a>)>>,
}

impl<'a> AsValue<'a> {
    pub(crate) fn flat(
        metadata: Option<&'a [(String, String)]>,
        tensors: Vec<Named<'a>>,
    ) -> Result<Self> {
        for (name, tensor) in &tensors {
            let (found, most) = (tensor.meta().shape.len(), Limits::DEFAULT_RANK);
            if found > most {
                let what = format!("{found} dimensions, archives are read with up to {most}");
                return Err(Error::limit(what).in_field(*name));
            }
        }
        Ok(Self { metadata, tensors, tree: None })
    }

    /// The tree that the names make when they are taken apart.
    pub(crate) fn new(
        names: Names,
        is_nested: bool,
        metadata: Option<&'a [(String, String)]>,
        tensors: Vec<Named<'a>>,
    ) -> Result<Self> {
        if names.are_nested(is_nested) {
            Self::nested(metadata, tensors)
        } else {
            Self::flat(metadata, tensors)
        }
    }

    pub(crate) fn nested(
        metadata: Option<&'a [(String, String)]>,
        tensors: Vec<Named<'a>>,
    ) -> Result<Self> {
        let mut flat = Self::flat(metadata, tensors)?;
        for (name, _) in &flat.tensors {
            if name.split('.').next() == Some(METADATA) {
                let what = format!("the name cannot be nested: `{METADATA}` is taken");
                return Err(Error::data(what).in_field(*name));
            }
        }
        flat.tree = Some(nested::tree(flat.tensors.iter().map(|(name, _)| *name))?);
        Ok(flat)
    }

    pub(crate) fn tensors(&self) -> &[Named<'a>] {
        &self.tensors
    }

    pub(crate) fn metadata(&self) -> Option<&'a [(String, String)]> {
        self.metadata
    }

    fn tensor(&self, number: usize) -> Option<Tensor<&Deferred<'a>>> {
        self.tensors.get(number).map(|(_, tensor)| Tensor(tensor))
    }
}

impl Serialize for AsValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let count = self.tree.as_ref().map_or(self.tensors.len(), Vec::len);
        let count = count + usize::from(self.metadata.is_some());
        let mut map = serializer.serialize_map(Some(count))?;
        if let Some(metadata) = self.metadata {
            map.serialize_entry(METADATA, &AsTexts(metadata))?;
        }
        match &self.tree {
            None => {
                for (name, tensor) in &self.tensors {
                    map.serialize_entry(name, &Tensor(tensor))?;
                }
            }
            Some(entries) => {
                for (step, node) in entries {
                    map.serialize_entry(
                        step,
                        &Inside { node, leaf: |number| self.tensor(number) },
                    )?;
                }
            }
        }
        map.end()
    }
}
