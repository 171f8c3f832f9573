//! Group H: input that is not an archive, or that never ends.

use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use tenarc::archive::SaveOptions;
use tenarc::error::Category;
use tenarc::error::Category::{Eof, Io, Limit, Syntax, Torn};
use tenarc::io::ReadAt;
use tenarc::{Archive, Error, IArchive, Map, OArchive, Value};

use super::support::{At, Dir, MIB};
use tenarc_test_support::alloc::peak_of;
use tenarc_test_support::builder::{Built, MAGIC, Seg, TAIL, head, tail, tensor_ref, unsigned};

/// What each way to open a file says of one that is no archive. None may hang.
#[track_caller]
fn refused_files(path: &Path, categories: &[Category]) -> Vec<String> {
    let (send, receive) = mpsc::channel();
    let owned = path.to_owned();
    std::thread::spawn(move || {
        let path = &owned;
        let errors = [
            tenarc::load::<Value>(path).map(drop),
            tenarc::open(path).map(drop),
            // SAFETY: nobody changes the file meanwhile.
            unsafe { Map::open(path) }.map(drop),
            OArchive::append_existing(path, SaveOptions::default()).map(drop),
        ];
        let _ = send.send(errors.map(Result::err));
    });
    let errors = receive.recv_timeout(Duration::from_secs(10)).expect("hangs");
    let errors = errors.map(|error| error.expect("opened"));
    for error in &errors {
        assert!(categories.contains(&error.category()), "{error:?}");
        assert!(error.to_string().contains(path.file_name().unwrap().to_str().unwrap()), "{error}");
    }
    errors.iter().map(Error::to_string).collect()
}

// 68
#[cfg(unix)]
#[test]
fn files_that_are_none() {
    let dir = Dir::new();
    let fifo = dir.0.join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    if made.is_ok_and(|status| status.success()) {
        for error in refused_files(&fifo, &[Io]) {
            assert!(error.contains("regular file"), "{error}");
        }
    }
    for error in refused_files(&dir.0, &[Io]) {
        assert!(error.contains("directory") || error.contains("regular file"), "{error}");
    }
    for device in ["/dev/zero", "/dev/null"] {
        for error in refused_files(Path::new(device), &[Io]) {
            assert!(error.contains("regular file"), "{error}");
        }
    }
    refused_files(&dir.0.join("missing"), &[Io]);
    // Says that it has no bytes, and has some.
    if Path::new("/proc/self/status").exists() {
        refused_files(Path::new("/proc/self/status"), &[Io, Torn, Eof, Syntax]);
    }
}

// 6, 69
#[test]
fn files_of_few_bytes() {
    let dir = Dir::new();
    for len in 0..12 {
        refused_files(&dir.file(&MAGIC[..len]), &[Torn]);
        if len > 0 {
            for error in refused_files(&dir.file(&vec![b'x'; len]), &[Syntax]) {
                assert!(error.contains("not a tenarc archive"), "{error}");
            }
            let error = IArchive::new(&vec![b'x'; len][..]).unwrap_err();
            assert_eq!(error.category(), Syntax, "{len}: {error}");
        }
        let error = IArchive::new(&MAGIC[..len]).unwrap_err();
        assert_eq!(error.category(), Torn, "{len}: {error}");
    }
    refused_files(&dir.file(MAGIC), &[Torn]);
}

// 64
#[test]
fn files_of_other_formats() {
    let dir = Dir::new();
    let safetensors = {
        let header = br#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;
        [&(header.len() as u64).to_le_bytes()[..], header, &[0; 4]].concat()
    };
    let message = tenarc::to_vec(&vec![1.5f32; 100]).unwrap();
    let described = [b"\xd9\xd9\xf7", &message[..]].concat();
    let others: [&[u8]; 8] = [
        &message,
        &described,
        &safetensors,
        b"\x93NUMPY\x01\x00v\x00{'descr': '<f4'",
        b"PK\x03\x04 and so on",
        b"\x89HDF\r\n\x1a\n and so on",
        &[0; 100],
        &[0xff; 100],
    ];
    for other in others {
        for error in refused_files(&dir.file(other), &[Syntax]) {
            assert!(error.contains("not a tenarc archive"), "{error}");
        }
        assert_eq!(IArchive::new(other).unwrap_err().category(), Syntax);
        let recovered = tenarc::archive::recover(dir.file(other)).unwrap_err();
        assert_eq!(recovered.category(), Syntax);
        assert!(std::fs::read(dir.file(other)).unwrap() == other, "left as it was");
    }
    // An archive is no message either, and says so rather than giving something else.
    assert!(tenarc::from_slice::<Value>(&Built::new().end().bytes).is_err());
}

