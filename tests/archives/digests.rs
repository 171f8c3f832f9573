//! Digests name contents.

use serde::Serialize;
use tenarc::archive::{Digest, SaveOptions};
use tenarc::{Archive, OArchive, Tensor};
use twox_hash::XxHash3_128;

use super::support::{Dir, quick, to_bytes, weights};

fn digest(bytes: &[u8]) -> Digest {
    Archive::new(bytes).unwrap().digest().unwrap()
}

fn of_segment<T: Serialize>(value: &T, options: SaveOptions) -> Digest {
    Archive::new(to_bytes(value, options)).unwrap().only().unwrap().digest().unwrap()
}

#[test]
fn is_the_hash_that_the_specification_says() {
    let mut out = OArchive::with_options(Vec::new(), quick().with_alignment(8)).unwrap();
    out.save_as("w", &weights(1000, 1)).unwrap();
    out.save(&7u8).unwrap();
    let bytes = out.finish().unwrap();
    let archive = Archive::new(&bytes[..]).unwrap();
    let (first, second) = (archive.segment(0).unwrap(), archive.segment(1).unwrap());
    // The header without its name: TSEG, eight items, version 1, null.
    let mut content = b"\xdaTSEG\x88\x01\xf6\x08\x67xxh3-64\x1a\x00\x10\x00\x00".to_vec();
    let rest = content.clone();
    content.extend(b"\x81\x19\x0f\xa0\xa0");
    content.extend(first.metadata().unwrap());
    let (start, len) = first.buffers()[0];
    let end = usize::try_from(start + len).unwrap();
    content.extend(&bytes[end..end + 3 + 8]);
    let expected = XxHash3_128::oneshot(&content);
    assert_eq!(first.digest().unwrap().to_string(), format!("{expected:032x}"));
    assert_eq!(first.digest().unwrap().to_bytes(), expected.to_be_bytes());

    let without = [&rest[..], b"\x80\xa0\x07"].concat();
    let other = XxHash3_128::oneshot(&without);
    assert_eq!(second.digest().unwrap().to_bytes(), other.to_be_bytes());
    let list =
        [b"\x82\x82\x61w\x50", &expected.to_be_bytes()[..], b"\x82\xf6\x50", &other.to_be_bytes()];
    assert_eq!(digest(&bytes).to_bytes(), XxHash3_128::oneshot(&list.concat()).to_be_bytes());
}

#[test]
fn depends_on_the_value_and_on_nothing_else() {
    let value = (weights(1000, 1), "name", weights(3, 2));
    let first = of_segment(&value, quick());
    assert_eq!(first, of_segment(&value, quick()));
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save(&[1, 2, 3]).unwrap();
    out.save_as("elsewhere", &value).unwrap();
    let bytes = out.finish().unwrap();
    let archive = Archive::new(&bytes[..]).unwrap();
    assert_eq!(archive.named("elsewhere").unwrap().digest().unwrap(), first);

    for other in
        [(weights(1000, 2), "name", weights(3, 2)), (weights(1000, 1), "name", weights(3, 3))]
    {
        assert_ne!(of_segment(&other, quick()), first);
    }
    assert_ne!(of_segment(&(weights(1000, 1), "nome", weights(3, 2)), quick()), first);
    let unchecked = Archive::new(to_bytes(&value, quick().with_checksums(false))).unwrap();
    assert!(unchecked.only().unwrap().digest().is_err());
    assert!(unchecked.digest().is_err());
    // Nothing is in a buffer.
    of_segment(&7, quick().with_checksums(false));
}

#[test]
fn that_of_an_archive_does_not_depend_on_sessions() {
    let dir = Dir::new();
    let (once, twice) = (dir.file("once.tenarc"), dir.file("twice.tenarc"));
    let values: Vec<Tensor<Vec<f32>>> = (0..100).map(|seed| weights(600, seed)).collect();
    for (path, ends) in [(&once, &[100][..]), (&twice, &[30, 64, 65, 100])] {
        let mut start = 0;
        for &end in ends {
            let mut out = match start {
                0 => OArchive::create(path, quick()).unwrap(),
                _ => OArchive::append_with(path, quick()).unwrap(),
            };
            for value in &values[start..end] {
                out.save_as("w", value).unwrap();
            }
            out.finish().unwrap();
            start = end;
        }
    }
    let [once, twice] = [once, twice].map(|path| std::fs::read(path).unwrap());
    assert_ne!(once, twice);
    assert_eq!(digest(&once), digest(&twice));
    let mut other = OArchive::new(Vec::new()).unwrap();
    for value in values.iter().rev() {
        other.save_as("w", value).unwrap();
    }
    assert_ne!(digest(&other.finish().unwrap()), digest(&once));
}
