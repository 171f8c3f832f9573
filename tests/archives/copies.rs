//! Segments moved from archive to archive, and buffers read, without being decoded.

use std::io;

use tenarc::de::DecodeOptions;
use tenarc::error::Category;
use tenarc::{Archive, OArchive, Tensor};

use super::support::{Counted, assert_sound, model, quick, to_bytes, variants, weights};

/// Every segment of an archive in a new one, with another value before them.
fn copied<S: tenarc::io::ReadAt>(from: &Archive<S>) -> tenarc::Result<Vec<u8>> {
    let mut out = OArchive::with_options(Vec::new(), quick())?;
    out.save("first")?;
    for segment in from.segments() {
        out.save_segment(&segment?)?;
    }
    out.finish()
}

#[test]
fn segments_are_copied_as_they_are_whatever_the_options() {
    for (name, options) in variants() {
        let bytes = to_bytes(&model(), options);
        for from_memory in [true, false] {
            let copy = if from_memory {
                copied(&Archive::new(&bytes[..]).unwrap()).unwrap()
            } else {
                copied(&Archive::new(Counted::new(bytes.clone())).unwrap()).unwrap()
            };
            let (from, to) = (Archive::new(&bytes[..]).unwrap(), Archive::new(&copy[..]).unwrap());
            to.verify().unwrap();
            let (before, after) = (from.segment(0).unwrap(), to.segment(1).unwrap());
            assert_eq!(before.metadata().unwrap(), after.metadata().unwrap(), "{name}");
            assert_eq!(before.alignment(), after.alignment(), "{name}");
            assert_eq!(before.buffers().len(), after.buffers().len(), "{name}");
            assert!(after.load::<super::support::Model>().unwrap() == model(), "{name}");
        }
    }
    let bytes = to_bytes(&model(), quick());
    assert_sound(&copied(&Archive::new(&bytes[..]).unwrap()).unwrap(), 256);
}

#[test]
fn names_are_kept_or_given() {
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save_as("old", &weights(1000, 1)).unwrap();
    let from = Archive::new(out.finish().unwrap()).unwrap();
    let segment = from.named("old").unwrap();
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save_segment(&segment).unwrap().save_segment_as("new", &segment).unwrap();
    let long = "n".repeat(1025);
    assert_eq!(out.save_segment_as(&long, &segment).unwrap_err().category(), Category::Limit);
    let to = Archive::new(out.finish().unwrap()).unwrap();
    assert_eq!(to.named("old").unwrap().load::<Tensor<Vec<f32>>>().unwrap(), weights(1000, 1));
    assert_eq!(to.named("new").unwrap().load::<Tensor<Vec<f32>>>().unwrap(), weights(1000, 1));
}

#[test]
fn buffers_are_read_in_blocks_that_add_up() {
    let tensors = [weights(600, 1), weights(200_000, 2)];
    let bytes = to_bytes(&tensors, quick());
    let archive = Archive::new(Counted::new(bytes)).unwrap();
    let segment = archive.segment(0).unwrap();
    for (number, tensor) in tensors.iter().enumerate() {
        let (mut read, mut largest) = (Vec::new(), 0);
        segment
            .read_buffer(number, |block| {
                read.extend_from_slice(block);
                largest = largest.max(block.len());
                Ok(())
            })
            .unwrap();
        let expected: Vec<u8> = tensor.iter().flat_map(|value| value.to_le_bytes()).collect();
        assert!(read == expected && largest <= 1 << 20, "buffer {number}");
    }
    let error = segment.read_buffer(2, |_| Ok(())).unwrap_err();
    assert!(error.to_string().contains("buffer 2"), "{error}");
    let mut calls = 0;
    let error = segment.read_buffer(1, |_| {
        calls += 1;
        Err(serde::ser::Error::custom("enough"))
    });
    assert_eq!((error.unwrap_err().to_string().as_str(), calls), ("enough", 1));
}

#[test]
fn any_part_of_a_buffer_can_be_read() {
    let tensors = [weights(600, 1), weights(1000, 2)];
    let archive = Archive::new(to_bytes(&tensors, quick())).unwrap();
    let segment = archive.segment(0).unwrap();
    let whole: Vec<u8> = tensors[1].iter().flat_map(|value| value.to_le_bytes()).collect();
    for (start, len) in [(0, 4000), (1, 7), (3990, 10), (4000, 0)] {
        let mut part = vec![0; len];
        segment.read_buffer_part(1, start as u64, &mut part).unwrap();
        assert!(part == whole[start..start + len], "{len} bytes from {start}");
    }
    for (number, start) in [(0, 2395), (1, 3995), (1, 4001), (1, u64::MAX), (2, 0)] {
        let error = segment.read_buffer_part(number, start, &mut [0; 6]).unwrap_err();
        assert_eq!(error.category(), Category::NotFound, "{error}");
        assert!(error.to_string().contains(&format!("buffer {number}")), "{error}");
    }
}

#[test]
fn damaged_buffers_are_not_copied() {
    let mut bytes = to_bytes(&weights(600, 1), quick());
    let (start, _) = Archive::new(&bytes[..]).unwrap().segment(0).unwrap().buffers()[0];
    bytes[usize::try_from(start).unwrap() + 1000] ^= 1;
    let archive = Archive::new(&bytes[..]).unwrap();
    let segment = archive.segment(0).unwrap();
    assert_eq!(segment.read_buffer(0, |_| Ok(())).unwrap_err().category(), Category::Damaged);
    assert_eq!(copied(&archive).unwrap_err().category(), Category::Damaged);
    // Unverified, they are handed over; the copy has the old checksum, and so is found damaged, too.
    let unchecked = DecodeOptions::default().with_checksums(false);
    let archive = Archive::new(&bytes[..]).unwrap().with_options(unchecked);
    archive.segment(0).unwrap().read_buffer(0, |_| Ok(())).unwrap();
    let copy = copied(&archive).unwrap();
    let error = Archive::new(&copy[..]).unwrap().verify().unwrap_err();
    assert_eq!(error.category(), Category::Damaged);
}

/// Takes so many bytes and then fails.
struct Full(usize);

impl io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_copy_that_fails_part_way_breaks_the_archive_there() {
    let bytes = to_bytes(&weights(100_000, 1), quick());
    let from = Archive::new(&bytes[..]).unwrap();
    let segment = from.segment(0).unwrap();
    let mut out = OArchive::new(Full(100_000)).unwrap();
    assert_eq!(out.save_segment(&segment).unwrap_err().category(), Category::Io);
    assert!(out.save_segment(&segment).unwrap_err().to_string().contains("broken"));
}
