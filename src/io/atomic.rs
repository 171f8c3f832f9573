//! Writes files atomically: the new file appears completely or not at all.
//!
//! The content is written to a temporary file in the same directory. When it is complete and synced,
//! the temporary file is renamed to the target. Next to the temporary file there is a guard, an empty
//! file that the writer keeps locked while it lives. By this lock, [`sweep`] can tell the leftovers of
//! dead processes from files that are being written. The temporary file itself is not locked, because
//! the lock would still exist for a moment after the rename.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File, Metadata, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, ErrorKind, IoSlice, Write};
use std::path::{Path, PathBuf};

use super::lock::Locked;
use crate::error::{Error, Result};

/// What a save does so that the file survives a crash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SyncLevel {
    /// Nothing is synced. After a crash of the process, the target is the complete old file or the
    /// complete new one. After a crash of the machine or a power failure, it may be empty or truncated.
    Off,
    /// The file and its directory are synced before the save returns. Also after a crash of the
    /// machine, the target is the complete old file or the complete new one. After the save has
    /// returned, it is the new one.
    #[default]
    Full,
}

/// The end of the name of every temporary file.
const SUFFIX: &str = ".tenarc-tmp";

/// The end of the name of its guard. The rest of the name is the same.
const GUARD_SUFFIX: &str = ".tenarc-lock";

/// The largest number of bytes of the target's name in the temporary name. Some file systems limit
/// names to 143 bytes.
const MAX_STEM: usize = 100;

/// The number of random characters in the name of a temporary file.
const UNIQUE: usize = 8;

/// The number of names that are tried. A name fails only if it collides with another one of 2^40, or if a sweep
/// has locked the new guard first.
const ATTEMPTS: usize = 100;

/// A file that appears at its path when it is [committed](Self::commit). Dropping it without a commit
/// removes what was written.
///
/// A commit replaces the file at the target and does not change it. A symbolic link becomes a regular
/// file, and other hard links keep the old content. The new file gets the permission bits of the
/// replaced file (or of the file that a link leads to, if there is one). Owner, group and extended
/// attributes are those of a new file. If a file is replaced, only the owner can read the temporary
/// file before the commit.
///
/// [`save`](crate::save) and all conversions write their files in this way. It is public so that you can
/// write other files like this.
///
/// ```
/// use std::io::Write;
/// use tenarc::io::{AtomicFile, SyncLevel};
///
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("config.txt");
/// let new = AtomicFile::create(&path)?;
/// new.file().write_all(b"rate = 0.1")?;
/// assert!(!path.exists()); // not before the commit
/// new.commit(SyncLevel::Full)?;
/// assert_eq!(std::fs::read(&path)?, b"rate = 0.1");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct AtomicFile {
    file: File,
    temp: Temp,
    target: PathBuf,
    #[cfg_attr(not(unix), allow(dead_code))]
    replaced: Option<Metadata>,
}

impl fmt::Debug for AtomicFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AtomicFile").field("target", &self.target).finish_non_exhaustive()
    }
}

impl AtomicFile {
    /// Like [`create`](Self::create), but first removes the temporary files that killed processes have
    /// left behind for this target.
    ///
    /// # Errors
    ///
    /// If `target` has no file name, if something other than a regular file is there, or if no file can
    /// be created in its directory.
    pub fn replacing(target: &Path) -> Result<Self> {
        // A leftover does no harm, so errors are ignored.
        let _ = sweep(parent(target), target.file_name());
        Self::create(target)
    }

