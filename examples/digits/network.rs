//! A network of two dense layers: forward, loss, gradients.

use ndarray::{Array1, Array2, ArrayD, ArrayView1, ArrayView2, ArrayViewMutD, Axis, Zip};
use serde::{Deserialize, Serialize};
use tenarc::Tensor;

use crate::optimizer::Rng;

/// `x W + b`. The two fields show the two ways of marking a tensor.
#[derive(Clone, Serialize, Deserialize)]
pub struct Dense {
    /// `Tensor` is a newtype that dereferences to the array. The shape is inputs by outputs.
    pub weight: Tensor<Array2<f32>>,
    /// With the attribute, the field keeps its own type.
    #[serde(with = "tenarc::tensor")]
    pub bias: Array1<f32>,
}

/// The activation function between the layers.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum Activation {
    Relu,
    LeakyRelu { slope: f32 },
}

#[derive(Clone, Serialize, Deserialize)]
pub struct Network {
    pub hidden: Dense,
    pub activation: Activation,
    pub output: Dense,
}

impl Dense {
    /// A layer with uniform random weights, scaled for `ReLU` (He et al., 2015).
    fn new(inputs: usize, outputs: usize, rng: &mut Rng) -> Self {
        #[allow(clippy::cast_precision_loss)] // a layer's width
        let bound = (6.0 / inputs as f32).sqrt();
        Self {
            weight: Array2::from_shape_simple_fn((inputs, outputs), || bound * rng.symmetric())
                .into(),
            bias: Array1::zeros(outputs),
        }
    }

    fn forward(&self, input: &ArrayView2<f32>) -> Array2<f32> {
        forward(input, &self.weight.view(), &self.bias.view())
    }
}

pub fn forward(
    input: &ArrayView2<f32>,
    weight: &ArrayView2<f32>,
    bias: &ArrayView1<f32>,
) -> Array2<f32> {
    input.dot(weight) + bias
}

impl Activation {
    fn slope_below_zero(self) -> f32 {
        match self {
            Self::Relu => 0.0,
            Self::LeakyRelu { slope } => slope,
        }
    }

    pub fn apply(self, units: &mut Array2<f32>) {
        let slope = self.slope_below_zero();
        units.mapv_inplace(|x| if x > 0.0 { x } else { slope * x });
    }
}

impl Network {
    pub fn new(sizes: [usize; 3], activation: Activation, rng: &mut Rng) -> Self {
        Self {
            hidden: Dense::new(sizes[0], sizes[1], rng),
            activation,
            output: Dense::new(sizes[1], sizes[2], rng),
        }
    }

    /// The number of trainable parameters.
    pub fn parameter_count(&self) -> usize {
        [&self.hidden, &self.output].map(|layer| layer.weight.len() + layer.bias.len()).iter().sum()
    }

    /// The parameters by name, in the order in which `gradients` returns theirs.
    pub fn parameters_mut(&mut self) -> [(&'static str, ArrayViewMutD<'_, f32>); 4] {
        let (hidden, output) = (&mut self.hidden, &mut self.output);
        [
            ("hidden.weight", hidden.weight.view_mut().into_dyn()),
            ("hidden.bias", hidden.bias.view_mut().into_dyn()),
            ("output.weight", output.weight.view_mut().into_dyn()),
            ("output.bias", output.bias.view_mut().into_dyn()),
        ]
    }

    fn hidden_units(&self, input: &ArrayView2<f32>) -> Array2<f32> {
        let mut units = self.hidden.forward(input);
        self.activation.apply(&mut units);
        units
    }

    /// One row of logits (unnormalised scores) for each row of input.
    pub fn logits(&self, input: &ArrayView2<f32>) -> Array2<f32> {
        self.output.forward(&self.hidden_units(input).view())
    }

    /// The loss of a batch and the number of its rows classified correctly, and the gradient of the
    /// mean loss for each parameter.
    pub fn gradients(&self, input: &ArrayView2<f32>, labels: &[usize]) -> (Pass, [ArrayD<f32>; 4]) {
        let units = self.hidden_units(input);
        let mut delta = self.output.forward(&units.view());
        let pass = softmax(&mut delta, labels);

        // The gradient of cross-entropy after softmax: the probability, minus 1 for the label.
        #[allow(clippy::cast_precision_loss)] // a batch's length
        let scale = 1.0 / labels.len() as f32;
        for (mut row, &label) in delta.outer_iter_mut().zip(labels) {
            row[label] -= 1.0;
            row *= scale;
        }
        let output_weight = units.t().dot(&delta);
        let output_bias = delta.sum_axis(Axis(0));

        let slope = self.activation.slope_below_zero();
        let mut delta = delta.dot(&self.output.weight.t());
        // Below zero, the activation has this slope. Its output has the sign of its input.
        Zip::from(&mut delta).and(&units).for_each(|d, &unit| {
            if unit <= 0.0 {
                *d *= slope;
            }
        });
        let gradients = [
            input.t().dot(&delta).into_dyn(),
            delta.sum_axis(Axis(0)).into_dyn(),
            output_weight.into_dyn(),
            output_bias.into_dyn(),
        ];
        (pass, gradients)
    }
}

/// The result of a batch.
#[derive(Default)]
pub struct Pass {
    /// Sum of the cross-entropies.
    pub loss: f64,
    /// The number of rows whose label has the highest score.
    pub right: usize,
}

/// Turns logits into probabilities in place. Returns the loss and the number of correct rows.
pub fn softmax(logits: &mut Array2<f32>, labels: &[usize]) -> Pass {
    let mut pass = Pass::default();
    for (mut row, &label) in logits.outer_iter_mut().zip(labels) {
        let (guess, highest) = argmax(row.iter().copied());
        row.mapv_inplace(|x| (x - highest).exp());
        row /= row.sum();
        pass.loss -= f64::from(row[label].max(f32::MIN_POSITIVE).ln());
        pass.right += usize::from(guess == label);
    }
    pass
}

/// The index of the highest value, and the value.
pub fn argmax(values: impl Iterator<Item = f32>) -> (usize, f32) {
    values
        .enumerate()
        .reduce(|best, next| if next.1 > best.1 { next } else { best })
        .unwrap_or((0, f32::NEG_INFINITY))
}
