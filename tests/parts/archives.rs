//! Segments as parts and parts as segments.

use std::io;

use tenarc::archive::SaveOptions;
use tenarc::de::{DecodeOptions, Limits};
use tenarc::error::Category;
use tenarc::io::ReadAt;
use tenarc::io::SyncLevel;
use tenarc::parts::{Buffer, Parts};
use tenarc::{Archive, IArchive, OArchive};

use super::support::{Model, archived, model, sample, small, split, variants};
use tenarc_test_support::builder::{self, Seg, array, bytes_ref, text};
use tenarc_test_support::{OneByte, Ragged};

/// Bytes that are not in memory, as far as their reader can tell.
struct At<'a>(&'a [u8]);

impl ReadAt for At<'_> {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(out, offset)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }
}

/// Segments with and without names and buffers, of every option.
fn several() -> Vec<u8> {
    let mut bytes = Vec::new();
    for (at, (_, options)) in variants().into_iter().enumerate() {
        let mut out = OArchive::with_options(Vec::new(), options).unwrap();
        out.save(&model(at)).unwrap().save_as("named", &model(at + 100)).unwrap();
        out.save_as("", "no buffers").unwrap();
        bytes = if bytes.is_empty() {
            out.finish().unwrap()
        } else {
            let added = out.finish().unwrap();
            let mut whole = OArchive::new(Vec::new()).unwrap();
            for source in [&bytes, &added] {
                for segment in Archive::new(&source[..]).unwrap().segments() {
                    whole.save_parts(&segment.unwrap().view_parts().unwrap()).unwrap();
                }
            }
            whole.finish().unwrap()
        };
    }
    bytes
}

#[test]
fn an_archive_of_the_parts_of_an_archive_is_the_same() {
    let bytes = several();
    let archive = Archive::new(&bytes[..]).unwrap();
    archive.verify().unwrap();
    assert_eq!(archive.len(), 3 * variants().len() as u64);
    let apart = Archive::new(At(&bytes)).unwrap();
    let viewed = archived(|out| {
        for segment in archive.segments() {
            out.save_parts(&segment.unwrap().view_parts().unwrap()).unwrap();
        }
    });
    assert!(viewed == bytes);
    for source in [false, true] {
        let copied = archived(|out| {
            for number in 0..archive.len() {
                let parts = if source {
                    archive.segment(number).unwrap().to_parts()
                } else {
                    apart.segment(number).unwrap().to_parts()
                };
                out.save_parts(&parts.unwrap()).unwrap();
            }
        });
        assert!(copied == bytes);
    }
    let readers: [Box<dyn io::Read>; 3] =
        [Box::new(&bytes[..]), Box::new(OneByte(&bytes)), Box::new(Ragged::new(&bytes, 5))];
    for reader in readers {
        let mut input = IArchive::new(reader).unwrap();
        let streamed = archived(|out| {
            while !input.is_at_end().unwrap() {
                out.save_parts(&input.load_parts().unwrap()).unwrap();
            }
        });
        assert!(streamed == bytes);
        assert_eq!(input.load_parts().unwrap_err().category(), Category::Eof);
    }
}

#[test]
fn parts_of_an_archive_of_parts_are_the_same() {
    for (name, options) in variants() {
        let (metadata, buffers) = split(&model(3), &options);
        let parts = Parts::new(&metadata[..], buffers.clone()).unwrap();
        let bytes = archived(|out| {
            out.save("before").unwrap().save_parts(&parts).unwrap();
            out.save_parts_as("named", &parts).unwrap();
        });
        let archive = Archive::new(&bytes[..]).unwrap();
        archive.verify().unwrap();
        assert!(archive.segment(1).unwrap().load::<Model>().unwrap() == model(3), "{name}");
        assert_eq!(parts.info().item(), archive.segment(1).unwrap().metadata().unwrap(), "{name}");
        let back = archive.segment(1).unwrap().to_parts().unwrap();
        assert!(back.metadata() == metadata, "{name}");
        assert!(back.buffers().iter().map(|buffer| &buffer[..]).eq(buffers.iter()), "{name}");
        for buffer in back.buffers() {
            let alignment = back.info().buffers()[0].alignment();
            assert!((buffer.as_ptr() as usize).is_multiple_of(alignment), "{name}");
        }
        let named = archive.segment(2).unwrap().view_parts().unwrap();
        assert_eq!(named.info().name(), Some("named"));
        assert!(named.metadata() != metadata && named.load::<Model>().unwrap() == model(3));
        // The name goes with them.
        let again = archived(|out| {
            out.save_parts(&named).unwrap();
        });
        let again = Archive::new(&again[..]).unwrap();
        assert_eq!(again.segment(0).unwrap().name(), Some("named"));
        let error = archived_error(|out| out.save_parts_as(&"n".repeat(1025), &parts).map(drop));
        assert_eq!(error.category(), Category::Limit);
    }
}

