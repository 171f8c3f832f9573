//! Files are written whole or not at all, and only with what numpy can read.

use std::fs;
use std::io::{Cursor, Seek as _, SeekFrom, Write as _};

use ndarray::{Array2, ArrayD, IxDyn, ShapeBuilder as _, array, s};
use tenarc::error::Category;
use tenarc::tensor::{Deferred, Order, ToTensor};
use tenarc::{DType, DynTensor, Error};
use tenarc_convert::npy::{self, Compression, Npz, NpzWriter};
use tenarc_convert::{Format, Options};

use super::support::{all, fixture, fixtures, says};

fn written(tensor: &dyn ToTensor) -> Vec<u8> {
    let mut bytes = Vec::new();
    npy::write(&mut bytes, tensor).unwrap();
    bytes
}

#[test]
fn orders_are_kept_and_strides_are_not() {
    let c = array![[0.0f32, 1.0, 2.0], [3.0, 4.0, 5.0]];
    assert_eq!(written(&c), fixture("f4_c.npy"));
    let mut f = Array2::<f32>::zeros((2, 3).f());
    f.assign(&c);
    assert_eq!(written(&f), fixture("f4_fortran.npy"));
    let wide = array![[0.0f32, 9.0, 1.0, 9.0, 2.0], [3.0, 9.0, 4.0, 9.0, 5.0]];
    assert_eq!(written(&wide.slice(s![.., ..;2])), fixture("f4_c.npy"));
    assert_eq!(written(&array![7i32]), fixture("one_elem.npy"));
}

#[test]
fn dtypes_that_numpy_has_not_are_refused_by_name() {
    let names = ["bf16", "f8_e5m2", "f8_e4m3", "f8_e8m0", "f8_e4m3fnuz", "f128", "f4", "q4_0"];
    for name in names {
        let dtype = DType::from_name(name);
        let len = dtype.bits().map_or(3, |bits| bits * 2 / 8);
        let tensor = DynTensor::new(dtype, &[2], Order::C, vec![0; len]).unwrap();
        let mut bytes = Vec::new();
        says(npy::write(&mut bytes, &tensor), name);
        assert!(bytes.is_empty());
        let mut out = NpzWriter::new(Cursor::new(Vec::new())).unwrap();
        says(out.add("a", &tensor), name);
        // Nothing was written of it.
        out.add("a", &array![1u8]).unwrap();
        assert_eq!(all(&out.finish().unwrap().into_inner()).unwrap().len(), 1);
    }
    let deep = ArrayD::<u8>::zeros(IxDyn(&[1; 65]));
    says(npy::write(Vec::new(), &deep), "at most 64");
}

/// A tensor that hands over so many bytes, whatever its shape says.
fn giving(bytes: usize) -> Deferred<'static> {
    Deferred::from_blocks(DType::F32, &[4], Order::C, move |put| put(&vec![0; bytes]))
}

#[test]
fn a_tensor_of_other_bytes_than_it_says_is_an_error() {
    says(npy::write(Vec::new(), &giving(15)), "expected 16 bytes of a tensor, found 15");
    says(npy::write(Vec::new(), &giving(20)), "found more");
    let mut out = NpzWriter::new(Cursor::new(Vec::new())).unwrap();
    assert_eq!(says(out.add("a", &giving(15)), "found 15").path(), "a");
    says(out.add("b", &giving(16)), "an earlier array failed");
    says(out.finish(), "failed part-way");
}

#[test]
fn names_are_unique_and_have_no_end_inside() {
    let mut out = NpzWriter::new(Cursor::new(Vec::new())).unwrap();
    out.add("a", &array![1u8]).unwrap();
    says(out.add("a", &array![1u8]), "two arrays");
    says(out.add("a\0b", &array![1u8]), "zero byte");
    let long = "x".repeat(65_532);
    assert_eq!(out.add(&long, &array![1u8]).unwrap_err().category(), Category::Limit);
    out.add(&long[1..], &array![1u8]).unwrap();
    out.add("", &array![2u8]).unwrap();
    let names: Vec<String> = all(&out.finish().unwrap().into_inner())
        .unwrap()
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, ["a", &long[1..], ""]);
}

