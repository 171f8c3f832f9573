//! Group L: readers, writers and memory that fail.

use std::io::{self, ErrorKind, Read, Write};

use ndarray::Array1;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_bytes::ByteBuf;
use tenarc::error::Category::{Eof, Io, Limit};
use tenarc::value::RawValue;
use tenarc::{Deserializer, DynTensor, Tensor, Value};

use super::support::{Kind, MIB, Record, head, tensor, unhex, wide};
use tenarc_test_support::Ragged;
use tenarc_test_support::alloc::refusing_above;

fn record() -> Record {
    Record {
        id: 300,
        name: Some("name".into()),
        weight: Some(Tensor(ndarray::arr2(&[[1.0, 2.0], [3.0, 4.0]]))),
        kind: Some(Kind::Tuple(1, "x".into())),
    }
}

/// Takes few bytes at a time, and is interrupted now and then.
struct Slow {
    taken: Vec<u8>,
    calls: usize,
}

impl Write for Slow {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.calls += 1;
        if self.calls.is_multiple_of(3) {
            return Err(ErrorKind::Interrupted.into());
        }
        let len = bytes.len().min(self.calls % 5 + 1);
        self.taken.extend_from_slice(&bytes[..len]);
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

// 80
#[test]
fn short_reads_and_writes_give_the_same() {
    let value = (record(), vec![0.25f64; 5000], "text".repeat(20_000), vec![Some(()), None]);
    let bytes = tenarc::to_vec(&value).unwrap();
    let mut slow = Slow { taken: Vec::new(), calls: 0 };
    tenarc::to_writer(&mut slow, &value).unwrap();
    assert!(slow.taken == bytes);
    type Read = (Record, Vec<f64>, String, Vec<Option<()>>);
    for seed in 0..10 {
        let read: Read = tenarc::from_reader(Ragged::new(&bytes, seed)).unwrap();
        assert!(read == value);
        let raw: Box<RawValue> = tenarc::from_reader(Ragged::new(&bytes, seed)).unwrap();
        assert!(raw.as_bytes() == bytes);
        let mut stream = bytes.repeat(3);
        stream.pop();
        let mut values = Deserializer::from_reader(Ragged::new(&stream, seed)).into_iter::<Read>();
        assert!(values.next().unwrap().unwrap() == value);
        assert!(values.next().unwrap().unwrap() == value);
        assert_eq!(values.next().unwrap().unwrap_err().category(), Eof);
        assert!(values.next().is_none());
    }
}

/// Gives so many bytes, one, or as many as fit, at a time; then errors without end.
struct Failing<'a> {
    rest: &'a [u8],
    step: usize,
    kind: ErrorKind,
    failures: usize,
}

impl<'a> Failing<'a> {
    fn new(rest: &'a [u8], step: usize, kind: ErrorKind) -> Self {
        Self { rest, step, kind, failures: 0 }
    }
}

impl Read for Failing<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.rest.is_empty() {
            self.failures += 1;
            return Err(self.kind.into());
        }
        let len = out.len().min(self.step);
        self.rest.read(&mut out[..len])
    }
}

// 81
#[test]
fn errors_of_readers_are_shown_and_not_retried() {
    fn fails<T: DeserializeOwned>(bytes: &[u8]) {
        for kind in [ErrorKind::WouldBlock, ErrorKind::TimedOut, ErrorKind::ConnectionReset] {
            for step in [1, usize::MAX] {
                for len in 0..bytes.len() {
                    let mut reader = Failing::new(&bytes[..len], step, kind);
                    let result = tenarc::from_reader::<_, T>(&mut reader);
                    let Err(error) = result else { panic!("a value of {len} bytes") };
                    assert_eq!(error.category(), Io);
                    assert_eq!(error.offset(), Some(len as u64), "{error}");
                    assert_eq!(reader.failures, 1);
                    assert_eq!(io::Error::from(error).kind(), kind);
                }
            }
        }
    }
    let bytes = tenarc::to_vec(&record()).unwrap();
    fails::<Record>(&bytes);
    fails::<Value>(&bytes);
    fails::<serde::de::IgnoredAny>(&bytes);
    fails::<Box<RawValue>>(&bytes);
    let chunks = unhex("d828 82 8102 d841 5f 43010201 40 4102 ff");
    fails::<Tensor<Array1<u16>>>(&chunks);
    fails::<Tensor<DynTensor>>(&tensor(40, &[4], 81, &[1; 16]));
    fails::<Option<Option<u8>>>(&unhex("da54534f4d f6"));
    fails::<u128>(&unhex("c2 4101"));
}

