//! Parts over asynchronous streams: the same bytes as over others, without joining or copying tensors, within limits.

mod support;

use bytes::Bytes;
use futures::stream::{StreamExt, TryStreamExt, select_all};
use support::{Received, SlowReader, SlowWriter, assert_is, poll_all, value};
use tenarc::Tensor;
use tenarc::archive::SaveOptions;
use tenarc::de::{DecodeOptions, Limits};
use tenarc::error::Category;
use tenarc::parts::{Parts, Split};
use tenarc_tokio::{PartsReader, PartsWriter};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn bytes_of(numbers: std::ops::Range<u8>) -> Vec<u8> {
    let mut bytes = Vec::new();
    numbers.for_each(|n| Split::new(&value(n, true)).unwrap().write_to(&mut bytes).unwrap());
    bytes
}

#[tokio::test]
async fn values_cross_a_socket_both_ways() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    // In a task, which shows that the futures can be sent between threads.
    let server = tokio::spawn(async move {
        let (read, write) = listener.accept().await.unwrap().0.into_split();
        let (mut reader, mut writer) = (PartsReader::new(read), PartsWriter::new(write));
        let mut count = 0;
        while let Some(parts) = reader.next().await.unwrap() {
            writer.send(parts).await.unwrap();
            count += 1;
        }
        count
    });
    let (read, write) = tokio::net::TcpStream::connect(address).await.unwrap().into_split();
    let (mut reader, mut writer) = (PartsReader::new(read), PartsWriter::new(write));
    for number in 0..20 {
        let value = value(number, number % 2 == 0);
        writer.send_value(&value).await.unwrap();
        assert_is(&reader.recv::<Received>().await.unwrap().unwrap(), &value);
    }
    drop(writer);
    assert!(reader.next().await.unwrap().is_none());
    assert_eq!(server.await.unwrap(), 20);
}

#[test]
fn the_bytes_are_those_of_other_streams() {
    let expected = bytes_of(1..2);
    for is_vectored in [false, true] {
        for step in [200, 3000, 65_536, usize::MAX] {
            let mut writer = PartsWriter::new(SlowWriter::new(step, is_vectored));
            poll_all(writer.send_value(&value(1, true))).unwrap();
            assert!(writer.into_inner().written == expected);
            let mut writer = PartsWriter::new(SlowWriter::new(step, is_vectored));
            poll_all(writer.send(tenarc::to_parts(&value(1, true)).unwrap())).unwrap();
            assert!(writer.into_inner().written == expected);
        }
    }
    // And they are read from others.
    let parts = Parts::read_from(&expected[..]).unwrap().into_shared();
    assert_is(&parts.load_shared::<Received>().unwrap(), &value(1, true));
}

#[test]
fn not_a_byte_more_is_read() {
    let mut bytes = bytes_of(1..3);
    bytes.extend_from_slice(b"and more");
    for step in [1, 3, 11, usize::MAX] {
        let mut reader = PartsReader::new(SlowReader::new(&bytes, step));
        for number in [1, 2] {
            assert_is(&poll_all(reader.recv::<Received>()).unwrap().unwrap(), &value(number, true));
        }
        assert_eq!(reader.into_inner().bytes, b"and more");
    }
}

