//! A training run that continues from its file.

use std::path::Path;

use candle_core::{DType, Device, Module, Tensor, Var};
use candle_nn::{Linear, Optimizer, ParamsAdamW, VarBuilder, VarMap, loss};
use serde::{Deserialize, Serialize};
use tenarc_candle::AdamW;

pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Everything that is needed to continue.
#[derive(Serialize, Deserialize)]
pub struct Run {
    pub config: Config,
    #[serde(with = "tenarc_candle::var_map")]
    pub model: VarMap,
    pub optimizer: AdamW,
    pub schedule: Schedule,
    pub rng: Rng,
    pub step: u32,
    pub losses: Vec<f32>,
}

#[derive(Clone, Serialize, Deserialize)]
pub struct Config {
    pub hidden: usize,
    pub batch: usize,
    pub seed: u64,
}

/// Starts a run, or continues the one in this file. Calls `each` after every step, when the file has been saved.
pub fn train(path: &Path, steps: u32, mut each: impl FnMut(&Run)) -> Result<Run> {
    let mut run = if path.exists() { Run::load(path)? } else { Run::new()? };
    let layers = run.layers()?;
    while run.step < steps {
        let (images, labels) = run.rng.digits(run.config.batch)?;
        let loss = loss::cross_entropy(&logits(&layers, &images)?, &labels)?;
        run.optimizer.set_learning_rate(run.schedule.at(run.step));
        run.optimizer.backward_step(&loss)?;
        run.losses.push(loss.to_scalar()?);
        run.step += 1;
        tenarc::save(path, &run)?;
        each(&run);
    }
    Ok(run)
}

impl Run {
    fn new() -> Result<Self> {
        let config = Config { hidden: 48, batch: 32, seed: 7 };
        let mut rng = Rng { state: config.seed };
        let model = VarMap::new();
        // candle's generator for the CPU cannot be seeded, so the first weights come from our own.
        for (name, shape) in [("hidden", [config.hidden, PIXELS]), ("output", [10, config.hidden])]
        {
            #[allow(clippy::cast_precision_loss)] // at most 64
            let bound = 1.0 / (shape[1] as f32).sqrt();
            for (part, shape) in [("weight", &shape[..]), ("bias", &shape[..1])] {
                let count = shape.iter().product();
                let values: Vec<f32> = (0..count).map(|_| rng.symmetric() * bound).collect();
                let var = Var::from_vec(values, shape, &Device::Cpu)?;
                model.data().lock().unwrap().insert(format!("{name}.{part}"), var);
            }
        }
        let optimizer = AdamW::for_vars(&model, ParamsAdamW::default())?;
        let schedule = Schedule { peak: 0.01, warmup: 20, length: 500 };
        Ok(Self { config, model, optimizer, schedule, rng, step: 0, losses: Vec::new() })
    }

    fn load(path: &Path) -> Result<Self> {
        let mut run: Self = tenarc::load(path)?;
        run.optimizer.bind(&run.model)?;
        Ok(run)
    }

    fn layers(&self) -> Result<[Linear; 2]> {
        let vb = VarBuilder::from_varmap(&self.model, DType::F32, &Device::Cpu);
        let hidden = candle_nn::linear(PIXELS, self.config.hidden, vb.pp("hidden"))?;
        Ok([hidden, candle_nn::linear(self.config.hidden, 10, vb.pp("output"))?])
    }

    /// How many new images the network recognises.
    pub fn right(&self, count: usize) -> Result<u32> {
        let (images, labels) = Rng { state: 99 }.digits(count)?;
        let found = logits(&self.layers()?, &images)?.argmax(1)?;
        Ok(found.eq(&labels)?.to_dtype(DType::U32)?.sum_all()?.to_scalar()?)
    }
}

fn logits([hidden, output]: &[Linear; 2], images: &Tensor) -> candle_core::Result<Tensor> {
    output.forward(&hidden.forward(images)?.relu()?)
}

/// A learning rate that rises, and then falls like a cosine.
#[derive(Clone, Serialize, Deserialize)]
pub struct Schedule {
    pub peak: f64,
    pub warmup: u32,
    pub length: u32,
}

impl Schedule {
    fn at(&self, step: u32) -> f64 {
        if step < self.warmup {
            return self.peak * f64::from(step + 1) / f64::from(self.warmup);
        }
        let done = f64::from(step - self.warmup) / f64::from(self.length - self.warmup);
        self.peak * (0.05 + 0.475 * (1.0 + (done.min(1.0) * std::f64::consts::PI).cos()))
    }
}

/// The `SplitMix64` generator (Steele, Lea and Flood, 2014), whose state is one number.
#[derive(Clone, Serialize, Deserialize)]
pub struct Rng {
    pub state: u64,
}

impl Rng {
    pub fn number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in -1..1.
    #[allow(clippy::cast_precision_loss)] // 24 bits are what an f32 holds
    fn symmetric(&mut self) -> f32 {
        (self.number() >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
    }

    /// Random digits with noise, and their labels.
    fn digits(&mut self, count: usize) -> Result<(Tensor, Tensor)> {
        let (mut pixels, mut labels) =
            (Vec::with_capacity(count * PIXELS), Vec::with_capacity(count));
        for _ in 0..count {
            #[allow(clippy::cast_possible_truncation)] // less than 10
            let label = (self.number() % 10) as u32;
            labels.push(label);
            for row in DIGITS[label as usize] {
                for bit in 0..8 {
                    pixels.push(f32::from(row >> bit & 1) + self.symmetric());
                }
            }
        }
        let images = Tensor::from_vec(pixels, (count, PIXELS), &Device::Cpu)?;
        Ok((images, Tensor::from_vec(labels, count, &Device::Cpu)?))
    }
}

const PIXELS: usize = 64;

/// The digits, with one byte for each row of pixels.
const DIGITS: [[u8; 8]; 10] = [
    [0x3e, 0x63, 0x73, 0x7b, 0x6f, 0x67, 0x3e, 0x00],
    [0x0c, 0x0e, 0x0c, 0x0c, 0x0c, 0x0c, 0x3f, 0x00],
    [0x1e, 0x33, 0x30, 0x1c, 0x06, 0x33, 0x3f, 0x00],
    [0x1e, 0x33, 0x30, 0x1c, 0x30, 0x33, 0x1e, 0x00],
    [0x38, 0x3c, 0x36, 0x33, 0x7f, 0x30, 0x78, 0x00],
    [0x3f, 0x03, 0x1f, 0x30, 0x30, 0x33, 0x1e, 0x00],
    [0x1c, 0x06, 0x03, 0x1f, 0x33, 0x33, 0x1e, 0x00],
    [0x3f, 0x33, 0x30, 0x18, 0x0c, 0x0c, 0x0c, 0x00],
    [0x1e, 0x33, 0x33, 0x1e, 0x33, 0x33, 0x1e, 0x00],
    [0x1e, 0x33, 0x33, 0x3e, 0x30, 0x18, 0x0e, 0x00],
];
