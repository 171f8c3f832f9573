//! The subcommands. Each gets its parsed arguments, prints to [`Out`] and returns a [`Status`].

mod cat;
mod compact;
mod completions;
mod convert;
mod cp;
mod diag;
mod diff;
mod digest;
mod edit;
mod get;
mod info;
mod ls;
mod man;
mod merge;
mod other;
mod recover;
mod show;
mod split;
mod stats;
mod verify;
mod view;

use std::io::Write;
use std::process::ExitCode;

use anstream::ColorChoice;
use clap::Parser;
use clap::error::ErrorKind;

use crate::args::{Cli, Color, Command};
use crate::failure::{Kind, Result, Status};
use crate::limits::set_max_memory;
use crate::output::{Out, be_quiet, say};

/// Parses the command line and runs the subcommand.
pub fn run() -> ExitCode {
    let result = match Cli::try_parse() {
        Ok(cli) => dispatch(&cli),
        Err(error) if error.kind() == ErrorKind::InvalidSubcommand => return other::run(&error),
        Err(error) if error.use_stderr() => error.exit(),
        Err(help) => print(&help),
    };
    match result {
        Ok(status) => status.into(),
        Err(failure) => {
            if failure.kind != Kind::Closed {
                say(&failure.to_string());
            }
            failure.status()
        }
    }
}

/// Prints the help, or the version.
fn print(help: &clap::Error) -> Result<Status> {
    let mut out = Out::new(ColorChoice::Auto);
    let text = if out.is_coloured() { help.render().ansi().to_string() } else { help.to_string() };
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(Status::Good)
}

fn dispatch(cli: &Cli) -> Result<Status> {
    let choice = match cli.color {
        Color::Auto => ColorChoice::Auto,
        Color::Always => ColorChoice::Always,
        Color::Never => ColorChoice::Never,
    };
    if cli.quiet {
        be_quiet();
    }
    cli.max_memory.into_iter().for_each(set_max_memory);
    let mut out = Out::new(choice);
    let out = &mut out;
    let status = match &cli.command {
        Command::Info(args) => info::run(args, out),
        Command::Ls(args) => ls::run(args, out),
        Command::Show(args) => show::run(args, out),
        Command::Get(args) => get::run(args, out),
        Command::Stats(args) => stats::run(args, out),
        Command::View(args) => view::run(args, out),
        Command::Diff(args) => diff::run(args, out),
        Command::Verify(args) => verify::run(args, out),
        Command::Digest(args) => digest::run(args, out),
        Command::Diag(args) => diag::run(args, out),
        Command::Recover(args) => recover::run(args, out),
        Command::Cp(args) => cp::run(args),
        Command::Cat(args) => cat::run(args),
        Command::Split(args) => split::run(args, out),
        Command::Merge(args) => merge::run(args),
        Command::Edit(args) => edit::run(args),
        Command::Compact(args) => compact::run(args, out),
        Command::Convert(args) => convert::run(args),
        Command::Completions(args) => completions::run(args, out),
        Command::Man => man::run(out),
    };
    // If the command failed, what it printed before is still written.
    let flushed = out.flush();
    let status = status?;
    flushed?;
    Ok(status)
}
