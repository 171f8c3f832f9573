//! The command line: its options and help texts.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use tenarc::DType;
use tenarc::archive::Compression;

use crate::document::Reading;
use crate::failure::EXIT_STATUSES;
use crate::formats::Format;

const AFTER: &str = "\
A path names a part of a value: field names, keys and positions joined by dots, as in layers.3.weight. \
If a dotted path is ambiguous, use a JSON Pointer, as in /layers/3/weight. In patterns, * matches any \
characters, including dots; ? matches one character; [ab] and {a,b} match one of several.

A sequence that is stored as columns is a table: events.3.score is a field of a row, events.score is that field of \
all rows. events is the name of values in an archive, which together are the table, or a path in the only value.

The format of a file is detected from its first bytes, then from its name, or given by --from and --to. CBOR, MessagePack \
and ONNX are known by their names only. For a \
sharded safetensors model, name the index: model.safetensors.index.json. For a distributed checkpoint of torch, name its \
directory. Some content of other formats is \
not read, such as arrays of Python objects. It is reported on standard error, and commands that write a \
file stop, except `convert --lossy`.

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
    /// Show neither progress bars nor notes about what is left out by design
    #[arg(long, short, global = true, help_heading = "Global options")]
    pub quiet: bool,
    /// How much memory a value may take while it is read: 64MiB, 100GB. By default, this depends on the size of the
    /// input, and is at most 16 GiB if the input is not in memory
    #[arg(
        long,
        global = true,
        value_name = "SIZE",
        value_parser = crate::commands::split::size,
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
    /// Say what files are, and how much is in them: values, tensors, parameters, dtypes
    Info(Info),
    /// List the tensors and columns: path, dtype, shape, bytes
    Ls(Ls),
    /// Show a value: metadata as text, tensors abbreviated
    Show(Show),
    /// Print or save one tensor or another value, or a slice of it
    Get(Get),
    /// Show statistics of each tensor: min, max, mean, histogram
    Stats(Stats),
    /// Compare two files: structure, dtypes, values
    Diff(Diff),
    /// Check files for damage, and report the first bad byte
    Verify(Verify),
    /// Print the digests of archives, which name their contents, without reading tensors
    Digest(Digest),
    /// Print values in CBOR diagnostic notation
    Diag(Diag),
    /// Repair a truncated or damaged archive: keep what is complete
    Recover(Recover),
    /// Write the values of several files into one file, one after the other
    Cat(Cat),
    /// Spread the values of a file, or the tensors of one value, over several archives
    Split(Split),
    /// Join the shards of a value, or maps of tensors, into one value
    Merge(Merge),
    /// Drop, keep, rename and cast tensors, and set metadata
    Edit(Edit),
    /// Write a file in another format
    Convert(Convert),
    /// Print a completion script for a shell
    Completions(Completions),
    /// Print the manual page
    #[command(hide = true)]
    Man,
}

#[derive(Args, Debug)]
pub struct Read {
    /// The format of the input, if it is not detected from content and name
    #[arg(long, value_name = "FORMAT")]
    pub from: Option<Format>,
    /// Read the complete values of a truncated archive
    #[arg(long)]
    pub torn: bool,
    /// With --torn: also read the complete tensors of the value that is cut off; its checksums are missing
    #[arg(long, requires = "torn")]
    pub no_verify: bool,
    /// The dtype of elements of type V2 or V1 in npy and npz files: numpy saves JAX's bf16 and FP8 as these types. Can
    /// be given once for each width
    #[arg(long, value_name = "DTYPE", value_parser = dtype)]
    pub void: Vec<DType>,
}

/// Parses the name of a dtype whose elements are whole bytes.
fn dtype(text: &str) -> Result<DType, String> {
    let dtype = DType::from_name(text);
    match dtype.bits() {
        Some(bits) if bits.is_multiple_of(8) => Ok(dtype),
        Some(_) => Err("its elements are no whole bytes".into()),
        None => Err("expected a dtype such as bf16, f8_e4m3 or f16".into()),
    }
}

/// The files that a command reads one after the other.
#[derive(Args, Debug)]
pub struct Inputs {
    /// The files to read, or - for standard input
    #[arg(required = true, value_name = "INPUT")]
    pub inputs: Vec<PathBuf>,
}

