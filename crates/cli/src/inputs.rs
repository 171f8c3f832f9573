//! Several inputs on one command line, and the files in directories.

use std::collections::HashSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use tenarc_convert::torch::distributed_metadata;
use walkdir::{DirEntry, WalkDir};

use crate::failure::{Failure, Kind, Result, Status};
use crate::formats;
use crate::formats::detect::is_marked;
use crate::input::{Input, shown};
use crate::output::{HEADING, Out, say};
use crate::paths::Globs;
use crate::text::escaped;

/// Calls `each` with every input. If one of several inputs fails, its error is printed, and the next input follows.
/// Returns the worst status of all inputs.
///
/// # Errors
/// If the only input fails, or if the output cannot be written.
pub fn each(inputs: &[PathBuf], each: &mut dyn FnMut(&Path) -> Result<()>) -> Result<Status> {
    let mut worst = Status::Good;
    for input in inputs {
        let Err(failure) = each(input) else { continue };
        match failure.of_one_input() {
            Some(status) if inputs.len() > 1 => {
                say(&failure.to_string());
                worst = worst.max(status);
            }
            _ => return Err(failure),
        }
    }
    Ok(worst)
}

/// Calls `each` with every file of a known format in a directory and its subdirectories. The format is known from the
/// name or the first bytes of the file. The directory of a distributed checkpoint of torch is passed to `each` as one
/// input. Links to files are followed. Links to directories are not followed, because they could form a cycle. Files and
/// directories whose names start with a dot are skipped, and so are the shards of a model that is read by its index.
/// Returns the number of files of unknown formats.
///
/// # Errors
/// If `each` fails. If a directory or a file cannot be read, the error is passed to `each`.
pub fn below(
    directory: &Path,
    each: &mut dyn FnMut(&Path, Result<()>) -> Result<()>,
) -> Result<u64> {
    let is_listed = |entry: &DirEntry| {
        // The directory itself was named by the user.
        entry.depth() == 0 || !entry.file_name().as_encoded_bytes().starts_with(b".")
    };
    let walk = WalkDir::new(directory).sort_by_file_name().into_iter();
    let entries: Vec<_> = walk.filter_entry(is_listed).collect();
    let found = entries.iter().flatten();
    let shards: HashSet<_> = found.flat_map(|entry| formats::shards(entry.path())).collect();
    let mut others = 0;
    for entry in entries {
        match entry {
            Ok(entry) if entry.file_type().is_dir() => {
                if distributed_metadata(entry.path()).is_some() {
                    each(entry.path(), Ok(()))?;
                }
            }
            Ok(entry) if !entry.path().is_file() || is_part(entry.path()) => {}
            Ok(entry) if shards.contains(entry.path()) => {}
            Ok(entry) => match is_known(entry.path()) {
                Ok(true) => each(entry.path(), Ok(()))?,
                Ok(false) => others += 1,
                Err(failure) => each(entry.path(), Err(failure))?,
            },
            Err(error) => {
                let path = error.path().unwrap_or(directory).to_path_buf();
                let what = error.io_error().map_or_else(|| error.to_string(), ToString::to_string);
                each(&path, Err(Failure::of_kind(Kind::Io, what).of(&shown(&path))))?;
            }
        }
    }
    Ok(others)
}

/// Returns whether a file is a part of a distributed checkpoint, which is checked as one input.
fn is_part(path: &Path) -> bool {
    // The file of metadata is hidden, so it is not listed.
    path.extension().is_some_and(|extension| extension == "distcp")
        && path.parent().is_some_and(|parent| distributed_metadata(parent).is_some())
}

fn is_known(path: &Path) -> Result<bool> {
    if formats::by_name(path).is_some() {
        return Ok(true);
    }
    is_marked(path, &Input::open(path)?)
}

/// Checks that a pattern has matched something in one of the inputs. If one of several inputs could not be read,
/// nothing is checked, because the match could be in that input.
///
/// # Errors
/// If no pattern has matched.
pub fn check(globs: &Globs, inputs: &[PathBuf], status: Status) -> Result<()> {
    match (globs.check(), inputs) {
        (Err(failure), [input]) => Err(failure.of(&shown(input))),
        (Err(failure), _) if status == Status::Good => Err(failure),
        _ => Ok(()),
    }
}

/// The headings of several files, as `ls` of Unix prints them.
pub struct Headings {
    several: bool,
    begun: bool,
}

impl Headings {
    /// Creates the headings for this number of files.
    pub fn new(files: usize) -> Self {
        Self { several: files > 1, begun: false }
    }

    pub fn several(&self) -> bool {
        self.several
    }

    /// Prints an empty line, except before the first file.
    ///
    /// # Errors
    /// If writing fails.
    pub fn gap(&mut self, out: &mut Out) -> Result<()> {
        if std::mem::replace(&mut self.begun, true) {
            writeln!(out)?;
        }
        Ok(())
    }

    /// Prints the gap and, if there are several files, the name of this file.
    ///
    /// # Errors
    /// If writing fails.
    pub fn print(&mut self, name: &str, out: &mut Out) -> Result<()> {
        self.gap(out)?;
        if self.several {
            writeln!(out, "{}", out.styled(HEADING, &format!("{}:", escaped(name))))?;
        }
        Ok(())
    }
}