/// Zeros of any number, behind a start and before an end.
struct Huge {
    start: Vec<u8>,
    len: u64,
    end: Vec<u8>,
}

impl ReadAt for Huge {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        let end = self.len - self.end.len() as u64;
        let here = |at: u64| match (usize::try_from(at), at.checked_sub(end)) {
            (_, Some(behind)) => self.end[behind as usize],
            (Ok(at), None) => self.start.get(at).copied().unwrap_or(0),
            (Err(_), None) => 0,
        };
        let len = (self.len.saturating_sub(offset)).min(out.len() as u64) as usize;
        out[..len].iter_mut().enumerate().for_each(|(at, out)| *out = here(offset + at as u64));
        Ok(len)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.len)
    }
}

// 68
#[test]
fn claims_of_eight_exbibytes() {
    for len in [1u64 << 40, (1 << 62) + 7, i64::MAX as u64, u64::MAX] {
        let start = MAGIC.to_vec();
        let (found, peak) =
            peak_of(|| Archive::new(Huge { start: start.clone(), len, end: Vec::new() }).map(drop));
        assert_eq!(found.unwrap_err().category(), Torn);
        assert!(peak < MIB, "{peak}");
        let torn = Archive::new_torn(Huge { start, len, end: Vec::new() }).unwrap();
        assert!(torn.is_empty() && torn.verify().is_err());

        // An end mark that is said to start long before.
        let at = len - TAIL as u64;
        for mark in [12, at / 2, at - (1 << 20), at - 100, at - 1] {
            let source = Huge { start: MAGIC.to_vec(), len, end: tail(mark, at - mark, at) };
            let (found, peak) = peak_of(|| Archive::new(source).map(drop));
            assert!(found.is_err());
            assert!(peak < MIB, "{peak}");
        }

        // A whole small segment, and a larger one of which a part is there.
        let built = Built::new().segment(&Seg::new(unsigned(7), &[]));
        let claim = 1u64 << 61;
        let seg = Seg::new(tensor_ref("u8", &[claim], 0), &[]).claiming(&[claim]);
        let start = built.clone().raw(&seg.bytes(built.position())).bytes;
        let source = Huge { start, len: len.min(1 << 50), end: Vec::new() };
        let torn = Archive::new_torn(source).unwrap();
        assert_eq!(torn.len(), 2);
        let cut = torn.segment(1).unwrap();
        assert!(cut.missing_bytes() > 0);
        assert_eq!(cut.load::<Value>().unwrap_err().category(), Torn);
        assert_eq!(torn.segment(0).unwrap().load::<u8>().unwrap(), 7);
    }
}

// 68, 15: a tensor of a size that no memory has, which the input has in zeros.
#[test]
fn tensors_larger_than_memory() {
    let claim = 1u64 << 60;
    let checked = Seg::new(tensor_ref("u8", &[claim], 0), &[]).claiming(&[claim]);
    for seg in [checked.clone().unchecked(), checked] {
        let header = seg.bytes(12);
        let start = [MAGIC, &header].concat();
        let root = Built::new().segment(&seg).root;
        // With hashes, these take 8 TiB.
        let len = (1u64 << 60) + (1 << 44);
        let mark_at = len - root.end(len).len() as u64;
        // Its length may depend on the offset: it does not, for offsets as large as these.
        let end = root.end(mark_at);
        let source = Huge { start, len, end };
        let archive = Archive::new(source).unwrap();
        let tensors = archive.tensors().unwrap();
        assert_eq!(tensors[0].byte_len(), claim);
        let error = archive.only().unwrap().dyn_tensor("").unwrap_err();
        assert_eq!(error.category(), Limit, "{error}");
        let slice = ndarray::s![(1isize << 50)..(1 << 50) + 10];
        let (part, peak) = peak_of(|| archive.slice::<ndarray::ArrayD<u8>>("", slice));
        assert!(peak < MIB, "{peak}");
        if seg.check == [0xf6] {
            assert_eq!(part.unwrap().len(), 10);
        } else {
            assert_eq!(part.unwrap_err().category(), Limit);
        }
        let error = archive.slice::<ndarray::ArrayD<u8>>("", ndarray::s![..]).unwrap_err();
        assert_eq!(error.category(), Limit);
    }
}

