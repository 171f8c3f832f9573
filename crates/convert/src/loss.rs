//! What a conversion cannot keep, and what it leaves out by design.

use std::error::Error as _;
use std::fmt;

use tenarc::{Error, Result};

/// One thing that a conversion cannot keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    path: String,
    what: String,
    is_tensor: bool,
}

impl Loss {
    /// Returns the path of the tensor or value that is not kept as it is.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns a description of what is lost.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Returns whether a whole tensor is left out.
    pub fn is_tensor(&self) -> bool {
        self.is_tensor
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            return f.write_str(&self.what);
        }
        // Names come from the input: control characters must not reach a terminal.
        write!(f, "`{}`: {}", self.path.escape_debug(), self.what)
    }
}

/// What a conversion cannot keep, and notes about what it leaves out by design.
///
/// Losses stop a conversion unless they are accepted. Notes never stop it: they name parts of a file that a conversion
/// of tensors does not deal with, such as the graph of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// The losses that are listed: first those of whole tensors, then the others.
    listed: Vec<Loss>,
    listed_tensors: usize,
    tensors: u64,
    count: u64,
    notes: Vec<String>,
}

impl Losses {
    /// The most losses that are listed. Further ones are only counted.
    const MOST: usize = 1000;

    /// The most losses that an error shows.
    const SHOWN: usize = 3;

    /// Returns at most a thousand losses: first the tensors that are left out, then the others.
    pub fn listed(&self) -> &[Loss] {
        &self.listed
    }

    /// Returns the number of losses, including those that are not listed.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns how many of the losses are whole tensors.
    pub fn tensors(&self) -> u64 {
        self.tensors
    }

