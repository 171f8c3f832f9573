//! Reads files and streams as tables of records.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::Write;
use std::path::Path;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::{RecordBatchDecoder, read_dictionary};
use arrow_ipc::{DictionaryBatch, Message, MetadataVersion};
use arrow_schema::{ArrowError, DataType, Schema, SchemaRef};
use tenarc::de::Limits;
use tenarc::io::{ReadAt, open_file};
use tenarc::{Error, OArchive, Result, Value};
use tenarc_arrow::{Import, Rows, TABLE};

use super::container::{self, Messages};
use super::message::Place;
use super::plain::{self, Plain};
use super::schema::Schema as Checked;
use crate::records::{self, Groups};
use crate::support::{alloc_budget, over_memory};
use crate::{Losses, Options};

/// A file or a stream of Arrow's IPC format as a table of records. One record batch at a time is read.
///
/// ```
/// use tenarc::{Archive, OArchive};
/// use tenarc_convert::arrow::{self, TableFile};
///
/// # #[derive(serde::Serialize)]
/// # struct Event { id: u32, user: Option<String> }
/// # let mut out = OArchive::new(Vec::new())?;
/// # out.save_as("events", &[Event { id: 1, user: None }, Event { id: 2, user: Some("ada".into()) }])?;
/// # let archive = Archive::new(out.finish()?)?;
/// # let mut bytes = Vec::new();
/// # arrow::segments_to_writer(archive.segments().collect::<Result<_, _>>()?, &mut bytes, &Default::default())?;
/// let file = TableFile::new(bytes)?;
/// let mut out = OArchive::new(Vec::new())?;
/// for rows in file.batches() {
///     out.save_as("events", &rows?)?;
/// }
/// assert_eq!(Archive::new(out.finish()?)?.table("events")?.len(), 2);
/// # Ok::<(), tenarc::Error>(())
/// ```
pub struct TableFile<S> {
    source: S,
    schema: SchemaRef,
    messages: Messages,
    import: Import,
    /// The numbers of the columns in the file that are kept.
    roots: Vec<usize>,
    texts: Vec<(String, String)>,
    losses: Losses,
    limits: Limits,
}

impl<S> fmt::Debug for TableFile<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableFile")
            .field("columns", &self.roots.len())
            .field("losses", &self.losses)
            .finish_non_exhaustive()
    }
}

impl TableFile<File> {
    /// Opens a file or a stream: see [`new`](Self::new).
    ///
    /// # Errors
    /// If the file cannot be opened. Also the errors of [`new`](Self::new).
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Self::new(open_file(path)?.0).map_err(|error| error.in_file(path))
    }
}

impl<S: ReadAt> TableFile<S> {
    /// Reads the schema.
    ///
    /// # Errors
    /// - If the source cannot be read.
    /// - If the source is neither a file nor a stream of Arrow, or is damaged.
    /// - If two columns, or two fields of a struct, have the same name.
    pub fn new(source: S) -> Result<Self> {
        let (schema, messages, mut losses) = container::open(&source, |stored, version, len| {
            // The conversion in the next line trusts the schema, so it is checked first.
            Checked::read(stored, version, len)?;
            try_fb_to_schema(*stored).map_err(failed)
        })?;
        let (mut roots, mut kept) = (Vec::new(), Vec::new());
        for (number, field) in schema.fields().iter().enumerate() {
            match unread(field.data_type()) {
                Some(what) => {
                    let what = format!("an archive has no type for {what}: the column is left out");
                    losses.add(field.name(), what);
                }
                None => {
                    roots.push(number);
                    kept.push(field.as_ref());
                }
            }
        }
        let import = Import::of(kept)?;
        losses.add_report(import.report());
        roots = import.kept().filter_map(|number| roots.get(number).copied()).collect();
        // Only the columns that are kept are decoded.
        let import = import.of_kept();
        let mut texts: Vec<_> =
            schema.metadata().iter().map(|(key, text)| (key.as_str(), text.as_str())).collect();
        texts.sort_unstable();
        let texts = records::texts(texts.into_iter(), &mut losses);
        let (schema, limits) = (schema.into(), Limits::default());
        Ok(Self { source, schema, messages, import, roots, texts, losses, limits })
    }

