//! Parquet files to archives.

use std::fmt;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
};
use parquet::arrow::{ProjectionMask, parquet_to_arrow_field_levels};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::Length;
use tenarc::io::{ReadAt, open_file};
use tenarc::{Error, Result};

use super::pages::Group;
use super::source::Source;
use super::{Options, failed};
use crate::Losses;
use crate::records::{self, Plan, Rows, TABLE};
use crate::support::alloc_budget;

/// Rows that are decoded at once.
const BATCH: usize = 8192;

/// A Parquet file, of which a row group is read at a time.
///
/// ```
/// use tenarc_convert::parquet::{self, ParquetFile};
///
/// # let mut out = tenarc::OArchive::new(Vec::new())?;
/// # out.save_as("events", &[std::collections::BTreeMap::<String, u8>::new()])?;
/// # let mut out = tenarc::OArchive::new(Vec::new())?;
/// # #[derive(serde::Serialize)]
/// # struct Event { id: u32 }
/// # out.save_as("events", &[Event { id: 1 }, Event { id: 2 }])?;
/// # let archive = tenarc::Archive::new(out.finish()?)?;
/// # let mut bytes = Vec::new();
/// # parquet::to_writer(&archive, &mut bytes, &Default::default())?;
/// let file = ParquetFile::new(bytes)?;
/// let mut out = tenarc::OArchive::new(Vec::new())?;
/// for group in 0..file.row_groups() {
///     out.save_as("events", &file.rows(group)?)?;
/// }
/// assert_eq!(tenarc::Archive::new(out.finish()?)?.table("events")?.len(), 2);
/// # Ok::<(), tenarc::Error>(())
/// ```
pub struct ParquetFile<S> {
    source: Source<S>,
    metadata: ArrowReaderMetadata,
    plans: Vec<Plan>,
    /// Which columns of the file they are.
    roots: Vec<usize>,
    losses: Losses,
}

impl<S> fmt::Debug for ParquetFile<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParquetFile")
            .field("row_groups", &self.row_groups())
            .field("losses", &self.losses)
            .finish_non_exhaustive()
    }
}

/// Opens a Parquet file: see [`ParquetFile::new`].
///
/// # Errors
/// If the file cannot be read, or is no Parquet file.
pub fn open(path: impl AsRef<Path>) -> Result<ParquetFile<File>> {
    let path = path.as_ref();
    ParquetFile::new(open_file(path)?.0).map_err(|error| error.in_file(path))
}

impl<S: ReadAt + Send + Sync + 'static> ParquetFile<S> {
    /// Reads the description of the columns, which is at the end of the file.
    ///
    /// # Errors
    /// If the source cannot be read, is no Parquet file or is damaged; and if two fields of a struct have one name.
    pub fn new(source: S) -> Result<Self> {
        let source = Source::new(source).map_err(Error::io)?;
        let metadata = guarded(|| {
            ArrowReaderMetadata::load(&source, ArrowReaderOptions::new()).map_err(failed)
        })?;
        check_places(metadata.metadata(), Length::len(&source))?;
        let mut losses = Losses::default();
        let fields = metadata.schema().fields().iter().map(AsRef::as_ref);
        let mut plans = Plan::of_fields(fields, "", &mut losses)?;
        let roots = plans.iter().map(|plan| plan.number).collect();
        // No other columns are read.
        plans.iter_mut().enumerate().for_each(|(number, plan)| plan.number = number);
        let texts = metadata.metadata().file_metadata().key_value_metadata();
        for text in texts.into_iter().flatten() {
            if text.key != TABLE && text.key != "ARROW:schema" {
                let key = text.key.escape_debug();
                losses.note(format!("the metadata `{key}` of the file are left out"));
            }
        }
        Ok(Self { source, metadata, plans, roots, losses })
    }

    /// The rows of a row group. They are in memory while this lives.
    ///
    /// # Errors
    /// If there is no such row group, it cannot be read or is damaged, or is compressed with a codec that is not supported.
    pub fn rows(&self, group: usize) -> Result<Rows> {
        let groups = self.row_groups();
        if group >= groups {
            let what = format!("there is no row group {group}: the file has {groups}");
            return Err(Error::data(what));
        }
        let of_group = |error: Error| error.in_field(format!("row group {group}"));
        let batches = guarded(|| self.batches(group)).map_err(of_group)?;
        let rows = Rows::of(&batches, self.plans.clone()).map_err(of_group)?;
        let expected = self.rows_of(group);
        if rows.len() as u64 != expected {
            let found = rows.len();
            let what = format!("expected {expected} rows, found {found}");
            return Err(of_group(Error::damaged(what)));
        }
        Ok(rows)
    }

    /// Decodes a row group.
    fn batches(&self, group: usize) -> Result<Vec<RecordBatch>> {
        let metadata = self.metadata.metadata();
        let groups = Group {
            source: Arc::new(self.source.clone()),
            metadata: Arc::clone(metadata),
            number: group,
        };
        let mask =
            ProjectionMask::roots(self.metadata.parquet_schema(), self.roots.iter().copied());
        let schema = metadata.file_metadata().schema_descr();
        let fields = Some(self.metadata.schema().fields());
        let levels = parquet_to_arrow_field_levels(schema, mask, fields).map_err(failed)?;
        let reader =
            ParquetRecordBatchReader::try_new_with_row_groups(&levels, &groups, BATCH, None);
        let mut left = alloc_budget(tenarc::de::Limits::default(), false);
        let mut batches = Vec::new();
        for batch in reader.map_err(failed)? {
            let batch = batch.map_err(|error| match error {
                ArrowError::ExternalError(error) => match error.downcast::<ParquetError>() {
                    Ok(error) => failed(*error),
                    Err(error) => Error::data(error.to_string()),
                },
                ArrowError::ParquetError(what) => Error::data(what),
                error => Error::data(error.to_string()),
            })?;
            left = left
                .checked_sub(batch.get_array_memory_size() as u64)
                .ok_or_else(|| Error::limit("the rows take more memory than is allowed"))?;
            batches.push(batch);
        }
        Ok(batches)
    }
}

