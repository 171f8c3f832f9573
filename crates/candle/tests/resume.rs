//! A training run that is killed again and again ends like one that was not killed, bit for bit.

#![cfg(unix)]

#[allow(dead_code)] // what only the example uses
#[path = "../examples/resume_candle/digits.rs"]
mod digits;
#[path = "../examples/resume_candle/plain.rs"]
mod plain;
#[path = "../examples/resume_candle/training.rs"]
mod training;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use candle_core::{Tensor, Var};
use candle_nn::{Optimizer as _, ParamsAdamW, VarMap, loss};
use digits::{Digits, Model, Result, Rng, Schedule};
use tenarc::archive::{Background, Compression, SaveOptions};
use tenarc_candle::{AdamW, resume_run, save_run, save_run_in_background, save_run_with};
use tenarc_test_support::child;
use tenarc_test_support::lines::changed;
use training::State;

const MOST_STEPS_IN_A_LIFE: u32 = 8;

fn train(path: &Path, steps: u32, each: impl FnMut(&State)) -> Result<(Model, State)> {
    training::train(path.to_str().unwrap(), steps, each)
}

/// Like [`train`], with saves on another thread.
fn train_in_background(path: &Path, steps: u32, each: fn(&State)) -> Result<(Model, State)> {
    let digits = Digits::load()?;
    let model = Model::new(7)?;
    let optimizer = AdamW::for_vars(&model.variables, ParamsAdamW::default())?;
    let schedule = Schedule { peak: 0.01, warmup: 20, length: 500 };
    let state = State { schedule, rng: Rng { state: 8 }, step: 0, losses: Vec::new() };
    let (mut optimizer, mut state) = resume_run(path, &model.variables, optimizer, state)?;
    let mut background = Background::default();
    while state.step < steps {
        let (images, labels) = digits.batch(&mut state.rng, 32)?;
        let loss = loss::cross_entropy(&model.forward(&images)?, &labels)?;
        optimizer.set_learning_rate(state.schedule.at(state.step));
        optimizer.backward_step(&loss)?;
        state.losses.push(loss.to_scalar()?);
        state.step += 1;
        let options = SaveOptions::default();
        save_run_in_background(
            &mut background,
            path,
            &model.variables,
            &optimizer,
            &state,
            options,
        )?;
        each(&state);
    }
    background.wait()?;
    Ok((model, state))
}

/// What is in the file beside the variables and the optimizer.
fn state(path: &Path) -> State {
    tenarc::open(path).unwrap().get("rest").unwrap()
}

