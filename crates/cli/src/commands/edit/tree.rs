//! Operations on a value in memory: drop, cast, rename, set.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Bound;

use tenarc::Value;
use tenarc::inspect::{escape_step, unescape_step};

use crate::change::Change;
use crate::document::Section;
use crate::failure::{Failure, Result};
use crate::node::{Kind, Node};
use crate::paths::after_dot;
use crate::text::quoted;
use crate::written::{self, Written, WrittenKey};

/// The nodes that change, by the position of their first byte in the metadata.
#[derive(Default)]
pub struct Matched<'a> {
    pub dropped: HashSet<usize>,
    pub changed: HashMap<usize, New<'a>>,
    /// Columns in which a value is set or renamed.
    pub opened: HashSet<usize>,
}

/// What takes the place of a tensor: a tensor of the same or of another value, and how its elements change.
pub struct New<'a> {
    pub section: &'a Section<'a>,
    pub node: &'a Node,
    pub change: Option<Change<'a>>,
}

impl Matched<'_> {
    /// Refuses changes inside of tags: they could break the meaning of the tag.
    ///
    /// # Errors
    /// If there is such a change.
    pub fn check(&self, section: &Section<'_>) -> Result<()> {
        let is_changed = |at| self.dropped.contains(&at) || self.changed.contains_key(&at);
        match in_tag(&section.root, &is_changed) {
            Some(tag) => Err(Failure::new(format!("cannot change a value inside CBOR tag {tag}"))),
            None => Ok(()),
        }
    }
}

/// Converts a node to a [`Written`] value whose maps and arrays can be changed. Leaves out the nodes to drop, and puts
/// new tensors in place of those that change. Columns with a change inside become rows. Returns `None` if the node
/// itself is dropped.
///
/// # Errors
/// If columns with a change inside cannot be read.
pub fn expanded<'a>(
    section: &'a Section<'a>,
    node: &'a Node,
    matched: &Matched<'a>,
) -> Result<Option<Written<'a>>> {
    let Matched { dropped, changed, opened } = matched;
    if dropped.contains(&node.range.start) {
        return Ok(None);
    }
    Ok(Some(match &node.kind {
        Kind::Array(items) => {
            let items =
                items.iter().filter_map(|item| expanded(section, item, matched).transpose());
            Written::Array(items.collect::<Result<_>>()?)
        }
        Kind::Map(entries) => {
            let entries = entries.iter().filter_map(|(key, value)| {
                let value = expanded(section, value, matched).transpose()?;
                Some(value.map(|value| (WrittenKey::of(section, key), value)))
            });
            Written::Map(entries.collect::<Result<_>>()?)
        }
        Kind::Columns(_) if opened.contains(&node.range.start) => {
            editable(written::value(section, node)?)
        }
        Kind::Payload(_) => match changed.get(&node.range.start) {
            Some(New { section, node, change: Some(change) }) => {
                Written::Changed(section, node, change.clone())
            }
            Some(New { section, node, change: None }) => Written::Same(section, node),
            None => Written::Same(section, node),
        },
        _ => Written::Same(section, node),
    }))
}

/// The position of a part in a value: the index of the child at each level.
type Place = Vec<usize>;

fn children<'t, 'a>(value: &'t Written<'a>) -> Vec<(String, &'t Written<'a>)> {
    match value {
        Written::Array(items) => {
            items.iter().enumerate().map(|(at, item)| (at.to_string(), item)).collect()
        }
        Written::Map(entries) => {
            entries.iter().map(|(key, value)| (key.step.clone(), value)).collect()
        }
        _ => Vec::new(),
    }
}

/// The place of a map that a path leads through, and the remaining steps of the path.
type Near = (Place, Vec<String>);

