//! Trains a network on handwritten digits, saves everything training needs to go on, loads it
//! again, and shows that nothing was lost.
//!
//! ```sh
//! cargo run --release --example digits
//! ```
//!
//! `checkpoint.rs` holds the struct that is saved; the lines that save and load it are in `run`.

mod checkpoint;
mod compare;
mod data;
mod network;
mod optimizer;
mod plain;
mod report;

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Write};
use std::process::ExitCode;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};

use checkpoint::{Checkpoint, Config};
use data::Rows;
use network::Activation;
use optimizer::Rng;

const EPOCHS: u64 = 100;
/// Anything less, and the network has not learned what it should have.
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
    // Draws on stderr, and only where that is a terminal.
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
        return Err(
            format!("{accuracy:.3} is less than {REQUIRED_ACCURACY} on held-out rows").into()
        );
    }
    report::confusion(&held_out, &guesses);
    report::mistakes(&held_out, &guesses);

    let path = std::env::temp_dir().join(format!("tenarc-digits-{}.cbor", std::process::id()));
    let mut file = BufWriter::new(File::create_new(&path)?);
    tenarc::to_writer(&mut file, &trained)?;
    file.flush()?;
    report::saved(&path, fs::metadata(&path)?.len(), trained.tensor_bytes());
    let loaded: Checkpoint = tenarc::from_reader(BufReader::new(File::open(&path)?))?;
    prove_equal(&trained, loaded, &train, &held_out)?;
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
        &format!("all {scores} held-out scores are equal bit for bit"),
        bits(saved) == bits(&loaded),
    )?;

    // Any moment, random number or count lost on the way would send the two apart here.
    let mut original = saved.clone();
    let epoch = original.train_epoch(train);
    loaded.train_epoch(train);
    let equal = tenarc::to_vec(&original)? == tenarc::to_vec(&loaded)?;
    report::check(
        &format!("so is everything after both train epoch {}", epoch.number),
        equal && bits(&original) == bits(&loaded),
    )?;
    Ok(())
}