// 81
#[test]
fn a_value_is_read_without_waiting_for_what_follows() {
    fn reads<T: DeserializeOwned + PartialEq + std::fmt::Debug + Serialize>(value: &T) {
        let bytes = tenarc::to_vec(value).unwrap();
        for step in [1, 2, usize::MAX] {
            let reader = Failing::new(&bytes, step, ErrorKind::WouldBlock);
            let mut deserializer = Deserializer::from_reader(reader);
            assert_eq!(T::deserialize(&mut deserializer).unwrap(), *value);
            assert_eq!(deserializer.into_inner().0.failures, 0, "asked for more");
        }
    }
    reads(&7u8);
    reads(&record());
    reads(&Some(7u128));
    reads(&Some(u128::MAX));
    reads(&Some(Tensor(vec![7u8])));
    reads(&Some(Some(())));
    reads(&Some(None::<u8>));
    reads(&Some(Value::Tag(1, Box::new(Value::Integer(1)))));
    reads(&vec![Some(Tensor(vec![true]))]);
    reads(&Tensor(vec![0.5f32; 20_000]));
    reads(&Kind::Struct { a: 0.5 });
    reads(&"a".repeat(100_000));
    reads(&Value::Map(vec![(Value::Null, Value::Simple(255))]));
    reads(&(0.5f32, 0.5f64, -1i64, 'x', false, ()));
}

// 81
#[test]
fn a_stream_ends_behind_an_error() {
    let bytes = tenarc::to_vec(&record()).unwrap().repeat(2);
    let reader = Failing::new(&bytes, 7, ErrorKind::WouldBlock);
    let mut stream = Deserializer::from_reader(reader).into_iter::<Record>();
    assert!(stream.next().unwrap().is_ok());
    assert!(stream.next().unwrap().is_ok());
    assert_eq!(stream.byte_offset(), bytes.len() as u64);
    assert_eq!(stream.next().unwrap().unwrap_err().category(), Io);
    assert!(stream.next().is_none());
    // What was read is still there for who goes on.
    let (reader, rest) = stream.into_inner().into_inner();
    assert_eq!((reader.failures, rest), (1, vec![]));
}

// 82
#[test]
fn a_reader_that_ends_in_the_middle_ends_the_input() {
    /// Says once that it is at its end, and then gives more.
    struct Pausing<'a>(&'a [u8], usize);

    impl Read for Pausing<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let Some(before) = self.1.checked_sub(1) else {
                self.1 = usize::MAX;
                return Ok(0);
            };
            self.1 = before;
            let len = out.len().min(1);
            self.0.read(&mut out[..len])
        }
    }

    // Where as much as is there was asked for, asking again is no harm.
    fn ends<T: DeserializeOwned + Serialize>(bytes: &[u8], pause: usize) {
        match tenarc::from_reader::<_, T>(Pausing(bytes, pause)) {
            Ok(value) => assert_eq!(tenarc::to_vec(&value).unwrap(), bytes),
            Err(error) => assert_eq!(error.category(), Eof, "{pause}: {error}"),
        }
    }

    let bytes = tenarc::to_vec(&record()).unwrap();
    let mut ended = 0;
    for pause in 0..bytes.len() {
        ends::<Record>(&bytes, pause);
        ends::<Value>(&bytes, pause);
        ended += usize::from(tenarc::from_reader::<_, Value>(Pausing(&bytes, pause)).is_err());
    }
    assert!(ended > bytes.len() / 2);
}

// 82
#[test]
fn a_reader_that_claims_too_much_is_an_error() {
    struct Boasting(usize);

    impl Read for Boasting {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            out.fill(0x82);
            Ok(out.len().saturating_add(self.0))
        }
    }

    fn refuses<T: DeserializeOwned>(start: &[u8]) {
        for more in [1, 1 << 20, usize::MAX] {
            let result = tenarc::from_reader::<_, T>(start.chain(Boasting(more)));
            assert_eq!(result.err().unwrap().category(), Io);
        }
    }
    refuses::<Value>(&[]);
    refuses::<u8>(&[0x18]);
    refuses::<ByteBuf>(&head(2, 1 << 30));
    refuses::<String>(&head(3, 10));
    refuses::<serde::de::IgnoredAny>(&head(2, 1 << 30));
    let claim = [unhex("d8288281"), head(0, 1 << 20), unhex("d855"), head(2, 1 << 22)].concat();
    refuses::<Tensor<Array1<f32>>>(&claim);
    refuses::<Tensor<DynTensor>>(&claim);
}

