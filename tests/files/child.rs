//! This test program as a process of its own, which can be killed, limited and watched.

use std::env;
use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tenarc::OArchive;
use tenarc::archive::{Compression, SaveOptions};
use tenarc::error::Category;

use crate::support::{name, record};

const JOB: &str = "TENARC_TEST_JOB";
const PATH: &str = "TENARC_TEST_PATH";
/// Looked for just before the work begins and just after it ended, so that a trace shows where.
pub const BEGIN: &str = "/tenarc-test-begins";
pub const END: &str = "/tenarc-test-ends";

/// What the exit code says of the work.
pub const DONE: i32 = 0;
pub const FAILED: i32 = 3;

/// The arguments with which this executable does nothing but a job.
pub const ARGS: [&str; 4] = ["--exact", "child::work", "--nocapture", "--test-threads=1"];

pub fn executable() -> PathBuf {
    env::current_exe().unwrap()
}

/// Tells a command that runs this executable what to do.
pub fn assign<'a>(command: &'a mut Command, job: &str, path: &Path) -> &'a mut Command {
    command.env(JOB, job).env(PATH, path).env_remove("RUST_BACKTRACE")
}

pub fn command(job: &str, path: &Path) -> Command {
    let mut command = Command::new(executable());
    command.args(ARGS);
    assign(&mut command, job, path);
    command
}

#[test]
fn work() {
    let (Ok(job), Some(path)) = (env::var(JOB), env::var_os(PATH)) else { return };
    let words: Vec<&str> = job.split(' ').collect();
    count_calls();
    let _ = std::fs::metadata(BEGIN);
    let result = match words[..] {
        ["save", number, len] => {
            tenarc::save(&path, &record(number.parse().unwrap(), len.parse().unwrap()))
        }
        ["append", from, count, len] => {
            append(&path, from.parse().unwrap(), count.parse().unwrap(), len.parse().unwrap())
        }
        ["append_compressed", codec, from, count, len] => {
            let numbers = [from, count].map(|number| number.parse().unwrap());
            append_with(&path, numbers, len.parse().unwrap(), compressed(codec))
        }
        ["recover"] => tenarc::archive::recover(&path).map(drop),
        ["append_loop", from, count] => {
            append_loop(&path, from.parse().unwrap(), count.parse().unwrap())
        }
        ["save_loop", from, count] => {
            let from: u32 = from.parse().unwrap();
            let count: u32 = count.parse().unwrap();
            (from..from + count).try_for_each(|number| tenarc::save(&path, &record(number, 600)))
        }
        _ => panic!("unknown job: {job}"),
    };
    let _ = std::fs::metadata(END);
    if let Err(error) = &result {
        eprintln!("{error}");
    }
    std::process::exit(if result.is_ok() { DONE } else { FAILED });
}

/// Calls of one name are counted for each thread, and those that start a process come first: makes
/// so many that those of the work have numbers of their own.
fn count_calls() {
    use std::os::unix::fs::FileExt as _;

    for _ in 0..40 {
        let Ok(mut file) = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")
        else {
            return;
        };
        let _ = std::fs::metadata("/dev/null");
        let _ = file.write(b"x");
        let _ = file.read_at(&mut [0], 0);
    }
}

fn append(path: &OsStr, from: u32, count: u32, len: usize) -> tenarc::Result<()> {
    append_with(path, [from, count], len, SaveOptions::default())
}

/// Options with this codec, and chunks that are short enough for several in a tensor.
pub fn compressed(codec: &str) -> SaveOptions {
    let compression = match codec {
        "zstd" => Compression::zstd(),
        _ => Compression::lz4(),
    };
    // With several threads, calls of the system would come in another order each time.
    let options = SaveOptions::default().with_threads(std::num::NonZeroUsize::MIN);
    options.with_compression(compression).with_chunk_len(64 << 10)
}

pub fn append_with(
    path: &OsStr,
    [from, count]: [u32; 2],
    len: usize,
    options: SaveOptions,
) -> tenarc::Result<()> {
    let mut out = OArchive::append_with(path, options)?;
    for number in from..from + count {
        out.save_as(&name(number), &record(number, len))?;
    }
    out.finish().map(drop)
}

/// Appends records one by one, each in a session of its own, and writes the number of each that was
/// reported as saved. Waits for others, and goes on behind what another process left unfinished.
fn append_loop(path: &OsStr, from: u32, count: u32) -> tenarc::Result<()> {
    let busy = |error: &tenarc::Error| {
        // Another one may hold it, or have changed it between two steps.
        error.category() == Category::Io
    };
    let options = SaveOptions::default();
    for number in from..from + count {
        for attempt in 0.. {
            let session = OArchive::append_with(path, options.clone());
            let mut out = match session {
                Ok(out) => out,
                Err(error) if busy(&error) && attempt < 20_000 => {
                    std::thread::sleep(Duration::from_micros(200));
                    continue;
                }
                Err(error) => return Err(error),
            };
            out.save_as(&name(number), &record(number, 600))?;
            out.finish()?;
            break;
        }
        // Unbuffered, and whole lines: the process may be killed at any time.
        let mut stderr = std::io::stderr();
        stderr.write_all(format!("saved {number}\n").as_bytes()).unwrap();
    }
    Ok(())
}
