//! Views into mapped files and bytes in memory.

use std::borrow::Cow;

use ndarray::{ArrayView1, ArrayView2, ArrayViewD, CowArray, Ix2, ShapeBuilder as _};
use serde::{Deserialize, Serialize};
use tenarc::error::Category;
use tenarc::io::ReadAt;
use tenarc::tensor::Order;
use tenarc::{Archive, DType, DynTensor, Map, OArchive, Tensor};

use super::support::{Dir, quick, ramp, to_bytes, variants, weights};

#[derive(Serialize)]
struct Owned {
    name: String,
    #[serde(with = "serde_bytes")]
    blob: Vec<u8>,
    #[serde(with = "serde_bytes")]
    large_blob: Vec<u8>,
    large: Tensor<ndarray::ArrayD<f32>>,
    fortran: Tensor<ndarray::Array2<f64>>,
    small: Tensor<Vec<f64>>,
    odd: Tensor<Vec<u16>>,
    bools: Tensor<Vec<bool>>,
    empty: Tensor<Vec<f32>>,
    plain: Vec<f32>,
    either: Tensor<ndarray::ArrayD<f32>>,
}

#[derive(Deserialize)]
struct View<'a> {
    name: &'a str,
    blob: &'a [u8],
    large_blob: &'a [u8],
    #[serde(borrow)]
    large: Tensor<ArrayView2<'a, f32>>,
    #[serde(borrow)]
    fortran: Tensor<ArrayView2<'a, f64>>,
    #[serde(borrow)]
    small: Tensor<ArrayView1<'a, f64>>,
    #[serde(borrow)]
    odd: Tensor<ArrayView1<'a, u16>>,
    #[serde(borrow)]
    bools: Tensor<ArrayView1<'a, bool>>,
    #[serde(borrow)]
    empty: Tensor<ArrayView1<'a, f32>>,
    plain: Vec<f32>,
    #[serde(borrow)]
    either: Tensor<CowArray<'a, f32, Ix2>>,
}

fn owned() -> Owned {
    let fortran = ndarray::Array2::from_shape_fn((50, 40).f(), |(a, b)| (a * 100 + b) as f64);
    Owned {
        name: "views".into(),
        blob: vec![1, 2, 3],
        large_blob: vec![9; 10_000],
        large: Tensor(ramp(&[100, 50])),
        fortran: Tensor(fortran),
        small: Tensor(vec![0.5, 1.5, 2.5]),
        odd: Tensor((0..9).collect()),
        bools: Tensor(vec![true, false, true]),
        empty: Tensor(vec![]),
        plain: weights(1000, 1).0,
        either: Tensor(ramp(&[30, 40])),
    }
}

#[track_caller]
fn check(view: &View) {
    let owned = owned();
    assert_eq!((view.name, view.blob), ("views", &owned.blob[..]));
    assert_eq!(view.large_blob, owned.large_blob);
    assert_eq!(view.large.0.into_dyn(), owned.large.0);
    assert_eq!(view.fortran.0, owned.fortran.0);
    assert_eq!(view.small.to_vec(), owned.small.0);
    assert_eq!(view.odd.to_vec(), owned.odd.0);
    assert_eq!(view.bools.to_vec(), owned.bools.0);
    assert!(view.empty.is_empty());
    assert_eq!(view.plain, owned.plain);
    assert_eq!(view.either.view().into_dyn(), owned.either.0);
}

fn mapped(dir: &Dir) -> Map {
    let path = dir.file("views.tenarc");
    tenarc::archive::save_with(&path, &owned(), quick()).unwrap();
    // SAFETY: nobody else knows of the file.
    unsafe { Map::open(path) }.unwrap()
}

#[test]
fn large_tensors_lie_in_the_map_and_small_ones_are_copied_once() {
    let dir = Dir::new();
    let map = mapped(&dir);
    let view: View = map.view().unwrap();
    check(&view);
    let inside = map.source().contents().unwrap().as_ptr_range();
    for start in [
        view.large.as_ptr().cast(),
        view.fortran.as_ptr().cast(),
        view.either.as_ptr().cast(),
        view.large_blob.as_ptr(),
    ] {
        assert!(inside.contains(&start));
    }
    assert!(view.either.is_view());
    assert!((view.large.as_ptr() as usize).is_multiple_of(256));
    assert!((view.small.as_ptr() as usize).is_multiple_of(8));
    let again: View = map.view().unwrap();
    assert_eq!(again.small.as_ptr(), view.small.as_ptr());
    assert_eq!(again.odd.as_ptr(), view.odd.as_ptr());
    assert_eq!(again.large.as_ptr(), view.large.as_ptr());
}

#[test]
fn small_tensors_of_every_place_and_dtype_can_be_viewed() {
    type Wide = num_complex::Complex<f64>;

    #[derive(Serialize)]
    struct Small {
        text: String,
        tensor: Tensor<DynTensor>,
    }
    #[derive(Deserialize)]
    struct Viewed<'a> {
        #[serde(borrow)]
        tensor: Tensor<ArrayViewD<'a, Wide>>,
    }
    let dir = Dir::new();
    for len in 0..33 {
        let path = dir.file("small.tenarc");
        let tensor = DynTensor::new(DType::C128, &[3], Order::C, vec![1; 48]).unwrap();
        let text = "x".repeat(len);
        tenarc::archive::save_with(&path, &Small { text, tensor: Tensor(tensor) }, quick())
            .unwrap();
        // SAFETY: the file is replaced, not changed.
        let map = unsafe { Map::open(&path) }.unwrap();
        let view: Viewed = map.view().unwrap();
        assert_eq!(view.tensor.shape(), [3]);
        assert_eq!(view.tensor[[2]].re.to_bits(), 0x0101_0101_0101_0101);
        let again: Tensor<ArrayViewD<Wide>> = map.view_at("tensor").unwrap();
        assert_eq!(again.as_ptr(), view.tensor.as_ptr());
    }
}

