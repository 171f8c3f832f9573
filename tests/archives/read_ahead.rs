//! [`ReadAhead`] reads the same bytes as its source, before they are asked for.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tenarc::Archive;
use tenarc::io::{ReadAhead, ReadAt};

use super::support::{Counted, Dir, Model, model, to_bytes, variants};

const BLOCK: usize = 1000;

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

    fn ahead(&self) -> ReadAhead<Self> {
        ReadAhead::with(self.clone(), BLOCK, 3).unwrap()
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

#[test]
fn reads_of_several_threads_get_the_bytes_of_the_source() {
    let slow = Slow::new(100_123);
    let ahead = slow.ahead();
    std::thread::scope(|scope| {
        for thread in 0..4usize {
            let (ahead, bytes) = (&ahead, &slow.bytes);
            scope.spawn(move || {
                // From front to end, with jumps to other places and back.
                let mut at = thread * 700;
                for step in 0..150 {
                    let len = 1 + (step * 379 + thread * 31) % 2500;
                    let start = if step % 13 == 12 { (step * 7919) % bytes.len() } else { at };
                    let len = len.min(bytes.len() - start);
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
fn what_is_read_from_front_to_end_is_read_ahead_by_all_threads() {
    let slow = Slow::new(50_000);
    let ahead = slow.ahead();
    let mut out = vec![0; 50_000];
    for (number, out) in out.chunks_mut(250).enumerate() {
        read_exact(&ahead, out, number * 250).unwrap();
    }
    assert_eq!(out, *slow.bytes);
    assert!(slow.most.load(Ordering::SeqCst) > 1);
    // The first reads, and then whole blocks in pieces of at most 300 bytes, none of them twice.
    let reads = slow.reads.lock().unwrap().len();
    assert!(reads < 2 + 50 * 4 + 4, "{reads} reads");
}

#[test]
fn only_so_many_blocks_are_read_ahead() {
    let slow = Slow::new(100_000);
    let ahead = slow.ahead();
    read_exact(&ahead, &mut [0; 1500], 20_000).unwrap();
    let (limit, started) = (Duration::from_secs(10), Instant::now());
    let end = || slow.reads.lock().unwrap().iter().map(|(at, _)| *at).max().unwrap();
    // Two blocks for each of three threads, of which the first is that of the last read.
    while end() < 26_900 && started.elapsed() < limit {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(end(), 26_900);
}

#[test]
fn reads_here_and_there_go_to_the_source_as_they_are() {
    let slow = Slow::new(100_000);
    let ahead = slow.ahead();
    let offsets = [5, 90_000, 40_000, 70_000, 10, 60_000];
    for offset in offsets {
        read_exact(&ahead, &mut [0; 100], offset).unwrap();
    }
    assert_eq!(*slow.reads.lock().unwrap(), offsets.map(|offset| (offset as u64, 100)));
}

#[test]
fn a_single_read_of_any_length_is_not_read_ahead() {
    let slow = Slow::new(100_000);
    let ahead = slow.ahead();
    // The source gives at most 300 bytes, so the first is two reads.
    for offset in [70_000, 10_000, 90_000, 40_000] {
        read_exact(&ahead, &mut [0; 400], offset).unwrap();
        ahead.read_at(&mut [0; 3000], offset as u64 + 8_000).unwrap();
    }
    std::thread::sleep(Duration::from_millis(5));
    assert_eq!(slow.reads.lock().unwrap().len(), 4 * 3);
}

#[test]
fn an_error_is_that_of_the_read_that_needs_the_bytes() {
    let fails = |offset| match offset {
        30_000..31_000 => Err(io::Error::other("a bad sector")),
        _ => Ok(()),
    };
    let slow = Slow::new(50_000).failing(fails);
    let ahead = slow.ahead();
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
    read_exact(&ahead, &mut [0; 2000], 0).unwrap();
    drop(ahead);
    assert_eq!(Arc::strong_count(&slow.bytes), 1);
}

#[test]
#[should_panic(expected = "0 threads")]
fn zero_threads_are_refused() {
    drop(ReadAhead::with(Vec::new(), 1, 0));
}

#[test]
fn archives_are_read_with_blocks_of_any_length() {
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
            let ahead =
                |bytes: &[u8]| ReadAhead::with(Counted::new(bytes.to_vec()), block, 2).unwrap();
            let archive = Archive::new(ahead(&bytes)).unwrap();
            assert_eq!(archive.load::<Model>().unwrap(), value, "{name}, {block}");
            archive.verify().unwrap();
            let verified = Archive::new(ahead(&damaged)).unwrap().verify();
            assert_eq!(format!("{verified:?}"), expected, "{name}, {block}");
        }
    }
}
