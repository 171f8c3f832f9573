//! Paths, which name the parts of a value.
//!
//! Paths are written and looked up by `tenarc::inspect`: keys and positions joined by dots. If such a path could mean
//! several parts, a JSON Pointer (RFC 6901) is used instead.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashSet;

use globset::{GlobBuilder, GlobMatcher};
use tenarc::inspect::{self, Path, Paths, TYPE};

use crate::failure::{Failure, Result};
use crate::limits::limits;
use crate::node::{Columns, Field, Key, Kind, Node, Payload, tagged};
use crate::text::quoted;

/// A payload and its path.
#[derive(Debug)]
pub struct Named<'a> {
    pub path: String,
    pub node: &'a Node,
    pub payload: &'a Payload,
}

impl<'a> Named<'a> {
    /// Returns a column as a payload with its path, if the column is a tensor.
    pub fn of_field(field: &'a Field) -> Option<Self> {
        let node = field.tensor.as_ref()?;
        Some(Self { path: field.path.clone(), node, payload: node.payload()? })
    }
}

/// Returns all payloads of a value, in the order of the value. `encoded` must be the bytes that `root` was parsed from.
///
/// # Errors
/// If `encoded` is not well-formed.
pub fn payloads<'a>(root: &'a Node, encoded: &[u8]) -> tenarc::Result<Vec<Named<'a>>> {
    let paths = of(encoded)?;
    let mut found = Vec::new();
    walk(root, &mut Vec::new(), &mut |steps, node| {
        if let Kind::Payload(payload) = &node.kind {
            found.push(Named { path: paths.path(steps).text, node, payload });
        }
    });
    Ok(found)
}

/// An entry in the list of `ls`: a tensor, or a sequence that is stored as columns.
#[derive(Debug)]
pub enum Listed<'a> {
    Tensor(Named<'a>),
    Columns(&'a Columns),
}

/// Calls `each` with all tensors and columns of a value, in the order of the value. They are not collected in memory,
/// because the paths of many small tensors are much longer than the tensors.
///
/// # Errors
/// If a tensor or table has no path of its own: then `each` is not called. If `each` fails.
pub fn each_listed<'a>(
    root: &'a Node,
    encoded: &[u8],
    each: &mut dyn FnMut(Listed<'a>) -> Result<()>,
) -> Result<()> {
    let paths = of(encoded)?;
    let mut refused = None;
    walk(root, &mut Vec::new(), &mut |steps, node| {
        let what = match &node.kind {
            _ if refused.is_some() => return,
            Kind::Payload(payload) if payload.is_listed() => "tensor",
            Kind::Columns(_) => "table",
            _ => return,
        };
        let Path { text, is_unique, .. } = paths.path(steps);
        if !is_unique {
            refused = Some((what, text));
        }
    });
    if let Some((what, path)) = refused {
        return Err(Failure::new(format!(
            "no path leads to the {what} at {}: a key on the way occurs twice in its map",
            quoted(&path)
        )));
    }
    let mut done = Ok(());
    walk(root, &mut Vec::new(), &mut |steps, node| {
        if done.is_err() {
            return;
        }
        match &node.kind {
            Kind::Payload(payload) if payload.is_listed() => {
                let path = paths.path(steps).text;
                done = each(Listed::Tensor(Named { path, node, payload }));
            }
            Kind::Columns(columns) => done = each(Listed::Columns(columns)),
            _ => {}
        }
    });
    done
}

/// Sets the path of each sequence that is stored as columns. `encoded` must be the bytes that `root` was parsed from.
///
/// # Errors
/// If `encoded` is not well-formed.
pub fn tell_columns(root: &mut Node, encoded: &[u8]) -> tenarc::Result<()> {
    if !root.holds_columns() {
        return Ok(());
    }
    let paths = of(encoded)?;
    tell(root, &mut Vec::new(), &paths);
    Ok(())
}

fn tell(node: &mut Node, steps: &mut Vec<String>, paths: &Paths) {
    match &mut node.kind {
        Kind::Leaf | Kind::Payload(_) => {}
        Kind::Columns(columns) => columns.path = paths.path(steps).text,
        Kind::Tag(tag, inner) => {
            // As `tagged` does.
            if *tag == TYPE
                && let Kind::Array(items) = &mut inner.kind
                && let Some(item) = items.get_mut(2)
            {
                return tell(item, steps, paths);
            }
            tell(inner, steps, paths);
        }
        Kind::Array(items) => {
            for (at, item) in items.iter_mut().enumerate() {
                steps.push(at.to_string());
                tell(item, steps, paths);
                steps.pop();
            }
        }
        Kind::Map(entries) => {
            for (key, value) in entries {
                steps.push(key.step.to_string());
                tell(value, steps, paths);
                steps.pop();
            }
        }
    }
}

/// Returns the paths of an encoded value.
///
/// # Errors
/// If the value is not well-formed.
pub fn of(encoded: &[u8]) -> tenarc::Result<Paths> {
    Paths::of(encoded, limits())
}

/// Calls `each` with every node and the steps of its path. A parent comes before its children.
pub fn walk<'a>(
    node: &'a Node,
    steps: &mut Vec<Cow<'a, str>>,
    each: &mut dyn FnMut(&[Cow<'a, str>], &'a Node),
) {
    each(steps, node);
    match &node.kind {
        Kind::Leaf | Kind::Payload(_) | Kind::Columns(_) => {}
        Kind::Tag(tag, inner) => walk(tagged(*tag, inner), steps, each),
        Kind::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                steps.push(Cow::Owned(at.to_string()));
                walk(item, steps, each);
                steps.pop();
            }
        }
        Kind::Map(entries) => {
            for (key, value) in entries {
                steps.push(Cow::Borrowed(&key.step));
                walk(value, steps, each);
                steps.pop();
            }
        }
    }
}

