//! Parts on a stream, one after the other: cut short, slow, wrong, hostile.

use std::io::{self, Read};

use tenarc::Tensor;
use tenarc::archive::SaveOptions;
use tenarc::de::{DecodeOptions, Limits};
use tenarc::error::Category;
use tenarc::parts::{Parts, Split};

use super::support::{Model, flat, model, sample, small, split};
use tenarc_test_support::alloc::peak_of;
use tenarc_test_support::builder::{Seg, array, bytes_ref, tensor_ref};
use tenarc_test_support::{OneByte, Ragged};

const MIB: usize = 1 << 20;

fn limited(bytes: u64) -> DecodeOptions {
    DecodeOptions::default().with_limits(Limits::default().with_max_alloc(bytes))
}

#[test]
fn cut_at_every_byte() {
    let bytes = flat(&sample());
    let metadata = sample().0.len();
    for len in 0..bytes.len() {
        for slow in [false, true] {
            let cut = &bytes[..len];
            let error = if slow { Parts::read_from(OneByte(cut)) } else { Parts::read_from(cut) };
            let error = error.unwrap_err();
            let expected = if len == 0 { Category::Eof } else { Category::Torn };
            assert_eq!(error.category(), expected, "{len}: {error}");
            let offset = error.offset().unwrap();
            assert!(offset <= len as u64, "{len}: {error}");
            if len >= metadata {
                assert!(error.to_string().contains("buffer"), "{len}: {error}");
                assert!(!error.path().is_empty(), "{len}: {error}");
            }
        }
    }
    let error = Parts::read_from(&bytes[..metadata + 60]).unwrap_err();
    assert_eq!(error.path(), "layers.0.bias");
    assert!(error.to_string().contains("only 12 of the 48 bytes of buffer 1"), "{error}");
    assert_eq!(error.offset(), Some(metadata as u64 + 48));
}

#[test]
fn one_after_the_other_and_not_a_byte_beyond() {
    let mut bytes = Vec::new();
    let values: Vec<Model> = (0..4).map(model).collect();
    for (at, value) in values.iter().enumerate() {
        if at % 2 == 0 {
            Split::with_options(value, small()).unwrap().write_to(&mut bytes).unwrap();
        } else {
            tenarc::to_parts(value).unwrap().write_to(&mut bytes).unwrap();
        }
    }
    tenarc::to_parts("no buffers").unwrap().write_to(&mut bytes).unwrap();
    bytes.extend(b"behind");

    let mut rest = &bytes[..];
    let mut slow = OneByte(&bytes);
    let mut ragged = Ragged::new(&bytes, 3);
    for value in &values {
        assert!(Parts::read_from(&mut rest).unwrap().load::<Model>().unwrap() == *value);
        assert!(Parts::read_from(&mut slow).unwrap().load::<Model>().unwrap() == *value);
        assert!(Parts::read_from(&mut ragged).unwrap().load::<Model>().unwrap() == *value);
    }
    assert_eq!(Parts::read_from(&mut rest).unwrap().load::<String>().unwrap(), "no buffers");
    assert_eq!(rest, b"behind");
    assert_eq!(Parts::read_from(&mut slow).unwrap().load::<String>().unwrap(), "no buffers");
    assert_eq!(slow.0, b"behind");
    assert_eq!(Parts::read_from(rest).unwrap_err().category(), Category::Torn);
    let error = Parts::read_from(&b"something else altogether"[..]).unwrap_err();
    assert_eq!((error.category(), error.offset()), (Category::Damaged, Some(0)));
}

/// Gives what it has, and does something else at one of the calls.
struct Odd<'a, F> {
    rest: &'a [u8],
    step: usize,
    call: usize,
    odd_at: usize,
    odd: F,
}

impl<F: FnMut(&mut [u8]) -> io::Result<usize>> Read for Odd<'_, F> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.call += 1;
        if self.call == self.odd_at {
            return (self.odd)(out);
        }
        let len = out.len().min(self.step);
        self.rest.read(&mut out[..len])
    }
}

