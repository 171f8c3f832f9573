//! M 89, I 71: a model of a disk that loses, in a crash, anything that was not synced.
//!
//! A file on it is what was synced, with any choice of the blocks of 4 KiB, or of the sectors of 512 bytes, written since, in
//! any order; the others are zeros, or are not there if they stood at the end. The order of the operations is
//! checked by a trace of the real ones.
//!
//! After any crash, the archive can be opened, has everything that was acknowledged, and can be appended to.

use std::fs;
use std::ops::Range;
use std::path::Path;

use tenarc::error::Category;
use tenarc::{Archive, OArchive};
use tenarc_test_support::builder::TAIL;
use tenarc_test_support::effort::{some_of, stride};

use crate::support::{
    Chance, Dir, Record, append, create, name, numbers, numbers_in, record, unsynced,
};
use crate::trace;

const NAME: &str = "a.tenarc";
const BLOCK: usize = 4096;
const SECTOR: usize = 512;

#[derive(Clone, Debug)]
enum Op {
    Write(Range<usize>),
    Sync,
}

/// The states in which a crash may leave a file that grows to `full` by these operations.
fn crashes(old: usize, full: &[u8], ops: &[Op], chance: &mut Chance) -> Vec<Vec<u8>> {
    let mut images = Vec::new();
    let (mut durable, mut written) = (old, old);
    for op in ops {
        match op {
            Op::Sync => durable = written,
            Op::Write(range) => {
                assert_eq!(range.start, written, "nothing is written over");
                written = range.end;
                for unit in [BLOCK, SECTOR] {
                    lose(full, durable..written, unit, chance, &mut images);
                }
            }
        }
    }
    images.sort_unstable();
    images.dedup();
    images
}

/// All choices of the units where they are few, else some.
fn lose(
    full: &[u8],
    unsynced: Range<usize>,
    unit: usize,
    chance: &mut Chance,
    images: &mut Vec<Vec<u8>>,
) {
    let first = unsynced.start / unit;
    let count = unsynced.end.div_ceil(unit) - first;
    let kept = |choice: u64| (0..count).map(move |at| choice >> (at % 64) & 1 == 1).collect();
    let mut choices: Vec<Vec<bool>> = Vec::new();
    if count <= 4 {
        choices.extend((0..1 << count).map(kept));
    } else {
        // One alone, all but one, and some; the first and the last ones most often.
        for at in (0..count).filter(|at| *at < 20 || *at + 20 >= count) {
            choices.push((0..count).map(|other| other == at).collect());
            choices.push((0..count).map(|other| other != at).collect());
        }
        choices.extend((0..4).map(|_| kept(chance.next())));
    }
    for kept in choices {
        let mut image = full[..unsynced.start].to_vec();
        image.resize(unsynced.end, 0);
        let mut last = unsynced.start;
        for at in (0..count).filter(|at| kept[*at]) {
            let start = ((first + at) * unit).max(unsynced.start);
            let end = ((first + at + 1) * unit).min(unsynced.end);
            image[start..end].copy_from_slice(&full[start..end]);
            last = end;
        }
        // The length may have reached the disk or not.
        images.push(image[..last].to_vec());
        images.push(image);
    }
}

/// Opens what a crash left. All of `old` is there, and if it was committed, all of `all`. Returns what is there.
fn opens<'a>(image: &[u8], old: &'a [u32], all: &'a [u32]) -> &'a [u32] {
    let archive = Archive::new(image).unwrap();
    archive.verify().unwrap();
    let found = numbers_in(&archive).unwrap();
    assert!(found == old || found == all, "{found:?}");
    if found == old { old } else { all }
}

