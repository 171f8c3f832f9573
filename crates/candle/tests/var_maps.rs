//! The variables of a model are saved with a value beside them, and loaded into an empty map or into variables that a
//! model uses.

use std::fs;

use candle_core::{DType, Device, Tensor, Var};
use candle_nn::{Init, Linear, Module, VarBuilder, VarMap};
use serde::{Deserialize, Serialize};
use tenarc::archive::{Compression, SaveOptions};
use tenarc::named::Match;
use tenarc_candle::{Weights, load, load_into, save, save_with};

#[derive(Serialize, Deserialize, Debug, PartialEq)]
struct Config {
    name: String,
    sizes: Vec<usize>,
    mean: tenarc::Tensor<Vec<f32>>,
}

fn config() -> Config {
    Config { name: "mlp".into(), sizes: vec![64, 32, 10], mean: vec![0.5; 64].into() }
}

fn model(variables: &VarMap) -> [Linear; 2] {
    let vb = VarBuilder::from_varmap(variables, DType::F32, &Device::Cpu);
    [
        candle_nn::linear(64, 32, vb.pp("a")).unwrap(),
        candle_nn::linear(32, 10, vb.pp("b.c")).unwrap(),
    ]
}

fn forward([a, b]: &[Linear; 2]) -> Vec<Vec<f32>> {
    let input = Tensor::ones((2, 64), DType::F32, &Device::Cpu).unwrap();
    b.forward(&a.forward(&input).unwrap().relu().unwrap()).unwrap().to_vec2().unwrap()
}

#[test]
fn an_empty_map_gets_all_variables() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.tenarc");
    let variables = VarMap::new();
    let first = model(&variables);
    save(&path, &variables, &config()).unwrap();

    let loaded = VarMap::new();
    assert_eq!(load::<Config>(&path, &loaded, &Device::Cpu).unwrap(), config());
    assert_eq!(loaded.data().lock().unwrap().len(), 4);
    assert_eq!(forward(&model(&loaded)), forward(&first));

    let weights = Weights::open(&path).unwrap().at("variables").unwrap();
    assert_eq!(weights.names(), ["a.bias", "a.weight", "b.c.bias", "b.c.weight"]);
    assert_eq!(forward(&model(&weights.to_var_map(&Device::Cpu).unwrap())), forward(&first));
}

#[test]
fn variables_of_a_model_get_new_values() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.tenarc");
    let variables = VarMap::new();
    let first = model(&variables);
    save(&path, &variables, &config()).unwrap();

    let others = VarMap::new();
    let second = model(&others);
    assert_ne!(forward(&second), forward(&first));
    assert_eq!(load::<Config>(&path, &others, &Device::Cpu).unwrap(), config());
    // The model was built before, and sees the new values.
    assert_eq!(forward(&second), forward(&first));
}

#[test]
fn loaded_variables_can_be_trained() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.tenarc");
    let variables = VarMap::new();
    model(&variables);
    save(&path, &variables, "").unwrap();
    let loaded = VarMap::new();
    load::<String>(&path, &loaded, &Device::Cpu).unwrap();
    let loss = model(&loaded)[0].weight().sqr().unwrap().sum_all().unwrap();
    let grads = loss.backward().unwrap();
    assert!(grads.get(&loaded.data().lock().unwrap()["a.weight"]).is_some());
}

#[test]
fn equal_variables_make_equal_files() {
    let dir = tempfile::tempdir().unwrap();
    let variables = VarMap::new();
    model(&variables);
    // Another map with the same variables has another order.
    let files: Vec<Vec<u8>> = (0..3)
        .map(|number| {
            let map = VarMap::new();
            for (name, var) in variables.data().lock().unwrap().iter() {
                map.data().lock().unwrap().insert(name.clone(), var.clone());
            }
            let path = dir.path().join(number.to_string());
            save(&path, &map, &config()).unwrap();
            std::fs::read(path).unwrap()
        })
        .collect();
    assert!(files.iter().all(|file| *file == files[0]));
}

#[test]
fn names_of_any_form_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.tenarc");
    let variables = VarMap::new();
    for name in ["", "a", "a.b", "a/b", "/x", "7", "weight~1", "ü 1", "a..b"] {
        let var = Var::from_vec(name.as_bytes().to_vec(), name.len(), &Device::Cpu).unwrap();
        variables.data().lock().unwrap().insert(name.to_owned(), var);
    }
    save(&path, &variables, &()).unwrap();
    let loaded = VarMap::new();
    load::<()>(&path, &loaded, &Device::Cpu).unwrap();
    let loaded = loaded.data().lock().unwrap();
    assert_eq!(loaded.len(), 9);
    for (name, var) in loaded.iter() {
        assert_eq!(var.to_vec1::<u8>().unwrap(), name.as_bytes());
    }
}

#[test]
fn an_empty_map_is_saved_too() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.tenarc");
    save(&path, &VarMap::new(), &config()).unwrap();
    let loaded = VarMap::new();
    assert_eq!(load::<Config>(&path, &loaded, &Device::Cpu).unwrap(), config());
    assert!(loaded.all_vars().is_empty());
}

