//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::document::Reading;
use crate::failure::EXIT_STATUSES;
use crate::formats::Format;

const AFTER: &str = "\
Paths name what is in a value: field names, keys and positions joined by dots, as in layers.3.weight; \
where that could mean several, a JSON Pointer, as in /layers/3/weight. In patterns, * stands for any \
characters, dots included, ? for one, [ab] and {a,b} for one of several.

Formats are told by the first bytes and the name of a file, or by --from and --to. Of a model of safetensors in \
several files, name the index: model.safetensors.index.json. Tensors are read when they are asked for. What a \
file holds that is not read, such as the graph of an ONNX model, is said on standard error, and stops what \
writes another file, unless that is `convert --lossy`.

A file named - is standard input or output. Pipes are read as files are. Colours are used where a \
terminal watches and NO_COLOR is not set.";

/// Looks into, checks, compares, edits and converts files of tensors: archives of tenarc, CBOR messages
/// with typed arrays, JSON, MessagePack, safetensors, npz, npy, Arrow, tenbin, and, to read, torch's files and ONNX models.
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
    /// Show no progress
    #[arg(long, short, global = true, help_heading = "Global options")]
    pub quiet: bool,
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
    /// List the tensors: path, dtype, shape, bytes
    Ls(Ls),
    /// Show a value: metadata as text, tensors elided
    Show(Show),
    /// Take out one tensor, or a slice of it
    Get(Get),
    /// Count and measure what is in each tensor
    Stats(Stats),
    /// Compare two files: structure, dtypes, values
    Diff(Diff),
    /// Check every byte, and name the first that is bad
    Verify(Verify),
    /// Print the items as CBOR diagnostic notation
    Diag(Diag),
    /// Make a torn archive whole: keep what was saved before the tear
    Recover(Recover),
    /// Put the values of several files into one archive, one behind the other
    Cat(Cat),
    /// Spread the values of a file, or the tensors of one value, over several archives
    Split(Split),
    /// Put together one value of what several files hold of it
    Merge(Merge),
    /// Drop, keep, rename and cast tensors, set metadata
    Edit(Edit),
    /// Write a file in another format
    Convert(Convert),
    /// Print a script that completes command lines in a shell
    Completions(Completions),
    /// Print the manual page
    #[command(hide = true)]
    Man,
}

#[derive(Args, Debug)]
pub struct Read {
    /// The format of the input, if its content and name do not tell
    #[arg(long, value_name = "FORMAT")]
    pub from: Option<Format>,
    /// Read what is whole of a torn archive
    #[arg(long)]
    pub torn: bool,
}

#[derive(Args, Debug)]
pub struct Choose {
    /// The one value meant, of an input that holds several: its name or number, from 0 on
    #[arg(long, short, value_name = "NAME")]
    pub segment: Option<String>,
}

