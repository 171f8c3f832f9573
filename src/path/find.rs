//! Finds the value at a path. Values that are not on the path are skipped, not decoded.

use std::ops::Range;

use super::spelling::key;
use crate::error::{Error, Result};
use crate::io::buffers::BufferLengths;
use crate::io::input::Input;
use crate::near::{MAX_NAMES, did_you_mean, edits};
use crate::options::Limits;
use crate::steps::{NextStep, Steps, escape_step, leads_to_several};
use crate::wire::head::{self, Head, Parsed};
use crate::wire::reader::{Left, Reader, refused_in_metadata};
use crate::wire::tag;
use crate::wire::tensor::Kind;

/// Where the value at a path is in the metadata.
#[derive(Clone, Debug)]
pub enum FoundPlace<'p> {
    /// The value is the item in this range.
    Item(Range<usize>),
    /// The value is in the columns that are the item in this range, or it is one of these columns. The steps lead
    /// there.
    InColumns(Range<usize>, Steps<'p>),
    /// The value is the number at this position of the packed sequence that is the item in this range.
    InPacked(Range<usize>, u64),
}

/// Returns where in `metadata` the value at `path` is. Does not check whether columns have what the path names in them.
/// `buffers` are those that the metadata refers to.
///
/// # Errors
/// If there is no such value, or several.
pub fn find<'p>(
    metadata: &[u8],
    buffers: &[(u64, u64)],
    path: &'p str,
    limits: Limits,
) -> Result<FoundPlace<'p>> {
    let whole = Metadata { bytes: metadata, buffers: Some(buffers), limits };
    search(whole, path, None)?.ok_or_else(|| missing(whole, path))
}

/// Returns the range of `metadata` that holds the item at `path`. A message has no `buffers`.
///
/// # Errors
/// If there is no such item, or several. A value in columns has no item of its own.
pub fn find_item(
    metadata: &[u8],
    buffers: Option<&[(u64, u64)]>,
    path: &str,
    limits: Limits,
) -> Result<Range<usize>> {
    let whole = Metadata { bytes: metadata, buffers, limits };
    let found = search(whole, path, None)?;
    let (range, how) = match found.ok_or_else(|| missing(whole, path))? {
        FoundPlace::Item(range) => return Ok(range),
        FoundPlace::InColumns(range, _) => (range, "stored as columns, which have"),
        FoundPlace::InPacked(range, _) => (range, "packed, and has"),
    };
    let what = format!("the sequence is {how} no item for this path");
    Err(Error::unsupported(what).at(range.start as u64).in_field(path))
}

/// What is searched.
#[derive(Clone, Copy)]
struct Metadata<'a> {
    bytes: &'a [u8],
    /// The buffers that it refers to. `None` if it may be a message.
    buffers: Option<&'a [(u64, u64)]>,
    limits: Limits,
}

fn search<'p>(
    metadata: Metadata<'_>,
    path: &'p str,
    nearest: Option<&mut NearestStep>,
) -> Result<Option<FoundPlace<'p>>> {
    if path.is_empty() {
        return Ok(Some(FoundPlace::Item(0..metadata.bytes.len())));
    }
    let steps = Steps::of(path);
    let Metadata { bytes, buffers, limits } = metadata;
    let mut search = Search { bytes, buffers, at: 0, limits, found: None, nearest };
    search.descend(steps, limits.max_depth, true).map_err(|error| error.in_field(path))?;
    Ok(search.found)
}

#[cold]
fn missing(metadata: Metadata<'_>, path: &str) -> Error {
    let meant = suggestion(metadata, path).map(|near| did_you_mean(&near));
    let meant = meant.unwrap_or_default();
    Error::not_found(format!("there is no value at `{}`{meant}", path.escape_debug()))
}

/// Returns a path that is similar to one that leads nowhere. It has another key at the first step that fails.
fn suggestion(metadata: Metadata<'_>, path: &str) -> Option<String> {
    let mut nearest = NearestStep { path_len: path.len(), reached: 0, looked_at: 0, found: None };
    search(metadata, path, Some(&mut nearest)).ok()?;
    let reached = nearest.reached;
    let found = nearest.found.filter(|found| found.start >= reached);
    let Candidate { start, key, behind, .. } = found?;
    let to_key = path.get(..start)?.to_owned() + &key;
    let whole = to_key.clone() + path.get(behind..)?;
    let is_there = |path: &String| matches!(search(metadata, path, None), Ok(Some(_)));
    [whole, to_key].into_iter().find(is_there)
}

