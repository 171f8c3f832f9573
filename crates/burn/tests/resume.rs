//! A training run that is killed again and again ends like one that was not killed, bit for bit.

#![cfg(unix)]

#[allow(dead_code)] // what only the example uses
#[path = "../examples/resume_burn/digits.rs"]
mod digits;
#[path = "../examples/resume_burn/plain.rs"]
mod plain;
#[path = "../examples/resume_burn/training.rs"]
mod training;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use burn_core::module::ParamId;
use burn_core::tensor::Device;
use burn_nn::loss::CrossEntropyLossConfig;
use burn_optim::decay::WeightDecayConfig;
use burn_optim::{
    AdamConfig, GradientsParams, LBFGS, LBFGSConfig, ModuleOptimizer, OptimizerRecord,
};
use digits::{Digits, Model, Result, Rng, Schedule};
use tenarc::DynTensor;
use tenarc::archive::{Background, Compression, SaveOptions};
use tenarc_burn::{Record, resume_run, save_run, save_run_in_background, save_run_with};
use tenarc_test_support::child;
use tenarc_test_support::lines::changed;
use training::{State, train};

const MOST_STEPS_IN_A_LIFE: u32 = 8;

/// Like [`train`], with saves on another thread.
fn train_in_background(path: &Path, steps: u32, each: fn(&State)) -> Result<(Model, State)> {
    let digits = Digits::load()?;
    let device = Device::flex().autodiff();
    let cross_entropy = CrossEntropyLossConfig::new().init(&device);
    let (model, optimizer) = (Model::new(7, &device), AdamConfig::new().init());
    let schedule = Schedule { peak: 0.01, warmup: 20, length: 500 };
    let state = State { schedule, rng: Rng { state: 8 }, step: 0, losses: Vec::new() };
    let (mut model, mut optimizer, mut state) = resume_run(path, model, optimizer, state)?;
    let mut background = Background::default();
    while state.step < steps {
        let (images, labels) = digits.batch(&mut state.rng, 32, &device);
        let loss = cross_entropy.forward(model.forward(images), labels);
        let gradients = GradientsParams::from_grads(loss.backward(), &model);
        model = optimizer.step(state.schedule.at(state.step), model, gradients);
        state.losses.push(loss.into_scalar());
        state.step += 1;
        let options = SaveOptions::default();
        save_run_in_background(&mut background, path, &model, &optimizer, &state, options)?;
        each(&state);
    }
    background.wait()?;
    Ok((model, state))
}

/// Whether a step waits for its save.
#[derive(Clone, Copy, PartialEq)]
enum Saving {
    InTurn,
    InBackground,
}

#[test]
fn a_run_killed_ten_times_ends_like_others() {
    killed_runs_end_like_others("a_run_killed_ten_times_ends_like_others", 10, Saving::InTurn);
}

#[test]
fn a_run_that_saves_in_the_background_and_is_killed_ends_like_others() {
    let name = "a_run_that_saves_in_the_background_and_is_killed_ends_like_others";
    killed_runs_end_like_others(name, 10, Saving::InBackground);
}

#[test]
#[ignore = "takes a quarter of a minute"]
fn a_run_killed_a_hundred_times_ends_like_others() {
    let name = "a_run_killed_a_hundred_times_ends_like_others";
    killed_runs_end_like_others(name, 100, Saving::InTurn);
}