#[test]
fn values_of_every_size_are_read() {
    // Metadata longer than what is read at once, values without buffers, empty ones.
    let long: Vec<String> = (0..60_000).map(|n| format!("text number {n}")).collect();
    let mut bytes = Vec::new();
    tenarc::to_parts(&long).unwrap().write_to(&mut bytes).unwrap();
    tenarc::to_parts(&()).unwrap().write_to(&mut bytes).unwrap();
    tenarc::to_parts(&7u8).unwrap().write_to(&mut bytes).unwrap();
    let many: Vec<Tensor<Vec<u8>>> = (0..2000).map(|n| vec![0; n].into()).collect();
    let options = SaveOptions::default().with_inline_below(0);
    tenarc::parts::to_parts_with(&many, options).unwrap().write_to(&mut bytes).unwrap();
    for step in [1000, usize::MAX] {
        let mut reader = PartsReader::new(SlowReader::new(&bytes, step));
        assert_eq!(poll_all(reader.recv::<Vec<String>>()).unwrap().unwrap(), long);
        poll_all(reader.recv::<()>()).unwrap().unwrap();
        assert_eq!(poll_all(reader.recv::<u8>()).unwrap(), Some(7));
        assert_eq!(poll_all(reader.recv::<Vec<Tensor<Vec<u8>>>>()).unwrap().unwrap(), many);
        assert!(poll_all(reader.next()).unwrap().is_none());
    }
}

#[test]
fn tensors_are_written_from_their_own_memory() {
    let value = value(1, false);
    let mut writer = PartsWriter::new(SlowWriter::new(usize::MAX, true));
    poll_all(writer.send_value(&value)).unwrap();
    let calls = writer.into_inner().calls;
    let place = |address: *const u8, len| (address as usize, len);
    let contiguous = value.contiguous.as_slice().unwrap();
    // The first call has the metadata and the first tensor, which lies where the value has it.
    assert_eq!(calls[0].len(), 2);
    assert_eq!(calls[0][1], place(contiguous.as_ptr().cast(), contiguous.len() * 4));
    let bytes = place(value.bytes.as_ptr(), value.bytes.len());
    assert!(calls.iter().flatten().any(|slice| *slice == bytes));
}

#[test]
fn buffers_are_sent_with_the_metadata_in_one_call() {
    let parts = tenarc::to_parts(&value(1, false)).unwrap();
    let buffers: Vec<Bytes> =
        parts.buffers().iter().map(|bytes| Bytes::copy_from_slice(bytes)).collect();
    let places: Vec<_> =
        buffers.iter().filter(|b| !b.is_empty()).map(|b| (b.as_ptr() as usize, b.len())).collect();
    let parts = Parts::new(parts.metadata(), buffers).unwrap();
    let mut writer = PartsWriter::new(SlowWriter::new(usize::MAX, true));
    poll_all(writer.send(parts)).unwrap();
    let calls = writer.into_inner().calls;
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0][1..], places);
}

#[test]
fn received_buffers_are_passed_on_as_bytes_without_copying() {
    let sent = bytes_of(1..2);
    let parts = poll_all(PartsReader::new(&sent[..]).next()).unwrap().unwrap();
    let places: Vec<_> = parts.buffers().iter().map(|buffer| buffer.as_ptr()).collect();
    let (metadata, buffers) = parts.into_inner();
    let buffers: Vec<Bytes> = buffers.into_iter().map(Bytes::from_owner).collect();
    assert_eq!(buffers.iter().map(|bytes| bytes.as_ptr()).collect::<Vec<_>>(), places);
    let mut writer = PartsWriter::new(Vec::new());
    poll_all(writer.send(Parts::new(metadata, buffers).unwrap())).unwrap();
    assert!(writer.into_inner() == sent);
}

#[test]
fn a_stream_that_ends_inside_a_value_is_torn() {
    let bytes = bytes_of(1..2);
    let ends = (1..200).chain((200..bytes.len()).step_by(997)).chain([bytes.len() - 1]);
    for end in ends {
        let mut reader = PartsReader::new(SlowReader::new(&bytes[..end], 1000));
        let error = poll_all(reader.next()).unwrap_err();
        assert_eq!(error.category(), Category::Torn, "{end}: {error}");
        assert!(poll_all(reader.next()).is_err());
    }
}

