//! The options that several subcommands have.

use std::path::PathBuf;

use bytesize::ByteSize;
use clap::Args;
use tenarc::DType;
use tenarc::archive::Compression;

use crate::document::{AsTable, Reading};
use crate::elements::did_you_mean;
use crate::formats::Format;
use crate::target::Writing;

#[derive(Args, Debug)]
pub struct Read {
    /// The format of the input, if it is not detected from content and name
    #[arg(long, value_name = "FORMAT")]
    pub from: Option<Format>,
    /// Read the complete values of a truncated archive
    #[arg(long)]
    pub torn: bool,
    /// With --torn: also read the tensors of the value that is cut off, unverified
    #[arg(long, requires = "torn")]
    pub no_verify: bool,
    /// Read the arrays at this path, or of the whole value, as the columns of a table: a dataset of structs in HDF5, arrays of one length
    /// in an npz file, columns of an Arrow file that could be tensors
    #[arg(long, value_name = "PATH", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub table: Option<String>,
    /// The dtype of arrays of bf16 or FP8 that numpy saved as raw bytes, with the types V2 and V1. Can be given once for
    /// each width
    #[arg(long, value_name = "DTYPE", value_parser = dtype)]
    pub void: Vec<DType>,
}

impl Read {
    pub fn reading(&self) -> Reading {
        let Self { from, torn, no_verify, ref table, ref void } = *self;
        let table = table.clone().map_or(AsTable::No, AsTable::Asked);
        Reading { from, torn, no_verify, table, void: void.clone(), ..Reading::default() }
    }
}

/// Parses the name of a dtype whose elements are whole bytes.
fn dtype(text: &str) -> Result<DType, String> {
    let dtype = DType::from_name(text);
    match dtype.bits() {
        Some(bits) if bits.is_multiple_of(8) => Ok(dtype),
        Some(_) => Err("its elements are no whole bytes".into()),
        None => {
            let meant = did_you_mean(text);
            Err(format!("expected a dtype such as bf16, f8_e4m3 or f16{meant}"))
        }
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
    /// Take only tensors whose path matches this pattern, or one of several: -e '*.weight' -e 'layers.0.*'. The name of the
    /// value can come first: -e events.score
    #[arg(long = "pattern", short = 'e', value_name = "PATTERN")]
    pub patterns: Vec<String>,
}

#[derive(Args, Debug)]
pub struct Choose {
    /// Choose one value of an input that holds several, by its name or number (from 0). A name that several values have
    /// chooses the table of all their rows, if they are sequences
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
        ("zstd", _) => Ok(Compression::zstd()),
        (_, Some(level)) => level
            .parse()
            .map(Compression::zstd_level)
            .map_err(|_| "expected a number as the level, as in zstd:3".into()),
        _ => Err("expected zstd, zstd:LEVEL, lz4 or none".into()),
    }
}

/// Parses a number of bytes: `5GB`, `512 MiB`, `1.5k`, `1000`.
pub fn size(text: &str) -> Result<u64, String> {
    let wrong = |_| format!("expected a number of bytes, such as 512MiB or 5GB, found {text:?}");
    let size = text.parse::<ByteSize>().map_err(wrong)?.as_u64();
    // A number that is too large is parsed as `u64::MAX`.
    let known = (1..u64::MAX).contains(&size);
    known.then_some(size).ok_or_else(|| "expected 1 to 2^64 - 2 bytes".to_owned())
}

#[cfg(test)]
mod tests {
    #[test]
    fn parses_sizes_with_units() {
        let size = super::size;
        assert_eq!((size("7"), size("2k"), size("2 KiB")), (Ok(7), Ok(2000), Ok(2048)));
        assert_eq!((size("5GB"), size("1gib")), (Ok(5_000_000_000), Ok(1 << 30)));
        assert_eq!((size("1.5 MB"), size("9007199254740993")), (Ok(1_500_000), Ok((1 << 53) + 1)));
        for wrong in
            ["", "0", "-1", "k", "1 XB", "1kk", "1é", "99999999T", "9999999999999999999999"]
        {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
