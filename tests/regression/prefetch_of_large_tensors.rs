//! Linux reads only part of a range that is too long, 8 MiB for example. `prefetch` once asked for whole tensors, so
//! the rest of a large tensor was not read.

#![cfg(target_os = "linux")]
#![allow(unsafe_code)]

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::time::{Duration, Instant};

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

#[test]
fn all_of_a_large_tensor_is_read_and_nothing_else() {
    // Of the build, because a directory for temporary files may be in memory.
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = dir.path().join("large.tenarc");
    let tensor = |mib: usize| Tensor(vec![0.5f32; mib * MIB / 4]);
    // Opening the file may read some MiB at its start and end.
    tenarc::save(&path, &(tensor(20), tensor(33), tensor(20))).unwrap();
    let file = File::open(&path).unwrap();
    // SAFETY: the call has no preconditions beyond an open file.
    let result = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    assert_eq!(result, 0);

    // SAFETY: only this test knows the file, and does not change it.
    let map = unsafe { Map::open(&path) }.unwrap();
    let tensors = ["0", "1", "2"].map(|path| map.only().unwrap().share(path).unwrap());
    let [before, wanted, behind] = [0, 1, 2].map(|at| tensors[at].as_slice::<f32>().unwrap());
    if present(wanted) > 0 {
        eprintln!("the file system keeps files in memory");
        return;
    }
    let (first, last) = (present(before), present(behind));
    map.prefetch("1").unwrap();
    let started = Instant::now();
    while present(wanted) < 33 * MIB && started.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(present(wanted) >= 33 * MIB, "{} bytes", present(wanted));
    // The pages at its ends may have bytes of the others.
    assert!(present(before) <= first + MIB && present(behind) <= last + MIB);
}
