//! `tenarc`: inspects, checks, compares, edits and converts files of tensors.

mod args;
mod change;
mod commands;
mod condition;
mod document;
mod elements;
mod failure;
mod formats;
mod input;
mod inputs;
mod kept;
mod limits;
mod lora;
mod losses;
mod made;
mod node;
mod output;
mod panics;
mod paths;
mod payload;
mod plot;
mod progress;
mod rows;
mod shared;
mod slices;
mod table;
mod taken;
mod target;
mod temporary;
mod text;
mod written;

use std::process::ExitCode;

fn main() -> ExitCode {
    commands::run()
}
