//! What has no place in Arrow, or none in an archive.

use std::fmt;

/// What is left out or changed where a table becomes record batches, or the reverse.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    lost: Vec<(String, String)>,
    notes: Vec<String>,
}

impl Report {
    /// The most losses that are shown.
    const SHOWN: usize = 3;

    /// The paths of columns that are left out or changed, each with the reason.
    pub fn lost(&self) -> &[(String, String)] {
        &self.lost
    }

    /// What is left out without changing a value.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Whether nothing is lost. Notes do not count.
    pub fn is_empty(&self) -> bool {
        self.lost.is_empty()
    }

    pub(crate) fn add(&mut self, path: &str, what: impl Into<String>) {
        self.lost.push((path.to_owned(), what.into()));
    }

    pub(crate) fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.lost.retain(|(path, _)| keep(path));
    }

    /// Adds a note, unless it was added before.
    pub(crate) fn note(&mut self, what: impl Into<String>) {
        let what = what.into();
        if !self.notes.contains(&what) {
            self.notes.push(what);
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("nothing is lost");
        }
        f.write_str("cannot be kept: ")?;
        for (number, (path, what)) in self.lost.iter().take(Self::SHOWN).enumerate() {
            let before = if number > 0 { "; " } else { "" };
            // Names come from the input: control characters must not reach a terminal.
            write!(f, "{before}`{}`: {what}", path.escape_debug())?;
        }
        match self.lost.len().saturating_sub(Self::SHOWN) {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}
