//! No command reads more than twice as often for twice the values of a table.

use std::process::Command;

use crate::support::Dir;
use serde::Serialize;

#[derive(Serialize)]
struct Row {
    a: u8,
    text: &'static str,
}

/// The number of times that the program reads an archive, as strace shows them.
fn reads(dir: &Dir, args: &[&str]) -> usize {
    let mut command = Command::new("strace");
    command.args(["-f", "-y", "-e", "trace=read,pread64", env!("CARGO_BIN_EXE_tenarc")]);
    let output = command.args(args).current_dir(dir.path()).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {err}");
    err.lines().filter(|call| call.contains(".tenarc>")).count()
}

#[test]
fn twice_the_values_take_twice_the_reads() {
    let dir = Dir::new();
    // Blocks of the directory hold 64 names, so fewer values than that are found without them.
    for (name, count) in [("once", 200), ("twice", 400)] {
        let rows = [Row { a: 1, text: "x" }, Row { a: 2, text: "y" }];
        let values: Vec<(Option<&str>, &[Row])> =
            (0..count).map(|_| (Some("t"), &rows[..])).collect();
        for name in [format!("{name}.tenarc"), format!("{name}-again.tenarc")] {
            dir.save_all(&name, &values);
        }
    }
    for args in [
        &["info", "FILE.tenarc"][..],
        &["ls", "FILE.tenarc"],
        &["stats", "FILE.tenarc"],
        &["verify", "FILE.tenarc"],
        &["digest", "FILE.tenarc"],
        &["show", "FILE.tenarc"],
        &["show", "FILE.tenarc", "t", "--json"],
        &["show", "FILE.tenarc", "t[1:-1]", "--full"],
        &["show", "FILE.tenarc", "t.a"],
        &["show", "FILE.tenarc", "-s", "7"],
        &["diff", "FILE.tenarc", "FILE-again.tenarc"],
        &["cat", "FILE.tenarc", "FILE-again.tenarc", "-o", "new.tenarc"],
        &["convert", "FILE.tenarc", "new.json"],
        &["convert", "FILE.tenarc", "new.parquet"],
        &["convert", "-s", "t", "FILE.tenarc", "new.arrow"],
    ] {
        let [once, twice] = ["once", "twice"].map(|name| {
            let args: Vec<_> = args.iter().map(|arg| arg.replace("FILE", name)).collect();
            reads(&dir, &args.iter().map(String::as_str).collect::<Vec<_>>())
        });
        assert!(once > 0 && twice <= 5 * once / 2, "{args:?}: {once} reads, then {twice}");
    }
}
