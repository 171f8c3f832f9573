//! The record that is sent. It is made from a seed, so that the receiver knows what to expect.

use ndarray::{Array1, Array2, ShapeBuilder};
use serde::{Deserialize, Serialize};
use tenarc::Tensor;

#[derive(Serialize, Deserialize, Debug, PartialEq)]
pub struct Record {
    name: String,
    seed: u16,
    /// Row-major, and large enough to get a frame of its own.
    weight: Tensor<Array2<f32>>,
    /// Column-major.
    counts: Tensor<Array2<i64>>,
    /// Small, so it is stored in the metadata.
    bias: Tensor<Array1<f64>>,
    /// Not a tensor, but a sequence of numbers, which gets a frame too.
    curve: Vec<f64>,
    note: Option<String>,
}

impl Record {
    pub fn new(seed: u16) -> Self {
        let start = f64::from(seed);
        let ramp = |(row, column)| number(row * 100 + column);
        let weight =
            Array2::from_shape_fn((40, 30), |at| f32::from(ramp(at)) + f32::from(seed) / 4.0);
        let counts =
            Array2::from_shape_fn((20, 50).f(), |at| i64::from(seed) - i64::from(ramp(at)));
        Self {
            name: format!("record {seed}"),
            seed,
            weight: weight.into(),
            counts: counts.into(),
            bias: Array1::from_shape_fn(5, |at| start + f64::from(number(at)) / 8.0).into(),
            curve: (0..500).map(|at| start * f64::from(at) / 2.0).collect(),
            note: seed.is_multiple_of(2).then(|| "ß, even".into()),
        }
    }

    /// Checks that this is the record of the seed, and that its arrays have the order they were sent in.
    pub fn compare(&self, seed: u16) -> Result<(), String> {
        if *self != Self::new(seed) {
            return Err(format!("expected the record of seed {seed}, found {self:?}"));
        }
        if !self.weight.is_standard_layout() || !self.counts.t().is_standard_layout() {
            return Err("an array has another order than it was sent in".into());
        }
        Ok(())
    }
}

fn number(at: usize) -> u16 {
    u16::try_from(at).unwrap_or(u16::MAX)
}
