//! Deferred tensors that fail, panic, have another size than they said, or differ the second time.

use std::cell::Cell;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::Serialize;
use tenarc::error::Category;
use tenarc::parts::Split;
use tenarc::tensor::{Deferred, Order};
use tenarc::{Archive, DType, Error, IArchive, OArchive, Tensor, from_parts};

use super::quick;

type Saved = Result<(), String>;

/// Writes a value in every way there is.
fn everywhere<T: Serialize>(value: &T) -> Vec<(&'static str, Saved)> {
    fn of<T, E: ToString>(result: Result<T, E>) -> Saved {
        result.map(drop).map_err(|error| error.to_string())
    }
    let archived = |options| {
        let mut out = OArchive::with_options(Vec::new(), options).unwrap();
        of(out.save(value))
    };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    let saved = of(tenarc::archive::save_with(&path, value, quick()));
    assert_eq!(path.exists(), saved.is_ok());
    vec![
        ("save", saved),
        ("archive", archived(quick())),
        ("archive, all in buffers", archived(quick().with_inline_below(0))),
        ("archive, all inline", archived(quick().with_inline_below(usize::MAX))),
        ("archive, dedup", archived(quick().with_dedup(true).with_inline_below(0))),
        ("parts", of(tenarc::to_parts(value))),
        ("split", of(Split::new(value).and_then(|split| split.write_to(Vec::new())))),
        ("to_vec", of(tenarc::to_vec(value))),
        ("to_writer", of(tenarc::to_writer(Vec::new(), value))),
        ("to_value", of(tenarc::to_value(value))),
        ("json", of(serde_json::to_string(value))),
        ("ciborium", of(ciborium::into_writer(value, Vec::new()))),
        ("postcard", of(postcard::to_allocvec(value))),
    ]
}

#[track_caller]
fn refused<T: Serialize>(value: &T, text: &str) {
    for (way, saved) in everywhere(value) {
        let error = saved.expect_err(way);
        // postcard keeps no messages.
        let told = error.contains(text) || way == "postcard";
        assert!(told, "{way}: `{error}` does not say `{text}`");
    }
}

/// A tensor of 1,000 `f32` whose bytes are these.
fn bytes(bytes: &[u8], step: usize) -> Tensor<Deferred<'_>> {
    Tensor(Deferred::from_blocks(DType::F32, &[10, 100], Order::C, move |put| {
        bytes.chunks(step).try_for_each(&mut *put)
    }))
}

#[test]
fn a_wrong_number_of_elements() {
    for len in [0, 5, 7, 4000] {
        let fetch = move || Ok::<_, io::Error>(vec![1u16; len]);
        refused(&Tensor(Deferred::new(&[2, 3], fetch)), &format!("fetched with {len} elements"));
    }
    let fetch = || Ok::<_, io::Error>(Vec::<u8>::new());
    let tensor = Tensor(Deferred::new(&[usize::MAX, 3], fetch));
    refused(&tensor, "does not fit in memory");
}

#[test]
fn a_wrong_number_of_bytes() {
    for step in [1, 7, 4096] {
        for (len, text) in [(0, "fewer"), (3999, "fewer"), (4001, "more"), (8000, "more")] {
            refused(&bytes(&vec![0; len], step), text);
        }
        for (way, saved) in everywhere(&bytes(&[0; 4000], step)) {
            saved.expect(way);
        }
    }
}

#[test]
fn bools_that_are_none() {
    let bools = |third: u8| {
        let write = move |put: &mut dyn FnMut(&[u8]) -> tenarc::Result<()>| {
            put(&[0, 1])?;
            put(&[third])
        };
        Tensor(Deferred::from_blocks(DType::Bool, &[3], Order::C, write))
    };
    refused(&bools(2), "expected 0 or 1 in a deferred bool tensor, found 2");
    for (way, saved) in everywhere(&bools(1)) {
        saved.expect(way);
    }
}

#[test]
fn errors_of_what_fetches() {
    let lost = || Err::<Vec<f32>, _>(io::Error::other("the device is lost"));
    refused(&Tensor(Deferred::new(&[1000], lost)), "the device is lost");
    refused(&Tensor(Deferred::new(&[1], lost)), "the device is lost");
    let write = |put: &mut dyn FnMut(&[u8]) -> tenarc::Result<()>| {
        put(&[0; 4])?;
        Err(serde::ser::Error::custom(io::Error::other("the device is lost")))
    };
    refused(&Tensor(Deferred::from_blocks(DType::I64, &[500], Order::F, write)), "is lost");
}

/// Fails behind so many bytes.
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

#[test]
fn errors_of_the_writer_stay_errors_of_the_writer() {
    // Whether or not they are handed on.
    let careless = Tensor(Deferred::from_blocks(DType::U8, &[1 << 20], Order::C, |put| {
        for _ in 0..4 {
            let _ = put(&vec![7; 1 << 18]);
        }
        Ok(())
    }));
    let careful = Tensor(Deferred::new(&[1 << 20], || Ok::<_, Error>(vec![7u8; 1 << 20])));
    for tensor in [&careless, &careful] {
        let error = tenarc::to_writer(Full(600_000), tensor).unwrap_err();
        assert_eq!(error.category(), Category::Io, "{error}");
        let mut out = OArchive::new(Full(600_000)).unwrap();
        let error = out.save(tensor).unwrap_err();
        assert_eq!(error.category(), Category::Io, "{error}");
    }
}

