//! A training run that continues from its file. `plain.rs` is the same program without checkpoints.

use std::path::Path;

use burn_core::tensor::Device;
use burn_nn::loss::CrossEntropyLossConfig;
use burn_optim::{AdamConfig, GradientsParams};

use super::digits::{Digits, Model, Result, Rng, Schedule};

/// Everything that changes, beside the model and its optimizer.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct State {
    pub schedule: Schedule,
    pub rng: Rng,
    pub step: u32,
    pub losses: Vec<f32>,
}

pub fn train<F: FnMut(&State)>(path: &Path, steps: u32, mut each: F) -> Result<(Model, State)> {
    let digits = Digits::load()?;
    let device = Device::flex().autodiff();
    let cross_entropy = CrossEntropyLossConfig::new().init(&device);
    let (mut model, mut optimizer) = (Model::new(7, &device), AdamConfig::new().init());
    let schedule = Schedule { peak: 0.01, warmup: 20, length: 500 };
    let mut state = State { schedule, rng: Rng { state: 8 }, step: 0, losses: Vec::new() };
    (model, optimizer, state) = tenarc_burn::resume_run(path, model, optimizer, state)?;
    while state.step < steps {
        let (images, labels) = digits.batch(&mut state.rng, 32, &device);
        let loss = cross_entropy.forward(model.forward(images), labels);
        let gradients = GradientsParams::from_grads(loss.backward(), &model);
        model = optimizer.step(state.schedule.at(state.step), model, gradients);
        state.losses.push(loss.into_scalar());
        state.step += 1;
        tenarc_burn::save_run(path, &model, &optimizer, &state)?;
        each(&state);
    }
    Ok((model, state))
}
