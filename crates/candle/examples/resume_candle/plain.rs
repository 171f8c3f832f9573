//! A training run without checkpoints. `training.rs` is the same program with them.

use candle_nn::{Optimizer, ParamsAdamW, loss};

use super::digits::{Digits, Model, Result, Rng, Schedule};

/// Everything that changes, beside the model and its optimizer.
#[derive(Clone, Debug)]
pub struct State {
    pub schedule: Schedule,
    pub rng: Rng,
    pub step: u32,
    pub losses: Vec<f32>,
}

pub fn train<F: FnMut(&State)>(steps: u32, mut each: F) -> Result<(Model, State)> {
    let digits = Digits::load()?;
    let model = Model::new(7)?;
    let params = ParamsAdamW::default();
    let mut optimizer = candle_nn::AdamW::new(model.variables.all_vars(), params)?;
    let schedule = Schedule { peak: 0.01, warmup: 20, length: 500 };
    let mut state = State { schedule, rng: Rng { state: 8 }, step: 0, losses: Vec::new() };
    while state.step < steps {
        let (images, labels) = digits.batch(&mut state.rng, 32)?;
        let loss = loss::cross_entropy(&model.forward(&images)?, &labels)?;
        optimizer.set_learning_rate(state.schedule.at(state.step));
        optimizer.backward_step(&loss)?;
        state.losses.push(loss.to_scalar()?);
        state.step += 1;
        each(&state);
    }
    Ok((model, state))
}