    /// Sets how many bytes a record batch may take in memory, and all dictionaries together. By default, each of them
    /// may take 16 GiB.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Returns an iterator over the rows of each record batch. The rows of a batch are in memory until they are
    /// dropped.
    ///
    /// # Errors
    /// If a batch cannot be read, its item is an error, and the iterator ends.
    pub fn batches(&self) -> impl Iterator<Item = Result<Rows>> + '_ {
        let mut batches = Some(self.record_batches());
        std::iter::from_fn(move || {
            let batch = batches.as_mut()?.next()?;
            let rows = batch.and_then(|batch| self.import.rows(&[batch], self.limits));
            if rows.is_err() {
                batches = None;
            }
            Some(rows)
        })
    }

    /// Describes the record batches: see [`TensorFile::about`](crate::TensorFile::about). Rows are not read.
    ///
    /// # Errors
    /// If the metadata of a batch cannot be read.
    pub fn about(&self) -> Result<Value> {
        container::about(&self.source, self.messages.clone())
    }

    /// Saves the table to an archive, with a value for each record batch and at least one value. The name of the values
    /// is that of [`Options::with_table`], or else that of the table in the file, or else `name`. Returns what is lost.
    ///
    /// # Errors
    /// - If no column can be kept.
    /// - If something cannot be kept, and the options do not accept losses. Some values are saved nevertheless.
    /// - If a record batch cannot be read, or the archive cannot be written.
    pub fn save_to<W: Write>(
        &self,
        out: &mut OArchive<W>,
        name: &str,
        options: &Options,
    ) -> Result<Losses> {
        Ok(self.groups().save(out, name, options)?.losses)
    }

    pub(super) fn groups(&self) -> Groups<'_, impl Iterator<Item = Result<Rows>> + '_> {
        let (groups, name, texts) = (self.batches(), self.table(), self.texts());
        Groups { groups, name, texts, columns: self.roots.len(), losses: &self.losses }
    }

    /// Returns an iterator over the record batches, with the columns that are kept. It ends after an error.
    pub(super) fn record_batches(&self) -> impl Iterator<Item = Result<RecordBatch>> + '_ {
        let mut decoder = Decoder::new(&self.schema, &self.roots, self.limits);
        let mut messages = Some(self.messages.clone());
        std::iter::from_fn(move || {
            loop {
                let read = messages.as_mut()?.next(&self.source, |message, place| {
                    decoder.message(message, place, &self.source)
                });
                match read.transpose()? {
                    Ok(Some(batch)) => return Some(Ok(batch)),
                    Ok(None) => {}
                    Err(error) => {
                        messages = None;
                        return Some(Err(error));
                    }
                }
            }
        })
    }
}

impl<S> TableFile<S> {
    /// Returns what cannot be kept of the columns.
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// Returns the texts in the schema that belong to the whole table, with their keys, such as the description of a data
    /// frame under the key `pandas`. They become [notes](tenarc::archive::SaveOptions::with_note) of an archive that is made
    /// from the file, and such notes are written.
    pub fn texts(&self) -> &[(String, String)] {
        &self.texts
    }

    /// Returns the name that the table had in the archive from which the file was written.
    pub fn table(&self) -> Option<&str> {
        self.schema.metadata().get(TABLE).map(String::as_str)
    }
}

/// Returns a name of the values in a column of this type if the column is left out: if an archive has no counterpart
/// for them, or if the crate would trust what a damaged file says of them.
fn unread(of: &DataType) -> Option<&'static str> {
    let decimal = |precision: u8, scale: i8, most: u8| {
        let is_known = (1..=most).contains(&precision) && scale.unsigned_abs() <= most;
        (!is_known).then_some("decimals of this precision and scale")
    };
    match of {
        DataType::Union(..) => Some("unions"),
        DataType::RunEndEncoded(..) => Some("runs"),
        DataType::ListView(_) | DataType::LargeListView(_) => Some("list views"),
        DataType::FixedSizeBinary(size) if *size < 0 => Some("byte strings of a negative size"),
        DataType::FixedSizeList(_, size) if *size < 0 => Some("lists of a negative size"),
        DataType::FixedSizeList(item, _) | DataType::List(item) | DataType::LargeList(item) => {
            unread(item.data_type())
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) if fields.len() == 2 => unread(entries.data_type()),
            _ => Some("maps without keys and values"),
        },
        DataType::Struct(fields) => fields.iter().find_map(|field| unread(field.data_type())),
        DataType::Dictionary(_, values) => unread(values),
        DataType::Decimal32(precision, scale) => decimal(*precision, *scale, 9),
        DataType::Decimal64(precision, scale) => decimal(*precision, *scale, 18),
        DataType::Decimal128(precision, scale) => decimal(*precision, *scale, 38),
        DataType::Decimal256(precision, scale) => decimal(*precision, *scale, 76),
        _ => None,
    }
}

