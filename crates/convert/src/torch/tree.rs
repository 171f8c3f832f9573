//! The tree of the values in a pickle: finds the path of each tensor, and of each plain value beside tensors.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};

use tenarc::de::Limits;
use tenarc::inspect::Paths;
use tenarc::{Error, Result};

use super::pickle::{Dict, Lost, Object, Origin, Pickle, Value, lost, object};
use super::value::Plain;
use crate::Losses;

/// The most containers that may be nested in each other. Readers of archives allow 128 levels, of which names may take
/// 64.
const MAX_DEPTH: usize = 60;

/// The largest weight that the value of a pickle may have. An object counts each time it is used, because an archive
/// holds it each time.
const MAX_WEIGHT: u64 = 1 << 22;

/// The most names that one note lists.
const LISTED: usize = 5;

/// The limits for the bytes of a name, and of all names together.
const MAX_NAME: usize = 64 << 10;
const MAX_NAMES: usize = 64 << 20;

/// A tensor, or a value that contains no tensors, and its path.
#[derive(Debug)]
pub struct Leaf {
    /// The path that the value has in an archive that stores the structure of the pickle.
    pub name: String,
    pub value: Value,
    pub is_tensor: bool,
}

/// The leaves of the value of a pickle.
#[derive(Debug, Default)]
pub struct Tree {
    /// All leaves, in the order of the pickle.
    pub leaves: Vec<Leaf>,
    /// Whether the value of the pickle is a single leaf, which then has no name.
    pub bare: bool,
    pub losses: Losses,
}

impl Tree {
    /// Finds the leaves. Adds what cannot be kept to the losses.
    pub fn new(pickle: &mut Pickle, losses: Losses) -> Result<Self> {
        let mut scale =
            Scale { objects: &pickle.objects, seen: Vec::new(), cycles: HashSet::new() };
        scale.seen.resize_with(pickle.objects.len(), || Seen::Not);
        let all = scale.weigh(pickle.root, 0)?;
        if all.height > MAX_DEPTH {
            return Err(too_deep());
        }
        if all.weight > MAX_WEIGHT {
            let what = "the value of the pickle is too large, as it repeats objects many times";
            return Err(Error::limit(what));
        }
        let Scale { seen, cycles, .. } = scale;
        cut(&mut pickle.objects, &cycles);
        let objects = &pickle.objects[..];
        // `Paths` needs an encoded value. Its tensors do not matter for the paths, so `Plain` writes null for each.
        let skeleton = tenarc::to_vec(&Plain { objects, value: pickle.root })?;
        let mut walk = Walk {
            objects,
            seen,
            paths: Paths::of(&skeleton, Limits::default())?,
            tree: Self { losses, ..Self::default() },
            steps: Vec::new(),
            len: 0,
            total: 0,
            origins: &pickle.origins,
            classes: BTreeSet::new(),
            called: BTreeSet::new(),
            named: BTreeSet::new(),
        };
        let tensor = matches!(object(objects, pickle.root), Some(Object::Tensor(_)));
        walk.tree.bare = tensor || !all.tensors;
        walk.item(pickle.root)?;
        let Walk { mut tree, classes, called, named, .. } = walk;
        for (names, what) in [
            (classes, "objects are kept as maps of their attributes; their classes are left out"),
            (
                called,
                "nothing in the file is run; calls are kept as maps of function and arguments",
            ),
            (named, "functions and types are kept as texts"),
        ] {
            if !names.is_empty() {
                tree.losses.note(format!("{what}: {}", listed(&names)));
            }
        }
        if pickle.has_flags {
            tree.losses.note("`persistent` and `_is_buffer`, the flags of buffers, are left out");
        }
        if pickle.has_sets {
            tree.losses.note("sets and deques are kept as sequences");
        }
        Ok(tree)
    }
}

/// Formats names for a message: the first few, and how many more there are.
fn listed(names: &BTreeSet<&str>) -> String {
    let shown: Vec<_> =
        names.iter().take(LISTED).map(|name| format!("`{}`", name.escape_debug())).collect();
    match names.len().saturating_sub(LISTED) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Replaces the references that close a cycle by a lost object. Without cycles, the weights of objects are correct, and
/// a walk through them ends.
fn cut(objects: &mut Vec<Object>, cycles: &HashSet<(usize, usize)>) {
    if cycles.is_empty() {
        return;
    }
    let lost = Value::Object(objects.len());
    objects.push(Object::lost("an object that contains itself"));
    for &(outer, inner) in cycles {
        let replace = |value: &mut Value| {
            if matches!(value, Value::Object(number) if *number == inner) {
                *value = lost;
            }
        };
        match objects.get_mut(outer) {
            Some(Object::List(values)) => values.iter_mut().for_each(replace),
            Some(Object::Tuple(values)) => values.iter_mut().for_each(replace),
            Some(Object::Dict(dict)) => {
                for (_, value) in &mut dict.entries {
                    replace(value);
                }
            }
            _ => {}
        }
    }
}

#[cold]
fn too_deep() -> Error {
    Error::limit(format!("the pickle nests more than {MAX_DEPTH} levels"))
}

/// Returns a key as a step of a path. `None` if the key is neither a text nor an integer.
pub fn step(objects: &[Object], key: Value) -> Option<Cow<'_, str>> {
    match (key, object(objects, key)) {
        (Value::Int(number), _) => Some(number.to_string().into()),
        (_, Some(Object::Text(text))) => Some((&**text).into()),
        _ => None,
    }
}

