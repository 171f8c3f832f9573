//! Trains a small network with candle, and saves everything after each step. If it is stopped at any moment, even by
//! `kill -9`, the next run continues, and ends with the same weights and losses bit for bit.
//!
//! ```console
//! $ cargo run --release -p tenarc-candle --example resume_candle -- run.tenarc 2000
//! ```
//!
//! The images are the handwritten digits of `examples/digits`. The random generator that draws the batches is saved, too.
//! `crates/candle/tests/resume.rs` kills this program at random steps, and compares it with `plain.rs`, which saves nothing.

mod digits;
mod training;

fn main() -> digits::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().unwrap_or_else(|| "run.tenarc".to_owned());
    let steps = arguments.next().map_or(Ok(500), |steps| steps.parse())?;
    let (model, _) = training::train(&path, steps, |state| {
        if state.step % 100 == 0 {
            println!(
                "step {}: loss {:.4}",
                state.step,
                state.losses.last().copied().unwrap_or_default()
            );
        }
    })?;
    let (right, all) = digits::Digits::load()?.recognised(&model)?;
    println!("{right} of {all} images that were held out are recognised");
    Ok(())
}
