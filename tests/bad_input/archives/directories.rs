//! Group H: directories, end marks and tails.

use ndarray::Array1;
use tenarc::error::Category;
use tenarc::error::Category::{Damaged, Data, Eof, Syntax, Torn};
use tenarc::{Archive, IArchive, Tensor};

use super::support::{At, MIB, accepts, unverified, values, verify};
use tenarc_test_support::alloc::peak_of;
use tenarc_test_support::builder::{
    BlockAt, Built, Entry, MAGIC, Root, Seg, TAIL, archive, block, simple, tail, tensor_ref, text,
    unsigned, upper_block,
};

const NONE: [u8; 1] = [0xf6];

fn number(value: u64) -> Seg {
    Seg::new(unsigned(value), &[]).named(&format!("n{value}"))
}

fn three() -> Built {
    Built::new().segment(&number(0)).segment(&number(1)).segment(&number(2))
}

/// Opening fails, or reading a segment does; verifying and streaming do.
#[track_caller]
fn no_directory(bytes: &[u8]) {
    const CATEGORIES: [Category; 5] = [Damaged, Data, Torn, Syntax, Eof];
    let (opened, peak) = peak_of(|| {
        let archive = Archive::new(At(bytes))?;
        let first = archive
            .segments()
            .take(100)
            .find_map(|segment| segment.and_then(|segment| segment.load::<u64>()).err());
        let named = archive.named("n1").and_then(|segment| segment.load::<u64>());
        assert!(matches!(named, Ok(1) | Err(_)));
        let fault = archive.verify().expect_err("verified");
        assert!(CATEGORIES.contains(&fault.category()), "{fault}");
        first.map_or(Ok(()), Err)
    });
    if let Err(error) = opened {
        assert!(CATEGORIES.contains(&error.category()), "{error}");
    }
    assert!(peak < 2 * MIB, "{peak}");
    let (found, error) = values::<u64>(bytes);
    assert!(found.iter().copied().eq(0..found.len() as u64));
    let error = error.expect("an error");
    assert!(CATEGORIES.contains(&error.category()), "{error}");
}

#[test]
fn a_true_directory_is_read() {
    let bytes = three().end().bytes;
    verify(&bytes).unwrap();
    let archive = Archive::new(At(&bytes)).unwrap();
    for value in 0..3 {
        assert_eq!(archive.segment(value).unwrap().load::<u64>().unwrap(), value);
        assert_eq!(archive.named(&format!("n{value}")).unwrap().load::<u64>().unwrap(), value);
    }
    assert!(archive.segment(3).is_err() && archive.segment(u64::MAX).is_err());
}

// 56, 57, 58, 63
#[test]
fn entries_that_lead_elsewhere() {
    let lies: [fn(&mut Vec<Entry>, u64); 12] = [
        |entries, _| entries.swap(0, 1),
        |entries, _| entries.reverse(),
        |entries, _| entries[2] = entries[1].clone(),
        |entries, _| entries[1].0 += 1,
        |entries, _| entries[0].0 = 0,
        |entries, _| entries[0].0 = 11,
        |entries, mark| entries[2].0 = mark,
        |entries, mark| entries[2].0 = mark + 1,
        |entries, _| entries[2].0 = u64::MAX,
        |entries, _| entries[1].1 = text("n0"),
        |entries, _| entries[1].1 = NONE.to_vec(),
        |entries, _| entries[1].1 = text(&"n".repeat(1025)),
    ];
    for lie in lies {
        let built = three();
        let mark = built.position();
        no_directory(&built.end_with(|root| lie(&mut root.entries, mark)));
    }
    // Beyond a file, too, in parts that a reader does not get to.
    let built = three();
    no_directory(&built.end_with(|root| root.entries[1].0 = root.entries[2].0 - 1));
}

// 59, 62
#[test]
fn counts_that_are_wrong() {
    for count in [0, 1, 2, 4, 64, 67, 1 << 32, u64::MAX] {
        no_directory(&three().end_with(|root| root.count = count));
    }
    no_directory(&three().end_with(|root| {
        root.entries.pop();
    }));
    no_directory(&three().end_with(|root| {
        root.entries.pop();
        root.count -= 1;
    }));
    no_directory(&three().end_with(|root| {
        root.entries.remove(0);
        root.count -= 1;
    }));
    no_directory(&three().end_with(|root| *root = Root::default()));
    no_directory(&three().end_with(|root| root.levels = vec![Vec::new()]));
    no_directory(&three().end_with(|root| root.levels = vec![Vec::new(); 60]));
    // A root that ought to be in blocks.
    let segments = (0..64).map(|value| number(value).bytes(0)).map(|bytes| bytes.len() as u64);
    let mut at = MAGIC.len() as u64;
    let mut built = Built::new();
    let mut entries = Vec::new();
    for (value, len) in segments.enumerate() {
        entries.push(number(value as u64).entry(at));
        built = built.raw(&number(value as u64).bytes(at));
        at += len;
    }
    no_directory(&built.end_with(|root| *root = Root { count: 64, entries, ..Root::default() }));
}

