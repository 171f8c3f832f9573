//! Reads the rows that others append to a table.

use std::fmt;
use std::fs::File;
use std::path::PathBuf;

use serde::de::DeserializeOwned;

use super::file::Archive;
use super::table::Table;
use crate::error::{Error, Result};
use crate::options::DecodeOptions;

/// Follows a table of a file that another process [appends](crate::OArchive::append) to: [`rows`](Self::rows) returns the rows
/// that are new since the last call.
///
/// Only values that were committed are read, and of the file only what was appended, with its directory.
///
/// ```
/// use tenarc::OArchive;
/// use tenarc::archive::Follow;
///
/// # let dir = std::env::temp_dir().join(format!("tenarc-doc-follow-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir)?;
/// # let path = dir.join("log.tenarc");
/// let append = |rows: &[f64]| OArchive::append(&path)?.save_as("loss", rows)?.commit().map(drop);
/// append(&[1.5, 1.25])?;
/// let mut log = Follow::open(&path, "loss")?;
/// assert_eq!(log.rows::<f64>()?, [1.5, 1.25]);
/// append(&[1.125])?;
/// assert_eq!(log.rows::<f64>()?, [1.125]);
/// assert!(log.rows::<f64>()?.is_empty());
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Follow {
    path: PathBuf,
    name: String,
    options: DecodeOptions,
    /// The rows before this one are passed over.
    from: u64,
    seen: Seen,
}

/// What was seen of the file.
#[derive(Clone, Copy, Default)]
struct Seen {
    /// The number of rows of the table.
    rows: u64,
    /// The last segment of the archive, if it had any.
    last: Option<Last>,
}

#[derive(Clone, Copy, PartialEq)]
struct Last {
    number: u64,
    offset: u64,
    /// The hash of its header.
    hash: u64,
}

impl fmt::Debug for Follow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, name, seen, .. } = self;
        f.debug_struct("Follow")
            .field("path", path)
            .field("name", name)
            .field("rows", &seen.rows)
            .finish_non_exhaustive()
    }
}

impl Follow {
    /// Follows the table of this name. All rows that are there are new. The file may have no value of this name yet.
    ///
    /// # Errors
    /// If the file cannot be opened: see [`open`](crate::open).
    pub fn open(path: impl Into<PathBuf>, name: impl Into<String>) -> Result<Self> {
        let options = DecodeOptions::default();
        let (path, name) = (path.into(), name.into());
        Archive::open(&path)?;
        Ok(Self { path, name, options, from: 0, seen: Seen::default() })
    }

    /// Sets the limits, and whether checksums are verified.
    #[must_use]
    pub fn with_options(mut self, options: DecodeOptions) -> Self {
        self.options = options;
        self
    }

    /// Passes over the rows before this one. A [compaction](super::Compaction) that drops and sorts no rows keeps their order. So
    /// who has [seen](Self::seen) some rows can go on behind them in the new file.
    #[must_use]
    pub fn from_row(mut self, row: u64) -> Self {
        self.from = row;
        self
    }

    /// Returns the rows that were appended since the last call.
    ///
    /// # Errors
    /// - The file was replaced by another one, for example by a [compaction](super::Compaction). Only a file that begins with
    ///   the values that were seen is the same.
    /// - The file cannot be read, a value of this name is not a sequence, or the rows do not fit the type.
    ///
    /// After an error, the same rows are still new.
    pub fn rows<T: DeserializeOwned>(&mut self) -> Result<Vec<T>> {
        let archive = Archive::open(&self.path)?.with_options(self.options);
        let (table, seen) = self.new_rows(&archive).map_err(|error| error.in_file(&self.path))?;
        let first = self.from.saturating_sub(self.seen.rows).min(table.len());
        let rows = table.rows(first..).map_err(|error| error.in_field(self.name.clone()))?;
        self.seen = seen;
        Ok(rows)
    }

    /// The number of rows of the table that were returned or passed over.
    pub fn seen(&self) -> u64 {
        self.seen.rows
    }

    /// The new rows as a table, and what was seen after them.
    fn new_rows<'a>(&self, archive: &'a Archive<File>) -> Result<(Table<'a, File>, Seen)> {
        let last = |number: u64| {
            let segment = archive.segment(number)?;
            Ok::<_, Error>(Last { number, offset: segment.offset(), hash: segment.header().hash })
        };
        let is_same = |seen: &Last| {
            seen.number < archive.len() && last(seen.number).is_ok_and(|found| found == *seen)
        };
        if !self.seen.last.as_ref().is_none_or(is_same) {
            let what = "the file was replaced, or compacted: it does not begin with the values that were read; open it anew";
            return Err(Error::data(what));
        }
        let mut table = Table::default();
        match self.seen.last {
            None => archive
                .entries()
                .try_for_each(|entry| archive.add_rows(&mut table, entry?, &self.name))?,
            Some(Last { number, .. }) => {
                // Most often these are few, and the directory need not be read as a whole.
                for number in number + 1..archive.len() {
                    if let Some(entry) = archive.entry(number)? {
                        archive.add_rows(&mut table, entry, &self.name)?;
                    }
                }
            }
        }
        let rows = self.seen.rows.saturating_add(table.len());
        Ok((table, Seen { rows, last: archive.len().checked_sub(1).map(last).transpose()? }))
    }
}
