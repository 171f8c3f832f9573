//! Prints or saves the rows of a query.

use std::collections::HashSet;
use std::io::{self, Write};
use std::path::Path;

use arrow::csv;
use arrow::json::WriterBuilder;
use arrow::json::writer::LineDelimited;
use clap::ValueEnum;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::Schema;
use datafusion::arrow::util::pretty::pretty_format_batches_with_schema;
use datafusion::common::Result as PlanResult;
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt as _;
use tenarc::OArchive;
use tenarc::archive::SaveOptions;
use tokio::runtime::Runtime;

use crate::failure::{Failure, escaped, escaped_json, say};

/// The most rows of a table that is printed. All of them are in memory, because the widths of the columns depend on them.
const ROWS: usize = 1000;

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Format {
    /// A table for people, of at most 1000 rows
    Table,
    /// Comma-separated values, with a header. Null is an empty field
    Csv,
    /// An object of JSON on a line for each row. NaN and infinity become null
    Json,
}

/// Prints the rows to standard output.
///
/// # Errors
/// If the query fails, the format cannot hold a column, or the output cannot be written.
pub fn print(
    format: Format,
    stream: SendableRecordBatchStream,
    runtime: &Runtime,
) -> Result<(), Failure> {
    let schema = stream.schema();
    let mut batches = batches(stream, runtime);
    let mut out = io::BufWriter::new(io::stdout().lock());
    match format {
        Format::Table => {
            let (first, is_all) = first(&mut batches, ROWS)?;
            let table = pretty_format_batches_with_schema(schema, &first)?.to_string();
            writeln!(out, "{}", escaped(&table))?;
            if !is_all {
                say(&format!("these are the first {ROWS} rows; csv and json print all of them"));
            }
        }
        Format::Csv => {
            check_csv(&schema)?;
            // There is a header, even if there are no batches.
            out.write_all(&csv_of(&RecordBatch::new_empty(schema), true)?)?;
            for batch in batches {
                out.write_all(&csv_of(&batch?, false)?)?;
            }
        }
        Format::Json => {
            check_json(&schema)?;
            for batch in batches {
                let mut lines = Vec::new();
                let builder = WriterBuilder::new().with_explicit_nulls(true);
                let mut writer = builder.build::<_, LineDelimited>(&mut lines);
                writer.write(&batch?)?;
                writer.finish()?;
                out.write_all(escaped_json(&String::from_utf8_lossy(&lines)).as_bytes())?;
            }
        }
    }
    Ok(out.flush()?)
}

/// Saves the rows as a table with the name of the file.
///
/// # Errors
/// If the query fails, an archive cannot hold a column, or the file cannot be written.
pub fn save(
    path: &Path,
    stream: SendableRecordBatchStream,
    runtime: &Runtime,
) -> Result<(), Failure> {
    let schema = stream.schema();
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let mut out = OArchive::create(path, SaveOptions::default())?;
    tenarc_datafusion::save(&mut out, &name, &schema, batches(stream, runtime))?;
    out.finish()?;
    Ok(())
}

fn batches(
    mut stream: SendableRecordBatchStream,
    runtime: &Runtime,
) -> impl Iterator<Item = PlanResult<RecordBatch>> {
    std::iter::from_fn(move || runtime.block_on(stream.next()))
}

/// The first rows, and whether they are all.
fn first(
    batches: &mut dyn Iterator<Item = PlanResult<RecordBatch>>,
    most: usize,
) -> PlanResult<(Vec<RecordBatch>, bool)> {
    let (mut found, mut left) = (Vec::new(), most);
    for batch in batches {
        let batch = batch?;
        if batch.num_rows() > left {
            found.push(batch.slice(0, left));
            return Ok((found, false));
        }
        left -= batch.num_rows();
        found.push(batch);
    }
    Ok((found, true))
}

fn csv_of(batch: &RecordBatch, has_header: bool) -> Result<Vec<u8>, Failure> {
    let mut writer = csv::WriterBuilder::new().with_header(has_header).build(Vec::new());
    writer.write(batch)?;
    Ok(writer.into_inner())
}

fn check_csv(schema: &Schema) -> Result<(), Failure> {
    match schema.fields().iter().find(|field| field.data_type().is_nested()) {
        Some(field) => Err(Failure::new(format!(
            "CSV has no lists and structs, but the column `{}` has the type {}; use --format json, or choose a part of it, \
             such as event['Click']['x'] or tags[1]",
            field.name(),
            field.data_type(),
        ))),
        None => Ok(()),
    }
}

fn check_json(schema: &Schema) -> Result<(), Failure> {
    let mut names = HashSet::new();
    match schema.fields().iter().find(|field| !names.insert(field.name())) {
        Some(field) => Err(Failure::new(format!(
            "an object of JSON has each name once, but two columns are named `{}`: name one of them with AS",
            field.name()
        ))),
        None => Ok(()),
    }
}