/// Checks that the paths of all payloads together are not much longer than the value. They could be, because a long key
/// is repeated in every path below it.
///
/// # Errors
/// If they are much longer.
pub fn check(root: &Node) -> Result<()> {
    let most = root.range.len().saturating_mul(16).max(1 << 20);
    let mut left = Some(most);
    measure(root, 0, &mut left);
    match left {
        Some(_) => Ok(()),
        None => Err(Failure::new(format!(
            "the paths of the tensors have more than {most} bytes in total"
        ))),
    }
}

fn measure(node: &Node, len: usize, left: &mut Option<usize>) {
    match &node.kind {
        Kind::Leaf => {}
        Kind::Payload(_) | Kind::Columns(_) => *left = left.and_then(|left| left.checked_sub(len)),
        Kind::Tag(tag, inner) => measure(tagged(*tag, inner), len, left),
        // A position has few digits, so 8 characters are assumed for it and the dot.
        Kind::Array(items) => items.iter().for_each(|item| measure(item, len + 8, left)),
        Kind::Map(entries) => {
            for (key, value) in entries {
                measure(value, len.saturating_add(key.step.len() + 1), left);
            }
        }
    }
}

/// Returns the node at `path`. `encoded` must be the bytes that `root` was parsed from.
///
/// # Errors
/// If there is no such node, or the path could mean several.
pub fn find<'a>(root: &'a Node, encoded: &[u8], path: &str) -> Result<&'a Node> {
    let range = inspect::find(encoded, path, limits())?;
    let mut found = root;
    while found.range.start < range.start {
        let inside = match &found.kind {
            Kind::Leaf | Kind::Payload(_) | Kind::Columns(_) => None,
            Kind::Tag(tag, inner) => Some(tagged(*tag, inner)),
            Kind::Array(items) => last(items, |item| item, range.start),
            Kind::Map(entries) => last(entries, |(_, value)| value, range.start),
        };
        found = inside.ok_or_else(|| {
            Failure::new(format!("expected a value at byte {} of the metadata", range.start))
        })?;
    }
    Ok(found)
}

/// Returns the last node that does not start after `start`. Nodes are in the order of their bytes.
fn last<T>(nodes: &[T], node: impl Fn(&T) -> &Node, start: usize) -> Option<&Node> {
    let behind = nodes.partition_point(|inside| node(inside).range.start <= start);
    nodes.get(behind.checked_sub(1)?).map(node)
}

/// Returns the group of a dotted path: the values whose paths have more steps after it, as a map from the rest of their
/// paths. Dots in keys separate steps, so that `layers.0` is a group of `layers.0.weight`, in one key or in several.
/// Returns `None` if there is no such value, or if the path is that of a value.
///
/// # Errors
/// If two values have the same path.
pub fn group(root: &Node, path: &str) -> Result<Option<Node>> {
    if path.is_empty() || path.starts_with('/') {
        return Ok(None);
    }
    let mut found = Members::default();
    found.add(root, path);
    if found.is_value || found.entries.is_empty() {
        return Ok(None);
    }
    let mut seen = HashSet::new();
    if let Some((twice, _)) = found.entries.iter().find(|(key, _)| !seen.insert(&*key.step)) {
        let twice = quoted(&format!("{path}.{}", twice.step));
        return Err(Failure::new(format!("the path {twice} leads to several values")));
    }
    Ok(Some(Node { range: root.range.clone(), kind: Kind::Map(found.entries) }))
}

