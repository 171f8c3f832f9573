//! Zip files whose directory has wrong contents.

use tenarc::error::Category;
use tenarc_convert::npy::Npz;

use super::support::{Part, Slow, all, body, bytes, end, fixture, part, says, zip, zip_at};

fn two() -> [Part; 2] {
    [part("a.npy", &bytes(b"first"), false), part("b.npy", &bytes(b"second"), true)]
}

#[test]
fn the_builder_of_these_tests_builds_zip_files() {
    let found = all(&zip(&two())).unwrap();
    let texts: Vec<_> = found.iter().map(|(name, t)| (&name[..], t.le_bytes())).collect();
    assert_eq!(texts[0], ("a", b"first"[..].into()));
    assert_eq!(texts[1], ("b", b"second"[..].into()));
}

#[test]
fn members_that_lie_over_each_other_are_refused() {
    // One place under two names, as bombs have it.
    let same = zip_at(&two(), |_, _| 0);
    says(Npz::new(&same[..]), "the next part of the file starts at");
    // A member that holds the next one.
    let mut parts = two();
    let next = zip(&parts[1..]);
    parts[0] = part("a.npy", &[bytes(b"first"), next].concat(), false);
    let own = parts[0].data.windows(4).position(|bytes| bytes == b"PK\x03\x04").unwrap();
    let inner = 35 + own as u32;
    let quoted = zip_at(&parts, |at, offset| if at == 0 { offset } else { inner });
    says(Npz::new(&quoted[..]), "the next part of the file starts at");
    // The last over the directory.
    let mut parts = two();
    parts[1].central.compressed += 1000;
    says(Npz::new(&zip(&parts)[..]), "the next part of the file starts at");
    // A longer extra field than the directory's leaves less room than the directory knows of.
    let mut parts = two();
    parts[0].local.extra = vec![0; 8];
    let (body, list) = body(&parts, |at, offset| if at == 0 { offset } else { offset - 8 });
    let bytes = [&body[..], &list, &end(2, list.len() as u32, body.len() as u32)].concat();
    let npz = Npz::new(&bytes[..]).unwrap();
    says(npz.info("a"), "the next part of the file starts at");
}

#[test]
fn two_members_of_one_name_are_refused() {
    let parts = [two()[0].clone(), two()[0].clone()];
    assert_eq!(says(Npz::new(&zip(&parts)[..]), "two members").path(), "a.npy");
}

#[test]
fn names_are_keys_whatever_they_look_like() {
    let names = ["../../etc/passwd", "/absolute", "C:\\x", "a\u{1b}[31m", "", "con", "a/../b"];
    let parts: Vec<Part> =
        names.iter().map(|name| part(&format!("{name}.npy"), &bytes(b"x"), false)).collect();
    let found = all(&zip(&parts)).unwrap();
    assert!(found.iter().map(|(name, _)| &name[..]).eq(names));
    // numpy, too, ends such a name at the zero byte.
    says(Npz::new(&zip(&[part("a.npy\0.npy", &bytes(b"x"), false)])[..]), "zero byte");
    let mut unknown = part("?.npy", &bytes(b"x"), false);
    unknown.local.name[0] = 0xe9;
    unknown.central.name[0] = 0xe9;
    says(Npz::new(&zip(&[unknown])[..]), "unknown character set");
}

#[test]
fn the_end_record_must_fit_the_list() {
    let (body, list) = body(&two(), |_, offset| offset);
    let (start, size) = (body.len() as u32, list.len() as u32);
    let with = |end: Vec<u8>| [&body[..], &list, &end].concat();
    assert!(Npz::new(&with(end(2, size, start))[..]).is_ok());
    for count in [0, 1, 3, 0xffff] {
        says(Npz::new(&with(end(count, size, start))[..]), "lists 2");
    }
    for (size, start) in [(size - 1, start), (size, start + 1), (0, 0), (u32::MAX, u32::MAX)] {
        says(Npz::new(&with(end(2, size, start))[..]), "must end at");
    }
    says(Npz::new(&with(end(2, size - 1, start + 1))[..]), "expected an entry");
    says(Npz::new(&with(end(2, size + 9, start - 9))[..]), "expected an entry");
    let mut disks = end(2, size, start);
    disks[4] = 1;
    says(Npz::new(&with(disks)[..]), "several disks");
    // Bytes in front would move every offset; bytes behind would hide the end.
    let good = with(end(2, size, start));
    says(Npz::new(&[&b"#!/bin/sh\n"[..], &good].concat()[..]), "must end at");
    says(Npz::new(&[&good[..], b"x"].concat()[..]), "no end record");
}

#[test]
fn a_comment_may_follow_and_hold_anything() {
    let parts = two();
    let comment = end(7, 7, 7);
    let mut file = zip(&parts);
    let len = file.len();
    file[len - 2] = comment.len() as u8;
    file.extend(&comment);
    // The inner record ends where the file does, too, and describes another file.
    says(Npz::new(&file[..]), "must end at");
    file.extend(b"..");
    file[len - 2] += 2;
    assert_eq!(all(&file).unwrap().len(), 2);
}

#[test]
fn files_cut_anywhere_are_errors() {
    for name in ["plain.npz", "nested.npz"] {
        let bytes = fixture(name);
        for len in 0..bytes.len() {
            let error = Npz::new(&bytes[..len]).unwrap_err();
            assert!(matches!(error.category(), Category::Torn | Category::Eof), "{len}: {error}");
        }
    }
}

/// Elements are behind checksums, and what else matters stands there twice; dates, versions and
/// attributes do not.
#[test]
fn a_changed_byte_is_an_error_or_changes_no_array() {
    let parts = [part("a.npy", &bytes(b"first"), true), part("b.npy", &bytes(b"second"), false)];
    for file in [zip(&parts), fixture("mixed.npz")] {
        let good = all(&file).unwrap();
        let mut unnoticed = 0;
        for at in 0..file.len() {
            for with in [0x01, 0x80, 0xff] {
                let mut file = file.clone();
                file[at] ^= with;
                let Ok(found) = all(&file) else { continue };
                // A member whose name does not end so any more is no array.
                assert!(found.iter().all(|tensor| good.contains(tensor)), "byte {at}");
                unnoticed += 1;
            }
        }
        assert!(unnoticed < file.len() / 2, "{unnoticed} of {} changes", 3 * file.len());
    }
}

#[test]
fn reading_a_few_bytes_at_a_time_finds_the_same() {
    for name in ["plain.npz", "compressed.npz", "unicode.npz", "mixed.npz", "empty.npz"] {
        let bytes = fixture(name);
        let npz = Npz::new(Slow(bytes.clone())).unwrap();
        for (name, tensor) in all(&bytes).unwrap() {
            assert_eq!(npz.dyn_tensor(&name).unwrap(), tensor);
        }
    }
}
