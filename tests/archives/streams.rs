//! Archives read and written as streams: order, ends, faults, many segments.

use std::io::{self, ErrorKind, Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};
use tenarc::error::Category;
use tenarc::{Archive, IArchive, OArchive, Tensor};

use super::support::{Model, assert_sound, model, quick, to_bytes, weights};
use tenarc_test_support::{OneByte, Ragged};

/// Three values of different types under names.
fn three() -> Vec<u8> {
    let mut out = OArchive::with_options(Vec::new(), quick()).unwrap();
    out.save_as("header", "text").unwrap();
    out.save_as("model", &model()).unwrap();
    out.save_as("end", &(1, 2)).unwrap();
    assert_eq!(out.segments(), 3);
    out.finish().unwrap()
}

#[test]
fn values_come_in_order_by_name_or_not_at_all() {
    let bytes = three();
    let mut input = IArchive::new(&bytes[..]).unwrap();
    assert_eq!(input.next_name().unwrap(), Some(Some("header")));
    assert_eq!(input.next_name().unwrap(), Some(Some("header")), "it stays");
    assert_eq!(input.load::<String>().unwrap(), "text");
    assert!(!input.is_at_end().unwrap());
    assert_eq!(input.load::<Model>().unwrap(), model());
    assert_eq!(input.segments(), 2);
    assert_eq!(input.load::<(u8, u8)>().unwrap(), (1, 2));
    for _ in 0..2 {
        assert!(input.is_at_end().unwrap());
        assert_eq!(input.next_name().unwrap(), None);
        assert_eq!(input.load::<u8>().unwrap_err().category(), Category::Eof);
        assert!(!input.skip().unwrap());
        assert!(input.records::<u8>().next().is_none());
    }

    let mut input = IArchive::new(&bytes[..]).unwrap();
    assert_eq!(input.load_as::<(u8, u8)>("end").unwrap(), (1, 2));
    let mut input = IArchive::new(&bytes[..]).unwrap();
    assert_eq!(input.load_as::<Model>("model").unwrap(), model());
    let error = input.load_as::<u8>("model").unwrap_err();
    assert_eq!(error.category(), Category::Eof);
    assert!(error.to_string().contains("`model`"), "{error}");

    let mut input = IArchive::new(&bytes[..]).unwrap();
    assert!(input.skip().unwrap() && input.skip().unwrap());
    assert_eq!(input.load::<(u8, u8)>().unwrap(), (1, 2));
    assert!(!input.skip().unwrap());
    let (rest, taken) = input.into_inner();
    assert!(rest.is_empty() && taken.is_empty());
}

#[test]
fn a_value_of_the_wrong_type_does_not_disturb_the_next() {
    #[derive(Deserialize, Debug)]
    struct Deep {
        #[allow(dead_code)]
        layers: Vec<Wrong>,
    }
    #[derive(Deserialize, Debug)]
    struct Wrong {
        #[allow(dead_code)]
        weight: Tensor<Vec<f64>>,
    }
    let mut out = OArchive::with_options(Vec::new(), quick()).unwrap();
    for n in 0..6 {
        out.save(&(n, model())).unwrap();
    }
    let bytes = out.finish().unwrap();
    for ragged in [false, true] {
        let source: Box<dyn Read> =
            if ragged { Box::new(Ragged::new(&bytes, 3)) } else { Box::new(&bytes[..]) };
        let mut input = IArchive::new(source).unwrap();
        assert_eq!(input.load::<String>().unwrap_err().category(), Category::Mismatch);
        let error = input.load::<(u8, Deep)>().unwrap_err();
        assert_eq!(error.category(), Category::Mismatch);
        assert_eq!(error.path(), "1.layers.0.weight", "{error}");
        assert_eq!(input.load::<(u8, Model)>().unwrap(), (2, model()));
        assert!(input.load::<(u8, u8)>().is_err());
        let results: Vec<_> = input.records::<(u8, Model)>().collect();
        assert_eq!(results.len(), 2);
        assert!(results.iter().all(Result::is_ok));
    }
}

