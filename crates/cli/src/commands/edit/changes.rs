//! Parses the changes of `edit` from the command line, and applies them to a value.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashSet;

use tenarc::error::Category;
use tenarc::inspect::escape_step;
use tenarc::{DType, Value};
use tenarc_convert::json;

use super::tree::{self, Matched, New, expanded};
use crate::args::Edit;
use crate::change::Change;
use crate::document::Section;
use crate::elements::did_you_mean;
use crate::failure::{Failure, Of, Result};
use crate::node::{Columns, Kind};
use crate::paths::{self, Globs, walk};
use crate::text::quoted;
use crate::written::Written;

#[derive(Default)]
pub struct Changes {
    drop: Vec<(String, Globs)>,
    keep: Vec<(String, Globs)>,
    cast: Vec<Casting>,
    rename: Vec<(String, String)>,
    set: Vec<(String, Value)>,
    /// The patterns and paths that matched something, in any value.
    used: RefCell<HashSet<String>>,
}

/// Tensors to cast, and their new dtype.
struct Casting {
    /// As on the command line.
    argument: String,
    /// `None` for all tensors of floats.
    globs: Option<Globs>,
    dtype: DType,
}

impl Casting {
    /// Parses `PATTERN=DTYPE`, or `DTYPE`.
    fn new(argument: &str) -> Result<Self> {
        let (pattern, dtype) = if argument.contains('=') {
            let (pattern, dtype) = pair(argument)?;
            (Some(pattern), dtype)
        } else {
            (None, argument.to_owned())
        };
        let dtype = DType::from_name(&dtype);
        if dtype.bits().is_none() {
            let (name, meant) = (quoted(dtype.name()), did_you_mean(dtype.name()));
            return Err(Failure::new(format!("unknown dtype {name}{meant}")));
        }
        let globs = pattern.map(|pattern| Globs::new(&[pattern])).transpose()?;
        Ok(Self { argument: argument.to_owned(), globs, dtype })
    }

    fn is_for(&self, path: &str, dtype: &DType) -> bool {
        match &self.globs {
            Some(globs) => globs.any(path),
            None => matches!(dtype, DType::F64 | DType::F32 | DType::F16 | DType::BF16),
        }
    }
}

impl Changes {
    /// Changes that only cast tensors: each `PATTERN=DTYPE`, or `DTYPE` for all floats.
    pub fn casting(arguments: &[String]) -> Result<Self> {
        let cast =
            arguments.iter().map(|argument| Casting::new(argument)).collect::<Result<_>>()?;
        Ok(Self { cast, ..Self::default() })
    }

    pub fn new(args: &Edit) -> Result<Self> {
        let set = pairs(&args.set)?.into_iter().map(|(path, text)| {
            let value = match json::read(text.as_bytes()) {
                Err(error) if matches!(error.category(), Category::Syntax | Category::Eof) => {
                    Value::Text(text)
                }
                read => read.of(quoted(&path))?,
            };
            Ok((path, value))
        });
        Ok(Self {
            drop: compiled(&args.drop)?,
            keep: compiled(&args.keep)?,
            rename: pairs(&args.rename)?,
            set: set.collect::<Result<_>>()?,
            ..Self::casting(&args.cast)?
        })
    }

    /// Returns whether `--set` is used. It needs an input with one value, or `--segment`.
    pub fn sets(&self) -> bool {
        !self.set.is_empty()
    }

    /// Checks that each pattern or path on the command line has matched something.
    ///
    /// # Errors
    /// If one of them has matched nothing.
    pub fn check_used(&self) -> Result<()> {
        match self.unused() {
            Some(unused) => Err(Failure::new(format!("nothing matches {}", quoted(&unused)))),
            None => Ok(()),
        }
    }

    fn unused(&self) -> Option<String> {
        let used = self.used.borrow();
        let drop = self.drop.iter().map(|(pattern, _)| pattern);
        let keep = self.keep.iter().map(|(pattern, _)| pattern);
        let cast = self.cast.iter().map(|casting| &casting.argument);
        let rename = self.rename.iter().map(|(path, _)| path);
        drop.chain(keep).chain(cast).chain(rename).find(|one| !used.contains(*one)).cloned()
    }

