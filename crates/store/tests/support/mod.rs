//! A store in memory that counts, waits and fails.

// Each test uses other parts.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt as _, TryFutureExt as _, TryStreamExt as _};
use object_store::memory::InMemory;
use tenarc::io::Requests;
use tenarc_store::{
    Error, Kind, Later, Listed, Object, ObjectStoreObjects, Objects, Part, Put, Result, Stat,
    Store, Upload,
};
use tokio::sync::Notify;

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// It fails, and nothing was done.
    Refused,
    /// It is done, but the answer is an error.
    AnswerLost,
    /// Only half of the bytes come.
    Truncated,
    /// What must not exist is said to exist, and nothing was done: S3 answers 409 to one of two that create an object at once.
    Conflict,
    /// It fails, and so do all later ones: the process has died.
    Dead,
}

/// What a store was asked for.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    pub requests: usize,
    /// The number of requests by their names.
    pub by_name: BTreeMap<&'static str, usize>,
    pub bytes: u64,
    /// All bytes that were to be written.
    pub written: usize,
    /// Bytes that are being written, and the most at once.
    pub writing: usize,
    pub most_written: usize,
    /// Requests that wait, and the most at once.
    pub now: usize,
    pub together: usize,
    pub aborted: usize,
    /// How many uploads are neither finished nor dropped.
    uploads: usize,
    /// Objects of lists that were looked at.
    pub listed: usize,
    /// The name of the request that failed first.
    pub failed: Option<&'static str>,
}

#[derive(Debug)]
#[allow(clippy::struct_excessive_bools)]
pub struct Settings {
    pub wait: Duration,
    /// The number of the request that fails, counted from the last call of [`Trial::set`].
    pub fault: Option<(usize, Fault)>,
    /// Conditions of reads are ignored.
    pub ignores_versions: bool,
    /// Suffixes are refused, as by Azure.
    pub no_suffixes: bool,
    /// Objects are replaced although they must not be.
    pub replaces: bool,
    /// The store says that lists are in order.
    pub in_order: bool,
    /// Lists come in another order.
    pub reorders: bool,
    /// The state of a random generator, which lets other tasks go first. 0 for none.
    pub seed: u64,
    /// The next object is put only after this is notified.
    pub hold: Option<Arc<Notify>>,
    /// Parts are not kept, so that they take no memory once they are written.
    pub forgets: bool,
}

impl Settings {
    /// How many turns others get before a request.
    fn turns(&mut self) -> u64 {
        if self.seed == 0 {
            return 0;
        }
        // Vigna's xorshift64*.
        self.seed ^= self.seed >> 12;
        self.seed ^= self.seed << 25;
        self.seed ^= self.seed >> 27;
        (self.seed.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 60) % 12
    }
}

#[derive(Debug)]
struct Shared {
    inner: ObjectStoreObjects,
    asked: Mutex<Asked>,
    settings: Mutex<Settings>,
}

/// The store.
#[derive(Clone, Debug)]
pub struct Trial(Arc<Shared>);

impl Trial {
    pub fn new() -> Self {
        let settings = Settings {
            wait: Duration::ZERO,
            fault: None,
            ignores_versions: false,
            no_suffixes: false,
            replaces: false,
            in_order: false,
            reorders: false,
            seed: 0,
            hold: None,
            forgets: false,
        };
        Self(Arc::new(Shared {
            inner: ObjectStoreObjects::new(Arc::new(InMemory::new())),
            asked: Mutex::default(),
            settings: Mutex::new(settings),
        }))
    }

    /// Parts and requests have at most 1 MiB.
    pub fn store(&self) -> Store {
        let store = Store::of_objects(Arc::new(self.clone()), "runs/7");
        store.with_part_len(1 << 20).with_requests(Requests::server().with_longest(1 << 20))
    }

    /// Changes how it behaves. Counting starts again.
    pub fn set(&self, change: impl FnOnce(&mut Settings)) {
        change(&mut self.0.settings.lock().unwrap());
        self.take();
    }

    /// Whether an object is held.
    pub fn holds(&self) -> bool {
        self.settings().hold.is_none()
    }

    /// What it was asked for since the last call. What was asked for ahead may still be under way.
    pub fn take(&self) -> Asked {
        let mut asked = self.asked();
        let Asked { now, writing, uploads, .. } = *asked;
        std::mem::replace(&mut *asked, Asked { writing, now, uploads, ..Asked::default() })
    }

    /// Waits until what failed uploads have written was dropped, which happens after their errors were returned.
    pub async fn settled(&self) {
        while self.asked().uploads > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    fn asked(&self) -> MutexGuard<'_, Asked> {
        self.0.asked.lock().unwrap()
    }

    fn inner(&self) -> &ObjectStoreObjects {
        &self.0.inner
    }

