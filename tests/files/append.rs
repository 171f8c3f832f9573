//! Appending: how much is read and written, what is refused, and that old bytes never change.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::ser;
use tenarc::archive::SaveOptions;
use tenarc::error::Category;
use tenarc::io::ReadAt as _;
use tenarc::{Archive, Map, OArchive};

use crate::support::{
    Dir, Record, append, create, name, numbers, numbers_in, read, record, unsynced,
};

const NAME: &str = "a.tenarc";

fn len(path: &Path) -> u64 {
    fs::metadata(path).unwrap().len()
}

/// A value that fails in its second walk, when a part of it has been written.
struct FailsLate(std::cell::Cell<bool>);

impl serde::Serialize for FailsLate {
    fn serialize<S: ser::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.replace(true) {
            // Another length than before.
            return record(1, 30_000).serialize(serializer);
        }
        record(1, 40_000).serialize(serializer)
    }
}

#[test]
fn a_thousand_appends_cost_little_more_than_a_thousand_saves() {
    const COUNT: u32 = 1000;
    let dir = Dir::new();
    let (one, many) = (dir.at("one"), dir.at("many"));
    create(&one, 0..COUNT, 600);
    create(&many, [], 600);
    let mut growth = Vec::new();
    let mut times = Vec::new();
    for number in 0..COUNT {
        let before = len(&many);
        let start = Instant::now();
        append(&many, [number], 600);
        times.push(start.elapsed());
        growth.push(len(&many) - before);
    }
    assert_eq!(read(&many), (0..COUNT).collect::<Vec<u32>>());
    // An end mark with at most 63 entries and a few offsets of blocks; it does not grow.
    let more = (len(&many) - len(&one)) / u64::from(COUNT);
    assert!(more < 1000, "{more} bytes more for each append than for each save");
    let segment = len(&one) / u64::from(COUNT);
    assert!(growth.iter().all(|grown| *grown < segment + 3000), "{:?}", growth.iter().max());
    let early: u64 = growth[64..128].iter().sum();
    let late: u64 = growth[COUNT as usize - 128..][..64].iter().sum();
    assert!(late < early + 64 * 200, "{early} {late}");
    // Medians, as others use the machine too.
    let median = |times: &[Duration]| {
        let mut times = times.to_vec();
        times.sort();
        times[times.len() / 2]
    };
    let (early, late) = (median(&times[..300]), median(&times[700..]));
    assert!(late < early * 4 + Duration::from_millis(1), "{early:?} {late:?}");
}

#[test]
fn thousands_of_single_appends_are_found_by_number_and_name() {
    const COUNT: u32 = 4110;
    let dir = Dir::new();
    let path = dir.at(NAME);
    create(&path, [], 4);
    let mut before = fs::read(&path).unwrap();
    for number in 0..COUNT {
        append(&path, [number], 4);
        // Around the places where blocks are filled, and now and then.
        if number % 64 > 61 || number % 64 < 2 || number % 500 == 0 || number > 4090 {
            let file = File::open(&path).unwrap();
            assert_eq!(Archive::new(file).unwrap().len(), u64::from(number) + 1);
        }
        if number % 2000 == 0 || number == 4095 || number == 4096 {
            let now = fs::read(&path).unwrap();
            assert!(now.starts_with(&before), "a byte of the old archive changed");
            assert_eq!(numbers(&now).unwrap(), (0..=number).collect::<Vec<u32>>());
            before = now;
        }
    }
    assert_eq!(read(&path), (0..COUNT).collect::<Vec<u32>>());
    let file = tenarc::open(&path).unwrap();
    for number in (0..COUNT).rev().step_by(97) {
        let found: Record = file.segment(number.into()).unwrap().load().unwrap();
        assert_eq!(found.number, number);
        let found: Record = file.named(&name(number)).unwrap().load().unwrap();
        assert_eq!(found.number, number);
    }
    assert!(file.segment(COUNT.into()).is_err());
    assert!(file.named(&name(COUNT)).is_err());
    // The latest of equal names counts.
    append(&path, [3], 700);
    let file = tenarc::open(&path).unwrap();
    assert_eq!(file.named("n3").unwrap().load::<Record>().unwrap(), record(3, 700));
}

