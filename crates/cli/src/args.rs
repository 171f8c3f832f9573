//! The command line: its options and help texts.

mod change;
mod check;
mod look;
mod shared;

pub use change::{Cat, Compact, Convert, Cp, Edit, Merge, Split};
pub use check::{Diff, Digest, Recover, Verify};
pub use look::{Diag, Get, GetFormat, Info, Ls, Show, Sort, Stats, View};
pub use shared::{AsJson, Choose, Compress, Inputs, Output, Patterns, Read};

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::failure::EXIT_STATUSES;

const AFTER: &str = "\
A path names a part of a value: field names, keys and positions joined by dots, as in layers.3.weight. \
If a dotted path is ambiguous, use a JSON Pointer, as in /layers/3/weight. In patterns, * matches any \
characters, including dots; ? matches one character; [ab] and {a,b} match one of several.

A sequence that is stored as columns is a table: events.3.score is a field of a row, events.score is that field of \
all rows. Here, events is the name of a table, or a path to one in the only value of a file.

The format of a file is detected from its first bytes, then from its name, or given by --from and --to. CBOR, MessagePack \
and ONNX are known by their names only. For a \
sharded model, name the index, model.safetensors.index.json or pytorch_model.bin.index.json, or its directory if that is the only \
index in it. For a distributed checkpoint of torch, also one of safetensors, name its directory. Some content of other formats is \
not read, such as arrays of Python objects. It is reported on standard error, and commands that write a \
file stop, except `convert --lossy`.

If the command was installed by the package tenarc-store-cli, a file can also be an object in a store: \
s3://bucket/model.tenarc, gs://bucket/model.tenarc, az://container/model.tenarc, or an https address. Keys come from \
the environment, such as AWS_ACCESS_KEY_ID. AWS_SKIP_SIGNATURE=true reads public buckets without keys.

`tenarc NAME` runs the program tenarc-NAME if it is no command of this one: `tenarc query` is tenarc-query, SQL on tables.

The file name - means standard input or standard output. Pipes work like files. Colours are used if the \
output is a terminal and NO_COLOR is not set.";

/// Inspects, checks, compares, edits and converts files of tensors: tenarc archives, CBOR messages with
/// typed arrays, JSON, MessagePack, safetensors, npz, npy, Arrow, Parquet, GGUF and tenbin; reads torch files, ONNX models and HDF5 files
#[derive(Debug, Parser)]
#[command(name = "tenarc", version, propagate_version = true, max_term_width = 100)]
#[command(after_help = EXIT_STATUSES, after_long_help = format!("{AFTER}\n\n{EXIT_STATUSES}"))]
pub struct Cli {
    /// When to use colours
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        help_heading = "Global options"
    )]
    pub color: Color,
    /// Hide progress bars and notes
    #[arg(long, short, global = true, help_heading = "Global options")]
    pub quiet: bool,
    /// The memory limit for each value, such as 64MiB. By default, it depends on the size of the input, and is at most
    /// 16 GiB if the input is not in memory
    #[arg(
        long,
        global = true,
        value_name = "SIZE",
        value_parser = shared::size,
        help_heading = "Global options"
    )]
    pub max_memory: Option<u64>,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Summarize files: values, tensors, parameters, dtypes
    Info(Info),
    /// List the tensors and columns: path, dtype, shape, bytes
    Ls(Ls),
    /// Show a value: metadata as text, tensors abbreviated
    Show(Show),
    /// Print or save one tensor or another value, or a slice of it
    Get(Get),
    /// Show statistics of each tensor: min, max, mean, histogram
    Stats(Stats),
    /// Show a file in the browser: tree, statistics, pictures, tables
    View(View),
    /// Compare two files: structure, dtypes, values
    Diff(Diff),
    /// Check files for damage, and report the first bad byte
    Verify(Verify),
    /// Print the content digests of archives; tensors are not read
    Digest(Digest),
    /// Print values in CBOR diagnostic notation
    Diag(Diag),
    /// Repair a truncated or damaged archive: keep what is complete
    Recover(Recover),
    /// Copy files as they are, and verify archives
    Cp(Cp),
    /// Write the values of several files into one file, one after the other
    Cat(Cat),
    /// Spread the values of a file, or the tensors of one value, over several archives
    Split(Split),
    /// Join the shards of a value, or maps of tensors, into one value; merge a LoRA adapter into weights
    Merge(Merge),
    /// Drop, keep, rename and cast tensors, and set metadata
    Edit(Edit),
    /// Write the rows of tables that were appended bit by bit into few segments; delete or sort rows
    Compact(Compact),
    /// Write a file in another format
    Convert(Convert),
    /// Print a completion script for a shell
    Completions(Completions),
    /// Print the manual page
    #[command(hide = true)]
    Man,
}

#[derive(Args, Debug)]
pub struct Completions {
    /// The shell
    pub shell: Shell,
}
