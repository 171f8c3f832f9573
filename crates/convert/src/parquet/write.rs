//! Writes tables of archives as Parquet files.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use parquet::arrow::{ARROW_SCHEMA_META_KEY, ArrowWriter};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use tenarc::archive::Segment;
use tenarc::error::Category;
use tenarc::io::{ReadAt, open_file};
use tenarc::{Archive, Error, Result};
use tenarc_arrow::ArrowTable;

use super::Options;
use super::error::not_written;
use super::read::ParquetFile;
use crate::records::{self, segments};
use crate::{Losses, made};

/// The most rows of a row group by default.
const ROWS: usize = 1 << 20;

/// Converts a table of an archive to a Parquet file. By default, each value of the table becomes a row group: see
/// [`Options::with_rows_per_group`]. If the options accept losses, returns what was lost.
///
/// Memory holds one batch of rows of the archive at a time, and the encoded pages of the current row group. Checksums
/// of columns are verified when they are read. Before the file appears under its name, it is read back, and all values
/// and nulls are compared with those of the archive, which is read again for this.
///
/// # Errors
/// - If the archive cannot be read, is damaged, or has no such table.
/// - If something cannot be kept, and the options do not accept losses.
/// - If the file cannot be written.
pub fn from_archive(
    from: impl AsRef<Path>,
    to: impl AsRef<Path>,
    options: &Options,
) -> Result<Losses> {
    let from = from.as_ref();
    let of_source = |error: Error| error.in_file(from);
    let archive = Archive::new(open_file(from)?.0).map_err(of_source)?;
    let segments = segments(&archive, options.table.as_deref()).map_err(of_source)?;
    let to = to.as_ref();
    let write = |file: &File| segments_to_file(segments, file, to, options);
    made::file(to, options.sync(), write).map_err(of_source)
}

/// Like [`segments_to_writer`], but writes to an empty file, which must be open for reading too. The file is read back,
/// and all values and nulls are compared with the segments. `path` is the path of the file, which errors show.
///
/// # Errors
/// The errors of [`segments_to_writer`]. Also if what is read back differs.
pub fn segments_to_file<S: ReadAt + ?Sized>(
    segments: Vec<Segment<'_, S>>,
    file: &File,
    path: &Path,
    options: &Options,
) -> Result<Losses> {
    let write =
        |records: &ArrowTable<'_, S>, out: &mut (dyn Write + Send)| write(records, out, options);
    records::to_file(table(segments)?, (file, path), options, write, check)
}

/// The table of these segments. A file has the names of a category in the order in which they first occur.
fn table<S: ReadAt + ?Sized>(segments: Vec<Segment<'_, S>>) -> Result<(ArrowTable<'_, S>, Losses)> {
    let (table, _) = records::table(segments).map_err(|error| match error.category() {
        Category::Mismatch => {
            let why = error.message();
            Error::new(Category::Mismatch, format!("a Parquet file is one table of rows: {why}"))
        }
        _ => error,
    })?;
    let types = table.types().clone().for_parquet();
    let table = table.with_types(&types)?;
    let losses = records::losses(&table);
    Ok((table, losses))
}

/// Checks that the file has the row groups and the rows that were written.
fn check<S: ReadAt + ?Sized>(
    records: &ArrowTable<'_, S>,
    file: &File,
    groups: usize,
) -> Result<()> {
    let file = ParquetFile::new(file.try_clone().map_err(Error::io)?)?;
    match file.row_groups() {
        found if found == groups => records::compare(records, file.record_batches()),
        found => Err(Error::damaged(format!("wrote {groups} row groups, read back {found}"))),
    }
}

/// Writes a table of an archive as a Parquet file to any writer, which need not be able to seek. If the options accept
/// losses, returns what was lost.
///
/// # Errors
/// The errors of [`from_archive`]. Also if the writer fails.
pub fn to_writer<S: ReadAt, W: Write + Send>(
    archive: &Archive<S>,
    writer: W,
    options: &Options,
) -> Result<Losses> {
    segments_to_writer(segments(archive, options.table.as_deref())?, writer, options)
}

/// Like [`to_writer`], but writes segments that are one table. All of them must have the same name.
///
/// # Errors
/// The errors of [`to_writer`].
pub fn segments_to_writer<S: ReadAt + ?Sized, W: Write + Send>(
    segments: Vec<Segment<'_, S>>,
    writer: W,
    options: &Options,
) -> Result<Losses> {
    records::to_writer(table(segments)?, writer, options, |records, out| {
        write(records, out, options)
    })
}

/// Writes all rows. Returns the number of row groups.
fn write<S: ReadAt + ?Sized>(
    records: &ArrowTable<'_, S>,
    out: &mut (dyn Write + Send),
    options: &Options,
) -> Result<usize> {
    // pyarrow reads the texts in the schema of Arrow, and other programs those of the file.
    let mut texts: Vec<_> = records.schema().metadata().iter().collect();
    texts.retain(|(key, _)| *key != ARROW_SCHEMA_META_KEY);
    texts.sort_unstable();
    let texts = texts.into_iter().map(|(key, text)| KeyValue::new(key.clone(), text.clone()));
    let properties = WriterProperties::builder()
        .set_compression(options.page_compression.codec()?)
        .set_max_row_group_row_count(Some(options.rows_per_group.unwrap_or(ROWS)))
        .set_key_value_metadata(Some(texts.collect()))
        .build();
    let writer = ArrowWriter::try_new(out, records.schema().clone(), Some(properties));
    let mut writer = writer.map_err(not_written)?;
    for segment in 0..records.segments() {
        let mut reader = records.segment_reader(segment);
        while let Some(batch) = reader.next_batch()? {
            writer.write(&batch).map_err(not_written)?;
        }
        if options.rows_per_group.is_none() {
            writer.flush().map_err(not_written)?;
        }
    }
    let metadata = writer.close().map_err(not_written)?;
    Ok(metadata.num_row_groups())
}
