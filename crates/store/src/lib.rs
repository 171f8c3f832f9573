#![doc = include_str!("../README.md")]

mod archive;
mod blocking;
mod error;
mod file;
mod objects;
mod open;
mod set;
mod stored;
mod upload;

use std::fmt;
use std::sync::{Arc, OnceLock};

use futures_util::TryStreamExt as _;
use object_store::ObjectStore;
use object_store::memory::InMemory;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tenarc::OArchive;
use tenarc::archive::SaveOptions;
use tenarc::io::{ReadAhead, Requests};
use tokio::runtime::{Handle, RuntimeFlavor};

pub use self::archive::{ObjectArchive, RemoteArchive};
pub use self::blocking::{BlockingArchive, BlockingStore};
pub use self::error::{Error, Kind, Result};
pub use self::file::ObjectFile;
pub use self::objects::{
    Later, Listed, Object, ObjectStoreObjects, Objects, Part, Put, Stat, Upload,
};
pub use self::set::{Collected, Receipt, Set, SetTensor, Shard, Step};
use self::stored::StoredObject;
pub use self::upload::ObjectWriter;
use self::upload::PartLen;

/// How many of the last bytes of an archive are read when it is opened.
const SUFFIX: u64 = 64 << 10;

/// Archives under a prefix in a store of objects.
///
/// Clones share the connections.
#[derive(Clone)]
pub struct Store {
    objects: Arc<dyn Objects>,
    /// Ends with a slash, unless it is empty.
    prefix: String,
    requests: Requests,
    suffix: u64,
    parts: PartLen,
    options: SaveOptions,
    single_writer: bool,
    /// Set when it was found out that the store creates objects only once.
    creates_once: Arc<OnceLock<()>>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("objects", &self.objects)
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

impl Store {
    /// Opens the store at a URL: `s3://bucket/prefix`, `gs://bucket/prefix`, `az://container/prefix`, `https://host/prefix`,
    /// `file:///folder`. The first four need the features `aws`, `gcp`, `azure` and `http`. Keys, regions and endpoints come from
    /// the environment, such as `AWS_ACCESS_KEY_ID` and `AWS_ENDPOINT`: see the builders of the crate `object_store`.
    ///
    /// No request is made.
    ///
    /// # Errors
    /// If the URL or the environment is not valid, or this build lacks a feature.
    pub fn open(url: &str) -> Result<Self> {
        let (objects, prefix) = open::at(url)?;
        Ok(Self::of_objects(Arc::new(objects), &prefix))
    }

    /// The objects of a store whose keys start with this prefix and a slash. The empty prefix means all of them.
    pub fn new(store: Arc<dyn ObjectStore>, prefix: &str) -> Self {
        Self::of_objects(Arc::new(ObjectStoreObjects::new(store)), prefix)
    }

    /// Like [`new`](Self::new), for a store that implements [`Objects`].
    pub fn of_objects(objects: Arc<dyn Objects>, prefix: &str) -> Self {
        let mut prefix = prefix.trim_matches('/').to_owned();
        if !prefix.is_empty() {
            prefix.push('/');
        }
        Self {
            objects,
            prefix,
            requests: Requests::server(),
            suffix: SUFFIX,
            parts: PartLen::default(),
            options: SaveOptions::default(),
            single_writer: false,
            creates_once: Arc::default(),
        }
    }

    /// A store in memory, for tests and examples.
    pub fn in_memory() -> Self {
        Self::new(Arc::new(InMemory::new()), "")
    }

    /// Sets how what is read of archives is divided into requests. [Sets](Self::step) are always read by shorter ones.
    #[must_use]
    pub fn with_requests(self, requests: Requests) -> Self {
        Self { requests, ..self }
    }

    /// Sets how many of the last bytes of an archive are read when it is opened. The default is 64 KiB, which is enough for the
    /// directory of most archives and the checksums of the last value.
    #[must_use]
    pub fn with_suffix(self, bytes: u64) -> Self {
        Self { suffix: bytes, ..self }
    }

    /// Sets the length of all parts in which long objects are written, but for the last one. Some stores, such as Cloudflare's R2,
    /// want parts of one length. Most want at least 5 MiB, and take 10,000 parts.
    ///
    /// # Panics
    /// If it is 0.
    #[must_use]
    pub fn with_part_len(self, bytes: usize) -> Self {
        assert!(bytes > 0, "expected parts of at least one byte, found 0");
        Self { parts: PartLen::Fixed(bytes), ..self }
    }

    /// Sets the options of values that are saved.
    #[must_use]
    pub fn with_save_options(self, options: SaveOptions) -> Self {
        Self { options, ..self }
    }

    /// The store itself.
    pub fn objects(&self) -> &Arc<dyn Objects> {
        &self.objects
    }

    /// The key of the object with this name.
    pub fn key(&self, name: &str) -> String {
        format!("{}{}", self.prefix, name.trim_start_matches('/'))
    }

