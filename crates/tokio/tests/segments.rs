//! The segments of an archive travel as parts, and become an equal archive at the other end.

mod support;

use support::{Received, SlowReader, SlowWriter, assert_is, poll_all, poll_some, value};
use tenarc::archive::{Compression, SaveOptions};
use tenarc::de::{DecodeOptions, Limits};
use tenarc::error::Category;
use tenarc::{Archive, OArchive};
use tenarc_tokio::{PartsReader, PartsWriter};

const NAMES: [&str; 3] = ["first", "second", "third"];

/// An archive with three values and a name for each.
fn archive(options: SaveOptions) -> Vec<u8> {
    let mut out = OArchive::with_options(Vec::new(), options).unwrap();
    for (number, name) in (1..).zip(NAMES) {
        out.save_as(name, &value(number, number == 2)).unwrap();
    }
    out.finish().unwrap()
}

fn sent(archive: &[u8]) -> Vec<u8> {
    let archive = Archive::new(archive).unwrap();
    let mut writer = PartsWriter::new(SlowWriter::new(10_000, true));
    for name in NAMES {
        poll_all(writer.send(archive.named(name).unwrap().to_parts().unwrap())).unwrap();
    }
    writer.into_inner().written
}

#[test]
fn an_archive_arrives_segment_by_segment() {
    let plain = archive(SaveOptions::default());
    let compressed = archive(SaveOptions::default().with_compression(Compression::zstd()));
    assert!(compressed.len() < plain.len() / 2);
    for archive in [&plain, &compressed] {
        let bytes = sent(archive);
        // Each poll of the reader is dropped, and it goes on.
        let mut reader = PartsReader::new(SlowReader::new(&bytes, 1000));
        let mut out = OArchive::new(Vec::new()).unwrap();
        let mut drops = 0;
        loop {
            match poll_some(reader.next(), 1) {
                None => drops += 1,
                Some(parts) => match parts.unwrap() {
                    Some(parts) => drop(out.save_parts(&parts).unwrap()),
                    None => break,
                },
            }
        }
        assert!(drops > 10);
        let received = out.finish().unwrap();
        // Nothing was decoded. Compressed buffers are sent without compression.
        assert!(received == plain, "the archives differ");
    }
    let archive = Archive::new(plain).unwrap();
    let received: Received = archive.named("second").unwrap().load().unwrap();
    assert_eq!(received.name, value(2, true).name);
}

#[test]
fn a_segment_whose_future_is_dropped_arrives_as_a_whole() {
    let archive = archive(SaveOptions::default());
    let archive = Archive::new(&archive[..]).unwrap();
    let parts = |name| archive.named(name).unwrap().to_parts().unwrap();
    let mut was_left = false;
    for polls in 1..40 {
        let mut writer = PartsWriter::new(SlowWriter::new(5000, true));
        let done = poll_some(writer.send(parts("first")), polls);
        was_left |= done.is_none() && writer.pending() > 0;
        poll_all(writer.send(parts("third"))).unwrap();
        let bytes = writer.into_inner().written;
        let mut reader = PartsReader::new(&bytes[..]);
        for (name, number) in [("first", 1), ("third", 3)] {
            let parts = poll_all(reader.next()).unwrap().unwrap();
            assert_eq!(parts.info().name(), Some(name));
            assert_is(&parts.into_shared().load_shared().unwrap(), &value(number, false));
        }
        assert!(poll_all(reader.next()).unwrap().is_none());
    }
    assert!(was_left);
}

#[test]
fn a_slow_receiver_holds_the_sender_back() {
    let archive = archive(SaveOptions::default());
    let archive = Archive::new(&archive[..]).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let (near, far) = tokio::io::duplex(1000);
        let mut writer = PartsWriter::new(near);
        let first = archive.named("first").unwrap().to_parts().unwrap();
        let len = first.info().byte_len();
        assert!(len > 10_000);
        // Nobody receives, so that only what fits into the pipe is written.
        assert!(poll_some(writer.send(first), 100).is_none());
        assert!(writer.pending() as u64 > len - 1000);
        let second = archive.named("second").unwrap().to_parts().unwrap();
        assert!(poll_some(writer.send(second), 100).is_none());
        assert!(writer.pending() as u64 <= len, "two segments are in memory");

        let mut reader = PartsReader::new(far);
        let (flushed, parts) = tokio::join!(writer.flush(), reader.next());
        flushed.unwrap();
        assert_eq!(parts.unwrap().unwrap().info().name(), Some("first"));
    });
}

#[test]
fn segments_beyond_the_limit_are_refused_before_they_are_received() {
    let bytes = sent(&archive(SaveOptions::default()));
    let limits = Limits::default().with_max_alloc(20_000);
    let options = DecodeOptions::default().with_limits(limits);
    let mut reader = PartsReader::with_options(SlowReader::new(&bytes, 1000), options);
    let error = poll_all(reader.next()).unwrap_err();
    assert_eq!(error.category(), Category::Limit, "{error}");
    assert!(bytes.len() - reader.get_ref().bytes.len() < 20_000);
}
