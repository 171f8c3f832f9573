//! The images of digits, the network, the schedule and the random generator.

use candle_core::{DType, Device, Module, Tensor, Var};
use candle_nn::{Linear, VarBuilder, VarMap};
use serde::{Deserialize, Serialize};

pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

pub struct Model {
    pub variables: VarMap,
    hidden: Linear,
    output: Linear,
}

impl Model {
    /// A new network. The same seed gives the same weights.
    pub fn new(seed: u64) -> Result<Self> {
        let mut rng = Rng { state: seed };
        let variables = VarMap::new();
        // candle's generator for the CPU cannot be seeded, so the first weights come from our own.
        for (name, shape) in [("hidden", [HIDDEN, PIXELS]), ("output", [10, HIDDEN])] {
            #[allow(clippy::cast_precision_loss)] // at most 64
            let bound = 1.0 / (shape[1] as f32).sqrt();
            for (part, shape) in [("weight", &shape[..]), ("bias", &shape[..1])] {
                let count = shape.iter().product();
                let values: Vec<f32> = (0..count).map(|_| rng.symmetric() * bound).collect();
                let var = Var::from_vec(values, shape, &Device::Cpu)?;
                variables.data().lock().unwrap().insert(format!("{name}.{part}"), var);
            }
        }
        let vb = VarBuilder::from_varmap(&variables, DType::F32, &Device::Cpu);
        let hidden = candle_nn::linear(PIXELS, HIDDEN, vb.pp("hidden"))?;
        let output = candle_nn::linear(HIDDEN, 10, vb.pp("output"))?;
        Ok(Self { variables, hidden, output })
    }

    pub fn forward(&self, images: &Tensor) -> candle_core::Result<Tensor> {
        self.output.forward(&self.hidden.forward(images)?.relu()?)
    }

    /// How many new images the network recognises.
    pub fn right(&self, count: usize) -> Result<u32> {
        let (images, labels) = Rng { state: 99 }.digits(count)?;
        let found = self.forward(&images)?.argmax(1)?;
        Ok(found.eq(&labels)?.to_dtype(DType::U32)?.sum_all()?.to_scalar()?)
    }
}

/// A learning rate that rises, and then falls like a cosine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Schedule {
    pub peak: f64,
    pub warmup: u32,
    pub length: u32,
}

impl Schedule {
    pub fn at(&self, step: u32) -> f64 {
        if step < self.warmup {
            return self.peak * f64::from(step + 1) / f64::from(self.warmup);
        }
        let done = f64::from(step - self.warmup) / f64::from(self.length - self.warmup);
        self.peak * (0.05 + 0.475 * (1.0 + (done.min(1.0) * std::f64::consts::PI).cos()))
    }
}

/// The `SplitMix64` generator (Steele, Lea and Flood, 2014), whose state is one number.
#[derive(Clone, Debug, Serialize, Deserialize)]
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
    pub fn digits(&mut self, count: usize) -> Result<(Tensor, Tensor)> {
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
const HIDDEN: usize = 48;

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
