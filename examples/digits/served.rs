//! The checkpoint as a server uses it: views of the mapped file. The weights are not copied, and the
//! optimizer's state is not read.

use ndarray::{Array2, ArrayView1, ArrayView2};
use serde::Deserialize;
use tenarc::Tensor;

use crate::network::{Activation, forward};

/// The fields of `Checkpoint` that inference needs, as views. Other fields are skipped.
#[derive(Deserialize)]
pub struct Served<'a> {
    #[serde(borrow)]
    pub labels: Vec<&'a str>,
    #[serde(borrow)]
    normalisation: Normalisation<'a>,
    #[serde(borrow)]
    network: Network<'a>,
}

#[derive(Deserialize)]
struct Normalisation<'a> {
    #[serde(borrow)]
    mean: Tensor<ArrayView1<'a, f32>>,
    #[serde(borrow)]
    deviation: Tensor<ArrayView1<'a, f32>>,
}

#[derive(Deserialize)]
struct Network<'a> {
    #[serde(borrow)]
    hidden: Dense<'a>,
    activation: Activation,
    #[serde(borrow)]
    output: Dense<'a>,
}

#[derive(Deserialize)]
struct Dense<'a> {
    #[serde(borrow)]
    weight: Tensor<ArrayView2<'a, f32>>,
    #[serde(borrow)]
    bias: Tensor<ArrayView1<'a, f32>>,
}

impl Served<'_> {
    /// The scores for images that are not normalised yet.
    pub fn logits(&self, pixels: &Array2<f32>) -> Array2<f32> {
        let Network { hidden, activation, output } = &self.network;
        let input =
            (pixels - &self.normalisation.mean.view()) / self.normalisation.deviation.view();
        let mut units = forward(&input.view(), &hidden.weight, &hidden.bias);
        activation.apply(&mut units);
        forward(&units.view(), &output.weight, &output.bias)
    }
}