/// The measures of a value, with everything that it contains.
#[derive(Clone, Copy, Default)]
struct Weighed {
    /// About the number of values and of 16-byte pieces of texts.
    weight: u64,
    /// The number of levels of containers.
    height: usize,
    /// Whether there are tensors.
    tensors: bool,
}

impl Weighed {
    fn add(&mut self, inner: Self) {
        self.weight = self.weight.saturating_add(inner.weight);
        self.height = self.height.max(inner.height + 1);
        self.tensors |= inner.tensors;
    }
}

#[derive(Clone, Copy)]
enum Seen {
    Not,
    /// The object is being weighed.
    Open,
    Done(Weighed),
}

/// Weighs every object once, however often it is used.
struct Scale<'a> {
    objects: &'a [Object],
    seen: Vec<Seen>,
    /// The references that close a cycle: the number of the object that refers, and that of an object around it.
    cycles: HashSet<(usize, usize)>,
}

impl Scale<'_> {
    fn weigh(&mut self, value: Value, depth: usize) -> Result<Weighed> {
        let own = |weight| Weighed { weight, ..Weighed::default() };
        let Value::Object(number) = value else { return Ok(own(1)) };
        if let Some(Seen::Done(found)) = self.seen.get(number) {
            return Ok(*found);
        }
        if depth > MAX_DEPTH {
            return Err(too_deep());
        }
        self.mark(number, Seen::Open);
        let objects = self.objects;
        let mut found = own(1);
        match objects.get(number) {
            Some(Object::Text(text)) => found.weight += text.len() as u64 / 16,
            Some(Object::Bytes(bytes)) => found.weight += bytes.len() as u64 / 16,
            Some(Object::Tensor(tensor)) => {
                found.weight += 16 + 2 * tensor.shape.len() as u64;
                found.tensors = true;
            }
            Some(Object::List(values)) => self.add(&mut found, number, values, depth)?,
            Some(Object::Tuple(values)) => self.add(&mut found, number, values, depth)?,
            Some(Object::Dict(dict)) => {
                for (key, value) in &dict.entries {
                    if let Some(Object::Text(key)) = object(objects, *key) {
                        found.weight = found.weight.saturating_add(1 + key.len() as u64 / 16);
                    }
                    self.add(&mut found, number, &[*value], depth)?;
                }
            }
            _ => {}
        }
        self.mark(number, Seen::Done(found));
        Ok(found)
    }

    fn add(
        &mut self,
        to: &mut Weighed,
        outer: usize,
        values: &[Value],
        depth: usize,
    ) -> Result<()> {
        for value in values {
            if let Value::Object(inner) = *value
                && let Some(Seen::Open) = self.seen.get(inner)
            {
                self.cycles.insert((outer, inner));
                to.weight = to.weight.saturating_add(1);
                continue;
            }
            to.add(self.weigh(*value, depth + 1)?);
        }
        Ok(())
    }

    fn mark(&mut self, number: usize, seen: Seen) {
        if let Some(place) = self.seen.get_mut(number) {
            *place = seen;
        }
    }
}

struct Walk<'a> {
    objects: &'a [Object],
    seen: Vec<Seen>,
    paths: Paths,
    tree: Tree,
    /// The path to the current value.
    steps: Vec<Cow<'a, str>>,
    /// The bytes of `steps` and of the dots between them.
    len: usize,
    /// The bytes of the names of all leaves so far.
    total: usize,
    origins: &'a HashMap<usize, Origin>,
    /// The classes of objects that became plain data.
    classes: BTreeSet<&'a str>,
    /// The functions whose calls became plain data.
    called: BTreeSet<&'a str>,
    /// The functions and types that are values.
    named: BTreeSet<&'a str>,
}

impl<'a> Walk<'a> {
    /// Finds the leaves in a value. A container with tensors in it is not a leaf; a container without tensors is one.
    fn item(&mut self, value: Value) -> Result<()> {
        let objects = self.objects;
        match object(objects, value) {
            Some(Object::Tensor(tensor)) => {
                if tensor.attributes {
                    self.lose("attributes of a tensor");
                }
                self.leaf(value, true)
            }
            _ if self.has_tensors(value) => self.inside(value, &mut Self::item),
            _ => match lost(objects, value) {
                Some(lost) => {
                    self.lose_all(lost);
                    Ok(())
                }
                None => {
                    self.plain(value)?;
                    self.leaf(value, false)
                }
            },
        }
    }

