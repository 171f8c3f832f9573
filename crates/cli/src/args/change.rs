//! The options of the subcommands that write files.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::shared::size;
use super::{AsJson, Choose, Compress, Output, Patterns, Read};
use crate::formats::Format;
use crate::target::Writing;

#[derive(Args, Debug)]
pub struct Cat {
    /// The files to read, or - for standard input
    #[arg(required = true)]
    pub inputs: Vec<PathBuf>,
    #[command(flatten)]
    pub read: Read,
    #[command(flatten)]
    pub output: Output,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Bytes are copied as they are. Of an archive that becomes a file or an object, all checksums are verified before the copy appears. A damaged \
one is not copied. The package tenarc-store-cli has the same command for addresses, such as s3://bucket/model.tenarc.")]
pub struct Cp {
    /// The files to copy, or - for standard input
    #[arg(required = true, value_name = "INPUT")]
    pub inputs: Vec<PathBuf>,
    /// The file to write, or a directory for copies with the same names; a file is replaced only once the new one is complete
    pub output: PathBuf,
    #[command(flatten)]
    pub writing: Writing,
}

#[derive(Args, Debug)]
#[command(after_help = "\
With --max-size, each shard is an archive that holds all of the value's metadata, with undefined in place of \
the tensors that are in other shards. Each shard can be read alone, and paths stay the same. `merge` joins them. \
A sequence that is stored as columns is not divided: it counts as one tensor with the size of all its columns. \
Compressed tensors count with their size after they were decompressed.")]
pub struct Split {
    /// The file to read, or - for standard input
    pub input: PathBuf,
    /// The directory to write to; it is created if it does not exist
    #[arg(long, short, value_name = "DIRECTORY", default_value = ".")]
    pub directory: PathBuf,
    /// Spread the tensors of one value over archives with at most this many bytes of tensors: 500M, 2GiB. A tensor
    /// that is larger has an archive of its own.
    /// Without this option, each value becomes one archive
    #[arg(long, short, value_name = "SIZE", value_parser = size)]
    pub max_size: Option<u64>,
    #[command(flatten)]
    pub compress: Compress,
    #[command(flatten)]
    pub writing: Writing,
    #[command(flatten)]
    pub choose: Choose,
    #[command(flatten)]
    pub read: Read,
    #[command(flatten)]
    pub json: AsJson,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Joins the shards that `split --max-size` writes, and maps from names to tensors. If two files hold different \
things at one path, nothing is written. With --lora, each weight W becomes W + s * B * A, with the matrices and the scale s of the \
adapter. This is computed in f32 and rounded once to the dtype of W. A tensor that the adapter holds as a whole takes the place of W.")]
pub struct Merge {
    /// The files to read, or - for standard input
    #[arg(required = true)]
    pub inputs: Vec<PathBuf>,
    /// Merge this LoRA adapter of PEFT into the weights of the only input: its directory, or the safetensors file in
    /// that directory
    #[arg(long, value_name = "ADAPTER")]
    pub lora: Option<PathBuf>,
    #[command(flatten)]
    pub compress: Compress,
    #[command(flatten)]
    pub read: Read,
    #[command(flatten)]
    pub output: Output,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Changes are made in this order: --drop and --keep, --cast, --rename, --set. Patterns of --drop, --keep and \
--cast match paths of the input. Values that no change affects are copied unchanged, unless --compress is given. Compressed tensors that are not \
changed stay as they are. Those that --cast converts are compressed only with --compress.")]
pub struct Edit {
    /// The file to read, or - for standard input
    pub input: PathBuf,
    /// The file to write; it is replaced only once the new one is complete
    #[arg(long, short, value_name = "FILE", required_unless_present = "in_place")]
    pub output: Option<PathBuf>,
    /// The format to write; by default from the name of the output, and an archive if that has no extension
    #[arg(long, value_name = "FORMAT", conflicts_with = "in_place")]
    pub to: Option<Format>,
    /// Replace the input with the result
    #[arg(long, short, conflicts_with_all = ["output", "no_clobber"])]
    pub in_place: bool,
    /// Drop everything whose path matches
    #[arg(long, value_name = "PATTERN")]
    pub drop: Vec<String>,
    /// Drop all tensors whose path does not match
    #[arg(long, value_name = "PATTERN")]
    pub keep: Vec<String>,
    /// Convert the elements of matching tensors, or without a pattern of all tensors of floats; floats are rounded, integers
    /// must fit
    #[arg(long, value_name = "[PATTERN=]DTYPE")]
    pub cast: Vec<String>,
    /// Rename OLD to NEW: a value, or all values whose paths start with OLD; each * in OLD stands for any text, and one in NEW
    /// for the same text: 'model.*=*'
    #[arg(long, value_name = "OLD=NEW")]
    pub rename: Vec<String>,
    /// Set the value at a path; if it is not valid JSON, it is taken as text
    #[arg(long, value_name = "PATH=JSON")]
    pub set: Vec<String>,
    /// The alignment of tensors in the file; by default as in the input
    #[arg(long, value_name = "BYTES")]
    pub align: Option<u64>,
    #[command(flatten)]
    pub compress: Compress,
    #[command(flatten)]
    pub writing: Writing,
    #[command(flatten)]
    pub choose: Choose,
    #[command(flatten)]
    pub read: Read,
}

#[derive(Args, Debug)]
#[command(after_help = "\
A program that often appends a few rows under one name makes a segment for each append. compact writes the rows of each such \
table into few segments, and copies all other values. Rows keep their order and their form. Without --name, only values that are stored \
as columns are merged. --delete and --sort are for one table: if there are several, --name says which.

Without --output, the file is replaced once the new one is complete and verified. Programs that have the old one open can go on reading it, \
and nobody can append to it meanwhile. If anything fails, the file stays as it was.")]
pub struct Compact {
    /// The archive; without --output it is replaced
    pub file: PathBuf,
    /// Write the new archive here, or to standard output (-), and leave the input as it is
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Write only the table of this name anew, or those of several names; also if its values are stored as arrays
    #[arg(long, short, value_name = "NAME")]
    pub name: Vec<String>,
    /// Sort the rows by this column: numbers, texts or bools. NaN comes after the numbers, null comes last
    #[arg(long, value_name = "COLUMN")]
    pub sort: Option<String>,
    /// Delete the rows that meet a condition, as in show --where: 'day < "2026-01-01" and score is null'. Rows for which it is
    /// null stay
    #[arg(long, value_name = "CONDITION")]
    pub delete: Option<String>,
    #[command(flatten)]
    pub compress: Compress,
    /// Do not wait until the output is on disk; it may then be lost if the machine crashes
    #[arg(long)]
    pub no_sync: bool,
    /// Do not replace a file that is there
    #[arg(long, requires = "output")]
    pub no_clobber: bool,
    #[command(flatten)]
    pub json: AsJson,
}

#[derive(Args, Debug)]
#[command(after_help = "\
--compress and --dedup are for archives. For other formats they are errors. With --shard-size, model.safetensors becomes \
model-00001-of-00002.safetensors and so on, and model.safetensors.index.json. An output named \
*.index.json is sharded, too, by default in files of 5 GB. --names is for inputs of other formats that \
hold named tensors.")]
pub struct Convert {
    /// The file to read, or - for standard input
    pub input: PathBuf,
    /// The file to write; it is replaced only once the new one is complete
    pub output: PathBuf,
    /// The format to write; by default from the name of the output
    #[arg(long, value_name = "FORMAT")]
    pub to: Option<Format>,
    /// Leave out, or change, what cannot be read or written in the output format; each loss is reported
    #[arg(long)]
    pub lossy: bool,
    #[command(flatten)]
    pub only: Patterns,
    /// Convert the elements of matching tensors, or without a pattern of all tensors of floats, as edit does
    #[arg(long, value_name = "[PATTERN=]DTYPE", conflicts_with = "patterns")]
    pub cast: Vec<String>,
    /// Whether dotted names become nested maps
    #[arg(long, value_name = "HOW")]
    pub names: Option<Names>,
    /// Store equal tensors once
    #[arg(long)]
    pub dedup: bool,
    /// Write a safetensors model as several files of at most this many bytes, such as 5GB, and an index. A model that
    /// fits into one file is one file
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub shard_size: Option<u64>,
    #[command(flatten)]
    pub compress: Compress,
    #[command(flatten)]
    pub writing: Writing,
    #[command(flatten)]
    pub choose: Choose,
    #[command(flatten)]
    pub read: Read,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Names {
    /// As the file says: nested if it was written from a nested value
    Stored,
    /// As they are: one map of all tensors
    Flat,
    /// Taken apart at their dots: layers.0.weight is in the first of layers
    Nested,
}

impl From<Names> for tenarc_convert::Names {
    fn from(names: Names) -> Self {
        match names {
            Names::Stored => Self::Stored,
            Names::Flat => Self::Flat,
            Names::Nested => Self::Nested,
        }
    }
}
