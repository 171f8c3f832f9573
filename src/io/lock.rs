//! Locks on files. No other module takes one.
//!
//! All locks are advisory locks of the operating system on a whole file. They end with the process
//! that holds them, however it ends.
//!
//! | Who | locks which file | how | if it is locked already |
//! |---|---|---|---|
//! | `append`, `recover` | the archive | exclusive | error: another writer has it open |
//! | `append`, which creates an archive by copying it | the archive, until it is complete | exclusive | waits |
//! | a save | the guard beside its temporary file | exclusive | takes another name |
//! | the sweep of leftovers | each guard | exclusive | the writer lives: leaves the file alone |
//! | a save or removal in a directory of checkpoints | `.tenarc-saving.lock` there | exclusive | waits |
//! | a check of the manifest of such a directory | the same file | shared | waits |
//!
//! Readers of archives take no lock. A save does not lock the file that it writes, so that another
//! process that finds the file at its path can append to it immediately. There is one exception: if
//! the writer of a new archive continues after its first commit, it locks the file before the file is
//! moved to its path, as if it had opened the file for appending.
//!
//! **Waiting.** A process only waits for locks that are held for the duration of one save. An archive
//! can be open for appending for hours, so a second writer does not wait and gets an error with
//! [`ErrorKind::ResourceBusy`].
//!
//! **Files that are replaced.** A file is first opened and then locked. In between, another process can
//! rename another file to its path, or remove it. So after locking, the path is looked up again. If it
//! leads to another file, everything is repeated with that file. Outside Unix, files have no number by
//! which they can be compared, so only a removal is noticed. Only regular files are opened, and links
//! are not followed.
//!
//! **File systems without locks** (some network file systems). Writers continue without a lock, so only
//! one process may write at a time. The sweep removes nothing that has a guard. Any other failure to
//! lock is an error.
//!
//! **Children.** A forked process shares the locks of its parent. So dropping a lock releases it
//! explicitly. If it only closed the file, the child would keep the lock.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::atomic::retried;

/// An open file. If its file system has locks, the file is locked until this is dropped.
#[derive(Debug)]
pub struct Locked {
    pub file: File,
    path: PathBuf,
    held: bool,
}

impl Locked {
    /// Locks an existing file. Fails if it is locked already.
    pub fn try_existing(path: &Path) -> io::Result<Self> {
        Self::acquire(path, open_existing, try_exclusive)
    }

    /// Creates a file and locks it. Fails if the file exists, or if a sweep has locked it first.
    pub fn try_new(path: &Path) -> io::Result<Self> {
        Self::acquire(path, create, try_exclusive)
    }

    /// Creates a file and waits for an exclusive lock on it. Fails if the file exists.
    pub fn wait_new(path: &Path) -> io::Result<Self> {
        Self::acquire(path, create, File::lock)
    }

    /// Waits for an exclusive lock on a file. Creates the file if it does not exist.
    pub fn wait(path: &Path) -> io::Result<Self> {
        Self::acquire(path, open_or_create, File::lock)
    }

    /// Waits for a shared lock on an existing file.
    #[cfg(feature = "sha256")]
    pub fn wait_shared(path: &Path) -> io::Result<Self> {
        // Opened only for reading, because the file system may be read-only.
        let open = |path: &Path| open_regular(path, OpenOptions::new().read(true));
        Self::acquire(path, open, File::lock_shared)
    }

    /// Locks a file before it is moved to `path`.
    pub fn before_move(file: File, path: &Path) -> io::Result<Self> {
        let held = or_without(retried(|| try_exclusive(&file)))?;
        Ok(Self { file, path: path.to_owned(), held })
    }

    fn acquire(
        path: &Path,
        open: impl Fn(&Path) -> io::Result<File>,
        lock: impl Fn(&File) -> io::Result<()>,
    ) -> io::Result<Self> {
        loop {
            let file = open(path)?;
            let held = or_without(retried(|| lock(&file)))?;
            let locked = Self { file, path: path.to_owned(), held };
            if locked.is_at_its_path()? {
                return Ok(locked);
            }
        }
    }

    /// Whether the file is locked. `false` if the file system has no locks.
    pub fn is_held(&self) -> bool {
        self.held
    }

    /// The path at which the file was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file is still the one at its path.
    pub fn is_at_its_path(&self) -> io::Result<bool> {
        match retried(|| is_at(&self.file, &self.path)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            result => result,
        }
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        if self.held {
            // If this fails, closing the file releases the lock, unless a child has it too.
            let _ = self.file.unlock();
        }
    }
}

fn try_exclusive(file: &File) -> io::Result<()> {
    file.try_lock().map_err(|error| match io::Error::from(error) {
        error if error.kind() == ErrorKind::WouldBlock => {
            io::Error::new(ErrorKind::ResourceBusy, "another writer has it open")
        }
        error => error,
    })
}