// 68, 9: a stream that never ends, of which a header claims much.
#[test]
fn streams_that_do_not_end() {
    assert_eq!(IArchive::new(io::repeat(0)).unwrap_err().category(), Syntax);
    let input = MAGIC.chain(io::repeat(0));
    let mut archive = IArchive::new(input).unwrap();
    assert!(archive.load::<Value>().is_err());
    // A header of 15 GiB, of which half a mebibyte comes.
    let start = [MAGIC, b"\xd8\x18", &head(2, 15 << 30)].concat();
    let input = start.chain(io::repeat(0).take(512 << 10));
    let (found, peak) = peak_of(|| IArchive::new(input).unwrap().load::<Value>());
    assert_eq!(found.unwrap_err().category(), Torn);
    assert!(peak < 4 * MIB, "{peak}");
    // A tensor of 15 GiB, of which as much comes.
    let claim = 15 << 30;
    let seg = Seg::new(tensor_ref("u8", &[claim], 0), &[]).claiming(&[claim]);
    let header = seg.bytes(12);
    let at = 12 + header.len() as u64 + 9;
    let gap = (at.next_multiple_of(256) - at) as usize;
    let body =
        [tenarc_test_support::builder::padding(gap), vec![0x5b], claim.to_be_bytes().to_vec()]
            .concat();
    let body = match body.len() - gap {
        9 => body,
        _ => unreachable!(),
    };
    let start = [MAGIC, &header, &body].concat();
    let input = start.chain(io::repeat(0).take(512 << 10));
    let (found, peak) = peak_of(|| {
        IArchive::new(input).unwrap().load::<tenarc::Tensor<tenarc::DynTensor>>().map(drop)
    });
    assert_eq!(found.unwrap_err().category(), Torn);
    assert!(peak < 4 * MIB, "{peak}");
}

// 68: sparse files.
#[cfg(unix)]
#[test]
fn sparse_files() {
    let dir = Dir::new();
    let path = dir.file(&Built::new().segment(&Seg::new(unsigned(7), &[])).bytes);
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    // As large as this file system has them.
    let Some(_) = [1u64 << 62, 1 << 44, 1 << 42].iter().find(|&&len| file.set_len(len).is_ok())
    else {
        return;
    };
    let errors = refused_files(&path, &[Torn, Io, Limit]);
    assert!(errors[0].contains("1 complete segments"), "{}", errors[0]);
    let torn = tenarc::archive::open_torn(&path).unwrap();
    assert_eq!(torn.segment(0).unwrap().load::<u8>().unwrap(), 7);
}

/// Reads a few bytes at a time, and fails now and then.
struct Faulty<'a> {
    bytes: At<'a>,
    count: AtomicU32,
    fail_at: u32,
}

impl ReadAt for Faulty<'_> {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        if count == self.fail_at {
            return Err(io::Error::other("on purpose"));
        }
        if count.is_multiple_of(3) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let len = out.len().min(7);
        self.bytes.read_at(&mut out[..len], offset)
    }

    fn size(&self) -> io::Result<u64> {
        self.bytes.size()
    }
}

// 80, 81, 83
#[test]
fn readers_that_give_little_and_fail() {
    use super::samples::{Model, model, one};

    let bytes = one();
    let source = |fail_at| Faulty { bytes: At(&bytes), count: AtomicU32::new(0), fail_at };
    let archive = Archive::new(source(u32::MAX)).unwrap();
    assert_eq!(archive.load::<Model>().unwrap(), model(1));
    let reads = archive.source().count.load(Ordering::Relaxed);
    for fail_at in 0..reads {
        let result = Archive::new(source(fail_at)).and_then(|archive| archive.load::<Model>());
        assert_eq!(result.unwrap_err().category(), Io, "{fail_at}");
    }
    archive.verify().unwrap();
}

/// Claims to have read more than was asked for.
struct Liar<'a>(At<'a>);

impl ReadAt for Liar<'_> {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(out, offset).map(|len| len + 1)
    }

    fn size(&self) -> io::Result<u64> {
        self.0.size()
    }
}

/// Is shorter than it says.
struct Short<'a>(At<'a>);

impl ReadAt for Short<'_> {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        let end = self.0.size()? / 2;
        if offset >= end && offset + 200 < self.0.size()? {
            return Ok(0);
        }
        self.0.read_at(out, offset)
    }

    fn size(&self) -> io::Result<u64> {
        self.0.size()
    }
}

// 82
#[test]
fn readers_that_lie() {
    let bytes = crate::archives::samples::several();
    assert_eq!(Archive::new(Liar(At(&bytes))).unwrap_err().category(), Io);
    let result = Archive::new(Short(At(&bytes))).and_then(|archive| archive.verify());
    let error = result.unwrap_err();
    assert!(matches!(error.category(), Eof | Torn | Category::Damaged), "{error}");
}
