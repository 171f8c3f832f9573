//! Reads Parquet files, and converts them to archives.

use std::fmt;
use std::fs::File;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, Fields};
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
};
use parquet::arrow::{
    ARROW_SCHEMA_META_KEY, ProjectionMask, parquet_to_arrow_field_levels, parquet_to_arrow_schema,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, Length};
use tenarc::de::Limits;
use tenarc::io::{ReadAt, open_file};
use tenarc::{Error, OArchive, Result, Value};
use tenarc_arrow::{Import, Rows, TABLE};

use super::error::failed;
use super::pages::Group;
use super::source::{Pages, Source};
use super::stated::{self, with_days, with_zones};
use super::thrift::{self, FILE, Fault};
use super::{Options, about, lists};
use crate::Losses;
use crate::records::{self, Groups};
use crate::support::{alloc_budget, over_memory};

/// The number of rows that are decoded at once.
const BATCH: usize = 8192;

/// An opened Parquet file. One row group at a time is read.
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
    /// The columns of the file.
    fields: Fields,
    import: Import,
    /// The numbers of the columns in the file that are kept.
    roots: Vec<usize>,
    texts: Vec<(String, String)>,
    losses: Losses,
    limits: Limits,
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
/// If the file cannot be opened. Also the errors of [`ParquetFile::new`].
pub fn open(path: impl AsRef<Path>) -> Result<ParquetFile<File>> {
    let path = path.as_ref();
    ParquetFile::new(open_file(path)?.0).map_err(|error| error.in_file(path))
}