/// Decodes batches, and keeps the dictionaries that later batches refer to.
struct Decoder<'a> {
    schema: &'a SchemaRef,
    roots: &'a [usize],
    /// The columns that are kept.
    kept: Schema,
    dictionaries: HashMap<i64, ArrayRef>,
    limits: Limits,
    /// The number of bytes that further dictionaries may take.
    left: u64,
}

impl<'a> Decoder<'a> {
    fn new(schema: &'a SchemaRef, roots: &'a [usize], limits: Limits) -> Self {
        let kept = roots.iter().filter_map(|&root| schema.fields().get(root).cloned());
        let kept = Schema::new(kept.collect::<Vec<_>>());
        Self {
            schema,
            roots,
            kept,
            dictionaries: HashMap::new(),
            limits,
            left: alloc_budget(limits, false),
        }
    }

    /// Decodes the batch in a message. Returns `None` if the message is a dictionary, and keeps the dictionary.
    fn message<S: ReadAt + ?Sized>(
        &mut self,
        message: &Message<'_>,
        place: &Place,
        source: &S,
    ) -> Result<Option<RecordBatch>> {
        let early = container::early_codec(message.custom_metadata())?;
        let version = message.version();
        if let Some(dictionary) = message.header_as_dictionary_batch() {
            if let Some(of) = self.values_of(dictionary.id()) {
                let data =
                    dictionary.data().ok_or_else(|| Error::syntax("a dictionary has no values"))?;
                let of = std::iter::once(&of);
                let how = plain::How { early, version, limits: self.limits };
                let plain = plain::read(&data, of, Some(&dictionary), how, &place.body, source)?;
                self.dictionary(&plain, version)?;
            }
            return Ok(None);
        }
        let batch = message
            .header_as_record_batch()
            .ok_or_else(|| Error::syntax("expected a record batch, found another message"))?;
        let types = self.schema.fields().iter().map(|field| field.data_type());
        let how = plain::How { early, version, limits: self.limits };
        let plain = plain::read(&batch, types, None, how, &place.body, source)?;
        let (schema, known) = (self.schema.clone(), &self.dictionaries);
        RecordBatchDecoder::try_new(&plain.body, plain.root()?, schema, known, &version)
            .and_then(|decoder| decoder.with_projection(Some(self.roots)).read_record_batch())
            .map(Some)
            .map_err(failed)
    }

    /// Returns the type of the values in a dictionary, or `None` if no column that is kept refers to the dictionary.
    fn values_of(&self, id: i64) -> Option<DataType> {
        #[expect(deprecated, reason = "the crate offers nothing else yet")]
        let fields = self.kept.fields_with_dict_id(id);
        match fields.first()?.data_type() {
            DataType::Dictionary(_, values) => Some(values.as_ref().clone()),
            _ => None,
        }
    }

    /// Decodes a dictionary, or values that are added to one.
    fn dictionary(&mut self, plain: &Plain, version: MetadataVersion) -> Result<()> {
        let dictionary: DictionaryBatch<'_> = plain.root()?;
        let (id, known) = (dictionary.id(), &mut self.dictionaries);
        read_dictionary(&plain.body, dictionary, &self.kept, known, &version).map_err(failed)?;
        // An addition copies the whole dictionary, so its full size counts each time.
        let len = known.get(&id).map_or(0, |values| values.get_array_memory_size() as u64);
        self.left = self
            .left
            .checked_sub(len)
            .ok_or_else(|| over_memory("the dictionaries exceed the memory limit"))?;
        Ok(())
    }
}

#[allow(clippy::needless_pass_by_value)]
pub(super) fn failed(error: ArrowError) -> Error {
    match error {
        ArrowError::IoError(_, error) => Error::io(error),
        ArrowError::NotYetImplemented(what) => Error::unsupported(format!("not supported: {what}")),
        error => Error::damaged(error.to_string()),
    }
}
