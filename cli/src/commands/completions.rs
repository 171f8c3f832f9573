//! `completions`: scripts for shells.

use std::io::Write;

use clap::CommandFactory;

use crate::args::{Cli, Completions};
use crate::failure::{Result, Status};
use crate::output::Out;

pub fn run(args: &Completions, out: &mut Out) -> Result<Status> {
    // The generator expects writes not to fail.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "tenarc", &mut script);
    out.write_all(&script)?;
    Ok(Status::Good)
}
