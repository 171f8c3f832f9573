//! The struct that the example saves: everything needed to resume training.

use ndarray::{Array1, Array2, Axis};
use serde::{Deserialize, Serialize};
use tenarc::Tensor;

use crate::data::{CLASSES, PIXELS, Rows};
use crate::network::{Activation, Network, Pass, argmax, softmax};
use crate::optimizer::{Adam, Rng};

#[derive(Clone, Serialize, Deserialize)]
pub struct Checkpoint {
    pub config: Config,
    pub labels: Vec<String>,
    pub normalisation: Normalisation,
    pub network: Network,
    pub optimizer: Adam,
    pub rng: Rng,
    pub history: Vec<Epoch>,
    /// The epoch with the lowest loss so far, once there is one.
    pub best: Option<Epoch>,
}

#[derive(Clone, Serialize, Deserialize)]
pub struct Config {
    pub hidden_units: usize,
    pub activation: Activation,
    pub learning_rate: f32,
    pub weight_decay: Option<f32>,
    pub batch_size: usize,
    pub seed: u64,
}

/// Mean and standard deviation of each pixel in the training rows.
#[derive(Clone, Serialize, Deserialize)]
pub struct Normalisation {
    #[serde(with = "tenarc::tensor")]
    pub mean: Array1<f32>,
    pub deviation: Tensor<Array1<f32>>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Epoch {
    pub number: u32,
    /// Mean cross-entropy over the training rows.
    pub loss: f64,
    /// The fraction of training rows that were classified correctly during the epoch.
    pub accuracy: f64,
}

impl Normalisation {
    fn new(train: &Rows) -> Self {
        let mean = train.pixels.mean_axis(Axis(0)).expect("rows to train on");
        // Some border pixels are equal in every row, and have a deviation of 0.
        let deviation = train.pixels.std_axis(Axis(0), 0.0);
        let deviation = deviation.mapv_into(|x| if x > 0.0 { x } else { 1.0 });
        Self { mean, deviation: deviation.into() }
    }

    fn apply(&self, pixels: &Array2<f32>) -> Array2<f32> {
        (pixels - &self.mean) / &*self.deviation
    }
}

impl Checkpoint {
    /// An untrained network, with random weights from `rng`.
    pub fn new(config: Config, mut rng: Rng, train: &Rows) -> Self {
        const NAMES: [&str; CLASSES] =
            ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];
        let sizes = [PIXELS, config.hidden_units, CLASSES];
        Self {
            labels: NAMES.map(String::from).to_vec(),
            normalisation: Normalisation::new(train),
            network: Network::new(sizes, config.activation, &mut rng),
            optimizer: Adam::new(config.learning_rate, config.weight_decay),
            rng,
            history: Vec::new(),
            best: None,
            config,
        }
    }

    /// Trains on every row once, in a random order from the checkpoint's generator.
    #[allow(clippy::cast_precision_loss)] // a few thousand rows
    pub fn train_epoch(&mut self, train: &Rows) -> Epoch {
        let shuffled = train.select(&self.rng.permutation(train.len()));
        let input = self.normalisation.apply(&shuffled.pixels);
        let mut total = Pass::default();
        let batch_size = self.config.batch_size;
        let batches = input.axis_chunks_iter(Axis(0), batch_size);
        for (batch, labels) in batches.zip(shuffled.labels.chunks(batch_size)) {
            let (pass, gradients) = self.network.gradients(&batch, labels);
            self.optimizer.update(self.network.parameters_mut(), gradients);
            total.loss += pass.loss;
            total.right += pass.right;
        }
        let epoch = Epoch {
            number: self.history.last().map_or(1, |last| last.number + 1),
            loss: total.loss / train.len() as f64,
            accuracy: total.right as f64 / train.len() as f64,
        };
        self.history.push(epoch);
        if self.best.is_none_or(|best| epoch.loss < best.loss) {
            self.best = Some(epoch);
        }
        epoch
    }

    /// The scores for images that are not normalised yet.
    pub fn logits(&self, pixels: &Array2<f32>) -> Array2<f32> {
        self.network.logits(&self.normalisation.apply(pixels).view())
    }

    /// The digit that the network sees in each image.
    pub fn predict(&self, rows: &Rows) -> Vec<usize> {
        let logits = self.logits(&rows.pixels);
        logits.outer_iter().map(|row| argmax(row.iter().copied()).0).collect()
    }

    /// Mean cross-entropy over these rows.
    #[allow(clippy::cast_precision_loss)] // a few thousand rows
    pub fn loss(&self, rows: &Rows) -> f64 {
        softmax(&mut self.logits(&rows.pixels), &rows.labels).loss / rows.len() as f64
    }

    /// The number of bytes of all tensors: the part of the file that is not overhead.
    pub fn tensor_bytes(&self) -> usize {
        let pixels = self.normalisation.mean.len() + self.normalisation.deviation.len();
        let moments = self.optimizer.moments.values();
        let moments: usize = moments.map(|m| m.mean.len() + m.square.len()).sum();
        (pixels + self.network.parameter_count() + moments) * size_of::<f32>()
    }
}
