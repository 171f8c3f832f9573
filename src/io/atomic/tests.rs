use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tempfile::TempDir;

use super::*;

fn dir() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn names(dir: &Path) -> Vec<String> {
    let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<String> = fs::read_dir(dir).unwrap().map(name).collect();
    names.sort();
    names
}

fn put(target: &Path, content: &[u8]) -> Result<()> {
    let mut file = AtomicFile::create(target)?;
    file.write_all(content).unwrap();
    file.commit(SyncLevel::Full)
}

#[test]
fn appears_at_commit_only() {
    let dir = dir();
    let target = dir.path().join("model");
    for (level, content) in [(SyncLevel::Full, "first"), (SyncLevel::Off, "second")] {
        let before = fs::read(&target).ok();
        let mut file = AtomicFile::create(&target).unwrap();
        file.write_all(content.as_bytes()).unwrap();
        assert_eq!(fs::read(&target).ok(), before);
        file.commit(level).unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), content);
        assert_eq!(names(dir.path()), ["model"]);
    }
}

#[test]
fn leaves_nothing_when_dropped_or_unwound() {
    let dir = dir();
    let target = dir.path().join("model");
    put(&target, b"old").unwrap();

    let mut file = AtomicFile::create(&target).unwrap();
    file.write_all(b"new").unwrap();
    // The old file, the new one and its guard.
    assert_eq!(names(dir.path()).len(), 3);
    drop(file);
    assert_eq!(names(dir.path()), ["model"]);

    let unwound = catch_unwind(AssertUnwindSafe(|| {
        let mut file = AtomicFile::create(&target).unwrap();
        file.write_all(b"new").unwrap();
        panic!("while writing");
    }));
    assert!(unwound.is_err());
    assert_eq!(names(dir.path()), ["model"]);
    assert_eq!(fs::read(&target).unwrap(), b"old");
}

#[test]
fn a_failed_commit_leaves_the_target_and_nothing_else() {
    let dir = dir();
    let target = dir.path().join("model");
    let mut file = AtomicFile::create(&target).unwrap();
    file.write_all(b"new").unwrap();
    // It has become a directory in the meantime.
    fs::create_dir(&target).unwrap();
    fs::write(target.join("inside"), "").unwrap();
    let error = file.commit(SyncLevel::Full).unwrap_err().to_string();
    assert!(error.contains(target.to_str().unwrap()), "{error}");
    assert_eq!(names(dir.path()), ["model"]);
}

#[test]
fn says_why_a_target_cannot_be_one() {
    let dir = dir();
    let at = |name: &str| dir.path().join(name);
    fs::create_dir(at("directory")).unwrap();
    fs::write(at("file"), "").unwrap();
    for (target, why) in [
        (at("directory"), "cannot replace `.*`: it is a directory"),
        #[cfg(unix)]
        (at("file/below"), "cannot look at `"),
        (at("missing/model"), "cannot create a temporary file beside `"),
        (at("model/"), "cannot create `.*`: the path ends without a file name"),
        (at("model/."), "the path ends without a file name"),
        (at(".."), "the path ends without a file name"),
        (PathBuf::new(), "cannot create ``: the path ends without a file name"),
        (PathBuf::from("/"), "the path ends without a file name"),
    ] {
        let error = AtomicFile::create(&target).err().unwrap();
        assert_eq!(error.category(), crate::error::Category::Io);
        let error = error.to_string();
        assert!(error.contains(&format!("`{}`", target.display())), "{error}");
        for part in why.split(".*") {
            assert!(error.contains(part), "{error}");
        }
    }
    assert_eq!(names(dir.path()), ["directory", "file"]);
}

#[test]
fn any_name_will_do() {
    let dir = dir();
    // Windows has no names with control characters.
    let odd = if cfg!(windows) { "a b" } else { "a b\n\u{1b}[31m" };
    for name in ["x".repeat(255), "é".repeat(127), ".hidden".into(), odd.into()] {
        let target = dir.path().join(&name);
        let mut file = AtomicFile::create(&target).unwrap();
        file.write_all(b"new").unwrap();
        for name in names(dir.path()) {
            assert!(name.len() <= 140, "{name}");
        }
        file.commit(SyncLevel::Full).unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"new");
        fs::remove_file(&target).unwrap();
    }
    assert!(names(dir.path()).is_empty());
}