    /// The name of the object with this key.
    fn name<'a>(&self, key: &'a str) -> &'a str {
        key.strip_prefix(&self.prefix).unwrap_or(key)
    }

    /// Opens an archive, by one request. Stores that give no suffixes of objects, such as Azure's, take two.
    ///
    /// # Errors
    /// - There is no such object ([`Kind::NotFound`]), or the store fails.
    /// - It is no archive, or is damaged ([`Kind::Archive`]).
    ///
    /// # Panics
    /// If it is not called in a runtime of tokio.
    pub async fn archive(&self, name: &str) -> Result<RemoteArchive> {
        let runtime = Handle::current();
        RemoteArchive::open(self.file(name, &runtime, None), self.requests, runtime).await
    }

    /// An object that is read by ranges, whatever is in it. No request is made. Use it on a thread that may wait.
    ///
    /// # Panics
    /// If it is not called in a runtime of tokio.
    pub fn source(&self, name: &str) -> ReadAhead<ObjectFile> {
        ReadAhead::with(self.file(name, &Handle::current(), None), self.requests)
    }

    /// The names of all objects in a folder, and in the folders in it, in ascending order. `""` is the whole store.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> tenarc_store::Result<()> {
    /// let store = tenarc_store::Store::in_memory();
    /// for name in ["log/2.tenarc", "log/1.tenarc", "model.tenarc"] {
    ///     store.save(name, &0).await?;
    /// }
    /// assert_eq!(store.list("log").await?, ["log/1.tenarc", "log/2.tenarc"]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the store fails, or cannot list objects, as most web servers.
    pub async fn list(&self, folder: &str) -> Result<Vec<String>> {
        let folder = self.key(folder);
        let listed = self.objects.list(folder.trim_end_matches('/'));
        let mut names: Vec<_> =
            listed.map_ok(|listed| self.name(&listed.key).to_owned()).try_collect().await?;
        // Not all stores list in order.
        names.sort_unstable();
        Ok(names)
    }

    /// `written` is what a manifest says about the object.
    fn file(&self, name: &str, runtime: &Handle, written: Option<StoredObject>) -> ObjectFile {
        let (objects, runtime) = (self.objects.clone(), runtime.clone());
        ObjectFile::new(objects, self.key(name), runtime, self.suffix, written)
    }

    /// Loads the only value of an archive. All of it is asked for when its end is there, before its header is decoded. So a load
    /// takes two rounds of requests, or one if all of the archive comes with its end.
    ///
    /// # Errors
    /// Those of [`archive`](Self::archive) and of [`Archive::load`](tenarc::Archive::load).
    ///
    /// # Panics
    /// If it is not called in a runtime of tokio.
    pub async fn load<T: DeserializeOwned + Send + 'static>(&self, name: &str) -> Result<T> {
        self.archive(name).await?.load().await
    }

    /// Saves a value as an archive, in parts and without seeking. An object with this name is replaced when all is written, and
    /// stays as it is if something fails.
    ///
    /// In a runtime with several threads, this takes at most 128 MiB beside the value
    /// ([`ObjectWriter`]). In a runtime with one thread, which nothing may block, the whole archive is made in memory first:
    /// there, use [`writer`](Self::writer) on a thread of your own for large values.
    ///
    /// # Errors
    /// If the value cannot be written, or the store fails.
    ///
    /// # Panics
    /// If it is not called in a runtime of tokio.
    pub async fn save<T: Serialize + ?Sized>(&self, name: &str, value: &T) -> Result<()> {
        self.put(name, value, Put::Replace).await
    }

    /// Like [`save`](Self::save), but an object with this name is an error and is not replaced. If two programs do this at the same
    /// time, one of them fails, unless the value takes more than 16 MiB: then the object of one of them stays.
    ///
    /// # Errors
    /// [`Kind::Exists`] if there is such an object, and those of [`save`](Self::save).
    ///
    /// # Panics
    /// If it is not called in a runtime of tokio.
    pub async fn create<T: Serialize + ?Sized>(&self, name: &str, value: &T) -> Result<()> {
        self.put(name, value, Put::Create).await
    }

    async fn put<T: Serialize + ?Sized>(&self, name: &str, value: &T, put: Put) -> Result<()> {
        let runtime = Handle::current();
        let mut writer = self.object_writer(name, put, &runtime);
        if runtime.runtime_flavor() == RuntimeFlavor::CurrentThread {
            let bytes = encode(Vec::new(), value, &self.options)?;
            let write = move || {
                std::io::Write::write_all(&mut writer, &bytes).map_err(tenarc::Error::io)?;
                writer.finish()
            };
            archive::on_thread(&runtime, write).await?;
        } else {
            tokio::task::block_in_place(|| encode(writer, value, &self.options)?.finish())?;
        }
        Ok(())
    }

    /// Writes an object from front to end, such as an archive of many values. An object with this name is replaced at the end.
    /// Use it on a thread that may wait: [`tokio::task::spawn_blocking`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> tenarc_store::Result<()> {
    /// # let store = tenarc_store::Store::in_memory();
    /// let writer = store.writer("steps.tenarc");
    /// let written = tokio::task::spawn_blocking(move || -> tenarc_store::Result<()> {
    ///     let mut out = tenarc::OArchive::new(writer)?;
    ///     for step in 0..10 {
    ///         out.save_as("step", &vec![step; 1000])?;
    ///     }
    ///     out.finish()?.finish()?;
    ///     Ok(())
    /// });
    /// written.await.unwrap()?;
    /// assert_eq!(store.archive("steps.tenarc").await?.with(|archive| Ok(archive.len())).await?, 10);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// If it is not called in a runtime of tokio.
    pub fn writer(&self, name: &str) -> ObjectWriter {
        self.object_writer(name, Put::Replace, &Handle::current())
    }

    fn object_writer(&self, name: &str, put: Put, runtime: &Handle) -> ObjectWriter {
        ObjectWriter::new(self.objects.clone(), self.key(name), put, self.parts, runtime.clone())
    }

    /// Deletes an object. It is no error if there is none.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn delete(&self, name: &str) -> Result<()> {
        self.objects.delete(&self.key(name)).await
    }
}

/// Writes an archive of one value.
fn encode<W: std::io::Write, T: Serialize + ?Sized>(
    out: W,
    value: &T,
    options: &SaveOptions,
) -> tenarc::Result<W> {
    let mut out = OArchive::with_options(out, options.clone())?;
    out.save(value)?;
    out.finish()
}