/// 64 segments whose directory block is another.
fn with_block(make: impl FnOnce(&mut Vec<Entry>, u64) -> Vec<u8>) -> Vec<u8> {
    let mut built = Built::new();
    for value in 0..63 {
        built = built.segment(&number(value));
    }
    let mut entries = built.root.entries.clone();
    let at = built.position();
    entries.push(number(63).entry(at));
    built = built.raw(&number(63).bytes(at));
    let at = built.position();
    let block = make(&mut entries, at);
    let levels = vec![vec![(at, block.len() as u64)]];
    built.raw(&block).end_with(|root| *root = Root { count: 64, levels, ..Root::default() })
}

// 56, 63
#[test]
fn blocks_that_lead_elsewhere() {
    let good = with_block(|entries, at| block(entries, at));
    verify(&good).unwrap();
    let archive = Archive::new(At(&good)).unwrap();
    assert_eq!(archive.named("n0").unwrap().load::<u64>().unwrap(), 0);
    let lies: [fn(&mut Vec<Entry>, u64); 8] = [
        |entries, _| entries.swap(0, 1),
        |entries, at| entries[63].0 = at,
        |entries, at| entries[63].0 = at + 1,
        |entries, _| entries[63].0 = u64::MAX,
        |entries, _| entries[0].0 = 0,
        |entries, _| entries[5].1 = text("other"),
        |entries, _| drop(entries.pop()),
        |entries, _| entries[7].0 += 1,
    ];
    for lie in lies {
        no_directory(&with_block(|entries, at| {
            lie(entries, at);
            block(entries, at)
        }));
    }
    no_directory(&with_block(|entries, at| block(&[&entries[..], entries].concat(), at)));
    no_directory(&with_block(|entries, at| block(entries, at + 1)));
    no_directory(&with_block(|_, at| block(&[], at)));
    // A block of another level, that leads to itself, forward, or to what is no block.
    for level in [1, 2, 11, 63, u64::MAX] {
        no_directory(&with_block(|entries, at| {
            let blocks: Vec<BlockAt> = entries.iter().map(|entry| (entry.0, entry.2)).collect();
            upper_block(level, &blocks, at)
        }));
        no_directory(&with_block(|_, at| upper_block(level, &vec![(at, 2000); 64], at)));
        no_directory(&with_block(|_, at| upper_block(level, &[(at, 50), (at + 1, 50)], at)));
    }
    // What the root calls a block is a segment.
    let bytes = Built::new().segment(&number(0)).end_with(|root| {
        let levels = vec![vec![(MAGIC.len() as u64, root.entries[0].2)]];
        *root = Root { count: 64, levels, ..Root::default() };
    });
    no_directory(&bytes);
}

// 63: blocks that share those below them make 64 times as many paths with each level.
#[test]
fn each_block_is_looked_into_once() {
    let mut built = Built::new();
    let at = built.position();
    // Long enough that so many segments could stand before the directory.
    built = built.raw(&Seg::new(text(&"x".repeat(8 << 20)), &[]).bytes(at));
    // No segment stands at these, which no search by name looks at.
    let entry = |entry| (at + entry, text("same"), 40, None, None);
    let entries: Vec<Entry> = (0..64).map(entry).collect();
    let mut lower = Vec::new();
    for _ in 0..64 {
        let at = built.position();
        let block = block(&entries, at);
        lower.push((at, block.len() as u64));
        built = built.raw(&block);
    }
    for level in 1..3 {
        let mut upper = Vec::new();
        for _ in 0..if level == 2 { 1 } else { 64 } {
            let at = built.position();
            let block = upper_block(level, &lower, at);
            upper.push((at, block.len() as u64));
            built = built.raw(&block);
        }
        lower = upper;
    }
    let mut levels = vec![Vec::new(); 2];
    levels.push(lower);
    let bytes = built.end_with(|root| {
        *root = Root { count: 64u64.pow(3), levels, ..Root::default() };
    });
    let archive = Archive::new(At(&bytes)).unwrap();
    // 4,096 blocks, were each looked into by every way to it.
    let error = archive.named("other").unwrap_err();
    assert!(matches!(error.category(), Damaged | Data), "{error}");
    assert!(archive.segment(64u64.pow(3) - 1).is_err());
    assert!(archive.verify().is_err());
}