#[test]
fn a_value_beyond_the_limits_does_not_disturb_the_next() {
    fn nest(levels: usize) -> tenarc::Value {
        let inner = tenarc::to_value(&weights(1000, 1)).unwrap();
        (0..levels).fold(inner, |value, _| tenarc::Value::Array(vec![value]))
    }
    let mut out = OArchive::with_options(Vec::new(), quick()).unwrap();
    out.save(&nest(100)).unwrap().save(&weights(50_000, 1)).unwrap().save("after").unwrap();
    let bytes = out.finish().unwrap();
    let limits = tenarc::de::Limits::strict().with_max_alloc(100_000);
    let strict = tenarc::de::DecodeOptions::default().with_limits(limits);
    let mut input = IArchive::with_options(&bytes[..], strict).unwrap();
    assert_eq!(input.load::<tenarc::Value>().unwrap_err().category(), Category::Limit);
    let error = input.load::<Tensor<Vec<f32>>>().unwrap_err();
    assert_eq!(error.category(), Category::Limit, "{error}");
    assert_eq!(input.load::<String>().unwrap(), "after");
}

#[test]
fn without_an_end_mark_all_whole_segments_are_still_given() {
    let mut out = OArchive::with_options(Vec::new(), quick()).unwrap();
    let mut ends = vec![out.position()];
    for n in 0..5 {
        out.save(&(n, model())).unwrap();
        ends.push(out.position());
    }
    let bytes = out.finish().unwrap();
    let whole = |len: usize| ends.iter().filter(|&&end| end <= len as u64).count() - 1;
    let near = |&end: &u64| (end as usize - 2)..(end as usize + 3);
    let lengths = (12..bytes.len()).step_by(4001).chain(ends.iter().flat_map(near));
    for len in lengths.filter(|&len| len >= 12) {
        let mut input = IArchive::new(&bytes[..len]).unwrap();
        let mut results: Vec<_> = input.records::<(usize, Model)>().collect();
        let last = results.pop().unwrap();
        assert_eq!(last.unwrap_err().category(), Category::Torn, "{len} bytes");
        assert_eq!(results.len(), whole(len), "{len} bytes");
        for (at, result) in results.into_iter().enumerate() {
            assert_eq!(result.unwrap(), (at, model()));
        }
        // It stays an error, and ends the records.
        assert_eq!(input.load::<u8>().unwrap_err().category(), Category::Torn);
        assert!(input.records::<u8>().next().is_none());
    }
    for len in 0..12 {
        assert_eq!(IArchive::new(&bytes[..len]).unwrap_err().category(), Category::Torn);
    }
}

#[test]
fn an_archive_starts_where_the_stream_stands() {
    let plain = three();
    let mut shifted = Vec::from(b"something else, of 33 bytes in all".as_slice());
    let start = shifted.len();
    let mut out = OArchive::with_options(&mut shifted, quick()).unwrap();
    out.save_as("header", "text").unwrap().save_as("model", &model()).unwrap();
    out.save_as("end", &(1, 2)).unwrap();
    out.finish().unwrap();
    assert!(shifted[start..] == plain, "positions count from the start of the archive");

    let mut input = IArchive::new(&shifted[start..]).unwrap();
    assert_eq!(input.load_as::<Model>("model").unwrap(), model());
    let error = IArchive::new(&shifted[..]).unwrap_err();
    assert_eq!(error.category(), Category::Syntax, "{error}");
}

#[test]
fn several_end_marks_read_as_one_archive() {
    let mut out = OArchive::with_options(Vec::new(), quick()).unwrap();
    out.commit().unwrap().commit().unwrap();
    for n in 0..150 {
        out.save(&(n, weights(600, n))).unwrap();
        if n % 7 == 0 {
            out.commit().unwrap();
        }
        let now = out.get_ref().clone();
        // In between, the archive is what the last commit left.
        let archive = Archive::new(&now[..]).unwrap();
        assert_eq!(archive.len(), (n - n % 7) as u64 + 1);
        assert_eq!(archive.unfinished_bytes() == 0, n % 7 == 0);
    }
    let bytes = out.finish().unwrap();
    assert_sound(&bytes, 256);
    let mut input = IArchive::new(&bytes[..]).unwrap();
    for (n, record) in input.records::<(usize, Tensor<Vec<f32>>)>().enumerate() {
        assert_eq!(record.unwrap(), (n, weights(600, n)));
    }
    assert_eq!(input.segments(), 150);
}

#[test]
fn an_archive_of_nothing() {
    let bytes = OArchive::with_options(Vec::new(), quick()).unwrap().finish().unwrap();
    assert_sound(&bytes, 256);
    assert!(IArchive::new(&bytes[..]).unwrap().is_at_end().unwrap());
    assert!(Archive::new(&bytes[..]).unwrap().is_empty());
    let error = Archive::new(&bytes[..]).unwrap().load::<u8>().unwrap_err();
    assert_eq!(error.category(), Category::NotFound, "{error}");
}

