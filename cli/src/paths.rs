//! Paths: how what is in a value is named, and found again.
//!
//! As the library has them: keys and positions joined by dots, or, where that could mean several
//! values, a JSON Pointer (RFC 6901).

use std::cell::Cell;
use std::collections::HashSet;
use std::hash::{BuildHasher, DefaultHasher, Hasher, RandomState};

use globset::{GlobBuilder, GlobMatcher};

use crate::failure::{Failure, Result};
use crate::node::{Kind, Node, Payload};
use crate::text::quoted;

/// A payload and its path.
#[derive(Debug)]
pub struct Named<'a> {
    pub path: String,
    /// Whether the path leads to nothing else.
    pub is_unique: bool,
    pub node: &'a Node,
    pub payload: &'a Payload,
}

/// All payloads of a value, in order.
pub fn payloads(root: &Node) -> Vec<Named<'_>> {
    let pointers = Ambiguous::of(root);
    let mut found = Vec::new();
    walk(root, &mut Vec::new(), &mut |steps, node| {
        if let Kind::Payload(payload) = &node.kind {
            let (path, is_unique) = pointers.written(steps);
            found.push(Named { path, is_unique, node, payload });
        }
    });
    found
}

/// As [`payloads`], of those that are listed as tensors.
///
/// # Errors
/// If no path leads to one of them.
pub fn tensors(root: &Node) -> Result<Vec<Named<'_>>> {
    let mut found = payloads(root);
    found.retain(|named| named.payload.is_listed());
    match found.iter().find(|named| !named.is_unique) {
        None => Ok(found),
        Some(named) => Err(Failure::new(format!(
            "no path leads to the tensor at {}, as a key on the way stands twice in its map",
            quoted(&named.path)
        ))),
    }
}

/// Calls `each` with every node, parents first.
pub fn walk<'a>(
    node: &'a Node,
    steps: &mut Vec<String>,
    each: &mut dyn FnMut(&[String], &'a Node),
) {
    each(steps, node);
    match &node.kind {
        Kind::Leaf | Kind::Payload(_) => {}
        Kind::Tag(_, inner) => walk(inner, steps, each),
        Kind::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                steps.push(at.to_string());
                walk(item, steps, each);
                steps.pop();
            }
        }
        Kind::Map(entries) => {
            for (key, value) in entries {
                steps.push(key.step.clone());
                walk(value, steps, each);
                steps.pop();
            }
        }
    }
}

/// That the paths of all payloads together are not much longer than the value: a long key stands in the
/// paths of all that is under it.
///
/// # Errors
/// Where they are.
pub fn check(root: &Node) -> Result<()> {
    let most = root.range.len().saturating_mul(16).max(1 << 20);
    let mut left = Some(most);
    measure(root, 0, &mut left);
    match left {
        Some(_) => Ok(()),
        None => Err(Failure::new(format!("paths of tensors take more than {most} bytes"))),
    }
}

fn measure(node: &Node, len: usize, left: &mut Option<usize>) {
    match &node.kind {
        Kind::Leaf => {}
        Kind::Payload(_) => *left = left.and_then(|left| left.checked_sub(len)),
        Kind::Tag(_, inner) => measure(inner, len, left),
        // Positions have few digits.
        Kind::Array(items) => items.iter().for_each(|item| measure(item, len + 8, left)),
        Kind::Map(entries) => {
            for (key, value) in entries {
                measure(value, len.saturating_add(key.step.len() + 1), left);
            }
        }
    }
}

/// The paths of a value that lead to several places, by their hashes.
pub struct Ambiguous {
    dotted: HashSet<u64>,
    /// JSON Pointers are ambiguous only if a map has two keys with one component.
    pointers: HashSet<u64>,
    empty: DefaultHasher,
}

impl Ambiguous {
    pub fn of(root: &Node) -> Self {
        // Nobody can prepare keys whose hashes under a random seed are the same.
        let empty = RandomState::new().build_hasher();
        let mut found = Self { dotted: HashSet::new(), pointers: HashSet::new(), empty };
        if has_odd_keys(root) {
            found.dotted = found.repeated(root, Form::Dotted);
        }
        if !found.dotted.is_empty() {
            found.pointers = found.repeated(root, Form::Pointer);
        }
        found
    }

    /// Dotted, or as a JSON Pointer.
    pub fn path(&self, steps: &[String]) -> String {
        self.written(steps).0
    }

    /// As [`path`](Self::path), and whether the path leads to one place only.
    fn written(&self, steps: &[String]) -> (String, bool) {
        let dotted = steps.join(".");
        if !self.has(&self.dotted, &dotted) && !dotted.starts_with('/') {
            return (dotted, true);
        }
        let pointer = pointer(steps);
        let is_unique = !self.has(&self.pointers, &pointer);
        (pointer, is_unique)
    }

    fn has(&self, paths: &HashSet<u64>, path: &str) -> bool {
        let mut hasher = self.empty.clone();
        hasher.write(path.as_bytes());
        paths.contains(&hasher.finish())
    }

    fn repeated(&self, root: &Node, form: Form) -> HashSet<u64> {
        let mut paths = HashSet::new();
        repeated(root, form, &self.empty, true, &mut HashSet::new(), &mut paths);
        paths
    }
}

#[derive(Clone, Copy)]
enum Form {
    Dotted,
    Pointer,
}

