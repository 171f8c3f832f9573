//! [`ReadAhead`] reads the same bytes as its source, before they are asked for.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tenarc::Archive;
use tenarc::io::{ReadAhead, ReadAt, Requests};

use super::support::{Counted, Dir, Model, model, to_bytes, variants};

/// Requests of at most 1,000 bytes by three threads, into 6,000 bytes of memory. Gaps of 5,000 bytes are too long.
const REQUESTS: Requests =
    Requests::server().with_longest(1000).with_threads(3).with_memory(6000).with_gap(5000);

/// What a source does with a read, instead of reading.
type Fault = fn(u64) -> io::Result<()>;

/// Bytes of which each read takes a while and gives at most 300.
#[derive(Clone)]
struct Slow {
    bytes: Arc<Vec<u8>>,
    wait: Duration,
    fault: Fault,
    /// Offset and length of each read.
    reads: Arc<Mutex<Vec<(u64, usize)>>>,
    /// Reads in progress, and the most that were in progress at once.
    now: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

impl Slow {
    fn new(len: usize) -> Self {
        Self {
            bytes: Arc::new((0..len).map(|at| (at ^ (at >> 8)) as u8).collect()),
            wait: Duration::from_micros(50),
            fault: |_| Ok(()),
            reads: Arc::default(),
            now: Arc::default(),
            most: Arc::default(),
        }
    }

    fn failing(self, fault: Fault) -> Self {
        Self { fault, ..self }
    }

    /// The ranges that were read, in order. Reads that follow each other are joined.
    fn ranges(&self) -> Vec<Range<u64>> {
        let mut reads = self.reads.lock().unwrap().clone();
        reads.sort_unstable();
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for (at, len) in reads {
            let end = (at + len.min(300) as u64).min(self.bytes.len() as u64);
            match ranges.last_mut() {
                Some(last) if last.end == at => last.end = end,
                _ => ranges.push(at..end),
            }
        }
        ranges
    }

    fn ahead(&self) -> ReadAhead<Self> {
        ReadAhead::with(self.clone(), REQUESTS)
    }
}

impl ReadAt for Slow {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        self.reads.lock().unwrap().push((offset, out.len()));
        self.most.fetch_max(self.now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        std::thread::sleep(self.wait);
        self.now.fetch_sub(1, Ordering::SeqCst);
        (self.fault)(offset)?;
        let most = out.len().min(300);
        self.bytes.read_at(&mut out[..most], offset)
    }

    fn size(&self) -> io::Result<u64> {
        self.bytes.size()
    }
}

/// Reads until `out` is full.
fn read_exact(source: &impl ReadAt, out: &mut [u8], offset: usize) -> io::Result<()> {
    let mut done = 0;
    while done < out.len() {
        match source.read_at(&mut out[done..], (offset + done) as u64)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => done += read,
        }
    }
    Ok(())
}

/// Announces these ranges.
fn will_read<const N: usize>(source: &impl ReadAt, ranges: [Range<u64>; N]) {
    source.will_read(&mut ranges.into_iter());
}

fn announce(source: &impl ReadAt, range: Range<u64>) {
    source.will_read(&mut std::iter::once(range));
}

/// Waits until something is so.
fn wait_until(is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() && started.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(is_so());
}

#[test]
fn reads_of_several_threads_get_the_bytes_of_the_source() {
    let slow = Slow::new(100_123);
    let ahead = slow.ahead();
    std::thread::scope(|scope| {
        for thread in 0..4usize {
            let (ahead, bytes) = (&ahead, &slow.bytes);
            scope.spawn(move || {
                // From front to end, with jumps to other places and back. Some of it is announced, and more than that.
                let mut at = thread * 700;
                for step in 0..150 {
                    let len = 1 + (step * 379 + thread * 31) % 2500;
                    let start = if step % 13 == 12 { (step * 7919) % bytes.len() } else { at };
                    let len = len.min(bytes.len() - start);
                    if step % 5 == 0 {
                        let (start, end) = (start as u64, (start + 7 * len) as u64);
                        will_read(ahead, [start..start + 9, start + 5..end, 90_000..110_000, 8..8]);
                    }
                    let mut out = vec![0; len];
                    read_exact(ahead, &mut out, start).unwrap();
                    assert_eq!(out, bytes[start..start + len], "{len} bytes at {start}");
                    at = (at + len) % bytes.len();
                }
            });
        }
    });
    for offset in [100_123, 100_124, 200_000, u64::MAX] {
        assert_eq!(ahead.read_at(&mut [0; 9], offset).unwrap(), 0);
    }
    assert_eq!(ahead.read_at(&mut [], 0).unwrap(), 0);
}