fn killed_runs_end_like_others(test: &str, kills: u32, saving: Saving) {
    let steps = kills * MOST_STEPS_IN_A_LIFE + 5;
    if let Some((_, dir)) = child::role() {
        let (path, tell) = (dir.join("killed"), |state: &State| println!("step {}", state.step));
        match saving {
            Saving::InTurn => train(&path, steps, tell).unwrap(),
            Saving::InBackground => train_in_background(&path, steps, tell).unwrap(),
        };
        return;
    }
    // The last step may not be saved yet.
    let unsaved = u32::from(saving == Saving::InBackground);
    let dir = child::fast_dir();
    let (whole, killed) = (dir.path().join("whole"), dir.path().join("killed"));
    let (_, expected) = train(&whole, steps, |_| {}).unwrap();

    let mut rng = Rng { state: 1 };
    for life in 0..kills {
        let more = usize::try_from(1 + rng.number() % u64::from(MOST_STEPS_IN_A_LIFE)).unwrap();
        // Up to two milliseconds later: in the middle of a step, or of a save.
        let last = child::killed_after(
            &mut command(test, dir.path()),
            more,
            Duration::from_micros(rng.number() % 2000),
        );
        let step = || tenarc::open(&killed).unwrap().get("rest.step").unwrap();
        let saved: u32 = if killed.exists() { step() } else { 0 };
        assert!(saved + unsaved >= last, "life {life}: step {saved} in the file after step {last}");
        assert!(saved < steps);
    }

    let output = command(test, dir.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let found: State = tenarc::open(&killed).unwrap().get("rest").unwrap();
    assert_eq!((found.step, found.rng.state), (steps, expected.rng.state));
    assert_eq!(bits(&found.losses), bits(&expected.losses));
    assert!(found.losses.iter().rev().take(20).sum::<f32>() < found.losses.iter().take(20).sum());
    let tensors = tensors(&killed);
    assert_eq!(tensors, self::tensors(&whole));
    // The moments of Adam are tensors by the paths of the parameters.
    let names: Vec<_> = tensors.keys().filter(|name| name.contains("hidden.weight")).collect();
    assert_eq!(
        names,
        [
            "module.tensors.hidden.weight",
            "optimizer.hidden.weight.tensors.momentum.moment_1",
            "optimizer.hidden.weight.tensors.momentum.moment_2",
        ]
    );
    let number = "optimizer.hidden.weight.numbers.momentum.time";
    assert_eq!(tenarc::open(&killed).unwrap().get::<u32>(number).unwrap(), steps);
}

fn command(test: &str, dir: &Path) -> Command {
    let mut command = child::command(&[], test, "train", dir);
    command.arg("--include-ignored");
    command
}

fn bits(losses: &[f32]) -> Vec<u32> {
    losses.iter().map(|loss| loss.to_bits()).collect()
}

/// The bytes of all tensors in the file, by their paths.
fn tensors(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let archive = tenarc::open(path).unwrap();
    let content = |info: tenarc::tensor::TensorInfo| {
        let tensor: DynTensor = archive.tensor(info.path()).unwrap();
        (info.path().to_owned(), tensor.le_bytes().into_owned())
    };
    archive.tensors().unwrap().into_iter().map(content).collect()
}

#[test]
fn the_program_without_checkpoints_ends_alike_and_differs_in_few_lines() {
    let dir = child::fast_dir();
    let (model, state) = train(&dir.path().join("run"), 20, |_| {}).unwrap();
    let (plain, expected) = plain::train(20, |_| {}).unwrap();
    assert_eq!(bits(&state.losses), bits(&expected.losses));
    assert_eq!((state.step, state.rng.state), (expected.step, expected.rng.state));
    assert_eq!(expected.schedule.length, state.schedule.length);
    let weights = |model: &Model| model.output.weight.val().to_data();
    assert_eq!(weights(&model), weights(&plain));

    let [with, without] = [
        include_str!("../examples/resume_burn/training.rs"),
        include_str!("../examples/resume_burn/plain.rs"),
    ];
    let new = changed(with, without);
    assert!((3..=5).contains(&new), "{new} lines are new or changed");
    // Nothing else was left out.
    assert!(changed(without, with) <= 3);
}

/// Without this, the test of killed runs could pass although the state is not used.
#[test]
fn a_run_that_lost_part_of_its_state_ends_differently() {
    let dir = child::fast_dir();
    let (_, whole) = train(&dir.path().join("whole"), 20, |_| {}).unwrap();
    let changes: [fn(&mut Model, &mut ModuleOptimizer, &mut State); 5] = [
        |_, _, state| state.rng.state += 1,
        |_, _, state| state.schedule.peak *= 2.0,
        |_, optimizer, _| *optimizer = AdamConfig::new().init(),
        |model, _, _| *model = Model::new(7, &model.output.weight.val().device()),
        // The state of a parameter is found by its id.
        |model, _, _| model.hidden.weight.id = ParamId::new(),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let path = dir.path().join("changed");
        train(&path, 10, |_| {}).unwrap();
        let device = Device::flex().autodiff();
        let new = (Model::new(1, &device), AdamConfig::new().init());
        let state: State = tenarc::open(&path).unwrap().get("rest").unwrap();
        let (mut model, mut optimizer, mut state) = resume_run(&path, new.0, new.1, state).unwrap();
        change(&mut model, &mut optimizer, &mut state);
        save_run(&path, &model, &optimizer, &state).unwrap();
        let (_, found) = train(&path, 20, |_| {}).unwrap();
        assert_eq!(found.losses[..10], whole.losses[..10]);
        assert_ne!(found.losses[10..], whole.losses[10..], "change {number}");
        fs::remove_file(path).unwrap();
    }
}

#[test]
fn only_the_moments_are_compressed() {
    let dir = child::fast_dir();
    let path = dir.path().join("run");
    let (_, state) = train(&path, 3, |_| {}).unwrap();
    let before = tensors(&path);
    let device = Device::flex().autodiff();
    let resume = || {
        let new = (Model::new(1, &device), AdamConfig::new().init());
        resume_run(&path, new.0, new.1, state.clone()).unwrap()
    };
    let (model, optimizer, _) = resume();
    let options = SaveOptions::default().with_compression_by(|tensor| {
        tensor.path().starts_with("optimizer.").then(Compression::zstd)
    });
    save_run_with(&path, &model, &optimizer, &state, options).unwrap();

    let archive = tenarc::open(&path).unwrap();
    let value = archive.only().unwrap();
    let is_compressed = |path: &str| {
        let buffer = value.info(path).unwrap().buffer().unwrap();
        value.compressed(usize::try_from(buffer).unwrap()).is_some()
    };
    assert!(!is_compressed("module.tensors.hidden.weight"));
    assert!(is_compressed("optimizer.hidden.weight.tensors.momentum.moment_1"));
    assert!(tensors(&path) == before);
    let (model, optimizer, _) = resume();
    save_run(&path, &model, &optimizer, &state).unwrap();
    assert!(tensors(&path) == before);
}

/// Two steps from the same file, with other configurations of the optimizer.
#[test]
fn the_configuration_of_the_given_optimizer_is_used() {
    let dir = child::fast_dir();
    let path = dir.path().join("run");
    let (_, state) = train(&path, 3, |_| {}).unwrap();
    let device = Device::flex().autodiff();
    let digits = Digits::load().unwrap();
    let weights = [None, Some(0.5)].map(|decay: Option<f32>| {
        let config = AdamConfig::new().with_weight_decay(decay.map(WeightDecayConfig::new));
        let (model, mut optimizer, mut state) =
            resume_run(&path, Model::new(1, &device), config.init(), state.clone()).unwrap();
        let (images, _) = digits.batch(&mut state.rng, 8, &device);
        let loss = model.forward(images).sum();
        let gradients = GradientsParams::from_grads(loss.backward(), &model);
        optimizer.step(0.01, model, gradients).output.weight.val().to_data()
    });
    assert_ne!(weights[0], weights[1]);
}

/// Its state belongs to no parameter.
#[test]
fn the_record_of_lbfgs_comes_back() {
    let device = Device::flex().autodiff();
    let digits = Digits::load().unwrap();
    let (images, labels) = digits.batch(&mut Rng { state: 3 }, 8, &device);
    let step = |optimizer: &mut LBFGS, model: Model| {
        optimizer.step(0.1, model, |model: Model| {
            let loss = CrossEntropyLossConfig::new()
                .init(&device)
                .forward(model.forward(images.clone()), labels.clone());
            let gradients = GradientsParams::from_grads(loss.backward(), &model);
            (loss.into_scalar(), gradients)
        })
    };
    let mut optimizer = LBFGSConfig::new().with_max_iter(4).init();
    let (model, before) = step(&mut optimizer, Model::new(1, &device));

    let bytes = tenarc::to_vec(&Record::new(optimizer.to_record()).unwrap()).unwrap();
    let record: Record<OptimizerRecord> = tenarc::from_slice(&bytes).unwrap();
    assert!(tenarc::to_vec(&record).unwrap() == bytes);
    let mut loaded =
        LBFGSConfig::new().with_max_iter(4).init().load_record(record.into_inner().unwrap());
    let mut fresh = LBFGSConfig::new().with_max_iter(4).init();

    let [expected, found, without] = [&mut optimizer, &mut loaded, &mut fresh].map(|optimizer| {
        let (model, _) = step(optimizer, model.clone());
        model.output.weight.val().to_data()
    });
    assert_eq!(found, expected);
    // Without this, the test could pass although the state is not used.
    assert_ne!(without, expected);
    assert!(before.is_finite());
}

/// Trains three steps, saves, resumes, and trains three more, with each backend.
#[test]
fn a_run_resumes_on_both_backends() {
    #[allow(deprecated)] // burn-ndarray is, but programs use it
    let devices = [Device::flex().autodiff(), Device::ndarray().autodiff()];
    let dir = child::fast_dir();
    let digits = Digits::load().unwrap();
    for (number, device) in devices.iter().enumerate() {
        let cross_entropy = CrossEntropyLossConfig::new().init(device);
        let step = |model: Model, optimizer: &mut ModuleOptimizer, rng: &mut Rng| {
            let (images, labels) = digits.batch(rng, 8, device);
            let loss = cross_entropy.forward(model.forward(images), labels);
            let gradients = GradientsParams::from_grads(loss.backward(), &model);
            optimizer.step(0.01, model, gradients)
        };
        let (mut model, mut optimizer) = (Model::new(7, device), AdamConfig::new().init());
        let mut rng = Rng { state: 8 };
        for _ in 0..3 {
            model = step(model, &mut optimizer, &mut rng);
        }
        let path = dir.path().join(format!("run-{number}"));
        save_run(&path, &model, &optimizer, &rng).unwrap();

        let new = (Model::new(1, device), AdamConfig::new().init());
        let (mut resumed, mut of_resumed, mut drawn) =
            resume_run(&path, new.0, new.1, Rng { state: 0 }).unwrap();
        assert_eq!(drawn.state, rng.state);
        for _ in 0..3 {
            model = step(model, &mut optimizer, &mut rng);
            resumed = step(resumed, &mut of_resumed, &mut drawn);
        }
        let ends = [(&model, &optimizer, &rng), (&resumed, &of_resumed, &drawn)].map(
            |(model, optimizer, rng)| {
                let path = dir.path().join("end");
                save_run(&path, model, optimizer, rng).unwrap();
                tensors(&path)
            },
        );
        assert_eq!(ends[0], ends[1]);
        assert_ne!(ends[0], tensors(&path));
    }
}