    /// Creates a temporary file in the directory of `target`.
    ///
    /// # Errors
    ///
    /// If `target` has no file name, if it is or links to something other than a regular file, or if no
    /// file can be created in its directory.
    pub fn create(target: &Path) -> Result<Self> {
        let name = name_of(target)?;
        let replaced = regular_file_at(target)?;
        let failed = |error| Error::io_at(error, "cannot create a temporary file beside", target);
        for _ in 0..ATTEMPTS {
            match Temp::create(target, name, replaced.is_some()) {
                Ok((temp, file)) => {
                    let target = target.to_path_buf();
                    return Ok(Self { file, temp, target, replaced });
                }
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::AlreadyExists | ErrorKind::ResourceBusy
                    ) => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Err(failed(io::Error::new(ErrorKind::AlreadyExists, "all names that were tried exist")))
    }

    /// The temporary file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Locks the file, so that no other process appends to it after the commit.
    pub(crate) fn lock(&self) -> Result<Locked> {
        let lock = || Locked::before_move(self.file.try_clone()?, &self.target);
        lock().map_err(|error| self.failed(error, "cannot lock a temporary file beside"))
    }

    /// Moves the file to the target.
    ///
    /// # Errors
    ///
    /// - The file cannot be synced or renamed. The target is unchanged.
    /// - The directory cannot be synced. The target is the new file, but may not survive a crash of the machine.
    pub fn commit(self, sync: SyncLevel) -> Result<()> {
        self.publish(sync, Temp::move_to)
    }

    /// Like [`commit`](Self::commit), but does not replace a file at the target. Returns whether there was none.
    ///
    /// On a file system without hard links, such as FAT, the file is copied to the target. Then a reader can find it
    /// incomplete, and so it can be after a crash. So this is only for short files.
    ///
    /// # Errors
    ///
    /// The same errors as [`commit`](Self::commit).
    pub(crate) fn commit_new(self, sync: SyncLevel) -> Result<bool> {
        let mut is_new = true;
        self.publish(sync, |temp, target| {
            is_new = temp.link_to(target)?;
            Ok(())
        })?;
        Ok(is_new)
    }

    /// Syncs the file, calls `publish` with it and its target, and syncs the directory.
    fn publish(
        self,
        sync: SyncLevel,
        publish: impl FnOnce(Temp, &Path) -> io::Result<()>,
    ) -> Result<()> {
        self.keep_mode()?;
        let Self { file, temp, target, .. } = self;
        let failed = |error, attempt| Error::io_at(error, attempt, &target);
        let mut dir = None;
        if sync == SyncLevel::Full {
            // Not repeated after an error: the first call may have dropped the dirty pages, and a
            // second call would report success.
            file.sync_all().map_err(|error| failed(error, "cannot sync"))?;
            // Opened before the rename, so that the target is unchanged if this fails.
            dir = Some(DurableDirectory::open(parent(&target))?);
        }
        publish(temp, &target).map_err(|error| failed(error, "cannot move a temporary file to"))?;
        dir.map_or(Ok(()), |dir| dir.sync())
    }

    #[cfg(unix)]
    fn keep_mode(&self) -> Result<()> {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};

        let Some(replaced) = &self.replaced else { return Ok(()) };
        // The setuid, setgid and sticky bits are not copied.
        let mode = replaced.mode() & 0o777;
        let failed = |error| self.failed(error, "cannot keep the mode of");
        // File systems without modes fail even if the mode would not change, so it is compared first.
        if retried(|| self.file.metadata()).map_err(failed)?.mode() & 0o777 != mode {
            let permissions = fs::Permissions::from_mode(mode);
            self.file.set_permissions(permissions).map_err(failed)?;
        }
        Ok(())
    }

    #[cfg(not(unix))]
    #[allow(clippy::unnecessary_wraps, clippy::unused_self)]
    fn keep_mode(&self) -> Result<()> {
        Ok(())
    }

    #[cold]
    fn failed(&self, error: io::Error, attempt: &str) -> Error {
        Error::io_at(error, attempt, &self.target)
    }

    /// Adds the path to an I/O error. `Interrupted` errors are returned as they are, for callers that
    /// retry.
    #[cold]
    fn write_failed(&self, error: io::Error) -> io::Error {
        match error.kind() {
            ErrorKind::Interrupted => error,
            _ => self.failed(error, "cannot write").into(),
        }
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes).map_err(|error| self.write_failed(error))
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.file.write_vectored(pieces).map_err(|error| self.write_failed(error))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The path of a temporary file. Dropping this removes the file, unless it was moved.
struct Temp {
    path: PathBuf,
    moved: bool,
    // The last field, so that it is dropped last: the guard must exist as long as the file.
    _guard: Guard,
}

impl Temp {
    /// Creates the guard and then the file. The guard is removed after the file. So a temporary file
    /// without a guard is always a leftover.
    fn create(target: &Path, name: &OsStr, private: bool) -> io::Result<(Self, File)> {
        let base = temp_name(name);
        let guard = Guard::create(&target.with_file_name(format!("{base}{GUARD_SUFFIX}")))?;
        let path = target.with_file_name(format!("{base}{SUFFIX}"));
        let file = retried(|| open_new(&path, private))?;
        Ok((Self { path, moved: false, _guard: guard }, file))
    }

