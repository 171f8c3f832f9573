//! Loads a model of 200 MB through `VarBuilder`s: candle's own over mapped safetensors, and those of this crate. Prints the
//! times.
//!
//! ```console
//! $ cargo run --release -p tenarc-candle --example compare_loaders
//! ```
//!
//! The loaders take turns, and the median of the rounds counts. The files are in the page cache. Safetensors has no
//! checksums. An argument sets another number of tensors than 50.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::time::{Duration, Instant};

use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use tenarc::Map;
use tenarc::de::DecodeOptions;
use tenarc_candle::{CandleTensor, Weights};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const SIDE: usize = 1024;
const ROUNDS: usize = 15;

const LOADERS: [&str; 5] = [
    "VarBuilder::from_mmaped_safetensors",
    "Weights::from_map, no checksums",
    "Weights::from_map",
    "Weights::new, no checksums",
    "Weights::open",
];

fn var_builder(loader: usize, dir: &Path) -> Result<VarBuilder<'static>> {
    let (archive, safetensors) = (dir.join("model.tenarc"), dir.join("model.safetensors"));
    let options = DecodeOptions::default().with_checksums(matches!(loader, 2 | 4));
    // SAFETY: nobody changes the files while they are mapped.
    #[allow(unsafe_code)]
    let map = |path| unsafe { Map::open(path) };
    #[allow(unsafe_code)]
    let weights = match loader {
        0 => {
            // SAFETY: as above.
            let vb = unsafe {
                VarBuilder::from_mmaped_safetensors(&[safetensors], DType::F32, &Device::Cpu)
            };
            return Ok(vb?);
        }
        1 | 2 => Weights::from_map(map(&archive)?.with_options(options))?,
        3 => Weights::new(tenarc::open(archive)?.with_options(options))?,
        _ => Weights::open(archive)?,
    };
    Ok(weights.var_builder(DType::F32, &Device::Cpu))
}

fn load(loader: usize, dir: &Path, expected: &BTreeMap<String, CandleTensor>) -> Result<Duration> {
    let start = Instant::now();
    let vb = var_builder(loader, dir)?;
    let tensors = expected.keys().map(|name| vb.get((SIDE, SIDE), name));
    let tensors = tensors.collect::<candle_core::Result<Vec<_>>>()?;
    drop(vb);
    let took = start.elapsed();
    for (found, expected) in tensors.iter().zip(expected.values()) {
        let last = |tensor: &Tensor| tensor.get(SIDE - 1)?.get(SIDE - 1)?.to_scalar::<f32>();
        if last(found)?.to_bits() != last(expected)?.to_bits() {
            return Err("another tensor was loaded".into());
        }
    }
    Ok(took)
}

fn main() -> Result<()> {
    let count: u8 = std::env::args().nth(1).map_or(Ok(50), |count| count.parse())?;
    let dir = tempfile::tempdir()?;
    let dir = dir.path();
    let tensor = |number: u8| {
        let tensor = Tensor::arange(0u32, 1 << 20, &Device::Cpu)?.to_dtype(DType::F32)?;
        tensor.reshape((SIDE, SIDE))?.affine(0.001, f64::from(number))
    };
    let mut model = BTreeMap::new();
    for number in 0..count {
        model.insert(format!("layers.{number}.weight"), CandleTensor(tensor(number)?));
    }
    tenarc::save(dir.join("model.tenarc"), &model)?;
    let named: HashMap<&str, Tensor> =
        model.iter().map(|(name, tensor)| (&**name, tensor.0.clone())).collect();
    candle_core::safetensors::save(&named, dir.join("model.safetensors"))?;
    println!(
        "{count} tensors of {SIDE} x {SIDE} floats, {} MB\n",
        usize::from(count) * SIDE * SIDE * 4 / 1_000_000
    );

    let mut times = [const { Vec::new() }; LOADERS.len()];
    // The first round is not counted.
    for round in 0..=ROUNDS {
        for at in 0..LOADERS.len() {
            // Each round begins with another one.
            let loader = (at + round) % LOADERS.len();
            let took = load(loader, dir, &model)?;
            times[loader].extend((round > 0).then_some(took));
        }
    }
    println!("| loader | | |\n|---|---:|---:|");
    let mut first = None;
    for (name, mut times) in LOADERS.iter().zip(times) {
        times.sort();
        let median = times[times.len() / 2].as_secs_f64();
        let ratio = median / *first.get_or_insert(median);
        println!("| {name} | {:.0} ms | {ratio:.2} × |", median * 1e3);
    }
    Ok(())
}