/// Gives so many bytes, then the error, then the rest; or ends there.
struct Stumbling<'a> {
    bytes: &'a [u8],
    left: usize,
    error: Option<ErrorKind>,
}

impl Read for Stumbling<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            let Some(kind) = self.error else { return Ok(0) };
            self.left = usize::MAX;
            return Err(kind.into());
        }
        let len = out.len().min(self.left);
        let read = self.bytes.read(&mut out[..len])?;
        self.left -= read;
        Ok(read)
    }
}

#[test]
fn readers_that_fail_in_the_middle() {
    let bytes = three();
    let read = |left, error| {
        let mut input = IArchive::new(Stumbling { bytes: &bytes, left, error })?;
        let header: String = input.load()?;
        let found: Model = input.load()?;
        let end: (u8, u8) = input.load()?;
        assert!((header.as_str(), &found, end) == ("text", &model(), (1, 2)));
        assert!(input.is_at_end()?);
        Ok::<_, tenarc::Error>(())
    };
    for left in (1..bytes.len()).step_by(61) {
        read(left, Some(ErrorKind::Interrupted)).unwrap();
        for kind in [ErrorKind::WouldBlock, ErrorKind::TimedOut, ErrorKind::ConnectionReset] {
            let error = read(left, Some(kind)).expect_err(&format!("at {left} of {}", bytes.len()));
            assert_eq!(error.category(), Category::Io, "at {left}: {error}");
            assert_eq!(io::Error::from(error).kind(), kind, "at {left}");
        }
        let error = read(left, None).unwrap_err();
        assert_eq!(error.category(), Category::Torn, "at {left}: {error}");
    }
}

#[test]
fn behind_an_error_of_the_reader_nothing_wrong_is_given() {
    let bytes = three();
    for kind in [ErrorKind::WouldBlock, ErrorKind::TimedOut] {
        for left in (12..bytes.len()).step_by(97) {
            let source = Stumbling { bytes: &bytes, left, error: Some(kind) };
            let mut input = match IArchive::new(source) {
                Ok(input) => input,
                Err(error) => {
                    assert_eq!(error.category(), Category::Io);
                    continue;
                }
            };
            let mut failed = 0;
            for _ in 0..3 {
                // Each value, or an error: a value that was being read is lost, and those behind
                // it are still read where the position is known.
                let read = match input.next_name() {
                    Ok(Some(Some("header"))) => {
                        input.load::<String>().map(|text| assert_eq!(text, "text"))
                    }
                    Ok(Some(Some("model"))) => {
                        input.load::<Model>().map(|found| assert_eq!(found, model()))
                    }
                    Ok(Some(Some("end"))) => {
                        input.load::<(u8, u8)>().map(|end| assert_eq!(end, (1, 2)))
                    }
                    Ok(other) => panic!("{other:?}"),
                    Err(error) => Err(error),
                };
                if let Err(error) = read {
                    assert_eq!(error.category(), Category::Io, "at {left}: {error}");
                    failed += 1;
                }
            }
            assert!(failed > 0 || input.is_at_end().is_err(), "at {left}");
        }
    }
}

/// Fails at the call of a number, and takes few bytes at a time.
struct Failing<'a> {
    taken: Vec<u8>,
    calls: &'a AtomicUsize,
    at: usize,
    most: usize,
    error: Option<ErrorKind>,
}

impl Failing<'_> {
    fn call(&self) -> bool {
        self.calls.fetch_add(1, Ordering::Relaxed) == self.at
    }
}

impl Write for Failing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.call() {
            return self.error.map_or(Ok(0), |kind| Err(kind.into()));
        }
        let len = bytes.len().min(self.most);
        self.taken.extend(&bytes[..len]);
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.call() { Err(self.error.unwrap_or(ErrorKind::Other).into()) } else { Ok(()) }
    }
}