#[test]
fn the_next_value_is_read_after_a_damaged_buffer() {
    let first = bytes_of(1..2);
    let mut bytes = bytes_of(1..3);
    bytes[first.len() - 10] ^= 1;
    let mut reader = PartsReader::new(&bytes[..]);
    let error = poll_all(reader.recv::<Received>()).unwrap_err();
    assert_eq!(error.category(), Category::Damaged);
    assert!(error.to_string().contains("many.4"), "{error}");
    assert_is(&poll_all(reader.recv::<Received>()).unwrap().unwrap(), &value(2, true));

    // The same without verifying.
    let options = DecodeOptions::default().with_checksums(false);
    let mut reader = PartsReader::with_options(&bytes[..], options);
    assert!(poll_all(reader.recv::<Received>()).unwrap().is_some());
}

#[test]
fn the_next_value_is_read_after_one_of_another_type() {
    let bytes = bytes_of(1..3);
    let mut reader = PartsReader::new(&bytes[..]);
    assert!(poll_all(reader.recv::<u64>()).is_err());
    assert_is(&poll_all(reader.recv::<Received>()).unwrap().unwrap(), &value(2, true));
}

#[test]
fn nothing_is_read_after_damaged_metadata() {
    for at in [0, 2, 5, 30, 60] {
        let mut bytes = bytes_of(1..3);
        bytes[at] ^= 0x40;
        let mut reader = PartsReader::new(&bytes[..]);
        poll_all(reader.next()).unwrap_err();
        let error = poll_all(reader.next()).unwrap_err().to_string();
        assert!(error.contains("an earlier error"), "{error}");
    }
}

#[test]
fn a_reader_is_a_stream() {
    let (first, second) = (bytes_of(1..3), bytes_of(3..5));
    let readers = [&first, &second].map(|bytes| PartsReader::new(SlowReader::new(bytes, 1000)));
    let values = select_all(readers).map(|parts| parts?.into_shared().load_shared());
    let mut values: Vec<Received> = poll_all(values.try_collect()).unwrap();
    values.sort_by(|a, b| a.name.cmp(&b.name));
    assert_eq!(values.len(), 4);
    for (number, received) in (1..).zip(&values) {
        assert_is(received, &value(number, true));
    }
}

#[test]
fn a_stream_ends_when_its_place_is_lost() {
    let outcomes = |bytes: &[u8]| -> Vec<bool> {
        poll_all(PartsReader::new(bytes).map(|parts| parts.is_ok()).collect())
    };
    let first = bytes_of(1..2);
    let intact = bytes_of(1..3);
    assert_eq!(outcomes(&intact), [true, true]);
    let mut damaged = intact.clone();
    damaged[first.len() - 10] ^= 1;
    assert_eq!(outcomes(&damaged), [false, true]);
    let mut damaged = intact.clone();
    damaged[5] ^= 0x40;
    assert_eq!(outcomes(&damaged), [false]);
    assert_eq!(outcomes(&intact[..intact.len() - 1]), [true, false]);
}

#[test]
fn limits_are_kept_before_memory_is_taken() {
    let limit =
        |bytes| DecodeOptions::default().with_limits(Limits::default().with_max_alloc(bytes));
    let bytes = bytes_of(1..2);
    let len = bytes.len() as u64;
    let mut reader = PartsReader::with_options(&bytes[..], limit(len));
    assert!(poll_all(reader.next()).unwrap().is_some());
    for less in [len - 1, 1000, 20] {
        let mut reader = PartsReader::with_options(&bytes[..], limit(less));
        let error = poll_all(reader.next()).unwrap_err();
        assert_eq!(error.category(), Category::Limit, "{error}");
    }
    // A header of 2^60 bytes is only a claim.
    let claim = [&[0xd8, 0x18, 0x5b, 0x10][..], &[0; 20]].concat();
    assert_eq!(
        poll_all(PartsReader::new(&claim[..]).next()).unwrap_err().category(),
        Category::Limit
    );
    let claim = [&[0xd8, 0x18, 0x5a, 0x20][..], &[0; 20]].concat();
    assert_eq!(
        poll_all(PartsReader::new(&claim[..]).next()).unwrap_err().category(),
        Category::Torn
    );
    // More than a gibibyte is refused by default. Nothing reads these zeros, so they take no memory.
    let value = Tensor(vec![0u8; 1 << 30]);
    let options = SaveOptions::default().with_checksums(false);
    let split = Split::with_options(&value, options).unwrap();
    let error = poll_all(PartsReader::new(split.metadata()).next()).unwrap_err();
    assert_eq!(error.category(), Category::Limit, "{error}");
    // Options that set no limit keep the default one.
    let others = Limits::default().with_max_depth(10);
    let options = DecodeOptions::default();
    for options in [options, options.with_checksums(false), options.with_limits(others)] {
        let error =
            poll_all(PartsReader::with_options(split.metadata(), options).next()).unwrap_err();
        assert_eq!(error.category(), Category::Limit, "{error}");
    }
}

