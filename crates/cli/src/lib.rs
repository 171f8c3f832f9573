//! The command line of tenarc as a library: `tenarc` itself runs [`run`], and a program that can open addresses such as
//! `s3://bucket/model.tenarc` runs [`run_with`]. There is nothing else here: use the crate `tenarc`.

mod address;
mod args;
mod change;
mod commands;
mod condition;
mod document;
mod elements;
mod failure;
mod fields;
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

pub use self::address::Addresses;

/// Runs the command line of this process.
#[must_use]
pub fn run() -> ExitCode {
    commands::run()
}

/// Like [`run`], with addresses of objects wherever a file can be named.
#[must_use]
pub fn run_with(addresses: impl Addresses + 'static) -> ExitCode {
    address::set(Box::new(addresses));
    commands::run()
}
