//! Deleting what no state refers to any more.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use futures_util::TryStreamExt as _;

use super::SHARDS;
use super::manifest::Manifest;
use crate::Store;
use crate::error::{Error, Kind, Result};

/// What was deleted: [`Store::collect`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// The number of objects with shards.
    pub objects: usize,
    /// Their size in bytes.
    pub bytes: u64,
    /// The number of manifests.
    pub manifests: usize,
}

impl Store {
    /// Deletes all states but the last `keep`, and shards that no kept state refers to and that are older than `age`. So shards that are
    /// being written, or are written and not committed yet, stay; a day is a good age.
    ///
    /// What is deleted is written down first, in a manifest of its own. A commit that needs one of these objects then fails, and
    /// names it.
    ///
    /// # Errors
    /// [`Kind::Conflict`] if others commit again and again, or the store fails. What is left over is deleted by the next call.
    ///
    /// # Panics
    /// If it is not called in a runtime of tokio.
    pub async fn collect(&self, keep: usize, age: Duration) -> Result<Collected> {
        const TRIES: usize = 10;
        let mut tried = 0;
        loop {
            tried += 1;
            match self.try_collect(keep.max(1), age).await {
                Err(error) if error.kind() == Kind::Conflict && tried < TRIES => {}
                result => return result,
            }
        }
    }

    async fn try_collect(&self, keep: usize, age: Duration) -> Result<Collected> {
        let numbers = self.manifests().await?;
        let newest = match numbers.last() {
            Some(&number) => match self.manifest(number).await {
                Err(error) if error.kind() == Kind::NotFound => {
                    return Err(Error::new(Kind::Conflict, "another process collects, too"));
                }
                newest => newest?,
            },
            // Nothing was committed, but ranks may have died.
            None => Manifest::none(),
        };
        let (mut kept, mut surplus): (Vec<Manifest>, Vec<u64>) = (Vec::new(), Vec::new());
        for &number in numbers.iter().rev() {
            if kept.len() >= keep {
                surplus.push(number);
                continue;
            }
            let manifest = if number == newest.number {
                newest.clone()
            } else {
                self.manifest(number).await?
            };
            if manifest.commit == manifest.number {
                kept.push(manifest);
            } else {
                surplus.push(number);
            }
        }
        let kept = kept.iter().flat_map(|manifest| &manifest.objects);
        let used: BTreeSet<&str> = kept.map(|object| &*object.name).collect();
        let shards: Vec<_> = self.objects.list(&self.key(SHARDS)).try_collect().await?;
        let now = SystemTime::now();
        let is_old =
            |modified: SystemTime| now.duration_since(modified).is_ok_and(|found| found >= age);
        let old: Vec<_> = shards
            .into_iter()
            .filter(|listed| !used.contains(self.name(&listed.key)) && is_old(listed.modified))
            .collect();

        let mut collected = Collected::default();
        if !old.is_empty() {
            let names = old.iter().map(|listed| self.name(&listed.key).to_owned()).collect();
            if !self.create_manifest(&Manifest::deleting(&newest, names)?).await? {
                // Whoever was faster may use what was found.
                return Err(Error::new(Kind::Conflict, "another process has committed meanwhile"));
            }
        }
        for listed in old {
            self.objects.delete(&listed.key).await?;
            collected.objects += 1;
            collected.bytes += listed.stat.size;
        }
        // The newest manifest is always kept: it says what comes next. The oldest goes first: whoever finds one that was listed beside
        // a newer one that is gone must not take it for the newest.
        for number in surplus.into_iter().rev().filter(|number| *number != newest.number) {
            self.objects.delete(&self.key(&Self::manifest_name(number))).await?;
            collected.manifests += 1;
        }
        Ok(collected)
    }
}
