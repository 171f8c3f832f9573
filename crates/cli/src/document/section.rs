//! One value of a document.

use std::cell::{Cell, OnceCell};
use std::collections::HashMap;
use std::ops::Range;

use tenarc::Value;
use tenarc::archive::{Segment, Table};
use tenarc::inspect::{Event, Items, escape_step};
use tenarc::ser::EncodeOptions;
use tenarc::tensor::{Order, TensorInfo};
use tenarc_convert::{Opened, Stored};

use crate::failure::{Failure, Result};
use crate::input::{OpenedInput, Source};
use crate::node::{self, Columns, Field, Form, Kind, Node, Optional, Payload};
use crate::paths::{self, Listed, Named};
use crate::text::quoted;

/// How a tensor is compressed.
#[derive(Clone, Copy, Debug)]
pub struct Compressed<'a> {
    pub codec: &'a str,
    /// The number of bytes that are stored.
    pub stored: u64,
}

/// Bytes of a value that are stored in one piece: see [`Section::blobs`].
pub struct Blob {
    /// The number of its buffer. `None` if it is in the metadata.
    pub buffer: Option<usize>,
    pub len: u64,
}

/// One value of a document.
pub struct Section<'a> {
    pub number: u64,
    /// The document's name.
    pub file: &'a str,
    item: Item<'a>,
    /// The structure of the value.
    pub root: Node,
    infos: OnceCell<HashMap<String, TensorInfo>>,
    /// The failure that occurred while the value was written. It is kept here, because an error of serde keeps only its
    /// text.
    pub fault: Cell<Option<Box<Failure>>>,
}

