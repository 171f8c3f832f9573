//! `prefetch` once asked Linux to read whole tensors ahead. Linux reads only part of a range that is too long, 8 MiB for
//! example, so the rest of a large tensor was not read.

#![cfg(target_os = "linux")]
#![allow(unsafe_code)]

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

use serde::Serialize;
use tempfile::TempDir;
use tenarc::{Map, Tensor};

const MIB: usize = 1 << 20;

/// How many bytes of memory that is mapped from a file are in the page cache.
fn present(bytes: &[f32]) -> usize {
    // SAFETY: `sysconf` has no preconditions.
    let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap();
    let start = bytes.as_ptr().cast::<u8>();
    let before = start as usize % page;
    let len = before + size_of_val(bytes);
    let mut pages = vec![0u8; len.div_ceil(page)];
    // SAFETY: the pages are mapped, and there is a byte for each of them.
    let result = unsafe {
        libc::mincore(start.wrapping_sub(before).cast_mut().cast(), len, pages.as_mut_ptr())
    };
    assert_eq!(result, 0);
    pages.iter().filter(|page| *page & 1 == 1).count() * page
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

/// Prefetches `wanted`, and checks that all of it is read, but not the tensors before and behind it.
fn only_this_is_read(path: &Path, [before, wanted, behind]: [&str; 3]) {
    // SAFETY: only this test knows the file, and does not change it.
    let map = unsafe { Map::open(path) }.unwrap();
    let tensors = [before, wanted, behind].map(|path| map.share(path).unwrap());
    let [before, this, behind] = [0, 1, 2].map(|at| tensors[at].as_slice::<f32>().unwrap());
    if present(this) > 0 {
        eprintln!("the file system keeps files in memory");
        return;
    }
    let (first, last) = (present(before), present(behind));
    map.prefetch(wanted).unwrap();
    assert!(present(this) >= size_of_val(this), "{} bytes", present(this));
    // The pages at its ends may have bytes of the others, and the system may read further than it was asked.
    assert!(present(before) <= first + MIB, "{} bytes", present(before));
    assert!(present(behind) <= last + 20 * MIB, "{} bytes", present(behind));
}

#[test]
fn all_of_a_large_tensor_is_read_and_nothing_else() {
    let tensor = |mib: usize| Tensor(vec![0.5f32; mib * MIB / 4]);
    let (_dir, path) = evicted(&(tensor(40), tensor(33), tensor(40)));
    only_this_is_read(&path, ["0", "1", "2"]);
}

#[test]
fn of_a_column_the_same_is_true() {
    #[derive(Serialize)]
    struct Row {
        before: Tensor<Vec<f32>>,
        wanted: Tensor<Vec<f32>>,
        behind: Tensor<Vec<f32>>,
    }
    let tensor = |len: usize| Tensor(vec![0.5; len]);
    let row = |_| Row { before: tensor(4096), wanted: tensor(2048), behind: tensor(4096) };
    let rows: Vec<_> = (0..2500).map(row).collect();
    let (_dir, path) = evicted(&rows);
    only_this_is_read(&path, ["before", "wanted", "behind"]);
}
