//! Wrong buffers, and metadata that was changed or is not metadata.

use serde_bytes::ByteBuf;
use tenarc::de::DecodeOptions;
use tenarc::error::Category;
use tenarc::parts::{Parts, PartsInfo};
use tenarc::{Error, OArchive, Value};

use super::support::{Model, Sent, archived, model, sample, small, split};
use tenarc_test_support::alloc::peak_of;

fn unchecked() -> DecodeOptions {
    DecodeOptions::default().with_checksums(false)
}

/// No way puts these together.
#[track_caller]
fn refused(sent: &Sent) -> Error {
    let (metadata, buffers) = sent;
    let first = Parts::new(&metadata[..], buffers.clone()).map(drop).expect_err("Parts::new");
    let ways = [
        tenarc::from_parts::<Value, _>(metadata, buffers).map(drop),
        PartsInfo::new(&metadata[..]).and_then(|info| info.with_buffers(buffers.clone()).map(drop)),
    ];
    for way in ways {
        let error = way.expect_err("put together");
        assert_eq!(error.to_string(), first.to_string());
        assert_eq!(error.category(), first.category());
    }
    first
}

#[track_caller]
fn says(error: &Error, category: Category, words: &[&str]) {
    assert_eq!(error.category(), category, "{error}");
    for word in words {
        assert!(error.to_string().contains(word), "{error}, without {word}");
    }
}

const PATHS: [&str; 6] =
    ["layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias", "curve", "blob"];

fn named(number: usize) -> String {
    format!("buffer {number} (`{}`", PATHS[number])
}

#[test]
fn missing_and_extra_buffers() {
    let (metadata, buffers) = sample();
    assert_eq!(buffers.len(), PATHS.len());
    for count in 0..buffers.len() {
        let error = refused(&(metadata.clone(), buffers[..count].to_vec()));
        let words = ["expected 6 buffers", &format!("found {count}"), &named(count), "is missing"];
        says(&error, Category::Data, &words);
        let options = unchecked();
        let unverified =
            Parts::with_options(&metadata[..], buffers[..count].to_vec(), options).unwrap_err();
        says(&unverified, Category::Data, &words);
    }
    for more in 1..4 {
        let extra = vec![buffers[0].clone(); more];
        let error = refused(&(metadata.clone(), [&buffers[..], &extra].concat()));
        says(
            &error,
            Category::Data,
            &["expected 6 buffers", "do the others belong to other metadata?"],
        );
    }
    let (without, _) = split("text", &small());
    let error = refused(&(without, vec![vec![1]]));
    says(&error, Category::Data, &["expected 0 buffers, found 1"]);
}

#[test]
fn short_long_and_empty_buffers() {
    let (metadata, buffers) = sample();
    for number in 0..buffers.len() {
        for len in [0, 1, 47, 49, 96, 5000] {
            let mut buffers = buffers.clone();
            buffers[number].resize(len, 0);
            let error = refused(&(metadata.clone(), buffers.clone()));
            let found = format!("found {len}");
            says(&error, Category::Data, &["expected 48 bytes", &named(number), &found]);
            let error = Parts::with_options(&metadata[..], buffers, unchecked()).unwrap_err();
            says(&error, Category::Data, &["expected 48 bytes", &named(number), &found]);
        }
    }
}

#[test]
fn swapped_buffers_and_one_given_twice() {
    let (metadata, buffers) = sample();
    for a in 0..buffers.len() {
        for b in a + 1..buffers.len() {
            let mut swapped = buffers.clone();
            swapped.swap(a, b);
            let error = refused(&(metadata.clone(), swapped.clone()));
            says(&error, Category::Damaged, &[&named(a), "has the content of", &named(b)]);
            // Without a look at them nothing tells them apart.
            Parts::with_options(&metadata[..], swapped, unchecked()).unwrap();

            let mut twice = buffers.clone();
            twice[b] = buffers[a].clone();
            let error = refused(&(metadata.clone(), twice));
            says(&error, Category::Damaged, &[&named(b), "has the content of", &named(a)]);
        }
    }
    // Of different lengths.
    let value = (ByteBuf::from(vec![1; 40]), ByteBuf::from(vec![2; 50]));
    let (metadata, mut buffers) = split(&value, &small());
    buffers.swap(0, 1);
    let error = refused(&(metadata.clone(), buffers.clone()));
    let words = ["buffer 0 (`0`, u8 [40])", "has the content of", "buffer 1 (`1`, u8 [50])"];
    says(&error, Category::Damaged, &words);
    let options = unchecked();
    assert!(Parts::with_options(metadata, buffers, options).is_err());
}

