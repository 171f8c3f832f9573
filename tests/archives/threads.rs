//! `verify` and `recover` read large tensors with several threads, and find the same with any number of them.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::thread;

use tenarc::archive::{Recovered, Recovery};
use tenarc::de::DecodeOptions;
use tenarc::io::ReadAt;
use tenarc::{Archive, OArchive, Tensor};
use tenarc_test_support::Meeting;

use super::support::{Counted, Dir, quick, to_bytes, weights};

const MIB: usize = 1 << 20;

fn options(threads: usize) -> DecodeOptions {
    DecodeOptions::default().with_threads(NonZeroUsize::new(threads).unwrap())
}

/// Two values with tensors of 6 MiB and a bit, and a small one.
fn archive() -> Vec<u8> {
    let mut out = OArchive::with_options(Vec::new(), quick()).unwrap();
    for seed in 0..2 {
        out.save(&(weights(3 * MIB / 2 + 1100, seed), weights(2000, seed))).unwrap();
    }
    out.finish().unwrap()
}

/// The places of the buffers of a value.
fn buffers(bytes: &[u8], value: u64) -> Vec<Range<usize>> {
    let archive = Archive::new(bytes).unwrap();
    let places = archive.segment(value).unwrap().buffers().to_vec();
    let place = |(start, len): (u64, u64)| {
        let start = usize::try_from(start).unwrap();
        start..start + usize::try_from(len).unwrap()
    };
    places.into_iter().map(place).collect()
}

/// An archive whose readers of the first tensor wait for each other in its first 4 MiB.
struct Met {
    bytes: Vec<u8>,
    start: Range<usize>,
    readers: Meeting,
}

impl Met {
    fn new(bytes: Vec<u8>, readers: usize) -> Self {
        let start = buffers(&bytes, 0)[0].start;
        let start = start..start + 4 * MIB;
        Self { bytes, start, readers: Meeting::of(readers) }
    }
}

impl ReadAt for Met {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        if self.start.contains(&usize::try_from(offset).unwrap()) {
            self.readers.wait()?;
        }
        self.bytes.read_at(out, offset)
    }

    fn size(&self) -> io::Result<u64> {
        self.bytes.size()
    }
}

#[test]
fn as_many_threads_verify_a_large_tensor_as_are_asked_for() {
    for threads in [2, 3] {
        let archive = Archive::new(Met::new(archive(), threads)).unwrap();
        archive.with_options(options(threads)).verify().unwrap();
    }
    #[cfg(feature = "compression")]
    {
        // Noise shrinks by little, so that more than 4 MiB are stored.
        let mut state = 1u32;
        let noise = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 12
        });
        let noise: Vec<u32> = noise.take(2 * MIB).collect();
        let zstd = quick().with_compression(tenarc::archive::Compression::zstd());
        let bytes = to_bytes(&Tensor(noise), zstd);
        let archive = Archive::new(Met::new(bytes, 2)).unwrap();
        assert!(archive.only().unwrap().compressed(0).unwrap().stored_len() > 4 << 20);
        archive.with_options(options(2)).verify().unwrap();
    }
}

/// As many threads as there are cores, but at most four.
#[test]
fn several_threads_read_tensors_of_64_mib_by_default() {
    let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get).min(4);
    let tensor = Tensor(vec![0.5f32; 16 * MIB]);
    let bytes = to_bytes(&tensor, quick());
    // A thread reads 2 MiB at once, so that four of them read the first 8 MiB.
    let met = || {
        let met = Met::new(bytes.clone(), threads);
        Met { start: met.start.start..met.start.start + 8 * MIB, ..met }
    };
    let archive = Archive::new(met()).unwrap();
    archive.verify().unwrap();
    assert_eq!(archive.source().readers.threads().len(), threads);
    let archive = Archive::new(met()).unwrap();
    assert!(archive.load::<Tensor<Vec<f32>>>().unwrap() == tensor);
    assert_eq!(archive.source().readers.threads().len(), threads);
}

#[test]
fn the_calling_thread_alone_verifies_small_tensors_and_others_if_nothing_is_asked_for() {
    let small = to_bytes(&weights(MIB / 2, 0), quick());
    for (bytes, options) in [(small, options(8)), (archive(), DecodeOptions::default())] {
        let archive = Archive::new(Met::new(bytes, 1)).unwrap().with_options(options);
        archive.verify().unwrap();
        let threads = archive.source().readers.threads();
        assert_eq!(threads, HashSet::from([thread::current().id()]));
    }
}

/// Archives with faults in several places.
fn damaged() -> Vec<Vec<u8>> {
    let whole = archive();
    let (first, second) = (buffers(&whole, 0), buffers(&whole, 1));
    let flipped = |places: &[usize]| {
        let mut bytes = whole.clone();
        for &place in places {
            bytes[place] ^= 1;
        }
        bytes
    };
    let chunk = |buffer: &Range<usize>, number: usize| buffer.start + number * MIB + 99;
    vec![
        flipped(&[chunk(&first[0], 5), chunk(&first[0], 2), chunk(&first[0], 4)]),
        flipped(&[chunk(&first[0], 6), first[1].start]),
        // The padding between the buffers.
        flipped(&[first[0].end, first[1].start, chunk(&second[0], 0)]),
        // The list of checksums, behind a damaged chunk.
        flipped(&[chunk(&second[0], 3), second[1].end + 9]),
        flipped(&[chunk(&second[0], 3), chunk(&second[0], 1)]),
        whole[..chunk(&second[0], 3)].to_vec(),
        whole[..whole.len() - 1].to_vec(),
    ]
}

#[test]
fn any_number_of_threads_finds_the_same_faults() {
    for (number, bytes) in damaged().into_iter().enumerate() {
        let verify = |threads: usize| {
            let archive = Archive::new_torn(Counted::new(bytes.clone())).unwrap();
            // Checksums are verified even if nothing else verifies them.
            let options = options(threads).with_checksums(false);
            let mut progress = Vec::new();
            let result =
                archive.with_options(options).verify_with(|done, of| progress.push((done, of)));
            let error = result.unwrap_err();
            let found = (error.category(), error.offset(), error.path());
            (found, error.to_string(), progress)
        };
        let expected = verify(1);
        for threads in [2, 8] {
            assert_eq!(verify(threads), expected, "{number}");
        }
    }
}

#[test]
fn any_number_of_threads_recovers_the_same() {
    let dir = Dir::new();
    let [path, new] = ["a.tenarc", "new.tenarc"].map(|name| dir.file(name));
    type Recover<'a> = &'a dyn Fn(DecodeOptions) -> tenarc::Result<Recovered>;
    let recovery = Recovery::of(&path);
    let ways: [(Recover<'_>, _); 2] = [
        (&|options| recovery.clone().with_options(options).in_place(), &path),
        (&|options| recovery.clone().with_options(options).to(&new), &new),
    ];
    for (number, mut bytes) in damaged().into_iter().enumerate() {
        // Without its end mark, everything in the archive is verified.
        bytes.pop();
        for (way, (recover, result)) in ways.iter().enumerate() {
            let run = |threads: usize| {
                fs::write(&path, &bytes).unwrap();
                let recovered = recover(options(threads)).map_err(|error| error.to_string());
                (recovered, fs::read(result).ok())
            };
            let expected = run(1);
            assert!(run(3) == expected, "{number}, {way}");
            let _ = fs::remove_file(&new);
        }
    }
}
