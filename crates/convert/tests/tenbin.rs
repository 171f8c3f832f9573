//! webdataset's tenbin: its own files, hand-made broken ones, and the way into archives and back.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use ndarray::{Array1, Array2, ArrayD, ShapeBuilder, array};
use proptest::prelude::*;
use tenarc::archive::SaveOptions;
use tenarc::de::Limits;
use tenarc::error::Category;
use tenarc::tensor::{Order, ToTensor};
use tenarc::{Archive, DType, DynTensor, OArchive, Tensor};
use tenarc_convert::tenbin::{self, Layout, Options, TenFile};
use tenarc_convert::{Format, into_archive};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tenbin")
}

fn manifest(path: &str) -> serde_json::Value {
    serde_json::from_slice(&fs::read(fixtures().join(path)).unwrap()).unwrap()
}

fn dtype(numpy: &str) -> DType {
    let (kind, bits) = numpy.split_at(numpy.find(|c: char| c.is_ascii_digit()).unwrap());
    let kind = match kind {
        "float" => "f",
        "int" => "i",
        "uint" => "u",
        other => panic!("{other}"),
    };
    DType::from_name(&format!("{kind}{bits}"))
}

/// The first elements as the manifest writes them.
fn first(tensor: &DynTensor) -> Vec<serde_json::Value> {
    let shown = serde_json::to_value(Tensor(tensor)).unwrap();
    shown["data"].as_array().unwrap().iter().take(4).cloned().collect()
}

/// A number of the manifest, whose single-precision floats are written with all digits of doubles.
fn same(found: &serde_json::Value, expected: &serde_json::Value) -> bool {
    match (found.as_f64(), expected.as_f64()) {
        #[allow(clippy::cast_possible_truncation, clippy::float_cmp)]
        (Some(found), Some(expected)) => found as f32 == expected as f32,
        _ => found.as_str().map(str::to_lowercase) == expected.as_str().map(str::to_lowercase),
    }
}

#[test]
fn files_of_the_python_library_are_read_and_written_to_the_bit() {
    let manifest = manifest("MANIFEST.json");
    let files = manifest["files"].as_object().unwrap();
    assert!(files.len() > 20);
    for (file, expected) in files {
        let bytes = fs::read(fixtures().join(file)).unwrap();
        let arrays = tenbin::load(fixtures().join(file)).unwrap();
        let tensors = expected["tensors"].as_array().unwrap();
        assert_eq!(arrays.len(), tensors.len(), "{file}");
        for ((name, array), expected) in arrays.iter().zip(tensors) {
            assert_eq!(name, expected["name"].as_str().unwrap(), "{file}");
            assert_eq!(*array.dtype(), dtype(expected["dtype"].as_str().unwrap()), "{file}");
            assert_eq!(serde_json::json!(array.shape()), expected["shape"], "{file}");
            assert_eq!(serde_json::json!(array.le_bytes().len()), expected["nbytes"], "{file}");
            let (found, expected) = (first(array), expected["first"].as_array().unwrap());
            assert_eq!(found.len(), expected.len(), "{file}");
            let equal = found.iter().zip(expected).all(|(found, expected)| same(found, expected));
            assert!(equal, "{file}: {found:?}, expected {expected:?}");
        }
        assert_eq!(tenbin::encode_buffer(&arrays).unwrap(), bytes, "{file}");
        // NaNs differ from themselves, their bytes do not.
        let again = tenbin::decode_buffer(&bytes).unwrap();
        assert_eq!(tenbin::encode_buffer(&again).unwrap(), bytes, "{file}");
        let frames = tenbin::encode_frames(&arrays).unwrap();
        let again = tenbin::decode_frames(&frames).unwrap();
        assert_eq!(tenbin::encode_buffer(&again).unwrap(), bytes, "{file}");
    }
}

