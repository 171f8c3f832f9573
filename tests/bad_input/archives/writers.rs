//! Archives made by the second writer (`tenarc_test_support::builder`) are the bytes that tenarc writes.

use tenarc::archive::SaveOptions;
use tenarc::{OArchive, Tensor};

use super::samples::{model, options};
use tenarc_test_support::builder::{
    Built, MAGIC, Seg, archive, map, numbers_ref, tensor_ref, unsigned,
};

fn written(options: SaveOptions, save: impl FnOnce(&mut OArchive<Vec<u8>>)) -> Vec<u8> {
    let mut out = OArchive::with_options(Vec::new(), options).unwrap();
    save(&mut out);
    out.finish().unwrap()
}

#[test]
fn two_writers_agree_to_the_byte() {
    let array = ndarray::Array2::from_shape_fn((20, 40), |(row, column)| (row * column) as f32);
    let payload: Vec<u8> = array.iter().flat_map(|value: &f32| value.to_le_bytes()).collect();
    let value = std::collections::BTreeMap::from([("a", Tensor(&array)), ("b", Tensor(&array))]);
    for alignment in [8, 64, 256, 4096, 65_536] {
        let save = |dedup: bool, checks: bool| {
            let options = SaveOptions::default().with_alignment(alignment);
            written(options.with_dedup(dedup).with_checksums(checks), |out| {
                out.save(&value).unwrap();
            })
        };
        let metadata = |numbers: [u64; 2]| {
            let reference = |number| tensor_ref("f32", &[20, 40], number);
            map(&[("a", reference(numbers[0])), ("b", reference(numbers[1]))])
        };
        let apart = Seg::new(metadata([0, 1]), &[&payload, &payload]).aligned(alignment);
        let tied = Seg::new(metadata([0, 0]), &[&payload]).aligned(alignment);
        assert!(archive(&apart) == save(false, true), "{alignment}");
        assert!(archive(&tied) == save(true, true), "{alignment}");
        assert!(archive(&apart.unchecked()) == save(false, false), "{alignment}");
    }
}

#[test]
fn two_writers_agree_on_paddings_directories_and_commits() {
    // A header that grows byte by byte makes every gap there is.
    for len in 0..300 {
        let name = "n".repeat(len);
        let numbers = vec![1.5f32; 600];
        let payload: Vec<u8> = numbers.iter().flat_map(|value| value.to_le_bytes()).collect();
        let theirs = written(SaveOptions::default(), |out| {
            out.save_as(&name, &numbers).unwrap();
        });
        let ours = archive(&Seg::new(numbers_ref("f32", 0), &[&payload]).named(&name));
        assert!(ours == theirs, "{len}");
    }
    let theirs = written(SaveOptions::default(), |out| {
        for number in 0..200u64 {
            out.save_as(&format!("n{number}"), &number).unwrap();
            if number % 50 == 20 {
                out.commit().unwrap();
            }
        }
    });
    let mut ours = Built::new();
    for number in 0..200u64 {
        ours = ours.segment(&Seg::new(unsigned(number), &[]).named(&format!("n{number}")));
        if number % 50 == 20 {
            ours = ours.end();
        }
    }
    assert!(ours.end().bytes == theirs);
    // The sample that others are made from is an archive that this writer could have made.
    let theirs = written(options(), |out| {
        out.save(&model(1)).unwrap();
    });
    assert!(theirs.starts_with(MAGIC));
}
