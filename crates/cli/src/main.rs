//! `tenarc`: inspects, checks, compares, edits and converts files of tensors.

use std::process::ExitCode;

fn main() -> ExitCode {
    tenarc_cli::run()
}