fn archived_error(
    save: impl FnOnce(&mut OArchive<Vec<u8>>) -> tenarc::Result<()>,
) -> tenarc::Error {
    save(&mut OArchive::new(Vec::new()).unwrap()).unwrap_err()
}

#[test]
fn views_are_the_archive_s_own_memory() {
    let mut out = OArchive::with_options(Vec::new(), small()).unwrap();
    out.save(&model(1)).unwrap();
    let bytes = out.finish().unwrap();
    let archive = Archive::new(&bytes[..]).unwrap();
    let parts = archive.segment(0).unwrap().view_parts().unwrap();
    assert_eq!(parts.buffers().len(), 6);
    for buffer in parts.buffers() {
        assert!(bytes.as_ptr_range().contains(&buffer.as_ptr()));
    }
    let apart = Archive::new(At(&bytes)).unwrap();
    let error = apart.segment(0).unwrap().view_parts().unwrap_err();
    assert_eq!(error.category(), Category::Unsupported);
}

#[test]
fn damaged_buffers_of_an_archive_are_found() {
    let mut out = OArchive::with_options(Vec::new(), small()).unwrap();
    out.save(&model(1)).unwrap().save("behind").unwrap();
    let bytes = out.finish().unwrap();
    let places = Archive::new(&bytes[..]).unwrap().segment(0).unwrap().buffers().to_vec();
    for (number, (start, len)) in places.into_iter().enumerate() {
        for at in [start, start + len / 2, start + len - 1] {
            let mut changed = bytes.clone();
            changed[at as usize] ^= 4;
            let archive = Archive::new(&changed[..]).unwrap();
            let apart = Archive::new(At(&changed)).unwrap();
            let mut input = IArchive::new(&changed[..]).unwrap();
            let errors = [
                archive.segment(0).unwrap().to_parts().unwrap_err(),
                archive.segment(0).unwrap().view_parts().map(drop).unwrap_err(),
                apart.segment(0).unwrap().to_parts().unwrap_err(),
                input.load_parts().unwrap_err(),
            ];
            for error in errors {
                assert_eq!(error.category(), Category::Damaged, "{error}");
                assert!(error.to_string().contains(&format!("buffer {number} ")), "{error}");
                assert_eq!(error.offset(), Some(start), "{error}");
            }
            // Unless nobody looks; then whoever saves them again does.
            let trusting = DecodeOptions::default().with_checksums(false);
            let archive = archive.with_options(trusting);
            let mut input = IArchive::with_options(&changed[..], trusting).unwrap();
            for parts in [archive.segment(0).unwrap().to_parts(), input.load_parts()] {
                let parts = parts.unwrap();
                let error = archived_error(|out| out.save_parts(&parts).map(drop));
                assert_eq!(error.category(), Category::Damaged, "{error}");
                assert!(error.to_string().contains(&format!("buffer {number} (`")), "{error}");
            }
            assert_eq!(input.load::<String>().unwrap(), "behind");
        }
    }
    // Cut anywhere.
    for len in 12..bytes.len() {
        let Ok(mut input) = IArchive::new(&bytes[..len]) else { continue };
        match input.load_parts() {
            Ok(parts) => assert!(parts.load::<Model>().unwrap() == model(1)),
            Err(error) => assert_eq!(error.category(), Category::Torn, "{len}: {error}"),
        }
    }
}

#[test]
fn unchecked_parts_stay_unchecked() {
    let (metadata, mut buffers) = split(&model(1), &small().with_checksums(false));
    buffers[0][0] ^= 1;
    let parts = Parts::new(metadata, buffers).unwrap();
    assert!(parts.info().buffers().iter().all(|buffer| buffer.checksum().is_none()));
    let bytes = archived(|out| {
        out.save_parts(&parts).unwrap();
    });
    let archive = Archive::new(&bytes[..]).unwrap();
    archive.verify().unwrap();
    let back = archive.segment(0).unwrap().to_parts().unwrap();
    assert!(back.metadata() == parts.metadata());
    let streamed = IArchive::new(&bytes[..]).unwrap().load_parts().unwrap();
    assert!(streamed.metadata() == parts.metadata());
}

/// A buffer that can be changed while it is held, as a map of a file can.
struct Changeable(std::sync::atomic::AtomicBool, [Vec<u8>; 2]);

impl AsRef<[u8]> for Changeable {
    fn as_ref(&self) -> &[u8] {
        &self.1[usize::from(self.0.load(std::sync::atomic::Ordering::Relaxed))]
    }
}

