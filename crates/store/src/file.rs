//! An object as the source of an archive.

use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use futures_util::TryStreamExt as _;
use tenarc::io::ReadAt;
use tokio::runtime::Handle;

use crate::error::{Error, Kind, Result};
use crate::objects::{Object, Objects, Part, Stat};
use crate::stored::StoredObject;

/// An object that is read by ranges.
///
/// All reads are of the same version of the object: if it is replaced, they fail with [`Kind::Changed`].
///
/// Its methods wait for the store. So an [`Archive`](tenarc::Archive) of it must be used on a thread that may wait:
/// [`RemoteArchive::with`](crate::RemoteArchive::with) calls a closure on one.
pub struct ObjectFile {
    objects: Arc<dyn Objects>,
    key: String,
    runtime: Handle,
    /// How many of the last bytes are read when an archive is opened.
    suffix: u64,
    /// What was written, if a manifest says so.
    written: Option<StoredObject>,
    /// The version that is read.
    stat: OnceLock<Stat>,
}

impl fmt::Debug for ObjectFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectFile")
            .field("key", &self.key)
            .field("stat", &self.stat.get())
            .finish_non_exhaustive()
    }
}

impl ObjectFile {
    pub(crate) fn new(
        objects: Arc<dyn Objects>,
        key: String,
        runtime: Handle,
        suffix: u64,
        written: Option<StoredObject>,
    ) -> Self {
        Self { objects, key, runtime, suffix, written, stat: OnceLock::new() }
    }

    /// The key of the object.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Size and version of the object.
    ///
    /// # Errors
    /// If there is no such object, or the store fails.
    pub fn stat(&self) -> Result<&Stat> {
        if let Some(stat) = self.stat.get() {
            return Ok(stat);
        }
        let stat = self.runtime.block_on(async {
            match &self.written {
                Some(written) => written.find(&*self.objects, &self.key).await,
                None => self.objects.stat(&self.key).await,
            }
        })?;
        Ok(self.stat.get_or_init(|| stat))
    }

    /// The size, if it is known.
    fn known_size(&self) -> Option<u64> {
        let written = || self.written.as_ref().map(|written| written.size);
        self.stat.get().map(|stat| stat.size).or_else(written)
    }

    fn get(&self, part: Part) -> Result<Object> {
        self.runtime.block_on(async {
            let Some(written) = self.written.as_ref().filter(|_| self.stat.get().is_none()) else {
                return self.get_of(part, self.stat.get()).await;
            };
            let stat = Stat { size: written.size, version: written.version.clone() };
            match self.get_of(part.clone(), Some(&stat)).await {
                Err(error) if error.kind() == Kind::Changed => {}
                result => return result,
            }
            // Perhaps it was only copied to another store.
            let stat = written.find(&*self.objects, &self.key).await?;
            self.get_of(part, Some(self.stat.get_or_init(|| stat))).await
        })
    }

    /// Reads part of this version, or of the present one if none is given, which all later reads are of.
    async fn get_of(&self, part: Part, expected: Option<&Stat>) -> Result<Object> {
        let version = expected.and_then(|stat| stat.version.as_deref());
        let object = self.objects.get(&self.key, part, version).await?;
        let found = &object.stat;
        // Stores that ignore the condition say what they have sent.
        if expected.unwrap_or(found) != found || self.stat.get_or_init(|| found.clone()) != found {
            return Err(Error::new(Kind::Changed, "the object was replaced since it was opened")
                .of_object(&self.key));
        }
        Ok(object)
    }

    /// Reads a range that is not empty and in the object. Each piece is copied when it comes, so that nothing is in memory twice.
    fn range(&self, range: Range<u64>, out: &mut [u8]) -> Result<usize> {
        let wanted = range.end - range.start;
        let Object { mut pieces, .. } = self.get(Part::Range(range))?;
        let mut found = 0;
        self.runtime.block_on(async {
            while let Some(piece) = pieces.try_next().await? {
                if let Some(out) = out.get_mut(found..found + piece.len()) {
                    out.copy_from_slice(&piece);
                }
                found += piece.len();
            }
            Ok::<_, Error>(())
        })?;
        if found == 0 || found > out.len() {
            let what = format!("expected {wanted} bytes, the store sent {found}");
            return Err(Error::new(Kind::Store, what).of_object(&self.key));
        }
        Ok(found)
    }
}

impl ReadAt for ObjectFile {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        // Before anything was read, the size is not known, and need not be.
        let size = self.known_size().unwrap_or(u64::MAX);
        let end = size.min(offset.saturating_add(out.len() as u64));
        if offset >= end {
            return Ok(0);
        }
        Ok(self.range(offset..end, out)?)
    }

    fn size(&self) -> io::Result<u64> {
        match self.known_size() {
            Some(size) => Ok(size),
            None => Ok(self.stat()?.size),
        }
    }

    fn read_last(&self, out: &mut Vec<u8>) -> io::Result<u64> {
        out.clear();
        let len = self.suffix;
        let object = match self.known_size() {
            None => self.get(Part::Last(len)),
            Some(_) => Err(Error::new(Kind::Unsupported, "the size is known")),
        };
        let object = match object {
            // Some stores give no suffixes: the size is asked for first.
            Err(error) if error.kind() == Kind::Unsupported => {
                let size = self.size()?;
                if size == 0 {
                    return Ok(0);
                }
                self.get(Part::Range(size.saturating_sub(len)..size))?
            }
            object => object?,
        };
        let size = object.stat.size;
        *out = self.runtime.block_on(object.bytes())?;
        let (found, expected) = (out.len() as u64, size.min(len));
        if found != expected {
            let what = format!("expected the last {expected} bytes, the store sent {found}");
            return Err(Error::new(Kind::Store, what).of_object(&self.key).into());
        }
        Ok(size)
    }
}
