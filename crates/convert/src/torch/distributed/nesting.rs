//! Puts the values of a checkpoint at their paths.

use std::collections::{BTreeMap, HashMap};

use tenarc::{Error, Result};

use crate::torch::pickle::{Heap, Object, Value};

/// The most items of lists that the checkpoint does not have. torch leaves out empty containers, so a list may lack some
/// of its items.
const MAX_GAPS: usize = 1 << 16;

/// A step of a path.
pub enum Step {
    /// A key of a map.
    Key(Box<str>),
    /// An index of a list.
    Index(usize),
}

/// The value of a checkpoint while it is put together. A node comes after the node that contains it.
pub struct Nesting(Vec<Node>);

enum Node {
    Leaf(Value),
    /// The keys in their order, each with the number of its node, and the numbers by their keys.
    Map(Vec<(Box<str>, usize)>, HashMap<Box<str>, usize>),
    List(BTreeMap<usize, usize>),
}

impl Nesting {
    pub fn new() -> Self {
        Self(vec![Node::Map(Vec::new(), HashMap::new())])
    }

    /// Puts a value at a path.
    pub fn put(&mut self, steps: &[Step], value: Value) -> Result<()> {
        let clash = || {
            let what = "another value is at this path, or at a path that begins with it or that it begins with";
            Error::data(what)
        };
        let mut at = 0;
        for (number, step) in steps.iter().enumerate() {
            let next = steps.get(number + 1);
            let new = self.0.len();
            let node = self.0.get_mut(at);
            at = match (node, step) {
                (Some(Node::Map(keys, numbers)), Step::Key(key)) => match numbers.get(key) {
                    Some(found) => *found,
                    None => {
                        keys.push((key.clone(), new));
                        numbers.insert(key.clone(), new);
                        new
                    }
                },
                (Some(Node::List(items)), Step::Index(index)) => {
                    *items.entry(*index).or_insert(new)
                }
                _ => return Err(clash()),
            };
            if at == new {
                self.0.push(match next {
                    None => Node::Leaf(value),
                    Some(Step::Key(_)) => Node::Map(Vec::new(), HashMap::new()),
                    Some(Step::Index(_)) => Node::List(BTreeMap::new()),
                });
            } else if next.is_none() {
                return Err(clash());
            }
        }
        Ok(())
    }

    /// Adds the whole value to the objects of a heap.
    pub fn finish(self, heap: &mut Heap) -> Result<Value> {
        let mut gaps = MAX_GAPS;
        let mut values = vec![Value::None; self.0.len()];
        // Backwards, so that the contents of a container are made before it.
        for (number, node) in self.0.into_iter().enumerate().rev() {
            let value = |number: usize| values.get(number).copied().unwrap_or_default();
            let made = match node {
                Node::Leaf(value) => value,
                Node::Map(keys, _) => {
                    let mut entries = Vec::with_capacity(keys.len());
                    for (key, number) in keys {
                        entries.push((heap.add(Object::Text(key))?, value(number)));
                    }
                    heap.add(Object::of_entries(entries))?
                }
                Node::List(items) => {
                    let len = items.last_key_value().map_or(0, |(last, _)| last.saturating_add(1));
                    gaps = gaps.checked_sub(len - items.len()).ok_or_else(|| {
                        Error::limit(format!("lists lack more than {MAX_GAPS} of their items"))
                    })?;
                    let mut list = vec![Value::None; len];
                    for (index, number) in items {
                        if let Some(place) = list.get_mut(index) {
                            *place = value(number);
                        }
                    }
                    heap.add(Object::List(list))?
                }
            };
            if let Some(place) = values.get_mut(number) {
                *place = made;
            }
        }
        Ok(values.first().copied().unwrap_or_default())
    }
}