/// The parts of a value that a command is for.
#[derive(Args, Debug)]
pub struct Patterns {
    /// Take only tensors whose path matches this pattern, or one of several: -e '*.weight' -e '*.bias'
    #[arg(long = "pattern", short = 'e', value_name = "PATTERN")]
    pub patterns: Vec<String>,
}

#[derive(Args, Debug)]
pub struct Choose {
    /// Choose one value of an input that holds several, by its name or number (from 0)
    #[arg(long, short, value_name = "NAME")]
    pub segment: Option<String>,
}

#[derive(Args, Debug)]
pub struct AsJson {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// How files are written.
#[derive(Args, Clone, Copy, Debug)]
pub struct Writing {
    /// Do not wait until the output is on disk; it may then be lost if the machine crashes
    #[arg(long)]
    pub no_sync: bool,
    /// Do not replace a file that is there
    #[arg(long)]
    pub no_clobber: bool,
}

#[derive(Args, Debug)]
pub struct Output {
    /// The file to write; it is replaced only once the new one is complete
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,
    /// The format to write; by default from the name of the output, and an archive if that has no extension
    #[arg(long, value_name = "FORMAT")]
    pub to: Option<Format>,
    #[command(flatten)]
    pub writing: Writing,
}

#[derive(Args, Debug)]
pub struct Compress {
    /// Compress the tensors of the archive: zstd, lz4, zstd:LEVEL, or none to decompress them. By default, tensors stay
    /// as they are in the input, and tensors of other formats are not compressed.
    #[arg(long, value_name = "CODEC", value_parser = compression)]
    pub compress: Option<Compression>,
}

/// Parses a codec: `zstd`, `zstd:3`, `lz4`, `none`.
fn compression(text: &str) -> Result<Compression, String> {
    match (text, text.strip_prefix("zstd:")) {
        ("none", _) => Ok(Compression::none()),
        ("lz4", _) => Ok(Compression::lz4()),
        ("zstd", _) => Ok(Compression::zstd(0)),
        (_, Some(level)) => level
            .parse()
            .map(Compression::zstd)
            .map_err(|_| "expected a number as the level, as in zstd:3".into()),
        _ => Err("expected zstd, zstd:LEVEL, lz4 or none".into()),
    }
}

impl Read {
    pub fn reading(&self) -> Reading {
        let Self { from, torn, no_verify, ref void } = *self;
        Reading { from, torn, no_verify, void: void.clone(), ..Reading::default() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// In the order of the file
    Stored,
    Path,
    Dtype,
    /// By number of dimensions, then by the dimensions
    Shape,
    Bytes,
}

#[derive(Args, Debug)]
pub struct Info {
    #[command(flatten)]
    pub inputs: Inputs,
    #[command(flatten)]
    pub read: Read,
    #[command(flatten)]
    pub json: AsJson,
}

#[derive(Args, Debug)]
pub struct Ls {
    #[command(flatten)]
    pub inputs: Inputs,
    #[command(flatten)]
    pub only: Patterns,
    /// Show the tensors as a tree
    #[arg(long, short, conflicts_with_all = ["sort", "reverse", "json"])]
    pub tree: bool,
    /// What to sort by
    #[arg(long, value_name = "WHAT", default_value = "stored")]
    pub sort: Sort,
    /// Reverse the order
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
    /// The path of the part to show, or rows of a table: events[10:20]; by default the whole value
    #[arg(default_value = "", hide_default_value = true)]
    pub path: String,
    /// Show everything, without abbreviation
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
    /// One line for each row, elements separated by spaces; floats in the fewest digits that are exact
    Text,
    /// An object of dtype, shape and data
    Json,
}

#[derive(Args, Debug)]
pub struct Get {
    /// The file to read, or - for standard input
    pub input: PathBuf,
    /// The path of the value, and optionally a slice: weight, or weight[0:10, :]
    #[arg(required_unless_present = "patterns", conflicts_with = "patterns")]
    pub path: Option<String>,
    #[command(flatten)]
    pub only: Patterns,
    /// The file to write
    #[arg(long, short, value_name = "FILE", default_value = "-", hide_default_value = true)]
    pub output: PathBuf,
    /// The format to write; by default from the name of the output, otherwise text
    #[arg(long = "as", value_name = "FORMAT", conflicts_with = "json")]
    pub format: Option<GetFormat>,
    /// Convert the elements to this dtype
    #[arg(long, value_name = "DTYPE")]
    pub cast: Option<String>,
    /// Do not replace a file that is there
    #[arg(long)]
    pub no_clobber: bool,
    #[command(flatten)]
    pub choose: Choose,
    #[command(flatten)]
    pub read: Read,
    #[command(flatten)]
    pub json: AsJson,
}

#[derive(Args, Debug)]
pub struct Stats {
    #[command(flatten)]
    pub inputs: Inputs,
    #[command(flatten)]
    pub only: Patterns,
    #[command(flatten)]
    pub choose: Choose,
    #[command(flatten)]
    pub read: Read,
    #[command(flatten)]
    pub json: AsJson,
}

#[derive(Args, Debug)]
pub struct Diff {
    /// The first file
    pub a: PathBuf,
    /// The second file
    pub b: PathBuf,
    /// Compare only paths that match this pattern, or one of several
    #[arg(long = "pattern", short = 'e', value_name = "PATTERN")]
    pub patterns: Vec<String>,
    /// Absolute tolerance: numbers are equal if |a - b| <= ATOL + RTOL * |b|
    #[arg(long, value_name = "ATOL", default_value_t = 0.0)]
    pub atol: f64,
    /// Relative tolerance, as a fraction of the number in B
    #[arg(long, value_name = "RTOL", default_value_t = 0.0)]
    pub rtol: f64,
    /// Compare structure, dtypes and shapes only, not values
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
Archives: every byte is checked. npz, and PyTorch files with checksums: all checksums of tensors. Other \
formats: the file must be well-formed. What cannot be checked is reported.")]
pub struct Verify {
    /// The files to read, - for standard input, or directories: of these, all files of a known format are read. A
    /// distributed checkpoint of torch counts as one file
    #[arg(required = true, value_name = "INPUT")]
    pub inputs: Vec<PathBuf>,
    /// The format of the inputs, if it is not detected from content and name
    #[arg(long, value_name = "FORMAT")]
    pub from: Option<Format>,
    #[command(flatten)]
    pub json: AsJson,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Equal values that were saved with equal options have equal digests, however often the archive was appended to. A digest is \
not cryptographic: it does not protect against somebody who wants two files to have the same one.")]
pub struct Digest {
    /// The archives to read, or - for standard input
    #[arg(required = true)]
    pub inputs: Vec<PathBuf>,
    #[command(flatten)]
    pub json: AsJson,
}

#[derive(Args, Debug)]
pub struct Diag {
    /// The file to read, or - for standard input
    pub input: PathBuf,
    /// Print long byte strings, such as those of tensors, in full
    #[arg(long)]
    pub full: bool,
    #[command(flatten)]
    pub choose: Choose,
    #[command(flatten)]
    pub read: Read,
    #[command(flatten)]
    pub json: AsJson,
}

#[derive(Args, Debug)]
pub struct Recover {
    /// The archive to repair; without --output it is repaired in place
    pub file: PathBuf,
    /// Write the repaired archive here, and leave the input as it is
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Write zeros in place of damaged parts of tensors, and list these parts
    #[arg(long, requires = "output")]
    pub fill: bool,
    /// Do not replace a file that is there
    #[arg(long, requires = "output")]
    pub no_clobber: bool,
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
    #[arg(long, short, value_name = "SIZE", value_parser = crate::commands::split::size)]
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
things at one path, nothing is written.")]
pub struct Merge {
    /// The files to read, or - for standard input
    #[arg(required = true)]
    pub inputs: Vec<PathBuf>,
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
    /// Convert the elements of matching tensors; floats are rounded, integers must fit
    #[arg(long, value_name = "PATTERN=DTYPE")]
    pub cast: Vec<String>,
    /// Move what is at the path OLD to the path NEW
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
--compress and --dedup are for archives. For other formats they are errors. With --shard-size, model.safetensors becomes \
model-00001-of-00002.safetensors and so on, and model.safetensors.index.json. An output that is named as such an index is \
written so, too, by default in files of 5 GB. --names is for inputs of other formats that \
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
    /// How names of tensors become a structure
    #[arg(long, value_name = "HOW")]
    pub names: Option<Names>,
    /// Store equal tensors once
    #[arg(long)]
    pub dedup: bool,
    /// Write a safetensors model as several files of at most this many bytes, such as 5GB, and an index. A model that
    /// fits into one file is one file
    #[arg(long, value_name = "SIZE", value_parser = crate::commands::split::size)]
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

#[derive(Args, Debug)]
pub struct Completions {
    /// The shell
    pub shell: Shell,
}