#[test]
fn what_was_announced_is_read_once_by_all_threads() {
    let mut slow = Slow::new(50_000);
    slow.wait = Duration::from_millis(2);
    let ahead = slow.ahead();
    announce(&ahead, 1000..40_000);
    let mut out = vec![0; 39_000];
    for (number, out) in out.chunks_mut(250).enumerate() {
        read_exact(&ahead, out, 1000 + number * 250).unwrap();
    }
    assert_eq!(out, slow.bytes[1000..40_000]);
    assert!(slow.most.load(Ordering::SeqCst) > 1);
    // Requests of 1,000 bytes, which the source gives in pieces of at most 300.
    assert_eq!(slow.reads.lock().unwrap().len(), 39 * 4);
    assert_eq!(slow.ranges(), std::slice::from_ref(&(1000..40_000)));
}

#[test]
fn only_so_much_is_read_ahead() {
    let slow = Slow::new(100_000);
    let ahead = slow.ahead();
    will_read(&ahead, [20_000..60_000, 90_000..95_000]);
    let end = || slow.ranges().last().map_or(0, |range| range.end);
    wait_until(|| end() == 26_000);
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(slow.ranges(), std::slice::from_ref(&(20_000..26_000)));
    // Where memory becomes free, reading goes on.
    read_exact(&ahead, &mut [0; 1000], 20_000).unwrap();
    wait_until(|| end() == 27_000);
    // What was passed over is not read any more.
    read_exact(&ahead, &mut [0; 5000], 90_000).unwrap();
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(slow.ranges(), [20_000..27_000, 90_000..95_000]);
}

#[test]
fn a_guess_is_corrected_when_the_ranges_are_known() {
    let slow = Slow::new(100_000);
    let ahead = slow.ahead();
    ahead.will_read_most(100..50_000);
    // The memory is full.
    let end = |end| wait_until(|| slow.ranges().last().is_some_and(|range| range.end == end));
    end(6100);
    let check = |range: Range<usize>| {
        let mut out = vec![0; range.len()];
        read_exact(&ahead, &mut out, range.start).unwrap();
        assert_eq!(out, slow.bytes[range]);
    };
    check(100..200);
    will_read(&ahead, [1000..3000, 5000..5100, 40_000..41_000]);
    end(41_000);
    [1000..3000, 5000..5100, 40_000..41_000].into_iter().for_each(check);
    // The rest of the guess is not read, and nothing of it is in memory any more.
    assert_eq!(slow.ranges(), [100..6100, 40_000..41_000]);
    assert_eq!(slow.reads.lock().unwrap().len(), 7 * 4, "each byte is read once");
    announce(&ahead, 60_000..90_000);
    end(66_000);
    // Without any ranges, nothing is needed.
    ahead.will_read_most(0..50_000);
    ahead.will_read(&mut std::iter::empty());
    check(60_000..90_000);
    end(90_000);
}

#[test]
fn ranges_become_one_request_if_little_is_between_them() {
    let requests = Requests::server().with_longest(60_000).with_gap(5000);
    for (ranges, read) in [
        // Each gap is short.
        ([0..100, 3000..3100, 7000..7100], std::iter::once(0..7100).collect()),
        // A gap of 4,500 bytes is read if three times as much around it is wanted.
        ([0..20_000, 24_500..30_000, 31_000..32_000], std::iter::once(0..32_000).collect()),
        ([0..5000, 9500..12_000, 13_000..14_000], vec![0..5000, 9500..14_000]),
        // Gaps of more than 5,000 bytes are never read.
        ([0..30_000, 35_001..60_000, 61_000..62_000], vec![0..30_000, 35_001..62_000]),
        // In any order, within each other, and empty.
        ([500..900, 0..600, 700..700], std::iter::once(0..900).collect()),
    ] {
        let slow = Slow::new(70_000);
        let ahead = ReadAhead::with(slow.clone(), requests);
        will_read(&ahead, ranges.clone());
        for range in &ranges {
            let mut out = vec![0; (range.end - range.start) as usize];
            read_exact(&ahead, &mut out, range.start as usize).unwrap();
            assert_eq!(out, slow.bytes[range.start as usize..range.end as usize]);
        }
        assert_eq!(slow.ranges(), read, "{ranges:?}");
    }
}

#[test]
fn what_nobody_has_announced_goes_to_the_source_as_it_is() {
    let slow = Slow::new(100_000);
    let ahead = slow.ahead();
    let offsets = [5, 90_000, 40_000, 70_000, 10, 60_000];
    for offset in offsets {
        read_exact(&ahead, &mut [0; 100], offset).unwrap();
    }
    assert_eq!(*slow.reads.lock().unwrap(), offsets.map(|offset| (offset as u64, 100)));
}

#[test]
fn what_is_announced_again_is_not_read_again() {
    let slow = Slow::new(50_000);
    let ahead = slow.ahead();
    will_read(&ahead, [0..2000, 10_000..12_000]);
    will_read(&ahead, [500..1500, 10_000..12_000]);
    for start in [0, 10_000] {
        read_exact(&ahead, &mut [0; 2000], start).unwrap();
    }
    assert_eq!(slow.reads.lock().unwrap().len(), 16);
}