/// Adds the hashes of paths that were seen before.
fn repeated(
    node: &Node,
    form: Form,
    path: &DefaultHasher,
    is_root: bool,
    seen: &mut HashSet<u64>,
    paths: &mut HashSet<u64>,
) {
    // A tag and what it stands around have one path.
    let node = node.untagged();
    let hash = path.finish();
    if !seen.insert(hash) {
        paths.insert(hash);
    }
    for (step, child) in children(node) {
        let mut inside = path.clone();
        match form {
            Form::Pointer => inside.write(pointer(&[step]).as_bytes()),
            Form::Dotted => {
                if !is_root {
                    inside.write(b".");
                }
                inside.write(step.as_bytes());
            }
        }
        repeated(child, form, &inside, false, seen, paths);
    }
}

/// A JSON Pointer.
fn pointer(steps: &[String]) -> String {
    steps
        .iter()
        .fold(String::new(), |path, step| path + "/" + &step.replace('~', "~0").replace('/', "~1"))
}

/// Whether there are keys that could make two paths one: with dots, empty, or twice in one map.
fn has_odd_keys(node: &Node) -> bool {
    match &node.kind {
        Kind::Leaf | Kind::Payload(_) => false,
        Kind::Tag(_, inner) => has_odd_keys(inner),
        Kind::Array(items) => items.iter().any(has_odd_keys),
        Kind::Map(entries) => {
            let mut seen = HashSet::with_capacity(entries.len());
            entries.iter().any(|(key, value)| {
                let odd = key.step.is_empty() || key.step.contains('.') || !seen.insert(&key.step);
                odd || has_odd_keys(value)
            })
        }
    }
}

/// The node at `path`.
///
/// # Errors
/// Where there is none, or several could be meant.
pub fn find<'a>(root: &'a Node, path: &str) -> Result<&'a Node> {
    let mut found = Vec::new();
    if let Some(steps) = path.strip_prefix('/') {
        let steps = steps.split('/').map(|step| step.replace("~1", "/").replace("~0", "~"));
        by_steps(root, &steps.collect::<Vec<_>>(), &mut found);
    }
    if found.is_empty() {
        if path.is_empty() {
            return Ok(root);
        }
        by_dots(root, path, &mut found);
    }
    match found[..] {
        [node] => Ok(node),
        [] => Err(Failure::new(format!("there is no value at {}", quoted(path)))),
        _ => Err(Failure::new(format!(
            "{} could mean several values: name one by a JSON Pointer, as in /a/b",
            quoted(path)
        ))),
    }
}

fn children(node: &Node) -> Box<dyn Iterator<Item = (String, &Node)> + '_> {
    match &node.untagged().kind {
        Kind::Array(items) => {
            Box::new(items.iter().enumerate().map(|(at, item)| (at.to_string(), item)))
        }
        Kind::Map(entries) => {
            Box::new(entries.iter().map(|(key, value)| (key.step.clone(), value)))
        }
        _ => Box::new(std::iter::empty()),
    }
}

fn by_steps<'a>(node: &'a Node, steps: &[String], found: &mut Vec<&'a Node>) {
    let Some((step, rest)) = steps.split_first() else {
        found.push(node);
        return;
    };
    for (_, child) in children(node).filter(|(key, _)| key == step) {
        by_steps(child, rest, found);
    }
}

fn by_dots<'a>(node: &'a Node, path: &str, found: &mut Vec<&'a Node>) {
    for (key, child) in children(node) {
        match path.strip_prefix(key.as_str()) {
            Some("") => found.push(child),
            Some(rest) => {
                if let Some(rest) = rest.strip_prefix('.') {
                    by_dots(child, rest, found);
                }
            }
            None => {}
        }
        if found.len() > 1 {
            return;
        }
    }
}

/// Patterns for paths: `*` any run of characters, dots included, `?` one, `[a-z]` one of several,
/// `{a,b}` one of several texts. None given means every path.
#[derive(Debug)]
pub struct Globs {
    compiled: Vec<GlobMatcher>,
    patterns: Vec<String>,
    /// Whether something was matched.
    used: Cell<bool>,
}

impl Globs {
    /// # Errors
    /// Where a pattern is none.
    pub fn new(patterns: &[String]) -> Result<Self> {
        let compiled = patterns.iter().map(|pattern| {
            let glob = GlobBuilder::new(pattern).literal_separator(false).build();
            let refused = |error| Failure::new(format!("pattern {}: {error}", quoted(pattern)));
            glob.map(|glob| glob.compile_matcher()).map_err(refused)
        });
        let compiled = compiled.collect::<Result<_>>()?;
        Ok(Self { compiled, patterns: patterns.to_vec(), used: Cell::new(false) })
    }

    pub fn is_empty(&self) -> bool {
        self.compiled.is_empty()
    }

    /// That there was something to match.
    ///
    /// # Errors
    /// Where there was not, which a mistyped pattern is the most likely reason for.
    pub fn check(&self) -> Result<()> {
        if self.is_empty() || self.used.get() {
            return Ok(());
        }
        let patterns: Vec<String> = self.patterns.iter().map(|pattern| quoted(pattern)).collect();
        Err(Failure::new(format!("nothing matches {}", patterns.join(" or "))))
    }

    /// Whether one of the patterns matches.
    pub fn any(&self, path: &str) -> bool {
        let found = self.compiled.iter().any(|glob| glob.is_match(path));
        self.used.set(self.used.get() || found);
        found
    }

    /// As [`any`](Self::any), and everything where there are no patterns.
    pub fn admits(&self, path: &str) -> bool {
        self.is_empty() || self.any(path)
    }
}