/// Finds all places that a dotted path can mean (`found`), and each map that it leads through, with the remaining steps
/// of the path (`near`).
fn places(
    value: &Written<'_>,
    path: &str,
    here: &mut Place,
    found: &mut Vec<Place>,
    near: &mut Vec<Near>,
) {
    if let Written::Map(entries) = value {
        // If a key of this map has dots, as names of tensors in other formats do, a new key is the whole rest of the
        // path.
        let is_flat = entries.iter().any(|(key, _)| key.step.contains('.'));
        let steps = if is_flat {
            vec![path.to_owned()]
        } else {
            path.split('.').map(str::to_owned).collect()
        };
        near.push((here.clone(), steps));
    }
    for (at, (key, child)) in children(value).into_iter().enumerate() {
        here.push(at);
        match path.strip_prefix(key.as_str()) {
            Some("") => found.push(here.clone()),
            Some(rest) => {
                if let Some(rest) = rest.strip_prefix('.') {
                    places(child, rest, here, found, near);
                }
            }
            None => {}
        }
        here.pop();
    }
}

/// Finds the places that a path means, like [`places`]. The path may be dotted or a JSON Pointer.
fn look(value: &Written<'_>, path: &str) -> (Vec<Place>, Vec<Near>) {
    let (mut found, mut near) = (Vec::new(), Vec::new());
    let Some(pointer) = path.strip_prefix('/') else {
        places(value, path, &mut Vec::new(), &mut found, &mut near);
        return (found, near);
    };
    let steps: Vec<_> = pointer.split('/').map(unescape_step).collect();
    by_steps(value, &steps, &mut Vec::new(), &mut found, &mut near);
    (found, near)
}

