//! The images of digits, the network, the schedule and the random generator.

use std::fs::File;
use std::io::{BufRead, BufReader};

use candle_core::{DType, Device, Module, Tensor, Var};
use candle_nn::{Linear, VarBuilder, VarMap};
use flate2::read::GzDecoder;
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
}

/// The handwritten digits of `examples/digits`.
pub struct Digits {
    training: Vec<Image>,
    /// No batch has these.
    held_out: Vec<Image>,
}

struct Image {
    /// 8 x 8 pixels, row by row, from 0 to 1.
    pixels: Vec<f32>,
    label: u8,
}

impl Digits {
    /// Reads the compressed CSV file. Each line has 64 pixels from 0 to 16, and the label.
    pub fn load() -> Result<Self> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/digits/digits.csv.gz");
        let file = File::open(path).map_err(|error| format!("{path}: {error}"))?;
        let mut images = Vec::new();
        for (number, line) in BufReader::new(GzDecoder::new(file)).lines().enumerate() {
            let row = line?.split(',').map(str::parse).collect::<std::result::Result<Vec<u8>, _>>();
            let (label, pixels) = match row.as_ref().map(|row| row.split_last()) {
                Ok(Some((&label @ ..10, pixels))) if pixels.len() == PIXELS => (label, pixels),
                _ => return Err(format!("{path}, line {}: not a digit", number + 1).into()),
            };
            let pixels = pixels.iter().map(|&pixel| f32::from(pixel) / 16.0).collect();
            images.push(Image { pixels, label });
        }
        let held_out = images.split_off(images.len() * 5 / 6);
        Ok(Self { training: images, held_out })
    }

    /// Random images, and their labels.
    pub fn batch(&self, rng: &mut Rng, count: usize) -> Result<(Tensor, Tensor)> {
        let images = || &self.training[rng.below(self.training.len())];
        tensors(std::iter::repeat_with(images).take(count))
    }

    /// How many of the images that were held out the model recognises, and how many these are.
    pub fn recognised(&self, model: &Model) -> Result<(u32, usize)> {
        let (images, labels) = tensors(self.held_out.iter())?;
        let right = model.forward(&images)?.argmax(1)?.eq(&labels)?;
        Ok((right.to_dtype(DType::U32)?.sum_all()?.to_scalar()?, self.held_out.len()))
    }
}

fn tensors<'a>(images: impl Iterator<Item = &'a Image>) -> Result<(Tensor, Tensor)> {
    let (mut pixels, mut labels) = (Vec::new(), Vec::new());
    for image in images {
        pixels.extend_from_slice(&image.pixels);
        labels.push(u32::from(image.label));
    }
    let count = labels.len();
    let images = Tensor::from_vec(pixels, (count, PIXELS), &Device::Cpu)?;
    Ok((images, Tensor::from_vec(labels, count, &Device::Cpu)?))
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

    /// Uniform in 0..length.
    fn below(&mut self, length: usize) -> usize {
        // `length` is small, so the remainders are as good as equally likely.
        #[allow(clippy::cast_possible_truncation)] // less than `length`
        let number = (self.number() % length as u64) as usize;
        number
    }
}

const PIXELS: usize = 64;
const HIDDEN: usize = 48;
