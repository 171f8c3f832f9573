//! `completions`: prints a completion script for a shell.

use std::io::Write;

use clap::CommandFactory;

use crate::args::{Cli, Completions};
use crate::failure::{Result, Status};
use crate::output::Out;

pub fn run(args: &Completions, out: &mut Out) -> Result<Status> {
    // The generator panics if a write fails, so it writes to memory.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "tenarc", &mut script);
    out.write_all(&script)?;
    Ok(Status::Good)
}