    /// Returns whether there are no losses. Notes do not count.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the notes about what is left out by design.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    pub(crate) fn add(&mut self, path: &str, what: impl Into<String>) {
        self.count += 1;
        if self.lists_more() {
            self.list(path, what.into(), false);
        }
    }

    /// Adds what has no place in Arrow, or none in an archive.
    #[cfg(any(feature = "arrow", feature = "parquet"))]
    pub(crate) fn add_report(&mut self, report: &tenarc_arrow::Report) {
        report.lost().iter().for_each(|(path, what)| self.add(path, what));
        report.notes().iter().for_each(|note| self.note(note));
    }

    /// Adds what a group of rows loses, unless another one has lost it before.
    #[cfg(any(feature = "arrow", feature = "parquet"))]
    pub(crate) fn add_new(&mut self, report: &tenarc_arrow::Report) {
        for (path, what) in report.lost() {
            if !self.listed.iter().any(|loss| loss.path == *path && loss.what == *what) {
                self.add(path, what);
            }
        }
    }

    /// Adds a tensor that is left out.
    pub(crate) fn add_tensor(&mut self, path: &str, what: impl Into<String>) {
        self.add_tensors(path, 1, what);
    }

    /// Adds `count` tensors that are left out, as a single entry of the list.
    pub(crate) fn add_tensors(&mut self, path: &str, count: u64, what: impl Into<String>) {
        if count > 0 {
            self.count = self.count.saturating_add(count);
            self.tensors = self.tensors.saturating_add(count);
            self.list(path, what.into(), true);
        }
    }

    fn list(&mut self, path: &str, what: String, is_tensor: bool) {
        if self.listed_tensors == Self::MOST {
            return;
        }
        self.listed.truncate(Self::MOST - 1);
        let at = if is_tensor { self.listed_tensors } else { self.listed.len() };
        self.listed.insert(at, Loss { path: path.to_owned(), what, is_tensor });
        self.listed_tensors += usize::from(is_tensor);
    }

    /// Adds a note about something that is left out by design, unless the same note was added before.
    pub(crate) fn note(&mut self, what: impl Into<String>) {
        let what = what.into();
        if self.notes.len() < Self::MOST && !self.notes.contains(&what) {
            self.notes.push(what);
        }
    }

    /// Returns whether the next loss that is not a tensor will be listed.
    pub(crate) fn lists_more(&self) -> bool {
        self.listed.len() < Self::MOST
    }

    /// Adds the losses and the notes of another value.
    pub fn extend(&mut self, other: Self) {
        let count = self.count.saturating_add(other.count);
        let tensors = self.tensors.saturating_add(other.tensors);
        for Loss { path, what, is_tensor } in other.listed {
            if is_tensor || self.lists_more() {
                self.list(&path, what, is_tensor);
            }
        }
        (self.count, self.tensors) = (count, tensors);
        other.notes.into_iter().for_each(|note| self.note(note));
    }

    /// The listed losses at a path and below it, whose steps are joined by dots. Those in files that join steps by slashes count,
    /// too. There are no notes.
    #[must_use]
    pub fn below(&self, path: &str) -> Self {
        let mut below = Self::default();
        for Loss { path: of, what, is_tensor } in &self.listed {
            let steps = of.replace('/', ".");
            match steps.strip_prefix(path) {
                Some(rest) if path.is_empty() || rest.is_empty() || rest.starts_with('.') => {}
                _ => continue,
            }
            if *is_tensor { below.add_tensor(of, &**what) } else { below.add(of, &**what) }
        }
        below
    }

    /// Checks whether a conversion that keeps `kept` tensors may go on.
    ///
    /// # Errors
    /// If there are losses and they are not `accepted`. Also if tensors are lost and none is kept: an empty file would
    /// look like success.
    pub fn check(&self, accepted: bool, kept: usize) -> Result<()> {
        if self.tensors > 0 && kept == 0 {
            let what = format!("{self}; no tensor is left, so nothing is written");
            return Err(Error::data(what));
        }
        if accepted || self.is_empty() {
            return Ok(());
        }
        let what = format!("{self}; the conversion stops unless losses are accepted");
        Err(Error::data(what).with_source(NotAccepted(self.clone())))
    }

    /// Returns the losses that made a conversion stop with this error, because they were not accepted. `None` for any
    /// other error.
    pub fn of(error: &Error) -> Option<&Self> {
        let NotAccepted(losses) = error.source()?.downcast_ref()?;
        Some(losses)
    }
}

/// The source of the error of a conversion that stopped because of losses.
#[derive(Debug)]
struct NotAccepted(Losses);

impl fmt::Display for NotAccepted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("losses are not accepted")
    }
}

impl std::error::Error for NotAccepted {}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_stand_first_even_if_they_come_late() {
        let mut losses = Losses::default();
        (0..Losses::MOST).for_each(|_| losses.add("text", "a text"));
        losses.add_tensor("a", "no dtype");
        losses.add_tensor("b", "no dtype");
        let paths: Vec<_> = losses.listed().iter().take(3).map(Loss::path).collect();
        assert_eq!(paths, ["a", "b", "text"]);
        assert_eq!((losses.listed().len(), losses.count(), losses.tensors()), (1000, 1002, 2));
        let mut other = Losses::default();
        other.add("text", "a text");
        other.extend(losses);
        assert_eq!((other.listed()[0].path(), other.count()), ("a", 1003));
    }

    #[test]
    fn no_tensor_left_is_an_error_even_if_losses_are_accepted() {
        let mut losses = Losses::default();
        losses.note("the graph");
        assert!(losses.is_empty() && losses.check(false, 0).is_ok());
        losses.add("text", "a text");
        let error = losses.check(false, 1).unwrap_err().in_file("a".as_ref()).in_field("b");
        assert_eq!(Losses::of(&error), Some(&losses));
        assert!(Losses::of(&Error::data(error.to_string())).is_none());
        assert!(losses.check(true, 0).is_ok());
        losses.add_tensor("a", "no dtype");
        assert!(losses.check(true, 1).is_ok() && losses.check(true, 0).is_err());
    }
}
