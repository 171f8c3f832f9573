//! The example of the first page of `README.md`: `crates/cli/tests/command/first_page.rs` compares the two.

use ndarray::{Array2, s};
use serde::{Deserialize, Serialize};
use tenarc::Tensor;

#[derive(Serialize, Deserialize)]
struct Run {
    step: u64,
    learning_rate: f64,
    weights: Tensor<Array2<f32>>, // dereferences to the array
    moments: Tensor<Array2<f32>>,
    losses: Vec<f32>,
}

pub(crate) fn main() -> tenarc::Result<()> {
    let run = Run {
        step: 1000,
        learning_rate: 1e-3,
        weights: Array2::eye(256).into(),
        moments: Array2::zeros((256, 256)).into(),
        losses: vec![0.5; 1000],
    };
    tenarc::save("run.tenarc", &run)?; // replaces the file in one step
    let run: Run = tenarc::load("run.tenarc")?; // verifies the checksums

    let file = tenarc::open("run.tenarc")?; // reads headers only
    let rows: Array2<f32> = file.slice("weights", s![..8, ..])?; // reads a part of one tensor
    println!("step {}: {:?} of {:?}", run.step, rows.dim(), run.weights.dim());
    Ok(())
}