#[test]
fn broken_files_are_refused_whatever_the_python_library_does() {
    let manifest = manifest("bad/MANIFEST.json");
    for file in manifest.as_object().unwrap().keys() {
        let path = fixtures().join("bad").join(file);
        let found = tenbin::load(&path);
        if file == "dtype_u4.ten" {
            // Good: only the library cannot read it.
            let arrays = found.unwrap();
            assert_eq!(*arrays[0].1.dtype(), DType::U32);
            assert_eq!(tenbin::encode_buffer(&arrays).unwrap(), fs::read(&path).unwrap());
            continue;
        }
        let error = found.expect_err(file);
        assert!(error.offset().is_some(), "{file}: {error}");
        assert!(error.to_string().contains(file), "{error}");
        let bytes = fs::read(&path).unwrap();
        let mut out = OArchive::new(Vec::new()).unwrap();
        let into = TenFile::new(&bytes[..], bytes.len() as u64)
            .and_then(|file| into_archive(&file, &mut out, &Options::default()))
            .unwrap_err();
        assert_eq!(into.category(), error.category(), "{file}: {into}, {error}");
        assert_eq!(into.offset(), error.offset(), "{file}: {into}, {error}");
    }
}

fn example() -> Vec<(&'static str, DynTensor)> {
    vec![
        ("a", DynTensor::from(array![[1.5f32, -2.0], [0.0, 4.0]])),
        ("", DynTensor::from(Array1::<u8>::from_vec(vec![7; 65]))),
        ("12345678", DynTensor::from(ndarray::arr0(9i64))),
        ("z", DynTensor::from(Array2::<half::f16>::default((0, 3)))),
    ]
}

#[test]
fn every_cut_is_noticed_but_those_between_arrays() {
    let arrays = example();
    let bytes = tenbin::encode_buffer(&arrays).unwrap();
    let mut ends = vec![0];
    for count in 1..=arrays.len() {
        ends.push(tenbin::encode_buffer(&arrays[..count]).unwrap().len());
    }
    for len in 0..bytes.len() {
        match ends.iter().position(|&end| end == len) {
            Some(count) => assert_eq!(tenbin::decode_buffer(&bytes[..len]).unwrap().len(), count),
            None => {
                let error = tenbin::decode_buffer(&bytes[..len]).unwrap_err();
                assert_eq!(error.category(), Category::Eof, "{len}: {error}");
            }
        }
    }
}

#[test]
fn any_changed_byte_is_an_error_or_another_value() {
    let arrays: Vec<(String, DynTensor)> =
        example().into_iter().map(|(name, array)| (name.to_owned(), array)).collect();
    let bytes = tenbin::encode_buffer(&arrays).unwrap();
    for at in 0..bytes.len() {
        for change in [1, 0x80] {
            let mut changed = bytes.clone();
            changed[at] ^= change;
            if let Ok(found) = tenbin::decode_buffer(&changed) {
                // What is read is what was there: writing it gives it back.
                assert_eq!(tenbin::encode_buffer(&found).unwrap(), changed, "{at}");
            }
        }
    }
}

#[test]
fn lengths_that_are_only_claimed_allocate_nothing() {
    let mut bytes = Vec::new();
    let mut header = b"f4\0\0\0\0\0\0x\0\0\0\0\0\0\0".to_vec();
    header.extend(1u64.to_le_bytes());
    header.extend((1u64 << 40).to_le_bytes());
    tenbin::write_chunk(&mut bytes, &header).unwrap();
    bytes.extend(b"~TenBin~");
    bytes.extend((4u64 << 40).to_le_bytes());
    bytes.extend([0; 1000]);
    // Beyond the default limits.
    assert_eq!(tenbin::decode_buffer(&bytes).unwrap_err().category(), Category::Limit);
    let limits = Limits::default().with_max_alloc(1 << 60);
    let mut reader = tenbin::Reader::with_limits(&bytes[..], limits);
    let error = reader.next().unwrap().unwrap_err();
    assert_eq!((error.category(), error.path().as_str()), (Category::Eof, "x"), "{error}");
    assert!(reader.next().is_none());
    // Limits hold for all arrays together.
    let two = tenbin::encode_buffer(&[("a", vec![0u8; 600]), ("b", vec![0; 600])]).unwrap();
    let limits = Limits::default().with_max_alloc(1000);
    let found: Vec<_> = tenbin::Reader::with_limits(&two[..], limits).collect();
    assert_eq!(found.len(), 2);
    assert_eq!(found[1].as_ref().unwrap_err().category(), Category::Limit);
    assert!(tenbin::read_chunk(&two[..], 10).is_err());
    assert_eq!(tenbin::read_chunk(&two[..], 1000).unwrap().unwrap().len(), 32);
    assert!(tenbin::read_chunk(&[][..], 1000).unwrap().is_none());
}