#[test]
fn never_a_byte_of_the_old_archive_changes() {
    let dir = Dir::new();
    let path = dir.at(NAME);
    create(&path, 0..2, 600);
    let mut before = fs::read(&path).unwrap();
    for number in 2..140 {
        let mut out = OArchive::append_with(&path, unsynced()).unwrap();
        out.save_as(&name(number), &record(number, 550)).unwrap();
        if number % 5 == 0 {
            assert!(out.save(&FailsLate(false.into())).is_err());
        }
        if number % 7 == 0 {
            drop(out);
            assert_eq!(fs::read(&path).unwrap(), before, "dropped");
            out = OArchive::append_with(&path, unsynced()).unwrap();
            out.save_as(&name(number), &record(number, 550)).unwrap();
        }
        out.finish().unwrap();
        let now = fs::read(&path).unwrap();
        assert!(now.len() > before.len() && now.starts_with(&before));
        before = now;
    }
    assert_eq!(read(&path), (0..140).collect::<Vec<u32>>());
}

#[test]
fn what_is_no_whole_archive_is_refused_and_left_alone() {
    let dir = Dir::new();
    let path = dir.at(NAME);
    create(&path, 0..2, 600);
    let whole = fs::read(&path).unwrap();
    let message = tenarc::to_vec(&record(1, 600)).unwrap();
    let other = [&whole[..8], b"XXXX", &whole[12..]].concat();
    let files: [(&[u8], Category); 8] = [
        (b"", Category::Torn),
        (&whole[..5], Category::Torn),
        (&whole[..12], Category::Torn),
        (&whole[..whole.len() - 1], Category::Torn),
        (&whole[..whole.len() / 2], Category::Torn),
        (b"something else", Category::Syntax),
        (&message, Category::Syntax),
        (&other, Category::Syntax),
    ];
    for (bytes, category) in files {
        fs::write(&path, bytes).unwrap();
        let error = OArchive::append(&path).unwrap_err();
        assert_eq!(error.category(), category, "{error}");
        assert!(error.to_string().contains(NAME), "{error}");
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }
    assert_eq!(OArchive::append(dir.path()).unwrap_err().category(), Category::Io);
    fs::write(&path, &whole).unwrap();
    for alignment in [0, 1, 4, 7, 100, 1 << 17] {
        let options = SaveOptions::default().with_alignment(alignment);
        assert!(OArchive::append_with(&path, options).is_err());
    }
    assert_eq!(read(&path), [0, 1]);
}

#[test]
fn a_second_writer_is_refused() {
    let dir = Dir::new();
    let path = dir.at(NAME);
    create(&path, 0..2, 600);
    symlink(NAME, dir.at("link")).unwrap();
    let mut out = OArchive::append(&path).unwrap();
    for same in [&path, &dir.at("link")] {
        let error = OArchive::append(same).unwrap_err();
        assert_eq!(error.category(), Category::Io);
        assert!(error.to_string().contains("another writer"), "{error}");
        assert!(tenarc::archive::recover(same).is_err());
    }
    out.save_as("n2", &record(2, 600)).unwrap().commit().unwrap();
    assert!(OArchive::append(&path).is_err());
    let mut finished = out.finish().unwrap();
    append(&path, [3], 600);
    let error = finished.write(b"behind").unwrap_err().to_string();
    assert_eq!(error, "the archive is finished");
    drop(finished);
    assert_eq!(read(&path), [0, 1, 2, 3]);
}

/// A child shares all that is locked from its start until it runs another program.
#[test]
fn children_started_meanwhile_do_not_keep_the_lock() {
    let dir = Dir::new();
    let path = dir.at(NAME);
    create(&path, [], 4);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                Command::new("true").status().unwrap();
            }
        });
        // Set where an append panics, too, as the thread is waited for.
        let result = std::panic::catch_unwind(|| (0..300).for_each(|n| append(&path, [n], 4)));
        done.store(true, Ordering::Relaxed);
        assert!(result.is_ok());
    });
    assert_eq!(read(&path).len(), 300);
}

#[test]
fn an_archive_that_was_replaced_is_not_appended_to_in_silence() {
    let dir = Dir::new();
    let path = dir.at(NAME);
    create(&path, 0..2, 600);
    let mut out = OArchive::append(&path).unwrap();
    out.save(&record(2, 600)).unwrap();
    create(&path, [7], 600);
    let error = out.finish().unwrap_err();
    assert_eq!(error.category(), Category::Io, "{error}");
    assert!(error.to_string().contains(NAME), "{error}");
    assert_eq!(read(&path), [7]);

    let mut out = OArchive::append(&path).unwrap();
    out.save(&record(8, 600)).unwrap();
    fs::remove_file(&path).unwrap();
    assert_eq!(out.finish().unwrap_err().category(), Category::Io);
    assert!(dir.names().is_empty());
}

