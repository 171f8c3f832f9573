//! Finds the value at a path. Values that are not on the path are skipped, not decoded.

use std::borrow::Cow;
use std::ops::Range;

use super::path::is_leaf;
use super::spelling::key;
use crate::error::{Error, Result};
use crate::io::source::SliceRead;
use crate::options::Limits;
use crate::wire::head::{self, Head, Parsed};
use crate::wire::reader::{Left, Wire};

/// Returns the range of `metadata` that holds the item at `path`.
pub fn find(metadata: &[u8], path: &str, limits: Limits) -> Result<Range<usize>> {
    let steps = match path {
        "" => return Ok(0..metadata.len()),
        pointer if pointer.starts_with('/') => Steps::Pointer(pointer),
        dotted => Steps::Dotted(dotted),
    };
    let mut search = Search { bytes: metadata, at: 0, limits, found: None };
    search.descend(steps, limits.max_depth, true).map_err(|error| error.in_field(path))?;
    search
        .found
        .ok_or_else(|| Error::data(format!("there is no value at `{}`", path.escape_debug())))
}

/// The part of the path that is still to be followed.
#[derive(Clone, Copy)]
enum Steps<'a> {
    Dotted(&'a str),
    /// A JSON Pointer: empty, or steps that each start with a slash.
    Pointer(&'a str),
}

impl<'a> Steps<'a> {
    fn is_empty(self) -> bool {
        matches!(self, Self::Pointer(""))
    }

    /// The array index in the next step, and the path after it. `None` in place of the index if the step
    /// is not a plain decimal number: leading zeros are not accepted.
    fn index(self) -> (Option<u64>, Option<Self>) {
        let path = match self {
            Self::Dotted(path) => path,
            Self::Pointer(path) => path.get(1..).unwrap_or_default(),
        };
        let digits = path.bytes().take_while(u8::is_ascii_digit).count();
        let number = path.get(..digits).unwrap_or_default();
        let is_plain = number == "0" || !number.starts_with('0');
        (number.parse().ok().filter(|_| is_plain), self.next().after(number.as_bytes()))
    }

    /// The next step, to be compared with the keys of a map.
    fn next(self) -> Next<'a> {
        match self {
            Self::Dotted(path) => Next::Dotted(path),
            Self::Pointer(path) => {
                let rest = path.strip_prefix('/').unwrap_or(path);
                let (step, rest) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
                let step = if step.contains('~') {
                    step.replace("~1", "/").replace("~0", "~").into()
                } else {
                    step.into()
                };
                Next::Pointer(step, rest)
            }
        }
    }
}

/// A step into a map whose keys are not known yet.
enum Next<'a> {
    /// Matches every key that is a prefix of the path and is followed by a dot or the end of the path.
    Dotted(&'a str),
    /// Matches exactly one key. The second field is the path after it.
    Pointer(Cow<'a, str>, &'a str),
}

impl<'a> Next<'a> {
    /// The rest of the path after a step into `key`, or `None` if the path does not go through that key.
    #[inline]
    fn after(&self, key: &[u8]) -> Option<Steps<'a>> {
        match self {
            Self::Dotted(path) => {
                let rest = path.as_bytes().strip_prefix(key)?;
                match rest.first() {
                    None => Some(Steps::Pointer("")),
                    Some(b'.') => path.get(key.len() + 1..).map(Steps::Dotted),
                    Some(_) => None,
                }
            }
            Self::Pointer(step, rest) => (step.as_bytes() == key).then_some(Steps::Pointer(rest)),
        }
    }
}

/// A search through encoded items that skips everything off the path.
struct Search<'a> {
    bytes: &'a [u8],
    at: usize,
    limits: Limits,
    found: Option<Range<usize>>,
}

impl<'a> Search<'a> {
    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    fn head(&mut self) -> Result<Head> {
        match head::parse(self.rest()) {
            Parsed::Head(head, len) => {
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
                let mut wire = Wire::new(SliceRead::new(self.rest()), self.limits);
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
    fn descend(&mut self, steps: Steps<'_>, depth: usize, last: bool) -> Result<()> {
        if steps.is_empty() {
            let start = self.at;
            self.skip()?;
            if self.found.replace(start..self.at).is_some() {
                return Err(Error::data(
                    "the path leads to several values: a key occurs twice, or keys contain dots; with dots, a JSON Pointer \
                     such as /a.b/c names one of the values",
                ));
            }
            return Ok(());
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
            // A tensor is a leaf. Any other tag has the same path as the item inside it.
            head::TAG if !is_leaf(head.arg) => self.descend(steps, depth, last)?,
            _ => {
                self.at = start;
                self.skip()?;
            }
        }
        Ok(())
    }

    #[inline]
    fn step(&mut self, steps: Option<Steps<'_>>, depth: usize, last: bool) -> Result<()> {
        match steps {
            Some(steps) => self.descend(steps, depth, last),
            None => self.skip(),
        }
    }

    /// Reads a map key. Returns the rest of the path if the key is the next step.
    fn key<'s>(&mut self, next: &Next<'s>) -> Result<Option<Steps<'s>>> {
        if let Some((head::TEXT, key_len, len)) = head::definite(self.rest())
            && let Some(rest) = self.rest().get(len..)
            && let Some(key) = usize::try_from(key_len).ok().and_then(|len| rest.get(..len))
        {
            self.at += len + key.len();
            return Ok(next.after(key));
        }
        let mut wire = Wire::new(SliceRead::new(self.rest()), self.limits);
        let key = key(&mut wire).map_err(|error| error.moved_by(self.at as u64))?;
        self.at += usize::try_from(wire.offset()).unwrap_or(usize::MAX);
        Ok(next.after(key.as_bytes()))
    }
}
