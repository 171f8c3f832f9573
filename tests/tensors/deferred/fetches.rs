//! How often a deferred tensor is fetched in each way of writing it, as its documentation says.

use std::cell::Cell;
use std::convert::Infallible;

use serde::Serialize;
use tenarc::archive::SaveOptions;
use tenarc::parts::Split;
use tenarc::tensor::Deferred;
use tenarc::{OArchive, Tensor};

use super::quick;

/// Elements of the tensor that goes to a buffer, and of the one that stays inline.
const LARGE: usize = 4096;
const SMALL: usize = 16;

#[derive(Serialize)]
struct Both<'a> {
    large: Tensor<Deferred<'a>>,
    small: Tensor<Deferred<'a>>,
}

/// Counts how often both are fetched.
#[derive(Default)]
struct Counts {
    large: Cell<usize>,
    small: Cell<usize>,
}

impl Counts {
    fn tensor(count: &Cell<usize>, len: usize) -> Tensor<Deferred<'_>> {
        let fetch = move || {
            count.set(count.get() + 1);
            Ok::<_, Infallible>(vec![0.5f32; len])
        };
        Deferred::new(&[len], fetch).into()
    }

    fn both(&self) -> Both<'_> {
        let large = Self::tensor(&self.large, LARGE);
        Both { large, small: Self::tensor(&self.small, SMALL) }
    }

    /// Since the last time.
    fn take(&self) -> (usize, usize) {
        (self.large.take(), self.small.take())
    }
}

#[track_caller]
fn archived(options: SaveOptions, expected: (usize, usize)) {
    let counts = Counts::default();
    let mut out = OArchive::with_options(Vec::new(), options.clone()).unwrap();
    out.save(&counts.both()).unwrap();
    assert_eq!(counts.take(), expected, "OArchive");
    let dir = tempfile::tempdir().unwrap();
    tenarc::archive::save_with(dir.path().join("file"), &counts.both(), options.clone()).unwrap();
    assert_eq!(counts.take(), expected, "save");
    tenarc::parts::to_parts_with(&counts.both(), options).unwrap();
    assert_eq!(counts.take(), expected, "to_parts");
}

#[test]
fn archives_and_parts_fetch_once() {
    archived(quick(), (1, 2));
    archived(quick().with_checksums(false), (1, 2));
    archived(quick().with_out_of_band(|tensor| tensor.path() == "large"), (1, 2));
    // Everything in buffers, and everything inline, where nothing is compared.
    archived(quick().with_inline_below(0), (1, 1));
    archived(quick().with_inline_below(usize::MAX), (1, 1));
}

#[test]
fn dedup_fetches_once_more() {
    archived(quick().with_dedup(true), (2, 2));
    archived(quick().with_dedup(true).with_checksums(false), (2, 2));
    archived(quick().with_dedup(true).with_inline_below(0), (2, 2));
}

#[test]
fn a_split_fetches_for_checksums_and_each_time_it_is_handed_out() {
    // To make it, and for each time.
    for (options, made) in [
        (quick(), 1),
        (quick().with_checksums(false), 0),
        (quick().with_dedup(true), 2),
        (quick().with_dedup(true).with_checksums(false), 1),
    ] {
        let counts = Counts::default();
        let both = counts.both();
        let split = Split::with_options(&both, options).unwrap();
        assert_eq!(counts.take().0, made);
        split.write_to(Vec::new()).unwrap();
        assert_eq!(counts.take(), (1, 1));
        split.each_buffer(|_, _| Ok(())).unwrap();
        assert_eq!(counts.take(), (1, 1));
        split.pieces(|_| Ok(())).unwrap();
        assert_eq!(counts.take(), (1, 1));
    }
}

#[test]
fn messages_fetch_once_unless_they_are_walked_twice() {
    let counts = Counts::default();
    tenarc::to_writer(Vec::new(), &counts.both()).unwrap();
    assert_eq!(counts.take(), (1, 1));
    tenarc::to_vec(&counts.both()).unwrap();
    assert_eq!(counts.take(), (1, 1));
    tenarc::to_value(&counts.both()).unwrap();
    assert_eq!(counts.take(), (1, 1));

    // A block of a mebibyte makes for a second walk, whoever has it.
    let large = vec![0.5f32; 1 << 18];
    tenarc::to_vec(&(Tensor(&large), counts.both())).unwrap();
    assert_eq!(counts.take(), (2, 2));
    let once = Counts::default();
    tenarc::to_vec(&Counts::tensor(&once.large, 1 << 18)).unwrap();
    assert_eq!(once.take(), (2, 0));
    tenarc::to_writer(Vec::new(), &Counts::tensor(&once.large, 1 << 18)).unwrap();
    assert_eq!(once.take(), (1, 0));
}

#[test]
fn a_sequence_that_turns_out_mixed_makes_inline_tensors_be_fetched_again() {
    #[derive(Serialize, Clone, Copy)]
    #[serde(untagged)]
    enum Number {
        Whole(u32),
        Broken(f32),
    }
    let mut mixed = vec![Number::Whole(1); 100_000];
    mixed.push(Number::Broken(0.5));
    let counts = Counts::default();
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save(&(counts.both(), &mixed)).unwrap();
    assert_eq!(counts.take(), (1, 3));
}

#[test]
fn other_formats_fetch_once() {
    let counts = Counts::default();
    serde_json::to_string(&counts.both()).unwrap();
    assert_eq!(counts.take(), (1, 1));
    ciborium::into_writer(&counts.both(), Vec::new()).unwrap();
    assert_eq!(counts.take(), (1, 1));
}