#[test]
fn what_the_format_cannot_say_is_refused_before_anything_is_written() {
    let good = DynTensor::from(array![1i16, 2]);
    let long = DynTensor::from(ArrayD::<u8>::zeros(vec![1; 10]));
    let bools = DynTensor::from(array![true, false]);
    let column_major = DynTensor::from(Array2::<f32>::zeros((2, 3).f()));
    let fp8 = DynTensor::new(DType::F8E4M3, &[2], Order::C, vec![0; 2]).unwrap();
    for (name, array, what) in [
        ("123456789", &good, "at most 8 ASCII characters"),
        ("ü", &good, "at most 8 ASCII characters"),
        ("a\0", &good, "at most 8 ASCII characters"),
        ("r", &long, "at most 9 dimensions"),
        ("b", &bools, "no dtype bool"),
        ("f", &column_major, "column-major"),
        ("e", &fp8, "no dtype f8_e4m3"),
    ] {
        let mut out = Vec::new();
        let error = tenbin::write(&mut out, &[("ok", &good), (name, array)]).unwrap_err();
        assert!(error.to_string().contains(what), "{error}");
        assert!(out.is_empty());
        assert!(tenbin::encode_frames(&[(name, array)]).is_err());
    }
    let turned = column_major.into_row_major().unwrap();
    assert_eq!(
        tenbin::decode_buffer(&tenbin::encode_buffer(&[("f", &turned)]).unwrap()).unwrap().len(),
        1
    );
}

/// Gives a byte at a time.
struct Slowly<'a>(&'a [u8]);

impl Read for Slowly<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let len = out.len().min(1);
        (&mut self.0).take(len as u64).read(out)
    }
}

#[test]
fn strided_arrays_and_slow_readers() {
    let all = Array2::from_shape_fn((40, 50), |(i, j)| (50 * i + j) as u64);
    let strided = all.slice(ndarray::s![..;3, ..;-7]);
    let bytes = tenbin::encode_buffer(&[("s", strided)]).unwrap();
    let found = tenbin::read(Slowly(&bytes)).unwrap();
    assert_eq!(found[0].1.view::<u64>().unwrap(), strided.into_dyn());
}

#[test]
fn a_failed_save_leaves_what_was_there() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.ten");
    tenbin::save(&path, &[("a", vec![1u8])]).unwrap();
    assert!(tenbin::save(&path, &[("a", vec![true])]).is_err());
    assert_eq!(tenbin::load(&path).unwrap()[0].1.le_bytes().as_ref(), [1]);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    let other = dir.path().join("x.bin");
    assert!(tenbin::save(&other, &[("a", vec![1u8])]).is_err());
    tenbin::save_unchecked(&other, &[("a", vec![1u8])]).unwrap();
    assert!(tenbin::load(&other).is_err());
    assert_eq!(tenbin::load_unchecked(&other).unwrap().len(), 1);
    assert!(tenbin::load(dir.path().join("none.ten")).is_err());
}

#[track_caller]
fn there_and_back<T: ToTensor>(arrays: &[(&str, T)], layout: Layout, paths: &[&str]) {
    let bytes = tenbin::encode_buffer(arrays).unwrap();
    let mut out = OArchive::new(Vec::new()).unwrap();
    let file = TenFile::new(&bytes[..], bytes.len() as u64).unwrap();
    assert!(into_archive(&file, &mut out, &Options::default()).unwrap().is_empty());
    assert_eq!(file.layout(), layout);
    let archive = Archive::new(out.finish().unwrap()).unwrap();
    let infos = archive.tensors().unwrap();
    assert_eq!(infos.iter().map(tenarc::tensor::TensorInfo::path).collect::<Vec<_>>(), paths);
    let mut back = Vec::new();
    tenbin::export(&archive.segment(0).unwrap(), &mut back, &Options::default()).unwrap();
    assert_eq!(back, bytes);
}

