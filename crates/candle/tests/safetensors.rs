//! Files of safetensors are read by the same builder, with the tensors that candle's own loader reads.

use std::collections::HashMap;

use candle_core::{DType, Device, Tensor};
use candle_nn::VarMap;
use candle_nn::var_builder::VarBuilder;
use tenarc::named::Match;
use tenarc_candle::Weights;

fn tensors() -> HashMap<String, Tensor> {
    let range = |dtype| {
        Tensor::arange(-6i64, 6, &Device::Cpu)
            .unwrap()
            .reshape((3, 4))
            .unwrap()
            .to_dtype(dtype)
            .unwrap()
    };
    HashMap::from([
        ("embed.weight".to_owned(), range(DType::F32)),
        ("layers.0.weight".to_owned(), range(DType::BF16)),
        ("layers.0.bias".to_owned(), range(DType::F16)),
        ("layers.0.scale".to_owned(), range(DType::F8E4M3)),
        ("positions".to_owned(), range(DType::I64)),
    ])
}

#[test]
fn the_builder_gives_what_candles_own_gives() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.safetensors");
    candle_core::safetensors::save(&tensors(), &path).unwrap();

    for dtype in [DType::F32, DType::BF16, DType::F64] {
        // candle 0.11.1 overflows the stack if it converts this one to f64.
        let names = if dtype == DType::F64 {
            &["weight", "bias"][..]
        } else {
            &["weight", "bias", "scale"]
        };
        let bytes = std::fs::read(&path).unwrap();
        let theirs = VarBuilder::from_buffered_safetensors(bytes, dtype, &Device::Cpu).unwrap();
        let ours = Weights::open_safetensors(&path).unwrap().var_builder(dtype, &Device::Cpu);
        for name in names {
            let [ours, theirs] =
                [&ours, &theirs].map(|vb| vb.pp("layers").pp(0).get((3, 4), name).unwrap());
            assert_eq!(ours.dtype(), dtype);
            let as_f64 =
                |tensor: Tensor| tensor.to_dtype(DType::F64).unwrap().to_vec2::<f64>().unwrap();
            assert_eq!(as_f64(ours), as_f64(theirs), "{name} as {dtype:?}");
        }
    }
}

#[test]
fn variables_are_loaded_from_them() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.safetensors");
    candle_core::safetensors::save(&tensors(), &path).unwrap();
    let weights = Weights::open_safetensors(&path).unwrap();
    assert_eq!(weights.names().len(), 5);

    let variables = VarMap::new();
    weights.load_into(&variables, Match::Strict).unwrap();
    let vars = variables.data().lock().unwrap();
    assert_eq!(vars["positions"].to_vec2::<i64>().unwrap()[0], [-6, -5, -4, -3]);
    assert_eq!(vars["layers.0.weight"].dtype(), DType::BF16);
    drop(vars);

    let layer = Weights::open_safetensors(&path).unwrap().at("layers.0").unwrap();
    assert_eq!(layer.names(), ["bias", "scale", "weight"]);
}

#[test]
fn errors_name_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.safetensors");
    candle_core::safetensors::save(&tensors(), &path).unwrap();
    let vb = Weights::open_safetensors(&path).unwrap().var_builder(DType::F32, &Device::Cpu);
    let error = vb.get((4, 3), "layers.0.weight").unwrap_err().to_string();
    for part in ["layers.0.weight", "model.safetensors", "[4, 3]", "[3, 4]"] {
        assert!(error.contains(part), "{error}");
    }
    assert!(
        vb.get((4, 3), "layers.0.weights").unwrap_err().to_string().contains("cannot find tensor")
    );
}

#[test]
fn a_model_of_two_files_is_one_model() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second): (HashMap<_, _>, HashMap<_, _>) =
        tensors().into_iter().partition(|(name, _)| name.starts_with("layers"));
    let mut places = serde_json::Map::new();
    for (tensors, name) in [(first, "model-1.safetensors"), (second, "model-2.safetensors")] {
        candle_core::safetensors::save(&tensors, dir.path().join(name)).unwrap();
        places.extend(tensors.into_keys().map(|tensor| (tensor, name.into())));
    }
    let index = dir.path().join("model.safetensors.index.json");
    std::fs::write(&index, serde_json::json!({ "weight_map": places }).to_string()).unwrap();

    let weights = Weights::open_sharded_safetensors(&index).unwrap();
    assert_eq!(weights.names().len(), 5);
    let vb = weights.var_builder(DType::F32, &Device::Cpu);
    let [bias, embed] = ["layers.0.bias", "embed.weight"].map(|name| vb.get((3, 4), name).unwrap());
    for tensor in [bias, embed] {
        assert_eq!(tensor.to_vec2::<f32>().unwrap()[0], [-6.0, -5.0, -4.0, -3.0]);
    }

    std::fs::remove_file(dir.path().join("model-2.safetensors")).unwrap();
    let error = Weights::open_sharded_safetensors(&index).unwrap_err().to_string();
    assert!(error.contains("model-2.safetensors"), "{error}");
}

#[test]
fn a_file_in_memory_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.safetensors");
    candle_core::safetensors::save(&tensors(), &path).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let file = tenarc_convert::safetensors::SafeTensors::new(&bytes[..]).unwrap();
    let weights = Weights::of_safetensors(file).unwrap();
    let positions = weights.tensor("positions").unwrap();
    assert_eq!(positions.to_vec2::<i64>().unwrap()[2], [2, 3, 4, 5]);
}