    fn any<'g>(&self, globs: impl Iterator<Item = (&'g String, &'g Globs)>, path: &str) -> bool {
        let mut found = false;
        for (pattern, glob) in globs {
            if glob.any(path) {
                self.used.borrow_mut().insert(pattern.clone());
                found = true;
            }
        }
        found
    }

    /// Returns the changed value, or `None` if nothing changes.
    pub fn applied<'a>(&self, section: &'a Section<'a>) -> Result<Option<Written<'a>>> {
        let matched = self.matched(section)?;
        matched.check(section)?;
        let mut changed = !matched.dropped.is_empty() || !matched.changed.is_empty();
        let value = expanded(section, &section.root, &matched)?;
        let mut value = value.ok_or_else(|| Failure::new("the whole value would be dropped"))?;
        for (old, new) in &self.rename {
            if tree::rename(&mut value, old, new)? || tree::rename_matching(&mut value, old, new)? {
                self.used.borrow_mut().insert(old.clone());
                changed = true;
            }
        }
        for (path, new) in &self.set {
            tree::set(&mut value, path, new.clone())?;
            changed = true;
        }
        Ok(changed.then_some(value))
    }

    /// Returns the nodes to drop and the tensors to cast, by the position of their first byte in the metadata.
    fn matched<'a>(&self, section: &'a Section<'a>) -> Result<Matched<'a>> {
        let paths = paths::of(section.bytes())?;
        let Matched { mut dropped, mut changed, mut opened } = Matched::default();
        let mut kept: Vec<&Columns> = Vec::new();
        walk(&section.root, &mut Vec::new(), &mut |steps, node| {
            let path = paths.path(steps).text;
            let at = node.range.start;
            // The whole value has an empty path, which `*` matches. It cannot be dropped.
            if !steps.is_empty() && self.any(self.drop.iter().map(|(p, g)| (p, g)), &path) {
                dropped.insert(at);
            }
            if let Kind::Columns(columns) = &node.kind
                && !dropped.contains(&at)
            {
                kept.push(columns);
                if self.changes_in(steps, &path) {
                    opened.insert(at);
                }
            }
            let Kind::Payload(payload) = &node.kind else { return };
            if !payload.is_listed() {
                return;
            }
            if !self.keep.is_empty() && !self.any(self.keep.iter().map(|(p, g)| (p, g)), &path) {
                dropped.insert(at);
            }
            for casting in &self.cast {
                if casting.is_for(&path, &payload.dtype) {
                    self.used.borrow_mut().insert(casting.argument.clone());
                    if payload.dtype != casting.dtype {
                        // If several patterns match, the last one wins.
                        let change = Some(Change::Cast(casting.dtype.clone()));
                        changed.insert(at, New { section, node, change });
                    }
                }
            }
        });
        for columns in kept {
            self.refuse_columns(section, columns)?;
        }
        Ok(Matched { dropped, changed, opened })
    }

    /// Returns whether a value is set or renamed inside the value at a path.
    fn changes_in(&self, steps: &[Cow<'_, str>], path: &str) -> bool {
        let pointer: String =
            steps.iter().flat_map(|step| ["/".into(), escape_step(step)]).collect();
        let is_inside = |to: &String| {
            let dotted = to.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'));
            dotted
                || path.is_empty()
                || to.strip_prefix(&*pointer).is_some_and(|rest| rest.starts_with('/'))
        };
        // What a pattern matches is no part of columns.
        let renamed = self.rename.iter().filter(|(old, _)| !old.contains('*'));
        let renamed = renamed.flat_map(|(old, new)| [old, new]);
        renamed.chain(self.set.iter().map(|(path, _)| path)).any(is_inside)
    }

    /// Refuses patterns that match a column: only whole sequences can be dropped.
    fn refuse_columns(&self, section: &Section<'_>, columns: &Columns) -> Result<()> {
        if self.drop.is_empty() && self.keep.is_empty() && self.cast.is_empty() {
            return Ok(());
        }
        for field in section.fields(columns)? {
            let path = &field.path;
            let is_in_rows = field.kind == "tensors";
            let mut named = self.cast.iter().filter_map(|casting| casting.globs.as_ref());
            let is_cast = named.any(|globs| globs.any(path));
            let is_dropped = self.any(self.drop.iter().map(|(p, g)| (p, g)), path);
            let is_left = !self.keep.is_empty()
                && !self.any(self.keep.iter().map(|(p, g)| (p, g)), path)
                && is_in_rows;
            if is_dropped || is_left || is_cast && field.tensor.is_some() {
                let what = "is a column; edit drops whole tables, but drops and casts no columns";
                return Err(Failure::new(format!("{} {what}", quoted(path))));
            }
        }
        Ok(())
    }
}

fn compiled(patterns: &[String]) -> Result<Vec<(String, Globs)>> {
    let one = |pattern: &String| Ok((pattern.clone(), Globs::new(std::slice::from_ref(pattern))?));
    patterns.iter().map(one).collect()
}

/// Splits each argument at its first `=`.
fn pairs(arguments: &[String]) -> Result<Vec<(String, String)>> {
    arguments.iter().map(|argument| pair(argument)).collect()
}

fn pair(argument: &str) -> Result<(String, String)> {
    let parts = argument.split_once('=');
    match parts.filter(|(left, right)| !left.is_empty() && !right.is_empty()) {
        Some((left, right)) => Ok((left.to_owned(), right.to_owned())),
        None => Err(Failure::new(format!("expected LEFT=RIGHT, found {}", quoted(argument)))),
    }
}