/// Keeps the key that is most similar to the step of a path that leads nowhere.
struct NearestStep {
    path_len: usize,
    /// The length of the part of the path that leads somewhere. The step after it fails.
    reached: usize,
    looked_at: usize,
    found: Option<Candidate>,
}

/// A key that may have been meant.
struct Candidate {
    /// The offset in the path of the step that this key would replace.
    start: usize,
    edits: usize,
    /// The key, as it is written in a path.
    key: String,
    /// The offset in the path of the part after that step.
    behind: usize,
}

impl NearestStep {
    /// Compares a key with the next step, which does not lead to it.
    fn look_at(&mut self, next: &NextStep<'_>, key: &[u8]) {
        if self.looked_at >= MAX_NAMES {
            return;
        }
        self.looked_at += 1;
        let Ok(key) = str::from_utf8(key) else { return };
        let (start, step, rest) = match next {
            NextStep::Dotted(path) => {
                // The key may contain dots. The step then has as many components as the key.
                let end = path.match_indices('.').nth(key.matches('.').count());
                let (step, rest) = path.split_at(end.map_or(path.len(), |(at, _)| at));
                let start = self.path_len - path.len();
                // A path with this key would be read as a JSON Pointer.
                if start == 0 && key.starts_with('/') {
                    return;
                }
                (start, step, rest.len())
            }
            NextStep::Pointer { step, written, rest } => {
                let start = self.path_len - rest.len() - written - 1;
                (start, &**step, rest.len())
            }
        };
        let Some(edits) = edits(step, key) else { return };
        let is_nearer = |other: &Candidate| {
            start > other.start || (start == other.start && edits < other.edits)
        };
        if self.found.as_ref().is_none_or(is_nearer) {
            let behind = self.path_len - rest;
            let key = match next {
                NextStep::Dotted(_) => key.to_owned(),
                NextStep::Pointer { .. } => format!("/{}", escape_step(key)),
            };
            self.found = Some(Candidate { start, edits, key, behind });
        }
    }
}

/// A search through encoded items. It skips the items that are not on the way.
///
/// It does not use [`Walk`](crate::wire::walk::Walk): it passes over most items as a whole, and keeps the rest of
/// the path for each item that it enters.
struct Search<'a, 'n, 'p> {
    bytes: &'a [u8],
    buffers: Option<&'a [(u64, u64)]>,
    at: usize,
    limits: Limits,
    found: Option<FoundPlace<'p>>,
    /// Collects the keys that are not on the way, for a suggestion.
    nearest: Option<&'n mut NearestStep>,
}