/// Returns true if locking succeeded, and false if the file system has no locks. Other errors are
/// returned.
fn or_without(result: io::Result<()>) -> io::Result<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(error) if means_no_locks(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

fn means_no_locks(error: &io::Error) -> bool {
    // NFS without its lock service reports `ENOLCK`.
    #[cfg(unix)]
    if matches!(error.raw_os_error(), Some(libc::ENOLCK | libc::EOPNOTSUPP)) {
        return true;
    }
    error.kind() == ErrorKind::Unsupported
}

/// Opens a regular file. Does not follow links.
fn open_regular(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    // Checked before opening, because opening a device can have side effects.
    if !retried(|| fs::symlink_metadata(path))?.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "it is not a regular file"));
    }
    // The file may have been replaced by a link or a pipe since the check.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(options, libc::O_NOFOLLOW | libc::O_NONBLOCK);
    retried(|| options.open(path))
}

fn open_existing(path: &Path) -> io::Result<File> {
    open_regular(path, OpenOptions::new().read(true).write(true))
}

fn create(path: &Path) -> io::Result<File> {
    retried(|| OpenOptions::new().read(true).write(true).create_new(true).open(path))
}

/// Opens a regular file for reading and writing, or creates it. Does not follow links.
pub fn open_or_create(path: &Path) -> io::Result<File> {
    loop {
        match open_existing(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            result => return result,
        }
        match create(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            result => return result,
        }
    }
}

#[cfg(unix)]
pub fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;

    let (opened, found) = (file.metadata()?, fs::symlink_metadata(path)?);
    Ok(opened.dev() == found.dev() && opened.ino() == found.ino())
}

#[cfg(not(unix))]
pub fn is_at(_: &File, path: &Path) -> io::Result<bool> {
    Ok(fs::symlink_metadata(path)?.is_file())
}

// Miri has no file system.
#[cfg(all(test, not(miri)))]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn file() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, "first").unwrap();
        (dir, path)
    }

    #[test]
    fn the_second_is_told_until_the_first_is_gone() {
        let (_dir, path) = file();
        let first = Locked::try_existing(&path).unwrap();
        let error = Locked::try_existing(&path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ResourceBusy);
        assert_eq!(error.to_string(), "another writer has it open");
        drop(first);
        Locked::try_existing(&path).unwrap();
    }

    /// A clone of the handle acts like the handle of a forked child.
    #[test]
    fn a_lock_ends_although_another_handle_is_open() {
        let (_dir, path) = file();
        let first = Locked::try_existing(&path).unwrap();
        let _child = first.file.try_clone().unwrap();
        drop(first);
        Locked::try_existing(&path).unwrap();
    }

    #[test]
    fn shared_locks_go_together_and_keep_writers_out() {
        let (_dir, path) = file();
        let open = |path: &Path| open_regular(path, OpenOptions::new().read(true));
        let shared = || Locked::acquire(&path, open, File::lock_shared).unwrap();
        let (_first, _second) = (shared(), shared());
        let error = Locked::try_existing(&path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ResourceBusy);
    }

    /// The first lock is on a file that is no longer at the path.
    #[cfg(unix)]
    #[test]
    fn a_file_that_is_replaced_before_it_is_locked_is_noticed() {
        let (dir, path) = file();
        let other = dir.path().join("other");
        fs::write(&other, "second").unwrap();
        let rounds = Cell::new(0);
        let lock = |file: &File| {
            if rounds.replace(rounds.get() + 1) == 0 {
                fs::rename(&other, &path)?;
            }
            try_exclusive(file)
        };
        let locked = Locked::acquire(&path, open_existing, lock).unwrap();
        assert_eq!(rounds.get(), 2);
        assert_eq!(io::read_to_string(&locked.file).unwrap(), "second");
        assert!(locked.is_at_its_path().unwrap());
        fs::remove_file(&path).unwrap();
        assert!(!locked.is_at_its_path().unwrap());
    }

    #[test]
    fn a_file_that_is_removed_before_it_is_locked_is_noticed() {
        let (_dir, path) = file();
        let lock = |file: &File| {
            fs::remove_file(&path)?;
            try_exclusive(file)
        };
        let error = Locked::acquire(&path, open_existing, lock).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }

    #[test]
    fn only_where_there_are_no_locks_it_goes_without() {
        let (_dir, path) = file();
        let failing = |error: fn() -> io::Error| {
            Locked::acquire(&path, open_existing, move |_: &File| Err(error()))
        };
        assert!(!failing(|| ErrorKind::Unsupported.into()).unwrap().is_held());
        #[cfg(unix)]
        assert!(!failing(|| io::Error::from_raw_os_error(libc::ENOLCK)).unwrap().is_held());
        let error = failing(|| ErrorKind::PermissionDenied.into()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    }

    #[cfg(unix)]
    #[test]
    fn links_and_directories_are_refused() {
        let (dir, path) = file();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        for path in [&link, dir.path()] {
            for error in [Locked::try_existing(path).unwrap_err(), Locked::wait(path).unwrap_err()]
            {
                assert_eq!(error.to_string(), "it is not a regular file");
            }
        }
    }
}
