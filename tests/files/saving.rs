//! J 77, L 84, N 92 to 94, O 98, 99, 102: a save puts the whole file in place, or changes nothing.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use ndarray::Array1;
use serde::{Serialize, Serializer, ser};
use tenarc::archive::SaveOptions;
use tenarc::error::Category;
use tenarc::{Map, OArchive, Tensor};

use crate::child;
use crate::support::{Dir, Record, name, numbers, read, record, unsynced};

const NAME: &str = "a.tenarc";

#[derive(Clone, Copy)]
enum Fails {
    /// In the walk that writes the metadata, or in the one that writes the tensors.
    Walk(usize),
    Panics(usize),
}

/// A tensor in a buffer, and then a failure in one of the two walks.
struct Faulty {
    fails: Fails,
    walks: std::cell::Cell<usize>,
    len: usize,
}

impl Faulty {
    fn new(fails: Fails, len: usize) -> Self {
        Self { fails, walks: 0.into(), len }
    }
}

impl Serialize for Faulty {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use ser::SerializeTuple as _;

        let walk = self.walks.get();
        self.walks.set(walk + 1);
        let mut tuple = serializer.serialize_tuple(2)?;
        tuple.serialize_element(&Tensor(Array1::<f32>::ones(self.len)))?;
        match self.fails {
            Fails::Walk(at) if at == walk => return Err(ser::Error::custom("cannot be told")),
            Fails::Panics(at) if at == walk => panic!("a value that panics"),
            _ => {}
        }
        tuple.serialize_element(&0)?;
        tuple.end()
    }
}

/// All ways in which a value fails; lengths below and above what is written in one go.
fn all_faults() -> Vec<(Fails, usize)> {
    let fails = [Fails::Walk(0), Fails::Walk(1), Fails::Panics(0), Fails::Panics(1)];
    let lens = [1000, 100_000];
    fails.into_iter().flat_map(|fails| lens.map(|len| (fails, len))).collect()
}

fn saved(path: &Path, fails: Fails, len: usize) -> bool {
    let value = Faulty::new(fails, len);
    matches!(catch_unwind(AssertUnwindSafe(|| tenarc::save(path, &value))), Ok(Ok(())))
}

#[test]
fn values_that_fail_or_panic_leave_the_old_archive_and_no_other_file() {
    let dir = Dir::new();
    let path = dir.at(NAME);
    for (fails, len) in all_faults() {
        assert!(!saved(&path, fails, len));
        assert!(dir.names().is_empty());
    }
    tenarc::save(&path, &record(1, 600)).unwrap();
    let old = fs::read(&path).unwrap();
    for (fails, len) in all_faults() {
        assert!(!saved(&path, fails, len));
        assert_eq!(fs::read(&path).unwrap(), old);
        dir.holds_only(NAME);
    }
}

#[test]
fn an_archive_that_is_not_finished_leaves_the_old_one() {
    let dir = Dir::new();
    let path = dir.at(NAME);
    tenarc::save(&path, &record(1, 600)).unwrap();
    let old = fs::read(&path).unwrap();
    let mut out = OArchive::create(&path, SaveOptions::default()).unwrap();
    assert_eq!(fs::read(&path).unwrap(), old);
    out.save(&record(2, 100_000)).unwrap();
    assert_eq!(fs::read(&path).unwrap(), old);
    drop(out);
    assert_eq!(fs::read(&path).unwrap(), old);
    dir.holds_only(NAME);
}

