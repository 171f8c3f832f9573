//! Readers and writers that do no more than read and write, damage, ends, and memory.

use std::io::{self, Read, Write};
use std::thread;

use ndarray::Array1;
use tenarc::error::Category;
use tenarc::named::{Match, Variable, load_multi, load_multi_onto, save_multi};

use super::{names, ramp, saved};
use tenarc_test_support::alloc::peak_of;
use tenarc_test_support::{OneByte, Ragged};

/// Some in buffers, some inline.
fn list() -> Vec<(String, Array1<f32>)> {
    [600, 5, 700, 1, 800]
        .iter()
        .enumerate()
        .map(|(at, &len)| (format!("t.{at}"), ramp(len, at)))
        .collect()
}

/// Loads the list onto variables of -1; these, and how it went.
fn onto(reader: impl Read) -> (Vec<(String, Array1<f32>)>, tenarc::Result<()>) {
    let mut arrays = list();
    for (_, array) in &mut arrays {
        array.fill(-1.0);
    }
    let mut variables: Vec<(&str, &mut dyn Variable)> = Vec::new();
    for (name, array) in &mut arrays {
        variables.push((name, array));
    }
    let result = load_multi_onto(reader, &mut variables, Match::Strict).map(drop);
    (arrays, result)
}

#[test]
fn readers_of_few_bytes() {
    let stream = saved(&list());
    let reader = |number: usize| -> Box<dyn Read + '_> {
        match number {
            0 => Box::new(OneByte(&stream)),
            1 => Box::new(Ragged::new(&stream, 3)),
            2 => Box::new(io::BufReader::with_capacity(13, &stream[..])),
            _ => Box::new(stream[..100].chain(&stream[100..])),
        }
    };
    for number in 0..4 {
        let back = load_multi(reader(number)).unwrap();
        assert_eq!(names(&back), ["t.0", "t.1", "t.2", "t.3", "t.4"]);
        for ((_, found), (_, expected)) in back.iter().zip(&list()) {
            assert_eq!(found.view::<f32>().unwrap(), expected.view().into_dyn());
        }
        let (arrays, result) = onto(reader(number));
        result.unwrap();
        assert_eq!(arrays, list());
    }
}

/// Takes a few bytes at a time.
struct Slow(Vec<u8>);

impl Write for Slow {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = bytes.len().min(11);
        self.0.extend(&bytes[..len]);
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn writers_of_few_bytes_and_pipes() {
    let mut slow = Slow(Vec::new());
    save_multi(&mut slow, &list()).unwrap();
    assert!(slow.0 == saved(&list()));

    let (reader, writer) = io::pipe().unwrap();
    let sender = thread::spawn(move || save_multi(writer, &list()));
    let (arrays, result) = onto(reader);
    result.unwrap();
    assert_eq!(arrays, list());
    sender.join().unwrap().unwrap();
}

#[test]
fn writers_that_fail() {
    struct Full(usize);
    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let len = saved(&list()).len();
    for room in (0..len).step_by(97) {
        let error = save_multi(Full(room), &list()).unwrap_err();
        assert_eq!(error.category(), Category::Io, "room for {room}: {error}");
    }
    save_multi(Full(len), &list()).unwrap();
}

#[test]
fn streams_that_end_early() {
    let stream = saved(&list());
    // The end of the input is not waited for, as a socket may stay open; the end mark is.
    let archive = tenarc::Archive::new(&stream[..]).unwrap();
    let end = archive.segment(0).unwrap();
    let whole = usize::try_from(end.offset() + end.byte_len()).unwrap();
    assert!(whole < stream.len());
    let near = (0..100).chain(whole - 100..stream.len());
    for len in near.chain((0..whole).step_by(61)) {
        let cut = &stream[..len];
        let (arrays, result) = onto(cut);
        assert_eq!(result.unwrap_err().category(), Category::Torn, "{len} bytes");
        assert_eq!(load_multi(cut).unwrap_err().category(), Category::Torn, "{len} bytes");
        for ((name, found), (_, expected)) in arrays.iter().zip(&list()) {
            let untouched = found.iter().all(|&value| value < 0.0);
            assert!(untouched || found == expected, "{len} bytes, `{name}` in part");
        }
    }
}

#[test]
fn readers_that_fail() {
    struct Failing<'a>(&'a [u8]);
    impl Read for Failing<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            if self.0.is_empty() {
                return Err(io::ErrorKind::ConnectionReset.into());
            }
            self.0.read(out)
        }
    }
    let stream = saved(&list());
    for len in (0..7000).step_by(89) {
        let (_, result) = onto(Failing(&stream[..len]));
        let errors = [result.unwrap_err(), load_multi(Failing(&stream[..len])).unwrap_err()];
        for error in errors {
            assert_eq!(error.category(), Category::Io, "{len} bytes: {error}");
        }
    }
}

