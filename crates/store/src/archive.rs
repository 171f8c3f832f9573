//! Archives in a store.

use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use tenarc::Archive;
use tenarc::io::{ReadAhead, Requests};
use tenarc::tensor::{FromTensor, Slices, TensorInfo};
use tokio::runtime::Handle;

use crate::error::{Error, Kind, Result};
use crate::file::ObjectFile;

/// An archive in a store, as the crate `tenarc` sees it.
pub type ObjectArchive = Archive<ReadAhead<ObjectFile>>;

/// An archive in a store: [`Store::archive`](crate::Store::archive) opens it.
///
/// Its methods are those of [`Archive`] that are used most. [`with`](Self::with) gives all others. Clones share what was read
/// of the directory and the header.
#[derive(Clone)]
pub struct RemoteArchive {
    /// `None` only while it is dropped.
    archive: Option<Arc<ObjectArchive>>,
    runtime: Handle,
}

impl fmt::Debug for RemoteArchive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RemoteArchive").field(&self.archive).finish()
    }
}

impl RemoteArchive {
    pub(crate) async fn open(
        file: ObjectFile,
        requests: Requests,
        runtime: Handle,
    ) -> Result<Self> {
        let key = file.key().to_owned();
        let open = move || Archive::new(ReadAhead::with(file, requests));
        let opened = on_thread(&runtime, move || Ok(open()?))
            .await
            .map_err(|error| error.of_object(&key))?;
        Ok(Self { archive: Some(Arc::new(opened)), runtime })
    }

    /// Calls a closure with the archive, on a thread that may wait for the store, and returns what it returns.
    ///
    /// ```
    /// # #[derive(serde::Serialize)] struct Event { id: u32, score: f32 }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> tenarc_store::Result<()> {
    /// # let store = tenarc_store::Store::in_memory();
    /// # let events: Vec<_> = (0..100).map(|id| Event { id, score: 0.5 }).collect();
    /// # store.save("events.tenarc", &events).await?;
    /// let archive = store.archive("events.tenarc").await?;
    /// let scores = archive.with(|archive| archive.only()?.table("")?.column::<Vec<f32>>("score")).await?;
    /// assert_eq!(scores.len(), 100);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of the closure. If the object was replaced, their kind is [`Kind::Changed`].
    pub async fn with<R: Send + 'static>(
        &self,
        read: impl FnOnce(&ObjectArchive) -> tenarc::Result<R> + Send + 'static,
    ) -> Result<R> {
        let archive =
            self.archive.clone().ok_or_else(|| Error::new(Kind::Store, "the archive is closed"))?;
        on_thread(&self.runtime, move || {
            let result = read(&archive);
            result.map_err(|error| Error::from(error).of_object(archive.source().get_ref().key()))
        })
        .await
    }

    /// The archive, for a program that waits itself.
    pub(crate) fn get(&self) -> Result<&Arc<ObjectArchive>> {
        self.archive.as_ref().ok_or_else(|| Error::new(Kind::Store, "the archive is closed"))
    }

    /// Loads the only value: [`Archive::load`].
    ///
    /// # Errors
    /// Those of [`Archive::load`], and those of the store.
    pub async fn load<T: DeserializeOwned + Send + 'static>(&self) -> Result<T> {
        self.with(Archive::load).await
    }

    /// The value at a path: [`Archive::get`].
    ///
    /// # Errors
    /// Those of [`Archive::get`], and those of the store.
    pub async fn get_at<T: DeserializeOwned + Send + 'static>(&self, path: &str) -> Result<T> {
        let path = path.to_owned();
        self.with(move |archive| archive.get(&path)).await
    }

    /// The tensor at a path: [`Archive::tensor`].
    ///
    /// # Errors
    /// Those of [`Archive::tensor`], and those of the store.
    pub async fn tensor<T: for<'de> FromTensor<'de> + Send + 'static>(
        &self,
        path: &str,
    ) -> Result<T> {
        let path = path.to_owned();
        self.with(move |archive| archive.tensor(&path)).await
    }

    /// Part of the tensor at a path: [`Archive::slice`].
    ///
    /// # Errors
    /// Those of [`Archive::slice`], and those of the store.
    pub async fn slice<T: for<'de> FromTensor<'de> + Send + 'static>(
        &self,
        path: &str,
        slices: impl Into<Slices>,
    ) -> Result<T> {
        let (path, slices) = (path.to_owned(), slices.into());
        self.with(move |archive| archive.slice(&path, slices)).await
    }

    /// All tensors: [`Archive::tensors`].
    ///
    /// # Errors
    /// Those of [`Archive::tensors`], and those of the store.
    pub async fn tensors(&self) -> Result<Vec<TensorInfo>> {
        self.with(Archive::tensors).await
    }
}

/// Dropping the archive waits for requests that are in progress, which no task may do.
impl Drop for RemoteArchive {
    fn drop(&mut self) {
        if let Some(last) = self.archive.take().and_then(Arc::into_inner) {
            self.runtime.spawn_blocking(move || drop(last));
        }
    }
}

/// Calls a function on a thread that may wait.
pub async fn on_thread<R: Send + 'static>(
    runtime: &Handle,
    work: impl FnOnce() -> Result<R> + Send + 'static,
) -> Result<R> {
    match runtime.spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(error) => Err(Error::new(Kind::Store, "the runtime ends").with_source(error)),
        },
    }
}
