//! The optimizers compute what candle's compute, bit for bit, also after they were saved and loaded at any step.

#![allow(clippy::cast_precision_loss, clippy::float_cmp)] // small numbers, compared exactly

use candle_core::{DType, Device, Tensor, Var};
use candle_nn::{AdamW as CandleAdamW, Init, Optimizer, ParamsAdamW, SGD, VarMap};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tenarc_candle::{AdamW, ParamsSgd, Sgd};

const STEPS: usize = 40;

/// Two variables of different shapes. The values are far from round.
fn variables(dtype: DType) -> VarMap {
    let map = VarMap::new();
    for (name, shape, seed) in [("first", vec![7, 5], 0.3), ("second", vec![5], 0.7)] {
        let count: usize = shape.iter().product();
        let values: Vec<f64> = (0..count).map(|i| ((i as f64 + seed) * 12.9898).sin()).collect();
        let tensor =
            Tensor::from_vec(values, shape, &Device::Cpu).unwrap().to_dtype(dtype).unwrap();
        map.data().lock().unwrap().insert(name.to_owned(), Var::from_tensor(&tensor).unwrap());
    }
    map
}

fn get(map: &VarMap, name: &str) -> Tensor {
    map.data().lock().unwrap()[name].as_tensor().clone()
}

/// A loss whose gradients differ from step to step. In some steps, `second` has no gradient.
fn loss(map: &VarMap, step: usize) -> Tensor {
    let (first, second) = (get(map, "first"), get(map, "second"));
    let scaled = first.sin().unwrap().affine(1.0 + step as f64 * 0.1, 0.01).unwrap();
    let product = if step % 3 == 1 { scaled } else { scaled.broadcast_mul(&second).unwrap() };
    product.sqr().unwrap().sum_all().unwrap()
}

fn bits(map: &VarMap) -> Vec<Vec<u64>> {
    ["first", "second"]
        .map(|name| {
            let tensor = get(map, name).to_dtype(DType::F64).unwrap().flatten_all().unwrap();
            tensor.to_vec1::<f64>().unwrap().into_iter().map(f64::to_bits).collect()
        })
        .to_vec()
}

/// Runs an optimizer, and returns the variables after every step.
fn run(dtype: DType, mut step: impl FnMut(&VarMap, usize)) -> Vec<Vec<Vec<u64>>> {
    let map = variables(dtype);
    (0..STEPS)
        .map(|number| {
            step(&map, number);
            bits(&map)
        })
        .collect()
}

fn run_with<O: Optimizer>(dtype: DType, make: impl Fn(&VarMap) -> O) -> Vec<Vec<Vec<u64>>> {
    let mut optimizer = None;
    run(dtype, |map, step| {
        let optimizer = optimizer.get_or_insert_with(|| make(map));
        if step == 25 {
            optimizer.set_learning_rate(0.003);
        }
        optimizer.backward_step(&loss(map, step)).unwrap();
    })
}

/// Like [`run_with`], but saves and loads the optimizer after every step.
fn run_resumed<O: Optimizer + Serialize + DeserializeOwned>(
    dtype: DType,
    make: impl Fn(&VarMap) -> O,
    bind: impl Fn(&mut O, &VarMap),
) -> Vec<Vec<Vec<u64>>> {
    let mut saved = Vec::new();
    run(dtype, |map, step| {
        let mut optimizer = if step == 0 {
            make(map)
        } else {
            let mut optimizer = tenarc::from_slice(&saved).unwrap();
            bind(&mut optimizer, map);
            optimizer
        };
        if step == 25 {
            optimizer.set_learning_rate(0.003);
        }
        optimizer.backward_step(&loss(map, step)).unwrap();
        saved = tenarc::to_vec(&optimizer).unwrap();
    })
}

fn params() -> ParamsAdamW {
    ParamsAdamW { lr: 0.017, beta1: 0.87, beta2: 0.991, eps: 1e-7, weight_decay: 0.03 }
}

