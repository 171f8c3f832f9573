//! The options of the subcommands that check, compare and repair files.

use std::path::PathBuf;

use clap::Args;

use super::{AsJson, Choose, Read};
use crate::formats::Format;

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
    /// The format of the first file, if only that one is not detected; --from is for both
    #[arg(long, value_name = "FORMAT")]
    pub from_a: Option<Format>,
    /// The format of the second file
    #[arg(long, value_name = "FORMAT")]
    pub from_b: Option<Format>,
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
    /// The files to read, - for standard input, or directories: of these, all files of a known format are read, except
    /// hidden ones. A distributed checkpoint of torch counts as one file
    #[arg(required = true, value_name = "INPUT")]
    pub inputs: Vec<PathBuf>,
    /// The format of the inputs, if it is not detected from content and name
    #[arg(long, value_name = "FORMAT")]
    pub from: Option<Format>,
    /// Also decode every value of an archive: texts, rows of columns, bools, compressed tensors
    #[arg(long)]
    pub decode: bool,
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
#[command(after_help = "\
Truncated archives: the complete values are kept, and with --output the complete tensors of the value that is cut. \
Damaged archives: the values are kept with their damage. What is kept is verified: if it is damaged, \
the damaged values are listed, and the exit status is 1.")]
pub struct Recover {
    /// The archive to repair; without --output it is repaired in place
    pub file: PathBuf,
    /// Write the repaired archive here, and leave the input as it is
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Do not replace a file that is there
    #[arg(long, requires = "output")]
    pub no_clobber: bool,
    #[command(flatten)]
    pub json: AsJson,
}
