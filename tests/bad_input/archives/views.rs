//! Groups F, G and J: views of memory that is misaligned or has invalid contents.

use ndarray::{ArrayView1, ArrayView2, CowArray, Ix1};
use tenarc::error::Category::{Data, Unsupported};
use tenarc::{Archive, DynTensor, Map, Tensor};

use super::samples::{self, ModelView, model};
use super::support::{Dir, limited};
use tenarc_test_support::builder::{array, inline_tensor, map, simple, tensor_ref};

/// The archive at every offset from an aligned address.
fn at_every_address(bytes: &[u8], mut check: impl FnMut(&[u8], usize)) {
    for shift in 0..16 {
        let mut memory = vec![0u128; bytes.len() / 16 + 2];
        let memory: &mut [u8] = bytemuck::cast_slice_mut(&mut memory);
        memory[shift..shift + bytes.len()].copy_from_slice(bytes);
        check(&memory[shift..shift + bytes.len()], shift);
    }
}

// 53
#[test]
fn views_at_odd_addresses_are_refused_or_copied() {
    let numbers: Vec<f64> = (0..20).map(f64::from).collect();
    let payload: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    let apart = simple(tensor_ref("f64", &[20], 0), &[&payload]);
    at_every_address(&apart, |bytes, shift| {
        let archive = Archive::new(bytes).unwrap();
        let view = archive.view::<Tensor<ArrayView1<f64>>>();
        assert_eq!(view.is_ok(), shift % 8 == 0, "{shift}");
        match view {
            Ok(view) => assert_eq!(view.to_vec(), numbers),
            Err(error) => assert_eq!(error.category(), Unsupported, "{error}"),
        }
        let copied = archive.view::<Tensor<CowArray<f64, Ix1>>>().unwrap();
        assert_eq!(copied.is_view(), shift % 8 == 0);
        assert_eq!(copied.to_vec(), numbers);
        assert_eq!(archive.tensor::<ndarray::Array1<f64>>("").unwrap().to_vec(), numbers);
        assert_eq!(archive.slice::<Vec<f64>>("", ndarray::s![3..7]).unwrap(), numbers[3..7]);
        archive.verify().unwrap();
    });
}

// 53
#[test]
fn whole_values_at_odd_addresses() {
    at_every_address(&samples::one(), |bytes, shift| {
        let archive = Archive::new(bytes).unwrap();
        let view = archive.view::<ModelView>();
        assert_eq!(view.is_ok(), shift % 8 == 0, "{shift}");
        if let Ok(view) = view {
            assert_eq!(view.to_model(), model(1));
        }
        assert_eq!(archive.load::<samples::Model>().unwrap(), model(1));
    });
}

// 53, 75: small tensors lie in the metadata wherever they fall.
#[test]
fn inline_tensors_are_aligned_in_maps() {
    let dir = Dir::new();
    let item = |number: u8| inline_tensor("f64", &[1], &f64::from(number).to_le_bytes());
    let keys: Vec<String> = (0..40).map(|at| "k".repeat(at)).collect();
    let entries: Vec<_> = keys.iter().zip(0..).map(|(key, at)| (&key[..], item(at))).collect();
    let path = dir.file(&simple(map(&entries), &[]));
    // SAFETY: nobody changes the file meanwhile.
    let archive = unsafe { Map::open(&path) }.unwrap();
    for _ in 0..2 {
        for (key, number) in keys.iter().zip(0u8..) {
            let pointer = format!("/{key}");
            let view: Tensor<ArrayView1<f64>> = archive.view_at(&pointer).unwrap();
            assert_eq!(view[0], f64::from(number));
            assert!(view.as_ptr().is_aligned());
        }
    }
}

// 46: through maps, as through bytes.
#[test]
fn bools_of_other_bytes_are_never_viewed() {
    let dir = Dir::new();
    let flags = [1u8, 0, 1, 2, 0, 1];
    let metadata = map(&[
        ("apart", tensor_ref("bool", &[6], 0)),
        ("inline", inline_tensor("bool", &[6], &flags)),
    ]);
    let path = dir.file(&simple(metadata, &[&flags]));
    // SAFETY: nobody changes the file meanwhile.
    let archive = unsafe { Map::open(&path) }.unwrap();
    for key in ["apart", "inline"] {
        assert_eq!(archive.view_at::<Tensor<ArrayView1<bool>>>(key).unwrap_err().category(), Data);
        assert!(archive.view_at::<Tensor<CowArray<bool, Ix1>>>(key).is_err());
        assert!(archive.view_at::<Tensor<DynTensor>>(key).is_err());
        assert!(archive.tensor::<ndarray::Array1<bool>>(key).is_err());
        assert!(archive.view_at::<Tensor<ArrayView1<u8>>>(key).is_err());
        let part = archive.slice::<Vec<bool>>(key, ndarray::s![..3]).unwrap();
        assert_eq!(part, [true, false, true]);
        assert!(archive.slice::<Vec<bool>>(key, ndarray::s![..4]).is_err());
    }
}

// 48, 49
#[test]
fn views_of_another_dtype_or_rank() {
    let payload = [0u8; 64];
    let bytes = simple(tensor_ref("f32", &[4, 4], 0), &[&payload]);
    at_every_address(&bytes, |bytes, _| {
        let archive = Archive::new(bytes).unwrap();
        assert!(archive.view::<Tensor<ArrayView2<i32>>>().is_err());
        assert!(archive.view::<Tensor<ArrayView2<u32>>>().is_err());
        assert!(archive.view::<Tensor<ArrayView2<f64>>>().is_err());
        assert!(archive.view::<Tensor<ArrayView2<u8>>>().is_err());
        assert!(archive.view::<Tensor<ArrayView1<f32>>>().is_err());
        assert!(archive.view::<&[u8]>().is_err());
        assert!(archive.view::<&str>().is_err());
    });
    let halves = simple(tensor_ref("f16", &[32], 0), &[&payload]);
    let archive = Archive::new(&halves).unwrap();
    assert!(archive.view::<Tensor<ArrayView1<half::bf16>>>().is_err());
}

// 31: text is checked in maps, too.
#[test]
fn text_of_views_is_utf8() {
    let bytes = simple(vec![0x62, 0xc3, 0x28], &[]);
    let archive = Archive::new(&bytes).unwrap();
    assert!(archive.view::<&str>().is_err());
    assert!(archive.load::<String>().is_err());
    assert!(archive.verify().is_err());
}

// 57: tied tensors can be viewed often, as that copies nothing.
#[test]
fn views_of_one_buffer_cost_nothing() {
    let content = vec![1u8; 64 << 10];
    let references: Vec<_> = (0..100).map(|_| tensor_ref("u8", &[64 << 10], 0)).collect();
    let bytes = simple(array(&references), &[&content]);
    let archive = Archive::new(&bytes).unwrap().with_options(limited(16 << 20));
    let views: Vec<Tensor<ArrayView1<u8>>> = archive.view().unwrap();
    assert!(views.iter().all(|view| view.as_ptr() == views[0].as_ptr()));
}