/// What is on the disk after the crash: all of `old`, and if a tail commits more, all of it.
fn check(path: &Path, image: &[u8], old: &[u32], all: &[u32]) {
    let found = opens(image, old, all);
    fs::write(path, image).unwrap();
    append(path, [77], 4);
    let now = tenarc::open(path).unwrap();
    now.verify().unwrap();
    assert_eq!(numbers_in(&now).unwrap(), [found, &[77]].concat());
    drop(now);

    let torn = Archive::new_torn(image).unwrap();
    let cut = torn.segments().filter(|segment| segment.as_ref().unwrap().missing_bytes() > 0);
    let whole = torn.len() - cut.count() as u64;
    assert!(whole >= old.len() as u64);
    for (index, expected) in all.iter().enumerate().take(whole as usize) {
        // Of what no end mark vouches for, tensors may be missing: never wrong ones.
        match torn.segment(index as u64).unwrap().load::<Record>() {
            Ok(found) => assert_eq!(found, record(*expected, found.data.len())),
            Err(error) => {
                assert!(index >= old.len(), "an old segment: {error}");
                assert_eq!(error.category(), Category::Damaged, "{error}");
            }
        }
    }
    fs::write(path, image).unwrap();
    // What lost tensors is cut off, unless something whole is behind it: then it is counted.
    let tenarc::archive::Recovered { segments: kept, damaged, .. } =
        tenarc::archive::recover(path).unwrap();
    assert!((old.len() as u64..=whole).contains(&kept), "{kept} of {whole}");
    let file = tenarc::open(path).unwrap();
    assert_eq!(file.verify().is_err(), damaged > 0);
    let broken = (0..kept).filter(|&index| file.segment(index).unwrap().load::<Record>().is_err());
    assert_eq!(broken.count() as u64, damaged);
    if let Some(last) = kept.checked_sub(1) {
        file.segment(last).unwrap().load::<Record>().unwrap();
    }
    drop(file);
    append(path, [77], 4);
    let file = tenarc::open(path).unwrap();
    assert_eq!(file.len(), kept + 1);
    for (index, number) in (0..).zip(old) {
        assert_eq!(file.segment(index).unwrap().load::<Record>().unwrap().number, *number);
    }
    assert_eq!(file.segment(kept).unwrap().load::<Record>().unwrap().number, 77);
}

fn long_name(number: u32) -> String {
    format!("n{number:0>900}")
}

/// Makes an archive of `old` segments, with long names if `long`.
fn before(path: &Path, old: u32, long: bool) {
    let mut out = OArchive::create(path, unsynced()).unwrap();
    for number in 0..old {
        let name = if long { long_name(number) } else { name(number) };
        out.save_as(&name, &record(number, 4)).unwrap();
    }
    out.finish().unwrap();
}

/// Appends `new` segments of `len` elements, and notes the operations. Returns what is in the file then, and from where on.
fn session(path: &Path, new: Range<u32>, len: usize, long: bool) -> (Vec<u8>, usize, Vec<Op>) {
    let mut out = OArchive::append_with(path, unsynced()).unwrap();
    let start = out.position() as usize;
    let mut ops = Vec::new();
    let mut at = start;
    let mut write = |to: usize| {
        let op = Op::Write(at..to);
        at = to;
        op
    };
    for number in new {
        let name = if long { long_name(number) } else { name(number) };
        out.save_as(&name, &record(number, len)).unwrap();
        ops.push(write(out.position() as usize));
    }
    out.commit().unwrap();
    let end = out.position() as usize;
    ops.extend([write(end - TAIL), Op::Sync, write(end), Op::Sync]);
    drop(out);
    (fs::read(path).unwrap(), start, ops)
}

/// The states in which a crash may leave an archive of `old` segments during an append of `new` more. Also returns the
/// numbers of all.
fn crashed(
    path: &Path,
    (old, new, len, long): (u32, u32, usize, bool),
    chance: &mut Chance,
) -> (Vec<u32>, Vec<Vec<u8>>) {
    before(path, old, long);
    let (full, start, ops) = session(path, old..old + new, len, long);
    ((0..old + new).collect(), crashes(start, &full, &ops, chance))
}

/// Lengths and numbers of segments. The third has an end mark of many blocks, of which the first may be lost and the last not.
const SESSIONS: [(u32, u32, usize, bool); 3] =
    [(2, 2, 600, false), (62, 3, 700, false), (40, 3, 4, true)];

#[test]
fn an_append_survives_the_loss_of_any_blocks_that_were_not_synced() {
    let dir = Dir::new();
    let path = dir.at(NAME);
    let mut chance = Chance::new(1);
    for sizes in SESSIONS {
        let (all, images) = crashed(&path, sizes, &mut chance);
        for image in some_of(images, 3, 0) {
            check(&path, &image, &all[..sizes.0 as usize], &all);
        }
    }
}

