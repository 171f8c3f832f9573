//! `prefetch` once asked Linux to read whole tensors ahead. Linux reads only part of a range that is too long, 8 MiB for
//! example, so the rest of a large tensor was not read.

#![cfg(target_os = "linux")]
#![allow(unsafe_code)]

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;

use serde::Serialize;
use tempfile::TempDir;
use tenarc::{Map, Tensor};

const MIB: usize = 1 << 20;

/// How many bytes of memory that is mapped from a file are in the page cache.
fn present(bytes: &[u8]) -> usize {
    // SAFETY: `sysconf` has no preconditions.
    let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap();
    let start = bytes.as_ptr();
    let before = start as usize % page;
    let len = before + bytes.len();
    let mut pages = vec![0u8; len.div_ceil(page)];
    // SAFETY: the pages are mapped, and there is a byte for each of them.
    let result = unsafe {
        libc::mincore(start.wrapping_sub(before).cast_mut().cast(), len, pages.as_mut_ptr())
    };
    assert_eq!(result, 0);
    pages.iter().filter(|page| *page & 1 == 1).count() * page
}

/// A buffer of the only value in a mapped file.
fn buffer(map: &Map, number: usize) -> &[u8] {
    let [start, len] = <[u64; 2]>::from(map.only().unwrap().buffers()[number])
        .map(|at| usize::try_from(at).unwrap());
    &map.source().as_ref()[start..start + len]
}

/// A saved value in a file that is not in the page cache.
fn evicted(value: &impl Serialize) -> (TempDir, PathBuf) {
    // Of the build, because a directory for temporary files may be in memory.
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = dir.path().join("large.tenarc");
    tenarc::save(&path, value).unwrap();
    let file = File::open(&path).unwrap();
    // SAFETY: the call has no preconditions beyond an open file.
    let result = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    assert_eq!(result, 0);
    (dir, path)
}

#[test]
fn all_of_a_large_tensor_is_read_and_nothing_else() {
    let tensor = |mib: usize| Tensor(vec![0.5f32; mib * MIB / 4]);
    let (_dir, path) = evicted(&(tensor(40), tensor(33), tensor(40)));
    // SAFETY: only this test knows the file, and does not change it.
    let map = unsafe { Map::open(path) }.unwrap();
    let [before, wanted, behind] = [0, 1, 2].map(|number| buffer(&map, number));
    if present(wanted) > 0 {
        eprintln!("the file system keeps files in memory");
        return;
    }
    let (first, last) = (present(before), present(behind));
    map.prefetch("1").unwrap();
    assert!(present(wanted) >= 33 * MIB, "{} bytes", present(wanted));
    // The pages at its ends may have bytes of the others, and the system may read further than it was asked.
    assert!(present(before) <= first + MIB, "{} bytes", present(before));
    assert!(present(behind) <= last + 20 * MIB, "{} bytes", present(behind));
}

#[test]
fn all_groups_of_a_column_are_read_and_no_other_columns() {
    #[derive(Serialize)]
    struct Row {
        before: Tensor<Vec<f32>>,
        wanted: Tensor<Vec<f32>>,
    }
    let tensor = |len: usize| Tensor(vec![0.5; len]);
    let rows: Vec<_> =
        (0..40_000).map(|_| Row { before: tensor(400), wanted: tensor(10) }).collect();
    let (_dir, path) = evicted(&rows);
    // SAFETY: only this test knows the file, and does not change it.
    let map = unsafe { Map::open(path) }.unwrap();
    // A group has 16 MiB.
    let buffers: Vec<_> = (0..map.only().unwrap().buffers().len()).collect();
    let buffers: Vec<_> = buffers.into_iter().map(|number| buffer(&map, number)).collect();
    let (wanted, others): (Vec<_>, Vec<_>) = buffers.into_iter().partition(|b| b.len() < MIB);
    assert!(wanted.len() > 3 && others.len() > 3, "{} and {}", wanted.len(), others.len());
    let total = |buffers: &[&[u8]]| buffers.iter().map(|buffer| present(buffer)).sum::<usize>();
    if total(&wanted[1..wanted.len() - 1]) > 0 {
        eprintln!("the file system keeps files in memory");
        return;
    }
    map.prefetch("wanted").unwrap();
    for buffer in wanted {
        assert!(present(buffer) >= buffer.len(), "{} bytes of {}", present(buffer), buffer.len());
    }
    assert!(total(&others) < 40_000 * 400 * 4 / 2, "{} bytes", total(&others));
}