#[test]
fn writers_that_fail_at_every_call() {
    let expected = three();
    let write = |at, error, calls: &AtomicUsize| {
        let mut out = OArchive::with_options(
            Failing { taken: Vec::new(), calls, at, most: 900, error },
            quick(),
        )?;
        let mut first = None;
        for n in 0..3 {
            let saved = match n {
                0 => out.save_as("header", "text"),
                1 => out.save_as("model", &model()),
                _ => out.save_as("end", &(1, 2)),
            };
            if let Err(error) = saved.map(drop) {
                // It fails once only, and yet nothing may follow what is incomplete.
                assert!(out.save("next").is_err());
                assert!(expected.starts_with(&out.get_ref().taken));
                first = first.or(Some(error));
                break;
            }
        }
        match first {
            Some(error) => {
                assert!(out.finish().is_err());
                Err(error)
            }
            None => out.finish().map(|writer| writer.taken),
        }
    };
    let calls = AtomicUsize::new(0);
    assert!(write(usize::MAX, None, &calls).unwrap() == expected);
    let total = calls.load(Ordering::Relaxed);
    assert!(total > 40);
    for at in 0..total {
        let calls = AtomicUsize::new(0);
        assert!(write(at, Some(ErrorKind::Interrupted), &calls).is_ok() || at == total - 1);
        for error in [Some(ErrorKind::StorageFull), None] {
            let calls = AtomicUsize::new(0);
            let failed = write(at, error, &calls).unwrap_err();
            assert_eq!(failed.category(), Category::Io, "call {at}: {failed}");
            assert!(calls.load(Ordering::Relaxed) <= at + 2, "nothing is tried again");
        }
    }
}

#[test]
fn readers_of_few_bytes_see_the_same() {
    let bytes = three();
    for source in [
        Box::new(OneByte(&bytes)) as Box<dyn Read>,
        Box::new(Ragged::new(&bytes, 5)),
        Box::new(io::BufReader::with_capacity(7, &bytes[..])),
    ] {
        let mut input = IArchive::new(source).unwrap();
        assert_eq!(input.next_name().unwrap(), Some(Some("header")));
        assert_eq!(input.load::<String>().unwrap(), "text");
        assert_eq!(input.load::<Model>().unwrap(), model());
        assert!(input.skip().unwrap());
        assert!(input.is_at_end().unwrap());
    }
}

#[test]
fn thousands_of_segments() {
    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    struct Record {
        id: usize,
        weight: Tensor<Vec<f32>>,
    }
    // Two levels of blocks.
    let count = 5000;
    let mut out = OArchive::with_options(Vec::new(), quick().with_alignment(8)).unwrap();
    for id in 0..count {
        let weight = weights(if id % 100 == 0 { 600 } else { 3 }, id);
        out.save_as(&format!("n{id}"), &Record { id, weight }).unwrap();
    }
    assert_eq!(out.segments(), count as u64);
    let bytes = out.finish().unwrap();
    assert_sound(&bytes, 8);
    let mut input = IArchive::new(&bytes[..]).unwrap();
    for (id, record) in input.records::<Record>().enumerate() {
        let record = record.unwrap();
        assert_eq!(record.id, id);
        assert_eq!(record.weight, weights(if id % 100 == 0 { 600 } else { 3 }, id));
    }
    assert_eq!(input.segments(), count as u64);
    let mut input = IArchive::new(&bytes[..]).unwrap();
    assert_eq!(input.load_as::<Record>("n4444").unwrap().id, 4444);
}

#[test]
fn what_stands_behind_an_archive_in_a_stream() {
    // A second end mark or more segments may follow the first, so that the end of the stream is
    // the end of the archive, and what else follows is damage.
    let mut bytes = to_bytes(&1, quick());
    bytes.extend(b"a line that follows");
    let mut input = IArchive::new(&bytes[..]).unwrap();
    assert_eq!(input.load::<u8>().unwrap(), 1);
    assert_eq!(input.is_at_end().unwrap_err().category(), Category::Damaged);
    // Who knows how many values there are never asks, and gets the rest back.
    let mut input = IArchive::new(&bytes[..]).unwrap();
    assert_eq!(input.load::<u8>().unwrap(), 1);
    let (rest, taken) = input.into_inner();
    let behind = [&taken, rest].concat();
    assert!(bytes.ends_with(&behind) && behind.ends_with(b"a line that follows"));
}

/// Panics when it is read.
struct Panics;

impl<'de> Deserialize<'de> for Panics {
    fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        panic!("on purpose")
    }
}

// 96
#[test]
fn behind_a_value_that_panicked_nothing_is_read() {
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save(&vec![0.5f32; 5000]).unwrap().save(&7u8).unwrap();
    let bytes = out.finish().unwrap();
    let mut input = IArchive::new(&bytes[..]).unwrap();
    let run = std::panic::AssertUnwindSafe(|| input.load::<Panics>().map(drop));
    assert!(std::panic::catch_unwind(run).is_err());
    let error = input.load::<u8>().unwrap_err();
    assert!(error.to_string().contains("panicked"), "{error}");
    assert!(input.records::<u8>().next().is_none());
}