#[test]
fn two_crashes_in_a_row_lose_nothing_that_was_acknowledged() {
    let dir = Dir::new();
    let path = dir.at(NAME);
    let mut chance = Chance::new(3);
    for sizes @ (old, _, _, long) in SESSIONS {
        let (all, images) = crashed(&path, sizes, &mut chance);
        let step = images.len().div_ceil(12 / stride(3));
        for image in images.iter().step_by(step) {
            let there = opens(image, &all[..old as usize], &all).len() as u32;
            fs::write(&path, image).unwrap();
            let (full, start, ops) = session(&path, there..there + 2, 300, long);
            let all: Vec<u32> = (0..there + 2).collect();
            for image in crashes(start, &full, &ops, &mut chance) {
                opens(&image, &all[..there as usize], &all);
            }
        }
    }
}

#[test]
fn a_crash_during_recovery_loses_nothing_that_was_acknowledged() {
    let dir = Dir::new();
    let path = dir.at(NAME);
    let mut chance = Chance::new(4);
    for sizes @ (old, ..) in SESSIONS {
        let (_, images) = crashed(&path, sizes, &mut chance);
        let step = images.len().div_ceil(12 / stride(3));
        for image in images.iter().step_by(step) {
            fs::write(&path, image).unwrap();
            let recovered = tenarc::archive::recover(&path).unwrap();
            let full = fs::read(&path).unwrap();
            if full == *image {
                continue;
            }
            let cut = image.len() - recovered.dropped as usize;
            let end = full.len();
            let ops = [Op::Write(cut..end - TAIL), Op::Sync, Op::Write(end - TAIL..end), Op::Sync];
            for image in crashes(cut, &full, &ops, &mut chance) {
                let archive = Archive::new(&image[..]).unwrap();
                assert!(archive.len() >= u64::from(old));
                fs::write(&path, &image).unwrap();
                append(&path, [77], 4);
                assert!(tenarc::open(&path).unwrap().len() > u64::from(old));
            }
        }
    }
}

#[test]
#[ignore = "slow: many archives"]
fn many_appends_survive_the_loss_of_any_blocks_that_were_not_synced() {
    let dir = Dir::new();
    let path = dir.at(NAME);
    let mut chance = Chance::new(2);
    for round in 0..15 {
        let (old, new) = (chance.below(70) as u32, chance.below(6) as u32 + 1);
        let len = chance.below(3000);
        let (all, images) = crashed(&path, (old, new, len, round % 3 == 0), &mut chance);
        for image in images {
            check(&path, &image, &all[..old as usize], &all);
        }
    }
}

/// A file in the layout of a mark and tail that go out together: the mark was lost, the tail was not.
#[test]
fn an_end_mark_without_its_tail_is_unfinished_and_with_it_damaged() {
    let dir = Dir::new();
    let path = dir.at(NAME);
    for (old, new, len, long) in SESSIONS {
        before(&path, old, long);
        let (full, start, _) = session(&path, old..old + new, len, long);
        let mark = u64::from_be_bytes(*full[full.len() - 32..].first_chunk().unwrap()) as usize;
        let all: Vec<u32> = (0..old + new).collect();
        for end in [mark + 1, mark + 300, full.len() - TAIL].map(|end| end.min(full.len() - TAIL)) {
            let mut lost = full.clone();
            lost[mark..end].fill(0);
            let error = Archive::new(&lost[..]).unwrap_err();
            assert_eq!(error.category(), Category::Damaged, "{error}");
            fs::write(&path, &lost).unwrap();
            assert_eq!(OArchive::append(&path).unwrap_err().category(), Category::Damaged);
            assert!(fs::read(&path).unwrap() == lost, "a damaged file changed");
            lost[full.len() - TAIL..].fill(0);
            assert_eq!(opens(&lost, &all[..old as usize], &all).len(), old as usize);
            lost.truncate(full.len() - TAIL);
            assert_eq!(opens(&lost, &all[..old as usize], &all).len(), old as usize);
        }
        // The tail alone is zeros, cut, or wrong.
        for cut in full.len() - TAIL..full.len() {
            assert_eq!(opens(&full[..cut], &all[..old as usize], &all).len(), old as usize);
            let mut wrong = full.clone();
            wrong[cut] ^= 1;
            let error = Archive::new(&wrong[..]).unwrap_err();
            assert_eq!(error.category(), Category::Damaged, "{error}");
        }
        assert!(start < mark);
    }
}

