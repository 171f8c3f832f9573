//! The tensors of a value as a tree, for `ls --tree`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::Write;

use crate::document::Compressed;
use crate::failure::Result;
use crate::node::Payload;
use crate::output::{DTYPE, FAINT, Out};
use crate::text::{bytes, counted, escaped};

/// Keys are split at dots until a path has this many steps, so that no line is indented without bound.
const STEPS: usize = 32;

/// No further key is split if there are this many branches. Models have fewer. A branch takes more memory than the dot
/// that makes it.
const BRANCHES: usize = 1 << 20;

/// The tree. Its branches are in one list, so that a deep tree needs no recursion.
pub struct Tree<'a> {
    /// The first one is the root.
    branches: Vec<Branch<'a>>,
    /// The branch of a step inside another branch.
    places: HashMap<(usize, Cow<'a, str>), usize>,
}

/// Everything under one step of a path.
#[derive(Default)]
struct Branch<'a> {
    step: Cow<'a, str>,
    /// A tensor, and how it is compressed.
    tensor: Option<(&'a Payload, Option<Compressed<'a>>)>,
    /// The number of tensors in the branch.
    tensors: u64,
    bytes: u64,
    /// The bytes that are stored: fewer, if tensors are compressed.
    stored: u64,
    /// The children, in the order of the value, are a linked list.
    first: Option<usize>,
    last: Option<usize>,
    next: Option<usize>,
}

impl<'a> Tree<'a> {
    pub fn new() -> Self {
        Self { branches: vec![Branch::default()], places: HashMap::new() }
    }

    /// Adds a tensor. The dots in its keys separate steps, too: many formats have no other structure.
    pub fn add(
        &mut self,
        keys: &[Cow<'a, str>],
        payload: &'a Payload,
        compressed: Option<Compressed<'a>>,
    ) {
        let most = if self.branches.len() < BRANCHES { STEPS } else { 1 };
        let steps = split(keys, most);
        let mut at = self.count(0, payload, compressed);
        let last = steps.len().saturating_sub(1);
        for (number, step) in steps.into_iter().enumerate() {
            let is_last = number == last;
            at = self.child(at, step, is_last);
            self.count(at, payload, compressed);
        }
        if let Some(branch) = self.branches.get_mut(at) {
            branch.tensor = Some((payload, compressed));
        }
    }

    /// Returns the child at a step. If it is to become a tensor, and is one already, it gets a sibling of the same name.
    fn child(&mut self, parent: usize, step: Cow<'a, str>, is_tensor: bool) -> usize {
        let new = self.branches.len();
        match self.places.entry((parent, step.clone())) {
            Entry::Occupied(found) => {
                let found = *found.get();
                let is_taken = self.branches.get(found).is_some_and(|one| one.tensor.is_some());
                if !(is_tensor && is_taken) {
                    return found;
                }
            }
            Entry::Vacant(place) => {
                place.insert(new);
            }
        }
        self.branches.push(Branch { step, ..Branch::default() });
        let before = self.branches.get_mut(parent).and_then(|parent| {
            parent.first.get_or_insert(new);
            parent.last.replace(new)
        });
        if let Some(before) = before.and_then(|before| self.branches.get_mut(before)) {
            before.next = Some(new);
        }
        new
    }

    fn count(&mut self, at: usize, tensor: &Payload, compressed: Option<Compressed<'_>>) -> usize {
        if let Some(branch) = self.branches.get_mut(at) {
            let stored = compressed.map_or(tensor.byte_len, |how| how.stored);
            branch.tensors += 1;
            branch.bytes = branch.bytes.saturating_add(tensor.byte_len);
            branch.stored = branch.stored.saturating_add(stored);
        }
        at
    }

    pub fn is_empty(&self) -> bool {
        self.branches.first().is_none_or(|root| root.tensors == 0)
    }

    /// Returns the totals of the whole value.
    pub fn summary(&self, out: &Out) -> String {
        self.branches.first().map_or_else(String::new, |root| root.summary(out))
    }

    /// Prints a line for each branch but the root.
    pub fn print(&self, out: &mut Out) -> Result<()> {
        let mut indent = String::new();
        // The branches that come next: the sibling of each branch on the way, and the length of its indent.
        let first = self.branches.first().and_then(|root| root.first);
        let mut open = vec![(first, 0)];
        while let Some((at, len)) = open.pop() {
            indent.truncate(len);
            let Some(branch) = at.and_then(|at| self.branches.get(at)) else { continue };
            let (edge, below) = if branch.next.is_none() {
                ("└── ", "    ")
            } else {
                ("├── ", "│   ")
            };
            let step = if branch.step.is_empty() { "\"\"".into() } else { escaped(&branch.step) };
            writeln!(out, "{indent}{edge}{step}  {}", branch.summary(out))?;
            open.push((branch.next, len));
            indent.push_str(below);
            open.push((branch.first, indent.len()));
        }
        Ok(())
    }
}

impl Branch<'_> {
    fn summary(&self, out: &Out) -> String {
        match self.tensor {
            // A path can name a tensor and, with more steps, others. The size is that of the tensor.
            Some((payload, compressed)) => {
                let mut size = bytes(payload.byte_len);
                if let Some(Compressed { codec, stored }) = compressed {
                    size = format!("{size} ({} {})", escaped(codec), bytes(stored));
                }
                format!("{}  {size}", out.styled(DTYPE, &payload.label()))
            }
            None => {
                let mut size = bytes(self.bytes);
                if self.stored < self.bytes {
                    size = format!("{size} ({} stored)", bytes(self.stored));
                }
                out.styled(FAINT, &format!("{}, {size}", counted(self.tensors, "tensor")))
            }
        }
    }
}

/// Splits keys at their dots, until there are `most` steps.
fn split<'a>(keys: &[Cow<'a, str>], most: usize) -> Vec<Cow<'a, str>> {
    let mut steps = Vec::new();
    for key in keys {
        let most = most.saturating_sub(steps.len()).max(1);
        match key {
            Cow::Borrowed(key) => steps.extend(key.splitn(most, '.').map(Cow::Borrowed)),
            // A position in a list.
            Cow::Owned(_) => steps.push(key.clone()),
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    #[test]
    fn keys_are_split_until_there_are_many_steps() {
        let split = |keys: &[&'static str]| {
            let keys: Vec<_> = keys.iter().map(|&key| Cow::Borrowed(key)).collect();
            super::split(&keys, super::STEPS)
        };
        assert_eq!(split(&["a.b", "c", ".d"]), ["a", "b", "c", "", "d"]);
        let long: &'static str = ".".repeat(1000).leak();
        let steps = split(&[long, "x.y", "z"]);
        assert_eq!((steps.len(), steps[31].len()), (34, 1000 - 31));
        assert_eq!(steps[32..], ["x.y", "z"], "keys of a nested value stay steps");
    }
}