    fn move_to(mut self, target: &Path) -> io::Result<()> {
        retried(|| fs::rename(&self.path, target))?;
        self.moved = true;
        Ok(())
    }

    /// Gives the file a second path, the target. `false` if there is a file already. The first path is removed when this
    /// is dropped.
    fn link_to(&self, target: &Path) -> io::Result<bool> {
        // A rename would replace a file that another process has created since the caller looked for it.
        match retried(|| fs::hard_link(&self.path, target)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            // The error for a file system without hard links depends on the system. If there is another reason, it is an
            // error of the copy, too.
            Err(_) => self.copy_to(target),
        }
    }

    /// Creates the target as a copy. `false` if there is a file already.
    fn copy_to(&self, target: &Path) -> io::Result<bool> {
        // While it is locked, no other process appends to the incomplete file.
        let locked = match Locked::wait_new(target) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(false),
            locked => locked?,
        };
        let mut file = &locked.file;
        file.write_all(&fs::read(&self.path)?)?;
        file.sync_all()?;
        Ok(true)
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        if !self.moved {
            // The caller reports why the save failed. If removing fails, a later sweep does it.
            let _ = retried(|| fs::remove_file(&self.path));
        }
    }
}

/// A locked file that shows that the writer lives. Dropping this removes the file and then unlocks it.
struct Guard(Locked);

impl Guard {
    fn create(path: &Path) -> io::Result<Self> {
        let created = Locked::try_new(path).map(Self);
        created.inspect_err(|error| {
            // If it existed already, it belongs to another writer.
            if error.kind() != ErrorKind::AlreadyExists {
                let _ = retried(|| fs::remove_file(path));
            }
        })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // If this fails, a later sweep removes the file.
        let _ = retried(|| fs::remove_file(self.0.path()));
    }
}

/// Removes the temporary files and guards of dead writers in `dir`: those for the target named `of`, or
/// for all targets if it is `None`. Returns the number of saves whose leftovers were removed.
///
/// Files that cannot be removed are left alone. If the file system has no locks, a file that has a
/// guard is left alone too.
///
/// # Errors
///
/// If the directory cannot be listed.
pub fn sweep(dir: &Path, of: Option<&OsStr>) -> Result<usize> {
    let failed = |error| Error::io_at(error, "cannot list", dir);
    let stem = of.map(stem);
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(dir).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let Some((base, of)) = name.to_str().and_then(parse_temp_name) else { continue };
        if stem.as_deref().is_none_or(|stem| stem == of) {
            found.insert(base.to_owned());
        }
    }
    Ok(found.iter().filter(|base| remove_stale(dir, base)).count())
}

fn remove_stale(dir: &Path, base: &str) -> bool {
    let guard = dir.join(format!("{base}{GUARD_SUFFIX}"));
    // The lock is held until both files are gone.
    let lock = match Locked::try_existing(&guard) {
        Ok(lock) if lock.is_held() => Some(lock),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        _ => return false,
    };
    let temp = dir.join(format!("{base}{SUFFIX}"));
    let is_file = fs::symlink_metadata(&temp).is_ok_and(|found| found.is_file());
    let removed = is_file && fs::remove_file(&temp).is_ok();
    removed | (lock.is_some() && fs::remove_file(&guard).is_ok())
}

/// Repeats a call as long as a signal interrupts it.
pub fn retried<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

#[cfg_attr(not(unix), allow(unused_variables))]
fn open_new(temp: &Path, private: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    if private {
        use std::os::unix::fs::OpenOptionsExt;

        options.mode(0o600);
    }
    options.open(temp)
}

