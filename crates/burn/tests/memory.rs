//! How often tensors are copied when modules and runs are saved and loaded, and how much memory this takes. The table in
//! the README says the same.

use burn_core as burn;

use std::path::PathBuf;

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, TensorData};
use burn_nn::{Linear, LinearConfig};
use burn_optim::{AdamConfig, GradientsParams, ModuleOptimizer, OptimizerRecord};
use burn_store::ModuleSnapshot;
use tenarc::Map;
use tenarc_burn::{Record, TenarcStore, resume_run, save_run};
use tenarc_test_support::alloc::{self, Counting};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const SIDE: usize = 512;
const TENSOR: usize = SIDE * SIDE * 4;
/// The tensors of a module, and those of Adam's state: two moments of each.
const MODULE: usize = 4;
const MOMENTS: usize = 2 * MODULE;
/// For names, headers and the like.
const LITTLE: usize = 300 << 10;

#[derive(Module, Debug)]
struct Model {
    layers: Vec<Linear>,
}

impl Model {
    fn new(value: f32, device: &Device) -> Self {
        let layer = |_| {
            let mut layer = LinearConfig::new(SIDE, SIDE).with_bias(false).init(device);
            let values = TensorData::new(vec![value; SIDE * SIDE], [SIDE, SIDE]);
            layer.weight = Param::from_data(values, device);
            layer
        };
        Self { layers: (0..MODULE).map(layer).collect() }
    }

    fn last(&self) -> TensorData {
        self.layers[MODULE - 1].weight.val().to_data()
    }
}

#[allow(deprecated)] // burn-ndarray is, but programs use it
fn devices() -> [Device; 2] {
    [Device::flex(), Device::ndarray()]
}

/// Runs the code. It must allocate as many bytes in all, and have as many at one time, as this number of tensors has.
#[track_caller]
fn takes<T>(in_all: usize, at_one_time: usize, code: impl FnOnce() -> T) -> T {
    let ((result, most), allocated) = alloc::allocated(|| alloc::peak_of(code));
    for (found, tensors) in [(allocated.bytes, in_all), (most, at_one_time)] {
        let expected = tensors * TENSOR;
        assert!(
            found.abs_diff(expected) < LITTLE,
            "expected the bytes of {tensors} tensors, {expected}, found {found}"
        );
    }
    result
}

fn saved(device: &Device) -> (tempfile::TempDir, PathBuf, Model) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.tenarc");
    let model = Model::new(1.0, device);
    model.save_into(&mut TenarcStore::from_file(&path)).unwrap();
    (dir, path, model)
}

/// burn copies a tensor twice when it takes it out of one of these backends.
#[test]
fn saving_copies_no_tensor_that_burn_has_taken_out_of_the_backend() {
    for device in devices() {
        let (_dir, path, model) = saved(&device);
        takes(2, 2, || model.last());
        let mut store = TenarcStore::from_file(&path).overwrite(true);
        takes(2 * MODULE, 2, || model.save_into(&mut store).unwrap());
    }
}

#[test]
fn saving_into_memory_copies_once_more() {
    for device in devices() {
        let model = Model::new(1.0, &device);
        let mut store = TenarcStore::from_bytes(None);
        let save = || model.save_into(&mut store).unwrap();
        let (((), most), allocated) = alloc::allocated(|| alloc::peak_of(save));
        let expected = 3 * MODULE * TENSOR;
        assert!(allocated.bytes.abs_diff(expected) < LITTLE, "{allocated:?}");
        // The bytes grow by doubling.
        assert!(most < 2 * MODULE * TENSOR + LITTLE, "{most}");
    }
}

#[test]
fn a_file_is_read_into_the_memory_of_the_backend() {
    for device in devices() {
        let (_dir, path, model) = saved(&device);
        let mut loaded = Model::new(2.0, &device);
        let mut store = TenarcStore::from_file(&path);
        // Each tensor takes the place of an old one, which is freed.
        takes(MODULE, 1, || loaded.load_from(&mut store).unwrap());
        takes(0, 0, || loaded.layers.iter().map(|layer| layer.weight.val()).collect::<Vec<_>>());
        assert_eq!(loaded.last(), model.last());
    }
}

#[test]
fn tensors_of_maps_and_of_bytes_are_shared() {
    for device in devices() {
        let (_dir, path, model) = saved(&device);
        // SAFETY: nobody changes the file.
        #[allow(unsafe_code)]
        let map = unsafe { Map::open(&path) }.unwrap();
        let bytes = std::fs::read(&path).unwrap();
        for mut store in [TenarcStore::from_map(map), TenarcStore::from_bytes(Some(bytes))] {
            let mut loaded = Model::new(2.0, &device);
            takes(0, 0, || loaded.load_from(&mut store).unwrap());
            drop(store);
            let used = takes(1, 1, || loaded.layers[0].weight.val() + 1.0);
            let used = used.to_data();
            assert!(used.as_slice::<f32>().unwrap().iter().all(|&value| value < 2.5));
            assert_eq!(loaded.last(), model.last());
        }
    }
}

fn trained(device: &Device) -> (Model, ModuleOptimizer) {
    let mut output = Tensor::<2>::ones([1, SIDE], device);
    let (model, mut optimizer) = (Model::new(1.0, device), AdamConfig::new().init());
    for layer in &model.layers {
        output = layer.forward(output);
    }
    let gradients = GradientsParams::from_grads(output.sum().backward(), &model);
    let model = optimizer.step(0.01, model, gradients);
    (model, optimizer)
}

/// The state of an optimizer is copied twice by burn, and twice on the way through a burnpack.
#[test]
fn the_state_of_an_optimizer_is_copied() {
    for device in devices().map(Device::autodiff) {
        let (model, optimizer) = trained(&device);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.tenarc");
        takes(4 * MOMENTS + 2 * MODULE, 2 * MOMENTS, || {
            save_run(&path, &model, &optimizer, &1u32).unwrap();
        });
        let (new, adam) = (Model::new(2.0, &device), AdamConfig::new().init());
        let (loaded, ..) = takes(3 * MOMENTS + MODULE, 2 * MOMENTS, || {
            resume_run(&path, new, adam, 0u32).unwrap()
        });
        assert_eq!(loaded.last(), model.last());
    }
}

#[test]
fn records_are_copied_twice_each_way() {
    for device in devices().map(Device::autodiff) {
        let (model, optimizer) = trained(&device);
        let burns = optimizer.to_record();
        let record = takes(2 * MOMENTS, MOMENTS, || Record::new(burns).unwrap());
        let bytes = takes(MOMENTS, MOMENTS, || tenarc::to_vec(&record).unwrap());
        let loaded: Record<OptimizerRecord> =
            takes(MOMENTS, MOMENTS, || tenarc::from_slice(&bytes).unwrap());
        takes(2 * MOMENTS, MOMENTS, || loaded.into_inner().unwrap());

        let burns = model.into_record();
        let record = takes(2 * MODULE, MODULE, || Record::new(burns).unwrap());
        takes(2 * MODULE, MODULE, || record.into_inner().unwrap());
    }
}