/// What is in a buffer is fetched when the metadata is out.
#[test]
fn a_stream_is_broken_where_fetching_fails_and_a_file_goes_on() {
    let lost = || Err::<Vec<f32>, _>("lost");
    let tensors = [Tensor(Deferred::new(&[1000], lost)), Tensor(Deferred::new(&[2000], lost))];
    let mut out = OArchive::with_options(Vec::new(), quick()).unwrap();
    out.save("before").unwrap();
    out.save(&tensors).unwrap_err();
    assert!(out.save("after").unwrap_err().to_string().contains("an earlier value failed"));

    // One that is inline is fetched before anything is written.
    let mut out = OArchive::with_options(Vec::new(), quick()).unwrap();
    out.save(&Tensor(Deferred::new(&[10], lost))).unwrap_err();
    out.save("after").unwrap();
    let stream = out.finish().unwrap();
    assert_eq!(IArchive::new(&stream[..]).unwrap().load::<String>().unwrap(), "after");

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    let mut out = OArchive::create(&path, quick()).unwrap();
    out.save("before").unwrap();
    out.save(&tensors).unwrap_err();
    out.save("after").unwrap();
    out.finish().unwrap();
    let file = tenarc::open(&path).unwrap();
    file.verify().unwrap();
    assert_eq!(file.len(), 2);
    assert_eq!(file.segment(1).unwrap().load::<String>().unwrap(), "after");
}

#[test]
fn a_panic_while_fetching() {
    fn panics<'a>(len: usize) -> Tensor<Deferred<'a>> {
        let fetch = || -> Result<Vec<f32>, Error> { panic!("on purpose") };
        Tensor(Deferred::new(&[len], fetch))
    }
    // Inline: before anything of it is written.
    let mut out = OArchive::with_options(Vec::new(), quick()).unwrap();
    let save = AssertUnwindSafe(|| out.save(&panics(3)).map(drop));
    assert!(catch_unwind(save).is_err());
    out.save(&[1, 2]).unwrap();
    let stream = out.finish().unwrap();
    assert_eq!(IArchive::new(&stream[..]).unwrap().load::<[u8; 2]>().unwrap(), [1, 2]);

    // In a buffer: nothing follows.
    let mut out = OArchive::with_options(Vec::new(), quick()).unwrap();
    let save = AssertUnwindSafe(|| out.save(&panics(3000)).map(drop));
    assert!(catch_unwind(save).is_err());
    assert!(out.save(&[1, 2]).is_err());
    assert!(out.finish().is_err());

    // A file is not there, and what was there before stays.
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    tenarc::archive::save_with(&path, "before", quick()).unwrap();
    let save = || tenarc::archive::save_with(&path, &panics(3000), quick());
    assert!(catch_unwind(AssertUnwindSafe(save)).is_err());
    assert_eq!(tenarc::load::<String>(&path).unwrap(), "before");

    // The thread goes on.
    let fine = Tensor(Deferred::new(&[2], || Ok::<_, Error>(vec![1.5f64, 2.5])));
    let bytes = tenarc::to_vec(&(&fine, vec![1u8])).unwrap();
    let back: (Tensor<Vec<f64>>, Vec<u8>) = tenarc::from_slice(&bytes).unwrap();
    assert_eq!((back.0.0, back.1), (vec![1.5, 2.5], vec![1]));
}

/// Others each time.
fn changing(times: &Cell<u8>, len: usize) -> Tensor<Deferred<'_>> {
    let fetch = move || {
        times.set(times.get() + 1);
        Ok::<_, Error>(vec![times.get(); len])
    };
    Tensor(Deferred::new(&[len], fetch))
}

#[test]
fn what_is_fetched_a_second_time_is_another() {
    let times = Cell::new(0);
    let large = Tensor(vec![0.5f32; 1000]);

    // Inline beside a buffer: the metadata is compared.
    let mut out = OArchive::with_options(Vec::new(), quick()).unwrap();
    let error = out.save(&(changing(&times, 10), &large)).unwrap_err();
    assert!(error.to_string().contains("changed between the two passes"), "{error}");

    // Two that were equal, under dedup.
    let mut out = OArchive::with_options(Vec::new(), quick().with_dedup(true)).unwrap();
    let constant = Tensor(vec![1u8; 3000]);
    times.set(0);
    let error = out.save(&(&constant, changing(&times, 3000))).unwrap_err();
    assert!(error.to_string().contains("tensors that were equal are different now"), "{error}");

    // Sent with the checksum of the first: the receiver finds it.
    let value = changing(&times, 3000);
    let split = Split::new(&value).unwrap();
    let mut buffers = Vec::new();
    split
        .each_buffer(|_, bytes| {
            buffers.push(bytes.to_vec());
            Ok(())
        })
        .unwrap();
    let error = from_parts::<Tensor<Vec<u8>>, _>(split.metadata(), &buffers).unwrap_err();
    assert_eq!(error.category(), Category::Damaged, "{error}");

    // Fetched but once: whatever it is, it is what its checksum says.
    let mut out = OArchive::with_options(Vec::new(), quick()).unwrap();
    out.save(&changing(&times, 3000)).unwrap();
    let archive = Archive::new(out.finish().unwrap()).unwrap();
    archive.verify().unwrap();
    assert_eq!(archive.load::<Tensor<Vec<u8>>>().unwrap().0, vec![times.get(); 3000]);
}

#[test]
fn more_bytes_the_second_time() {
    let times = Cell::new(0usize);
    let growing = Tensor(Deferred::from_blocks(DType::U8, &[2 << 20], Order::C, |put| {
        times.set(times.get() + 1);
        put(&vec![0; (2 << 20) + times.get() - 1])
    }));
    let error = tenarc::to_vec(&growing).unwrap_err();
    assert!(error.to_string().contains("more bytes"), "{error}");
    times.set(0);
    let split = Split::new(&growing).unwrap();
    let error = split.write_to(Vec::new()).unwrap_err();
    assert!(error.to_string().contains("more bytes"), "{error}");
}
