//! Files that appear whole or not at all.
//!
//! A temporary file beside the target is written, synced and renamed over it. Beside it stands a guard,
//! an empty file that is locked as long as the writer lives: so [`sweep`] tells leftovers of dead
//! processes from files that are being written. The temporary file itself is not locked, as it would
//! still be for a moment after the rename.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File, Metadata, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, ErrorKind, IoSlice, Write};
use std::path::{Path, PathBuf};

use super::lock::Locked;
use crate::error::{Error, Result};

/// How far a save goes to survive a crash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SyncLevel {
    /// A crash of the process leaves the old file or the new one, whole. After a crash of the
    /// machine or a loss of power the file may be empty or torn.
    Off,
    /// File and directory are synced before the save returns: a crash of the machine, too, leaves
    /// the old file or the new one, and the new one once the save has returned.
    #[default]
    Full,
}

/// How the name of every temporary file ends.
const SUFFIX: &str = ".tenarc-tmp";

/// How the name of its guard ends, which is the same otherwise.
const GUARD_SUFFIX: &str = ".tenarc-lock";

/// Bytes of the target's name that appear in the temporary one; some file systems take no more than
/// 143 for a name.
const MAX_STEM: usize = 100;

/// Characters that tell temporary files of one target apart.
const UNIQUE: usize = 8;

/// A name is taken only if another one of 2^40 is the same, or if a sweep was faster.
const ATTEMPTS: usize = 100;

/// A file that takes its place when it is [committed](Self::commit), and leaves nothing behind when
/// it is dropped.
///
/// What stands at the target is replaced, not changed: a symbolic link becomes a file, other hard
/// links keep the old content. The mode of the file replaced is kept (of the file a link leads to,
/// if there is one); owner, group and extended attributes are those of a new file. Until it is
/// committed, a file that replaces another one is readable by its owner only.
///
/// So [`save`](crate::save) and all conversions write files; here it is for files of other kinds.
///
/// ```
/// use std::io::Write;
/// use tenarc::io::{AtomicFile, SyncLevel};
///
/// # let dir = std::env::temp_dir().join(format!("tenarc-doc-atomic-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir)?;
/// let mut file = AtomicFile::replacing(&dir.join("notes.txt"))?;
/// file.write_all(b"whole")?;
/// file.commit(SyncLevel::Full)?;
/// # std::fs::remove_dir_all(&dir)?;
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
    /// As [`create`](Self::create), and removes what saves to this target left behind that were killed.
    ///
    /// # Errors
    ///
    /// As [`create`](Self::create).
    pub fn replacing(target: &Path) -> Result<Self> {
        // Not worth failing for.
        let _ = sweep(parent(target), target.file_name());
        Self::create(target)
    }

    /// Opens a temporary file beside `target`.
    ///
    /// # Errors
    ///
    /// If `target` has no file name, is or leads to something other than a regular file, or if no
    /// file can be created beside it.
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
        Err(failed(io::Error::new(ErrorKind::AlreadyExists, "every name tried was taken")))
    }

    /// The temporary file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Locks the file, so that nobody else appends to it once it is committed.
    pub(crate) fn lock(&self) -> Result<Locked> {
        let lock = || Locked::before_move(self.file.try_clone()?, &self.target);
        lock().map_err(|error| self.failed(error, "cannot lock a temporary file beside"))
    }

    /// Puts the file where the target is.
    ///
    /// # Errors
    ///
    /// If it cannot be synced or renamed: then the target is as it was. If the directory cannot be
    /// synced the target is the new file, but may not survive a crash of the machine.
    pub fn commit(self, sync: SyncLevel) -> Result<()> {
        self.keep_mode()?;
        let Self { file, temp, target, .. } = self;
        let failed = |error, attempt| Error::io_at(error, attempt, &target);
        let mut dir = None;
        if sync == SyncLevel::Full {
            // A second try would report success for pages that the first has dropped.
            file.sync_all().map_err(|error| failed(error, "cannot sync"))?;
            // Before the rename: where it cannot be opened, nothing has happened yet.
            dir = Some(Directory::open(parent(&target))?);
        }
        temp.move_to(&target).map_err(|error| failed(error, "cannot move a temporary file to"))?;
        dir.map_or(Ok(()), |dir| dir.sync())
    }

    #[cfg(unix)]
    fn keep_mode(&self) -> Result<()> {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};

        let Some(replaced) = &self.replaced else { return Ok(()) };
        // Not setuid and its like, which no change of the content would have kept either.
        let mode = replaced.mode() & 0o777;
        let failed = |error| self.failed(error, "cannot keep the mode of");
        // File systems without modes refuse to set what all their files have.
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

    /// For callers that know only the I/O error: the kind stays, for those that retry.
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

