//! What this crate needs of a store: the trait [`Objects`], and its implementation for the stores of the crate `object_store`.

use std::fmt;
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use futures_util::stream::{BoxStream, StreamExt as _, TryStreamExt as _};
use object_store::path::Path;
use object_store::{
    GetOptions, GetRange, MultipartUpload, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions,
    PutPayload,
};

use crate::error::{Error, Kind, Result};

/// What comes later.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// A store of objects: bytes under keys, which are paths with slashes.
///
/// [`Store`](crate::Store) needs nothing else. [`ObjectStoreObjects`] implements it for the stores of the crate
/// `object_store` 0.14. Implement it for the clients of other crates.
///
/// Errors have the [kind](Error::kind) that the methods name, so that callers can tell them apart.
pub trait Objects: fmt::Debug + Send + Sync {
    /// Reads part of an object. If `version` is given, the object must still have it: otherwise, the error is
    /// [`Kind::Changed`]. If there is no such object, it is [`Kind::NotFound`].
    fn get<'a>(&'a self, key: &'a str, part: Part, version: Option<&'a str>) -> Later<'a, Object>;

    /// Size and version of an object. If there is none, the error is [`Kind::NotFound`].
    fn stat<'a>(&'a self, key: &'a str) -> Later<'a, Stat>;

    /// Writes a whole object. It appears at once, or not at all. With [`Put::Create`], an object that exists is an error of
    /// [`Kind::Exists`].
    fn put<'a>(&'a self, key: &'a str, content: Bytes, put: Put) -> Later<'a, Option<String>>;

    /// Starts to write an object in parts. It appears when the upload is finished.
    fn upload<'a>(&'a self, key: &'a str) -> Later<'a, Box<dyn Upload>>;

    /// The objects whose keys start with these directories. Pages are requested when they are needed.
    fn list(&self, directory: &str) -> BoxStream<'static, Result<Listed>>;

    /// Whether [`list`](Self::list) gives objects in ascending order of their keys. Then the newest state of a set is found by the
    /// first page of its list.
    fn lists_in_order(&self) -> bool {
        false
    }

    /// Deletes an object. It is no error if there is none.
    fn delete<'a>(&'a self, key: &'a str) -> Later<'a, ()>;
}

/// Part of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// These bytes, as far as there are any.
    Range(Range<u64>),
    /// So many of the last bytes, or all if there are fewer.
    Last(u64),
}

/// Part of an object, as it is read.
pub struct Object {
    /// The bytes, in pieces as they come.
    pub pieces: BoxStream<'static, Result<Bytes>>,
    /// The size and the version of the whole object.
    pub stat: Stat,
}

impl Object {
    /// All bytes of the part.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn bytes(mut self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        while let Some(piece) = self.pieces.try_next().await? {
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes)
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Object").field("stat", &self.stat).finish_non_exhaustive()
    }
}

/// Size and version of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// The number of bytes.
    pub size: u64,
    /// What differs if the object is replaced: its entity tag (RFC 9110, section 8.8.3). `None` if the store has none.
    pub version: Option<String>,
}

/// An object of a list.
#[derive(Clone, Debug)]
pub struct Listed {
    /// The key.
    pub key: String,
    /// Size and version.
    pub stat: Stat,
    /// When it was written.
    pub modified: SystemTime,
}

/// Whether an object may be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// It is replaced.
    Replace,
    /// It is an error if it exists.
    Create,
}

/// An object that is written in parts.
pub trait Upload: fmt::Debug + Send {
    /// Writes the next part. Several may be written at the same time.
    fn part(&mut self, content: Bytes) -> Later<'static, ()>;

    /// Makes the object of all parts, and returns its version.
    fn finish(&mut self) -> Later<'_, Option<String>>;

    /// Drops all parts.
    fn abort(&mut self) -> Later<'_, ()>;
}

/// A store of the crate `object_store` 0.14.
#[derive(Clone, Debug)]
pub struct ObjectStoreObjects {
    store: Arc<dyn ObjectStore>,
    in_order: bool,
}

impl ObjectStoreObjects {
    /// The objects of a store.
    pub fn new(store: Arc<dyn ObjectStore>) -> Self {
        Self { store, in_order: false }
    }

    /// Says that the store lists objects in ascending order of their keys, as most do; directories, and the directory buckets of
    /// S3, do not.
    #[must_use]
    pub fn with_lists_in_order(self, in_order: bool) -> Self {
        Self { in_order, ..self }
    }
}

fn path(key: &str) -> Result<Path> {
    Path::parse(key).map_err(|error| {
        Error::new(Kind::Store, format!("`{}` is no key: {error}", key.escape_debug()))
    })
}

