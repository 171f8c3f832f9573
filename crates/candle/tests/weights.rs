//! candle's `VarBuilder` reads the tensors of a file, a map or bytes, and its errors say what is wrong and where.

#![allow(clippy::cast_precision_loss, clippy::float_cmp)] // small numbers, compared exactly

use std::collections::BTreeMap;

use candle_core::{DType, Device, Error, Tensor};
use candle_nn::{Module, VarBuilder};
use serde::Serialize;
use tenarc::de::DecodeOptions;
use tenarc::{Archive, DynTensor, Map, OArchive};
use tenarc_candle::{CandleTensor, Weights};

#[derive(Serialize)]
struct Run {
    name: String,
    model: Model,
    history: Vec<f64>,
}

#[derive(Serialize)]
struct Model {
    #[serde(with = "tenarc_candle::tensor")]
    embed: Tensor,
    layers: Vec<Layer>,
    flat: BTreeMap<String, CandleTensor>,
}

#[derive(Serialize)]
struct Layer {
    #[serde(with = "tenarc_candle::tensor")]
    weight: Tensor,
    #[serde(with = "tenarc_candle::tensor")]
    bias: Tensor,
}

fn range(shape: &[usize], dtype: DType) -> Tensor {
    let count = shape.iter().product::<usize>() as f64;
    let range = Tensor::arange(0.0, count, &Device::Cpu).unwrap();
    range.reshape(shape).unwrap().affine(0.25, -3.0).unwrap().to_dtype(dtype).unwrap()
}

fn run() -> Run {
    let layer = |n: usize| Layer {
        weight: range(&[40, 30], DType::F32).affine(1.0, n as f64).unwrap(),
        bias: range(&[40], DType::F32),
    };
    let model = Model {
        embed: range(&[50, 30], DType::BF16),
        layers: (0..3).map(layer).collect(),
        flat: BTreeMap::from([("head.weight".to_owned(), range(&[3, 40], DType::F16).into())]),
    };
    Run { name: "run 7".into(), model, history: vec![0.5; 100] }
}

fn check(vb: &VarBuilder<'_>) {
    let dtype = vb.dtype();
    let run = run();
    let expect = |tensor: &Tensor| {
        tensor.to_dtype(dtype).unwrap().to_dtype(DType::F64).unwrap().to_vec2::<f64>().unwrap()
    };
    let found = |tensor: Tensor| {
        assert_eq!(tensor.dtype(), dtype);
        tensor.to_dtype(DType::F64).unwrap().to_vec2::<f64>().unwrap()
    };
    assert_eq!(found(vb.get((50, 30), "embed").unwrap()), expect(&run.model.embed));
    for (number, layer) in run.model.layers.iter().enumerate() {
        let vb = vb.pp("layers").pp(number);
        let linear = candle_nn::linear(30, 40, vb.clone()).unwrap();
        assert_eq!(found(linear.weight().clone()), expect(&layer.weight));
        assert!(vb.contains_tensor("bias") && !vb.contains_tensor("scale"));
        linear.forward(&Tensor::ones((2, 30), dtype, &Device::Cpu).unwrap()).unwrap();
    }
    let head = vb.pp("flat").pp("head").get_unchecked("weight").unwrap();
    assert_eq!(found(head), expect(&run.model.flat["head.weight"]));
    assert!(!vb.contains_tensor("layers") && !vb.contains_tensor("layers.0"));
}

#[test]
fn every_source_and_dtype() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.tenarc");
    tenarc::save(&path, &run()).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    for dtype in [DType::F32, DType::F64, DType::BF16, DType::F16] {
        // SAFETY: nobody changes the file.
        #[allow(unsafe_code)]
        let map = unsafe { Map::open(&path) }.unwrap();
        let unverified = DecodeOptions::default().with_checksums(false);
        let sources = [
            Weights::open(&path).unwrap(),
            Weights::from_map(map).unwrap(),
            Weights::new(Archive::new(&bytes[..]).unwrap()).unwrap(),
            Weights::new(Archive::new(bytes.clone()).unwrap().with_options(unverified)).unwrap(),
        ];
        for weights in sources {
            check(&weights.at("model").unwrap().var_builder(dtype, &Device::Cpu));
        }
        let vb = Weights::open(&path).unwrap().var_builder(dtype, &Device::Cpu);
        check(&vb.pp("model"));
        assert_eq!(vb.pp("model").root().get(100, "history").unwrap().dtype(), dtype);
    }
}

#[test]
fn floats_of_8_bits_are_converted() {
    let scales = Tensor::from_raw_buffer(&[0x39, 0xb9], DType::F8E4M3, &[2], &Device::Cpu).unwrap();
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save(&BTreeMap::from([("scales", CandleTensor(scales))])).unwrap();
    let bytes = out.finish().unwrap();
    for dtype in [DType::F64, DType::F32, DType::BF16, DType::F8E4M3] {
        let weights = Weights::new(Archive::new(&bytes[..]).unwrap()).unwrap();
        let scales = weights.var_builder(dtype, &Device::Cpu).get(2, "scales").unwrap();
        assert_eq!(scales.dtype(), dtype);
        assert_eq!(scales.to_dtype(DType::F32).unwrap().to_vec1::<f32>().unwrap(), [1.125, -1.125]);
    }
}