/// The file name of a path. An error if the path ends without one.
fn name_of(target: &Path) -> Result<&OsStr> {
    // `file_name` also returns a name for `a/` and `a/.`, which are not paths of files.
    let ends_with =
        |name: &&OsStr| target.as_os_str().as_encoded_bytes().ends_with(name.as_encoded_bytes());
    target.file_name().filter(ends_with).ok_or_else(|| {
        let error = io::Error::new(ErrorKind::InvalidInput, "the path ends without a file name");
        Error::io_at(error, "cannot create", target)
    })
}

/// The metadata of the regular file at `target`, or of the file that a link there leads to. `None` if
/// there is no file.
fn regular_file_at(target: &Path) -> Result<Option<Metadata>> {
    let found = match retried(|| fs::symlink_metadata(target)) {
        Ok(link) if link.is_symlink() => fs::metadata(target).ok(),
        Ok(found) => Some(found),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(Error::io_at(error, "cannot look at", target)),
    };
    let refused = match &found {
        Some(found) if found.is_dir() => (ErrorKind::IsADirectory, "it is a directory"),
        Some(found) if !found.is_file() => (ErrorKind::InvalidInput, "it is not a regular file"),
        _ => return Ok(found),
    };
    Err(Error::io_at(io::Error::new(refused.0, refused.1), "cannot replace", target))
}

/// The directory a file is in.
pub fn parent(target: &Path) -> &Path {
    match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// A directory whose entries can be made durable.
pub struct DurableDirectory<'a> {
    path: &'a Path,
    #[cfg(unix)]
    handle: File,
}

#[cfg(unix)]
impl<'a> DurableDirectory<'a> {
    pub fn open(path: &'a Path) -> Result<Self> {
        let handle = File::open(path)
            .map_err(|error| Error::io_at(error, "cannot open for syncing the directory", path))?;
        Ok(Self { path, handle })
    }

    pub fn sync(&self) -> Result<()> {
        match self.handle.sync_all() {
            // Some network file systems cannot sync directories. Their servers store the entries.
            Err(error)
                if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) =>
            {
                Ok(())
            }
            result => {
                result.map_err(|error| Error::io_at(error, "cannot sync the directory", self.path))
            }
        }
    }
}

/// On other systems, directories cannot be synced. The journal of the file system keeps their entries.
#[cfg(not(unix))]
#[allow(clippy::unnecessary_wraps)]
impl<'a> DurableDirectory<'a> {
    pub fn open(path: &'a Path) -> Result<Self> {
        Ok(Self { path })
    }

    pub fn sync(&self) -> Result<()> {
        let _ = self.path;
        Ok(())
    }
}

/// A hidden name of the form `.{name}.{eight characters}`. With a suffix, [`parse_temp_name`] recognises
/// it.
fn temp_name(target: &OsStr) -> String {
    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    // Every `RandomState` gives a different number. The system seeds them once per thread.
    let random: [u8; UNIQUE] = RandomState::new().build_hasher().finish().to_le_bytes();
    let unique = random.map(|byte| char::from(ALPHABET[usize::from(byte % 32)]));
    format!(".{}.{}", stem(target), String::from_iter(unique))
}

/// The start of the target's name, so that people can see what a temporary file belongs to.
fn stem(target: &OsStr) -> String {
    let mut stem = target.to_string_lossy().into_owned();
    let end = (0..=MAX_STEM).rfind(|&at| stem.is_char_boundary(at)).unwrap_or(0);
    stem.truncate(end);
    stem
}

/// Splits the name of a temporary file or guard: returns the name without its suffix, and the part of
/// the target's name in it. `None` for other names.
fn parse_temp_name(name: &str) -> Option<(&str, &str)> {
    let base = name.strip_suffix(SUFFIX).or_else(|| name.strip_suffix(GUARD_SUFFIX))?;
    let (stem, unique) = base.strip_prefix('.')?.rsplit_once('.')?;
    (unique.len() == UNIQUE && unique.bytes().all(|byte| byte.is_ascii_alphanumeric()))
        .then_some((base, stem))
}

// Miri has no file system.
#[cfg(all(test, not(miri)))]
mod tests;