fn failed(key: &str, error: object_store::Error) -> Error {
    use object_store::Error as E;
    let (kind, what) = match &error {
        E::NotFound { .. } => (Kind::NotFound, "there is no such object".to_owned()),
        E::AlreadyExists { .. } => (Kind::Exists, "the object exists already".to_owned()),
        E::Precondition { .. } => {
            (Kind::Changed, "the object was replaced since it was opened".to_owned())
        }
        E::NotSupported { .. } | E::NotImplemented { .. } => {
            (Kind::Unsupported, format!("the store cannot do this: {error}"))
        }
        _ => {
            let mut what = error.to_string();
            // Without keys, the client asks the service that gives them to machines of Amazon.
            if what.contains("169.254.169.254/latest/") {
                what = format!(
                    "there are no keys: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_SKIP_SIGNATURE=true for a public bucket ({what})"
                );
            }
            (Kind::Store, what)
        }
    };
    Error::new(kind, what).with_source(error).of_object(key)
}

impl Objects for ObjectStoreObjects {
    fn get<'a>(&'a self, key: &'a str, part: Part, version: Option<&'a str>) -> Later<'a, Object> {
        Box::pin(async move {
            let location = path(key)?;
            let range = match part {
                Part::Range(range) => GetRange::Bounded(range),
                Part::Last(len) => GetRange::Suffix(len),
            };
            let options = GetOptions {
                range: Some(range),
                if_match: version.map(Into::into),
                ..Default::default()
            };
            let result = self
                .store
                .get_opts(&location, options)
                .await
                .map_err(|error| failed(key, error))?;
            let stat = Stat { size: result.meta.size, version: result.meta.e_tag.clone() };
            let key = key.to_owned();
            let pieces = result.into_stream().map_err(move |error| failed(&key, error)).boxed();
            Ok(Object { pieces, stat })
        })
    }

    fn stat<'a>(&'a self, key: &'a str) -> Later<'a, Stat> {
        Box::pin(async move {
            let meta = self.store.head(&path(key)?).await.map_err(|error| failed(key, error))?;
            Ok(Stat { size: meta.size, version: meta.e_tag })
        })
    }

    fn put<'a>(&'a self, key: &'a str, content: Bytes, put: Put) -> Later<'a, Option<String>> {
        Box::pin(async move {
            let mode = match put {
                Put::Replace => PutMode::Overwrite,
                Put::Create => PutMode::Create,
            };
            let options = PutOptions { mode, ..Default::default() };
            let payload = PutPayload::from_bytes(content);
            let result = self.store.put_opts(&path(key)?, payload, options).await;
            Ok(result.map_err(|error| failed(key, error))?.e_tag)
        })
    }

    fn upload<'a>(&'a self, key: &'a str) -> Later<'a, Box<dyn Upload>> {
        Box::pin(async move {
            let upload =
                self.store.put_multipart(&path(key)?).await.map_err(|error| failed(key, error))?;
            Ok(Box::new(OverUpload { key: key.to_owned(), upload }) as Box<dyn Upload>)
        })
    }

    fn list(&self, directory: &str) -> BoxStream<'static, Result<Listed>> {
        let key = directory.to_owned();
        let found = match path(directory) {
            Ok(prefix) => self.store.list(Some(&prefix)),
            Err(error) => return futures_util::stream::once(async { Err(error) }).boxed(),
        };
        found
            .map_err(move |error| failed(&key, error))
            .map_ok(|meta| Listed {
                key: meta.location.to_string(),
                stat: Stat { size: meta.size, version: meta.e_tag },
                modified: meta.last_modified.into(),
            })
            .boxed()
    }

    fn lists_in_order(&self) -> bool {
        self.in_order
    }

    fn delete<'a>(&'a self, key: &'a str) -> Later<'a, ()> {
        Box::pin(async move {
            match self.store.delete(&path(key)?).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
                Err(error) => Err(failed(key, error)),
            }
        })
    }
}

#[derive(Debug)]
struct OverUpload {
    key: String,
    upload: Box<dyn MultipartUpload>,
}

impl Upload for OverUpload {
    fn part(&mut self, content: Bytes) -> Later<'static, ()> {
        let (part, key) = (self.upload.put_part(PutPayload::from_bytes(content)), self.key.clone());
        Box::pin(async move { part.await.map_err(|error| failed(&key, error)) })
    }

    fn finish(&mut self) -> Later<'_, Option<String>> {
        Box::pin(async {
            let result = self.upload.complete().await.map_err(|error| failed(&self.key, error))?;
            Ok(result.e_tag)
        })
    }

    fn abort(&mut self) -> Later<'_, ()> {
        Box::pin(async { self.upload.abort().await.map_err(|error| failed(&self.key, error)) })
    }
}
