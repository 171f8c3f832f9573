//! `man`: prints the manual page of the command and all its subcommands.

use std::io::Write;

use clap::CommandFactory;
use clap_mangen::Man;

use crate::args::Cli;
use crate::failure::{Result, Status};
use crate::output::Out;

pub fn run(out: &mut Out) -> Result<Status> {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let man = Man::new(command.clone());
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    writeln!(page, ".SH SUBCOMMANDS")?;
    for subcommand in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        subcommand_section(subcommand, &mut page)?;
    }
    man.render_extra_section(&mut page)?;
    man.render_version_section(&mut page)?;
    out.write_all(&page)?;
    Ok(Status::Good)
}

/// Writes the section of one subcommand: its synopsis and its own options.
fn subcommand_section(command: &clap::Command, page: &mut Vec<u8>) -> Result<()> {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    writeln!(page, ".SS {}", roff(command.get_name()))?;
    writeln!(page, "{}.", roff(&about))?;
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").trim();
    writeln!(page, ".PP\n.nf\n{}\n.fi", roff(usage))?;
    for arg in command.get_arguments().filter(|arg| !arg.is_hide_set() && !arg.is_global_set()) {
        if matches!(arg.get_id().as_str(), "help" | "version") {
            continue;
        }
        let Some(help) = arg.get_help() else { continue };
        let short = arg.get_short().map(|short| format!("-{short}, ")).unwrap_or_default();
        let names = roff(&format!("{short}{arg}"));
        writeln!(page, ".TP\n\\fB{names}\\fR\n{}", roff(&help.to_string()))?;
    }
    if let Some(after) = command.get_after_help() {
        writeln!(page, ".PP\n{}", roff(&after.to_string()))?;
    }
    Ok(())
}

/// Escapes text for troff. Hyphens stay ASCII, so that options can be searched for. No line starts a request.
fn roff(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    let lines = text.lines().map(|line| match line.chars().next() {
        Some('.' | '\'') => format!("\\&{line}"),
        _ => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}