/// But for what the zip files of Python say of who made them.
#[test]
fn stored_files_are_those_of_numpy() {
    for name in ["plain.npz", "unicode.npz", "nested.npz", "positional.npz", "empty.npz"] {
        let file = fixture(name);
        let mut out = NpzWriter::new(Cursor::new(Vec::new())).unwrap();
        for (name, tensor) in all(&file).unwrap() {
            out.add(&name, &tensor).unwrap();
        }
        let mut found = out.finish().unwrap().into_inner();
        let mut expected = file.clone();
        assert_eq!(found.len(), expected.len(), "{name}");
        for bytes in [&mut found, &mut expected] {
            let local = |bytes: &[u8]| bytes == b"PK\x03\x04" || bytes == b"PK\x01\x02";
            let starts = bytes.windows(4).enumerate().filter(|(_, window)| local(window));
            for at in starts.map(|(at, _)| at).collect::<Vec<_>>() {
                // Versions made by and needed.
                bytes[at + 4..at + 6].fill(0);
            }
        }
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn a_file_may_start_behind_other_bytes() {
    let mut file = Cursor::new(Vec::new());
    file.write_all(b"before").unwrap();
    let mut out = NpzWriter::new(file).unwrap().with_compression(Compression::Deflated);
    out.add("a", &array![1u8, 2]).unwrap().add("b", &array![3.0f64]).unwrap();
    let mut file = out.finish().unwrap();
    assert_eq!(file.stream_position().unwrap(), file.seek(SeekFrom::End(0)).unwrap());
    let bytes = file.into_inner();
    assert_eq!(all(&bytes[6..]).unwrap().len(), 2);
}

#[test]
fn more_members_than_16_bits_count_take_a_64_bit_end_record() {
    const COUNT: usize = 65_536;
    let mut out = NpzWriter::new(Cursor::new(Vec::new())).unwrap();
    for at in 0..COUNT {
        out.add(&at.to_string(), &array![at as u32]).unwrap();
    }
    let bytes = out.finish().unwrap().into_inner();
    let npz = Npz::new(&bytes[..]).unwrap();
    assert_eq!(npz.members().len(), COUNT);
    assert_eq!(npz.tensor::<ndarray::Array1<u32>>("65535").unwrap(), array![65_535]);
    // Both end records must say the same.
    for back in [22 + 20 + 56 - 24, 22 + 20 + 56 - 40, 22 + 20 - 8, 22 - 12] {
        let mut bytes = bytes.clone();
        let at = bytes.len() - back;
        bytes[at] ^= 1;
        assert!(Npz::new(&bytes[..]).is_err(), "{back} from the end");
    }
}

#[test]
fn files_appear_whole_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let (npy, npz) = (dir.path().join("a.npy"), dir.path().join("a.npz"));
    npy::save(&npy, &array![1.0f32]).unwrap();
    npy::save_npz(&npz, &[("a", array![1.0f32])], Compression::Stored).unwrap();
    let fails = Deferred::new(&[2], || Err::<Vec<f32>, _>("gone"));
    says(npy::save(&npy, &fails), "gone");
    let tensors: [(&str, &dyn ToTensor); 2] = [("b", &array![2u8]), ("c", &fails)];
    says(npy::save_npz(&npz, &tensors, Compression::Deflated), "gone");
    assert_eq!(npy::load(&npy).unwrap(), array![1.0f32].into());
    assert_eq!(Npz::open(&npz).unwrap().names().collect::<Vec<_>>(), ["a"]);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
}

#[test]
fn errors_name_the_file() {
    let gone = fixtures().join("gone.npz");
    assert_eq!(says(Npz::open(&gone), "gone.npz").category(), Category::Io);
    says(npy::load(fixtures()), "it is a directory");
    let bad: Error = Npz::open(fixtures().join("bad/trunc.npz")).unwrap_err();
    assert!(bad.to_string().contains("trunc.npz"));
    says(npy::save(fixtures().join("no/such/dir"), &array![1u8]), "such");
}

#[test]
fn npy_files_become_archives_and_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name| dir.path().join(name);
    let turned =
        ndarray::Array2::from_shape_fn((30, 40).f(), |(row, column)| (row * column) as f64);
    npy::save(path("in.npy"), &turned).unwrap();
    Format::Npy.to_archive(path("in.npy"), path("archive"), &Options::default()).unwrap();
    let loaded: tenarc::Tensor<ndarray::Array2<f64>> = tenarc::load(path("archive")).unwrap();
    assert_eq!(loaded.0, turned);
    Format::Npy.from_archive(path("archive"), path("out.npy"), &Options::default()).unwrap();
    assert_eq!(fs::read(path("in.npy")).unwrap(), fs::read(path("out.npy")).unwrap());

    tenarc::save(path("archive"), &("text", 1)).unwrap();
    assert!(
        Format::Npy.from_archive(path("archive"), path("out.npy"), &Options::default()).is_err()
    );
    assert_eq!(fs::read(path("in.npy")).unwrap(), fs::read(path("out.npy")).unwrap());
    fs::write(path("in.npy"), b"\x93NUMPY\x01").unwrap();
    assert!(Format::Npy.to_archive(path("in.npy"), path("none"), &Options::default()).is_err());
    assert!(!path("none").exists());
}