    /// Adds the lost parts of a plain value to the losses, and the functions and types in it to `named`.
    fn plain(&mut self, value: Value) -> Result<()> {
        match object(self.objects, value) {
            Some(Object::Lost(lost)) => self.lose_all(lost),
            Some(Object::Global(global)) => {
                self.named.insert(&global.name);
            }
            _ => {}
        }
        self.inside(value, &mut Self::plain)
    }

    /// Calls `each` for every value that this value directly contains.
    fn inside(&mut self, value: Value, each: &mut Each<'a>) -> Result<()> {
        if let Value::Object(number) = value {
            match self.origins.get(&number) {
                Some(Origin::Class(name)) => self.classes.insert(name),
                Some(Origin::Call(name)) => self.called.insert(name),
                None => false,
            };
        }
        match object(self.objects, value) {
            Some(Object::Dict(dict)) => self.dict(dict, each),
            Some(Object::List(values)) => self.list(values, each),
            Some(Object::Tuple(values)) => self.list(values, each),
            _ => Ok(()),
        }
    }

    fn list(&mut self, values: &'a [Value], each: &mut Each<'a>) -> Result<()> {
        for (number, value) in values.iter().enumerate() {
            self.within(number.to_string().into(), *value, each)?;
        }
        Ok(())
    }

    fn dict(&mut self, dict: &'a Dict, each: &mut Each<'a>) -> Result<()> {
        for (key, value) in &dict.entries {
            let Some(step) = step(self.objects, *key) else { continue };
            self.within(step, *value, each)?;
        }
        for (what, is_tensor) in &dict.lost {
            let name = self.name();
            if *is_tensor {
                self.tree.losses.add_tensor(&name, *what);
            } else {
                self.tree.losses.add(&name, *what);
            }
        }
        if dict.attributes {
            self.lose("attributes of a dict");
        }
        if let Some(metadata) = dict.metadata {
            if is_versions(self.objects, metadata) {
                let what = "`_metadata`, the versions of the modules of a state_dict, is left out";
                self.tree.losses.note(what);
            } else {
                self.lose("the attribute `_metadata`, which has more than the versions of modules");
            }
        }
        Ok(())
    }

    fn within(&mut self, step: Cow<'a, str>, value: Value, each: &mut Each<'a>) -> Result<()> {
        let len = self.len;
        self.len = self.len.saturating_add(step.len() + usize::from(!self.steps.is_empty()));
        if self.len > MAX_NAME {
            return Err(Error::limit(format!("the path has more than {MAX_NAME} bytes")));
        }
        self.steps.push(step);
        each(self, value)?;
        self.steps.pop();
        self.len = len;
        Ok(())
    }

    fn leaf(&mut self, value: Value, is_tensor: bool) -> Result<()> {
        let name = self.name();
        self.total = self.total.saturating_add(name.len());
        if self.total > MAX_NAMES {
            return Err(Error::limit(format!("all paths have more than {MAX_NAMES} bytes")));
        }
        self.tree.leaves.push(Leaf { name, value, is_tensor });
        Ok(())
    }

    fn name(&self) -> String {
        if self.steps.is_empty() { String::new() } else { self.paths.path(&self.steps).text }
    }

    /// Adds an object that is lost as a whole to the losses.
    fn lose_all(&mut self, lost: &Lost) {
        let name = self.name();
        if lost.is_tensor {
            self.tree.losses.add_tensor(&name, &*lost.what);
        } else {
            self.tree.losses.add(&name, &*lost.what);
        }
    }

    /// Adds a lost part of the current value to the losses.
    fn lose(&mut self, what: impl Into<String>) {
        let name = if self.tree.losses.lists_more() { self.name() } else { String::new() };
        self.tree.losses.add(&name, what);
    }

    fn has_tensors(&self, value: Value) -> bool {
        let Value::Object(number) = value else { return false };
        matches!(self.seen.get(number), Some(Seen::Done(found)) if found.tensors)
    }
}

/// Whether this is a `_metadata` as torch writes it: a dict from names of modules to dicts of plain values.
fn is_versions(objects: &[Object], metadata: Value) -> bool {
    let Some(Object::Dict(modules)) = object(objects, metadata) else { return false };
    modules.entries.iter().all(|(_, module)| match object(objects, *module) {
        Some(Object::Dict(versions)) => versions
            .entries
            .iter()
            .all(|(_, version)| matches!(object(objects, *version), None | Some(Object::Text(_)))),
        _ => false,
    })
}

/// The function that [`Walk::inside`] calls for each value.
type Each<'a> = dyn FnMut(&mut Walk<'a>, Value) -> Result<()>;
