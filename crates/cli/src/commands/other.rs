//! Subcommands that are programs of their own, such as `tenarc-query`.

use std::env;
use std::io;
use std::process::{Command, ExitCode};

use clap::Error;

use crate::failure::Status;
use crate::output::say;

/// Runs the program `tenarc-NAME` for a subcommand that is unknown, as cargo and git do. If there is none, this ends with the error of
/// the command line.
pub fn run(error: &Error) -> ExitCode {
    let mut args = env::args_os().skip(1);
    let name = args.next().and_then(|name| name.into_string().ok()).unwrap_or_default();
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)) {
        error.exit();
    }
    let program = format!("tenarc-{name}");
    match Command::new(&program).args(args).status() {
        Ok(status) => match status.code().and_then(|code| u8::try_from(code).ok()) {
            Some(code) => ExitCode::from(code),
            None => Status::Failed.into(),
        },
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            say(&format!("{program}: {error}"));
            Status::Failed.into()
        }
        Err(_) if name == "query" => {
            say(
                "SQL on tables is in a program of its own, which is not installed: cargo install tenarc-query",
            );
            Status::Failed.into()
        }
        Err(_) => error.exit(),
    }
}