#[test]
fn one_value_of_several() {
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save_as("last", &run()).unwrap().save_as("best", &run().model).unwrap();
    let archive = Archive::new(out.finish().unwrap()).unwrap();
    let last = Weights::of_segment(archive.named("last").unwrap()).unwrap();
    check(&last.at("model").unwrap().var_builder(DType::F32, &Device::Cpu));
    let best = Weights::of_segment(archive.named("best").unwrap()).unwrap();
    check(&best.var_builder(DType::F32, &Device::Cpu));
    let error = Weights::new(archive).unwrap_err().to_string();
    assert!(error.contains("2 segments"), "{error}");
}

#[test]
fn prefixes_add_up() {
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save(&run()).unwrap();
    let bytes = out.finish().unwrap();
    let open = || Weights::new(Archive::new(&bytes[..]).unwrap()).unwrap();
    let layer = open().at("model").unwrap().at("layers.1").unwrap();
    assert_eq!(layer.names(), ["bias", "weight"]);
    assert_eq!(layer.tensor("weight").unwrap().dims(), [40, 30]);
    let error = open().at("model").unwrap().at("layer").unwrap_err().to_string();
    assert!(error.contains("no tensors in `model.layer`"), "{error}");
}

/// Rows with tensors are stored as columns from 256 rows on, and are not listed one by one.
#[test]
fn rows_of_columns_are_found() {
    let layer = |n: usize| Layer {
        weight: range(&[2, 3], DType::F32).affine(1.0, n as f64).unwrap(),
        bias: range(&[2], DType::F32),
    };
    let layers: Vec<Layer> = (0..300).map(layer).collect();
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save(&BTreeMap::from([("layers", &layers)])).unwrap();
    let archive = Archive::new(out.finish().unwrap()).unwrap();
    let vb = Weights::new(archive).unwrap().var_builder(DType::F32, &Device::Cpu);
    let found = candle_nn::linear(3, 2, vb.pp("layers").pp(299)).unwrap();
    assert_eq!(
        found.weight().to_vec2::<f32>().unwrap(),
        layers[299].weight.to_vec2::<f32>().unwrap()
    );
}

#[test]
fn errors_say_what_and_where() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.tenarc");
    tenarc::save(&path, &run()).unwrap();
    let vb =
        Weights::open(&path).unwrap().at("model").unwrap().var_builder(DType::F32, &Device::Cpu);
    let layer = vb.pp("layers").pp(0);

    let error = layer.get((30, 40), "weight").unwrap_err();
    // With `RUST_BACKTRACE`, candle adds a backtrace.
    let inner = match &error {
        Error::WithBacktrace { inner, .. } => inner,
        error => error,
    };
    assert!(matches!(inner, Error::UnexpectedShape { .. }), "{error}");
    let text = error.to_string();
    for part in ["model.layers.0.weight", "run.tenarc", "[30, 40]", "[40, 30]"] {
        assert!(text.contains(part), "{text}");
    }

    for error in [layer.get(40, "biass").unwrap_err(), layer.get_unchecked("biass").unwrap_err()] {
        let text = error.to_string();
        for part in ["cannot find tensor model.layers.0.biass", "run.tenarc", "did you mean"] {
            assert!(text.contains(part), "no `{part}` in {text}");
        }
    }

    let error = vb.get(3, "layers").unwrap_err().to_string();
    assert!(error.contains("cannot find tensor model.layers"), "{error}");
}

#[test]
fn dtypes_that_candle_lacks_are_refused() {
    let tensor = DynTensor::from_vec(&[2], tenarc::tensor::Order::C, vec![true, false]).unwrap();
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save(&BTreeMap::from([("mask", tenarc::Tensor(tensor))])).unwrap();
    let weights = Weights::new(Archive::new(out.finish().unwrap()).unwrap()).unwrap();
    let error = weights.tensor("mask").unwrap_err().to_string();
    assert!(error.contains("bool") && error.contains("`mask`"), "{error}");
    let vb = weights.var_builder(DType::F32, &Device::Cpu);
    let error = vb.get(2, "mask").unwrap_err().to_string();
    assert!(error.contains("bool") && error.contains("`mask`"), "{error}");
}

#[test]
fn damage_is_found_when_a_tensor_is_read() {
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save(&run()).unwrap();
    let mut bytes = out.finish().unwrap();
    let info =
        Archive::new(&bytes[..]).unwrap().only().unwrap().info("model.layers.1.weight").unwrap();
    let number = usize::try_from(info.buffer().unwrap()).unwrap();
    let at = Archive::new(&bytes[..]).unwrap().only().unwrap().buffers()[number].0;
    bytes[usize::try_from(at).unwrap() + 7] ^= 1;

    let archive = Archive::new(&bytes[..]).unwrap();
    let vb =
        Weights::new(archive).unwrap().var_builder(DType::F32, &Device::Cpu).pp("model.layers");
    candle_nn::linear(30, 40, vb.pp(0)).unwrap();
    let error = candle_nn::linear(30, 40, vb.pp(1)).unwrap_err().to_string();
    assert!(error.contains("model.layers.1.weight"), "{error}");
    let unverified = DecodeOptions::default().with_checksums(false);
    let archive = Archive::new(&bytes[..]).unwrap().with_options(unverified);
    let vb = Weights::new(archive).unwrap().var_builder(DType::F32, &Device::Cpu);
    candle_nn::linear(30, 40, vb.pp("model.layers.1")).unwrap();
}
