//! burn's modules are saved and loaded as by burn's own stores, on two backends.

use burn_core as burn;

use std::path::PathBuf;

use burn::module::{Module, Param, ParamId};
use burn::tensor::{Bool, DType, Device, Int, Tensor, TensorData};
use burn_nn::{Linear, LinearConfig};
use burn_store::{
    HalfPrecisionAdapter, KeyRemapper, ModuleSnapshot, ModuleStore, PathFilter, SafetensorsStore,
};
use serde::{Deserialize, Serialize};
use tenarc::archive::{Compression, SaveOptions};
use tenarc::de::DecodeOptions;
use tenarc::{DynTensor, Map};
use tenarc_burn::{TenarcStore, from_burn, to_burn};

#[derive(Module, Debug)]
struct Model {
    encoder: Linear,
    layers: Vec<Linear>,
    mask: Param<Tensor<1, Bool>>,
    positions: Param<Tensor<2, Int>>,
}

#[allow(deprecated)] // burn-ndarray is, but programs use it
fn devices() -> [Device; 2] {
    [Device::flex(), Device::ndarray()]
}

fn model(device: &Device) -> Model {
    Model {
        encoder: LinearConfig::new(40, 30).init(device),
        layers: (0..3).map(|_| LinearConfig::new(30, 30).init(device)).collect(),
        mask: Param::initialized(ParamId::new(), Tensor::from_data([true, false, true], device)),
        positions: Param::initialized(
            ParamId::new(),
            Tensor::from_data([[1, 2, 3], [4, 5, 6]], device),
        ),
    }
}

/// Other values than a new model has.
fn other(device: &Device) -> Model {
    let mut other = model(device);
    other.mask =
        Param::initialized(ParamId::new(), Tensor::from_data([false, true, false], device));
    other.positions =
        Param::initialized(ParamId::new(), Tensor::from_data([[9, 9, 9], [9, 9, 9]], device));
    other
}

fn contents(model: &Model) -> Vec<(String, TensorData, Option<u64>)> {
    let tensors = model.collect(None, None, false);
    let content = |tensor: burn_store::burn_pack::Tensor| {
        let (name, id) = (tensor.name.clone(), tensor.param_id);
        (name, burn_store::bridge::into_data(tensor).unwrap(), id)
    };
    tensors.into_iter().map(content).collect()
}

fn dir() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.tenarc");
    (dir, path)
}

#[test]
fn a_module_comes_back_from_every_place() {
    for device in devices() {
        let (_dir, path) = dir();
        let saved = model(&device);
        saved.save_into(&mut TenarcStore::from_file(&path)).unwrap();
        let mut memory = TenarcStore::from_bytes(None);
        saved.save_into(&mut memory).unwrap();
        assert!(memory.bytes().unwrap() == std::fs::read(&path).unwrap());
        // SAFETY: nobody changes the file.
        #[allow(unsafe_code)]
        let map = unsafe { Map::open(&path) }.unwrap();
        let copy = TenarcStore::from_bytes(memory.bytes().map(<[u8]>::to_vec));
        for mut store in [TenarcStore::from_file(&path), memory, copy, TenarcStore::from_map(map)] {
            let mut loaded = other(&device);
            assert_ne!(contents(&loaded), contents(&saved));
            let result = loaded.load_from(&mut store).unwrap();
            assert_eq!((result.applied.len(), result.unused.len()), (10, 0));
            assert_eq!(contents(&loaded), contents(&saved));
        }
    }
}