/// Like [`places`], for the steps of a JSON Pointer.
fn by_steps(
    value: &Written<'_>,
    steps: &[Cow<'_, str>],
    here: &mut Place,
    found: &mut Vec<Place>,
    near: &mut Vec<Near>,
) {
    let Some((step, rest)) = steps.split_first() else {
        found.push(here.clone());
        return;
    };
    if matches!(value, Written::Map(_)) {
        near.push((here.clone(), steps.iter().map(|step| step.clone().into_owned()).collect()));
    }
    for (at, (_, child)) in
        children(value).into_iter().enumerate().filter(|(_, (key, _))| key == step)
    {
        here.push(at);
        by_steps(child, rest, here, found, near);
        here.pop();
    }
}

fn at<'t, 'a>(value: &'t mut Written<'a>, place: &[usize]) -> Option<&'t mut Written<'a>> {
    let Some((&first, rest)) = place.split_first() else { return Some(value) };
    let child = match value {
        Written::Array(items) => items.get_mut(first),
        Written::Map(entries) => entries.get_mut(first).map(|(_, value)| value),
        _ => None,
    };
    at(child?, rest)
}

/// Moves the value or the [group](crate::paths::group) at `old` to the path `new`. Returns `false` if there is none.
///
/// # Errors
/// If `old` is ambiguous, if there is a value at `new` already, if `new` is inside the moved value, or if there is no
/// map to put the value into.
pub fn rename(value: &mut Written<'_>, old: &str, new: &str) -> Result<bool> {
    let (found, _) = look(value, old);
    let place = match &found[..] {
        [] => return rename_group(value, old, new),
        [place] => place.clone(),
        _ => return Err(ambiguous(old)),
    };
    let (taken, near) = look(value, new);
    if !taken.is_empty() {
        return Err(Failure::new(format!("{} exists already", quoted(new))));
    }
    let (target, steps) = new_steps(value, near, new)?;
    let Some((&last, parent)) = place.split_last() else { return Ok(false) };
    if target.starts_with(&place) {
        return Err(Failure::new(format!("cannot move {} into itself", quoted(old))));
    }
    if target == parent {
        // The entry keeps its position.
        if let Some(Written::Map(entries)) = at(value, parent)
            && let Some(entry) = entries.get_mut(last)
        {
            let moved = std::mem::replace(&mut entry.1, Written::Array(Vec::new()));
            if let Some(moved) = nested(&steps, moved) {
                *entry = moved;
            }
        }
        return Ok(true);
    }
    // The value is inserted before the old entry is removed: removing shifts the positions of later entries, and
    // `target` would be wrong.
    let moved = match at(value, &place) {
        Some(moved) => std::mem::replace(moved, Written::Array(Vec::new())),
        None => return Ok(false),
    };
    if let Some(Written::Map(entries)) = at(value, &target) {
        entries.extend(nested(&steps, moved));
    }
    match at(value, parent) {
        Some(Written::Map(entries)) => drop(entries.remove(last)),
        Some(Written::Array(items)) => drop(items.remove(last)),
        _ => {}
    }
    Ok(true)
}

/// Renames a group. The first steps of `old` lead to a map, and the keys of its values begin with the other steps and a
/// dot. Returns `false` if there is no such key.
///
/// # Errors
/// If there are such keys in several maps, if `new` leads to another map, or if a new key is there already.
fn rename_group(value: &mut Written<'_>, old: &str, new: &str) -> Result<bool> {
    if old.starts_with('/') {
        return Ok(false);
    }
    let mut found = Vec::new();
    groups(value, old, &mut Vec::new(), &mut found);
    let (place, start) = match &found[..] {
        [] => return Ok(false),
        [one] => one,
        _ => return Err(ambiguous(old)),
    };
    let map = old.strip_suffix(start).unwrap_or_default();
    let new_start = new.strip_prefix(map).filter(|start| !start.is_empty());
    let Some(new_start) = new_start.filter(|_| !new.starts_with('/')) else {
        let new = quoted(new);
        let what = if map.is_empty() {
            format!("cannot rename a group to {new}")
        } else {
            let map = quoted(map);
            format!(
                "cannot rename a group to {new}: it stays in its map, so the new path must begin with {map}"
            )
        };
        return Err(Failure::new(what));
    };
    let mut others = Vec::new();
    groups(value, new, &mut Vec::new(), &mut others);
    let is_elsewhere =
        others.iter().any(|(other, _)| other != place) || !look(value, new).0.is_empty();
    if is_elsewhere {
        return Err(Failure::new(format!("{} exists already", quoted(new))));
    }
    let Some(Written::Map(entries)) = at(value, place) else { return Ok(false) };
    let renamed = |key: &WrittenKey<'_>| {
        after_dot(&key.step, start).map(|rest| format!("{new_start}.{rest}"))
    };
    let mut keys = BTreeSet::new();
    for new in entries.iter().filter_map(|(key, _)| renamed(key)) {
        if let Some(twice) = keys.replace(new) {
            return Err(ambiguous(&format!("{map}{twice}")));
        }
    }
    for (key, _) in entries.iter().filter(|(key, _)| renamed(key).is_none()) {
        let step = &key.step;
        if keys.contains(step) {
            return Err(Failure::new(format!(
                "{} exists already",
                quoted(&format!("{map}{step}"))
            )));
        }
        // The new values would look like parts of this one, as in `new_steps`.
        let inside = format!("{step}.");
        let next =
            keys.range::<str, _>((Bound::Included(inside.as_str()), Bound::Unbounded)).next();
        if let Some(new) = next.filter(|new| new.starts_with(&inside)) {
            let new = quoted(&format!("{map}{new}"));
            let there = quoted(&format!("{map}{step}"));
            return Err(Failure::new(format!("cannot create {new}: {there} exists already")));
        }
    }
    for (key, _) in entries {
        if let Some(new) = renamed(key) {
            *key = WrittenKey::text(&new);
        }
    }
    Ok(true)
}

/// Moves the values whose paths match a pattern, in which each `*` stands for any text. A `*` in `new` stands for what the one at
/// the same position in `old` stands for. Maps that are empty then are removed. Returns `false` if nothing matches.
///
/// # Errors
/// If `new` has more of them than `old`. Those of [`rename`].
pub fn rename_matching(value: &mut Written<'_>, old: &str, new: &str) -> Result<bool> {
    if !old.contains('*') {
        return Ok(false);
    }
    let count = |pattern: &str| pattern.matches('*').count();
    if count(new) > count(old) {
        let (old, new) = (quoted(old), quoted(new));
        return Err(Failure::new(format!("expected as many * in {new} as in {old}, found more")));
    }
    let mut found = Vec::new();
    each_value(value, &mut Vec::new(), &mut |steps| {
        if let Some(texts) = texts_of_stars(&steps.join("."), old) {
            let mut texts = texts.into_iter();
            let mut parts = new.split('*');
            let mut to = parts.next().unwrap_or_default().to_owned();
            for part in parts {
                to += &texts.next().unwrap_or_default();
                to += part;
            }
            let from: String =
                steps.iter().flat_map(|step| ["/".into(), escape_step(step)]).collect();
            found.push((from, to));
        }
    });
    for (from, to) in &found {
        rename(value, from, to)?;
    }
    if !found.is_empty() {
        remove_emptied(value, &found);
    }
    Ok(!found.is_empty())
}

