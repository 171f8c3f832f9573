//! What a conversion cannot keep.

use std::fmt;

use tenarc::{Error, Result};

/// One thing that a conversion cannot keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    path: String,
    what: String,
}

impl Loss {
    /// The tensor, or the value in the archive, that is not kept as it is.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What is lost.
    pub fn what(&self) -> &str {
        &self.what
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Names come from the input: control characters must not reach a terminal.
        write!(f, "`{}`: {}", self.path.escape_debug(), self.what)
    }
}

/// What a conversion could not keep, where it was told to go on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    listed: Vec<Loss>,
    count: u64,
}

impl Losses {
    /// More are counted only.
    const MOST: usize = 1000;

    /// Those that an error names.
    const SHOWN: usize = 3;

    /// The first thousand of them.
    pub fn listed(&self) -> &[Loss] {
        &self.listed
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether everything was kept.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn add(&mut self, path: &str, what: impl Into<String>) {
        self.count += 1;
        if self.lists_more() {
            self.listed.push(Loss { path: path.to_owned(), what: what.into() });
        }
    }

    /// Whether the next one will be listed.
    pub(crate) fn lists_more(&self) -> bool {
        self.listed.len() < Self::MOST
    }

    pub(crate) fn extend(&mut self, other: Self) {
        let listed = other.listed.len() as u64;
        self.count += other.count - listed;
        for loss in other.listed {
            self.add(&loss.path, loss.what);
        }
    }

    /// The error that names them, unless there are none or they are `accepted`.
    pub(crate) fn check(&self, accepted: bool) -> Result<()> {
        if accepted || self.is_empty() {
            return Ok(());
        }
        Err(Error::data(format!("{self}; the conversion stops unless losses are accepted")))
    }
}

impl fmt::Display for Losses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("nothing is lost");
        }
        for (number, loss) in self.listed.iter().take(Self::SHOWN).enumerate() {
            write!(f, "{}{loss}", if number > 0 { "; " } else { "cannot be kept: " })?;
        }
        match self.count.saturating_sub(Self::SHOWN as u64) {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}
