//! A directory of archives, one for each step of a training loop.
//!
//! The order of steps makes a save safe. The new file first appears complete
//! (`AtomicFile`), then it is listed in the manifest, and only then are older files
//! removed. No file is ever overwritten.

mod background;
mod lock;
mod manifest;
mod name;
mod retention;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::archive::{load, open, save_with};
use crate::error::{Category, Error, Result, shown};
use crate::io::atomic::{DurableDirectory, SyncLevel, parent, sweep};
use crate::segment::options::SaveOptions;
use lock::{announce_removals, lock_for_saving, removals};
use manifest::Manifest;
use name::Name;
use retention::{Retention, current, ranked};

pub use background::BackgroundCheckpoints;
pub use retention::Best;

/// The largest number of times that a reader starts again because a save replaced a file that it was about to read.
const ROUNDS: usize = 100;

/// The largest number of damaged checkpoints that an error message describes.
const TOLD: usize = 3;

/// A directory of checkpoints, one archive for each step.
///
/// ```
/// use tenarc::Checkpoints;
/// use tenarc::checkpoint::Best;
///
/// # let dir = tempfile::tempdir()?;
/// # let dir = dir.path().join("run-7");
/// let checkpoints =
///     Checkpoints::new(&dir)?.with_keep_last(2).with_keep_best(1, Best::Lowest);
/// for step in 1..=5u64 {
///     let (state, loss) = (vec![step; 100], 1.0 / step as f64);
///     checkpoints.save_scored(step, loss, &state)?;
/// }
/// assert_eq!(checkpoints.steps()?, [4, 5]);
///
/// let latest = checkpoints.latest::<Vec<u64>>()?.expect("five were saved");
/// assert_eq!((latest.step, latest.value), (5, vec![5; 100]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Step 123 is saved as `step-00000000000000000123.tenarc`. A score is added as `.score-0.25`. If a step is
/// saved again, the new file gets `.r1`, `.r2` and so on. Other files in the directory, and links, are
/// not touched.
///
/// # Crashes and other processes
///
/// When a save returns, the checkpoint is complete and durable. Only then are replaced and old checkpoints removed. If
/// the process or the machine crashes at any time, the newest checkpoint or the one before it is complete.
///
/// Several processes may save to and read from one directory. Saves run one after the other, with a lock on
/// `.tenarc-saving.lock`. Readers do not wait for the lock: the file `.tenarc-removals` tells them when to
/// list the directory again. If the file system does not support locks, as some network file systems,
/// only one process may save at a time.
#[derive(Clone, Debug)]
pub struct Checkpoints {
    dir: PathBuf,
    retention: Retention,
    options: SaveOptions,
    manifest: bool,
}

/// The newest checkpoint that is not damaged.
#[derive(Debug)]
#[non_exhaustive]
pub struct Latest<T> {
    /// Its step.
    pub step: u64,
    /// The saved value.
    pub value: T,
    /// The newer checkpoints that are damaged, newest first.
    pub skipped: Vec<Skipped>,
}

/// A checkpoint that is damaged.
#[derive(Debug)]
#[non_exhaustive]
pub struct Skipped {
    /// Its step.
    pub step: u64,
    /// Why it could not be loaded.
    pub error: Error,
}

/// Why a checkpoint was not loaded.
enum Failure {
    /// The file is damaged.
    Damage(Error),
    /// The file is intact, or it is unknown whether it is. It must not be skipped silently.
    Other(Error),
}

/// The state of the directory at one moment, for a reader.
struct View {
    present: BTreeSet<Name>,
    manifest: Option<Manifest>,
    removals: Option<[u8; 8]>,
}

impl Checkpoints {
    /// Uses the directory `dir`. It is created with its parents if it does not exist.
    ///
    /// # Errors
    ///
    /// If the directory cannot be created.
    pub fn new(dir: impl Into<PathBuf>) -> Result<Self> {
        let mut dir = dir.into();
        if dir.as_os_str().is_empty() {
            dir.push(".");
        }
        create_dir(&dir)?;
        let retention = Retention::default();
        Ok(Self { dir, retention, options: SaveOptions::default(), manifest: false })
    }