#[test]
fn a_buffer_that_changes_its_length_is_refused() {
    struct Shrinks(std::sync::atomic::AtomicUsize, Vec<u8>);
    impl AsRef<[u8]> for Shrinks {
        fn as_ref(&self) -> &[u8] {
            let calls = self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            if calls == 0 { &self.1 } else { &self.1[1..] }
        }
    }
    let parts = tenarc::to_parts(&Tensor(vec![1u8; 5000])).unwrap();
    let shrinks = vec![Shrinks(0.into(), parts.buffers()[0].to_vec())];
    let changed = Parts::new(parts.metadata(), shrinks).unwrap();
    let mut writer = PartsWriter::new(Vec::new());
    let error = poll_all(writer.send(changed)).unwrap_err().to_string();
    assert!(error.contains("expected 5000 bytes of buffer 0, found 4999"), "{error}");
    // Nothing of it was sent.
    poll_all(writer.send(parts)).unwrap();
    assert_eq!(
        poll_all(PartsReader::new(&writer.into_inner()[..]).recv::<Tensor<Vec<u8>>>())
            .unwrap()
            .unwrap()[0],
        1
    );
}

/// Serializes something longer from a certain call on.
struct Grows(std::cell::Cell<u32>);

impl serde::Serialize for Grows {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.set(self.0.get() + 1);
        let len = if self.0.get() > 2 { 40_000 } else { 30_000 };
        Tensor(vec![1u8; len]).serialize(serializer)
    }
}

#[test]
fn a_value_that_changes_ends_the_stream() {
    let mut writer = PartsWriter::new(SlowWriter::new(1000, false));
    let value = Grows(0.into());
    poll_all(writer.send_value(&value)).unwrap_err();
    let error = poll_all(writer.send_value(&1u8)).unwrap_err().to_string();
    assert!(error.contains("an earlier value"), "{error}");
}

#[tokio::test]
async fn a_failed_writer_fails_further_calls() {
    let (near, far) = tokio::io::duplex(100);
    drop(far);
    let mut writer = PartsWriter::new(near);
    writer.send_value(&value(1, true)).await.unwrap_err();
    let error = writer.send_value(&1u8).await.unwrap_err();
    assert_eq!(error.category(), Category::Io);
}

#[tokio::test]
async fn other_data_may_lie_between_values() {
    let (mut near, mut far) = tokio::io::duplex(1 << 20);
    near.write_all(b"hello").await.unwrap();
    let mut writer = PartsWriter::new(near);
    writer.send_value(&value(1, true)).await.unwrap();
    writer.get_mut().write_all(b"bye").await.unwrap();
    drop(writer);

    let mut word = [0; 5];
    far.read_exact(&mut word).await.unwrap();
    assert_eq!(&word, b"hello");
    let mut reader = PartsReader::new(far);
    assert!(reader.recv::<Received>().await.unwrap().is_some());
    let mut rest = Vec::new();
    reader.into_inner().read_to_end(&mut rest).await.unwrap();
    assert_eq!(rest, b"bye");
}
