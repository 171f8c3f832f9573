//! The values that a command writes, in any format.

use std::path::Path;

use tenarc::archive::Segment;
use tenarc::inspect::{Event, Items};
use tenarc_convert::{JoinedTable, json};

use super::Format;
use crate::document::{Document, Section};
use crate::failure::{Failure, Of as _, Result};
use crate::input::Source;
use crate::temporary::{TEMPORARY, save_temporary, temporary_archive};
use crate::text::quoted;
use crate::written::Written;

/// The most bytes of rows that are one value of a table.
const BLOCK: usize = 4 << 20;

/// A value to be written.
pub enum Valued<'a> {
    /// A value of an input.
    Whole(&'a Section<'a>),
    /// A changed value, and its name.
    Changed(Option<&'a str>, Written<'a>),
}

/// A function that is called with each value.
type Put<'p> = dyn FnMut(Valued<'_>) -> Result<()> + 'p;

/// A function that calls the given [`Put`] with each value.
type Each<'s> = dyn FnMut(&mut Put<'_>) -> Result<()> + 's;

/// Values to be written, one after the other. Each value is created when it is written, so that only one is in memory.
pub struct Values<'s> {
    each: Box<Each<'s>>,
    /// The least number of values.
    at_least: u64,
    /// The segments of the values, if all values are from one archive.
    segments: Option<Vec<Segment<'s, Source>>>,
    /// Whether they are messages, the first of which looks like rows. Only such messages may be a table.
    are_rows: bool,
    /// Whether each of them is a message that may be a row of a table.
    are_lines: bool,
    /// The name of the file without its extension, if it has JSON lines.
    lines: Option<String>,
    /// The name by which several values were chosen.
    name: Option<String>,
}

impl<'s> Values<'s> {
    /// Creates values from a function that passes each of them to its argument. `at_least` is the least number of
    /// values.
    pub fn new(at_least: u64, each: impl FnMut(&mut Put<'_>) -> Result<()> + 's) -> Self {
        Self {
            each: Box::new(each),
            at_least,
            segments: None,
            are_rows: false,
            are_lines: false,
            lines: None,
            name: None,
        }
    }

    /// Returns the chosen values of a document, or all its values.
    ///
    /// # Errors
    /// If there is no such value.
    pub fn of(document: &'s Document, chosen: Option<&str>) -> Result<Self> {
        let numbers = document.numbers(chosen)?;
        let name = chosen.filter(|_| numbers.len() > 1).map(str::to_owned);
        let values = Self::of_numbers(document, numbers)?;
        // A line that was chosen is a value.
        let lines = values.lines.filter(|_| chosen.is_none());
        Ok(Self { lines, name, ..values })
    }

    /// Returns the values of a document that have these numbers.
    ///
    /// # Errors
    /// If there is no such value.
    pub fn of_numbers(document: &'s Document, numbers: Vec<u64>) -> Result<Self> {
        let segments = document.archive().map(|archive| {
            numbers.iter().map(|&number| archive.segment(number)).collect::<tenarc::Result<_>>()
        });
        let segments = segments.transpose().of(&document.name)?;
        let at_least = numbers.len() as u64;
        let values = Self::new(at_least, move |put| {
            numbers.iter().try_for_each(|&number| {
                put(Valued::Whole(&document.section(number)?)).of(&document.name)
            })
        });
        let are_rows = document.messages().is_some_and(starts_with_rows);
        let path = Path::new(&document.name);
        let lines = path.file_stem().filter(|_| json::is_lines(path));
        let lines = lines.map(|stem| stem.to_string_lossy().into_owned());
        let are_lines =
            (at_least > 1 || lines.is_some()) && document.messages().is_some_and(starts_with_map);
        Ok(Self { segments, are_rows, are_lines, lines, ..values })
    }

    /// Calls `put` with each value.
    ///
    /// # Errors
    /// If a value cannot be read, or `put` fails.
    pub fn each(&mut self, put: &mut Put<'_>) -> Result<()> {
        (self.each)(put)
    }

    /// Returns the segments of the values, if all values are from one archive. The second call returns `None`.
    pub fn segments(&mut self) -> Option<Vec<Segment<'s, Source>>> {
        self.segments.take()
    }