    /// Keeps the `count` highest steps. A save removes all other steps, except the
    /// [best](Self::with_keep_best). If neither option is set, all steps are kept.
    ///
    /// The highest step and the one just saved are always kept. To continue training from an earlier step,
    /// first [`remove`](Self::remove) the later ones: otherwise they count as the newest.
    #[must_use]
    pub fn with_keep_last(mut self, count: usize) -> Self {
        self.retention.last = Some(count);
        self
    }

    /// Keeps the `count` steps with the best scores. The highest step is kept too, or as many as
    /// [`with_keep_last`](Self::with_keep_last) says. If scores are equal, the higher step is better. A
    /// step without a score, or with a NaN, is never among the best.
    #[must_use]
    pub fn with_keep_best(mut self, count: usize, best: Best) -> Self {
        self.retention.best = Some((count, best));
        self
    }

    /// Sets how the archives are written. They are always synced to disk, whatever the options say, because
    /// older checkpoints are removed after a save.
    #[must_use]
    pub fn with_save_options(mut self, options: SaveOptions) -> Self {
        self.options = options;
        self
    }

    /// Whether to keep a file `SHA256SUMS` with the sums of all checkpoints, for
    /// `sha256sum -c SHA256SUMS`. Only checkpoints that are listed with the right sum are loaded then. All
    /// processes that save to the directory must use the same setting.
    ///
    /// Every checkpoint is read once more after it is saved, and once more before it is loaded.
    ///
    /// A checkpoint may be unlisted after a crash, or because the manifest was turned off before. The next save
    /// adds it to the list if it is intact.
    #[cfg(feature = "sha256")]
    #[must_use]
    pub fn with_sha256_manifest(mut self, on: bool) -> Self {
        self.manifest = on;
        self
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Saves a step. Replaces an earlier checkpoint of the same step, then removes the checkpoints that are
    /// not to be kept.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let dir = dir.path().join("run-8");
    /// let checkpoints = tenarc::Checkpoints::new(&dir)?.with_keep_last(1);
    /// checkpoints.save(100, &vec![0.5f32; 1000])?;
    /// checkpoints.save(200, &vec![0.25f32; 1000])?; // removes step 100
    /// assert_eq!(checkpoints.steps()?, [200]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// - The value cannot be written. The existing checkpoints are unchanged.
    /// - The manifest cannot be written, or an old checkpoint cannot be removed. The new file exists.
    pub fn save<T: Serialize + ?Sized>(&self, step: u64, value: &T) -> Result<()> {
        self.store(step, None, value)
    }

    /// Like [`save`](Self::save), with a score for [`with_keep_best`](Self::with_keep_best). The score
    /// becomes part of the file's name.
    ///
    /// # Errors
    ///
    /// The same errors as [`save`](Self::save).
    pub fn save_scored<T: Serialize + ?Sized>(
        &self,
        step: u64,
        score: f64,
        value: &T,
    ) -> Result<()> {
        self.store(step, Some(score), value)
    }

    fn store<T: Serialize + ?Sized>(&self, step: u64, score: Option<f64>, value: &T) -> Result<()> {
        let _lock = lock_for_saving(&self.dir)?;
        sweep(&self.dir, None)?;
        let mut present = self.list()?;
        let mut manifest = self.manifest_of(&present)?;

        let listed = manifest.as_ref().map(Manifest::names).unwrap_or_default();
        let of_step = present.union(&listed).filter(|name| name.step == step);
        let revision = match of_step.map(|name| name.revision).max() {
            None => 0,
            Some(last) => last
                .checked_add(1)
                .ok_or_else(|| Error::limit(format!("step {step} has no revision after {last}")))?,
        };
        let name = Name::new(step, revision, score);
        let options = self.options.clone().with_sync(SyncLevel::Full);
        save_with(self.path(&name), value, options)?;
        present.insert(name);

        if let Some(manifest) = &mut manifest {
            manifest.add(&self.dir, name)?;
            self.adopt(&present, step, manifest)?;
            // The origin of unlisted files of other steps is unknown: they are not counted and not removed.
            present.retain(|name| name.step == step || manifest.lists(name));
        }
        let surplus = self.retention.surplus(&present, Some(name));
        let replaced = listed.into_iter().filter(|old| old.step == step);
        self.take_away(surplus.into_iter().chain(replaced), manifest)
    }

    /// The manifest that a save extends. `None` if it is turned off.
    fn manifest_of(&self, present: &BTreeSet<Name>) -> Result<Option<Manifest>> {
        if !self.manifest {
            return Ok(None);
        }
        if let Some(manifest) = Manifest::read(&self.dir)? {
            return Ok(Some(manifest));
        }
        let manifest = Manifest::default();
        if present.is_empty() {
            // Without this, a crash during the first save would look like a lost manifest.
            manifest.write(&self.dir)?;
        }
        Ok(Some(manifest))
    }

    /// Adds complete files of other steps that are not listed because of a crash.
    fn adopt(&self, present: &BTreeSet<Name>, saved: u64, manifest: &mut Manifest) -> Result<()> {
        for name in present.iter().filter(|name| name.step != saved) {
            if !manifest.lists(name) && check_whole(&self.path(name)).is_ok() {
                manifest.add(&self.dir, *name)?;
            }
        }
        Ok(())
    }

    /// Removes files, first from the manifest, which must never list a file that does not exist.
    fn take_away(
        &self,
        names: impl Iterator<Item = Name>,
        manifest: Option<Manifest>,
    ) -> Result<()> {
        let names: BTreeSet<Name> = names.collect();
        if names.is_empty() && manifest.is_none() {
            return Ok(());
        }
        if let Some(mut manifest) = manifest {
            for name in &names {
                manifest.remove(name);
            }
            manifest.write(&self.dir)?;
        }
        if !names.is_empty() {
            announce_removals(&self.dir)?;
        }
        for name in names {
            let path = self.path(&name);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(Error::io_at(error, "cannot remove the old checkpoint", &path));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Removes a step.
    ///
    /// # Errors
    ///
    /// If there is no such step, or if it cannot be removed.
    pub fn remove(&self, step: u64) -> Result<()> {
        let _lock = lock_for_saving(&self.dir)?;
        let mut names = self.list()?;
        let manifest = if self.manifest { Manifest::read(&self.dir)? } else { None };
        names.extend(manifest.iter().flat_map(Manifest::names));
        names.retain(|name| name.step == step);
        if names.is_empty() {
            return Err(self.no_such_step(step));
        }
        self.take_away(names.into_iter(), manifest)
    }

    /// The saved steps in ascending order, whether or not they can be loaded.
    ///
    /// # Errors
    ///
    /// If the directory cannot be listed.
    pub fn steps(&self) -> Result<Vec<u64>> {
        let mut steps: Vec<u64> =
            self.undisturbed(|| self.list())?.iter().map(|name| name.step).collect();
        steps.dedup();
        Ok(steps)
    }

    /// The step with the best score, if any has one.
    ///
    /// # Errors
    ///
    /// If the directory cannot be listed.
    pub fn best_step(&self, best: Best) -> Result<Option<u64>> {
        let present = self.undisturbed(|| self.list())?;
        Ok(ranked(current(&present).values(), best).first().map(|name| name.step))
    }

    /// Loads a step.
    ///
    /// # Errors
    ///
    /// If there is no such step, or if it cannot be loaded.
    pub fn load<T: DeserializeOwned>(&self, step: u64) -> Result<T> {
        self.with_view(
            || self.view(),
            |view| {
                let Some(name) = view.names().rfind(|name| name.step == step) else {
                    return Ok(Err(self.no_such_step(step)));
                };
                match self.read(view, &name) {
                    Err(_) if self.has_vanished(view, &name) => Err(Vanished),
                    result => Ok(result),
                }
            },
        )
    }

    /// Loads the newest checkpoint that is not damaged. Returns `None` if there are no checkpoints, as when
    /// training begins. A save that is in progress does not count yet.
    ///
    /// A checkpoint is damaged if it is truncated, fails a checksum, or is not an archive. With
    /// [a manifest](Self::with_sha256_manifest) it is also damaged if it is missing, not listed, or has
    /// another sum. Damaged checkpoints are skipped, and listed in [`Latest::skipped`].
    ///
    /// An intact checkpoint that does not fit `T` is an error and is not skipped. For example, a program that was
    /// rolled back to an older version gets an error, and does not silently continue from an older step. If the
    /// archives were saved [without checksums](SaveOptions::with_checksums), damage inside a tensor is not
    /// noticed, or looks like a value that does not fit.
    ///
    /// ```
    /// # fn train(checkpoints: &tenarc::Checkpoints) -> tenarc::Result<()> {
    /// let (first, state) = match checkpoints.latest::<Vec<f64>>()? {
    ///     Some(latest) => {
    ///         for skipped in &latest.skipped {
    ///             eprintln!("step {} is broken: {}", skipped.step, skipped.error);
    ///         }
    ///         (latest.step + 1, latest.value)
    ///     }
    ///     None => (0, vec![0.0; 10]),
    /// };
    /// # let _ = (first, state);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// - The newest checkpoint that is not damaged cannot be read, does not fit `T`, exceeds a limit, or has
    ///   an unknown version. The error names the file.
    /// - There are checkpoints, but all are damaged.
    /// - The directory or the manifest cannot be read.
    pub fn latest<T: DeserializeOwned>(&self) -> Result<Option<Latest<T>>> {
        self.with_view(
            || self.view(),
            |view| {
                let mut skipped = Vec::new();
                for name in view.names().rev() {
                    let step = name.step;
                    match self.read_or_tell(view, &name) {
                        Ok(value) => return Ok(Ok(Some(Latest { step, value, skipped }))),
                        Err(_) if self.has_vanished(view, &name) => return Err(Vanished),
                        Err(Failure::Damage(error)) => skipped.push(Skipped { step, error }),
                        Err(Failure::Other(error)) => return Ok(Err(error)),
                    }
                }
                // An unfinished first save is not in the manifest: there is no checkpoint yet.
                let newest = match (skipped.first(), &view.manifest) {
                    (None, _) => return Ok(Ok(None)),
                    (Some(_), Some(manifest)) if manifest.names().is_empty() => {
                        return Ok(Ok(None));
                    }
                    (Some(newest), _) => newest,
                };
                let mut message = format!("no checkpoint in {} can be loaded", shown(&self.dir));
                for Skipped { step, error } in skipped.iter().take(TOLD) {
                    // Writing to a string cannot fail.
                    let _ = write!(message, "; step {step}: {error}");
                }
                if let Some(untold @ 1..) = skipped.len().checked_sub(TOLD) {
                    let _ = write!(message, "; and {untold} more");
                }
                Ok(Err(Error::new(newest.error.category(), message)))
            },
        )
    }

    /// Checks that the manifest exists, that it lists all checkpoints and no others, and that all their sums
    /// are right. Waits for a save that is in progress.
    ///
    /// # Errors
    ///
    /// If the manifest or a checkpoint is missing, or a checkpoint is not listed or has another sum. The
    /// error names the first such file.
    #[cfg(feature = "sha256")]
    pub fn verify_sha256_manifest(&self) -> Result<()> {
        let complete = || {
            let _lock = lock::lock_for_checking(&self.dir)?;
            let view = self.look(true)?;
            if view.manifest.is_some() { Ok(view) } else { Err(Manifest::missing(&self.dir)) }
        };
        self.with_view(complete, |view| {
            for name in view.names() {
                match view.check(&self.dir, &name) {
                    Err(_) if self.has_vanished(view, &name) => return Err(Vanished),
                    Err(error) => return Ok(Err(error)),
                    Ok(()) => {}
                }
            }
            Ok(Ok(()))
        })
    }

    /// Reads from a view of the directory. Starts again if a save replaced the files meanwhile.
    fn with_view<T>(
        &self,
        look: impl Fn() -> Result<View>,
        read: impl Fn(&View) -> Result<Result<T>, Vanished>,
    ) -> Result<T> {
        for _ in 0..ROUNDS {
            if let Ok(result) = read(&look()?) {
                return result;
            }
        }
        Err(self.too_busy())
    }

    /// Calls `look` until no file was removed during the call.
    fn undisturbed<T>(&self, look: impl Fn() -> Result<T>) -> Result<T> {
        for _ in 0..ROUNDS {
            let before = removals(&self.dir);
            let seen = look();
            if removals(&self.dir) == before {
                return seen;
            }
        }
        Err(self.too_busy())
    }

    #[cold]
    fn too_busy(&self) -> Error {
        let error = io::Error::other("checkpoints are replaced faster than they can be listed");
        Error::io_at(error, "cannot read from", &self.dir)
    }

    fn view(&self) -> Result<View> {
        self.undisturbed(|| {
            let view = self.look(self.manifest)?;
            match (&view.manifest, view.present.is_empty()) {
                // Before the first save there is no manifest.
                (None, false) if self.manifest => Err(Manifest::missing(&self.dir)),
                _ => Ok(view),
            }
        })
    }

    fn look(&self, manifest: bool) -> Result<View> {
        let removals = removals(&self.dir);
        let present = self.list()?;
        // Read after the list: the first save writes the manifest before any checkpoint.
        let manifest = if manifest { Manifest::read(&self.dir)? } else { None };
        Ok(View { present, manifest, removals })
    }

    fn read<T: DeserializeOwned>(&self, view: &View, name: &Name) -> Result<T> {
        view.check(&self.dir, name)?;
        load(self.path(name))
    }

    /// Like [`read`](Self::read), but distinguishes damage from other failures.
    fn read_or_tell<T: DeserializeOwned>(&self, view: &View, name: &Name) -> Result<T, Failure> {
        self.read(view, name).map_err(|error| match error.category() {
            Category::Damaged | Category::Torn => Failure::Damage(error),
            Category::Io | Category::Limit | Category::Version | Category::Unsupported => {
                Failure::Other(error)
            }
            // The file is not an archive, or is an intact archive with another kind of value.
            Category::Syntax
            | Category::Data
            | Category::NotFound
            | Category::Mismatch
            | Category::Eof => {
                let Err(fault) = check_whole(&self.path(name)) else {
                    let what = "the checkpoint is intact, but does not fit the requested type";
                    return Failure::Other(error.meaning(what));
                };
                if fault.is_of_input() { Failure::Damage(fault) } else { Failure::Other(fault) }
            }
        })
    }

    /// Whether a save has removed this file since the view was taken.
    fn has_vanished(&self, view: &View, name: &Name) -> bool {
        let gone = fs::symlink_metadata(self.path(name))
            .is_err_and(|error| error.kind() == ErrorKind::NotFound);
        gone && (view.present.contains(name) || removals(&self.dir) != view.removals)
    }

    /// Lists the regular files whose names this crate could have written.
    fn list(&self) -> Result<BTreeSet<Name>> {
        let failed = |error| Error::io_at(error, "cannot list", &self.dir);
        let mut names = BTreeSet::new();
        for entry in fs::read_dir(&self.dir).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let Some(name) = entry.file_name().to_str().and_then(Name::parse) else { continue };
            match entry.file_type() {
                Ok(kind) if kind.is_file() => _ = names.insert(name),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(Error::io_at(error, "cannot look at", &entry.path())),
            }
        }
        Ok(names)
    }

    fn path(&self, name: &Name) -> PathBuf {
        self.dir.join(name.to_string())
    }

    #[cold]
    fn no_such_step(&self, step: u64) -> Error {
        Error::not_found(format!("there is no checkpoint of step {step} in {}", shown(&self.dir)))
    }
}

/// A file was replaced before it could be read.
struct Vanished;

impl View {
    fn check(&self, dir: &Path, name: &Name) -> Result<()> {
        self.manifest.as_ref().map_or(Ok(()), |manifest| manifest.check(dir, name))
    }

    /// The files that are present, and those that the manifest lists.
    fn names(&self) -> impl DoubleEndedIterator<Item = Name> + use<> {
        let listed = self.manifest.iter().flat_map(Manifest::names);
        self.present.iter().copied().chain(listed).collect::<BTreeSet<_>>().into_iter()
    }
}

/// Verifies all checksums of an archive, and that nothing follows its last end mark.
fn check_whole(path: &Path) -> Result<()> {
    let archive = open(path)?;
    match archive.unfinished_bytes() {
        0 => archive.verify().map_err(|error| error.in_file(path)),
        more => {
            let what = format!("{more} unfinished bytes follow the last end mark");
            Err(Error::torn(what).in_file(path))
        }
    }
}

/// Creates a directory and its parents, and syncs them. Otherwise a checkpoint in it could be lost.
fn create_dir(dir: &Path) -> Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    let parent = parent(dir);
    if parent != dir {
        create_dir(parent)?;
    }
    match fs::create_dir(dir) {
        Ok(()) => DurableDirectory::open(parent)?.sync(),
        Err(_) if dir.is_dir() => Ok(()),
        Err(error) => Err(Error::io_at(error, "cannot create the directory", dir)),
    }
}