#[test]
fn files_become_archives_and_come_back_to_the_bit() {
    let x = || vec![1i32; 3000];
    there_and_back(&[("b", x()), ("a.c", x())], Layout::Map, &["b", "a.c"]);
    there_and_back(&[("b", x()), ("/", x())], Layout::Map, &["b", "/~1"]);
    there_and_back(&[("", x()), ("", vec![])], Layout::Sequence, &["0", "1"]);
    there_and_back(&[("a", x()), ("a", vec![2])], Layout::Pairs, &["0.1", "1.1"]);
    there_and_back(&[("a", x()), ("", x())], Layout::Pairs, &["0.1", "1.1"]);
    there_and_back::<Vec<u8>>(&[], Layout::Sequence, &[]);
    for entry in fs::read_dir(fixtures()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "ten") {
            let bytes = fs::read(&path).unwrap();
            let mut out = OArchive::new(Vec::new()).unwrap();
            let file = TenFile::new(&bytes[..], bytes.len() as u64).unwrap();
            into_archive(&file, &mut out, &Options::default()).unwrap();
            let archive = Archive::new(out.finish().unwrap()).unwrap();
            archive.verify().unwrap();
            let mut back = Vec::new();
            tenbin::export(&archive.segment(0).unwrap(), &mut back, &Options::default()).unwrap();
            assert_eq!(back, bytes, "{}", path.display());
        }
    }
}

#[test]
fn other_values_in_archives_are_not_lost_silently() {
    #[derive(serde::Serialize)]
    struct Step {
        step: u32,
        x: Tensor<Vec<f32>>,
    }

    let refused = |value: &dyn Fn(&mut OArchive<Vec<u8>>)| {
        let mut out = OArchive::new(Vec::new()).unwrap();
        value(&mut out);
        let archive = Archive::new(out.finish().unwrap()).unwrap();
        let mut written = Vec::new();
        let segment = archive.segment(0).unwrap();
        let error = tenbin::export(&segment, &mut written, &Options::default()).unwrap_err();
        assert!(written.is_empty());
        error.to_string()
    };
    let x = || Tensor(vec![1.0f32; 1000]);
    for error in [
        refused(&|out| assert!(out.save(&Step { step: 1, x: x() }).is_ok())),
        refused(&|out| assert!(out.save(&vec![("a", 1, x())]).is_ok())),
        refused(&|out| assert!(out.save(&vec![vec![x()]]).is_ok())),
        refused(&|out| assert!(out.save(&(x(), serde_bytes::Bytes::new(&[0; 5000]))).is_ok())),
    ] {
        assert!(error.contains("it is neither a tensor nor a pair"), "{error}");
    }
    // If all tensors are inside of others, accepting losses would write an empty file.
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save(&vec![vec![x()]]).unwrap();
    let archive = Archive::new(out.finish().unwrap()).unwrap();
    let lossy = Options::default().with_losses(true);
    let error = tenbin::export(&archive.segment(0).unwrap(), Vec::new(), &lossy).unwrap_err();
    assert!(error.to_string().contains("no tensor is left"), "{error}");
    for error in [
        refused(&|out| assert!(out.save(&"text").is_ok())),
        refused(&|out| assert!(out.save(&x()).is_ok())),
    ] {
        assert!(error.contains("expected a map of tensors, or a sequence"), "{error}");
    }
    let error = refused(&|out| assert!(out.save(&[("a", Tensor(vec![true; 9]))]).is_ok()));
    assert!(error.contains("no dtype bool"), "{error}");
}

