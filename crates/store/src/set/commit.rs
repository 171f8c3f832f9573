//! Making a state visible: one object that is created once.

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use futures_util::stream::{self, StreamExt as _};

use super::manifest::{Manifest, Receipt};
use super::{Set, Step, TOGETHER};
use crate::error::{Error, Kind, Result};
use crate::objects::Put;
use crate::stored::StoredObject;
use crate::{Store, encode};

/// How often a commit is tried while others commit, or while answers are lost.
const TRIES: usize = 50;
/// How often the store may fail while one manifest is written.
const FAILURES: usize = 3;

impl Step {
    /// Makes what the ranks have written the latest state. Readers see all of it, or what was there before.
    ///
    /// Any process can do this, and again after a failure: the same receipts are committed once. If others commit at the same
    /// time, one comes after the other.
    ///
    /// # Errors
    /// - [`Kind::Incomplete`]: a receipt is missing or double, blocks overlap or leave gaps, or an object is not there any more.
    ///   The message names them.
    /// - [`Kind::Unsupported`]: the store replaces objects that exist, whatever it is asked for. If only one process ever commits,
    ///   use [`Store::with_single_writer`].
    /// - [`Kind::Conflict`], or the store fails. It is then not known whether the state was committed: try again.
    ///
    /// # Panics
    /// If it is not called in a runtime of tokio.
    pub async fn commit(
        &self,
        receipts: impl IntoIterator<Item = Receipt>,
        ranks: u64,
    ) -> Result<Set> {
        let manifest = Manifest::of_receipts(self.step, receipts.into_iter().collect(), ranks)?;
        self.store.check_creates_once().await?;
        let committed = self.store.append(manifest).await?;
        Ok(Set::new(self.store.clone(), committed))
    }
}

impl Store {
    /// Says that only one process ever commits, so that stores can be used that cannot create an object only if it does not
    /// exist.
    #[must_use]
    pub fn with_single_writer(self, on: bool) -> Self {
        Self { single_writer: on, ..self }
    }

    /// Finds out whether the store creates an object only if there is none. This takes two requests, once for each
    /// store, and leaves an object `probe`.
    async fn check_creates_once(&self) -> Result<()> {
        if self.single_writer || self.creates_once.get().is_some() {
            return Ok(());
        }
        let key = self.key("probe");
        let mut created = false;
        // It may be there already, from another process. Or another one creates it now: then S3 may refuse both.
        for tried in 0..3 {
            match self.objects.put(&key, Bytes::from_static(b"tenarc"), Put::Create).await {
                Ok(_) if created => break,
                Ok(_) => created = true,
                Err(error) if error.kind() == Kind::Exists && tried > 0 => {
                    let _ = self.creates_once.set(());
                    return Ok(());
                }
                Err(error) if error.kind() == Kind::Exists => {}
                Err(error) if error.kind() == Kind::Unsupported => break,
                Err(error) => return Err(error),
            }
        }
        Err(Error::new(
            Kind::Unsupported,
            "the store replaces an object although it was asked to create one, so that two commits could be mixed up: use \
             Store::with_single_writer if only one process commits",
        ))
    }

    /// Writes a state behind all others, unless the same receipts have made one before.
    async fn append(&self, mut manifest: Manifest) -> Result<Manifest> {
        for _ in 0..TRIES {
            let newest = self.newest().await?;
            if let Some(newest) = &newest
                && let Some(found) = self.find(&manifest, newest).await?
            {
                return Ok(found);
            }
            self.check_objects(&mut manifest, newest.as_ref()).await?;
            manifest.number = newest.as_ref().map_or(1, |newest| newest.number + 1);
            manifest.commit = manifest.number;
            if let Some(newest) = newest {
                manifest.parent = Some(newest.write);
                // They may not be gone yet, and the commit after this one must not use them either.
                manifest.deleted = newest.deleted;
            }
            if self.create_manifest(&manifest).await? {
                return Ok(manifest);
            }
        }
        Err(Error::new(Kind::Conflict, format!("others have committed {TRIES} times meanwhile")))
    }