pub(super) enum Item<'a> {
    Segment(Segment<'a, Source>),
    Message(&'a [u8]),
    Opened(OpenedInput<'a>),
    /// A changed value, and its name.
    Changed(Box<dyn Stored + 'a>, Option<String>),
    /// A value with rows in place of columns: a decoded value, or a message with columns.
    Rows {
        /// The message.
        message: Option<&'a [u8]>,
        /// The name of the segment that the value is from.
        name: Option<String>,
        /// The value, with rows in place of columns.
        rows: Vec<u8>,
    },
}

/// Encodes a value as a message without columns.
pub(super) fn encoded(value: &Value) -> Result<Vec<u8>> {
    Ok(tenarc::ser::to_vec_with(value, EncodeOptions::default().with_typed_arrays(true))?)
}

impl<'a> Section<'a> {
    pub(super) fn new(number: u64, file: &'a str, item: Item<'a>, root: Node) -> Self {
        Self { number, file, item, root, infos: OnceCell::new(), fault: Cell::default() }
    }

    /// Creates a section from a decoded value.
    ///
    /// # Errors
    /// If the paths in it are too long.
    pub fn of_value(value: &Value) -> Result<Self> {
        let rows = encoded(value)?;
        let root = node::parse(&rows, &[])?;
        paths::check(&root)?;
        let item = Item::Rows { message: None, name: None, rows };
        Ok(Self::new(0, "", item, root))
    }

    /// Creates a section from a changed value.
    ///
    /// # Errors
    /// If the paths in it are too long.
    pub fn of_changed(name: Option<&str>, changed: Box<dyn Stored + 'a>) -> Result<Self> {
        let root = node::parse(changed.metadata()?, changed.buffers())?;
        paths::check(&root)?;
        let item = Item::Changed(changed, name.map(str::to_owned));
        Ok(Self::new(0, "", item, root))
    }

    /// Creates a section from a decoded part of this value. It keeps the number and the name of this value.
    ///
    /// # Errors
    /// If the paths in it are too long.
    pub fn decoded(&self, value: &Value) -> Result<Self> {
        let mut part = Self::of_value(value)?;
        (part.number, part.file) = (self.number, self.file);
        if let Item::Rows { name, .. } = &mut part.item {
            *name = self.name().map(str::to_owned);
        }
        Ok(part)
    }

    /// Returns the node at `path`.
    ///
    /// # Errors
    /// If there is no such node, or the path could mean several.
    pub fn find(&self, path: &str) -> Result<&Node> {
        paths::find(&self.root, self.bytes(), path)
    }

    pub fn name(&self) -> Option<&str> {
        match &self.item {
            Item::Segment(segment) => segment.name(),
            Item::Rows { name, .. } | Item::Changed(_, name) => name.as_deref(),
            _ => None,
        }
    }

    /// Returns the segment, if the value is from an archive.
    pub fn segment(&self) -> Option<&Segment<'a, Source>> {
        match &self.item {
            Item::Segment(segment) => Some(segment),
            _ => None,
        }
    }

    /// Returns the encoded message, if the value is one.
    pub fn message(&self) -> Option<&'a [u8]> {
        match &self.item {
            Item::Message(bytes) | Item::Rows { message: Some(bytes), .. } => Some(bytes),
            _ => None,
        }
    }

    /// Returns how a payload is compressed. `None` if it is not compressed.
    pub fn compressed(&self, payload: &Payload) -> Option<Compressed<'_>> {
        let buffer = self.segment()?.compressed(payload.buffer?)?;
        Some(Compressed { codec: buffer.codec(), stored: buffer.stored_len() })
    }

    /// Returns the length of the chunks in which tensors are compressed. `None` if no tensor is compressed.
    pub fn compressed_chunks(&self) -> Option<u64> {
        let segment = self.segment()?;
        let mut numbers = 0..segment.buffers().len();
        numbers.any(|number| segment.compressed(number).is_some()).then(|| segment.chunk_len())
    }

    /// Returns whether two tensors share a buffer, or the same bytes of a file of another format.
    ///
    /// # Errors
    /// If the metadata is damaged.
    pub fn is_tied(&self) -> Result<bool> {
        if let Some(opened) = self.opened() {
            return Ok(opened.file().has_tied_tensors());
        }
        let blobs = self.blobs(&self.root)?;
        let mut buffers: Vec<usize> = blobs.iter().filter_map(|blob| blob.buffer).collect();
        let count = buffers.len();
        buffers.sort_unstable();
        buffers.dedup();
        Ok(buffers.len() < count)
    }

    /// Returns the file from which the tensors are read, if it is of another format.
    pub fn opened(&self) -> Option<&'a Opened> {
        match &self.item {
            Item::Opened(opened) => Some(opened.0),
            _ => None,
        }
    }

    /// Returns the changed value, if the section is one.
    pub fn changed(&self) -> Option<&dyn Stored> {
        match &self.item {
            Item::Changed(changed, _) => Some(&**changed),
            _ => None,
        }
    }

    /// Returns the value in the form that converters read. `None` for messages and decoded values.
    pub fn stored(&self) -> Option<&dyn Stored> {
        match &self.item {
            Item::Segment(segment) => Some(segment),
            Item::Opened(opened) => Some(opened),
            Item::Changed(changed, _) => Some(&**changed),
            Item::Message(_) | Item::Rows { .. } => None,
        }
    }

    /// Returns the encoded message, or the metadata of a segment or of an opened file.
    pub fn bytes(&self) -> &[u8] {
        match &self.item {
            Item::Segment(segment) => segment.metadata().unwrap_or_default(),
            Item::Message(bytes) => bytes,
            Item::Rows { rows, .. } => rows,
            Item::Opened(opened) => opened.0.metadata().unwrap_or_default(),
            Item::Changed(changed, _) => changed.metadata().unwrap_or_default(),
        }
    }

    /// Returns all payloads, in the order of the value.
    ///
    /// # Errors
    /// Never: the structure was parsed from the same bytes.
    pub fn payloads(&self) -> Result<Vec<Named<'_>>> {
        Ok(paths::payloads(&self.root, self.bytes())?)
    }

    /// Returns the library's descriptions of the tensors in a segment, by their paths. Columns that are tensors are
    /// included.
    ///
    /// # Errors
    /// If the metadata is damaged, or if a tensor has no path of its own.
    pub fn infos(&self) -> Result<&HashMap<String, TensorInfo>> {
        if let Some(infos) = self.infos.get() {
            return Ok(infos);
        }
        let infos = self.segment().map(Segment::tensors).transpose()?.unwrap_or_default();
        let infos = infos.into_iter().map(|info| (info.path().to_owned(), info)).collect();
        Ok(self.infos.get_or_init(|| infos))
    }

    /// Returns columns as a table.
    ///
    /// # Errors
    /// If the columns are damaged, or no path leads to them.
    pub fn table(&self, columns: &Columns) -> Result<Table<'a, Source>> {
        let segment = self.segment().ok_or_else(|| {
            Failure::new(
                "only archives have tables of columns: convert the file to an archive first",
            )
        })?;
        Ok(segment.table(&columns.path)?)
    }

    /// Returns the columns that have a name.
    ///
    /// # Errors
    /// If the columns are damaged, or no path leads to them.
    pub fn fields<'s>(&'s self, columns: &'s Columns) -> Result<&'s [Field]> {
        if let Some(fields) = columns.fields.get() {
            return Ok(fields);
        }
        let table = self.table(columns)?;
        let tensors = self.infos()?;
        let mut fields = Vec::new();
        for column in table.columns()? {
            let (dotted, pointer) = joined(&columns.path, column.path());
            let info = tensors.get(&dotted).or_else(|| tensors.get(&pointer));
            let path = info.map_or(dotted, |info| info.path().to_owned());
            let tensor = info.map(|info| {
                let buffer = info.buffer().and_then(|number| usize::try_from(number).ok());
                let payload = Payload {
                    form: Form::Tensor,
                    dtype: info.dtype().clone(),
                    shape: info.shape().to_vec(),
                    order: Order::C,
                    byte_len: info.byte_len(),
                    buffer,
                    column: buffer.is_none().then(|| path.clone()),
                };
                Node { range: 0..0, kind: Kind::Payload(Box::new(payload)) }
            });
            let is_optional =
                column.is_optional() && column.row_shape().is_some_and(<[usize]>::is_empty);
            let dtype = column.dtype().filter(|_| is_optional).cloned();
            let optional = dtype.map(|dtype| Optional { column: column.path().to_owned(), dtype });
            let (kind, of) = (column.kind(), column.type_name().cloned());
            fields.push(Field { path, kind, of, tensor, optional });
        }
        Ok(columns.fields.get_or_init(|| fields))
    }

    /// Calls `each` with all tensors and columns, in the order of the value.
    ///
    /// # Errors
    /// If a tensor or table has no path of its own: then `each` is not called. If `each` fails.
    pub fn each_listed<'s>(&'s self, each: &mut dyn FnMut(Listed<'s>) -> Result<()>) -> Result<()> {
        paths::each_listed(&self.root, self.bytes(), each)
    }

    /// Calls `each` with all tensors, in the order of the value. Columns that are tensors are included.
    ///
    /// # Errors
    /// If a tensor or table has no path of its own: then `each` is not called. If columns are damaged, or `each` fails.
    pub fn each_tensor<'s>(&'s self, each: &mut dyn FnMut(Named<'s>) -> Result<()>) -> Result<()> {
        self.each_listed(&mut |listed| match listed {
            Listed::Tensor(named) => each(named),
            Listed::Columns(columns) => {
                self.fields(columns)?.iter().filter_map(Named::of_field).try_for_each(&mut *each)
            }
        })
    }

    /// Returns the payloads in a part of the value. For columns, these are their item in the metadata, and each payload
    /// that they have in a buffer.
    ///
    /// # Errors
    /// If the metadata is damaged.
    pub fn blobs(&self, node: &Node) -> Result<Vec<Blob>> {
        let mut found = Vec::new();
        self.add_blobs(node, &mut found)?;
        Ok(found)
    }

    fn add_blobs(&self, node: &Node, found: &mut Vec<Blob>) -> Result<()> {
        match &node.kind {
            Kind::Leaf => {}
            Kind::Payload(payload) => {
                found.push(Blob { buffer: payload.buffer, len: payload.byte_len });
            }
            Kind::Columns(_) => {
                found.push(Blob { buffer: None, len: node.range.len() as u64 });
                let buffers = self.segment().map(Segment::buffers).unwrap_or_default();
                for item in Items::new(self.item(&node.range)).with_buffers(buffers) {
                    let Event::Payload(payload) = item?.event else { continue };
                    if let Some(number) = payload.buffer {
                        let buffer = usize::try_from(number).ok();
                        found.push(Blob { buffer, len: payload.byte_len });
                    }
                }
            }
            Kind::Array(items) => {
                items.iter().try_for_each(|item| self.add_blobs(item, found))?;
            }
            Kind::Map(entries) => {
                entries.iter().try_for_each(|(_, value)| self.add_blobs(value, found))?;
            }
            Kind::Tag(_, inner) => self.add_blobs(inner, found)?,
        }
        Ok(())
    }

    /// Returns the encoded item at the range of a node.
    pub fn item(&self, range: &Range<usize>) -> &[u8] {
        self.bytes().get(range.clone()).unwrap_or_default()
    }

    /// Returns the quoted name of the value, or its number, such as `#2`, if it has no name.
    pub fn label(&self) -> String {
        match self.name() {
            Some(name) => quoted(name),
            None => format!("#{}", self.number),
        }
    }
}

/// Returns the path of a column in two forms: with dots, and as a JSON Pointer.
fn joined(sequence: &str, column: &str) -> (String, String) {
    let steps = |path: &str| match path {
        "" => String::new(),
        path if path.starts_with('/') => path.to_owned(),
        path => format!("/{}", escape_step(path).replace('.', "/")),
    };
    let pointer = steps(sequence) + &steps(column);
    let dotted = match sequence {
        "" => column.to_owned(),
        _ if sequence.starts_with('/') || column.starts_with('/') => pointer.clone(),
        _ => format!("{sequence}.{column}"),
    };
    (dotted, pointer)
}
