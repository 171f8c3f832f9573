//! How long a save in the background holds up a program, beside copying the value. Run it with `--release`.

use std::hint::black_box;
use std::time::{Duration, Instant};

use tenarc::archive::{Background, SaveOptions};
use tenarc::{Checkpoints, Tensor};

/// 200 tensors of 1 MiB.
fn state() -> Vec<Tensor<Vec<f32>>> {
    (0u8..200).map(|number| Tensor(vec![f32::from(number); 1 << 18])).collect()
}

/// The shortest time of some rounds.
fn shortest(mut work: impl FnMut() -> tenarc::Result<Duration>) -> tenarc::Result<f64> {
    let times = (0..7).map(|_| work()).collect::<tenarc::Result<Vec<_>>>()?;
    Ok(times.into_iter().min().unwrap_or_default().as_secs_f64() * 1e3)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = std::env::temp_dir().join(format!("tenarc-background-{}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    let state = state();
    let mut background = Background::default();
    let path = dir.join("state.tenarc");
    let [mut copy, mut held, mut saved] = [f64::MAX; 3];
    // In turns, so that all see the same machine.
    for _ in 0..3 {
        copy = copy.min(shortest(|| {
            let started = Instant::now();
            black_box(state.clone());
            Ok(started.elapsed())
        })?);
        held = held.min(shortest(|| {
            background.wait()?;
            let started = Instant::now();
            background.save(&path, &state, SaveOptions::default())?;
            Ok(started.elapsed())
        })?);
        background.wait()?;
        saved = saved.min(shortest(|| {
            let started = Instant::now();
            tenarc::save(&path, &state)?;
            Ok(started.elapsed())
        })?);
    }
    println!("200 MiB of tensors, in ms:");
    println!("  a clone               {copy:7.1}");
    println!("  held up by the save   {held:7.1}  = {:.2} clones", held / copy);
    println!("  tenarc::save          {saved:7.1}");

    let checkpoints = Checkpoints::new(dir.join("run"))?.with_keep_last(2);
    let mut background = checkpoints.clone().in_background();
    for step in 1..=3 {
        background.save(step, &state)?;
    }
    background.wait()?;
    assert_eq!(checkpoints.steps()?, [2, 3]);
    std::fs::remove_dir_all(&dir)?;
    Ok(())
}