#[test]
fn another_backend_loads_it() {
    let [flex, ndarray] = devices();
    let (_dir, path) = dir();
    let saved = model(&flex);
    saved.save_into(&mut TenarcStore::from_file(&path)).unwrap();
    let mut loaded = other(&ndarray);
    loaded.load_from(&mut TenarcStore::from_file(&path)).unwrap();
    let weights = |model: &Model| model.layers[2].weight.val().to_data();
    assert_eq!(weights(&loaded), weights(&saved));
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Config {
    sizes: Vec<u32>,
    scale: Option<f64>,
}

#[test]
fn the_file_is_an_archive_as_any_other() {
    let device = Device::flex();
    let (_dir, path) = dir();
    let saved = model(&device);
    let config = Config { sizes: vec![40, 30], scale: None };
    saved.save_into(&mut TenarcStore::from_file(&path).with_meta(&config).unwrap()).unwrap();

    let archive = tenarc::open(&path).unwrap();
    archive.verify().unwrap();
    assert_eq!(archive.get::<Config>("meta").unwrap(), config);
    assert_eq!(TenarcStore::from_file(&path).meta::<Config>().unwrap(), config);
    let weight: DynTensor = archive.tensor("tensors.layers.1.weight").unwrap();
    assert_eq!(
        weight.as_slice::<f32>().unwrap(),
        saved.layers[1].weight.val().to_data().as_slice::<f32>().unwrap()
    );
    let mask: DynTensor = archive.tensor("tensors.mask").unwrap();
    assert_eq!(mask.as_slice::<bool>().unwrap(), [true, false, true]);
}

#[test]
fn a_model_inside_a_larger_struct_is_loaded() {
    #[derive(Serialize)]
    struct Run {
        step: u32,
        model: std::collections::BTreeMap<&'static str, tenarc::Tensor<DynTensor>>,
    }
    let weight =
        DynTensor::from_vec(&[4, 3], tenarc::tensor::Order::F, (0..12u8).map(f32::from).collect())
            .unwrap();
    let bias = DynTensor::from_vec(&[3], tenarc::tensor::Order::C, vec![1.0f32, 2.0, 3.0]).unwrap();
    let run = Run { step: 1, model: [("weight", weight.into()), ("bias", bias.into())].into() };
    let (_dir, path) = dir();
    tenarc::save(&path, &run).unwrap();
    let device = Device::flex();
    let mut layer = LinearConfig::new(4, 3).init(&device);
    layer.load_from(&mut TenarcStore::from_file(&path).at("model")).unwrap();
    // Column-major tensors are put into row-major order.
    let expected =
        TensorData::from([[0.0f32, 4.0, 8.0], [1.0, 5.0, 9.0], [2.0, 6.0, 10.0], [3.0, 7.0, 11.0]]);
    assert_eq!(layer.weight.val().to_data(), expected);

    let error =
        layer.load_from(&mut TenarcStore::from_file(&path).at("modle")).unwrap_err().to_string();
    assert!(error.contains("nothing at `modle`") && error.contains("model.tenarc"), "{error}");
}

#[test]
fn filters_and_new_names_do_what_they_do_in_burns_stores() {
    let device = Device::flex();
    let (dir, path) = dir();
    let other_path = dir.path().join("model.safetensors");
    let saved = model(&device);
    let filter = || PathFilter::new().with_regex(r"^layers\.[02]").with_full_path("encoder.bias");
    let remapper = || KeyRemapper::new().add_pattern("^layers", "blocks").unwrap();
    let mut ours = TenarcStore::from_file(&path).filter(filter()).remap(remapper());
    saved.save_into(&mut ours).unwrap();
    let mut theirs = SafetensorsStore::from_file(&other_path).filter(filter()).remap(remapper());
    saved.save_into(&mut theirs).unwrap();
    let names = TenarcStore::from_file(&path).keys().unwrap();
    assert_eq!(names, SafetensorsStore::from_file(&other_path).keys().unwrap());
    assert_eq!(
        names,
        ["blocks.0.bias", "blocks.0.weight", "blocks.2.bias", "blocks.2.weight", "encoder.bias"]
    );

    let back = || KeyRemapper::new().add_pattern("^blocks", "layers").unwrap();
    for contiguous in [false, true] {
        let mut loaded = [other(&device), other(&device)];
        let [ours, theirs] = &mut loaded;
        let mut store =
            TenarcStore::from_file(&path).remap(back()).map_indices_contiguous(contiguous);
        let names = store.keys().unwrap();
        let error = ours.load_from(&mut store).unwrap_err().to_string();
        assert!(error.contains("encoder.weight") && error.contains("allow_partial"), "{error}");
        let result = ours.load_from(&mut store.allow_partial(true)).unwrap();
        let mut store = SafetensorsStore::from_file(&other_path)
            .remap(back())
            .map_indices_contiguous(contiguous)
            .allow_partial(true);
        assert_eq!(store.keys().unwrap(), names);
        let expected = theirs.load_from(&mut store).unwrap();
        assert_eq!((result.applied, result.missing), (expected.applied, expected.missing));
        let weight = |model: &Model, layer: usize| model.layers[layer].weight.val().to_data();
        let place = if contiguous { 1 } else { 2 };
        assert_eq!(weight(ours, place), weight(&saved, 2));
    }

    let mut loaded = other(&device);
    let encoder = PathFilter::new().with_regex("^encoder");
    let store = TenarcStore::from_file(&path).filter(encoder);
    let result = loaded.load_from(&mut store.allow_partial(true)).unwrap();
    assert_eq!(result.applied, ["encoder.bias"]);
}

/// The methods that take patterns as texts select and rename what they do in burn's stores.
#[test]
fn patterns_do_what_they_do_in_burns_stores() {
    // Both stores have methods of these names, but no trait in common.
    macro_rules! stores {
        ($ours:expr, $theirs:expr, $($call:tt)*) => { ($ours.$($call)*, $theirs.$($call)*) };
    }

    for device in devices() {
        let (dir, path) = dir();
        let other_path = dir.path().join("model.safetensors");
        let saved = model(&device);
        let (mut ours, mut theirs) = stores!(
            TenarcStore::from_file(&path),
            SafetensorsStore::from_file(&other_path),
            with_regex(r"^layers\.[02]\.w")
                .with_regexes([r"^mask", "^none"])
                .with_full_path("encoder.bias")
                .with_full_paths(["positions", "layers.2.bias"])
                .with_predicate(|name, _| name == "encoder.weight")
                .with_key_remapping("^layers", "flows.7.blocks")
                .with_key_remapping("encoder", "first")
        );
        saved.save_into(&mut ours).unwrap();
        saved.save_into(&mut theirs).unwrap();
        let (ours, theirs) =
            (TenarcStore::from_file(&path), SafetensorsStore::from_file(&other_path));
        let (mut ours, mut theirs) = stores!(ours, theirs, map_indices_contiguous(false));
        let names = ours.keys().unwrap();
        assert_eq!(names, theirs.keys().unwrap());
        let expected = [
            "first.bias",
            "first.weight",
            "flows.7.blocks.0.weight",
            "flows.7.blocks.2.bias",
            "flows.7.blocks.2.weight",
            "mask",
            "positions",
        ];
        assert_eq!(names, expected);

        let (mut ours, mut theirs) = stores!(ours, theirs, map_indices_contiguous(true));
        assert_eq!(ours.keys().unwrap(), theirs.keys().unwrap());
        assert!(ours.keys().unwrap().contains(&"flows.0.blocks.1.bias".to_owned()));
        let (mut ours, mut theirs) =
            stores!(ours, theirs, map_indices_contiguous_except(r"^flows$"));
        assert_eq!(ours.keys().unwrap(), theirs.keys().unwrap());
        assert!(ours.keys().unwrap().contains(&"flows.7.blocks.1.bias".to_owned()));
        let (mut ours, mut theirs) =
            stores!(ours, theirs, map_indices_contiguous_except(r"blocks$"));
        assert_eq!(ours.keys().unwrap(), theirs.keys().unwrap());
        assert!(ours.keys().unwrap().contains(&"flows.7.blocks.2.bias".to_owned()));

        let (ours, theirs) =
            (TenarcStore::from_file(&path), SafetensorsStore::from_file(&other_path));
        let (mut ours, mut theirs) = stores!(
            ours,
            theirs,
            with_regex("^none")
                .match_all()
                .with_key_remapping("^first", "encoder")
                .allow_partial(true)
        );
        let mut loaded = [other(&device), other(&device)];
        let ours = loaded[0].load_from(&mut ours).unwrap();
        let theirs = loaded[1].load_from(&mut theirs).unwrap();
        assert_eq!((&ours.applied, &ours.missing), (&theirs.applied, &theirs.missing));
        assert_eq!(ours.applied, ["encoder.weight", "encoder.bias", "mask", "positions"]);

        // The types of the modules are known when tensors are saved, too.
        let mut ours = TenarcStore::from_bytes(None)
            .with_predicate(|_, modules| modules == "Struct:Model.Struct:Linear");
        saved.save_into(&mut ours).unwrap();
        assert_eq!(ours.keys().unwrap(), ["encoder.bias", "encoder.weight"]);
    }
}

#[test]
fn adapters_convert_tensors() {
    let device = Device::flex();
    let (_dir, path) = dir();
    let saved = model(&device);
    saved
        .save_into(&mut TenarcStore::from_file(&path).with_to_adapter(HalfPrecisionAdapter::new()))
        .unwrap();
    let mut store = TenarcStore::from_file(&path);
    assert_eq!(store.get_tensor("encoder.weight").unwrap().unwrap().dtype, DType::F16);
    assert!(store.get_tensor("encoder.weights").unwrap().is_none());
    let mut loaded = other(&device);
    loaded
        .load_from(
            &mut TenarcStore::from_file(&path).with_from_adapter(HalfPrecisionAdapter::new()),
        )
        .unwrap();
    let weight = |model: &Model| model.encoder.weight.val().to_data().convert_dtype(DType::F32);
    assert_eq!(weight(&loaded), weight(&saved).convert_dtype(DType::F16).convert_dtype(DType::F32));
}

#[test]
fn tensors_are_read_when_they_are_asked_for() {
    let device = Device::flex();
    let (_dir, path) = dir();
    let saved = model(&device);
    saved.save_into(&mut TenarcStore::from_file(&path)).unwrap();
    // A damaged tensor does no harm to the others.
    let mut bytes = std::fs::read(&path).unwrap();
    let archive = tenarc::open(&path).unwrap();
    let value = archive.only().unwrap();
    let buffer = value.info("tensors.layers.1.weight").unwrap().buffer().unwrap();
    bytes[usize::try_from(value.buffers()[usize::try_from(buffer).unwrap()].0).unwrap()] ^= 1;
    let mut store = TenarcStore::from_bytes(Some(bytes));
    let tensors = store.get_all_tensors().unwrap();
    assert_eq!(tensors["layers.1.weight"].byte_len(), 3600);
    let data = burn_store::bridge::to_data(&tensors["layers.0.weight"]).unwrap();
    assert_eq!(data, saved.layers[0].weight.val().to_data());

    let bytes = store.bytes().unwrap().to_vec();
    let (_dir, damaged) = dir_with(&bytes);
    let in_file = || TenarcStore::from_file(&damaged);
    let in_memory = || TenarcStore::from_bytes(Some(bytes.clone()));
    let stores: [&dyn Fn() -> TenarcStore; 2] = [&in_file, &in_memory];
    for store in stores {
        let error = other(&device).load_from(&mut store()).unwrap_err().to_string();
        assert!(error.contains("layers.1.weight") && error.contains("checksum"), "{error}");
        let unverified = DecodeOptions::default().with_checksums(false);
        other(&device).load_from(&mut store().with_decode_options(unverified)).unwrap();
    }
}

#[test]
fn bytes_without_checksums_are_loaded() {
    let device = Device::flex();
    let saved = model(&device);
    let options = SaveOptions::default().with_checksums(false);
    let mut store = TenarcStore::from_bytes(None).with_save_options(options);
    saved.save_into(&mut store).unwrap();
    let mut loaded = other(&device);
    loaded.load_from(&mut store).unwrap();
    assert_eq!(contents(&loaded), contents(&saved));
}

fn dir_with(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let (dir, path) = dir();
    std::fs::write(&path, bytes).unwrap();
    (dir, path)
}

#[test]
fn a_file_is_replaced_only_if_that_is_wanted() {
    let device = Device::flex();
    let (_dir, path) = dir();
    let first = model(&device);
    first.save_into(&mut TenarcStore::from_file(&path)).unwrap();
    let second = other(&device);
    let error = second.save_into(&mut TenarcStore::from_file(&path)).unwrap_err().to_string();
    assert!(error.contains("overwrite(true)") && error.contains("model.tenarc"), "{error}");
    let mut store = TenarcStore::from_file(&path).overwrite(true);
    let mut loaded = other(&device);
    loaded.load_from(&mut store).unwrap();
    assert_eq!(contents(&loaded), contents(&first));
    // A store that has read a file sees what it saves there.
    second.save_into(&mut store).unwrap();
    loaded.load_from(&mut store).unwrap();
    assert_eq!(contents(&loaded), contents(&second));
}

#[test]
fn other_shapes_are_errors() {
    let device = Device::flex();
    let (_dir, path) = dir();
    let layer: Linear = LinearConfig::new(4, 3).init(&device);
    layer.save_into(&mut TenarcStore::from_file(&path)).unwrap();
    let mut larger: Linear = LinearConfig::new(5, 3).init(&device);
    let error = larger.load_from(&mut TenarcStore::from_file(&path)).unwrap_err().to_string();
    for part in ["weight", "[5, 3]", "[4, 3]", "model.tenarc"] {
        assert!(error.contains(part), "no `{part}` in {error}");
    }
    let result = larger
        .load_from(&mut TenarcStore::from_file(&path).validate(false).allow_partial(true))
        .unwrap();
    assert_eq!((result.errors.len(), result.applied), (1, vec!["bias".to_owned()]));
}

#[test]
fn compressed_tensors_are_loaded() {
    let device = Device::flex();
    let (_dir, path) = dir();
    let layer: Linear = LinearConfig::new(400, 300).init(&device);
    let zeros = Linear { weight: layer.weight.map(|weight| weight.zeros_like()), ..layer };
    let options = SaveOptions::default().with_compression(Compression::zstd());
    zeros.save_into(&mut TenarcStore::from_file(&path).with_save_options(options)).unwrap();
    assert!(std::fs::metadata(&path).unwrap().len() < 100_000);
    // SAFETY: nobody changes the file.
    #[allow(unsafe_code)]
    let map = unsafe { Map::open(&path) }.unwrap();
    for mut store in [TenarcStore::from_file(&path), TenarcStore::from_map(map)] {
        let mut loaded: Linear = LinearConfig::new(400, 300).init(&device);
        loaded.load_from(&mut store).unwrap();
        assert_eq!(loaded.weight.val().to_data(), zeros.weight.val().to_data());
    }
}

#[test]
fn an_empty_store_is_an_error() {
    let mut layer: Linear = LinearConfig::new(4, 3).init(&Device::flex());
    let error = layer.load_from(&mut TenarcStore::from_bytes(None)).unwrap_err().to_string();
    assert!(error.contains("nothing was saved"), "{error}");
    let (_dir, path) = dir();
    tenarc::save(&path, &1u8).unwrap();
    assert!(layer.load_from(&mut TenarcStore::from_file(&path)).is_err());
    tenarc::save(&path, &std::collections::BTreeMap::from([("a", 1)])).unwrap();
    let error = layer.load_from(&mut TenarcStore::from_file(&path)).unwrap_err().to_string();
    assert!(error.contains("nothing at `tensors`"), "{error}");
}

#[test]
fn dtypes_are_the_same_or_refused() {
    use burn::tensor::BoolStore;

    for name in
        ["u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64", "bool"]
    {
        let dtype = tenarc::DType::from_name(name);
        assert_eq!(from_burn(to_burn(&dtype).unwrap()), Some(dtype));
    }
    for name in ["c64", "f8_e4m3", "f128", "posit8"] {
        assert_eq!(to_burn(&tenarc::DType::from_name(name)), None);
    }
    assert_eq!(from_burn(DType::Bool(BoolStore::U32)), None);
    assert_eq!(from_burn(DType::Flex32), Some(tenarc::DType::F32));

    let (_dir, path) = dir();
    let tensor =
        DynTensor::new(tenarc::DType::F8E4M3, &[2], tenarc::tensor::Order::C, vec![1, 2]).unwrap();
    let value = std::collections::BTreeMap::from([(
        "tensors",
        std::collections::BTreeMap::from([("bias", tenarc::Tensor(tensor))]),
    )]);
    tenarc::save(&path, &value).unwrap();
    let error = TenarcStore::from_file(&path).keys().unwrap_err().to_string();
    assert!(error.contains("f8_e4m3") && error.contains("tensors.bias"), "{error}");
}
