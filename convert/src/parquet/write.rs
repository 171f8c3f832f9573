//! Writes tables of archives as Parquet files.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use parquet::arrow::ArrowWriter;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use tenarc::archive::Segment;
use tenarc::io::{ReadAt, open_file};
use tenarc::{Archive, Error, Result};

use super::read::ParquetFile;
use super::{Options, failed};
use crate::Losses;
use crate::records::{self, Records, TABLE, segments};

/// The most rows of a row group by default.
const ROWS: usize = 1 << 20;

/// Converts a table of an archive to a Parquet file. By default, each value of the table becomes a row group: see
/// [`Options::with_rows_per_group`]. If the options accept losses, returns what was lost.
///
/// Memory holds one batch of rows of the archive at a time, and the encoded pages of the current row group. Checksums
/// of columns are verified when they are read. Before the file appears under its name, it is read back and compared.
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
    let write =
        |records: &Records<'_, File>, out: &mut (dyn Write + Send)| write(records, out, options);
    records::from_archive(&archive, to.as_ref(), options, write, check).map_err(of_source)
}

/// Checks that the file has as many rows and row groups as were written.
fn check(file: &File, groups: usize, rows: u64) -> Result<()> {
    let file = ParquetFile::new(file.try_clone().map_err(Error::io)?)?;
    let found = (0..file.row_groups()).map(|group| file.rows_of(group)).sum::<u64>();
    if (file.row_groups(), found) == (groups, rows) {
        return Ok(());
    }
    let found_groups = file.row_groups();
    let what =
        format!("wrote {rows} rows in {groups} row groups, read back {found} in {found_groups}");
    Err(Error::damaged(what))
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
    records::to_writer(segments, writer, options, |records, out| write(records, out, options))
}

/// Writes all rows. Returns the number of row groups.
fn write<S: ReadAt + ?Sized>(
    records: &Records<'_, S>,
    out: &mut (dyn Write + Send),
    options: &Options,
) -> Result<usize> {
    let name = records.name.as_ref();
    let texts = name.map(|name| vec![KeyValue::new(TABLE.to_owned(), name.clone())]);
    let properties = WriterProperties::builder()
        .set_compression(options.page_compression.codec()?)
        .set_max_row_group_row_count(Some(options.rows_per_group.unwrap_or(ROWS)))
        .set_key_value_metadata(texts)
        .build();
    let writer = ArrowWriter::try_new(out, records.schema.clone(), Some(properties));
    let mut writer = writer.map_err(failed)?;
    for segment in 0..records.segments() {
        records.batches(segment, |batch| writer.write(&batch).map_err(failed))?;
        if options.rows_per_group.is_none() {
            writer.flush().map_err(failed)?;
        }
    }
    let metadata = writer.close().map_err(failed)?;
    Ok(metadata.num_row_groups())
}
