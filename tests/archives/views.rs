//! Views into mapped files and bytes in memory.

use std::borrow::Cow;

use ndarray::{ArrayView1, ArrayView2, ArrayViewD, CowArray, Ix2, ShapeBuilder as _};
use serde::{Deserialize, Serialize};
use tenarc::error::Category;
use tenarc::io::{ReadAt, SharedBytes};
use tenarc::tensor::{DynView, Order, SharedTensor};
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
    assert_eq!((error.category(), error.path()), (Category::Mismatch, "large".into()));
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

/// The addresses of the memory that a file is mapped to in this process.
#[cfg(target_os = "linux")]
fn mapped_from(path: &std::path::Path) -> Vec<std::ops::Range<usize>> {
    let address = |hex| usize::from_str_radix(hex, 16).unwrap();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines()
        .filter(|line| line.ends_with(path.to_str().unwrap()))
        .map(|line| line.split(' ').next().unwrap().split_once('-').unwrap())
        .map(|(start, end)| address(start)..address(end))
        .collect()
}

#[test]
fn shared_tensors_lie_in_the_map_and_keep_it() {
    #[derive(Deserialize)]
    struct Shared {
        name: String,
        large: Tensor<SharedTensor>,
        fortran: Tensor<SharedTensor>,
        small: Tensor<SharedTensor>,
        odd: Tensor<Vec<u16>>,
        either: Tensor<ndarray::Array2<f32>>,
    }
    let dir = Dir::new();
    let map = mapped(&dir);
    let owned = owned();
    let shared: Shared = map.load_shared().unwrap();
    let bools = map.share("bools").unwrap();
    let large = map.share("large").unwrap();
    let inside = map.source().contents().unwrap().as_ptr_range();
    for tensor in [&shared.large.0, &shared.fortran.0, &large] {
        assert!(tensor.is_shared());
        assert!(inside.contains(&tensor.le_bytes().as_ptr()));
    }
    // Small tensors stand in the metadata.
    assert!(!shared.small.is_shared() && !bools.is_shared());
    assert_eq!((&shared.name, &shared.odd), (&owned.name, &owned.odd));
    assert_eq!(shared.either.0.into_dyn(), owned.either.0);
    assert_eq!(map.share("small").unwrap(), shared.small.0);
    assert_eq!(map.share("name").unwrap_err().path(), "name");
    assert!(map.share("nothing").is_err());

    drop(map);
    drop(large);
    assert_eq!(shared.large.view::<f32>().unwrap(), owned.large.0);
    assert_eq!(shared.fortran.view::<f64>().unwrap(), owned.fortran.0.view().into_dyn());
    assert_eq!(shared.small.as_slice::<f64>().unwrap(), owned.small.0);
    #[cfg(target_os = "linux")]
    {
        let path = dir.file("views.tenarc");
        let last = shared.large.0;
        drop(shared.fortran);
        let start = last.le_bytes().as_ptr() as usize;
        assert!(mapped_from(&path).iter().any(|mapped| mapped.contains(&start)));
        drop(last);
        assert!(mapped_from(&path).is_empty());
    }
}

#[test]
fn shared_tensors_of_other_memory() {
    for (name, options) in variants() {
        let value = owned();
        let bytes = to_bytes(&value, options);
        let shared = SharedBytes::from_owner(bytes.clone());
        let place = shared.as_ptr_range();
        // However many pointers stand before it.
        let archive = Archive::new(std::sync::Arc::new(Box::new(shared))).unwrap();
        let large = archive.only().unwrap().share("large").unwrap();
        assert_eq!(place.contains(&large.le_bytes().as_ptr()), large.is_shared(), "{name}");
        drop(archive);
        assert_eq!(large.to_array::<f32>().unwrap(), value.large.0, "{name}");
        // What cannot be shared is copied.
        let archive = Archive::new(&bytes).unwrap();
        let large = archive.only().unwrap().share("large").unwrap();
        assert!(!large.is_shared(), "{name}");
        assert_eq!(large.to_array::<f32>().unwrap(), value.large.0, "{name}");
    }
    let dir = Dir::new();
    drop(mapped(&dir));
    let file = Archive::open(dir.file("views.tenarc")).unwrap();
    assert_eq!(file.tensor::<Vec<f64>>("small").unwrap(), [0.5, 1.5, 2.5]);
    assert!(file.only().unwrap().share("large").is_err());
}

#[test]
fn views_of_any_dtype() {
    #[derive(Deserialize)]
    struct Viewed<'a> {
        name: &'a str,
        #[serde(borrow)]
        large: Tensor<DynView<'a>>,
        #[serde(borrow)]
        fortran: Tensor<DynView<'a>>,
        #[serde(borrow)]
        small: Tensor<DynView<'a>>,
        #[serde(borrow)]
        bools: Tensor<DynView<'a>>,
        #[serde(borrow)]
        empty: Tensor<DynView<'a>>,
    }
    let dir = Dir::new();
    let map = mapped(&dir);
    let owned = owned();
    let view: Viewed = map.view().unwrap();
    assert_eq!(view.name, owned.name);
    assert_eq!((view.large.dtype(), view.large.shape()), (&DType::F32, &[100, 50][..]));
    assert_eq!(view.large.view::<f32>().unwrap(), owned.large.0);
    assert_eq!(view.fortran.order(), Order::F);
    assert_eq!(view.fortran.view::<f64>().unwrap(), owned.fortran.0.view().into_dyn());
    assert_eq!(view.small.as_slice::<f64>().unwrap(), owned.small.0);
    assert_eq!(view.bools.as_slice::<bool>().unwrap(), owned.bools.0);
    assert!(view.empty.bytes().is_empty());
    let error = view.large.as_slice::<f64>().unwrap_err();
    assert_eq!(error.to_string(), "expected a tensor of f64, found one of f32");
    let inside = map.source().contents().unwrap().as_ptr_range();
    let large: Tensor<DynView> = map.view_at("large").unwrap();
    assert!(inside.contains(&large.bytes().as_ptr()));
    // They are written as what they are views of.
    assert_eq!(tenarc::to_vec(&large).unwrap(), tenarc::to_vec(&owned.large).unwrap());
    assert_eq!(large.to_dyn().unwrap(), map.tensor("large").unwrap());
    // Elements that are not in memory cannot be borrowed.
    assert!(
        tenarc::open(dir.file("views.tenarc"))
            .unwrap()
            .view_at::<Tensor<DynView>>("large")
            .is_err()
    );
    let bytes = tenarc::to_vec(&owned.large).unwrap();
    assert_eq!(tenarc::from_slice::<Tensor<DynView>>(&bytes).unwrap().0.bytes(), large.bytes());
    assert!(DynView::new(DType::F32, &[2, 2], Order::C, &[0; 15]).is_err());
    assert!(DynView::new(DType::Bool, &[2], Order::C, &[1, 2]).is_err());
}
