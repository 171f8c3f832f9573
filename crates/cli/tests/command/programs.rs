//! Subcommands that are programs of their own.

use std::os::unix::fs::symlink;
use std::path::Path;

use crate::support::{Dir, Ran, command};

/// Runs the program with this directory as the only one of programs.
fn run(dir: &Dir, programs: &Path, args: &[&str]) -> Ran {
    let output = command(dir).env("PATH", programs).args(args).output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    Ran { status: output.status.code().unwrap(), bytes: output.stdout, err }
}

#[test]
fn an_unknown_subcommand_is_a_program_if_there_is_one() {
    let dir = Dir::new();
    symlink("/bin/echo", dir.file("tenarc-query")).unwrap();
    symlink("/bin/false", dir.file("tenarc-never")).unwrap();
    let found = run(&dir, dir.path(), &["query", "SELECT 1", "--json", "a=b"]);
    assert_eq!(found.good(), "SELECT 1 --json a=b\n");
    assert_eq!(run(&dir, dir.path(), &["never"]).status, 1);
    let nowhere = dir.file("nowhere");
    run(&dir, &nowhere, &["query", "SELECT 1"]).failed(2, "cargo install tenarc-query");
    run(&dir, &nowhere, &["shwo"]).failed(2, "'show'");
    run(&dir, dir.path(), &["../tenarc-query"]).failed(2, "unrecognized subcommand");
}
