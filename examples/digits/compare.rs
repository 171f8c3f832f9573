//! Writes and reads the same checkpoint with other serde formats, and measures time and size.

use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};

use crate::checkpoint::Checkpoint;
use crate::plain::Plain;

/// The number of runs; the median counts.
pub const RUNS: usize = 41;

/// The results of one format.
pub struct Measured {
    pub name: &'static str,
    pub bytes: usize,
    /// Time to write to a new `Vec`.
    pub write: Duration,
    /// Time to read from a slice to an owned checkpoint.
    pub read: Duration,
    /// Whether the checkpoint was read back exactly, bit for bit.
    pub exact: bool,
}

type AnyResult<T> = Result<T, Box<dyn Error>>;

pub fn formats(checkpoint: &Checkpoint) -> AnyResult<Vec<Measured>> {
    let plain = Plain::from(checkpoint.clone());
    Ok(vec![
        measure(
            "tenarc",
            checkpoint,
            checkpoint,
            |c| Ok(tenarc::to_vec(c)?),
            |b| Ok(tenarc::from_slice(b)?),
        )?,
        measure(
            "MessagePack",
            checkpoint,
            checkpoint,
            |c| Ok(rmp_serde::to_vec_named(c)?),
            |b| Ok(rmp_serde::from_slice(b)?),
        )?,
        measure(
            "MessagePack, plain arrays",
            checkpoint,
            &plain,
            |c| Ok(rmp_serde::to_vec_named(c)?),
            |b| Ok(rmp_serde::from_slice(b)?),
        )?,
        measure(
            "JSON",
            checkpoint,
            checkpoint,
            |c| Ok(serde_json::to_vec(c)?),
            |b| Ok(serde_json::from_slice(b)?),
        )?,
    ])
}

fn measure<T: Into<Checkpoint>>(
    name: &'static str,
    original: &Checkpoint,
    value: &T,
    write: impl Fn(&T) -> AnyResult<Vec<u8>>,
    read: impl Fn(&[u8]) -> AnyResult<T>,
) -> AnyResult<Measured> {
    let bytes = write(value)?;
    let back: Checkpoint = read(&bytes)?.into();
    Ok(Measured {
        name,
        bytes: bytes.len(),
        write: median(|| write(value))?,
        read: median(|| read(&bytes))?,
        // tenarc writes all bits of a float, so equal encodings mean equal bits.
        exact: tenarc::to_vec(&back)? == tenarc::to_vec(original)?,
    })
}

fn median<T>(mut run: impl FnMut() -> AnyResult<T>) -> AnyResult<Duration> {
    let mut times = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        let start = Instant::now();
        let result = black_box(run()?);
        times.push(start.elapsed());
        drop(result);
    }
    times.sort_unstable();
    Ok(times[RUNS / 2])
}
