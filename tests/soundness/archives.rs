//! Archives in memory, and views of them.

use ndarray::CowArray;
use tenarc::archive::SaveOptions;
use tenarc::{Archive, IArchive, OArchive, Tensor};

use crate::{Borrowed, Everything, Matrix};

/// Archives with all tensors in buffers, and with all tensors in the metadata.
fn archives() -> [Vec<u8>; 2] {
    [0, usize::MAX].map(|below| {
        let options = SaveOptions::default().with_inline_below(below).with_alignment(64);
        let mut out = OArchive::with_options(Vec::new(), options).unwrap();
        out.save(&Everything::new()).unwrap();
        out.finish().unwrap()
    })
}

#[test]
fn everything_comes_back() {
    for bytes in archives() {
        assert_eq!(
            IArchive::new(&bytes[..]).unwrap().load::<Everything>().unwrap(),
            Everything::new()
        );
        let archive = Archive::new(&bytes[..]).unwrap();
        archive.verify().unwrap();
        assert_eq!(archive.load::<Everything>().unwrap(), Everything::new());
        archive.view::<Borrowed>().unwrap().check(&Everything::new());
    }
}

/// Small tensors are copied to memory of the archive, which views keep using while more is copied.
#[test]
fn views_stay_valid_while_others_are_made() {
    let expected = Everything::new();
    for bytes in archives() {
        // At an odd address no tensor but those of bytes is aligned.
        let moved = [&[0], &bytes[..]].concat();
        let archive = Archive::new(&moved[1..]).unwrap();
        let first: Matrix = archive.view_at("floats.1").unwrap();
        let whole: Borrowed = archive.view().unwrap();
        let views: Vec<Tensor<CowArray<i16, ndarray::Ix1>>> =
            (0..4).map(|_| archive.view_at("signed.1").unwrap()).collect();
        whole.check(&expected);
        assert_eq!(first.0, expected.floats.1.0);
        assert!(views.iter().all(|view| view.to_vec() == expected.signed.1.0));
    }
}

#[test]
fn threads_view_one_archive() {
    let [in_buffers, inline] = archives();
    for bytes in [&in_buffers, &inline] {
        let archive = Archive::new(&bytes[..]).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let view: Matrix = archive.view_at("floats.1").unwrap();
                    assert_eq!(view.0, Everything::new().floats.1.0);
                });
            }
        });
    }
}