    fn settings(&self) -> MutexGuard<'_, Settings> {
        self.0.settings.lock().unwrap()
    }

    /// Answers a request, or lets it fail. `written` is the number of bytes that it writes.
    async fn ask<T>(
        &self,
        name: &'static str,
        written: usize,
        answer: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        self.ask_as(name, written, answer).await.0
    }

    /// The answer, and what has happened to the request.
    async fn ask_as<T>(
        &self,
        name: &'static str,
        written: usize,
        answer: impl Future<Output = Result<T>>,
    ) -> (Result<T>, Option<Fault>) {
        let (number, wait) = {
            let mut asked = self.asked();
            let number = asked.requests;
            asked.requests += 1;
            *asked.by_name.entry(name).or_default() += 1;
            asked.now += 1;
            asked.together = asked.together.max(asked.now);
            asked.written += written;
            asked.writing += written;
            asked.most_written = asked.most_written.max(asked.writing);
            (number, self.settings().wait)
        };
        let fault = self
            .settings()
            .fault
            .filter(|(at, fault)| *at == number || *fault == Fault::Dead && *at <= number);
        let fault = fault.map(|(_, fault)| fault);
        if fault.is_some() {
            self.asked().failed.get_or_insert(name);
        }
        let turns = self.settings().turns();
        for _ in 0..turns {
            tokio::task::yield_now().await;
        }
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        let failed = || Error::new(Kind::Store, "503 Service Unavailable");
        let answer = match fault {
            Some(Fault::Refused | Fault::Dead) => Err(failed()),
            Some(Fault::AnswerLost) => match answer.await {
                Ok(_) => Err(failed()),
                error => error,
            },
            Some(Fault::Conflict) => Err(Error::new(Kind::Exists, "409 Conflict")),
            Some(Fault::Truncated) | None => answer.await,
        };
        let mut asked = self.asked();
        asked.now -= 1;
        asked.writing -= written;
        (answer, fault)
    }
}

impl Objects for Trial {
    fn get<'a>(&'a self, key: &'a str, part: Part, version: Option<&'a str>) -> Later<'a, Object> {
        Box::pin(async move {
            let version = version.filter(|_| !self.settings().ignores_versions);
            let answer = async {
                if self.settings().no_suffixes && matches!(part, Part::Last(_)) {
                    return Err(Error::new(Kind::Unsupported, "no suffixes"));
                }
                let Object { pieces, stat } = self.inner().get(key, part, version).await?;
                Ok((pieces.try_collect::<Vec<_>>().await?.concat(), stat))
            };
            let (answer, fault) = self.ask_as("get", 0, answer).await;
            let (mut bytes, stat) = answer?;
            if fault == Some(Fault::Truncated) {
                bytes.truncate(bytes.len() / 2);
            }
            self.asked().bytes += bytes.len() as u64;
            let pieces = stream::iter([Ok(Bytes::from(bytes))]).boxed();
            Ok(Object { pieces, stat })
        })
    }

    fn stat<'a>(&'a self, key: &'a str) -> Later<'a, Stat> {
        Box::pin(self.ask("stat", 0, self.inner().stat(key)))
    }

    fn put<'a>(&'a self, key: &'a str, content: Bytes, put: Put) -> Later<'a, Option<String>> {
        Box::pin(async move {
            let put = if self.settings().replaces { Put::Replace } else { put };
            let hold = self.settings().hold.take();
            if let Some(hold) = hold {
                hold.notified().await;
            }
            self.ask("put", content.len(), self.inner().put(key, content, put)).await
        })
    }

    fn upload<'a>(&'a self, key: &'a str) -> Later<'a, Box<dyn Upload>> {
        Box::pin(async move {
            let upload = self.ask("upload", 0, self.inner().upload(key)).await?;
            self.asked().uploads += 1;
            Ok(Box::new(TrialUpload { trial: self.clone(), upload }) as Box<dyn Upload>)
        })
    }

    fn list(&self, directory: &str) -> BoxStream<'static, Result<Listed>> {
        let (trial, directory) = (self.clone(), directory.to_owned());
        let answer = async move {
            let all = trial.inner().list(&directory).try_collect::<Vec<_>>();
            let mut found = trial.ask("list", 0, all).await?;
            found.sort_by(|a, b| a.key.cmp(&b.key));
            if trial.settings().reorders {
                // The second page comes first, and the newest manifest last.
                let half = found.len() / 2;
                found.rotate_left(half);
                found[..half].reverse();
            }
            Ok(stream::iter(found).map(Ok).inspect(move |_| trial.asked().listed += 1))
        };
        answer.try_flatten_stream().boxed()
    }

    fn lists_in_order(&self) -> bool {
        self.settings().in_order
    }

    fn delete<'a>(&'a self, key: &'a str) -> Later<'a, ()> {
        Box::pin(self.ask("delete", 0, self.inner().delete(key)))
    }
}

#[derive(Debug)]
struct TrialUpload {
    trial: Trial,
    upload: Box<dyn Upload>,
}

impl Drop for TrialUpload {
    fn drop(&mut self) {
        self.trial.asked().uploads -= 1;
    }
}

impl Upload for TrialUpload {
    fn part(&mut self, content: Bytes) -> Later<'static, ()> {
        let (trial, len) = (self.trial.clone(), content.len());
        let kept = if trial.settings().forgets { Bytes::new() } else { content.clone() };
        let part = self.upload.part(kept);
        // The bytes are there until the answer comes.
        Box::pin(async move {
            let answer = trial.ask("part", len, part).await;
            drop(content);
            answer
        })
    }

    fn finish(&mut self) -> Later<'_, Option<String>> {
        let trial = self.trial.clone();
        Box::pin(async move { trial.ask("finish", 0, self.upload.finish()).await })
    }

    fn abort(&mut self) -> Later<'_, ()> {
        let trial = self.trial.clone();
        trial.asked().aborted += 1;
        Box::pin(async move { trial.ask("abort", 0, self.upload.abort()).await })
    }
}