impl<S: ReadAt + Send + Sync + 'static> ParquetFile<S> {
    /// Reads the footer of the file, which describes its columns and row groups.
    ///
    /// # Errors
    /// - If the source cannot be read.
    /// - If the source is not a Parquet file, or is damaged.
    pub fn new(source: S) -> Result<Self> {
        let source = Source::new(source).map_err(Error::io)?;
        check_footer(&source)?;
        let metadata = guarded(|| {
            let metadata = ParquetMetaDataReader::new().parse_and_finish(&source);
            let metadata = metadata.and_then(lists::with_groups).map(Arc::new).map_err(failed)?;
            ArrowReaderMetadata::try_new(metadata, ArrowReaderOptions::new()).map_err(failed)
        })?;
        check_places(metadata.metadata(), Length::len(&source))?;
        let mut losses = Losses::default();
        let texts = metadata.metadata().file_metadata().key_value_metadata();
        let texts = || texts.into_iter().flatten();
        let stated = texts().find(|text| text.key == ARROW_SCHEMA_META_KEY);
        let mut fields = metadata.schema().fields().clone();
        let arrow = guarded(|| Ok(stated.and_then(|text| stated::schema(text.value.as_ref()?))))?;
        if let Some(arrow) = arrow {
            let parquet = metadata.metadata().file_metadata().schema_descr();
            let parquet = guarded(|| parquet_to_arrow_schema(parquet, None).map_err(failed))?;
            fields = with_zones(&with_days(&fields, parquet.fields()), arrow.fields());
        }
        let import = Import::of(fields.iter().map(AsRef::as_ref))?;
        losses.add_report(import.report());
        let roots = import.kept().collect();
        // Only the columns that are kept are decoded.
        let import = import.of_kept();
        let others = texts().filter(|text| text.key != ARROW_SCHEMA_META_KEY);
        let others = others.filter_map(|text| Some((text.key.as_str(), text.value.as_deref()?)));
        let texts = records::texts(others, &mut losses);
        let limits = Limits::default();
        Ok(Self { source, metadata, fields, import, roots, texts, losses, limits })
    }

    /// Sets how many bytes a row group may take in memory, which is 16 GiB by default. The bytes are counted after every
    /// 8,192 rows that are decoded.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Reads and decodes a row group. All of its rows are in memory until they are dropped.
    ///
    /// # Errors
    /// - If the file has no row group of this number.
    /// - If the row group cannot be read, or is damaged.
    /// - If it is compressed with a codec that is not supported.
    /// - If it takes more memory than the limits allow.
    pub fn rows(&self, group: usize) -> Result<Rows> {
        let groups = self.row_groups();
        if group >= groups {
            let what = format!("there is no row group {group}: the file has {groups}");
            return Err(Error::not_found(what));
        }
        let of_group = |error: Error| error.in_field(format!("row group {group}"));
        let batches = self.batches(group).map_err(of_group)?;
        let rows = self.import.rows(&batches, self.limits).map_err(of_group)?;
        let expected = self.rows_of(group);
        if rows.len() as u64 != expected {
            let found = rows.len();
            let what = format!("expected {expected} rows, found {found}");
            return Err(of_group(Error::damaged(what)));
        }
        Ok(rows)
    }

    /// Saves the table to an archive, with a value for each row group and at least one value. The name of the values is
    /// that of [`Options::with_table`], or else that of the table in the file, or else `name`. Returns what is lost.
    ///
    /// # Errors
    /// - If no column can be kept.
    /// - If something cannot be kept, and the options do not accept losses. Some values are saved nevertheless.
    /// - If a row group cannot be read (see [`rows`](Self::rows)), or the archive cannot be written.
    pub fn save_to<W: Write>(
        &self,
        out: &mut OArchive<W>,
        name: &str,
        options: &Options,
    ) -> Result<Losses> {
        Ok(self.groups().save(out, name, options)?.losses)
    }

    fn groups(&self) -> Groups<'_, impl Iterator<Item = Result<Rows>> + '_> {
        let groups = (0..self.row_groups()).map(|group| self.rows(group));
        let (name, texts, losses) = (self.table(), self.texts(), &self.losses);
        Groups { groups, name, texts, columns: self.roots.len(), losses }
    }

    /// Decodes a row group. The rows are limited by the memory that they take.
    fn batches(&self, group: usize) -> Result<Vec<RecordBatch>> {
        let mut left = alloc_budget(self.limits, false);
        let mut batches = Vec::new();
        for batch in self.batches_of(group) {
            let batch = batch?;
            left = left
                .checked_sub(batch.get_array_memory_size() as u64)
                .ok_or_else(|| over_memory("the rows take more memory than is allowed"))?;
            batches.push(batch);
        }
        Ok(batches)
    }

    /// Returns an iterator over the rows of all row groups, in batches of [`BATCH`] rows, with the columns that are
    /// kept.
    pub(super) fn record_batches(&self) -> impl Iterator<Item = Result<RecordBatch>> + '_ {
        (0..self.row_groups()).flat_map(|group| self.batches_of(group))
    }

    /// Returns an iterator over the rows of a row group, in batches of [`BATCH`] rows. It ends after an error.
    fn batches_of(&self, group: usize) -> impl Iterator<Item = Result<RecordBatch>> + '_ {
        let mut reader = Some(guarded(|| self.reader(group)));
        std::iter::from_fn(move || {
            let mut open = match reader.take()? {
                Ok(open) => open,
                Err(error) => return Some(Err(error)),
            };
            let batch = guarded(|| open.next().transpose().map_err(of_batch)).transpose()?;
            if batch.is_ok() {
                reader = Some(Ok(open));
            }
            Some(batch)
        })
    }

    /// Returns a reader of a row group.
    fn reader(&self, group: usize) -> Result<ParquetRecordBatchReader> {
        let metadata = self.metadata.metadata();
        let groups = Group {
            source: Arc::new(Pages(self.source.clone())),
            metadata: Arc::clone(metadata),
            number: group,
        };
        let mask =
            ProjectionMask::roots(self.metadata.parquet_schema(), self.roots.iter().copied());
        let schema = metadata.file_metadata().schema_descr();
        let levels = parquet_to_arrow_field_levels(schema, mask, Some(&self.fields));
        let levels = levels.map_err(failed)?;
        ParquetRecordBatchReader::try_new_with_row_groups(&levels, &groups, BATCH, None)
            .map_err(failed)
    }
}