#[test]
fn a_changed_buffer_is_an_error_and_a_file_is_cut_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tenarc");
    for len in [47, 48, 49] {
        let (metadata, buffers) = sample();
        let changeable = |(number, bytes): (usize, Vec<u8>)| {
            let mut other = bytes.clone();
            other[1] ^= 1;
            other.resize(if number == 4 { len } else { 48 }, 0);
            Changeable(false.into(), [bytes, other])
        };
        let buffers: Vec<_> = buffers.into_iter().enumerate().map(changeable).collect();
        let parts = Parts::new(metadata, buffers).unwrap();
        let options = SaveOptions::default().with_sync(SyncLevel::Off);
        let mut file = OArchive::create(&path, options).unwrap();
        file.save_parts(&parts).unwrap();
        let position = file.position();
        let change =
            |to: bool| parts.buffers()[4].0.store(to, std::sync::atomic::Ordering::Relaxed);

        change(true);
        let category = if len == 48 { Category::Damaged } else { Category::Data };
        let error = file.save_parts(&parts).map(drop).unwrap_err();
        assert_eq!(error.category(), category, "{error}");
        assert!(error.to_string().contains("buffer 4 (`curve`"), "{error}");
        assert_eq!((file.position(), file.segments()), (position, 1));
        // A stream is broken.
        let mut out = OArchive::new(Vec::new()).unwrap();
        out.save_parts(&parts).map(drop).unwrap_err();
        assert!(out.save("after").map(drop).unwrap_err().to_string().contains("broken"));
        // Views and streams see a length that is another.
        if len != 48 {
            assert_eq!(parts.load::<Model>().unwrap_err().category(), Category::Data);
            let mut written = Vec::new();
            let error = parts.write_to(&mut written).unwrap_err();
            assert!(error.to_string().contains("buffer 4 (`curve`"), "{error}");
            assert!(written.is_empty());
        }

        change(false);
        file.save_parts(&parts).unwrap().save("after").unwrap();
        file.finish().unwrap();
        let archive = tenarc::open(&path).unwrap();
        archive.verify().unwrap();
        assert_eq!(archive.len(), 3);
        assert!(archive.segment(1).unwrap().load::<Model>().unwrap() == model(1));
    }
}

#[test]
fn limits_of_a_stream_hold_for_its_parts() {
    let bytes = archived(|out| {
        out.save(&vec![0.5f32; 10_000]).unwrap().save("behind").unwrap();
    });
    let options = DecodeOptions::default().with_limits(Limits::default().with_max_alloc(39_999));
    let mut input = IArchive::with_options(&bytes[..], options).unwrap();
    assert_eq!(input.load_parts().unwrap_err().category(), Category::Limit);
    assert_eq!(input.load::<String>().unwrap(), "behind");
    let options = DecodeOptions::default().with_limits(Limits::default().with_max_alloc(40_000));
    let mut input = IArchive::with_options(&bytes[..], options).unwrap();
    let parts: Parts<Buffer> = input.load_parts().unwrap();
    assert_eq!(parts.buffers()[0].len(), 40_000);
}

#[test]
fn an_archive_with_a_buffer_that_nothing_refers_to_has_no_parts() {
    let seg = Seg::new(array(&[bytes_ref(1), bytes_ref(1)]), &[b"1234", b"5678"]);
    let bytes = builder::Built::new().segment(&seg).segment(&Seg::new(vec![1], &[])).end().bytes;
    let archive = Archive::new(&bytes[..]).unwrap();
    let segment = archive.segment(0).unwrap();
    let mut input = IArchive::new(&bytes[..]).unwrap();
    for result in [segment.to_parts(), input.load_parts()] {
        let error = result.unwrap_err();
        assert_eq!(error.category(), Category::Damaged);
        assert!(error.to_string().contains("nothing refers to buffer 0"), "{error}");
    }
    assert!(segment.view_parts().is_err());
    assert_eq!(input.load::<u8>().unwrap(), 1);
}

#[test]
fn what_is_wrong_in_metadata_is_told_as_of_the_archive() {
    let good = Seg::new(vec![1], &[]);
    let unused = Seg::new(text("nothing refers to it"), &[b"1234"]);
    for bad in [array(&[bytes_ref(0), bytes_ref(7)]), array(&[bytes_ref(0), vec![0x1c]])] {
        let bad = Seg::new(bad, &[b"1234"]);
        let archive = builder::Built::new().segment(&good).segment(&bad).segment(&unused);
        let bytes = archive.end().bytes;
        let archive = Archive::new(&bytes[..]).unwrap();
        let segment = archive.segment(1).unwrap();
        let expected = segment.tensors().unwrap_err().to_string();
        assert_eq!(segment.to_parts().unwrap_err().to_string(), expected);
        assert_eq!(segment.view_parts().unwrap_err().to_string(), expected);
        let mut input = IArchive::new(&bytes[..]).unwrap();
        input.skip().unwrap();
        assert_eq!(input.load_parts().unwrap_err().to_string(), expected);

        let segment = archive.segment(2).unwrap();
        assert_eq!(segment.to_parts().unwrap_err().offset(), Some(segment.offset()));
    }
}