    /// Returns whether the values are messages that may be a table.
    pub fn are_rows(&self) -> bool {
        self.are_rows
    }

    /// Returns the name of the file without its extension, if it has JSON lines.
    pub fn lines(&self) -> Option<&str> {
        self.lines.as_deref()
    }

    /// Returns a document with the rows of a table, if each of the values may be a row, as in JSON lines. Its values are
    /// sequences of at most [`BLOCK`] bytes and a row, because the nodes of a value take many times its bytes.
    ///
    /// # Errors
    /// If a value cannot be read.
    pub fn as_rows(&mut self) -> Result<Option<Document>> {
        if !std::mem::take(&mut self.are_lines) {
            return Ok(None);
        }
        // An array without a stated length, and its end.
        let (start, end) = (0x9f, 0xff);
        let (mut rows, mut block) = (vec![start], 0);
        self.each(&mut |value| {
            value.with_section(&mut |section| {
                if rows.len() - block > BLOCK {
                    rows.push(end);
                    block = rows.len();
                    rows.push(start);
                }
                rows.extend_from_slice(section.message().unwrap_or_default());
                Ok(())
            })
        })?;
        rows.push(end);
        Document::of_messages(TEMPORARY.into(), Format::Message, rows).map(Some)
    }

    /// Returns the values as one, if they are parts of one table.
    ///
    /// # Errors
    /// If a value cannot be read.
    pub fn joined(&self) -> Result<Option<JoinedTable<'s, Source>>> {
        Ok(JoinedTable::of(self.segments.clone().unwrap_or_default())?)
    }

    /// Calls `put` with the only value, for formats that hold just one.
    ///
    /// # Errors
    /// If there is no value, if there are several, or if `put` fails.
    pub fn only(&mut self, put: &mut dyn FnMut(&Section<'_>) -> Result<()>) -> Result<()> {
        let name = self.name.take();
        let one = || {
            let how = name.as_ref().map_or_else(String::new, |name| {
                format!(" NUMBER, because several have the name {}", quoted(name))
            });
            Failure::new(format!(
                "the output format holds one value: choose it with --segment{how}"
            ))
        };
        if self.at_least > 1 {
            return Err(one());
        }
        let mut seen = false;
        self.each(&mut |value| {
            if std::mem::replace(&mut seen, true) {
                return Err(one());
            }
            value.with_section(put)
        })?;
        if seen { Ok(()) } else { Err(one()) }
    }
}

impl Valued<'_> {
    /// Calls `put` with the value, for formats other than archives. A changed value is first saved to a temporary
    /// archive only if it has columns, or tensors inside tags.
    ///
    /// # Errors
    /// If `put` fails, or the value cannot be read.
    pub fn with_section(&self, put: &mut dyn FnMut(&Section<'_>) -> Result<()>) -> Result<()> {
        let (name, value) = match self {
            Valued::Whole(section) => return put(section),
            Valued::Changed(name, value) => (*name, value),
        };
        if let Some(section) = Section::made(name, value)? {
            return put(&section);
        }
        let archive = temporary_archive(|out| save_temporary(out, name, value))?;
        put(&Document::of_archive(TEMPORARY.into(), Format::Archive, archive).section(0)?)
    }
}

/// Returns whether the first message is a map.
fn starts_with_map(messages: &[u8]) -> bool {
    let first = Items::new(messages).next().and_then(tenarc::Result::ok);
    first.is_some_and(|item| item.event == Event::Map)
}

/// Returns whether the first message is an array whose first element is a map, or has a tag, such as that of columns.
fn starts_with_rows(messages: &[u8]) -> bool {
    let mut items = Items::new(messages);
    let mut next = || items.next().and_then(tenarc::Result::ok).map(|item| item.event);
    match next() {
        Some(Event::Array) => matches!(next(), Some(Event::Map)),
        Some(Event::Tag(_)) => true,
        _ => false,
    }
}