/// Converts an error of the library that occurred while it decoded a batch.
fn of_batch(error: ArrowError) -> Error {
    match error {
        ArrowError::ExternalError(error) => match error.downcast::<ParquetError>() {
            Ok(error) => failed(*error),
            Err(error) => Error::damaged(error.to_string()),
        },
        // The library has made a text of its own error.
        ArrowError::ParquetError(what) => failed(ParquetError::General(what)),
        ArrowError::NotYetImplemented(what) => Error::unsupported(format!("not supported: {what}")),
        error => Error::damaged(error.to_string()),
    }
}

/// Calls the library, which panics on some damaged files. Returns the panic as an error.
///
/// If `read` panics, everything it has built is dropped, and it changes nothing else. So no incomplete state is left.
fn guarded<T>(read: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
        Err(Error::damaged(format!("the Parquet file is damaged: {text}")))
    })
}

/// Checks the footer. What is no Parquet file at all is left to the library.
fn check_footer<S: ReadAt + Send + Sync>(source: &Source<S>) -> Result<()> {
    // The length of the footer, and the bytes with which a file ends.
    let Some(end) = Length::len(source).checked_sub(8) else { return Ok(()) };
    let tail = source.get_bytes(end, 8).map_err(failed)?;
    let Some((len, b"PAR1")) = tail.split_first_chunk() else { return Ok(()) };
    let len = u32::from_le_bytes(*len);
    let Some(start) = end.checked_sub(len.into()) else { return Ok(()) };
    let footer = source.get_bytes(start, usize::try_from(len).unwrap_or(usize::MAX));
    thrift::check(&footer.map_err(failed)?, FILE, start).map_err(|fault| match fault {
        Fault::CutOff => Error::damaged("the footer ends inside of a struct").at(end),
        Fault::Damage(error) => error,
    })
}

/// Checks that all columns are inside of the file. If one is not, the library panics.
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
    /// Returns the number of row groups.
    pub fn row_groups(&self) -> usize {
        self.metadata.metadata().num_row_groups()
    }

    /// Describes the row groups and the columns of the file as its footer does: a map with an array for each. Later
    /// versions may say more.
    pub fn about(&self) -> Value {
        about::of(self.metadata.metadata())
    }

    /// Returns what cannot be kept of the columns.
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// Returns the texts in the footer that belong to the whole table, with their keys, such as the description of a data
    /// frame under the key `pandas`. [`to_archive`] makes them [notes](tenarc::archive::SaveOptions::with_note) of the archive,
    /// and [`from_archive`](super::from_archive) writes such notes.
    pub fn texts(&self) -> &[(String, String)] {
        &self.texts
    }

    /// Returns the name that the table had in the archive from which the file was written.
    pub fn table(&self) -> Option<&str> {
        let texts = self.metadata.metadata().file_metadata().key_value_metadata()?;
        texts.iter().find(|text| text.key == TABLE)?.value.as_deref()
    }

    /// Returns the number of rows that the footer states for a row group.
    fn rows_of(&self, group: usize) -> u64 {
        let groups = self.metadata.metadata().row_groups();
        groups.get(group).map_or(0, |group| u64::try_from(group.num_rows()).unwrap_or(0))
    }
}

/// Converts a Parquet file to an archive with a table. Each row group becomes a value. If the options accept losses,
/// returns what was lost.
///
/// One row group at a time is in memory. The archive always has checksums, even if the options turn them off. Before it
/// appears under its name, it is read back and its checksums are verified.
///
/// # Errors
/// - If the file cannot be read, is not a Parquet file, or is damaged.
/// - If something cannot be kept, and the options do not accept losses.
/// - If the archive cannot be written.
pub fn to_archive(
    from: impl AsRef<Path>,
    to: impl AsRef<Path>,
    options: &Options,
) -> Result<Losses> {
    let from = from.as_ref();
    let file = open(from)?.with_limits(options.limits);
    file.groups().into_archive((from, to.as_ref()), options)
}
