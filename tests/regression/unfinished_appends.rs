//! A file with bytes behind its last end mark could be neither opened nor appended to.

use std::fs;
use std::path::Path;

use tenarc::archive::SaveOptions;
use tenarc::error::Category;
use tenarc::{Archive, OArchive, Tensor};

fn values(path: &Path) -> Vec<Vec<u16>> {
    let archive = tenarc::open(path).unwrap();
    archive.verify().unwrap();
    let values = archive.segments().map(|segment| segment.unwrap().load::<Tensor<Vec<u16>>>());
    values.map(|value| value.unwrap().0).collect()
}

fn value(number: u16) -> Tensor<Vec<u16>> {
    Tensor(vec![number; 3000])
}

/// A file of one value, and the bytes that an append of two more writes before its end mark.
fn unfinished(path: &Path) -> (Vec<u8>, Vec<u8>) {
    tenarc::save(path, &value(0)).unwrap();
    let committed = fs::read(path).unwrap();
    let mut out = OArchive::append(path).unwrap();
    out.save(&value(1)).unwrap().save(&value(2)).unwrap();
    let all = fs::read(path).unwrap();
    (committed, all)
}

#[test]
fn readers_see_the_last_commit_while_a_writer_appends() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tenarc");
    tenarc::save(&path, &value(0)).unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut out = OArchive::append_with(
                &path,
                SaveOptions::default().with_sync(tenarc::io::SyncLevel::Off),
            )
            .unwrap();
            for number in 1..200 {
                out.save(&value(number)).unwrap();
                if number % 3 == 0 {
                    out.commit().unwrap();
                }
            }
            drop(out);
            done.store(true, std::sync::atomic::Ordering::Release);
        });
        let mut most = 0;
        while !done.load(std::sync::atomic::Ordering::Acquire) {
            let archive = tenarc::open(&path).unwrap();
            let count = archive.len();
            assert!(count >= most && count % 3 == 1, "{count}");
            let last = archive.segment(count - 1).unwrap().load::<Tensor<Vec<u16>>>().unwrap();
            assert_eq!(u64::from(last.0[0]), count - 1);
            most = count;
        }
    });
    assert_eq!(values(&path).len(), 199);
}

#[test]
fn the_next_append_goes_on_from_the_last_commit() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tenarc");
    let (committed, all) = unfinished(&path);
    assert!(all.len() > committed.len());
    for len in (committed.len() + 1..=all.len()).step_by(101) {
        fs::write(&path, &all[..len]).unwrap();
        assert_eq!(values(&path), [value(0).0]);
        let archive = tenarc::open(&path).unwrap();
        assert_eq!(archive.unfinished_bytes(), (len - committed.len()) as u64);
        assert_eq!(fs::read(&path).unwrap(), all[..len], "opening wrote");
        let mut out = OArchive::append(&path).unwrap();
        out.save(&value(7)).unwrap();
        out.finish().unwrap();
        assert_eq!(values(&path), [value(0).0, value(7).0]);
        assert!(fs::read(&path).unwrap().starts_with(&committed));
    }
}

/// What a live writer has written is not cut off.
#[test]
fn a_second_append_leaves_the_bytes_of_the_first() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tenarc");
    tenarc::save(&path, &value(0)).unwrap();
    let mut first = OArchive::append(&path).unwrap();
    first.save(&value(1)).unwrap();
    let before = fs::read(&path).unwrap();
    assert_eq!(OArchive::append(&path).unwrap_err().category(), Category::Io);
    assert_eq!(fs::read(&path).unwrap(), before);
    first.finish().unwrap();
    assert_eq!(values(&path), [value(0).0, value(1).0]);
}

/// A tensor may hold the bytes of an end mark, made for the very place where they come to stand.
#[test]
fn end_marks_inside_tensors_are_not_taken_for_the_archives() {
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save(&value(0)).unwrap().commit().unwrap();
    let committed = out.position();
    let whole = {
        let mut longer = OArchive::new(Vec::new()).unwrap();
        longer.save(&value(0)).unwrap().commit().unwrap();
        // A forged segment and its end mark, as they would stand further on in the file.
        longer.save(&vec![0u8; 20_000]).unwrap();
        let at = longer.position();
        longer.save(&value(9)).unwrap();
        (longer.finish().unwrap(), at)
    };
    let (forged, at) = whole;
    // The tensor that is saved instead has these bytes where they stand in the other archive.
    let at = usize::try_from(at).unwrap();
    let save = |payload: &[u8]| {
        let mut out = OArchive::new(Vec::new()).unwrap();
        out.save(&value(0)).unwrap().commit().unwrap();
        out.save(&Tensor(payload.to_vec())).unwrap();
        out.get_ref().clone()
    };
    let plain = save(&vec![1; forged.len()]);
    let start = plain.windows(64).position(|window| window == [1; 64]).unwrap();
    let mut payload = vec![1; forged.len()];
    payload[at - start..forged.len() - start].copy_from_slice(&forged[at..]);
    let torn = save(&payload);
    assert_eq!(torn[at..forged.len()], forged[at..], "the forgery stands in its place");
    for len in [torn.len(), torn.len() - 10_000] {
        let archive = Archive::new(&torn[..len]).unwrap();
        assert_eq!((archive.len(), archive.byte_len()), (1, committed));
    }
}

#[test]
fn damage_before_a_later_end_mark_is_not_rolled_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tenarc");
    tenarc::save(&path, &value(0)).unwrap();
    let first = fs::metadata(&path).unwrap().len();
    for number in [1, 2] {
        let mut out = OArchive::append(&path).unwrap();
        out.save(&value(number)).unwrap();
        out.finish().unwrap();
    }
    let mut bytes = fs::read(&path).unwrap();
    bytes[usize::try_from(first).unwrap() + 20] ^= 1;
    bytes.extend([0; 100]);
    fs::write(&path, &bytes).unwrap();
    assert_eq!(tenarc::open(&path).unwrap_err().category(), Category::Damaged);
    assert_eq!(OArchive::append(&path).unwrap_err().category(), Category::Damaged);
    assert_eq!(fs::read(&path).unwrap(), bytes);
}