// 65: nothing grows with the number of segments that an end mark claims.
#[test]
fn large_directories_are_lazy() {
    let count = 1 << 20;
    let mut bytes = MAGIC.to_vec();
    // Long enough that all segments of a block could stand before it.
    let content = "one".repeat(640);
    let seg = Seg::new(text(&content), &[]);
    let mut levels: Vec<Vec<BlockAt>> = vec![Vec::new(); 4];
    let mut entries = Vec::new();
    // Each segment stands there, or opening would do for the wrong reason.
    let one_in_each_block = 64;
    for _ in 0..count / one_in_each_block {
        let at = bytes.len() as u64;
        bytes.extend(seg.bytes(at));
        // The others of the block are lies, that only whoever asks for them meets.
        let header = seg.entry(at).2;
        let entry = |entry| (at + entry, NONE.to_vec(), header, None, None);
        entries.extend((0..one_in_each_block).map(entry));
        let at = bytes.len() as u64;
        let block = block(&std::mem::take(&mut entries), at);
        levels[0].push((at, block.len() as u64));
        bytes.extend(block);
        for level in 0..3 {
            if levels[level].len() == 64 {
                let at = bytes.len() as u64;
                let upper = upper_block(level as u64 + 1, &std::mem::take(&mut levels[level]), at);
                levels[level + 1].push((at, upper.len() as u64));
                bytes.extend(upper);
            }
        }
    }
    while levels.last().is_some_and(Vec::is_empty) {
        levels.pop();
    }
    let root = Root { count, entries, levels, ..Root::default() };
    bytes.extend(root.end(bytes.len() as u64));
    let (archive, peak) = peak_of(|| Archive::new(At(&bytes)).unwrap());
    assert!(peak < 64 << 10, "{peak}");
    assert_eq!(archive.len(), count);
    let ((), peak) = peak_of(|| {
        for index in [0, 64, count / 2, count - 64] {
            assert_eq!(archive.segment(index).unwrap().load::<String>().unwrap(), content);
            assert!(archive.segment(index + 1).is_err());
        }
        assert!(archive.segment(count).is_err());
        assert!(archive.verify().is_err());
    });
    assert!(peak < MIB, "{peak}");
}

// 62
#[test]
fn end_marks_that_are_stale() {
    // Behind segments it does not know of.
    let built = Built::new().segment(&number(0));
    let stale = built.root.clone();
    let built = built.segment(&number(1));
    let mark = stale.end(built.position());
    no_directory(&built.raw(&mark).bytes);

    // Of another place of the same archive.
    let built = Built::new().segment(&number(0));
    let mark = built.root.end(built.position());
    let built = built.segment(&number(1)).raw(&mark);
    no_directory(&built.bytes);

    // Two in a row say the same, and are as good as one.
    let bytes = three().end().end().bytes;
    verify(&bytes).unwrap();
    assert_eq!(values::<u64>(&bytes[..]).0, [0, 1, 2]);
    let mut input = IArchive::new(&bytes[..]).unwrap();
    while input.skip().unwrap() {}
    assert_eq!(input.segments(), 3);

    // What follows a tail without another is unfinished.
    for rest in [&b"\0"[..], &[0; 4096], b"\xd8\x18", MAGIC] {
        let bytes = three().end().raw(rest).bytes;
        let archive = Archive::new(At(&bytes)).unwrap();
        assert_eq!((archive.len(), archive.unfinished_bytes()), (3, rest.len() as u64));
        let torn = Archive::new_torn(At(&bytes)).unwrap();
        assert_eq!(torn.len(), 3);
        let end = (bytes.len() - rest.len()) as u64;
        assert_eq!(torn.torn().unwrap().offset(), Some(end));
        let (found, error) = values::<u64>(&bytes[..]);
        assert_eq!(found, [0, 1, 2]);
        assert!(matches!(error.unwrap().category(), Torn | Damaged | Syntax));
    }
}