#[test]
fn a_new_archive_goes_on_after_values_that_fail_and_stops_after_one_that_panics() {
    let dir = Dir::new();
    let path = dir.at(NAME);
    for len in [1000, 100_000] {
        let mut out = OArchive::create(&path, unsynced()).unwrap();
        // Before and behind the places where blocks of the directory are written.
        for number in 0..130 {
            for walk in [0, 1] {
                let before = out.position();
                if number % 21 == 0 || (60..67).contains(&number) {
                    assert!(out.save(&Faulty::new(Fails::Walk(walk), len)).is_err());
                }
                assert_eq!(out.position(), before);
            }
            out.save_as(&name(number), &record(number, 300)).unwrap();
        }
        out.finish().unwrap();
        assert_eq!(read(&path), (0..130).collect::<Vec<u32>>());
    }
    let old = fs::read(&path).unwrap();
    let mut out = OArchive::create(&path, unsynced()).unwrap();
    let value = Faulty::new(Fails::Panics(1), 1000);
    assert!(catch_unwind(AssertUnwindSafe(|| out.save(&value).map(drop))).is_err());
    assert!(out.save(&1).is_err());
    assert!(out.commit().is_err());
    assert!(out.finish().is_err());
    assert_eq!(fs::read(&path).unwrap(), old);
    dir.holds_only(NAME);
}

#[test]
fn a_new_archive_takes_its_place_at_the_first_commit_and_keeps_what_was_committed() {
    let dir = Dir::new();
    let path = dir.at(NAME);
    tenarc::save(&path, &record(9, 600)).unwrap();
    let mut out = OArchive::create(&path, SaveOptions::default()).unwrap();
    out.save_as("n0", &record(0, 600)).unwrap().commit().unwrap();
    assert_eq!(read(&path), [0]);
    out.save_as("n1", &record(1, 600)).unwrap().commit().unwrap();
    assert_eq!(read(&path), [0, 1]);
    let committed = fs::read(&path).unwrap();
    assert!(OArchive::append(&path).is_err(), "it is open for writing");
    out.save(&record(2, 100_000)).unwrap();
    drop(out);
    assert_eq!(fs::read(&path).unwrap(), committed);
    dir.holds_only(NAME);
}

#[test]
fn archives_of_nothing_are_whole() {
    let dir = Dir::new();
    let path = dir.at(NAME);
    OArchive::create(&path, SaveOptions::default()).unwrap().finish().unwrap();
    assert_eq!(read(&path), []);
    OArchive::append(&path).unwrap().finish().unwrap();
    assert_eq!(read(&path), []);
    crate::support::append(&path, [5], 600);
    assert_eq!(read(&path), [5]);
}

#[test]
fn places_where_no_file_can_be() {
    let dir = Dir::new();
    fs::create_dir(dir.at("dir")).unwrap();
    let _socket = UnixListener::bind(dir.at("socket")).unwrap();
    symlink(dir.at("dir"), dir.at("link to dir")).unwrap();
    let before = dir.names();
    let places =
        ["missing/a.tenarc", "dir", "dir/", "dir/.", "dir/..", "socket", "link to dir", ""];
    for place in places {
        let error = tenarc::save(dir.at(place), &record(1, 600)).unwrap_err();
        assert_eq!(error.category(), Category::Io, "{place}: {error}");
        assert_eq!(dir.names(), before, "{place}");
        assert!(fs::read_dir(dir.at("dir")).unwrap().next().is_none(), "{place}");
    }
    for place in ["", "/", ".", "..", "/dev/full", "/dev/null"] {
        assert!(tenarc::save(place, &record(1, 600)).is_err(), "{place}");
        assert!(OArchive::append(place).is_err(), "{place}");
        assert!(tenarc::archive::recover(place).is_err(), "{place}");
        assert!(tenarc::open(place).is_err(), "{place}");
    }
}

#[test]
fn directories_that_cannot_be_written() {
    let dir = Dir::new();
    let inner = dir.at("inner");
    fs::create_dir(&inner).unwrap();
    let path = inner.join(NAME);
    tenarc::save(&path, &record(1, 600)).unwrap();
    fs::set_permissions(&inner, Permissions::from_mode(0o555)).unwrap();
    if File::create(inner.join("x")).is_ok() {
        eprintln!("skipped: this user may write to any directory");
    } else {
        let error = tenarc::save(&path, &record(2, 600)).unwrap_err();
        assert!(error.to_string().contains(inner.to_str().unwrap()), "{error}");
        assert_eq!(tenarc::load::<Record>(&path).unwrap(), record(1, 600));
        // What is in the directory can still be appended to.
        OArchive::append(&path).unwrap().save(&1).unwrap();
    }
    fs::set_permissions(&inner, Permissions::from_mode(0o755)).unwrap();
}

