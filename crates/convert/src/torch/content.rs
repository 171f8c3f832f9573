//! The value of a pickle, with its tensors and the plain values beside them.

use tenarc::Result;
use tenarc::tensor::Deferred;

use super::pickle::{Object, Pickle, Rebuilt, Value, lost, object};
use super::tree::{Leaf, Tree};
use super::value::Plain;
use crate::as_value::{AsValue, Part};
use crate::nested::{Key, Node};
use crate::{Losses, Names};

/// The value of a pickle.
#[derive(Debug)]
pub struct Content {
    pub objects: Vec<Object>,
    pub losses: Losses,
    root: Value,
    leaves: Vec<Leaf>,
    bare: bool,
}

impl Content {
    /// Finds the tensors and the plain values of a pickle, and adds what cannot be kept to the losses.
    pub fn new(mut pickle: Pickle, losses: Losses) -> Result<Self> {
        let Tree { leaves, bare, losses } = Tree::new(&mut pickle, losses)?;
        let Pickle { objects, root, .. } = pickle;
        Ok(Self { objects, losses, root, leaves, bare })
    }

    /// Returns the tensors in the order of the value: the name of each, the number of its object, and its description.
    pub fn tensors(&self) -> impl Iterator<Item = (&str, usize, &Rebuilt)> {
        self.leaves.iter().filter_map(|Leaf { name, value, .. }| {
            let Value::Object(number) = *value else { return None };
            match self.objects.get(number)? {
                Object::Tensor(tensor) => Some((&**name, number, &**tensor)),
                _ => None,
            }
        })
    }

    /// Returns the value. `tensor` returns the tensor with the given number in the order of
    /// [`tensors`](Self::tensors).
    pub fn value<'a>(
        &'a self,
        names: Names,
        tensor: impl Fn(usize) -> Result<Deferred<'a>>,
    ) -> Result<AsValue<'a>> {
        let (mut numbers, mut parts) = (0.., Vec::with_capacity(self.leaves.len()));
        for Leaf { name, value, is_tensor } in &self.leaves {
            let part = if *is_tensor {
                let tensor = tensor(numbers.next().unwrap_or(usize::MAX)).map(Part::Tensor);
                tensor.map_err(|error| error.in_field(&**name))?
            } else {
                Part::Plain(Plain { objects: &self.objects, value: *value })
            };
            parts.push((&**name, part));
        }
        let value = if self.bare || names == Names::Stored {
            AsValue::of(self.node(self.root, &mut 0), parts)
        } else {
            AsValue::flat(parts)
        };
        value.with_losses(self.losses.clone()).named(names, false)
    }

    /// Makes a tree of a value of the pickle. Its leaves are numbered in their order, from `next` on.
    fn node(&self, value: Value, next: &mut usize) -> Node<'_> {
        let objects = &self.objects[..];
        let is_leaf = match (value, self.leaves.get(*next).map(|leaf| leaf.value)) {
            (Value::Object(number), Some(Value::Object(leaf))) => number == leaf,
            (value, _) => !matches!(value, Value::Object(_)),
        };
        match object(objects, value) {
            _ if lost(objects, value).is_some() => Node::Null,
            _ if is_leaf => {
                *next += 1;
                Node::Leaf(*next - 1)
            }
            Some(Object::Dict(dict)) => {
                let mut entries = Vec::with_capacity(dict.entries.len());
                for (key, value) in &dict.entries {
                    let key = match (*key, object(objects, *key)) {
                        (Value::Int(number), _) => Key::Integer(number),
                        (_, Some(Object::Text(text))) => Key::Text(text),
                        _ => continue,
                    };
                    if lost(objects, *value).is_none() {
                        entries.push((key, self.node(*value, next)));
                    }
                }
                Node::Map(entries)
            }
            Some(Object::List(values)) => {
                Node::List(values.iter().map(|value| self.node(*value, next)).collect())
            }
            Some(Object::Tuple(values)) => {
                Node::List(values.iter().map(|value| self.node(*value, next)).collect())
            }
            _ => Node::Null,
        }
    }
}
