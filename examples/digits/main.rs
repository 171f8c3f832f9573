//! Trains a network on handwritten digits, saves everything needed to resume training, loads it
//! again, and shows that nothing was lost.
//!
//! ```sh
//! cargo run --release --example digits
//! ```
//!
//! `checkpoint.rs` has the struct that is saved, `served.rs` the struct of views for inference. The
//! lines that save, load, open and map are in `run` and the functions after it.

mod checkpoint;
mod compare;
mod data;
mod network;
mod optimizer;
mod plain;
mod report;
mod served;

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};
use ndarray::{Array1, Array2, s};
use tenarc::Map;

use checkpoint::{Checkpoint, Config};
use data::Rows;
use network::Activation;
use optimizer::Rng;
use served::Served;

const EPOCHS: u64 = 100;
/// The example fails if the network is less accurate than this.
const REQUIRED_ACCURACY: f64 = 0.95;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("digits: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let config = Config {
        hidden_units: 512,
        activation: Activation::Relu,
        learning_rate: 1e-3,
        weight_decay: Some(1e-2),
        batch_size: 32,
        seed: 1998,
    };
    let mut rng = Rng::new(config.seed);
    let (train, held_out) = Rows::load()?.split(5, &mut rng);
    let mut trained = Checkpoint::new(config, rng, &train);
    report::plan(&trained, &train, &held_out);

    let start = Instant::now();
    // The bar is drawn on stderr, and only if that is a terminal.
    let bar = ProgressBar::new(EPOCHS).with_style(ProgressStyle::with_template(
        "Training  {bar:36.cyan/blue} epoch {pos:>3} of {len}  {msg}",
    )?);
    for _ in 0..EPOCHS {
        let epoch = trained.train_epoch(&train);
        bar.set_message(format!("loss {:.4}", epoch.loss));
        bar.inc(1);
    }
    bar.finish_and_clear();
    report::training(&trained, start.elapsed());

    let guesses = trained.predict(&held_out);
    let accuracy = report::accuracy(&trained, &held_out, &guesses);
    if accuracy < REQUIRED_ACCURACY {
        return Err(format!("the accuracy {accuracy:.3} is below {REQUIRED_ACCURACY}").into());
    }
    report::confusion(&held_out, &guesses);
    report::mistakes(&held_out, &guesses);

    let path = std::env::temp_dir().join(format!("tenarc-digits-{}.tenarc", std::process::id()));
    tenarc::save(&path, &trained)?;
    report::saved(&path, fs::metadata(&path)?.len(), trained.tensor_bytes());
    let loaded: Checkpoint = tenarc::load(&path)?;
    prove_equal(&trained, loaded, &train, &held_out)?;
    look_inside(&path, &trained)?;
    serve(&path, &trained, &held_out)?;
    fs::remove_file(&path)?;

    report::formats(&compare::formats(&trained)?, trained.tensor_bytes());
    Ok(())
}

/// Shows that the loaded checkpoint is the one that was saved, down to the last bit.
fn prove_equal(
    saved: &Checkpoint,
    mut loaded: Checkpoint,
    train: &Rows,
    held_out: &Rows,
) -> Result<(), Box<dyn Error>> {
    let bits = |checkpoint: &Checkpoint| -> Vec<u32> {
        let logits = checkpoint.logits(&held_out.pixels);
        logits.iter().map(|score| score.to_bits()).collect()
    };
    let scores = report::thousands(bits(saved).len());
    report::check(
        &format!("all {scores} scores of held-out digits are equal bit for bit"),
        bits(saved) == bits(&loaded),
    )?;

    // If any moment, random number or count were lost, the two would differ after another epoch.
    let mut original = saved.clone();
    let epoch = original.train_epoch(train);
    loaded.train_epoch(train);
    let equal = tenarc::to_vec(&original)? == tenarc::to_vec(&loaded)?;
    report::check(
        &format!("both are still equal after training epoch {}", epoch.number),
        equal && bits(&original) == bits(&loaded),
    )?;
    Ok(())
}

/// Opens the file and reads some tensors only. No byte of the others is read.
fn look_inside(path: &Path, saved: &Checkpoint) -> Result<(), Box<dyn Error>> {
    let file = tenarc::open(path)?;
    report::tensors(&file.tensors()?);
    let bias: Array1<f32> = file.tensor("network.hidden.bias")?;
    let rows: Array2<f32> = file.slice("network.hidden.weight", s![30..38, ..])?;
    let hidden = &saved.network.hidden;
    report::check(
        "a bias and eight rows of a weight, read from the opened file, are equal",
        bias == hidden.bias && rows == hidden.weight.slice(s![30..38, ..]),
    )?;
    Ok(())
}

/// Maps the file, and computes scores from views of the weights.
#[allow(unsafe_code)]
fn serve(path: &Path, saved: &Checkpoint, held_out: &Rows) -> Result<(), Box<dyn Error>> {
    // SAFETY: no process changes the file while it is mapped. Saving a new checkpoint to this path would
    // replace the file by renaming, and leave the mapped one unchanged.
    let map = unsafe { Map::open(path)? };
    let served: Served = map.view()?;
    report::check(
        "all scores computed from views of the mapped file are equal",
        served.labels == saved.labels
            && served.logits(&held_out.pixels) == saved.logits(&held_out.pixels),
    )?;
    Ok(())
}