#[test]
fn adamw_is_candles_bit_for_bit() {
    for dtype in [DType::F32, DType::F64, DType::BF16, DType::F16] {
        let candle = run_with(dtype, |map| CandleAdamW::new(map.all_vars(), params()).unwrap());
        assert_ne!(candle[0], candle[STEPS - 1]);
        let make = |map: &VarMap| AdamW::for_vars(map, params()).unwrap();
        assert_eq!(run_with(dtype, make), candle);
        assert_eq!(run_with(dtype, |map| AdamW::new(map.all_vars(), params()).unwrap()), candle);
        assert_eq!(run_resumed(dtype, make, |adam, map| adam.bind(map).unwrap()), candle);
    }
}

#[test]
fn sgd_without_momentum_is_candles_bit_for_bit() {
    for dtype in [DType::F32, DType::F64, DType::BF16] {
        let candle = run_with(dtype, |map| SGD::new(map.all_vars(), 0.01).unwrap());
        let params = ParamsSgd { lr: 0.01, ..ParamsSgd::default() };
        let make = |map: &VarMap| Sgd::for_vars(map, params.clone()).unwrap();
        assert_eq!(run_with(dtype, make), candle);
        assert_eq!(run_resumed(dtype, make, |sgd, map| sgd.bind(map).unwrap()), candle);
    }
}

/// The definition in the documentation of `torch.optim.SGD`, number by number.
#[test]
fn sgd_with_momentum_is_pytorchs() {
    let cases = [
        (0.9, 0.0, 0.0, false),
        (0.8, 0.1, 0.05, false),
        (0.9, 0.0, 0.01, true),
        (0.0, 0.0, 0.1, false),
    ];
    for (momentum, dampening, weight_decay, nesterov) in cases {
        let params = ParamsSgd { lr: 0.01, momentum, dampening, weight_decay, nesterov };
        let make = |map: &VarMap| Sgd::for_vars(map, params.clone()).unwrap();
        let found = run_with(DType::F64, make);
        assert_eq!(run_resumed(DType::F64, make, |sgd, map| sgd.bind(map).unwrap()), found);

        let mut velocities: [Option<Vec<f64>>; 2] = [None, None];
        let expected = run(DType::F64, |map, step| {
            let lr = if step >= 25 { 0.003 } else { 0.01 };
            let grads = loss(map, step).backward().unwrap();
            for (name, velocity) in ["first", "second"].into_iter().zip(&mut velocities) {
                let var = map.data().lock().unwrap()[name].clone();
                let Some(grad) = grads.get(&var) else { continue };
                let grad = grad.flatten_all().unwrap().to_vec1::<f64>().unwrap();
                let theta = var.flatten_all().unwrap().to_vec1::<f64>().unwrap();
                let mut d: Vec<f64> =
                    grad.iter().zip(&theta).map(|(g, t)| g + weight_decay * t).collect();
                if momentum != 0.0 {
                    let next = match velocity.take() {
                        None => d.clone(),
                        Some(v) => v
                            .iter()
                            .zip(&d)
                            .map(|(v, d)| momentum * v + (1.0 - dampening) * d)
                            .collect(),
                    };
                    if nesterov {
                        d.iter_mut().zip(&next).for_each(|(d, v)| *d += momentum * v);
                    } else {
                        d.clone_from(&next);
                    }
                    *velocity = Some(next);
                }
                let next: Vec<f64> = theta.iter().zip(&d).map(|(t, d)| t - lr * d).collect();
                var.set(&Tensor::from_vec(next, var.dims(), &Device::Cpu).unwrap()).unwrap();
            }
        });
        for (found, expected) in
            found.iter().flatten().flatten().zip(expected.iter().flatten().flatten())
        {
            let [found, expected] = [found, expected].map(|bits| f64::from_bits(*bits));
            assert!((found - expected).abs() < 1e-12, "{params:?}: {found} is not {expected}");
        }
    }
}

