//! Reduces a value to the tensors whose path matches a pattern.

use tenarc::inspect::Paths;

use crate::document::Section;
use crate::failure::{Failure, Result};
use crate::node::{Kind, Node};
use crate::paths::{self, Globs};
use crate::text::quoted;
use crate::written::{Written, WrittenKey};

/// Returns the tensors of a value whose path matches, at the same paths. `None` if no tensor matches.
///
/// # Errors
/// If only some columns of a table match, or the metadata is damaged.
pub fn kept<'a>(section: &'a Section<'a>, globs: &Globs) -> Result<Option<Written<'a>>> {
    let paths = paths::of(section.bytes())?;
    Walk { section, globs, paths: &paths, steps: Vec::new() }.node(&section.root)
}

struct Walk<'a, 'w> {
    section: &'a Section<'a>,
    globs: &'w Globs,
    paths: &'w Paths,
    steps: Vec<String>,
}

impl<'a> Walk<'a, '_> {
    fn node(&mut self, node: &'a Node) -> Result<Option<Written<'a>>> {
        let same = Written::Same(self.section, node);
        Ok(match &node.kind {
            Kind::Leaf => None,
            Kind::Payload(payload) => {
                let path = self.paths.path(&self.steps).text;
                (payload.is_listed() && self.matches(&path)).then_some(same)
            }
            Kind::Columns(columns) if self.matches(&columns.path) => Some(same),
            Kind::Columns(columns) => {
                let fields = self.section.fields(columns)?;
                match fields.iter().find(|field| self.matches(&field.path)) {
                    None => None,
                    Some(field) => {
                        let name = self.section.name().filter(|_| columns.path.is_empty());
                        let table = quoted(name.unwrap_or(&columns.path));
                        let column = quoted(&field.path);
                        let what = format!("{column} is a column: choose the whole table, {table}");
                        return Err(Failure::new(what));
                    }
                }
            }
            // The meaning of a tag may depend on all of its content.
            Kind::Tag(_, inner) => self.node(inner)?.is_some().then_some(same),
            Kind::Map(entries) => {
                let mut found = Vec::new();
                for (key, node) in entries {
                    if let Some(value) = self.step(&key.step, node)? {
                        found.push((WrittenKey::of(self.section, key), value));
                    }
                }
                (!found.is_empty()).then_some(Written::Map(found))
            }
            Kind::Array(items) => {
                let mut found = Vec::new();
                for (at, node) in items.iter().enumerate() {
                    if let Some(value) = self.step(&at.to_string(), node)? {
                        found.push((at, value));
                    }
                }
                list(found)
            }
        })
    }

    fn matches(&self, path: &str) -> bool {
        self.globs.any_in(self.section.name(), path)
    }

    fn step(&mut self, step: &str, node: &'a Node) -> Result<Option<Written<'a>>> {
        self.steps.push(step.to_owned());
        let found = self.node(node);
        self.steps.pop();
        found
    }
}

/// Returns the kept items of a list. If an item before a kept one is left out, the list becomes a map from positions to
/// items, so that paths stay the same.
fn list(found: Vec<(usize, Written<'_>)>) -> Option<Written<'_>> {
    if found.is_empty() {
        return None;
    }
    if found.iter().enumerate().all(|(at, (position, _))| at == *position) {
        return Some(Written::Array(found.into_iter().map(|(_, value)| value).collect()));
    }
    let entry = |(at, value): (usize, _)| (WrittenKey::text(&at.to_string()), value);
    Some(Written::Map(found.into_iter().map(entry).collect()))
}