fn bits(losses: &[f32]) -> Vec<u32> {
    losses.iter().map(|loss| loss.to_bits()).collect()
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
    train(&whole, steps, |_| {}).unwrap();

    let mut rng = Rng { state: 1 };
    for life in 0..kills {
        let more = usize::try_from(1 + rng.number() % u64::from(MOST_STEPS_IN_A_LIFE)).unwrap();
        // Up to two milliseconds later: in the middle of a step, or of a save.
        let last = child::killed_after(
            &mut command(test, dir.path()),
            more,
            Duration::from_micros(rng.number() % 2000),
        );
        let saved = if killed.exists() { state(&killed).step } else { 0 };
        assert!(saved + unsaved >= last, "life {life}: step {saved} in the file after step {last}");
        assert!(saved < steps);
    }

    let output = command(test, dir.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let [expected, found] = [&whole, &killed].map(|path| state(path));
    assert_eq!(found.step, steps);
    assert_eq!(bits(&found.losses), bits(&expected.losses));
    assert!(found.losses.iter().rev().take(20).sum::<f32>() < found.losses.iter().take(20).sum());
    assert_eq!(found.rng.state, expected.rng.state);
    // Equal values make equal files: this compares the weights, the moments and everything else.
    assert!(fs::read(&whole).unwrap() == fs::read(&killed).unwrap(), "the files differ");
}

fn command(test: &str, dir: &Path) -> Command {
    let mut command = child::command(&[], test, "train", dir);
    command.arg("--include-ignored");
    command
}

#[test]
fn the_program_without_checkpoints_ends_alike_and_differs_in_few_lines() {
    let dir = child::fast_dir();
    let (model, state) = train(&dir.path().join("run"), 20, |_| {}).unwrap();
    let (plain, expected) = plain::train(20, |_| {}).unwrap();
    assert_eq!(bits(&state.losses), bits(&expected.losses));
    assert_eq!((state.step, state.rng.state), (expected.step, expected.rng.state));
    assert_eq!(expected.schedule.length, state.schedule.length);
    let weights = |variables: &VarMap| -> Vec<Vec<u32>> {
        let vars = variables.data().lock().unwrap();
        let names = ["hidden.weight", "hidden.bias", "output.weight", "output.bias"];
        let flat = |name| vars[name].flatten_all().unwrap().to_vec1::<f32>().unwrap();
        names.map(|name| bits(&flat(name))).to_vec()
    };
    assert_eq!(weights(&model.variables), weights(&plain.variables));

    let [with, without] = [
        include_str!("../examples/resume_candle/training.rs"),
        include_str!("../examples/resume_candle/plain.rs"),
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
    let changes: [fn(&mut Model, &mut AdamW, &mut State); 4] = [
        |_, _, state| state.rng.state += 1,
        |_, _, state| state.schedule.peak *= 2.0,
        |model, optimizer, _| {
            *optimizer = AdamW::for_vars(&model.variables, ParamsAdamW::default()).unwrap();
        },
        |model, _, _| {
            let variables = model.variables.data().lock().unwrap();
            let bias = &variables["hidden.bias"];
            bias.set(&Tensor::zeros_like(bias).unwrap()).unwrap();
        },
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let path = dir.path().join("changed");
        train(&path, 10, |_| {}).unwrap();
        let mut model = Model::new(1).unwrap();
        let optimizer = AdamW::for_vars(&model.variables, ParamsAdamW::default()).unwrap();
        let (mut optimizer, mut state) =
            resume_run(&path, &model.variables, optimizer, state(&path)).unwrap();
        change(&mut model, &mut optimizer, &mut state);
        save_run(&path, &model.variables, &optimizer, &state).unwrap();
        let (_, found) = train(&path, 20, |_| {}).unwrap();
        assert_eq!(found.losses[..10], whole.losses[..10]);
        assert_ne!(found.losses[10..], whole.losses[10..], "change {number}");
        fs::remove_file(path).unwrap();
    }
}

#[test]
fn a_file_that_does_not_fit_changes_no_variable() {
    let dir = child::fast_dir();
    let path = dir.path().join("run");
    train(&path, 3, |_| {}).unwrap();
    let optimizer =
        |model: &Model| AdamW::for_vars(&model.variables, ParamsAdamW::default()).unwrap();
    let weight = |model: &Model| {
        let variables = model.variables.data().lock().unwrap();
        bits(&variables["output.bias"].to_vec1::<f32>().unwrap())
    };
    let model = Model::new(1).unwrap();
    let before = weight(&model);
    // A value of another type, an optimizer with other variables, and one variable too many.
    let error = resume_run(&path, &model.variables, optimizer(&model), 0u32).unwrap_err();
    assert!(error.to_string().contains("rest"), "{error}");
    let hidden = model.variables.data().lock().unwrap().remove("hidden.bias").unwrap();
    let state = state(&path);
    let error = resume_run(&path, &model.variables, optimizer(&model), state.clone()).unwrap_err();
    assert!(error.to_string().contains("no such variable"), "{error}");
    for (name, is_expected) in [("more", false), ("hidden.bias", true)] {
        model.variables.data().lock().unwrap().insert("hidden.bias".into(), hidden.clone());
        model.variables.data().lock().unwrap().insert(name.into(), hidden.clone());
        let found = resume_run(&path, &model.variables, optimizer(&model), state.clone());
        assert_eq!(found.is_ok(), is_expected, "{name}");
        assert_eq!(weight(&model) != before, is_expected, "{name}");
        model.variables.data().lock().unwrap().remove("more");
    }
}

#[test]
fn a_damaged_file_changes_no_variable() {
    let dir = child::fast_dir();
    let path = dir.path().join("run");
    train(&path, 3, |_| {}).unwrap();
    let model = Model::new(1).unwrap();
    let weights = || -> BTreeMap<String, Vec<u32>> {
        let variables = model.variables.data().lock().unwrap();
        let flat = |var: &Var| bits(&var.flatten_all().unwrap().to_vec1::<f32>().unwrap());
        variables.iter().map(|(name, var)| (name.clone(), flat(var))).collect()
    };
    let before = weights();
    let resume = || {
        let optimizer = AdamW::for_vars(&model.variables, ParamsAdamW::default()).unwrap();
        resume_run(&path, &model.variables, optimizer, state(&path))
    };
    let intact = fs::read(&path).unwrap();
    // Variables are loaded in the order of their names, and `hidden.bias` is the first one.
    let archive = tenarc::open(&path).unwrap();
    let value = archive.only().unwrap();
    let buffer = value.info("variables.hidden.weight").unwrap().buffer().unwrap();
    let (start, _) = value.buffers()[usize::try_from(buffer).unwrap()];
    let mut bytes = intact.clone();
    bytes[usize::try_from(start).unwrap()] ^= 1;
    fs::write(&path, bytes).unwrap();
    let error = resume().unwrap_err().to_string();
    assert!(error.contains("hidden.weight") && error.contains("checksum"), "{error}");
    assert!(weights() == before);
    fs::write(&path, intact).unwrap();
    resume().unwrap();
    assert!(weights() != before);
}

#[test]
fn only_the_moments_are_compressed() {
    let dir = child::fast_dir();
    let path = dir.path().join("run");
    let (model, expected) = train(&path, 3, |_| {}).unwrap();
    let optimizer = || AdamW::for_vars(&model.variables, ParamsAdamW::default()).unwrap();
    let (saved, _) = resume_run(&path, &model.variables, optimizer(), expected.clone()).unwrap();
    let options = SaveOptions::default().with_compression_by(|tensor| {
        tensor.path().starts_with("optimizer.").then(Compression::zstd)
    });
    save_run_with(&path, &model.variables, &saved, &expected, options).unwrap();

    let archive = tenarc::open(&path).unwrap();
    let value = archive.only().unwrap();
    let is_compressed = |path: &str| {
        let buffer = value.info(path).unwrap().buffer().unwrap();
        value.compressed(usize::try_from(buffer).unwrap()).is_some()
    };
    assert!(!is_compressed("variables.hidden.weight"));
    assert!(is_compressed("optimizer.moments.hidden.weight.first"));

    let (found, state) = resume_run(&path, &model.variables, optimizer(), expected).unwrap();
    let moments = |optimizer: &AdamW| {
        let first = &optimizer.moments()["hidden.weight"].first;
        bits(&first.flatten_all().unwrap().to_vec1::<f32>().unwrap())
    };
    assert_eq!(moments(&found), moments(&saved));
    assert_eq!(state.step, 3);
}

#[test]
fn the_parameters_of_the_file_are_used_until_others_are_set() {
    let dir = child::fast_dir();
    let path = dir.path().join("run");
    let model = Model::new(1).unwrap();
    let [saved, given] =
        [0.1, 0.2].map(|weight_decay| ParamsAdamW { weight_decay, ..ParamsAdamW::default() });
    let optimizer = AdamW::for_vars(&model.variables, saved).unwrap();
    save_run(&path, &model.variables, &optimizer, &()).unwrap();
    let optimizer = AdamW::for_vars(&model.variables, given.clone()).unwrap();
    let (mut resumed, ()) = resume_run(&path, &model.variables, optimizer, ()).unwrap();
    assert_eq!(resumed.params().weight_decay.to_bits(), 0.1f64.to_bits());
    resumed.set_params(given);
    assert_eq!(resumed.params().weight_decay.to_bits(), 0.2f64.to_bits());
}
