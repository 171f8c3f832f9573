//! Finds files, and reads what their metadata say.

use std::collections::HashSet;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
#[cfg(feature = "store")]
use std::sync::Arc;

use tenarc::archive::Segment;
use tenarc::io::{ReadAt, open_file};
use tenarc::{Archive, Error, Result};
use tenarc_arrow::ArrowTable;

#[cfg(feature = "store")]
use crate::object::Object;

/// The extension of the files of a directory that are read.
const EXTENSION: &str = "tenarc";

/// A path with one of these is a pattern.
pub const WILDCARDS: [char; 3] = ['*', '?', '['];

/// The files that a path stands for: a file, the files `*.tenarc` in a directory, or those that match a pattern, in the
/// order of their names.
pub fn find(path: &Path) -> Result<Vec<PathBuf>> {
    let failed = |error: io::Error, path: &Path| Error::io_at(error, "cannot read", path);
    if path.is_dir() {
        let mut files = Vec::new();
        for entry in path.read_dir().map_err(|error| failed(error, path))? {
            let file = entry.map_err(|error| failed(error, path))?.path();
            if file.extension().is_some_and(|extension| extension == EXTENSION) && file.is_file() {
                files.push(file);
            }
        }
        files.sort_unstable();
        return some(files, path, "there are no files `*.tenarc` in the directory");
    }
    // A name can have brackets.
    let is_pattern = path.to_str().is_some_and(|path| path.contains(WILDCARDS));
    if !is_pattern || path.exists() {
        return Ok(vec![path.to_owned()]);
    }
    let pattern = glob::glob(path.to_str().unwrap_or_default());
    let matching = pattern.map_err(|error| Error::data(error.to_string()).in_file(path))?;
    let mut files = Vec::new();
    for file in matching {
        let file = file.map_err(|error| {
            let path = error.path().to_owned();
            failed(error.into(), &path)
        })?;
        if file.is_file() {
            files.push(file);
        }
    }
    some(files, path, "no file matches the pattern")
}

fn some(files: Vec<PathBuf>, path: &Path, why: &str) -> Result<Vec<PathBuf>> {
    if files.is_empty() { Err(Error::not_found(why).in_file(path)) } else { Ok(files) }
}

/// Where rows of a table are.
#[derive(Clone, Debug)]
pub enum Place {
    /// The values of a file.
    File(PathBuf),
    /// An object in a store.
    #[cfg(feature = "store")]
    Object(Arc<Object>),
}

impl Place {
    /// Opens the archive. `watch` is called with the number of bytes after each read. If it says no, reading fails.
    pub fn open<F: Fn(usize) -> bool + Sync>(&self, watch: F) -> Result<Archive<Watched<F>>> {
        let open = || {
            let source: Box<dyn ReadAt + Send> = match self {
                Self::File(path) => Box::new(open_file(path)?.0),
                #[cfg(feature = "store")]
                Self::Object(object) => Box::new(object.open()?),
            };
            Archive::new(Watched { source, watch })
        };
        open().map_err(|error| error.in_file(self.shown()))
    }

    /// The path or the key, for people.
    pub fn shown(&self) -> &Path {
        match self {
            Self::File(path) => path,
            #[cfg(feature = "store")]
            Self::Object(object) => object.shown(),
        }
    }

    /// Whether each read takes a request.
    pub fn is_remote(&self) -> bool {
        !matches!(self, Self::File(_))
    }

    /// The table of this name. Without a name, it is that of all values, which must have one name, or none.
    #[cfg_attr(not(feature = "store"), expect(clippy::unused_self, reason = "for objects"))]
    pub fn table<'a, S: ReadAt>(
        &self,
        archive: &'a Archive<S>,
        name: &Name,
    ) -> Result<ArrowTable<'a, S>> {
        #[cfg(feature = "store")]
        if let Self::Object(object) = self
            && let Some(segment) = object.segment()
        {
            return ArrowTable::of_segments(vec![archive.segment(segment)?]);
        }
        match name {
            Name::Any => ArrowTable::of_segments(archive.segments().collect::<Result<_>>()?),
            Name::Is(Some(name)) => ArrowTable::open(archive, name),
            Name::Is(None) => {
                let is_unnamed = |segment: &Result<Segment<'a, S>>| {
                    segment.as_ref().map_or(true, |segment| segment.name().is_none())
                };
                let segments = archive.segments().filter(is_unnamed);
                ArrowTable::of_segments(segments.collect::<Result<_>>()?)
            }
        }
    }
}

/// Opens some archives, a few at a time, so that not all are open at once.
pub fn open_all<'p>(
    places: impl IntoIterator<Item = &'p Place>,
    name: &Name,
) -> impl Iterator<Item = Result<Archive<Unwatched>>> {
    let mut places = places.into_iter();
    let window = move || {
        let window: Vec<_> = places.by_ref().take(TOGETHER).collect();
        (!window.is_empty()).then(|| open_window(&window, name))
    };
    std::iter::from_fn(window).flatten()
}

fn open_window(places: &[&Place], name: &Name) -> Vec<Result<Archive<Unwatched>>> {
    let open = |place: &Place| {
        let archive = place.open(ALL)?;
        if place.is_remote() {
            // What was read stays in the archive. If it cannot be read, whoever needs it is told.
            let _ = place.table(&archive, name);
        }
        Ok(archive)
    };
    #[cfg(feature = "store")]
    if places.iter().any(|place| place.is_remote()) {
        return crate::object::side_by_side(places, open);
    }
    places.iter().map(|place| open(place)).collect()
}

/// How many archives are opened at the same time.
const TOGETHER: usize = 16;

/// Reads everything.
const ALL: fn(usize) -> bool = |_| true;

/// An archive that is read as a whole.
pub type Unwatched = Watched<fn(usize) -> bool>;

/// A source whose reads can be watched, and stopped.
pub struct Watched<F> {
    source: Box<dyn ReadAt + Send>,
    watch: F,
}

impl<F: Fn(usize) -> bool + Sync> ReadAt for Watched<F> {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        let read = self.source.read_at(out, offset)?;
        if (self.watch)(read) { Ok(read) } else { Err(io::Error::other("nobody wants the rows")) }
    }

    fn size(&self) -> io::Result<u64> {
        self.source.size()
    }

    fn read_last(&self, out: &mut Vec<u8>) -> io::Result<u64> {
        self.source.read_last(out)
    }

    fn will_read(&self, ranges: &mut dyn Iterator<Item = Range<u64>>) {
        self.source.will_read(ranges);
    }

    fn will_read_most(&self, range: Range<u64>) {
        self.source.will_read_most(range);
    }
}

/// The names of the values in an archive, each once, in their order.
pub fn names(place: &Place) -> Result<Vec<Option<String>>> {
    let archive = place.open(ALL)?;
    let (mut names, mut known) = (Vec::new(), HashSet::new());
    for segment in archive.segments() {
        let name = segment.map_err(|error| error.in_file(place.shown()))?.name().map(str::to_owned);
        if known.insert(name.clone()) {
            names.push(name);
        }
    }
    Ok(names)
}

/// Which values of a file are the table.
#[derive(Clone, Debug, PartialEq)]
pub enum Name {
    /// All of them.
    Any,
    /// Those with this name, or those without one.
    Is(Option<String>),
}

impl Name {
    pub fn of(name: Option<&str>) -> Self {
        name.map_or(Self::Any, |name| Self::Is(Some(name.to_owned())))
    }
}
