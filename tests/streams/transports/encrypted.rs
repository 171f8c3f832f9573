//! Authenticated encryption around streams of every form. If encrypted bytes are changed, moved, cut or
//! added, reading fails and gives out none of them.

use std::io::{self, Read, Write};
use std::sync::mpsc;
use std::thread;

use chacha20poly1305::Key;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use tenarc::Deserializer;
use tenarc::parts::{Parts, Split};

use super::sealed::{CHUNK, Opener, Sealer, TAG};
use super::support::{FORMS, Model, Partly, TIMEOUT, model, plain};

const NONCE: usize = 19;
const HEAD: usize = 4;

fn key(seed: u8) -> Key {
    Key::from([seed; 32])
}

fn sealed(plain: &[u8], seed: u8) -> Vec<u8> {
    let mut out = Sealer::new(Vec::new(), &key(seed)).unwrap();
    out.write_all(plain).unwrap();
    out.finish().unwrap()
}

/// What can be read before the end or an error.
fn open(bytes: &[u8]) -> (Vec<u8>, io::Result<()>) {
    let mut read = Vec::new();
    let result = Opener::new(bytes, &key(1)).and_then(|mut input| {
        let result = input.read_to_end(&mut read).map(drop);
        // A fault lasts, and so does an end.
        let again = input.read(&mut [0; 10]);
        assert!(if result.is_ok() { matches!(again, Ok(0)) } else { again.is_err() });
        result
    });
    (read, result)
}

/// Five chunks: full ones, and a last one of 100 bytes.
fn sample() -> (Vec<u8>, Vec<u8>) {
    let plain: Vec<u8> = (0..4 * CHUNK + 100).map(|at| (at * 31 % 251) as u8).collect();
    let sealed = sealed(&plain, 1);
    assert_eq!(sealed.len(), NONCE + 5 * (HEAD + TAG) + plain.len());
    (plain, sealed)
}

/// The nonce, and each chunk with its head.
fn chunks(sealed: &[u8]) -> (&[u8], Vec<&[u8]>) {
    let (nonce, rest) = sealed.split_at(NONCE);
    (nonce, rest.chunks(HEAD + CHUNK + TAG).collect())
}

#[track_caller]
fn assert_refused(plain: &[u8], bytes: &[u8], whole_chunks: usize, what: &str) {
    let (read, result) = open(bytes);
    assert!(result.is_err(), "{what} went unnoticed");
    // All chunks before the fault, and not a byte behind them.
    assert!(read == plain[..whole_chunks * CHUNK], "{what}: {} bytes were read", read.len());
}

#[test]
fn every_form_through_encryption_and_through_both() {
    for form in FORMS {
        let mut out = Sealer::new(Partly(Vec::new()), &key(1)).unwrap();
        form.write(&mut out).unwrap();
        let bytes = out.finish().unwrap().0;
        form.assert_read(Opener::new(&bytes[..], &key(1)).unwrap(), "sealed");
        let readable = |bytes: &[u8]| bytes.windows(9).any(|window| window == b"that nobo");
        assert!(readable(&plain(form)) && !readable(&bytes));
        form.assert_refused(Opener::new(&bytes[..], &key(2)).unwrap(), "with another key");

        let sealer = Sealer::new(Vec::new(), &key(1)).unwrap();
        let mut out = GzEncoder::new(sealer, Compression::fast());
        form.write(&mut out).unwrap();
        let both = out.finish().unwrap().finish().unwrap();
        assert!(both.len() < bytes.len());
        let opener = Opener::new(&both[..], &key(1)).unwrap();
        form.assert_read(GzDecoder::new(opener), "compressed and sealed");
    }
}

#[test]
fn every_form_notices_what_was_done_to_its_ciphertext() {
    for form in FORMS {
        let whole = sealed(&plain(form), 1);
        let (nonce, chunks) = chunks(&whole);
        assert!(chunks.len() > 3, "{form:?}: {} chunks", chunks.len());
        let (first, last) = (chunks[0], chunks[chunks.len() - 1]);
        let middle = &chunks[1..chunks.len() - 1];
        let mut changed = whole.clone();
        changed[whole.len() / 2] ^= 0x10;
        let damaged = [
            ("changed", changed),
            ("cut", whole[..whole.len() / 2].to_vec()),
            ("cut behind a chunk", [nonce, first, &middle.concat()].concat()),
            ("turned round", [nonce, &middle.concat(), first, last].concat()),
            ("shortened by a chunk", [nonce, first, last].concat()),
            ("sent on", [&whole[..], first].concat()),
        ];
        for (what, bytes) in damaged {
            let error = form.assert_refused(Opener::new(&bytes[..], &key(1)).unwrap(), what);
            assert!(error.to_string().contains("sealed chunk"), "{form:?}, {what}: {error}");
        }
    }
}

#[test]
fn streams_of_every_length_come_back() {
    for len in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 2 * CHUNK + 1] {
        let plain = vec![7; len];
        let (read, result) = open(&sealed(&plain, 1));
        result.unwrap();
        assert!(read == plain, "{len} bytes");
    }
}

