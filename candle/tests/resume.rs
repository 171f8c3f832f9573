//! A training run that is killed again and again ends like one that was not killed, bit for bit.

#![cfg(unix)]

#[allow(dead_code)] // what only the example uses
#[path = "../examples/resume/training.rs"]
mod training;

use std::fs;
use std::time::Duration;

use candle_core::{DType, Device, Tensor};
use tenarc_candle::AdamW;
use tenarc_test_support::child;
use training::{Rng, Run, train};

const TEST: &str = "killed_runs_end_like_others";
const MOST_STEPS_IN_A_LIFE: u32 = 8;

/// How often the run is killed: 10 times, or `TENARC_KILLS` times.
fn kills() -> u32 {
    std::env::var("TENARC_KILLS")
        .map_or(10, |kills| kills.parse().expect("a number in TENARC_KILLS"))
}

fn steps() -> u32 {
    kills() * MOST_STEPS_IN_A_LIFE + 5
}

#[test]
fn killed_runs_end_like_others() {
    if let Some((_, dir)) = child::role() {
        train(&dir.join("killed"), steps(), |run| println!("step {}", run.step)).unwrap();
        return;
    }
    let dir = child::fast_dir();
    let (whole, killed) = (dir.path().join("whole"), dir.path().join("killed"));
    train(&whole, steps(), |_| {}).unwrap();

    let mut rng = Rng { state: 1 };
    for life in 0..kills() {
        let more = usize::try_from(1 + rng.number() % u64::from(MOST_STEPS_IN_A_LIFE)).unwrap();
        // Up to two milliseconds later: in the middle of a step, or of a save.
        let last = child::killed_after(
            &mut child::command(&[], TEST, "train", dir.path()),
            more,
            Duration::from_micros(rng.number() % 2000),
        );
        let saved: Run = tenarc::load(&killed).unwrap();
        assert!(
            saved.step >= last,
            "life {life}: step {} in the file after step {last}",
            saved.step
        );
        assert!(saved.step < steps());
    }

    let output = child::run(&[], TEST, "train", dir.path());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let [expected, found] = [&whole, &killed].map(|path| tenarc::load::<Run>(path).unwrap());
    assert_eq!(found.step, steps());
    let bits = |losses: &[f32]| losses.iter().map(|loss| loss.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&found.losses), bits(&expected.losses));
    assert!(found.losses.iter().rev().take(20).sum::<f32>() < found.losses.iter().take(20).sum());
    assert_eq!(found.rng.state, expected.rng.state);
    // Equal values make equal files: this compares the weights, the moments and everything else.
    assert!(fs::read(&whole).unwrap() == fs::read(&killed).unwrap(), "the files differ");
}

/// Without this, the test above could pass although the state is not used.
#[test]
fn a_run_that_lost_part_of_its_state_ends_differently() {
    let dir = child::fast_dir();
    let whole = dir.path().join("whole");
    train(&whole, 20, |_| {}).unwrap();
    let changes: [fn(&mut Run); 4] = [
        |run| run.rng.state += 1,
        |run| run.schedule.peak *= 2.0,
        |run| run.optimizer = AdamW::for_vars(&run.model, run.optimizer.params().clone()).unwrap(),
        |run| {
            let zeros = Tensor::zeros(run.config.hidden, DType::F32, &Device::Cpu).unwrap();
            run.model.data().lock().unwrap()["hidden.bias"].set(&zeros).unwrap();
        },
    ];
    for change in changes {
        let path = dir.path().join("changed");
        let mut run = train(&path, 10, |_| {}).unwrap();
        change(&mut run);
        tenarc::save(&path, &run).unwrap();
        let found = train(&path, 20, |_| {}).unwrap().losses;
        let expected = tenarc::load::<Run>(&whole).unwrap().losses;
        assert_eq!(found[..10], expected[..10]);
        assert_ne!(found[10..], expected[10..]);
        fs::remove_file(path).unwrap();
    }
}
