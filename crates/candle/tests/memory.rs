//! Loading takes the memory of the tensors that are kept, and at most that of one more tensor.

#![allow(clippy::cast_precision_loss, clippy::float_cmp)] // small numbers, compared exactly

use std::path::PathBuf;

use candle_core::{DType, Device, Tensor};
use candle_nn::{Init, VarMap};
use tenarc::named::Match;
use tenarc::{Archive, Map};
use tenarc_candle::{Weights, load, load_into, save};
use tenarc_test_support::alloc::{self, Counting};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const COUNT: usize = 8;
const ELEMENTS: usize = 1 << 19;
const TENSOR: usize = ELEMENTS * 4;
const MODEL: usize = COUNT * TENSOR;
/// For headers, names and the like.
const LITTLE: usize = 300 << 10;

fn names() -> impl Iterator<Item = String> {
    (0..COUNT).map(|number| format!("tensor.{number}"))
}

fn saved(dir: &tempfile::TempDir) -> PathBuf {
    let path = dir.path().join("model.tenarc");
    let map = VarMap::new();
    for (number, name) in names().enumerate() {
        map.get(ELEMENTS, &name, Init::Const(number as f64), DType::F32, &Device::Cpu).unwrap();
    }
    save(&path, &map, &()).unwrap();
    path
}

fn build(weights: Weights<'_>, dtype: DType) -> Vec<Tensor> {
    let vb = weights.at("variables").unwrap().var_builder(dtype, &Device::Cpu);
    names().map(|name| vb.get(ELEMENTS, &name).unwrap()).collect()
}

#[test]
fn the_builder_copies_each_tensor_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = saved(&dir);
    let bytes = std::fs::read(&path).unwrap();
    // SAFETY: nobody changes the file.
    #[allow(unsafe_code)]
    let map = unsafe { Map::open(&path) }.unwrap();
    let sources = [
        Weights::open(&path).unwrap(),
        Weights::from_map(map).unwrap(),
        Weights::new(Archive::new(&bytes[..]).unwrap()).unwrap(),
    ];
    for weights in sources {
        let (tensors, most) = alloc::peak_of(|| build(weights, DType::F32));
        assert_eq!(tensors[3].get(ELEMENTS - 1).unwrap().to_scalar::<f32>().unwrap(), 3.0);
        assert!(most < MODEL + LITTLE, "{most} bytes for a model of {MODEL}");
    }
}

#[test]
fn one_tensor_is_converted_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let weights = Weights::open(saved(&dir)).unwrap();
    let (tensors, most) = alloc::peak_of(|| build(weights, DType::BF16));
    assert_eq!(tensors[3].dtype(), DType::BF16);
    assert!(most < MODEL / 2 + TENSOR + LITTLE, "{most} bytes for a model of {}", MODEL / 2);
}

#[test]
fn one_tensor_is_beside_the_variables() {
    let dir = tempfile::tempdir().unwrap();
    let path = saved(&dir);
    let loaded = VarMap::new();
    let ((), most) = alloc::peak_of(|| load(&path, &loaded, &Device::Cpu).unwrap());
    assert!(most < MODEL + LITTLE, "{most} bytes for a model of {MODEL}");

    let (_, most) = alloc::peak_of(|| load_into::<()>(&path, &loaded, Match::Strict).unwrap());
    assert!(most < TENSOR + LITTLE, "{most} bytes beside the variables");
    assert!(most > TENSOR / 2, "nothing was measured");
}

#[test]
fn saving_copies_no_contiguous_tensor() {
    let dir = tempfile::tempdir().unwrap();
    let path = saved(&dir);
    let loaded = VarMap::new();
    load::<()>(&path, &loaded, &Device::Cpu).unwrap();
    let ((), most) = alloc::peak_of(|| save(&path, &loaded, &()).unwrap());
    assert!(most < TENSOR, "{most} bytes while saving");
}
