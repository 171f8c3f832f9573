//! M 89, I 71: a model of a disk that loses, in a crash, any blocks that were not synced.
//!
//! A file on it is what was synced, with any choice of the blocks of 4 KiB written since, in any order;
//! the others are zeros, or are not there if they stood at the end. The order of the operations is
//! checked by a trace of the real ones.

use std::fs;
use std::ops::Range;
use std::path::Path;

use tenarc::error::Category;
use tenarc::{Archive, OArchive};

use crate::support::{
    Chance, Dir, Record, append, create, name, numbers, numbers_in, record, unsynced,
};
use crate::trace;

const NAME: &str = "a.tenarc";
const BLOCK: usize = 4096;

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
                lose(full, durable..written, chance, &mut images);
            }
        }
    }
    images
}

/// All choices of the blocks where they are few, else some.
fn lose(full: &[u8], unsynced: Range<usize>, chance: &mut Chance, images: &mut Vec<Vec<u8>>) {
    let first = unsynced.start / BLOCK;
    let count = unsynced.end.div_ceil(BLOCK) - first;
    let choices: Vec<u64> = match count {
        ..=4 => (0..1 << count).collect(),
        _ => {
            let each = (0..count).flat_map(|at| [1 << at, !(1 << at)]);
            each.chain((0..4).map(|_| chance.next())).collect()
        }
    };
    for kept in choices {
        let mut image = full[..unsynced.start].to_vec();
        image.resize(unsynced.end, 0);
        let mut last = unsynced.start;
        for block in (0..count).filter(|block| kept >> block & 1 == 1) {
            let start = ((first + block) * BLOCK).max(unsynced.start);
            let end = ((first + block + 1) * BLOCK).min(unsynced.end);
            image[start..end].copy_from_slice(&full[start..end]);
            last = end;
        }
        // The length may have reached the disk or not.
        images.push(image[..last].to_vec());
        images.push(image);
    }
}

/// What is on the disk after the crash: all of `old`, and if an end mark vouches for more, all of it.
fn check(path: &Path, image: &[u8], old: &[u32], all: &[u32]) {
    match Archive::new(image) {
        Ok(archive) => {
            archive.verify().unwrap();
            let found = numbers_in(&archive).unwrap();
            assert!(found == old || found == all, "{found:?}");
            if archive.unfinished_bytes() == 0 {
                return;
            }
            fs::write(path, image).unwrap();
            append(path, [77], 4);
            let now = tenarc::open(path).unwrap();
            now.verify().unwrap();
            assert_eq!(numbers_in(&now).unwrap(), [&found[..], &[77]].concat());
        }
        // The end mark itself is not whole, but its tail is.
        Err(error) => assert_eq!(error.category(), Category::Torn, "{error}"),
    }
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

/// Appends to an archive of `old` segments `new` more of `len` elements, with long names if `long`, and
/// notes the operations.
fn session(path: &Path, old: u32, new: u32, len: usize, long: bool) -> (Vec<u8>, usize, Vec<Op>) {
    let names = |number| if long { format!("n{number:0>900}") } else { name(number) };
    let mut out = OArchive::create(path, unsynced()).unwrap();
    for number in 0..old {
        out.save_as(&names(number), &record(number, 4)).unwrap();
    }
    out.finish().unwrap();
    let start = fs::read(path).unwrap().len();
    let mut out = OArchive::append_with(path, unsynced()).unwrap();
    let mut ops = Vec::new();
    let mut at = start;
    for number in old..old + new {
        out.save_as(&names(number), &record(number, len)).unwrap();
        let position = out.position() as usize;
        ops.push(Op::Write(at..position));
        at = position;
    }
    out.commit().unwrap();
    ops.extend([Op::Sync, Op::Write(at..out.position() as usize), Op::Sync]);
    drop(out);
    (fs::read(path).unwrap(), start, ops)
}

#[test]
fn an_append_survives_the_loss_of_any_blocks_that_were_not_synced() {
    let dir = Dir::new();
    let path = dir.at(NAME);
    let mut chance = Chance::new(1);
    // The last has an end mark of many blocks, of which the first may be lost and the last not.
    for (old, new, len, long) in [(2, 2, 600, false), (62, 3, 700, false), (40, 3, 4, true)] {
        let (full, start, ops) = session(&path, old, new, len, long);
        let all: Vec<u32> = (0..old + new).collect();
        for image in crashes(start, &full, &ops, &mut chance) {
            check(&path, &image, &all[..old as usize], &all);
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
        let (full, start, ops) = session(&path, old, new, len, round % 3 == 0);
        let all: Vec<u32> = (0..old + new).collect();
        for image in crashes(start, &full, &ops, &mut chance) {
            check(&path, &image, &all[..old as usize], &all);
        }
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
        let expected = format!("cut file, {appended}");
        // Nothing stands between the last whole segment and the end mark, mostly.
        let without = "cut file, sync file, write file, sync file";
        assert!(order == expected || order == without, "{order}");
    }
}

/// The end mark is all that is written between the two syncs.
#[test]
fn nothing_but_the_end_mark_is_written_behind_the_first_sync() {
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
        writes.map(|call| call.result).sum::<u64>()
    };
    let bytes = fs::read(&path).unwrap();
    // The last eight bytes of the tail are its hash, before them stands its own offset, and before
    // that the offset of the end mark.
    let mark: [u8; 8] = *bytes[bytes.len() - 24..].first_chunk().unwrap();
    let mark = u64::from_be_bytes(mark);
    assert_eq!(before + written(&calls[..sync]), mark);
    assert_eq!(written(&calls[sync..]), bytes.len() as u64 - mark);
}