/// Calls `each` with the steps to each value that is not a map.
fn each_value(value: &Written<'_>, steps: &mut Vec<String>, each: &mut dyn FnMut(&[String])) {
    let Written::Map(entries) = value else { return each(steps) };
    for (key, value) in entries {
        steps.push(key.step.clone());
        each_value(value, steps, each);
        steps.pop();
    }
}

/// What each `*` of a pattern stands for in a text. `None` if the text does not match.
fn texts_of_stars(text: &str, pattern: &str) -> Option<Vec<String>> {
    let (first, rest) = pattern.split_once('*')?;
    let mut text = text.strip_prefix(first)?;
    let mut parts: Vec<_> = rest.split('*').collect();
    let last = parts.pop()?;
    let mut found = Vec::new();
    for part in parts {
        let (star, behind) = text.split_at_checked(text.find(part)?)?;
        found.push(star.to_owned());
        text = behind.strip_prefix(part)?;
    }
    found.push(text.strip_suffix(last)?.to_owned());
    Some(found)
}

/// Removes the maps that values were moved out of, if they are empty now.
fn remove_emptied(value: &mut Written<'_>, moved: &[(String, String)]) {
    for (from, _) in moved {
        let mut parent = from.as_str();
        while let Some((before, _)) =
            parent.rsplit_once('/').filter(|(before, _)| !before.is_empty())
        {
            parent = before;
            let (found, _) = look(value, parent);
            let [place] = &found[..] else { break };
            let is_empty =
                matches!(at(value, place), Some(Written::Map(entries)) if entries.is_empty());
            let Some((&last, above)) = place.split_last().filter(|_| is_empty) else { break };
            if let Some(Written::Map(entries)) = at(value, above) {
                entries.remove(last);
            }
        }
    }
}

/// Finds the maps with keys that go on after a dotted path, and the steps of the path that begin these keys.
fn groups<'p>(
    value: &Written<'_>,
    path: &'p str,
    here: &mut Place,
    found: &mut Vec<(Place, &'p str)>,
) {
    if let Written::Map(entries) = value
        && entries.iter().any(|(key, _)| after_dot(&key.step, path).is_some())
    {
        found.push((here.clone(), path));
    }
    for (at, (key, child)) in children(value).into_iter().enumerate() {
        if let Some(rest) = after_dot(path, &key) {
            here.push(at);
            groups(child, rest, here, found);
            here.pop();
        }
    }
}

/// Sets the value at a path, and replaces a value that is there.
///
/// # Errors
/// If the path is ambiguous, or if there is no map to put the value into.
pub fn set(value: &mut Written<'_>, path: &str, new: Value) -> Result<()> {
    let new = editable(new);
    let (found, near) = look(value, path);
    match &found[..] {
        [] => {
            let (place, steps) = new_steps(value, near, path)?;
            if let Some(Written::Map(entries)) = at(value, &place) {
                entries.extend(nested(&steps, new));
            }
        }
        [place] => {
            if let Some(there) = at(value, place) {
                *there = like(there, new);
            }
        }
        _ => return Err(ambiguous(path)),
    }
    Ok(())
}

/// Converts a value to [`Written`], so that its maps and arrays can be changed.
fn editable<'a>(value: Value) -> Written<'a> {
    match value {
        Value::Array(items) => Written::Array(items.into_iter().map(editable).collect()),
        Value::Map(entries) if entries.iter().all(|(key, _)| key.as_str().is_some()) => {
            let entries = entries.into_iter().map(|(key, value)| {
                (WrittenKey::text(key.as_str().unwrap_or_default()), editable(value))
            });
            Written::Map(entries.collect())
        }
        other => Written::Value(other),
    }
}