#[test]
fn buffers_of_other_parts() {
    let (metadata, buffers) = sample();
    let (other_metadata, other_buffers) = split(&model(77), &small());
    let error = refused(&(metadata.clone(), other_buffers.clone()));
    says(&error, Category::Damaged, &[&named(0), "belongs to other metadata"]);
    let error = refused(&(other_metadata, buffers.clone()));
    says(&error, Category::Damaged, &[&named(0), "belongs to other metadata"]);
    for number in 0..buffers.len() {
        let mut mixed = buffers.clone();
        mixed[number] = other_buffers[number].clone();
        let error = refused(&(metadata.clone(), mixed));
        says(&error, Category::Damaged, &[&named(number)]);
    }
}

#[test]
fn every_changed_byte_of_a_buffer_is_found() {
    let (metadata, buffers) = sample();
    for number in 0..buffers.len() {
        for at in 0..buffers[number].len() {
            let mut changed = buffers.clone();
            changed[number][at] ^= 1 << (at % 8);
            let error = refused(&(metadata.clone(), changed));
            says(&error, Category::Damaged, &["checksum of", &named(number), "was changed"]);
        }
    }
}

#[test]
fn metadata_cut_at_every_byte() {
    let (metadata, buffers) = sample();
    for len in 0..metadata.len() {
        let error = refused(&(metadata[..len].to_vec(), buffers.clone()));
        says(&error, Category::Eof, &[&format!("found {len}")]);
    }
    let (alone, none) = split("no buffers", &small());
    for len in 0..alone.len() {
        let error = refused(&(alone[..len].to_vec(), none.clone()));
        says(&error, Category::Eof, &[&format!("found {len}")]);
    }
}

#[test]
fn every_changed_byte_of_metadata_is_found() {
    let (metadata, buffers) = sample();
    for at in 0..metadata.len() {
        for bits in [1, 0x20, 0x80, 0xff] {
            let mut changed = metadata.clone();
            changed[at] ^= bits;
            let (error, peak) = peak_of(|| refused(&(changed, buffers.clone())));
            // A head that is another may tell another length, or version.
            let expected = [Category::Damaged, Category::Eof, Category::Limit, Category::Version];
            assert!(expected.contains(&error.category()), "{at}, {bits}: {error}");
            assert!(peak < 1 << 20, "{at}, {bits}: {peak} bytes");
        }
    }
}

#[test]
fn bytes_behind_metadata_and_metadata_behind_metadata() {
    for value in [&model(1) as &dyn Check, &"no buffers"] {
        let (metadata, buffers) = value.sent();
        for behind in [&b"\0"[..], b"\xff", &metadata, &[0; 1000]] {
            let long = [&metadata, behind].concat();
            let error = refused(&(long.clone(), buffers.clone()));
            let words = [
                format!("expected metadata of {} bytes", metadata.len()),
                format!("found {}", long.len()),
            ];
            says(&error, Category::Damaged, &[&words[0], &words[1]]);
            assert_eq!(error.offset(), Some(metadata.len() as u64));
        }
    }
}

trait Check {
    fn sent(&self) -> Sent;
}

impl<T: serde::Serialize> Check for T {
    fn sent(&self) -> Sent {
        split(self, &small())
    }
}

#[test]
fn what_is_no_metadata_of_parts() {
    let (_, buffers) = sample();
    let archive = archived(|out| {
        out.save(&model(1)).unwrap();
    });
    let message = tenarc::to_vec(&model(1)).unwrap();
    for other in [&archive[..], &message, b"{\"json\": [1, 2, 3]}", &[0; 50], &[0xff; 50]] {
        let error = refused(&(other.to_vec(), buffers.clone()));
        says(&error, Category::Damaged, &["expected the metadata of parts"]);
        let error = Parts::read_from(other).unwrap_err();
        says(&error, Category::Damaged, &["expected the metadata of parts"]);
    }
    // A segment of an archive is bound to where it stands there.
    let mut out = OArchive::with_options(Vec::new(), small()).unwrap();
    out.save(&model(1)).unwrap();
    let segment = &out.get_ref()[12..];
    let error = refused(&(segment.to_vec(), buffers.clone()));
    says(&error, Category::Damaged, &["checksum of a header"]);
    let error = Parts::read_from(segment).unwrap_err();
    says(&error, Category::Damaged, &["checksum of a header"]);
    // Neither are parts an archive, nor a message.
    let (metadata, _) = sample();
    assert_eq!(tenarc::Archive::new(&metadata[..]).unwrap_err().category(), Category::Syntax);
    assert!(tenarc::from_slice::<Model>(&metadata).is_err());
}