#[derive(Args, Debug)]
pub struct AsJson {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct Output {
    /// The file to write; it appears whole or not at all
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,
    /// Do not wait until the file would survive a crash of the machine
    #[arg(long)]
    pub no_sync: bool,
}

impl Read {
    pub fn reading(&self) -> Reading {
        Reading { from: self.from, torn: self.torn }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// As they are stored
    Stored,
    Path,
    Dtype,
    /// By dimensions, and so by rank first
    Shape,
    Bytes,
}

#[derive(Args, Debug)]
pub struct Ls {
    /// The file to read, or - for standard input
    pub input: PathBuf,
    /// List only paths that one of these matches
    #[arg(value_name = "PATTERN")]
    pub patterns: Vec<String>,
    /// Show a tree
    #[arg(long, short, conflicts_with_all = ["sort", "reverse", "json"])]
    pub tree: bool,
    /// What to sort by
    #[arg(long, value_name = "WHAT", default_value = "stored")]
    pub sort: Sort,
    /// Last things first
    #[arg(long, short)]
    pub reverse: bool,
    #[command(flatten)]
    pub choose: Choose,
    #[command(flatten)]
    pub read: Read,
    #[command(flatten)]
    pub json: AsJson,
}

#[derive(Args, Debug)]
pub struct Show {
    /// The file to read, or - for standard input
    pub input: PathBuf,
    /// Show only what is there
    #[arg(default_value = "", hide_default_value = true)]
    pub path: String,
    /// Elide nothing
    #[arg(long)]
    pub full: bool,
    #[command(flatten)]
    pub choose: Choose,
    #[command(flatten)]
    pub read: Read,
    #[command(flatten)]
    pub json: AsJson,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GetFormat {
    /// numpy's file format
    Npy,
    /// The elements' bytes, little-endian, in row-major order
    Raw,
    /// A line for each row, elements separated by spaces, in as many digits as tell them apart
    Text,
}

#[derive(Args, Debug)]
pub struct Get {
    /// The file to read, or - for standard input
    pub input: PathBuf,
    /// The tensor, and what of it: weight, or weight[0:10, :]
    pub path: String,
    /// The file to write
    #[arg(long, short, value_name = "FILE", default_value = "-", hide_default_value = true)]
    pub output: PathBuf,
    /// The format to write; by default as the file's name ends, and text to standard output
    #[arg(long = "as", value_name = "FORMAT", conflicts_with = "json")]
    pub format: Option<GetFormat>,
    /// Convert the elements to this dtype
    #[arg(long, value_name = "DTYPE")]
    pub cast: Option<String>,
    #[command(flatten)]
    pub choose: Choose,
    #[command(flatten)]
    pub read: Read,
    #[command(flatten)]
    pub json: AsJson,
}

#[derive(Args, Debug)]
pub struct Stats {
    /// The file to read, or - for standard input
    pub input: PathBuf,
    /// Measure only paths that one of these matches
    #[arg(value_name = "PATTERN")]
    pub patterns: Vec<String>,
    #[command(flatten)]
    pub choose: Choose,
    #[command(flatten)]
    pub read: Read,
    #[command(flatten)]
    pub json: AsJson,
}

#[derive(Args, Debug)]
pub struct Diff {
    /// The file to compare
    pub a: PathBuf,
    /// The file to compare it with
    pub b: PathBuf,
    /// Compare only paths that one of these matches
    #[arg(value_name = "PATTERN")]
    pub patterns: Vec<String>,
    /// Take numbers for equal that differ by no more than this
    #[arg(long, value_name = "DIFFERENCE", default_value_t = 0.0)]
    pub atol: f64,
    /// Take numbers for equal that differ by no more than this part of the one in B
    #[arg(long, value_name = "PART", default_value_t = 0.0)]
    pub rtol: f64,
    /// Compare no values: structure, dtypes and shapes only
    #[arg(long)]
    pub structure: bool,
    #[command(flatten)]
    pub choose: Choose,
    #[command(flatten)]
    pub read: Read,
    #[command(flatten)]
    pub json: AsJson,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Of archives every byte is checked; of npz, and of files of PyTorch that have them, all checksums; of other \
formats, that they are well-formed, and what cannot be checked is said.")]
pub struct Verify {
    /// The files to read, or - for standard input
    #[arg(required = true)]
    pub inputs: Vec<PathBuf>,
    /// The format of the inputs, if their contents and names do not tell
    #[arg(long, value_name = "FORMAT")]
    pub from: Option<Format>,
    #[command(flatten)]
    pub json: AsJson,
}

#[derive(Args, Debug)]
pub struct Diag {
    /// The file to read, or - for standard input
    pub input: PathBuf,
    #[command(flatten)]
    pub choose: Choose,
    #[command(flatten)]
    pub read: Read,
    #[command(flatten)]
    pub json: AsJson,
}

#[derive(Args, Debug)]
pub struct Recover {
    /// The archive to mend, in its place
    pub file: PathBuf,
    /// Write the whole archive here, and leave the torn one as it is
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub json: AsJson,
}

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
Each shard of one value is an archive with all of its metadata, and undefined in place of tensors that are in \
another shard: paths stay the same, each can be read by itself, and `merge` puts them together.")]
pub struct Split {
    /// The file to read, or - for standard input
    pub input: PathBuf,
    /// The directory to write to; it is made if it is not there
    #[arg(long, short, value_name = "DIRECTORY", default_value = ".")]
    pub directory: PathBuf,
    /// Spread the tensors of one value over archives of at most so many bytes of tensors: 500M, 2GiB.
    /// Without it, each value becomes an archive
    #[arg(long, short, value_name = "SIZE", value_parser = crate::commands::split::size)]
    pub max_size: Option<u64>,
    /// Do not wait until the files would survive a crash of the machine
    #[arg(long)]
    pub no_sync: bool,
    #[command(flatten)]
    pub choose: Choose,
    #[command(flatten)]
    pub read: Read,
    #[command(flatten)]
    pub json: AsJson,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Shards, as `split --max-size` makes them, become the value that they are of; maps are joined. Where two files \
have different things at one place, nothing is written.")]
pub struct Merge {
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
Drops come first, then casts, renames and settings; patterns and paths of drops and casts are those of \
the input. What no change concerns is copied as it is.")]
pub struct Edit {
    /// The file to read, or - for standard input
    pub input: PathBuf,
    /// The archive to write; it appears whole or not at all
    #[arg(long, short, value_name = "FILE", required_unless_present = "in_place")]
    pub output: Option<PathBuf>,
    /// Put the result in the place of the input
    #[arg(long, short, conflicts_with = "output")]
    pub in_place: bool,
    /// Drop what is at the paths that match
    #[arg(long, value_name = "PATTERN")]
    pub drop: Vec<String>,
    /// Drop all tensors but those that match
    #[arg(long, value_name = "PATTERN")]
    pub keep: Vec<String>,
    /// Convert the elements of tensors that match; floats are rounded, integers must fit
    #[arg(long, value_name = "PATTERN=DTYPE")]
    pub cast: Vec<String>,
    /// Give what is at a path another
    #[arg(long, value_name = "OLD=NEW")]
    pub rename: Vec<String>,
    /// Put a value, in JSON, at a path; what is no JSON is text
    #[arg(long, value_name = "PATH=JSON")]
    pub set: Vec<String>,
    /// The alignment of tensors; by default that of the input
    #[arg(long, value_name = "BYTES")]
    pub align: Option<u64>,
    /// Do not wait until the file would survive a crash of the machine
    #[arg(long)]
    pub no_sync: bool,
    #[command(flatten)]
    pub choose: Choose,
    #[command(flatten)]
    pub read: Read,
}

#[derive(Args, Debug)]
pub struct Convert {
    /// The file to read, or - for standard input
    pub input: PathBuf,
    /// The file to write; it appears whole or not at all
    pub output: PathBuf,
    /// The format to write; by default as the file's name ends
    #[arg(long, value_name = "FORMAT")]
    pub to: Option<Format>,
    /// Leave out, or change, what cannot be read or the format has no place for, and say what it was
    #[arg(long)]
    pub lossy: bool,
    /// Do not wait until the file would survive a crash of the machine
    #[arg(long)]
    pub no_sync: bool,
    #[command(flatten)]
    pub choose: Choose,
    #[command(flatten)]
    pub read: Read,
}

#[derive(Args, Debug)]
pub struct Completions {
    /// The shell that is to read it
    pub shell: Shell,
}