#[test]
fn readers_and_maps_of_before_go_on() {
    let dir = Dir::new();
    let path = dir.at(NAME);
    create(&path, 0..70, 600);
    let old: Vec<u32> = (0..70).collect();
    let file = tenarc::open(&path).unwrap();
    // SAFETY: what is mapped is not changed by appending.
    let map = unsafe { Map::open(&path) }.unwrap();
    let check = || {
        file.verify().unwrap();
        map.verify().unwrap();
        assert_eq!(numbers_in(&file).unwrap(), old);
        assert_eq!(numbers_in(&map).unwrap(), old);
    };
    let mut out = OArchive::append_with(&path, unsynced()).unwrap();
    out.save_as("n70", &record(70, 600)).unwrap();
    check();
    // A reader that comes now sees what was committed, and on request all whole segments.
    let late = tenarc::open(&path).unwrap();
    assert_eq!(numbers_in(&late).unwrap(), old);
    assert_eq!(late.byte_len() + late.unfinished_bytes(), len(&path));
    // SAFETY: what is mapped is not changed by appending.
    let late_map = unsafe { Map::open(&path) }.unwrap();
    assert_eq!(numbers_in(&late_map).unwrap(), old);
    assert_eq!(late_map.unfinished_bytes(), late.unfinished_bytes());
    assert_eq!(late_map.source().size().unwrap(), late.byte_len(), "unfinished bytes are mapped");
    let torn = tenarc::archive::open_torn(&path).unwrap();
    assert_eq!(numbers_in(&torn).unwrap(), (0..71).collect::<Vec<u32>>());
    out.commit().unwrap();
    check();
    assert_eq!(read(&path).len(), 71);
    out.save_as("n71", &record(71, 600)).unwrap();
    check();
    drop(out);
    check();
    assert_eq!(read(&path).len(), 71);
}

#[test]
fn values_that_fail_are_undone_and_the_session_goes_on() {
    let dir = Dir::new();
    let path = dir.at(NAME);
    create(&path, [], 4);
    let mut expected = Vec::new();
    // Sessions of which some end at, before and behind a full block.
    for session in 0..20 {
        let mut out = OArchive::append_with(&path, unsynced()).unwrap();
        for number in session * 10..session * 10 + 10 {
            let before = (out.position(), out.segments());
            assert!(out.save(&FailsLate(false.into())).is_err());
            assert!(out.save_as(&"n".repeat(1025), &1).is_err());
            assert_eq!((out.position(), out.segments()), before);
            out.save_as(&name(number), &record(number, 300)).unwrap();
            expected.push(number);
        }
        assert!(out.save(&FailsLate(false.into())).is_err());
        out.finish().unwrap();
    }
    assert_eq!(read(&path), expected);
    // No trace of what failed: the same as if it had not been tried.
    let failed = fs::read(&path).unwrap();
    create(&path, [], 4);
    for session in 0..20 {
        append(&path, session * 10..session * 10 + 10, 300);
    }
    assert_eq!(fs::read(&path).unwrap(), failed);
}

#[test]
fn many_commits_each_keep_what_was_saved_before() {
    let dir = Dir::new();
    let path = dir.at(NAME);
    create(&path, 0..1, 600);
    let mut out = OArchive::append_with(&path, unsynced()).unwrap();
    let mut committed = Vec::new();
    for number in 1..100 {
        out.save_as(&name(number), &record(number, 300)).unwrap().commit().unwrap();
        let now = fs::read(&path).unwrap();
        assert!(now.starts_with(&committed));
        assert_eq!(tenarc::open(&path).unwrap().len(), u64::from(number) + 1);
        committed = now;
        if number % 10 == 0 {
            // Commits of nothing new are whole, too.
            out.commit().unwrap();
            committed = fs::read(&path).unwrap();
            assert_eq!(numbers(&committed).unwrap().len() as u32, number + 1);
        }
    }
    out.save(&record(100, 600)).unwrap();
    drop(out);
    assert_eq!(fs::read(&path).unwrap(), committed);
    assert_eq!(read(&path), (0..100).collect::<Vec<u32>>());
}

#[test]
fn nothing_is_lost_where_sessions_have_other_options() {
    let dir = Dir::new();
    let path = dir.at(NAME);
    create(&path, [0], 600);
    for (number, alignment) in (1..).zip([8, 64, 4096, 65_536, 16]) {
        for checksums in [true, false] {
            let options = unsynced().with_alignment(alignment).with_checksums(checksums);
            let mut out = OArchive::append_with(&path, options).unwrap();
            out.save_as(&name(number), &record(number, 600)).unwrap();
            out.finish().unwrap();
        }
    }
    assert_eq!(read(&path), [0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]);
}