#[test]
fn a_map_is_a_field() {
    #[derive(Serialize, Deserialize)]
    struct Checkpoint {
        step: u64,
        #[serde(with = "tenarc_candle::var_map")]
        model: VarMap,
        #[serde(with = "tenarc_candle::var_map")]
        average: VarMap,
    }
    let checkpoint = Checkpoint { step: 3, model: VarMap::new(), average: VarMap::new() };
    let first = model(&checkpoint.model);
    let average = model(&checkpoint.average);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("checkpoint.tenarc");
    tenarc::save(&path, &checkpoint).unwrap();
    let loaded: Checkpoint = tenarc::load(&path).unwrap();
    assert_eq!(loaded.step, 3);
    assert_eq!(forward(&model(&loaded.model)), forward(&first));
    assert_eq!(forward(&model(&loaded.average)), forward(&average));
}

fn zeros(map: &VarMap, name: &str, shape: &[usize], dtype: DType) {
    map.get(shape, name, Init::Const(0.0), dtype, &Device::Cpu).unwrap();
}

#[test]
fn a_mode_says_what_may_be_missing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.tenarc");
    let variables = VarMap::new();
    zeros(&variables, "both", &[3], DType::F32);
    zeros(&variables, "file", &[4], DType::F32);
    variables.data().lock().unwrap()["both"]
        .set(&Tensor::new(&[1f32, 2.0, 3.0], &Device::Cpu).unwrap())
        .unwrap();
    save(&path, &variables, &1u8).unwrap();

    for (mode, allowed) in [
        (Match::Strict, false),
        (Match::Every, false),
        (Match::Partial, false),
        (Match::Fill, true),
    ] {
        let map = VarMap::new();
        zeros(&map, "both", &[3], DType::F32);
        zeros(&map, "model", &[5], DType::F32);
        let result = load_into::<u8>(&path, &map, mode);
        let both = map.data().lock().unwrap()["both"].to_vec1::<f32>().unwrap();
        if allowed {
            let (meta, unmatched) = result.unwrap();
            assert_eq!(
                (meta, unmatched.missing, unmatched.unexpected),
                (1, vec!["model".into()], vec!["file".into()])
            );
            assert_eq!(both, [1.0, 2.0, 3.0]);
        } else {
            let error = result.unwrap_err().to_string();
            assert!(
                error.contains("`model`")
                    && error.contains("`file`")
                    && error.contains("model.tenarc"),
                "{error}"
            );
            assert_eq!(both, [0.0; 3]);
        }
    }
    // One side only.
    let less = VarMap::new();
    zeros(&less, "both", &[3], DType::F32);
    assert!(load_into::<u8>(&path, &less, Match::Strict).is_err());
    assert!(load_into::<u8>(&path, &less, Match::Partial).is_err());
    assert_eq!(load_into::<u8>(&path, &less, Match::Every).unwrap().1.unexpected, ["file"]);
}

#[test]
fn nothing_is_loaded_if_something_does_not_fit() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.tenarc");
    let variables = VarMap::new();
    for name in ["a", "b"] {
        variables.get(3, name, Init::Const(1.0), DType::F32, &Device::Cpu).unwrap();
    }
    save(&path, &variables, &config()).unwrap();
    for (shape, dtype, found) in [(4, DType::F32, "f32 [4]"), (3, DType::F64, "f64 [3]")] {
        let map = VarMap::new();
        zeros(&map, "a", &[3], DType::F32);
        zeros(&map, "b", &[shape], dtype);
        let error = load::<Config>(&path, &map, &Device::Cpu).unwrap_err().to_string();
        for part in ["at `b`", found, "f32 [3]", "model.tenarc"] {
            assert!(error.contains(part), "{error}");
        }
        assert_eq!(map.data().lock().unwrap()["a"].to_vec1::<f32>().unwrap(), [0.0; 3]);
    }
    // The value beside the variables is read first.
    let map = VarMap::new();
    zeros(&map, "a", &[3], DType::F32);
    zeros(&map, "b", &[3], DType::F32);
    let error = load::<u64>(&path, &map, &Device::Cpu).unwrap_err().to_string();
    assert!(error.contains("meta"), "{error}");
    assert_eq!(map.data().lock().unwrap()["a"].to_vec1::<f32>().unwrap(), [0.0; 3]);
}

#[test]
fn other_files_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("other.tenarc");
    tenarc::save(&path, &config()).unwrap();
    let error = load::<Config>(&path, &VarMap::new(), &Device::Cpu).unwrap_err().to_string();
    assert!(error.contains("variables") && error.contains("other.tenarc"), "{error}");
}

#[test]
fn a_compressed_file_is_loaded() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.tenarc");
    let variables = VarMap::new();
    variables.get(100_000, "a", Init::Const(0.5), DType::F32, &Device::Cpu).unwrap();
    let options = SaveOptions::default().with_compression(Compression::zstd());
    save_with(&path, &variables, &config(), options).unwrap();
    assert!(fs::metadata(&path).unwrap().len() < 50_000);
    let loaded = VarMap::new();
    assert_eq!(load::<Config>(&path, &loaded, &Device::Cpu).unwrap(), config());
    let vars = loaded.data().lock().unwrap();
    assert_eq!(vars["a"].to_vec1::<f32>().unwrap(), vec![0.5; 100_000]);
}