#[test]
fn readers_that_fail_lie_or_are_interrupted_at_any_call() {
    let bytes = flat(&sample());
    type Oddity = fn(&mut [u8]) -> io::Result<usize>;
    let kinds: [(Oddity, Option<io::ErrorKind>); 5] = [
        (|_| Err(io::ErrorKind::Interrupted.into()), None),
        (|_| Err(io::ErrorKind::WouldBlock.into()), Some(io::ErrorKind::WouldBlock)),
        (|_| Err(io::ErrorKind::ConnectionReset.into()), Some(io::ErrorKind::ConnectionReset)),
        (|out| Ok(out.len() + 1), Some(io::ErrorKind::InvalidData)),
        (|_| Ok(usize::MAX), Some(io::ErrorKind::InvalidData)),
    ];
    for (odd, expected) in kinds {
        for step in [1, 7, 1000] {
            for odd_at in 1.. {
                let mut reader = Odd { rest: &bytes, step, call: 0, odd_at, odd };
                let result = Parts::read_from(&mut reader);
                if reader.call < odd_at {
                    result.unwrap();
                    break;
                }
                match expected {
                    None => assert!(result.unwrap().load::<Model>().unwrap() == model(1)),
                    Some(kind) => {
                        let error = result.unwrap_err();
                        assert_eq!(error.category(), Category::Io, "{odd_at}: {error}");
                        assert_eq!(io::Error::from(error).kind(), kind, "{odd_at}");
                    }
                }
            }
        }
    }
}

/// Reads what claims to be more than it is; the error, and the most memory it took.
fn claimed(bytes: &[u8], options: DecodeOptions) -> (tenarc::Error, usize) {
    let (result, peak) = peak_of(|| Parts::read_from_with(bytes, options).map(drop));
    (result.unwrap_err(), peak)
}

#[test]
fn claimed_lengths_take_no_memory() {
    for len in [1 << 20, 1 << 33, 1 << 40, 1 << 62, (1 << 63) - 1, u64::MAX - 100, u64::MAX] {
        // Of the metadata.
        let mut bytes = b"\xd8\x18\x5b".to_vec();
        bytes.extend(len.to_be_bytes());
        bytes.extend([0; 1000]);
        let (error, peak) = claimed(&bytes, DecodeOptions::default());
        let expected: &[Category] = if len > u64::MAX - 200 {
            &[Category::Damaged, Category::Limit]
        } else if len > 16 << 30 {
            &[Category::Limit]
        } else {
            &[Category::Torn]
        };
        assert!(expected.contains(&error.category()), "{len}: {error}");
        assert!(peak < MIB, "{len}: {peak} bytes");

        // Of a buffer, with right hashes.
        let mut seg = Seg::new(bytes_ref(0), &[b"little"]).claiming(&[len]);
        seg.hashes = Some(vec![0]);
        let bytes = [seg.parts(), vec![1; 1000]].concat();
        let (error, peak) = claimed(&bytes, DecodeOptions::default());
        // For each MiB it claims a hash of 8 bytes, which are part of the metadata.
        let expected = if len > 1 << 62 {
            Category::Data
        } else if len > (16 << 30) << 17 {
            Category::Limit
        } else {
            Category::Torn
        };
        assert_eq!(error.category(), expected, "{len}: {error}");
        assert!(peak < MIB, "{len}: {peak} bytes");

        // Without hashes.
        let seg = Seg::new(bytes_ref(0), &[b"little"]).claiming(&[len]).unchecked();
        let bytes = [seg.parts(), vec![1; 1000]].concat();
        let (error, peak) = claimed(&bytes, DecodeOptions::default());
        let expected = if len > 1 << 62 {
            Category::Data
        } else if len > 16 << 30 {
            Category::Limit
        } else {
            Category::Torn
        };
        assert_eq!(error.category(), expected, "{len}: {error}");
        assert!(peak < MIB, "{len}: {peak} bytes");
        // Without a limit, too.
        let (error, peak) = claimed(&bytes, limited(u64::MAX));
        assert!(error.category() != Category::Limit, "{len}: {error}");
        assert!(peak < MIB, "{len}: {peak} bytes");
    }
}

#[test]
fn memory_follows_the_bytes_received() {
    let mut seg = Seg::new(tensor_ref("u8", &[1 << 40], 0), &[b""]).claiming(&[1 << 40]);
    seg.hashes = Some(vec![0]);
    for len in [100_000, MIB, 5 * MIB] {
        let bytes = [seg.parts(), vec![1; len]].concat();
        let (error, peak) = claimed(&bytes, limited(u64::MAX));
        assert_eq!(error.category(), Category::Torn);
        assert!(peak < MIB + 4 * len, "{peak} bytes of {len}");
    }
}

