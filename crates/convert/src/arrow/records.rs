//! Writes tables of archives as files and streams.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use arrow_array::RecordBatchWriter;
use arrow_ipc::writer::{FileWriter, StreamWriter};
use tenarc::archive::Segment;
use tenarc::io::ReadAt;
use tenarc::{Archive, OArchive, Result};
use tenarc_arrow::ArrowTable;

use super::options::Container;
use super::table::{TableFile, failed};
use crate::exported::{Exported, Keep};
use crate::records;
use crate::{Losses, Options, made};

/// Returns whether values of an archive are written as a table rather than as tensors. They are if they are sequences
/// that are stored as columns. They also are if they are sequences of structs that a table keeps completely and tensors
/// do not.
///
/// # Errors
/// If an archive is damaged.
pub fn are_table<S: ReadAt + ?Sized>(segments: &[Segment<'_, S>]) -> Result<bool> {
    if records::are_columns(segments)? {
        return Ok(true);
    }
    if let [segment] = segments
        && Exported::of(segment, Keep::TextArrays).is_ok_and(|found| found.losses.is_empty())
    {
        return Ok(false);
    }
    Ok(records::table(segments.to_vec()).is_ok_and(|(_, losses)| losses.is_empty()))
}

/// Writes segments that are one table to any writer. All segments must have the same name. If the options accept
/// losses, returns what was lost. A segment becomes a record batch, or several if it has many rows. One batch at a time
/// is in memory.
///
/// # Errors
/// - If the segments are not a table, or are damaged.
/// - If something cannot be kept, and the options do not accept losses.
/// - If the writer fails.
pub fn segments_to_writer<S: ReadAt + ?Sized, W: Write>(
    segments: Vec<Segment<'_, S>>,
    writer: W,
    options: &Options,
) -> Result<Losses> {
    records::to_writer(records::table(segments)?, writer, options, |records, out| {
        write(records, out, options)
    })
}

/// Like [`segments_to_writer`], but writes to an empty file, which must be open for reading too. The file is read back,
/// and all values and nulls are compared with the segments. `path` is the path of the file, which errors show. Its
/// extension also decides between a file and a stream, unless the options do.
///
/// # Errors
/// The errors of [`segments_to_writer`]. Also if what is read back differs.
pub fn segments_to_file<S: ReadAt + ?Sized>(
    segments: Vec<Segment<'_, S>>,
    file: &File,
    path: &Path,
    options: &Options,
) -> Result<Losses> {
    let container = options.container.unwrap_or_else(|| Container::of_name(path));
    let options = options.clone().with_container(container);
    records::to_file(
        records::table(segments)?,
        (file, path),
        &options,
        |records, out| write(records, out, &options),
        |records, file, ()| records::compare(records, TableFile::new(file)?.record_batches()),
    )
}

/// Saves segments that are one table to an archive as columns, in values of this name of at most 65,536 rows. Returns
/// `false`, and saves nothing, if the segments are no table of structs or have no rows, or if a table would not keep
/// all of them as they are, for example because a row lacks a field that others have.
///
/// ```
/// use std::collections::BTreeMap;
/// use tenarc::{Archive, OArchive};
/// use tenarc_convert::arrow;
///
/// // Maps are not stored as columns, because each could have other keys.
/// let rows: Vec<_> = (0..100).map(|id| BTreeMap::from([("id", id)])).collect();
/// let mut out = OArchive::new(Vec::new())?;
/// out.save(&rows)?;
/// let archive = Archive::new(out.finish()?)?;
/// let segments = archive.segments().collect::<Result<_, _>>()?;
///
/// let mut out = OArchive::new(Vec::new())?;
/// assert!(arrow::segments_to_archive(segments, &mut out, "events")?);
/// let table = Archive::new(out.finish()?)?;
/// assert_eq!(table.table("events")?.column::<Vec<i32>>("id")?[99], 99);
/// # Ok::<(), tenarc::Error>(())
/// ```
///
/// # Errors
/// If the segments cannot be read, or the archive cannot be written. Some values are saved nevertheless.
pub fn segments_to_archive<S: ReadAt + ?Sized, W: Write>(
    segments: Vec<Segment<'_, S>>,
    out: &mut OArchive<W>,
    name: &str,
) -> Result<bool> {
    records::to_archive(segments, out, name)
}

/// Converts an archive if it is a table. Returns `None` if it is not.
pub fn from_archive(
    archive: &Archive<File>,
    to: &Path,
    options: &Options,
) -> Result<Option<Losses>> {
    let is_table =
        options.table.is_some() || are_table(&archive.segments().collect::<Result<Vec<_>>>()?)?;
    if !is_table {
        return Ok(None);
    }
    let segments = records::segments(archive, options.table.as_deref())?;
    let write = |file: &File| segments_to_file(segments, file, to, options);
    made::file(to, options.sync(), write).map(Some)
}

fn write<S: ReadAt + ?Sized>(
    records: &ArrowTable<'_, S>,
    out: &mut dyn Write,
    options: &Options,
) -> Result<()> {
    let schema = records.schema();
    match options.container.unwrap_or(Container::Stream) {
        Container::File => batches(records, FileWriter::try_new(out, schema), options),
        Container::Stream => batches(records, StreamWriter::try_new(out, schema), options),
    }
}

fn batches<S: ReadAt + ?Sized>(
    records: &ArrowTable<'_, S>,
    writer: std::result::Result<impl RecordBatchWriter, arrow_schema::ArrowError>,
    options: &Options,
) -> Result<()> {
    let mut writer = writer.map_err(failed)?;
    let most = options.rows_per_batch.unwrap_or(usize::MAX);
    let mut reader = records.reader();
    while let Some(batch) = reader.next_batch()? {
        for start in (0..batch.num_rows()).step_by(most) {
            let rows = most.min(batch.num_rows() - start);
            writer.write(&batch.slice(start, rows)).map_err(failed)?;
        }
    }
    writer.close().map_err(failed)
}
