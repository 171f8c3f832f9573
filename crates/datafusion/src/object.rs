//! Objects in stores.

use std::path::{Path, PathBuf};

use tenarc::io::ReadAhead;
use tenarc::{Error, Result};
use tenarc_store::{ObjectFile, Set, Store};
use tokio::runtime::Handle;

/// An object with rows.
#[derive(Clone, Debug)]
pub struct Object {
    shown: PathBuf,
    source: Source,
}

#[derive(Clone, Debug)]
enum Source {
    /// The object of this name.
    Object(Store, String),
    /// The object with the value at this path, and the number of the value in it.
    Value(Set, String, u64),
}

impl Object {
    /// The object of this name.
    pub fn new(store: &Store, name: String) -> Self {
        Self { shown: store.key(&name).into(), source: Source::Object(store.clone(), name) }
    }

    /// The value of a set at this path.
    pub fn of_value(set: &Set, path: &str) -> Result<Self> {
        let (source, segment) = set.value_source(path).map_err(failed)?;
        let shown = format!("{}: {path}", source.get_ref().key()).into();
        Ok(Self { shown, source: Source::Value(set.clone(), path.to_owned(), segment) })
    }

    /// Opens it, on a thread that may wait for the store.
    pub fn open(&self) -> Result<ReadAhead<ObjectFile>> {
        match &self.source {
            Source::Object(store, name) => Ok(store.source(name)),
            Source::Value(set, path, _) => Ok(set.value_source(path).map_err(failed)?.0),
        }
    }

    pub fn shown(&self) -> &Path {
        &self.shown
    }

    /// The number of the value with the rows, if it is not that of all values.
    pub fn segment(&self) -> Option<u64> {
        match self.source {
            Source::Object(..) => None,
            Source::Value(_, _, segment) => Some(segment),
        }
    }
}

/// An error of a store.
pub fn failed(error: tenarc_store::Error) -> Error {
    Error::io(error.into())
}

/// Calls a function for each of these, on a thread of its own in the runtime.
pub fn side_by_side<T: Sync, R: Send>(all: &[&T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let runtime = Handle::current();
    std::thread::scope(|scope| {
        let call = |each| {
            let (runtime, work) = (&runtime, &work);
            scope.spawn(move || {
                let _entered = runtime.enter();
                work(each)
            })
        };
        let threads: Vec<_> = all.iter().copied().map(call).collect();
        let end = |thread: std::thread::ScopedJoinHandle<'_, R>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(end).collect()
    })
}
