//! Trains a small network with burn, and saves everything after each step. If it is stopped at any moment, even by
//! `kill -9`, the next run continues, and ends with the same weights and losses bit for bit.
//!
//! ```console
//! $ cargo run --release -p tenarc-burn --example resume_burn -- run.tenarc 2000
//! ```
//!
//! The images are the handwritten digits of `examples/digits`. The random generator that draws the batches is saved, too.
//! `crates/burn/tests/resume.rs` kills this program at random steps, and compares it with `plain.rs`, which saves nothing.

mod digits;
mod training;

fn main() -> digits::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().unwrap_or_else(|| "run.tenarc".to_owned());
    let steps = arguments.next().map_or(Ok(500), |steps| steps.parse())?;
    let (model, _) = training::train(path.as_ref(), steps, |state| {
        if state.step % 100 == 0 {
            println!(
                "step {}: loss {:.4}",
                state.step,
                state.losses.last().copied().unwrap_or_default()
            );
        }
    })?;
    let device = model.output.weight.val().device();
    let (right, all) = digits::Digits::load()?.recognised(&model, &device);
    println!("{right} of {all} images that were held out are recognised");
    Ok(())
}