// 63
#[test]
fn tails_that_lead_elsewhere() {
    let built = three();
    let mark = built.position();
    let whole = built.end().bytes;
    let at = whole.len() - TAIL;
    let len = at as u64 - mark;
    let first = Archive::new(&whole).unwrap().segment(0).unwrap().offset();
    for to in
        [0, 1, 11, 12, first, first + 5, mark - 1, mark + 1, at as u64, at as u64 + 1, u64::MAX]
    {
        let bytes = [&whole[..at], &tail(to, at as u64 - to.min(at as u64), at as u64)].concat();
        let (opened, peak) = peak_of(|| Archive::new(At(&bytes)).map(drop));
        assert!(opened.is_err(), "{to}");
        assert!(peak < MIB, "{peak}");
        assert!(verify(&bytes).is_err());
        // A stream does without, and still is not told a lie.
        let (found, error) = values::<u64>(&bytes[..]);
        assert!(found == [0, 1, 2] && error.is_some());
    }
    for claimed in [0, at as u64 - 1, at as u64 + 1, u64::MAX] {
        let bytes = [&whole[..at], &tail(mark, len, claimed)].concat();
        assert!(Archive::new(At(&bytes)).is_err());
    }
    for claimed in [0, len - 1, len + 1, u64::MAX - mark, u64::MAX] {
        let bytes = [&whole[..at], &tail(mark, claimed, at as u64)].concat();
        assert!(Archive::new(At(&bytes)).is_err());
    }
    // An end mark far too long to be one, and a small one in a large gap.
    let built = three().raw(&vec![0; 300 << 10]);
    let at = built.position();
    let bytes = built.raw(&tail(mark, at - mark, at)).bytes;
    assert!(Archive::new(At(&bytes)).is_err());
}

// 62: what looks like a tail or a whole archive in a payload is a payload.
#[test]
fn payloads_that_look_like_archives() {
    let inner = three().end().bytes;
    let len = inner.len() as u64;
    let bytes = simple(tensor_ref("u8", &[len], 0), &[&inner]);
    verify(&bytes).unwrap();
    accepts(&bytes, &Tensor(Array1::from(inner)));

    // A tail that would be right at its place, which only the payload's end can be.
    let probe = simple(tensor_ref("u8", &[TAIL as u64], 0), &[&[0; TAIL]]);
    let start = Archive::new(&probe).unwrap().segment(0).unwrap().buffers()[0].0;
    let lie = tail(12, start - 12, start);
    let bytes = simple(tensor_ref("u8", &[TAIL as u64], 0), &[&lie]);
    verify(&bytes).unwrap();
    accepts(&bytes, &Tensor(Array1::from(lie.clone())));
    // Cut there, it ends with a tail, and with no end mark where that says.
    let cut = &bytes[..start as usize + TAIL];
    assert!(Archive::new(At(cut)).is_err());
    assert!(values::<Tensor<Array1<u8>>>(cut).0.is_empty());
}

// 67
#[test]
fn archives_that_are_something_else_too() {
    let whole = three().end().bytes;
    for before in [&b"\0"[..], b"PK\x03\x04", b"<html>", b"#!/bin/sh\n", MAGIC] {
        let bytes = [before, &whole].concat();
        assert!(Archive::new(At(&bytes)).is_err());
        let (found, error) = values::<u64>(&bytes[..]);
        assert!(found.is_empty() && error.is_some());
    }
    // Holes, whatever is in them.
    for hole in [&b"\0"[..], b"\x40", b"\xf6", &[0x44, 1, 2, 3, 4], &[0; 1000]] {
        let built = Built::new().segment(&number(0)).raw(hole).segment(&number(1)).end();
        let bytes = built.bytes;
        unverified(&bytes, &[Damaged, Torn]);
        assert_eq!(values::<u64>(&bytes[..]).0, [0]);
    }
    let bytes = Built::new().raw(&[0x40]).segment(&number(0)).end().bytes;
    unverified(&bytes, &[Damaged, Torn]);
}

// 61: every header is bound to where it stands.
#[test]
fn segments_swapped_or_moved() {
    let (first, second) = (number(0), number(1));
    let at = MAGIC.len() as u64;
    let len = first.bytes(at).len() as u64;
    let good = Built::new().segment(&first).segment(&second).end().bytes;
    let built = Built::new().raw(&second.bytes(at + len)).raw(&first.bytes(at));
    let bytes = [&built.bytes[..], &good[built.bytes.len()..]].concat();
    no_directory(&bytes);
    // One twice.
    let built = Built::new().raw(&first.bytes(at)).raw(&first.bytes(at));
    let bytes = [&built.bytes[..], &good[built.bytes.len()..]].concat();
    no_directory(&bytes);
    // A body of another segment of the same shape.
    let seg = |content: &[u8]| Seg::new(tensor_ref("u8", &[8], 0), &[content]);
    let one = archive(&seg(b"01234567"));
    let mut other = archive(&seg(b"abcdefgh"));
    let body = one.windows(8).position(|window| window == b"01234567").unwrap();
    other[body..body + 8].copy_from_slice(b"01234567");
    unverified(&other, &[Damaged]);
}