/// Takes so many bytes, then fails, or takes nothing more.
struct Full {
    room: usize,
    error: Option<ErrorKind>,
    taken: Vec<u8>,
}

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = bytes.len().min(self.room);
        if len == 0
            && let Some(kind) = self.error
        {
            return Err(kind.into());
        }
        self.room -= len;
        self.taken.extend_from_slice(&bytes[..len]);
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

// 81, 82
#[test]
fn writers_that_fail_are_shown_and_leave_a_broken_stream() {
    let value = (record(), Tensor(vec![0.5f32; 10_000]), "x".repeat(40_000));
    let bytes = tenarc::to_vec(&value).unwrap();
    for room in (0..300).chain([16_383, 16_384, 16_385, 40_000, bytes.len() - 1]) {
        for error in [None, Some(ErrorKind::StorageFull), Some(ErrorKind::BrokenPipe)] {
            let full = Full { room, error, taken: Vec::new() };
            let mut serializer = tenarc::Serializer::new(full);
            let failure = value.serialize(&mut serializer).unwrap_err();
            assert_eq!(failure.category(), Io);
            let kind = io::Error::from(failure).kind();
            assert_eq!(kind, error.unwrap_or(ErrorKind::WriteZero));
            assert!(7u8.serialize(&mut serializer).is_err(), "the stream is broken");
            assert!(bytes.starts_with(&serializer.get_ref().taken));
        }
    }
    let mut full = Full { room: bytes.len(), error: Some(ErrorKind::StorageFull), taken: vec![] };
    tenarc::to_writer(&mut full, &value).unwrap();
    assert!(full.taken == bytes);
}

// 86
#[test]
fn memory_that_runs_out_while_reading_is_an_error() {
    fn limited<T: DeserializeOwned>(start: &[u8]) {
        let endless = start.chain(io::repeat(0));
        let result = refusing_above(8 * MIB, || tenarc::from_reader::<_, T>(endless).map(drop));
        let error = result.unwrap_err();
        assert_eq!(error.category(), Limit, "{error}");
        assert!(error.to_string().contains("out of memory"), "{error}");
    }
    let len = 32 * MIB as u64;
    for typed in [85, 81] {
        let claim = [unhex("d8288281"), wide(0, len / 4), head(6, typed), wide(2, len)].concat();
        limited::<Tensor<Array1<f32>>>(&claim);
        limited::<Tensor<DynTensor>>(&claim);
        limited::<Value>(&claim);
    }
    limited::<ByteBuf>(&wide(2, len));
    limited::<String>(&wide(3, len));
    limited::<Value>(&wide(3, len));
    let chunk = [head(2, 4 * MIB as u64), vec![0; 4 * MIB]].concat();
    let chunks = [vec![0x5f], chunk.repeat(4), vec![0xff]].concat();
    let result = refusing_above(8 * MIB, || tenarc::from_slice::<ByteBuf>(&chunks).map(drop));
    assert_eq!(result.unwrap_err().category(), Limit);
}

// 86
#[test]
fn memory_that_runs_out_while_writing_is_an_error() {
    let tensor = Tensor(vec![0u8; 32 * MIB]);
    let result = refusing_above(8 * MIB, || tenarc::to_vec(&tensor).map(drop));
    assert_eq!(result.unwrap_err().category(), Limit);
    let mut buffer = b"before".to_vec();
    let result = refusing_above(8 * MIB, || tenarc::append_to(&mut buffer, &tensor));
    assert_eq!(result.unwrap_err().category(), Limit);
    assert_eq!(buffer, b"before");
    let small = vec![vec!["text".repeat(50); 100]; 500];
    let result = refusing_above(MIB, || tenarc::to_vec(&small).map(drop));
    assert_eq!(result.unwrap_err().category(), Limit);
    // To a writer it needs no memory.
    refusing_above(MIB, || tenarc::to_writer(io::sink(), &tensor)).unwrap();
}