/// A file that may not grow beyond some length, as on a full disk.
#[test]
fn files_that_may_not_grow() {
    let dir = Dir::new();
    let path = dir.at(NAME);
    tenarc::save(&path, &record(1, 600)).unwrap();
    let old = fs::read(&path).unwrap();
    // In units of 512 bytes: nothing at all; inside the first and the last segment; inside the mark.
    let lens: &[u64] = &[0, 1, old.len() as u64 / 512, 20, 30, 40, 46];
    for job in ["save 2 2000", "append 2 3 600"] {
        for blocks in lens {
            let mut shell = Command::new("sh");
            // Ignored, so that the error is seen and not the signal.
            let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
            shell.arg("-c").arg(script).arg(child::executable()).args(child::ARGS);
            let output = child::assign(&mut shell, job, &path).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(child::FAILED), "{job} {blocks} {said}");
            assert!(said.contains(dir.path().to_str().unwrap()), "{said}");
            assert_eq!(fs::read(&path).unwrap(), old, "{job} {blocks}");
            dir.holds_only(NAME);
        }
    }
}

#[test]
fn modes_are_kept_and_links_replaced() {
    let dir = Dir::new();
    let path = dir.at(NAME);
    for mode in [0o600, 0o640, 0o644, 0o444, 0o755] {
        tenarc::save(&path, &record(1, 600)).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        let mut out = OArchive::create(&path, SaveOptions::default()).unwrap();
        out.save_as("n2", &record(2, 600)).unwrap();
        // Not even for a moment is it open to more people than the old one.
        for name in dir.names() {
            if name.to_str().unwrap().ends_with(".tenarc-tmp") {
                let found = fs::metadata(dir.path().join(name)).unwrap().mode();
                assert_eq!(found & 0o077 & !mode, 0, "{found:o}");
            }
        }
        out.finish().unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, mode);
        fs::remove_file(&path).unwrap();
    }

    tenarc::save(&path, &record(1, 600)).unwrap();
    for (link, to) in [("link", NAME), ("dangling", "nothing")] {
        symlink(to, dir.at(link)).unwrap();
        let mut out = OArchive::create(dir.at(link), unsynced()).unwrap();
        out.save_as("n2", &record(2, 600)).unwrap();
        out.finish().unwrap();
        assert!(fs::symlink_metadata(dir.at(link)).unwrap().is_file());
        assert_eq!(read(&dir.at(link)), [2]);
    }
    assert_eq!(tenarc::load::<Record>(&path).unwrap(), record(1, 600));
    assert!(!dir.at("nothing").exists());

    // Appending follows links, as what is there stays; other names of the file see it.
    symlink(NAME, dir.at("to append")).unwrap();
    fs::hard_link(&path, dir.at("hard")).unwrap();
    crate::support::append(&dir.at("to append"), [7], 600);
    assert!(fs::symlink_metadata(dir.at("to append")).unwrap().is_symlink());
    assert_eq!(tenarc::open(&path).unwrap().len(), 2);
    assert_eq!(tenarc::open(dir.at("hard")).unwrap().len(), 2);
}

#[test]
fn names_of_all_kinds() {
    let dir = Dir::new();
    let long = "n".repeat(255);
    let wide = "\u{20ac}".repeat(85);
    let mut names: Vec<&OsStr> = vec![long.as_ref(), wide.as_ref(), " ".as_ref(), "-".as_ref()];
    names.extend([&b"\xff\xfe"[..], b"\x80.tenarc", &[0xff; 255], b"a\nb"].map(OsStr::from_bytes));
    for name in names {
        let path = dir.path().join(name);
        let made = File::create(&path);
        if made.is_err() {
            eprintln!("skipped: the file system takes no name such as {name:?}");
            continue;
        }
        fs::remove_file(&path).unwrap();
        let mut out = OArchive::create(&path, SaveOptions::default()).unwrap();
        out.save_as("n3", &record(3, 600)).unwrap();
        out.finish().unwrap();
        crate::support::append(&path, [4], 600);
        assert_eq!(read(&path), [3, 4]);
        assert_eq!(tenarc::archive::recover(&path).unwrap().segments, 2);
        assert_eq!(dir.names(), [name.to_owned()].into());
        fs::remove_file(&path).unwrap();
    }
    let error = tenarc::save(dir.at(&"n".repeat(256)), &1).unwrap_err();
    assert_eq!(error.category(), Category::Io);
    assert!(dir.names().is_empty());
    let deep = format!("{}{NAME}", "./".repeat(1000));
    tenarc::save(dir.at(&deep), &record(1, 600)).unwrap();
    dir.holds_only(NAME);
}

