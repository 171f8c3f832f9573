//! (o) reads 1 % of the rows of a large tensor in a file, verified by the checksums of its chunks.

use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use ndarray::{Array2, s};
use tenarc::archive::{Compression, SaveOptions};
use tenarc::de::DecodeOptions;
use tenarc::io::{ReadAt, SyncLevel};
use tenarc::{Archive, Tensor};

use crate::files::Dir;
use crate::harness::{Case, Column, Effort, Row, timed};
use crate::memory;
use crate::recorder::Recorder;
use crate::table::print_report;
use crate::targets::Targets;

const ROWS: usize = 524_288;
const COLUMNS: usize = 1024;
/// One per cent of the rows, which do not start at a chunk.
const FROM: usize = 77_777;
const TO: usize = FROM + ROWS / 100;

/// The column that this case uses.
const READ: Column = Column::Decode;

/// A file that counts the bytes read from it.
struct Counted {
    file: File,
    read: AtomicU64,
}

impl ReadAt for Counted {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        let read = ReadAt::read_at(&self.file, out, offset)?;
        self.read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }

    fn size(&self) -> io::Result<u64> {
        ReadAt::size(&self.file)
    }
}

fn slice<R: ReadAt>(archive: &Archive<R>) -> Array2<f32> {
    archive.slice("", s![FROM..TO, ..]).unwrap()
}

/// How many of the bytes of the tensor, as stored, are read for the slice.
fn share_read(path: &Path) -> f64 {
    let source = Counted { file: File::open(path).unwrap(), read: AtomicU64::new(0) };
    let archive = prepared(Archive::new(source).unwrap());
    let before = archive.source().read.load(Ordering::Relaxed);
    slice(&archive);
    let read = archive.source().read.load(Ordering::Relaxed) - before;
    read as f64 / archive.source().size().unwrap() as f64
}

fn open(path: &Path, checksums: bool) -> Archive<File> {
    let options = DecodeOptions::default().with_checksums(checksums);
    prepared(tenarc::open(path).unwrap().with_options(options))
}

fn prepared<R: ReadAt>(archive: Archive<R>) -> Archive<R> {
    // Its header and the list of checksums are read once.
    archive.slice::<Array2<f32>>("", s![..1, ..]).unwrap();
    archive
}

pub fn run(effort: Effort, recorder: &mut Recorder, targets: &mut Targets) {
    let dir = Dir::new();
    let path = &dir.file("tensor.tenarc");
    let array = Array2::from_shape_fn((ROWS, COLUMNS), |(row, column)| (row * 31 + column) as f32);
    let expected = array.slice(s![FROM..TO, ..]).to_owned();
    tenarc::archive::save_with(
        path,
        &Tensor(&array),
        SaveOptions::default().with_sync(SyncLevel::Off),
    )
    .unwrap();
    let packed = &dir.file("packed.tenarc");
    let options = SaveOptions::default().with_sync(SyncLevel::Off);
    let options = options.with_compression(Compression::zstd());
    tenarc::archive::save_with(packed, &Tensor(&array), options).unwrap();
    drop(array);

    let (verified, unverified) = (&open(path, true), &open(path, false));
    let compressed = &open(packed, true);
    let (start, len) = verified.only().unwrap().buffers()[0];
    let file = &File::open(path).unwrap();
    let at = start + (FROM * COLUMNS * 4) as u64;
    let read = move || {
        let mut bytes = vec![0; expected.len() * 4];
        file.read_exact_at(&mut bytes, at).unwrap();
        bytes
    };
    assert!(slice(verified) == slice(unverified));
    assert!(slice(verified) == slice(compressed));
    let rows = vec![
        Row::bare("floor", "").on(READ, move || timed(&read)),
        Row::bare("tenarc", "verified").on(READ, move || timed(|| slice(verified))),
        Row::bare("tenarc", "not verified").on(READ, move || timed(|| slice(unverified))),
        Row::bare("tenarc", "zstd, verified").on(READ, move || timed(|| slice(compressed))),
    ];
    let report = Case {
        title: format!("(o) 1 % of the rows of a tensor of {:.0} MB in a file", len as f64 / 1e6),
        heads: ["", "", "read", ""],
        floor: "reads the bytes of the slice into new memory with `pread`",
        rows,
    }
    .run(effort);
    print_report(&report);
    recorder.keep("slices", &report);
    let measured = report.paired(("tenarc", "verified"), ("floor", ""), READ);
    targets.ratio_at_most("o slices", "verified slice of 1 % over pread", measured, 1.2);
    for (text, path) in [
        ("verified slice of 1 %, bytes read of all", path),
        ("verified slice of 1 %, zstd, bytes read of all", packed),
    ] {
        targets.percent_below("o slices", text, share_read(path), 1.3);
    }
    std::fs::remove_file(packed).unwrap();

    threads(path, effort, recorder, targets);
    #[cfg(target_os = "linux")]
    super::cold::run(path, effort, recorder, targets);
}

/// Loads a whole tensor.
pub fn load(path: &Path, options: DecodeOptions) -> Tensor<Array2<f32>> {
    tenarc::archive::load_with(path, options).unwrap()
}

/// The options that read with so many threads.
pub fn with_threads(threads: usize) -> DecodeOptions {
    DecodeOptions::default().with_threads(NonZeroUsize::new(threads).expect("not 0"))
}

/// Loads the whole tensor with one thread and with two. Before each run, as much memory is used as the tensor needs.
fn threads(path: &Path, effort: Effort, recorder: &mut Recorder, targets: &mut Targets) {
    let len = usize::try_from(std::fs::metadata(path).unwrap().len()).unwrap();
    let load = |threads: usize, checksums: bool| {
        move || {
            memory::warm(len);
            timed(|| load(path, with_threads(threads).with_checksums(checksums)))
        }
    };
    let read = move || {
        memory::warm(len);
        timed(|| std::fs::read(path).unwrap())
    };
    let rows = vec![
        Row::bare("floor", "").on(READ, read),
        Row::bare("tenarc", "one thread").on(READ, load(1, true)),
        Row::bare("tenarc", "two threads").on(READ, load(2, true)),
        Row::bare("tenarc", "one thread, unchecked").on(READ, load(1, false)),
        Row::bare("tenarc", "two threads, unchecked").on(READ, load(2, false)),
    ];
    let report = Case {
        title: "(o) the whole tensor".to_owned(),
        heads: ["", "", "load", ""],
        floor: "`std::fs::read`",
        rows,
    }
    .run(effort);
    print_report(&report);
    recorder.keep("threads", &report);
    let measured = report.paired(("tenarc", "two threads"), ("tenarc", "one thread"), READ);
    targets.ratio_at_most(
        "o slices",
        "load with two threads over one, checksums on",
        measured,
        0.6,
    );
}