#[test]
fn very_many_tiny_buffers_take_little_for_their_alignment() {
    let count = 3000;
    let references: Vec<Vec<u8>> = (0..count).map(bytes_ref).collect();
    let buffers = vec![&b"x"[..]; count as usize];
    for alignment in [8, 256, 4096, 65_536] {
        let seg = Seg::new(array(&references), &buffers).aligned(alignment).unchecked();
        let bytes = [seg.parts(), buffers.concat()].concat();
        let (parts, peak) = peak_of(|| Parts::read_from(&bytes[..]).unwrap());
        assert_eq!(parts.buffers().len(), buffers.len());
        assert!(peak < MIB / 2 + 64 * bytes.len(), "{peak} bytes of {}", bytes.len());
    }
    // Those that are not tiny are aligned as asked.
    for (alignment, len) in [(256, 1), (256, 4), (4096, 64), (65_536, 1024), (65_536, 5000)] {
        let options = SaveOptions::default().with_alignment(alignment).with_inline_below(0);
        let sent = split(&vec![Tensor(vec![1u8; len]); 9], &options);
        let parts = Parts::read_from(&flat(&sent)[..]).unwrap();
        let asked = if len == 1 { 64 } else { alignment as usize };
        for buffer in parts.buffers() {
            assert!((buffer.as_ptr() as usize).is_multiple_of(asked), "{alignment}, {len}");
        }
    }
}

#[test]
fn very_many_lengths_take_little() {
    // More than there can be references.
    for count in [100_000, 1_000_000] {
        let lengths = vec![1u64; count];
        let mut seg = Seg::new(bytes_ref(0), &[b"x"]).claiming(&lengths).unchecked();
        seg.hashes = Some(Vec::new());
        let bytes = seg.parts();
        let (error, peak) = claimed(&bytes, DecodeOptions::default());
        assert_eq!(error.category(), Category::Damaged, "{error}");
        assert!(error.to_string().contains("cannot refer to so many"), "{error}");
        assert!(peak < MIB + 48 * bytes.len(), "{peak} bytes of {}", bytes.len());
        let (result, peak) = peak_of(|| Parts::<Vec<u8>>::new(bytes.clone(), Vec::new()).map(drop));
        assert_eq!(result.unwrap_err().category(), Category::Damaged);
        assert!(peak < MIB + 48 * bytes.len(), "{peak} bytes of {}", bytes.len());
    }
}

#[test]
fn limits_hold_for_metadata_and_buffers_together() {
    let bytes = flat(&sample());
    let total = bytes.len() as u64;
    Parts::read_from_with(&bytes[..], limited(total)).unwrap();
    for most in 0..total {
        let error = Parts::read_from_with(&bytes[..], limited(most)).unwrap_err();
        assert_eq!(error.category(), Category::Limit, "{most}: {error}");
    }
    let strict = DecodeOptions::default().with_limits(Limits::strict());
    Parts::read_from_with(&bytes[..], strict).unwrap();
    let flat_limit = DecodeOptions::default().with_limits(Limits::default().with_max_depth(3));
    let error = Parts::read_from_with(&bytes[..], flat_limit).unwrap_err();
    assert_eq!(error.category(), Category::Limit);
    let rank = DecodeOptions::default().with_limits(Limits::default().with_max_rank(1));
    let error = Parts::read_from_with(&bytes[..], rank).unwrap_err();
    assert_eq!((error.category(), error.path()), (Category::Limit, "layers.0.weight".into()));
}

#[test]
fn a_changed_byte_of_a_buffer_is_found_unless_nobody_looks() {
    let (metadata, buffers) = sample();
    let start = metadata.len();
    let bytes = flat(&(metadata, buffers));
    let unchecked = DecodeOptions::default().with_checksums(false);
    for at in start..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 0x10;
        let error = Parts::read_from(&changed[..]).unwrap_err();
        assert_eq!(error.category(), Category::Damaged, "{error}");
        let number = (at - start) / 48;
        assert!(error.to_string().contains(&format!("buffer {number} (`")), "{error}");
        assert_eq!(error.offset(), Some((start + number * 48) as u64));
        let parts = Parts::read_from_with(&changed[..], unchecked).unwrap();
        assert_eq!(parts.buffers()[number][(at - start) % 48], changed[at]);
    }
}