#[test]
fn readers_and_maps_keep_the_file_they_opened() {
    let dir = Dir::new();
    let path = dir.at(NAME);
    tenarc::save(&path, &record(1, 100_000)).unwrap();
    let file = tenarc::open(&path).unwrap();
    // SAFETY: the file is replaced, not changed.
    let map = unsafe { Map::open(&path) }.unwrap();
    for number in 2..5 {
        // Shorter, so that a file cut in place would be missed.
        tenarc::save(&path, &record(number, 10)).unwrap();
        assert_eq!(map.load::<Record>().unwrap(), record(1, 100_000));
        map.verify().unwrap();
        assert_eq!(file.load::<Record>().unwrap(), record(1, 100_000));
        file.verify().unwrap();
        assert_eq!(tenarc::load::<Record>(&path).unwrap(), record(number, 10));
    }
    fs::remove_file(&path).unwrap();
    assert_eq!(map.load::<Record>().unwrap(), record(1, 100_000));
}

#[test]
fn of_two_writers_the_last_to_finish_wins_whole() {
    let dir = Dir::new();
    let path = dir.at(NAME);
    let start = |number| {
        let mut out = OArchive::create(&path, unsynced()).unwrap();
        out.save_as(&name(number), &record(number, 5000)).unwrap();
        out
    };
    let (first, second, third) = (start(1), start(2), start(3));
    // Each has a guard.
    assert_eq!(dir.names().len(), 6);
    second.finish().unwrap();
    assert_eq!(read(&path), [2]);
    first.finish().unwrap();
    assert_eq!(read(&path), [1]);
    drop(third);
    assert_eq!(read(&path), [1]);
    dir.holds_only(NAME);

    // What is committed again after another one has taken the place is told, and not lost in silence.
    let mut replaced = start(4);
    replaced.commit().unwrap();
    start(5).finish().unwrap();
    replaced.save(&record(6, 600)).unwrap();
    let error = replaced.finish().unwrap_err();
    assert_eq!(error.category(), Category::Io);
    assert_eq!(read(&path), [5]);
}

#[test]
fn readers_see_the_old_or_the_new_archive_while_threads_save() {
    let dir = Dir::new();
    let path = dir.at(NAME);
    tenarc::save(&path, &record(0, 3000)).unwrap();
    let done = AtomicBool::new(false);
    let path = &path;
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut seen = 0;
                    while !done.load(Ordering::Relaxed) {
                        assert_eq!(numbers(&fs::read(path).unwrap()).unwrap().len(), 1);
                        let found: Record = tenarc::load(path).unwrap();
                        assert_eq!(found, record(found.number, found.data.len()));
                        seen += 1;
                    }
                    seen
                })
            })
            .collect();
        let writers: Vec<_> = (0..2u32)
            .map(|writer| {
                scope.spawn(move || {
                    for number in 0..100 {
                        let number = writer * 1000 + number;
                        // Of different lengths.
                        let value = record(number, 2000 + number as usize % 7 * 500);
                        tenarc::archive::save_with(path, &value, unsynced()).unwrap();
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.join().unwrap();
        }
        done.store(true, Ordering::Relaxed);
        for reader in readers {
            assert!(reader.join().unwrap() > 0);
        }
    });
    dir.holds_only(NAME);
}