/// The name of a temporary file, which is removed when this is dropped.
struct Temp {
    path: PathBuf,
    moved: bool,
    // Dropped last.
    _guard: Guard,
}

impl Temp {
    /// The guard is there before the file and is removed after it: a temporary file without a guard is
    /// a leftover.
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
}

impl Drop for Temp {
    fn drop(&mut self) {
        if !self.moved {
            // Whatever made the save fail is told already; a leftover is swept.
            let _ = retried(|| fs::remove_file(&self.path));
        }
    }
}

/// A locked file that says that a writer lives. It is removed when this is dropped, and unlocked then.
struct Guard(Locked);

impl Guard {
    fn create(path: &Path) -> io::Result<Self> {
        let created = Locked::try_new(path).map(Self);
        created.inspect_err(|error| {
            // Otherwise the file is another writer's.
            if error.kind() != ErrorKind::AlreadyExists {
                let _ = retried(|| fs::remove_file(path));
            }
        })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // A leftover is swept.
        let _ = retried(|| fs::remove_file(self.0.path()));
    }
}

/// Removes temporary files in `dir` whose writers are dead, of the target called `of` or of all, and
/// their guards. Returns of how many saves it removed leftovers.
///
/// Files that cannot be removed are left alone, as are all where the file system has no locks.
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

/// Runs a call until no signal interrupts it.
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

/// The last part of a path that can name a file.
fn name_of(target: &Path) -> Result<&OsStr> {
    // `file_name` sees a name in `a/` and in `a/.`, too.
    let ends_with =
        |name: &&OsStr| target.as_os_str().as_encoded_bytes().ends_with(name.as_encoded_bytes());
    target.file_name().filter(ends_with).ok_or_else(|| {
        let error = io::Error::new(ErrorKind::InvalidInput, "the path ends without a file name");
        Error::io_at(error, "cannot create", target)
    })
}

/// What is known about the file at `target`, or where the link there leads; `None` if there is none.
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
pub struct Directory<'a> {
    path: &'a Path,
    #[cfg(unix)]
    handle: File,
}

#[cfg(unix)]
impl<'a> Directory<'a> {
    pub fn open(path: &'a Path) -> Result<Self> {
        let handle = File::open(path)
            .map_err(|error| Error::io_at(error, "cannot open, to sync it, the directory", path))?;
        Ok(Self { path, handle })
    }

    pub fn sync(&self) -> Result<()> {
        match self.handle.sync_all() {
            // Some network file systems cannot: their servers keep the entries.
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

/// Elsewhere directories cannot be synced, and the file system's journal keeps their entries.
#[cfg(not(unix))]
#[allow(clippy::unnecessary_wraps)]
impl<'a> Directory<'a> {
    pub fn open(path: &'a Path) -> Result<Self> {
        Ok(Self { path })
    }

    pub fn sync(&self) -> Result<()> {
        let _ = self.path;
        Ok(())
    }
}

/// `.{name}.{eight characters}`: hidden, and recognised by [`parse_temp_name`] with a suffix.
fn temp_name(target: &OsStr) -> String {
    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    // Seeded by the system for every thread, and another number every time.
    let random: [u8; UNIQUE] = RandomState::new().build_hasher().finish().to_le_bytes();
    let unique = random.map(|byte| char::from(ALPHABET[usize::from(byte % 32)]));
    format!(".{}.{}", stem(target), String::from_iter(unique))
}

/// As much of the target's name as fits, for people.
fn stem(target: &OsStr) -> String {
    let mut stem = target.to_string_lossy().into_owned();
    let end = (0..=MAX_STEM).rfind(|&at| stem.is_char_boundary(at)).unwrap_or(0);
    stem.truncate(end);
    stem
}

/// The name of a temporary file or a guard without its suffix, and the stem in it; `None` for other
/// names.
fn parse_temp_name(name: &str) -> Option<(&str, &str)> {
    let base = name.strip_suffix(SUFFIX).or_else(|| name.strip_suffix(GUARD_SUFFIX))?;
    let (stem, unique) = base.strip_prefix('.')?.rsplit_once('.')?;
    (unique.len() == UNIQUE && unique.bytes().all(|byte| byte.is_ascii_alphanumeric()))
        .then_some((base, stem))
}

// Miri has no file system.
#[cfg(all(test, not(miri)))]
mod tests;
