//! What the footer of a file says of its row groups and columns.

use std::collections::BTreeSet;

use parquet::basic::LogicalType;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::statistics::Statistics;
use tenarc::Value;

/// Describes the row groups and the columns of a file: see [`ParquetFile::about`](super::ParquetFile::about).
pub fn of(metadata: &ParquetMetaData) -> Value {
    let groups = metadata.row_groups();
    let program = metadata.file_metadata().created_by();
    let columns = metadata.file_metadata().schema_descr().columns();
    let columns = columns.iter().enumerate().map(|(number, column)| {
        let chunks: Vec<_> =
            groups.iter().filter_map(|group| group.columns().get(number)).collect();
        let with = chunks.iter().filter(|chunk| has_limits(chunk)).count();
        let statistics = match with {
            0 => "none",
            all if all == chunks.len() => "all row groups",
            _ => "some row groups",
        };
        let kind = match column.logical_type_ref() {
            Some(LogicalType::Decimal(decimal)) => {
                format!("decimal({}, {})", decimal.precision, decimal.scale)
            }
            Some(LogicalType::Integer(integer)) => {
                let sign = if integer.is_signed { "" } else { "u" };
                format!("{sign}int{}", integer.bit_width)
            }
            Some(logical) => {
                let shown = format!("{logical:?}");
                let name = shown.split(|char: char| !char.is_alphanumeric()).next();
                name.unwrap_or_default().to_owned()
            }
            None => column.physical_type().to_string(),
        };
        [
            ("column", Value::from(column.path().string())),
            ("type", kind.to_lowercase().into()),
            (
                "bytes",
                chunks.iter().map(|chunk| bytes(chunk.compressed_size())).sum::<u64>().into(),
            ),
            ("codec", codecs(chunks.into_iter())),
            ("statistics", statistics.into()),
        ]
        .into_iter()
        .collect::<Value>()
    });
    [
        ("producer", Value::from(program.unwrap_or_default())),
        ("row groups", groups.iter().map(group).collect()),
        ("columns", columns.collect()),
    ]
    .into_iter()
    .collect()
}

fn group(group: &RowGroupMetaData) -> Value {
    [
        ("rows", Value::from(group.num_rows())),
        ("bytes", bytes(group.compressed_size()).into()),
        ("uncompressed", bytes(group.total_byte_size()).into()),
        ("codec", codecs(group.columns().iter())),
    ]
    .into_iter()
    .collect()
}

/// Returns whether a chunk of a column has the least or the greatest of its values.
fn has_limits(chunk: &ColumnChunkMetaData) -> bool {
    let has_limits = |statistics: &Statistics| {
        statistics.min_bytes_opt().is_some() || statistics.max_bytes_opt().is_some()
    };
    chunk.statistics().is_some_and(has_limits)
}

/// Returns the names of all codecs of some chunks.
fn codecs<'a>(chunks: impl Iterator<Item = &'a ColumnChunkMetaData>) -> Value {
    let names: BTreeSet<String> = chunks
        .map(|chunk| {
            // The library adds the level that it would write with.
            let name = chunk.compression().to_string().to_lowercase();
            name.split('(').next().unwrap_or_default().to_owned()
        })
        .collect();
    names.into_iter().collect::<Vec<_>>().join(", ").into()
}

/// A damaged footer may state less than no bytes.
fn bytes(len: i64) -> u64 {
    u64::try_from(len).unwrap_or(0)
}
