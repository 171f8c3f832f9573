//! The options of the subcommands that look at files.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{AsJson, Choose, Inputs, Patterns, Read};
use crate::plot::Graphics;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// In the order of the file
    Stored,
    Path,
    Dtype,
    /// By number of dimensions, then by the dimensions
    Shape,
    /// By size, the largest first
    #[value(alias = "size")]
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
#[command(after_help = "\
Prints an address, and serves the file there until it is stopped. Only this computer can reach it, and only those who know the \
address find the file. The page opens tenarc archives and safetensors, npz, npy and GGUF files.")]
pub struct View {
    /// The file to show
    pub file: PathBuf,
    /// The port to listen on; by default a free one
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,
    /// Only print the address
    #[arg(long)]
    pub no_open: bool,
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
    /// Show only the rows of a table that meet this: 'score > 99 and day = "2026-11-20"'
    #[arg(long = "where", value_name = "CONDITION")]
    pub condition: Option<String>,
    /// Show only this many rows of a table
    #[arg(long, short = 'n', value_name = "ROWS")]
    pub head: Option<usize>,
    /// Show only these columns of a table: id,request.size
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub columns: Vec<String>,
    /// Show everything, without abbreviation
    #[arg(long)]
    pub full: bool,
    /// Draw the tensors, or a slice of one: images[3]. Curves have one dimension, bytes of the shape [height, width, 3 or 4] are
    /// images, all others are maps of colours, whose columns are the last axis
    #[arg(
        long,
        value_name = "HOW",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "auto",
        conflicts_with_all = ["condition", "head", "columns", "full", "json"]
    )]
    pub plot: Option<Graphics>,
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
    /// Draw the histograms over several lines
    #[arg(long, conflicts_with = "json")]
    pub plot: bool,
    #[command(flatten)]
    pub choose: Choose,
    #[command(flatten)]
    pub read: Read,
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
