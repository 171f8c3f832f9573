//! The same without async.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tenarc::io::ReadAhead;
use tokio::runtime::{Builder, Handle, Runtime};

use crate::archive::{ObjectArchive, RemoteArchive};
use crate::error::{Error, Kind, Result};
use crate::file::ObjectFile;
use crate::objects::Put;
use crate::upload::ObjectWriter;
use crate::{Store, encode};

/// A [`Store`] for programs without async. It has a runtime of its own, with one thread.
///
/// ```
/// use tenarc::Tensor;
/// use tenarc_store::Store;
///
/// let store = Store::in_memory().blocking()?;
/// store.save("weights.tenarc", &Tensor(vec![0.5f32; 1000]))?;
/// let weights: Tensor<Vec<f32>> = store.load("weights.tenarc")?;
/// assert_eq!(weights.len(), 1000);
/// # Ok::<(), tenarc_store::Error>(())
/// ```
///
/// Its methods must not be called by a task of a runtime, which they would block: they refuse to.
#[derive(Clone)]
pub struct BlockingStore {
    store: Store,
    runtime: Arc<Runtime>,
}

impl fmt::Debug for BlockingStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BlockingStore").field(&self.store).finish()
    }
}

/// An archive in a [`BlockingStore`]. All methods of [`Archive`](tenarc::Archive) wait for the store.
#[derive(Clone, Debug)]
pub struct BlockingArchive {
    archive: RemoteArchive,
    /// Reads need it.
    _runtime: Arc<Runtime>,
}

impl BlockingArchive {
    /// The archive.
    ///
    /// # Errors
    /// If it is called by a task of a runtime.
    pub fn get(&self) -> Result<&ObjectArchive> {
        check_may_wait()?;
        self.archive.get().map(|archive| &**archive)
    }
}

/// # Errors
/// If this is a thread of a runtime, which must not wait.
fn check_may_wait() -> Result<()> {
    if Handle::try_current().is_ok() {
        let what = "a blocking call in a runtime of tokio would block its tasks: use the async one, or a thread that may wait";
        return Err(Error::new(Kind::Unsupported, what));
    }
    Ok(())
}

impl Store {
    /// The same store for programs without async.
    ///
    /// # Errors
    /// If it is called by a task of a runtime, or no thread can be started.
    pub fn blocking(self) -> Result<BlockingStore> {
        check_may_wait()?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .thread_name("tenarc-store")
            .build();
        let runtime = runtime.map_err(|error| {
            Error::new(Kind::Store, format!("cannot start a runtime: {error}")).with_source(error)
        })?;
        Ok(BlockingStore { store: self, runtime: Arc::new(runtime) })
    }
}

impl BlockingStore {
    /// See [`Store::archive`].
    ///
    /// # Errors
    /// Those of [`Store::archive`], or if it is called by a task of a runtime.
    pub fn archive(&self, name: &str) -> Result<BlockingArchive> {
        check_may_wait()?;
        let archive = self.runtime.block_on(self.store.archive(name))?;
        Ok(BlockingArchive { archive, _runtime: self.runtime.clone() })
    }

    /// See [`Store::load`].
    ///
    /// # Errors
    /// Those of [`Store::load`], or if it is called by a task of a runtime.
    pub fn load<T: DeserializeOwned>(&self, name: &str) -> Result<T> {
        Ok(self.archive(name)?.get()?.load()?)
    }

    /// See [`Store::save`].
    ///
    /// # Errors
    /// Those of [`Store::save`], or if it is called by a task of a runtime.
    pub fn save<T: Serialize + ?Sized>(&self, name: &str, value: &T) -> Result<()> {
        encode(self.writer(name)?, value, &self.store.options)?.finish()?;
        Ok(())
    }

    /// See [`Store::writer`].
    ///
    /// # Errors
    /// If it is called by a task of a runtime.
    pub fn writer(&self, name: &str) -> Result<ObjectWriter> {
        self.writer_with(name, Put::Replace)
    }

    /// Like [`writer`](Self::writer). `put` says whether an object with this name is replaced.
    ///
    /// # Errors
    /// If it is called by a task of a runtime.
    pub fn writer_with(&self, name: &str, put: Put) -> Result<ObjectWriter> {
        check_may_wait()?;
        Ok(self.store.object_writer(name, put, self.runtime.handle()))
    }

    /// An object that is read by ranges, whatever is in it. No request is made. It can be read as long as a clone of this store is
    /// there.
    ///
    /// # Errors
    /// If it is called by a task of a runtime.
    pub fn source(&self, name: &str) -> Result<ReadAhead<ObjectFile>> {
        check_may_wait()?;
        let _entered = self.runtime.enter();
        Ok(self.store.source(name))
    }

    /// See [`Store::delete`].
    ///
    /// # Errors
    /// Those of [`Store::delete`], or if it is called by a task of a runtime.
    pub fn delete(&self, name: &str) -> Result<()> {
        check_may_wait()?;
        self.runtime.block_on(self.store.delete(name))
    }

    /// The store with async methods.
    pub fn get_ref(&self) -> &Store {
        &self.store
    }
}