#[test]
fn changed_bytes_are_refused_with_their_chunk() {
    let (plain, sealed) = sample();
    let mut places = Vec::new();
    for number in [0, 2, 4] {
        let start = NONCE + number * (HEAD + CHUNK + TAG);
        // Each byte of the head, the first of the ciphertext, and the last of the tag.
        places.extend((0..=HEAD).map(|at| (number, start + at)));
        let end = (start + HEAD + CHUNK + TAG).min(sealed.len());
        places.push((number, end - 1));
        places.push((number, end - TAG));
    }
    places.extend((0..NONCE).step_by(6).map(|at| (0, at)));
    for (number, at) in places {
        let mut changed = sealed.clone();
        changed[at] ^= if at % 2 == 0 { 1 } else { 0x80 };
        assert_refused(&plain, &changed, number, &format!("byte {at} changed"));
    }
}

#[test]
fn a_cut_anywhere_is_refused() {
    let (plain, sealed) = sample();
    let step = HEAD + CHUNK + TAG;
    let starts = [0, 1, 4].into_iter().map(|number| NONCE + number * step);
    let edges = starts.flat_map(|at| [at - 1, at, at + 1, at + HEAD, at + HEAD + TAG]);
    for cut in edges.chain([0, sealed.len() - TAG, sealed.len() - 1]) {
        let before = cut.saturating_sub(NONCE) / step;
        assert_refused(&plain, &sealed[..cut], before, &format!("a cut at {cut}"));
    }
}

#[test]
fn chunks_moved_repeated_removed_and_added_are_refused() {
    let (plain, sealed) = sample();
    let (nonce, whole) = chunks(&sealed);
    // With the same key, but of another stream.
    let other = self::sealed(&plain, 1);
    let (other_nonce, others) = chunks(&other);
    assert_ne!(nonce, other_nonce);

    let cases: [(&str, usize, Vec<&[u8]>); 9] = [
        ("two chunks swapped", 1, vec![whole[0], whole[2], whole[1], whole[3], whole[4]]),
        ("a chunk sent twice", 2, vec![whole[0], whole[1], whole[1], whole[2], whole[3], whole[4]]),
        ("the first chunk missing", 0, vec![whole[1], whole[2], whole[3], whole[4]]),
        ("a chunk missing", 1, vec![whole[0], whole[2], whole[3], whole[4]]),
        ("the last chunk missing", 4, vec![whole[0], whole[1], whole[2], whole[3]]),
        ("the last chunk first", 0, vec![whole[4], whole[0], whole[1], whole[2], whole[3]]),
        ("a chunk of another stream", 1, vec![whole[0], others[1], whole[2], whole[3], whole[4]]),
        ("no chunks", 0, vec![]),
        ("a chunk of zeros", 1, vec![whole[0], &[0; 200]]),
    ];
    for (what, before, chunks) in cases {
        let bytes = [nonce, &chunks.concat()].concat();
        assert_refused(&plain, &bytes, before, what);
    }
    // Behind the last chunk: nothing of it is given out, as it may be half of something else.
    for more in [whole[4], whole[0], b"\0"] {
        assert_refused(&plain, &[&sealed[..], more].concat(), 4, "bytes behind the last chunk");
    }
    // A chunk made the last one, whole or with the rest of the stream behind it.
    let mut last = whole[1].to_vec();
    last[0] |= 0x80;
    assert_refused(&plain, &[nonce, whole[0], &last].concat(), 1, "a chunk made the last");
}

#[test]
fn lengths_that_no_chunk_has_are_refused_before_anything_is_read() {
    for len in [0, TAG - 1, CHUNK + TAG + 1, (1 << 31) - 1] {
        for flag in [0, 1_u32 << 31] {
            let head = (len as u32 | flag).to_be_bytes();
            let (read, result) = open(&[&[0; NONCE][..], &head].concat());
            let error = result.unwrap_err().to_string();
            assert!(
                error.contains("is not a valid length of a chunk") && read.is_empty(),
                "{len}: {error}"
            );
        }
    }
}

/// What was flushed can be had at once, though the stream goes on.
#[test]
fn values_arrive_as_soon_as_they_are_flushed() {
    let (reader, writer) = io::pipe().unwrap();
    let (answer, answers) = mpsc::channel::<String>();
    let listener = thread::spawn(move || {
        let mut input = Opener::new(reader, &key(1)).unwrap();
        for _ in 0..3 {
            let parts = Parts::read_from(&mut input).unwrap();
            answer.send(parts.load::<Model>().unwrap().name).unwrap();
        }
        for message in Deserializer::from_reader(input).into_iter() {
            answer.send(message.unwrap()).unwrap();
        }
    });
    let mut out = Sealer::new(writer, &key(1)).unwrap();
    for number in 0..3 {
        Split::new(&model(number)).unwrap().write_to(&mut out).unwrap();
        out.flush().unwrap();
        assert_eq!(answers.recv_timeout(TIMEOUT).unwrap(), model(number).name);
    }
    for text in ["one", "two"] {
        tenarc::to_writer(&mut out, text).unwrap();
        out.flush().unwrap();
        assert_eq!(answers.recv_timeout(TIMEOUT).unwrap(), text);
    }
    drop(out.finish().unwrap());
    listener.join().unwrap();
}

#[test]
fn a_writer_that_failed_gets_nothing_more() {
    struct Failing(usize);
    impl Write for Failing {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(1).ok_or_else(|| io::Error::other("full"))?;
            Ok(bytes.len().min(NONCE))
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    // The nonce and the head of a chunk go through.
    let mut out = Sealer::new(Failing(2), &key(1)).unwrap();
    out.write_all(b"abc").unwrap();
    assert_eq!(out.flush().unwrap_err().to_string(), "full");
    assert!(out.flush().unwrap_err().to_string().contains("earlier"));
    assert!(out.finish().is_err());
}