#[test]
fn every_changed_byte_is_found() {
    let stream = saved(&list());
    let archive = tenarc::Archive::new(&stream[..]).unwrap();
    let segment = archive.segment(0).unwrap();
    let first = usize::try_from(segment.buffers()[0].0).unwrap();
    let end = usize::try_from(segment.offset() + segment.byte_len()).unwrap();
    let buffers = segment.buffers().to_vec();
    for at in (0..end).filter(|at| *at < 600 || at % 13 == 0 || *at > end - 100) {
        let mut damaged = stream.clone();
        damaged[at] ^= 0x10;
        let between = at >= first
            && at
                < usize::try_from(buffers.iter().map(|&(start, len)| start + len).max().unwrap())
                    .unwrap()
            && !buffers.iter().any(|&(start, len)| (start..start + len).contains(&(at as u64)));
        if between {
            // Padding, which only `verify` looks at.
            continue;
        }
        let (arrays, result) = onto(&damaged[..]);
        assert!(result.is_err(), "byte {at}");
        assert!(load_multi(&damaged[..]).is_err(), "byte {at}");
        if at < first {
            assert!(
                arrays.iter().all(|(_, array)| array.iter().all(|&value| value < 0.0)),
                "byte {at}"
            );
        }
    }
}

#[test]
fn one_tensor_at_a_time_is_in_memory() {
    const ONE: usize = 1 << 20;
    const BESIDE: usize = 256 << 10;
    let mut arrays: Vec<_> = (0..16).map(|seed| ramp(ONE / 4, seed)).collect();
    let list: Vec<_> =
        arrays.iter().enumerate().map(|(at, array)| (at.to_string(), array)).collect();
    let mut stream = Vec::with_capacity(17 * ONE);
    let (result, most) = peak_of(|| save_multi(&mut stream, &list));
    result.unwrap();
    assert!(most < BESIDE, "saving: {most} bytes");
    drop(list);

    let expected = arrays.clone();
    for array in &mut arrays {
        array.fill(-1.0);
    }
    let mut variables: Vec<(String, &mut dyn Variable)> = Vec::new();
    for (at, array) in arrays.iter_mut().enumerate() {
        variables.push((at.to_string(), array));
    }
    let (result, most) = peak_of(|| load_multi_onto(&stream[..], &mut variables, Match::Strict));
    result.unwrap();
    println!("loading: {} KiB", most >> 10);
    // A length in a stream is a claim: the tensor grows as bytes come, and is there twice for a moment.
    assert!(most < 2 * ONE + BESIDE, "loading: {most} bytes");
    assert!(arrays == expected);

    // What there is no variable for is passed over.
    let none: &mut [(&str, &mut dyn Variable)] = &mut [];
    let (result, most) = peak_of(|| load_multi_onto(&stream[..], none, Match::Fill));
    assert_eq!(result.unwrap().unexpected.len(), 16);
    assert!(most < BESIDE, "passing over: {most} bytes");
}