impl<'a, 'p> Search<'a, '_, 'p> {
    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// A reader of the rest.
    fn wire(&self) -> Reader<'a, '_> {
        Reader::new(Input::slice(self.rest()), self.limits).with_strict(self.buffers.is_some())
    }

    fn head(&mut self) -> Result<Head> {
        match head::parse(self.rest()) {
            Parsed::Head(head, len) => {
                if self.buffers.is_some()
                    && let Some(error) = refused_in_metadata(head)
                {
                    return Err(error.at(self.at as u64));
                }
                self.at += len;
                Ok(head)
            }
            Parsed::Short(_) => Err(Error::eof("more metadata").at(self.at as u64)),
            Parsed::Malformed(why) => Err(Error::syntax(why).at(self.at as u64)),
        }
    }

    fn skip(&mut self) -> Result<()> {
        match head::item_len(self.rest()) {
            Some(len) => self.at += len,
            // The item contains indefinite lengths or is malformed: the full parser decides.
            None => {
                let mut wire = self.wire();
                wire.skip().map_err(|error| error.moved_by(self.at as u64))?;
                self.at += usize::try_from(wire.offset()).unwrap_or(usize::MAX);
            }
        }
        Ok(())
    }

    /// Whether the container has another item.
    fn more(&mut self, left: &mut Left) -> bool {
        if left.known().is_none() && self.rest().first() == Some(&head::BREAK) {
            self.at += 1;
            return false;
        }
        left.take_one()
    }

    /// Searches the next item for the value at `steps`, and moves past the item.
    ///
    /// `last` says that no item after this one can match. The search may then stop at the value without
    /// skipping what follows it. A map is always searched to its end, because a key that occurs twice is
    /// an error.
    fn descend(&mut self, steps: Steps<'p>, depth: usize, last: bool) -> Result<()> {
        if steps.is_empty() {
            let start = self.at;
            self.skip()?;
            return self.found(FoundPlace::Item(start..self.at));
        }
        let start = self.at;
        let depth = depth
            .checked_sub(1)
            .ok_or_else(|| Error::limit("nesting is deeper than the limit").at(start as u64))?;
        let head = self.head()?;
        match head.major() {
            head::ARRAY => {
                let (wanted, behind) = steps.index();
                let mut left = Left::of(head);
                let mut count = 0u64;
                while self.more(&mut left) {
                    let steps = if wanted == Some(count) { behind } else { None };
                    self.step(steps, depth, last)?;
                    // Only one element has this index.
                    if last && self.found.is_some() {
                        return Ok(());
                    }
                    count += 1;
                }
            }
            head::MAP => {
                let next = steps.next();
                let mut left = Left::of(head);
                while self.more(&mut left) {
                    let steps = self.key(&next)?;
                    self.step(steps, depth, last && left.known() == Some(0))?;
                }
            }
            head::TAG if head.arg == tag::TYPE => {
                let mut wire = self.wire();
                wire.type_head().map_err(|error| error.moved_by(self.at as u64))?;
                self.at += usize::try_from(wire.offset()).unwrap_or(usize::MAX);
                self.descend(steps, depth.saturating_sub(1), last)?;
            }
            // A tensor is a leaf. Any other tag has the same path as the item inside it.
            head::TAG if !tag::is_leaf(head.arg) => self.descend(steps, depth, last)?,
            head::TAG if head.arg == tag::COLUMNS => {
                self.at = start;
                self.skip()?;
                self.found(FoundPlace::InColumns(start..self.at, steps))?;
            }
            head::TAG => {
                self.at = start;
                self.skip()?;
                if let (Some(index), Some(Steps::Pointer(""))) = steps.index()
                    && tag::may_be_packed(head.arg)
                    && self.has_number(start, head.arg, index)
                {
                    self.found(FoundPlace::InPacked(start..self.at, index))?;
                }
            }
            _ => {
                self.at = start;
                self.skip()?;
            }
        }
        Ok(())
    }

    /// Whether the item between `start` and here, which has this tag, is a packed sequence with so many numbers that
    /// there is one at `index`. If it is not well-formed, it has none.
    fn has_number(&self, start: usize, tag: u64, index: u64) -> bool {
        // Without the buffers, it is not known how many numbers are in one.
        let Some(buffers) = self.buffers.or((tag != tag::BUFFER).then_some(&[])) else {
            return true;
        };
        let mut lengths = BufferLengths(buffers);
        let item = self.bytes.get(start..self.at).unwrap_or_default();
        let mut wire = Reader::new(Input::segment(item, 0, &mut lengths), self.limits);
        let found = wire.head().and_then(|_| wire.tensor(tag));
        found.is_ok_and(|item| {
            let len = item.meta.shape.first().copied().unwrap_or_default();
            item.kind == Kind::Numbers && item.meta.dtype.is_packed() && index < len as u64
        })
    }

    fn found(&mut self, place: FoundPlace<'p>) -> Result<()> {
        match self.found.replace(place) {
            None => Ok(()),
            Some(_) => Err(leads_to_several()),
        }
    }

    #[inline]
    fn step(&mut self, steps: Option<Steps<'p>>, depth: usize, last: bool) -> Result<()> {
        match steps {
            Some(steps) => self.descend(steps, depth, last),
            None => self.skip(),
        }
    }

    /// Reads a map key. Returns the rest of the path if the key is the next step.
    fn key<'s>(&mut self, next: &NextStep<'s>) -> Result<Option<Steps<'s>>> {
        if let Some((head::TEXT, key_len, len)) = head::definite(self.rest())
            && let Some(rest) = self.rest().get(len..)
            && let Some(key) = usize::try_from(key_len).ok().and_then(|len| rest.get(..len))
        {
            self.at += len + key.len();
            return Ok(self.after(next, key));
        }
        let mut wire = self.wire();
        let key = key(&mut wire).map_err(|error| error.moved_by(self.at as u64))?;
        self.at += usize::try_from(wire.offset()).unwrap_or(usize::MAX);
        Ok(self.after(next, key.as_bytes()))
    }

    #[inline]
    fn after<'s>(&mut self, next: &NextStep<'s>, key: &[u8]) -> Option<Steps<'s>> {
        let after = next.after(key);
        if let Some(nearest) = &mut self.nearest {
            match after {
                Some(rest) => {
                    nearest.reached = nearest.reached.max(nearest.path_len - rest.len());
                }
                None => nearest.look_at(next, key),
            }
        }
        after
    }
}
