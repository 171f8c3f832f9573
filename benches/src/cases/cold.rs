//! (o) loads a tensor from a file that is not in the page cache.

use std::fs::File;
use std::hint::black_box;
use std::io::Read as _;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::time::Duration;

use ndarray::{Array2, ArrayView2};
use tenarc::de::DecodeOptions;
use tenarc::io::ReadAhead;
use tenarc::{Archive, Map, Tensor};

use super::slices;
use crate::files::{self, Dir};
use crate::harness::{Case, Column, Effort, Row, timed};
use crate::machine;
use crate::memory;
use crate::recorder::Recorder;
use crate::table::print_report;
use crate::targets::Targets;

/// The column that this case uses.
const LOAD: Column = Column::Decode;

/// Columns of a tensor of f32.
const COLUMNS: usize = 1024;
/// The rows of a tensor of 537 MB.
const ROWS: usize = 131_072;

/// Whether the machine has room for a file of `len` bytes in memory, as a tensor and in the page cache, and as much again
/// for what [`cold`] uses before.
fn has_room(len: u64) -> bool {
    machine::available_memory().is_some_and(|bytes| bytes > 4 * len)
}

/// Removes a file from the page cache. It must be synced.
fn evict(path: &Path) {
    let file = File::open(path).unwrap();
    // SAFETY: the call has no preconditions beyond an open file.
    let result = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    assert_eq!(result, 0);
}

/// Times work on a file that is not in the page cache. Before that, as much memory is used as the tensor and the page
/// cache need.
fn cold<R>(path: &Path, work: impl FnOnce() -> R) -> Duration {
    let len = usize::try_from(std::fs::metadata(path).unwrap().len()).unwrap();
    memory::warm(2 * len);
    evict(path);
    timed(work)
}

/// Reads a file as `dd` does: from front to end, into the same MiB of memory.
fn read_through(path: &Path) {
    let mut block = vec![0; 1 << 20];
    let mut file = File::open(path).unwrap();
    while file.read(&mut block).unwrap() > 0 {
        black_box(&block);
    }
}

/// Reads a byte of each page.
fn touch(bytes: &[u8]) -> u64 {
    bytes.iter().step_by(4096).map(|byte| u64::from(*byte)).sum()
}

/// `large` is a file with a tensor of 2 GB. It is measured in a full run, if there is memory for it. Otherwise, a tensor of
/// 537 MB is.
pub fn run(large: &Path, effort: Effort, recorder: &mut Recorder, targets: &mut Targets) {
    let dir = Dir::new();
    let small = dir.file("cold.tenarc");
    let path = if effort.large_files && has_room(std::fs::metadata(large).unwrap().len()) {
        File::open(large).unwrap().sync_all().unwrap();
        large
    } else {
        let number = |(row, column): (usize, usize)| (row * 31 + column) as f32;
        tenarc::save(&small, &Tensor(Array2::from_shape_fn((ROWS, COLUMNS), number))).unwrap();
        &small
    };
    let (_, len) = tenarc::open(path).unwrap().only().unwrap().buffers()[0];
    let load = |options| move || cold(path, || slices::load(path, options));
    let default = DecodeOptions::default();
    let prefetched = || {
        // SAFETY: only this program writes the file, and not while it is mapped.
        let map = unsafe { Map::open(path) }.unwrap();
        map.prefetch("").unwrap();
        let view: Tensor<ArrayView2<f32>> = map.view().unwrap();
        touch(bytemuck::cast_slice(view.as_slice().unwrap()))
    };
    let ahead = || {
        let archive = Archive::new(ReadAhead::open(path).unwrap()).unwrap();
        archive.load::<Tensor<Array2<f32>>>().unwrap()
    };
    let rows = vec![
        Row::bare("floor", "").on(LOAD, move || cold(path, || read_through(path))),
        Row::bare("std::fs::read", "")
            .on(LOAD, move || cold(path, || std::fs::read(path).unwrap())),
        Row::bare("tenarc", "load").on(LOAD, load(default)),
        Row::bare("tenarc", "load, one thread").on(LOAD, load(slices::with_threads(1))),
        Row::bare("tenarc", "load, unchecked").on(LOAD, load(default.with_checksums(false))),
        Row::bare("tenarc", "load by ReadAhead").on(LOAD, move || cold(path, ahead)),
        Row::bare("a map", "touched").on(LOAD, move || cold(path, || touch(&files::map(path)))),
        Row::bare("tenarc", "map, prefetched, touched").on(LOAD, move || cold(path, prefetched)),
    ];
    let report = Case {
        title: format!("(o) a tensor of {:.0} MB that is not in the page cache", len as f64 / 1e6),
        heads: ["", "", "load", ""],
        floor: "reads the file from front to end into the same MiB of memory, as `dd` does",
        rows,
    }
    .run(effort);
    print_report(&report);
    recorder.keep("cold", &report);
    let over = |other| report.paired(other, ("tenarc", "load"), LOAD);
    targets.at_least_of(
        "o slices",
        "cold load: time of dd / tenarc".into(),
        over(("floor", "")),
        "x",
        0.92,
    );
    targets.at_least_of(
        "o slices",
        "cold load by ReadAhead: time of dd / tenarc".into(),
        report.paired(("floor", ""), ("tenarc", "load by ReadAhead"), LOAD),
        "x",
        0.92,
    );
    let text = "cold load: time of touching a map / tenarc".into();
    targets.at_least_of("o slices", text, over(("a map", "touched")), "x", 2.0);
}