/// Disks that lie about syncing, and [`tenarc::io::SyncLevel::Off`]: the end mark is there, blocks that it
/// vouches for are not.
#[test]
fn lost_or_older_blocks_before_an_end_mark_are_noticed() {
    let dir = Dir::new();
    let path = dir.at(NAME);
    create(&path, 0..3, 1200);
    append(&path, 3..5, 1200);
    let new = fs::read(&path).unwrap();
    // As it was before, with other numbers of the same length.
    create(&path, 5..8, 1200);
    append(&path, 8..10, 1200);
    let older = fs::read(&path).unwrap();
    assert_eq!(older.len(), new.len());
    let zeros = vec![0; new.len()];
    for other in [&zeros, &older] {
        for size in [512, BLOCK] {
            for start in (0..new.len()).step_by(size) {
                let end = (start + size).min(new.len());
                let mut image = new.clone();
                image[start..end].copy_from_slice(&other[start..end]);
                if image == new {
                    continue;
                }
                // Without its tail, the second session was never committed.
                match Archive::new(&image[..]) {
                    Ok(archive) if archive.unfinished_bytes() > 0 => {
                        assert_eq!(end, new.len(), "{start}..{end}");
                        assert_eq!(numbers_in(&archive).unwrap(), [0, 1, 2]);
                    }
                    _ => assert!(numbers(&image).is_err(), "{start}..{end}"),
                }
                // Segments by themselves are right or refused.
                let Ok(archive) = Archive::new_torn(&image[..]) else { continue };
                for index in 0..archive.len() {
                    let loaded =
                        archive.segment(index).and_then(|segment| segment.load::<Record>());
                    if let Ok(found) = loaded {
                        assert_eq!(found, record(index as u32, 1200));
                    }
                }
            }
        }
    }
}

/// Writes, syncs and renames of a path, in short.
fn order(job: &str, path: &Path) -> String {
    let dir = path.parent().unwrap().to_str().unwrap().to_owned();
    let (of_dir, of_path) = (format!("<{dir}>"), format!("<{}>", path.display()));
    let mut order = String::new();
    for call in trace::watch(job, path) {
        let what = if call.args.contains(&of_dir) {
            "dir"
        } else if call.args.contains(&of_path) {
            "file"
        } else if call.args.contains(&dir) {
            "temp"
        } else {
            continue;
        };
        let name = match &*call.name {
            "write" | "writev" | "pwrite64" => "write",
            "fdatasync" | "fsync" => "sync",
            "rename" | "renameat" | "renameat2" => "rename",
            "ftruncate" => "cut",
            _ => continue,
        };
        let word = format!("{name} {what}, ");
        if !order.ends_with(&word) {
            order.push_str(&word);
        }
    }
    order.trim_end_matches(", ").to_owned()
}

#[test]
fn data_are_synced_before_what_vouches_for_them() {
    if !trace::is_there() {
        return;
    }
    let dir = Dir::new();
    let path = dir.at(NAME);
    let saved = "write temp, sync temp, rename temp, sync dir";
    assert_eq!(order("save 1 600", &path), saved);
    assert_eq!(order("save 1 100000", &path), saved);
    let appended = "write file, sync file, write file, sync file";
    assert_eq!(order("append 2 3 600", &path), appended);
    assert_eq!(order("append 5 70 600", &path), appended);
    let bytes = fs::read(&path).unwrap();
    for cut in [1, 30, 5000] {
        fs::write(&path, &bytes[..bytes.len() - cut]).unwrap();
        let order = order("recover", &path);
        assert_eq!(order, format!("cut file, sync file, {appended}"));
    }
}

/// The tail is all that is written between the two syncs, and it is in one sector.
#[test]
fn nothing_but_the_tail_is_written_behind_the_first_sync() {
    if !trace::is_there() {
        return;
    }
    let dir = Dir::new();
    let path = dir.at(NAME);
    create(&path, 0..3, 600);
    let before = fs::metadata(&path).unwrap().len();
    let calls = trace::watch("append 3 4 600", &path);
    let of_file = format!("<{}>", path.display());
    let calls: Vec<_> = calls.iter().filter(|call| call.args.contains(&of_file)).collect();
    let sync = calls.iter().position(|call| call.name == "fdatasync").unwrap();
    let written = |calls: &[&trace::Call]| {
        let writes = calls.iter().filter(|call| call.name == "write");
        writes.map(|call| call.result).collect::<Vec<_>>()
    };
    let end = fs::metadata(&path).unwrap().len();
    assert_eq!(before + written(&calls[..sync]).iter().sum::<u64>(), end - TAIL as u64);
    assert_eq!(written(&calls[sync..]), [TAIL as u64]);
    assert_eq!((end - TAIL as u64) / SECTOR as u64, (end - 1) / SECTOR as u64);
}