/// Calls the library, which panics at some files that are damaged: that is an error like any other.
///
/// What `read` builds is dropped when it panics, and it changes nothing else. So nothing half-made is left.
fn guarded<T>(read: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
        Err(Error::damaged(format!("the Parquet file is damaged: {text}")))
    })
}

/// Columns must be where the file is, or the library panics.
fn check_places(metadata: &ParquetMetaData, len: u64) -> Result<()> {
    let columns = metadata.row_groups().iter().flat_map(RowGroupMetaData::columns);
    for column in columns {
        let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
        let place = u64::try_from(start).ok().zip(u64::try_from(column.compressed_size()).ok());
        let end = place.and_then(|(start, len)| start.checked_add(len));
        if end.is_none_or(|end| end > len) {
            let name = column.column_path().string();
            let what = format!("a column outside of the file, which has {len} bytes");
            return Err(Error::damaged(what).in_field(name));
        }
    }
    Ok(())
}

impl<S> ParquetFile<S> {
    /// The number of row groups.
    pub fn row_groups(&self) -> usize {
        self.metadata.metadata().num_row_groups()
    }

    /// What of the columns cannot be kept.
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// The name that the table had in the archive of which the file was made.
    pub fn table(&self) -> Option<&str> {
        let texts = self.metadata.metadata().file_metadata().key_value_metadata()?;
        texts.iter().find(|text| text.key == TABLE)?.value.as_deref()
    }

    /// The number of rows that a row group claims.
    pub(super) fn rows_of(&self, group: usize) -> u64 {
        let groups = self.metadata.metadata().row_groups();
        groups.get(group).map_or(0, |group| u64::try_from(group.num_rows()).unwrap_or(0))
    }
}

/// Converts a Parquet file to an archive with a table, a value for each row group; what was not kept, where that is
/// accepted.
///
/// One row group at a time is in memory. The archive has checksums, whatever the options say. It is read back and
/// verified by them before it takes its name.
///
/// # Errors
/// If the file cannot be read, is no Parquet file or is damaged, if something cannot be kept and losses are not accepted,
/// or the archive cannot be written.
pub fn to_archive(
    from: impl AsRef<Path>,
    to: impl AsRef<Path>,
    options: &Options,
) -> Result<Losses> {
    let from = from.as_ref();
    let file = open(from)?;
    let groups = (0..file.row_groups()).map(|group| file.rows(group));
    let (losses, columns) = (file.losses.clone(), file.plans.len());
    records::to_archive((from, to.as_ref()), file.table(), columns, losses, groups, options)
}
