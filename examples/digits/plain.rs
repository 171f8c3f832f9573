//! The checkpoint without `tenarc::Tensor`, for comparison: ndarray's own serde support writes its arrays
//! number by number.

use std::collections::BTreeMap;

use ndarray::{Array1, Array2, ArrayD};
use serde::{Deserialize, Serialize};

use crate::checkpoint::{Checkpoint, Config, Epoch, Normalisation};
use crate::network::{Activation, Dense, Network};
use crate::optimizer::{Adam, Moments, Rng};

#[derive(Serialize, Deserialize)]
pub struct Plain {
    config: Config,
    labels: Vec<String>,
    normalisation: (Array1<f32>, Array1<f32>),
    hidden: Layer,
    activation: Activation,
    output: Layer,
    /// Without its moments, which are in the next field.
    optimizer: Adam,
    moments: BTreeMap<String, (ArrayD<f32>, ArrayD<f32>)>,
    rng: Rng,
    history: Vec<Epoch>,
    best: Option<Epoch>,
}

#[derive(Serialize, Deserialize)]
struct Layer {
    weight: Array2<f32>,
    bias: Array1<f32>,
}

impl From<Dense> for Layer {
    fn from(dense: Dense) -> Self {
        Self { weight: dense.weight.into_inner(), bias: dense.bias }
    }
}

impl From<Layer> for Dense {
    fn from(layer: Layer) -> Self {
        Self { weight: layer.weight.into(), bias: layer.bias }
    }
}

impl From<Checkpoint> for Plain {
    fn from(mut checkpoint: Checkpoint) -> Self {
        let moments = std::mem::take(&mut checkpoint.optimizer.moments);
        let arrays = |moments: Moments| (moments.mean.into_inner(), moments.square.into_inner());
        let Normalisation { mean, deviation } = checkpoint.normalisation;
        Self {
            config: checkpoint.config,
            labels: checkpoint.labels,
            normalisation: (mean, deviation.into_inner()),
            hidden: checkpoint.network.hidden.into(),
            activation: checkpoint.network.activation,
            output: checkpoint.network.output.into(),
            optimizer: checkpoint.optimizer,
            moments: moments.into_iter().map(|(name, moments)| (name, arrays(moments))).collect(),
            rng: checkpoint.rng,
            history: checkpoint.history,
            best: checkpoint.best,
        }
    }
}

impl From<Plain> for Checkpoint {
    fn from(plain: Plain) -> Self {
        let mut optimizer = plain.optimizer;
        for (name, (mean, square)) in plain.moments {
            let (mean, square) = (mean.into(), square.into());
            optimizer.moments.insert(name, Moments { mean, square });
        }
        let (mean, deviation) = plain.normalisation;
        Self {
            config: plain.config,
            labels: plain.labels,
            normalisation: Normalisation { mean, deviation: deviation.into() },
            network: Network {
                hidden: plain.hidden.into(),
                activation: plain.activation,
                output: plain.output.into(),
            },
            optimizer,
            rng: plain.rng,
            history: plain.history,
            best: plain.best,
        }
    }
}
