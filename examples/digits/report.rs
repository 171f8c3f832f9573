//! Prints the results to stdout, 80 columns wide.

use std::path::Path;
use std::time::Duration;

use ndarray::{Array2, Axis};
use tenarc::tensor::TensorInfo;

use crate::checkpoint::Checkpoint;
use crate::compare::{Measured, RUNS};
use crate::data::{CLASSES, PIXELS, Rows, SIDE, draw};

/// The number of misread digits to show; as many as fit side by side.
const SHOWN: usize = 4;

pub fn plan(checkpoint: &Checkpoint, train: &Rows, held_out: &Rows) {
    println!(
        "Data      {} handwritten digits, {SIDE} x {SIDE} pixels: train on {}, hold out {}",
        thousands(train.len() + held_out.len()),
        thousands(train.len()),
        held_out.len()
    );
    println!(
        "Network   {PIXELS} - {} {:?} - {CLASSES}: {} parameters",
        checkpoint.config.hidden_units,
        checkpoint.network.activation,
        thousands(checkpoint.network.parameter_count())
    );
}

pub fn training(checkpoint: &Checkpoint, time: Duration) {
    if let [first, .., last] = checkpoint.history[..] {
        println!(
            "Training  {} epochs, {} steps of Adam in {:.1} s; loss from {:.3} to {:.5}",
            last.number,
            thousands(usize::try_from(checkpoint.optimizer.step).unwrap_or(usize::MAX)),
            time.as_secs_f64(),
            first.loss,
            last.loss
        );
    }
}

/// Prints and returns the fraction of rows that are classified correctly.
#[allow(clippy::cast_precision_loss)] // a few hundred rows
pub fn accuracy(checkpoint: &Checkpoint, held_out: &Rows, guesses: &[usize]) -> f64 {
    let right = rows_where(held_out, guesses, |guess, label| guess == label).len();
    let share = right as f64 / held_out.len() as f64;
    println!(
        "Accuracy  {:.1} % of the held-out digits ({right} of {}), loss {:.3}",
        100.0 * share,
        held_out.len(),
        checkpoint.loss(held_out)
    );
    share
}

/// Prints the confusion matrix.
pub fn confusion(held_out: &Rows, guesses: &[usize]) {
    let mut counts = Array2::<usize>::zeros((CLASSES, CLASSES));
    for (&label, &guess) in held_out.labels.iter().zip(guesses) {
        counts[[label, guess]] += 1;
    }
    println!("\n  Rows: the digit that was written. Columns: what it was read as.\n");
    print!("      ");
    for digit in 0..CLASSES {
        print!("{digit:>4}");
    }
    for (label, row) in counts.axis_iter(Axis(0)).enumerate() {
        print!("\n  {label:>4}");
        for count in row {
            match count {
                0 => print!("{:>4}", '·'),
                _ => print!("{count:>4}"),
            }
        }
    }
    println!();
}

/// Draws the first few digits that were misread.
pub fn mistakes(held_out: &Rows, guesses: &[usize]) {
    let mut rows = rows_where(held_out, guesses, |guess, label| guess != label);
    let count = rows.len();
    rows.truncate(SHOWN);
    if rows.is_empty() {
        return;
    }
    match rows.len() {
        shown if shown == count => println!("\n  The misread digits:\n"),
        shown => println!("\n  {shown} of the {count} misread digits:\n"),
    }
    let images: Vec<_> = rows.iter().map(|&row| held_out.pixels.row(row)).collect();
    for line in draw(&images) {
        println!("  {}", line.trim_end());
    }
    let captions: Vec<_> = rows
        .iter()
        .map(|&row| {
            format!("{:<16}", format!("{}, read as {}", held_out.labels[row], guesses[row]))
        })
        .collect();
    println!("  {}", captions.join("   ").trim_end());
}

/// The rows whose guess and label fit the condition.
fn rows_where(rows: &Rows, guesses: &[usize], keep: fn(usize, usize) -> bool) -> Vec<usize> {
    (0..rows.len()).filter(|&row| keep(guesses[row], rows.labels[row])).collect()
}

pub fn saved(path: &Path, bytes: u64, tensors: usize) {
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    println!("\nSaved     {}", path.display());
    println!(
        "          {} bytes, {} of them in tensors; removed at the end",
        thousands(bytes),
        thousands(tensors)
    );
}

/// Prints the largest tensors of an opened file.
pub fn tensors(tensors: &[TensorInfo]) {
    let mut largest: Vec<&TensorInfo> = tensors.iter().collect();
    largest.sort_by_key(|tensor| std::cmp::Reverse(tensor.byte_len()));
    println!("Inside    {} tensors; the largest:", tensors.len());
    for tensor in largest.iter().take(SHOWN) {
        println!("          {:<43} {} {:?}", tensor.path(), tensor.dtype(), tensor.shape());
    }
}

/// Prints that `what` holds, or fails.
pub fn check(what: &str, holds: bool) -> Result<(), String> {
    if !holds {
        return Err(format!("the loaded checkpoint differs; this check failed: {what}"));
    }
    println!("Equal     {what}");
    Ok(())
}

#[allow(clippy::cast_precision_loss)] // sizes in bytes
pub fn formats(measured: &[Measured], tensors: usize) {
    println!(
        "\n  The same struct to and from memory, medians of {RUNS} runs.\n  \
         Overhead: whatever is not one of the {} bytes of tensors.\n  \
         A `Tensor` is a block of bytes in MessagePack too; plain arrays are numbers.\n",
        thousands(tensors)
    );
    println!("  {:<26}{:>10}{:>10}{:>11}{:>11}   exact", "", "bytes", "overhead", "write", "read");
    for format in measured {
        println!(
            "  {:<26}{:>10}{:>8.1} %{:>11}{:>11}   {}",
            format.name,
            thousands(format.bytes),
            100.0 * (format.bytes as f64 / tensors as f64 - 1.0),
            micros(format.write),
            micros(format.read),
            if format.exact { "yes" } else { "no" }
        );
    }
    if measured.iter().any(|format| !format.exact) {
        println!("\n  Without its feature float_roundtrip, serde_json reads some f64 inexactly.");
    }
}

fn micros(time: Duration) -> String {
    format!("{} µs", thousands(usize::try_from(time.as_micros()).unwrap_or(usize::MAX)))
}

/// 12345 as `12,345`.
pub fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