/// Converts a number to a float of the width of the float that it replaces, unless it does not fit. The encoding of an
/// integer does not tell its width.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
fn like<'a>(there: &Written<'_>, new: Written<'a>) -> Written<'a> {
    let (number, is_exact) = match &new {
        Written::Value(Value::F64(number)) => (*number, true),
        Written::Value(Value::Integer(number)) => {
            (*number as f64, number.unsigned_abs() <= 1 << f64::MANTISSA_DIGITS)
        }
        _ => return new,
    };
    let replaced = match there {
        Written::Same(section, node) | Written::Plain(section, node)
            if matches!(node.kind, Kind::Leaf) =>
        {
            tenarc::from_slice(section.item(&node.range)).ok()
        }
        Written::Value(value @ (Value::F32(_) | Value::F64(_))) => Some(value.clone()),
        _ => None,
    };
    match replaced {
        Some(Value::F32(_)) if (number as f32).is_finite() == number.is_finite() => {
            Written::Value(Value::F32(number as f32))
        }
        Some(Value::F64(_)) if is_exact => Written::Value(Value::F64(number)),
        _ => new,
    }
}

/// Returns the map that a new entry is put into, and the steps from that map to the entry.
fn new_steps(value: &mut Written<'_>, near: Vec<Near>, path: &str) -> Result<Near> {
    let deepest = near.into_iter().max_by_key(|(place, _)| place.len());
    let refused =
        || Failure::new(format!("cannot create {}: its parent is not a map", quoted(path)));
    let (place, steps) = deepest.ok_or_else(refused)?;
    let Some(Written::Map(entries)) = at(value, &place) else { return Err(refused()) };
    // If a key of the map is the start of the remaining path, its value is not a map. The new entry would look like a
    // part of that value.
    let dotted = steps.join(".");
    let leads = |step: &str| {
        if path.starts_with('/') {
            return steps.len() > 1 && steps.first().is_some_and(|first| first == step);
        }
        dotted.strip_prefix(step).is_some_and(|rest| rest.starts_with('.'))
    };
    if entries.iter().any(|(key, _)| leads(&key.step)) {
        return Err(refused());
    }
    Ok((place, steps))
}

/// Wraps a value in a map for each step but the first, and returns the entry of the first step.
fn nested<'a>(steps: &[String], value: Written<'a>) -> Option<(WrittenKey<'a>, Written<'a>)> {
    let mut steps = steps.iter().rev();
    let last = WrittenKey::text(steps.next()?);
    let inside = |entry, step: &String| (WrittenKey::text(step), Written::Map(vec![entry]));
    Some(steps.fold((last, value), inside))
}

fn ambiguous(path: &str) -> Failure {
    Failure::new(format!("{} is ambiguous: use a JSON Pointer, as /a/b", quoted(path)))
}

/// Returns the first tag with a change inside it, if any.
fn in_tag(node: &Node, is_changed: &dyn Fn(usize) -> bool) -> Option<u64> {
    match &node.kind {
        Kind::Leaf | Kind::Payload(_) | Kind::Columns(_) => None,
        _ if is_changed(node.range.start) => None,
        Kind::Array(items) => items.iter().find_map(|item| in_tag(item, is_changed)),
        Kind::Map(entries) => entries.iter().find_map(|(_, item)| in_tag(item, is_changed)),
        Kind::Tag(tag, inner) => touched(inner, is_changed).then_some(*tag),
    }
}

fn touched(node: &Node, is_changed: &dyn Fn(usize) -> bool) -> bool {
    is_changed(node.range.start)
        || match &node.kind {
            Kind::Leaf | Kind::Payload(_) | Kind::Columns(_) => false,
            Kind::Array(items) => items.iter().any(|item| touched(item, is_changed)),
            Kind::Map(entries) => entries.iter().any(|(_, item)| touched(item, is_changed)),
            Kind::Tag(_, inner) => touched(inner, is_changed),
        }
}