    /// Creates the object of a manifest. Returns `false` if another one has its number.
    pub(super) async fn create_manifest(&self, manifest: &Manifest) -> Result<bool> {
        let key = self.key(&Self::manifest_name(manifest.number));
        let put = if self.single_writer { Put::Replace } else { Put::Create };
        let content = Bytes::from(encode(Vec::new(), manifest, &self.options)?);
        let mut failures = 0;
        loop {
            let Err(error) = self.objects.put(&key, content.clone(), put).await else {
                return self.is_last(manifest).await;
            };
            if !matches!(error.kind(), Kind::Exists | Kind::Store | Kind::Changed) {
                return Err(error);
            }
            // It may be there although the answer is an error.
            match self.manifest(manifest.number).await {
                Ok(found) if found.write == manifest.write => return self.is_last(manifest).await,
                Ok(_) => return Ok(false),
                Err(missing) if missing.kind() == Kind::NotFound && failures < FAILURES => {}
                Err(missing) if missing.kind() == Kind::NotFound => return Err(error),
                Err(other) => return Err(other),
            }
            failures += 1;
        }
    }

    /// Whether a manifest that was created comes after all others. If others have committed since the newest one was looked for, and
    /// a collection has deleted theirs, it has a number that was there before, and nobody will read it.
    async fn is_last(&self, manifest: &Manifest) -> Result<bool> {
        if self.newest_number().await? == Some(manifest.number) {
            return Ok(true);
        }
        match self.manifest(manifest.number + 1).await {
            Ok(next) => Ok(next.parent.as_ref() == Some(&manifest.write)),
            Err(error) if error.kind() == Kind::NotFound => {
                Err(Error::new(Kind::Conflict, "others have committed and collected meanwhile"))
            }
            Err(error) => Err(error),
        }
    }

    /// The manifest that the same receipts have made before. Only manifests of the same step and of later ones are looked at,
    /// back to the first one of an earlier step.
    async fn find(&self, manifest: &Manifest, newest: &Manifest) -> Result<Option<Manifest>> {
        let mut found = newest.clone();
        while found.step >= manifest.step {
            if found.write == manifest.write {
                return Ok(Some(found));
            }
            let Some(before) = found.number.checked_sub(1).filter(|number| *number > 0) else {
                break;
            };
            let parent = found.parent.take();
            found = match self.manifest(before).await {
                Ok(found) if Some(&found.write) == parent.as_ref() => found,
                Err(error) if error.kind() != Kind::NotFound => return Err(error),
                _ => break,
            };
        }
        Ok(None)
    }

    /// Checks that all objects are there, as the ranks have written them, and are not being deleted. Notes their versions.
    async fn check_objects(
        &self,
        manifest: &mut Manifest,
        newest: Option<&Manifest>,
    ) -> Result<()> {
        let deleted = newest.map(|newest| &*newest.deleted).unwrap_or_default();
        let check = |object: &StoredObject| {
            let (object, key) = (object.clone(), self.key(&object.name));
            async move {
                let incomplete =
                    |what: &str| Err(Error::new(Kind::Incomplete, what).of_object(&key));
                if deleted.contains(&object.name) {
                    return incomplete(
                        "the object is being deleted, because a collection found it old and unused",
                    );
                }
                match object.find(&*self.objects, &key).await {
                    Ok(found) => Ok(StoredObject { version: found.version, ..object }),
                    Err(error) => match error.kind() {
                        Kind::NotFound => incomplete("there is no such object"),
                        Kind::Changed => {
                            incomplete("the object was replaced after its rank had written it")
                        }
                        _ => Err(error),
                    },
                }
            }
        };
        manifest.objects = stream::iter(manifest.objects.iter().map(check))
            .buffered(TOGETHER)
            .try_collect()
            .await?;
        Ok(())
    }
}