#[cfg(unix)]
mod unix {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::os::unix::net::UnixListener;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
    }

    fn put_with_mode(path: &Path, bits: u32) {
        fs::write(path, "old").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(bits)).unwrap();
    }

    #[test]
    fn takes_names_that_are_not_unicode() {
        let dir = dir();
        let target = dir.path().join(OsStr::from_bytes(b"model-\xff\xfe"));
        put(&target, b"new").unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"new");
        drop(AtomicFile::create(&target).unwrap());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn keeps_the_mode_of_what_it_replaces() {
        let dir = dir();
        let target = dir.path().join("model");
        File::create(dir.path().join("other")).unwrap();
        put(&target, b"new").unwrap();
        assert_eq!(mode(&target), mode(&dir.path().join("other")));

        for (before, after) in
            [(0o600, 0o600), (0o644, 0o644), (0o666, 0o666), (0o440, 0o440), (0o4755, 0o755)]
        {
            put_with_mode(&target, before);
            let mut file = AtomicFile::create(&target).unwrap();
            file.write_all(b"new").unwrap();
            assert_eq!(mode(&file.temp.path), 0o600);
            file.commit(SyncLevel::Full).unwrap();
            assert_eq!(mode(&target), after, "{before:o}");
            fs::remove_file(&target).unwrap();
        }
    }

    #[test]
    fn replaces_links_and_does_not_follow_them() {
        let dir = dir();
        let (link, file) = (dir.path().join("link"), dir.path().join("file"));
        put_with_mode(&file, 0o600);
        symlink(&file, &link).unwrap();
        put(&link, b"new").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"old");
        assert!(fs::symlink_metadata(&link).unwrap().is_file());
        assert_eq!(mode(&link), 0o600);

        fs::remove_file(&link).unwrap();
        symlink("nowhere", &link).unwrap();
        put(&link, b"new").unwrap();
        assert_eq!(names(dir.path()), ["file", "link"]);

        fs::remove_file(&link).unwrap();
        symlink(dir.path(), &link).unwrap();
        let error = put(&link, b"new").unwrap_err().to_string();
        assert!(error.ends_with("it is a directory"), "{error}");
    }

    #[test]
    fn replaces_no_sockets_and_devices() {
        let dir = dir();
        let socket = dir.path().join("socket");
        let _listener = UnixListener::bind(&socket).unwrap();
        for target in [&socket, Path::new("/dev/null")] {
            let error = put(target, b"new").unwrap_err().to_string();
            assert!(error.ends_with("it is not a regular file"), "{error}");
        }
    }

    #[test]
    fn sweeps_no_links() {
        let dir = dir();
        fs::write(dir.path().join("file"), "").unwrap();
        symlink("file", dir.path().join(".model.abcdefgh.tenarc-tmp")).unwrap();
        assert_eq!(sweep(dir.path(), None).unwrap(), 0);
        assert_eq!(names(dir.path()).len(), 2);
    }
}

#[test]
fn sweeps_what_the_dead_left_and_nothing_else() {
    let dir = dir();
    let at = |name: &str| dir.path().join(name);
    // Left behind by writers that died while writing, between the rename and the end, and before writing.
    let stale = [
        ".model.abcdefgh.tenarc-tmp",
        ".model.abcdefgh.tenarc-lock",
        ".model.bbcdefgh.tenarc-tmp",
        ".model.cbcdefgh.tenarc-lock",
        ".model.a.abcdefgh.tenarc-tmp",
    ];
    let others = [
        "model.abcdefgh.tenarc-tmp",
        ".model.abcdefg.tenarc-tmp",
        ".model.abc/efgh.tenarc-tmp",
        ".model.abcdefgh.tenarc-tmp.bak",
        "model.abcdefgh.tenarc-lock",
        ".model.abcdefg.tenarc-lock",
        ".abcdefgh.tenarc-tmp",
        "model",
    ];
    for name in stale.iter().chain(&others) {
        let path = at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    fs::create_dir(at(".dir.abcdefgh.tenarc-tmp")).unwrap();
    let before = names(dir.path()).len();
    let mut live = AtomicFile::create(&at("model")).unwrap();

    assert_eq!(sweep(dir.path(), Some("other".as_ref())).unwrap(), 0);
    assert_eq!(sweep(dir.path(), Some("model".as_ref())).unwrap(), 3);
    assert!(stale[..4].iter().all(|name| !at(name).exists()));
    assert!(at(stale[4]).exists());
    assert_eq!(sweep(dir.path(), None).unwrap(), 1);
    assert_eq!(sweep(dir.path(), None).unwrap(), 0);

    live.write_all(b"new").unwrap();
    live.commit(SyncLevel::Full).unwrap();
    assert_eq!(fs::read(at("model")).unwrap(), b"new");
    assert_eq!(names(dir.path()).len(), before - stale.len());
    let error = sweep(&at("missing"), None).unwrap_err().to_string();
    assert!(error.starts_with("cannot list `"), "{error}");
}

/// The renamed file is never locked: at no moment is the new file both at its place and locked.
#[test]
fn the_temporary_file_is_not_locked_and_not_swept() {
    let dir = dir();
    let target = dir.path().join("model");
    let mut file = AtomicFile::create(&target).unwrap();
    file.write_all(b"new").unwrap();
    let other = Locked::try_existing(&file.temp.path).unwrap();
    assert!(other.is_held());
    drop(other);
    assert_eq!(sweep(dir.path(), None).unwrap(), 0);
    file.commit(SyncLevel::Off).unwrap();
    assert_eq!(names(dir.path()), ["model"]);
}

#[test]
fn one_whole_writer_wins_whoever_sweeps_meanwhile() {
    let dir = dir();
    let target = dir.path().join("model");
    let contents: Vec<Vec<u8>> = (0..3u8).map(|id| vec![id; 10_000 + usize::from(id)]).collect();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let writers: Vec<_> = contents
            .iter()
            .map(|content| {
                let write = || {
                    for _ in 0..200 {
                        let mut file = AtomicFile::create(&target).unwrap();
                        file.write_all(content).unwrap();
                        file.commit(SyncLevel::Off).unwrap();
                    }
                };
                scope.spawn(write)
            })
            .collect();
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    sweep(dir.path(), None).unwrap();
                }
            });
        }
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                if let Ok(found) = fs::read(&target) {
                    assert!(contents.contains(&found));
                }
            }
        });
        let results: Vec<_> = writers.into_iter().map(thread::ScopedJoinHandle::join).collect();
        done.store(true, Ordering::Relaxed);
        assert!(results.iter().all(thread::Result::is_ok));
    });
    assert_eq!(names(dir.path()), ["model"]);
}