#[test]
fn what_is_saved_has_names() {
    let map = variables(DType::F32);
    let mut adam = AdamW::for_vars(&map, params()).unwrap();
    adam.backward_step(&loss(&map, 1)).unwrap(); // without a gradient of `second`
    assert_eq!(adam.moments().keys().collect::<Vec<_>>(), ["first"]);
    adam.backward_step(&loss(&map, 2)).unwrap();
    let json = serde_json::to_value(&adam).unwrap();
    assert_eq!(json["step"], 2);
    assert_eq!(json["params"]["beta1"], 0.87);
    assert_eq!(json["moments"]["second"]["first"]["shape"], serde_json::json!([5]));
}

#[test]
fn integers_are_left_out() {
    let map = variables(DType::F32);
    map.get(3, "counter", Init::Const(1.0), DType::I64, &Device::Cpu).unwrap();
    let mut adam = AdamW::for_vars(&map, params()).unwrap();
    adam.backward_step(&loss(&map, 0)).unwrap();
    assert_eq!(adam.moments().len(), 2);
}

#[test]
fn an_optimizer_without_names_is_not_saved() {
    let map = variables(DType::F32);
    let adam = AdamW::new(map.all_vars(), params()).unwrap();
    let sgd = Sgd::new(map.all_vars(), ParamsSgd::default()).unwrap();
    for result in [tenarc::to_vec(&adam), tenarc::to_vec(&sgd)] {
        assert!(result.unwrap_err().to_string().contains("make it with `for_vars`"));
    }
}

#[test]
fn a_loaded_optimizer_does_not_step_without_variables() {
    let map = variables(DType::F32);
    let mut adam = AdamW::for_vars(&map, params()).unwrap();
    adam.backward_step(&loss(&map, 0)).unwrap();
    let mut loaded: AdamW = tenarc::from_slice(&tenarc::to_vec(&adam).unwrap()).unwrap();
    let before = bits(&map);
    let error = loaded.backward_step(&loss(&map, 0)).unwrap_err().to_string();
    assert!(error.contains("call `bind` first"), "{error}");
    assert_eq!((bits(&map), loaded.step_count()), (before, 1));
}

#[test]
fn a_state_that_does_not_fit_is_refused() {
    let map = variables(DType::F32);
    let mut adam = AdamW::for_vars(&map, params()).unwrap();
    adam.backward_step(&loss(&map, 0)).unwrap();
    let mut sgd = Sgd::for_vars(&map, ParamsSgd { momentum: 0.9, ..ParamsSgd::default() }).unwrap();
    sgd.backward_step(&loss(&map, 0)).unwrap();
    let cpu = &Device::Cpu;

    let lacks = VarMap::new();
    lacks.get((7, 5), "first", Init::Const(1.0), DType::F32, cpu).unwrap();
    let shape = VarMap::new();
    shape.get((7, 5), "first", Init::Const(1.0), DType::F32, cpu).unwrap();
    shape.get(6, "second", Init::Const(1.0), DType::F32, cpu).unwrap();
    let cases = [
        (lacks, vec!["`second`", "no such variable"]),
        (shape, vec!["`second`", "f32 [5]", "f32 [6]"]),
        (variables(DType::F64), vec!["`first`", "f32 [7, 5]", "f64 [7, 5]"]),
    ];
    for (map, parts) in cases {
        for error in [adam.bind(&map).unwrap_err(), sgd.bind(&map).unwrap_err()] {
            let error = error.to_string();
            assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        }
    }
    // It still has its first variables.
    adam.backward_step(&loss(&map, 0)).unwrap();

    let var = Var::zeros(3, DType::F32, cpu).unwrap();
    let twice = [("a".to_owned(), var.clone()), ("a".to_owned(), var)];
    let error = AdamW::for_named(twice, params()).unwrap_err().to_string();
    assert!(error.contains("two variables named `a`"), "{error}");
}