#[test]
fn several_threads_read_one_map() {
    fn shared<T: Send + Sync>(value: T) -> T {
        value
    }
    let dir = Dir::new();
    let map = shared(mapped(&dir));
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..20 {
                        check(&shared(map.view::<View>().unwrap()));
                        let part: Tensor<ArrayView2<f32>> = map.view_at("large").unwrap();
                        assert_eq!(part.0[[1, 1]], 51.0);
                        let row: ndarray::Array1<f32> =
                            map.slice("large", ndarray::s![3, ..]).unwrap();
                        assert_eq!(row[0], 150.0);
                    }
                    map.view::<View>().unwrap().small.as_ptr() as usize
                })
            })
            .collect();
        let mut places: Vec<usize> =
            threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        places.dedup();
        assert_eq!(places.len(), 1, "copied once, whoever asked first");
        // A view made by one thread, read by another.
        let view: View = map.view().unwrap();
        scope.spawn(move || check(&view));
    });
}

#[test]
fn views_of_what_does_not_fit_are_errors() {
    let dir = Dir::new();
    let map = mapped(&dir);
    let error = map.view_at::<Tensor<ArrayView2<f64>>>("large").unwrap_err();
    assert_eq!((error.category(), error.path()), (Category::Data, "large".into()));
    assert!(map.view_at::<Tensor<ArrayView1<f32>>>("large").is_err());
    assert!(map.view_at::<&str>("large").is_err());
    assert!(map.view_at::<Tensor<ArrayView2<f32>>>("name").is_err());
    assert!(map.view_at::<&str>("nothing").is_err());
    // Another address than the file's: in memory of a vector, alignment is what it happens to be.
    let bytes = std::fs::read(dir.file("views.tenarc")).unwrap();
    let mut memory = vec![0u64; bytes.len() / 8 + 2];
    let memory: &mut [u8] = bytemuck::cast_slice_mut(&mut memory);
    for distance in [0, 1, 4] {
        memory[distance..distance + bytes.len()].copy_from_slice(&bytes);
        let archive = Archive::new(&memory[distance..distance + bytes.len()]).unwrap();
        let view = archive.view_at::<Tensor<ArrayView2<f32>>>("large");
        assert_eq!(view.is_ok(), distance != 1);
        // What may be either is copied where it must be.
        let either: Tensor<CowArray<f32, Ix2>> = archive.view_at("either").unwrap();
        assert_eq!(either.is_view(), distance != 1);
        assert_eq!(either.view().into_dyn(), owned().either.0);
    }
}

#[test]
fn a_map_outlives_the_file_that_was_replaced_or_appended_to() {
    let dir = Dir::new();
    let map = mapped(&dir);
    let view: View = map.view().unwrap();
    let path = dir.file("views.tenarc");
    let mut out = OArchive::append_with(&path, quick()).unwrap();
    out.save("more").unwrap();
    out.finish().unwrap();
    tenarc::archive::save_with(&path, "another", quick()).unwrap();
    check(&view);
    check(&map.view().unwrap());
    assert_eq!(tenarc::load::<String>(&path).unwrap(), "another");
}

#[test]
fn what_cannot_be_mapped_is_an_error() {
    let dir = Dir::new();
    let empty = dir.file("empty");
    std::fs::write(&empty, b"").unwrap();
    let other = dir.file("other");
    std::fs::write(&other, b"no archive at all, but long enough for one").unwrap();
    // SAFETY: nobody else knows of the files.
    let open = |path| unsafe { Map::open(path) }.unwrap_err().category();
    assert_eq!(open(empty), Category::Torn);
    assert_eq!(open(other), Category::Syntax);
    assert_eq!(open(dir.file("missing")), Category::Io);
    assert_eq!(open(dir.file(".")), Category::Io);
}

#[test]
fn borrowed_texts_and_bytes() {
    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    struct Borrowed<'a> {
        text: &'a str,
        #[serde(with = "serde_bytes")]
        small: &'a [u8],
        #[serde(borrow)]
        either: Cow<'a, str>,
        #[serde(with = "serde_bytes")]
        large: &'a [u8],
    }
    let large = vec![5; 10_000];
    let value = Borrowed { text: "text", small: b"bytes", either: "either".into(), large: &large };
    for (name, options) in variants() {
        let bytes = to_bytes(&value, options);
        let archive = tenarc::Archive::new(&bytes[..]).unwrap();
        let view: Borrowed = archive.view().unwrap();
        assert_eq!(view, value, "{name}");
        for start in [view.text.as_ptr(), view.small.as_ptr(), view.large.as_ptr()] {
            assert!(bytes.as_ptr_range().contains(&start), "{name}");
        }
    }
}