#[test]
fn announced_lengths_that_are_not_there_take_no_memory() {
    let slow = Slow::new(5000);
    let ahead = ReadAhead::with(slow.clone(), Requests::drive().with_longest(1000));
    let max = u64::MAX;
    will_read(&ahead, [0..max, 4999..max, max - 1..max, 6000..max - 7]);
    let mut out = vec![0; 5000];
    read_exact(&ahead, &mut out, 0).unwrap();
    assert_eq!(out, *slow.bytes);
    assert_eq!(ahead.read_at(&mut [0], max - 1).unwrap(), 0);
}

#[test]
fn calls_that_end_early_do_not_keep_others_from_reading_ahead() {
    let mut slow = Slow::new(900_000);
    slow.wait = Duration::from_millis(1);
    let ahead = slow.ahead();
    for call in 0..40 {
        announce(&ahead, call * 20_000..call * 20_000 + 10_000);
    }
    let before = slow.most.load(Ordering::SeqCst);
    assert!(before <= 3, "{before}");
    let mut out = vec![0; 50_000];
    announce(&ahead, 850_000..900_000);
    read_exact(&ahead, &mut out, 850_000).unwrap();
    assert_eq!(out, slow.bytes[850_000..]);
}

#[test]
fn an_error_is_that_of_the_read_that_needs_the_bytes() {
    let fails = |offset| match offset {
        30_000..31_000 => Err(io::Error::other("a bad sector")),
        _ => Ok(()),
    };
    let slow = Slow::new(50_000).failing(fails);
    let ahead = slow.ahead();
    announce(&ahead, 0..50_000);
    let mut out = vec![0; 30_000];
    read_exact(&ahead, &mut out, 0).unwrap();
    assert_eq!(out, slow.bytes[..30_000]);
    let error = read_exact(&ahead, &mut [0; 10], 30_000).unwrap_err();
    assert_eq!(error.to_string(), "a bad sector");
    let mut out = vec![0; 19_000];
    read_exact(&ahead, &mut out, 31_000).unwrap();
    assert_eq!(out, slow.bytes[31_000..]);
}

#[test]
fn a_panic_of_the_source_stops_only_the_read_that_needs_the_bytes() {
    let slow = Slow::new(50_000).failing(|offset| {
        assert!(!(30_000..36_000).contains(&offset), "the source panics");
        Ok(())
    });
    let ahead = slow.ahead();
    announce(&ahead, 0..50_000);
    read_exact(&ahead, &mut vec![0; 30_000], 0).unwrap();
    for block in 30..36 {
        let read = || read_exact(&ahead, &mut [0; 10], block * 1000);
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(read)).unwrap_err();
    }
    let mut out = vec![0; 14_000];
    read_exact(&ahead, &mut out, 36_000).unwrap();
    assert_eq!(out, slow.bytes[36_000..]);
}

#[test]
fn threads_end_when_it_is_dropped() {
    let mut slow = Slow::new(50_000);
    slow.wait = Duration::from_millis(5);
    let ahead = slow.ahead();
    announce(&ahead, 0..50_000);
    read_exact(&ahead, &mut [0; 2000], 0).unwrap();
    drop(ahead);
    assert_eq!(Arc::strong_count(&slow.bytes), 1);
}

#[test]
#[should_panic(expected = "0 threads")]
fn zero_threads_are_refused() {
    let _ = Requests::drive().with_threads(0);
}

#[test]
fn archives_are_read_with_requests_of_any_length() {
    let dir = Dir::new();
    let value = model();
    for (name, options) in variants() {
        let bytes = to_bytes(&value, options);
        let path = dir.file("model.tenarc");
        std::fs::write(&path, &bytes).unwrap();
        let file = Archive::new(ReadAhead::open(&path).unwrap()).unwrap();
        assert_eq!(file.load::<Model>().unwrap(), value, "{name}");
        let mut damaged = bytes.clone();
        damaged[bytes.len() / 2] ^= 1;
        let expected = format!("{:?}", Archive::new(&damaged[..]).unwrap().verify());
        assert_eq!(expected.contains("Damaged"), !name.contains("checksums"), "{name}: {expected}");
        for block in [777, 4096, 10 << 20] {
            let requests = Requests::drive().with_longest(block).with_threads(2);
            let ahead = |bytes: &[u8]| ReadAhead::with(Counted::new(bytes.to_vec()), requests);
            let archive = Archive::new(ahead(&bytes)).unwrap();
            assert_eq!(archive.load::<Model>().unwrap(), value, "{name}, {block}");
            archive.verify().unwrap();
            let verified = Archive::new(ahead(&damaged)).unwrap().verify();
            assert_eq!(format!("{verified:?}"), expected, "{name}, {block}");
        }
    }
}