#[test]
fn files_become_files_and_what_is_lost_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name| dir.path().join(name);
    let arrays = [("x", vec![1.0f32; 3000]), ("y", vec![2.0])];
    tenbin::save(path("in.ten"), &arrays).unwrap();
    let options = Options::default();
    assert!(Format::Tenbin.to_archive(path("in.ten"), path("a"), &options).unwrap().is_empty());
    let plain = Options::default();
    assert!(Format::Tenbin.from_archive(path("a"), path("out.ten"), &plain).unwrap().is_empty());
    assert_eq!(fs::read(path("in.ten")).unwrap(), fs::read(path("out.ten")).unwrap());

    let turned = Array2::from_shape_vec((2, 3).f(), vec![0i32, 10, 1, 11, 2, 12]).unwrap();
    let value = (
        Tensor(turned.clone()),
        Tensor(vec![true; 9]),
        3,
        ("long name of it", Tensor(vec![1u8])),
        ("z", Tensor(vec![7u8; 3000])),
    );
    tenarc::save(path("mixed"), &value).unwrap();
    let error = Format::Tenbin.from_archive(path("mixed"), path("out.ten"), &plain).unwrap_err();
    assert!(error.to_string().contains("left out"), "{error}");
    assert_eq!(fs::read(path("in.ten")).unwrap(), fs::read(path("out.ten")).unwrap());
    let lossy = Options::default().with_losses(true);
    let lost = Format::Tenbin.from_archive(path("mixed"), path("out.ten"), &lossy).unwrap();
    let paths: Vec<&str> = lost.listed().iter().map(tenarc_convert::Loss::path).collect();
    // Tensors that are left out stand first.
    assert_eq!(paths, ["1", "3", "2"]);
    let found = tenbin::load(path("out.ten")).unwrap();
    let names: Vec<&str> = found.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["", "z"]);
    assert_eq!(found[0].1.view::<i32>().unwrap(), turned.into_dyn());

    // A broken file makes none.
    fs::write(path("broken.ten"), &fs::read(path("in.ten")).unwrap()[..100]).unwrap();
    assert!(
        Format::Tenbin.to_archive(path("broken.ten"), path("none"), &Options::default()).is_err()
    );
    assert!(!path("none").exists());
    let mut out = OArchive::create(path("two"), SaveOptions::default()).unwrap();
    out.save(&1).unwrap().save(&2).unwrap();
    out.finish().unwrap();
    let error = Format::Tenbin.from_archive(path("two"), path("none"), &plain).unwrap_err();
    assert!(error.to_string().contains("one value, found 2"), "{error}");
}

proptest! {
    #[test]
    fn any_bytes_are_an_error_or_arrays(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = tenbin::decode_buffer(&bytes);
        let mut chunk = Vec::new();
        tenbin::write_chunk(&mut chunk, &bytes).unwrap();
        prop_assert_eq!(tenbin::read_chunk(&chunk[..], 1 << 20).unwrap().unwrap(), bytes.clone());
        let _ = tenbin::decode_buffer(&chunk);
        let _ = tenbin::decode_frames(&[&bytes, &bytes]);
    }
}

#[test]
fn files_are_read_where_they_are() {
    for name in ["many.ten", "no_infos.ten", "empty_0x3.ten", "zero_arrays.ten"] {
        let bytes = fs::read(fixtures().join(name)).unwrap();
        let file = TenFile::new(&bytes[..], bytes.len() as u64).unwrap();
        let expected = tenbin::read(&bytes[..]).unwrap();
        for (number, (_, array)) in expected.iter().enumerate() {
            let found = tenarc::to_vec(&Tensor(file.deferred(number).unwrap())).unwrap();
            assert_eq!(found, tenarc::to_vec(&Tensor(array)).unwrap(), "{name} {number}");
            let at = usize::try_from(file.position(number).unwrap()).unwrap();
            let elements = array.le_bytes();
            assert_eq!(bytes[at..at + elements.len()], elements[..], "{name} {number}");
        }
        assert!(file.deferred(expected.len()).is_err() && file.position(expected.len()).is_err());
    }
}