/// The members of a group.
#[derive(Default)]
struct Members {
    entries: Vec<(Key, Node)>,
    /// Whether the path is that of a value.
    is_value: bool,
}

impl Members {
    /// Adds the members in `node`, to which `path` is relative.
    fn add(&mut self, node: &Node, path: &str) {
        match &node.kind {
            Kind::Tag(tag, inner) => self.add(tagged(*tag, inner), path),
            Kind::Leaf | Kind::Payload(_) | Kind::Columns(_) => {}
            Kind::Array(items) => {
                let (step, rest) = path.split_once('.').unwrap_or((path, ""));
                let is_plain = step == "0" || !step.starts_with(['0', '+']);
                let item =
                    step.parse().ok().filter(|_| is_plain).and_then(|at: usize| items.get(at));
                match item {
                    Some(_) if step.len() == path.len() => self.is_value = true,
                    Some(item) => self.add(item, rest),
                    None => {}
                }
            }
            Kind::Map(entries) => {
                for (key, value) in entries {
                    let step = &*key.step;
                    if step == path {
                        self.is_value = true;
                    } else if let Some(rest) = after_dot(path, step) {
                        self.add(value, rest);
                    } else if let Some(rest) = after_dot(step, path) {
                        // The key is not written as in the file, so it has no bytes there.
                        let key = Key { range: 0..0, step: rest.into() };
                        self.entries.push((key, value.clone()));
                    }
                }
            }
        }
    }
}

/// Returns the part of `path` after `start` and a dot.
pub fn after_dot<'p>(path: &'p str, start: &str) -> Option<&'p str> {
    path.strip_prefix(start)?.strip_prefix('.')
}

/// Patterns for paths. `*` matches any characters, including dots; `?` matches one character, `[a-z]` one of several
/// characters, and `{a,b}` one of several texts.
#[derive(Debug)]
pub struct Globs {
    compiled: Vec<GlobMatcher>,
    patterns: Vec<String>,
    /// Whether any path has matched so far.
    used: Cell<bool>,
}

impl Globs {
    /// Compiles patterns.
    ///
    /// # Errors
    /// If a pattern is invalid.
    pub fn new(patterns: &[String]) -> Result<Self> {
        let compiled = patterns.iter().map(|pattern| {
            let glob =
                GlobBuilder::new(pattern).literal_separator(false).backslash_escape(true).build();
            let refused = |error| Failure::new(format!("pattern {}: {error}", quoted(pattern)));
            glob.map(|glob| glob.compile_matcher()).map_err(refused)
        });
        let compiled = compiled.collect::<Result<_>>()?;
        Ok(Self { compiled, patterns: patterns.to_vec(), used: Cell::new(false) })
    }

    pub fn is_empty(&self) -> bool {
        self.compiled.is_empty()
    }

    /// Checks that at least one path has matched. If none has, the patterns are probably mistyped.
    ///
    /// # Errors
    /// If there are patterns, and no path has matched.
    pub fn check(&self) -> Result<()> {
        if self.is_empty() || self.used.get() {
            return Ok(());
        }
        let patterns: Vec<String> = self.patterns.iter().map(|pattern| quoted(pattern)).collect();
        Err(Failure::new(format!("nothing matches {}", patterns.join(" or "))))
    }

    /// Returns whether one of the patterns matches a path in a value, with or without the name of the value before it.
    /// This does not mark the patterns as used.
    pub fn matches(&self, name: Option<&str>, path: &str) -> bool {
        let is_match = |path: &str| self.compiled.iter().any(|glob| glob.is_match(path));
        let with_name = |name: &str| match path {
            "" => is_match(name),
            path => is_match(&format!("{name}.{path}")),
        };
        is_match(path) || name.is_some_and(with_name)
    }

    /// Returns whether one of the patterns matches a path. A match marks the patterns as used.
    pub fn any(&self, path: &str) -> bool {
        self.any_in(None, path)
    }

    /// Returns whether one of the patterns matches a path in a value, with or without the name of the value before it. A
    /// match marks the patterns as used.
    pub fn any_in(&self, name: Option<&str>, path: &str) -> bool {
        let found = self.matches(name, path);
        self.used.set(self.used.get() || found);
        found
    }

    /// Like [`any`](Self::any), but admits every path if there are no patterns.
    pub fn admits(&self, path: &str) -> bool {
        self.admits_in(None, path)
    }

    /// Like [`any_in`](Self::any_in), but admits every path if there are no patterns.
    pub fn admits_in(&self, name: Option<&str>, path: &str) -> bool {
        self.is_empty() || self.any_in(name, path)
    }
}
