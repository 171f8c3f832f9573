//! Reads a file, or a stream whose source can be read at any position.

use std::fmt;
use std::fs::File;
use std::path::Path;

use tenarc::de::Limits;
use tenarc::io::{ReadAt, open_file};
use tenarc::tensor::{Deferred, FromTensor, TensorInfo};
use tenarc::{DynTensor, Error, Result, Value};

use super::batch::Piece;
use super::container;
use super::contents::{Contents, Leaf};
use super::elements;
use super::schema::{Column, Kind};
use super::strings;
use super::table::TableFile;
use crate::as_value::{AsValue, Part, Strings};
use crate::elements::collected;
use crate::exported::METADATA;
use crate::nested::{Key, Node};
use crate::support::{alloc_budget, over_memory};
use crate::{Losses, Names, TensorFile};

/// The columns of a file or a stream of Arrow's IPC format. The source is a [file](super::open), bytes in memory, or
/// any other [`ReadAt`]. [`Batches`](super::Batches) returns each batch of a stream as an `ArrowFile`, too.
///
/// Opening reads and checks the metadata of all batches, and the bitmaps of nulls. Rows are read when they are
/// requested. All methods take `&self`, so several threads can read at once.
///
/// The name of a column is that of its field. If the field is inside of a struct, the names on the way to it are joined
/// by dots.
pub struct ArrowFile<S> {
    source: S,
    contents: Contents,
    limits: Limits,
}

impl<S> fmt::Debug for ArrowFile<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArrowFile")
            .field("rows", &self.contents.rows)
            .field("tensors", &self.contents.infos.len())
            .finish_non_exhaustive()
    }
}

impl ArrowFile<File> {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let (file, _) = open_file(path)?;
        Self::new(file).map_err(|error| error.in_file(path))
    }
}

impl<S: ReadAt> ArrowFile<S> {
    /// Reads and checks the schema and the metadata of all batches.
    ///
    /// # Errors
    /// - If reading fails.
    /// - If the source is neither a file nor a stream of Arrow's IPC format, or is damaged. Messages of Arrow before
    ///   0.15 are not read.
    /// - If columns are big-endian, two columns have the same name, or one has an unknown type.
    pub fn new(source: S) -> Result<Self> {
        let contents = container::read(&source)?;
        Ok(Self::of(source, contents, Limits::default()))
    }

    pub(super) fn of(source: S, contents: Contents, limits: Limits) -> Self {
        Self { source, contents, limits }
    }

    /// Sets the most dimensions and bytes of a tensor, and the most bytes of a column of strings. By default, a column
    /// of strings or a compressed tensor may take 16 GiB. The bytes of other tensors are not limited, because they are
    /// all in the file.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Returns the source of the file.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// Returns the number of rows of all batches together.
    pub fn rows(&self) -> usize {
        self.contents.rows
    }

    /// Returns descriptions of all columns that are tensors, in their order. The path of each is its name.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.contents.infos
    }

    /// Returns whether the file should be read as a table of records: see [`into_table`](Self::into_table). This is so
    /// if the file was written from a table, if a column has nulls, or if the type of a column, for example lists of any
    /// length, is not read here.
    pub fn is_table(&self) -> bool {
        self.contents.is_table
    }

    /// Reads the file as a table of records instead, with the limits of this file. Its schema is read again.
    ///
    /// # Errors
    /// The errors of [`TableFile::new`].
    pub fn into_table(self) -> Result<TableFile<S>> {
        Ok(TableFile::new(self.source)?.with_limits(self.limits))
    }

    /// Returns the keys and texts in the metadata of the schema, in their order, or `None` if the schema has no
    /// metadata.
    pub fn metadata(&self) -> Option<&[(String, String)]> {
        self.contents.metadata.as_deref()
    }

    /// Returns the parts of the file that no method of this type returns: columns with nulls or of other types, the
    /// units of times, and the metadata of columns.
    pub fn losses(&self) -> &Losses {
        &self.contents.losses
    }

    /// Returns a description of the tensor of this name: its dtype, shape and order.
    ///
    /// # Errors
    /// If there is no tensor of this name.
    pub fn info(&self, name: &str) -> Result<&TensorInfo> {
        self.contents.tensor(self.number(name)?).map(|(info, ..)| info)
    }

    /// Reads the tensor of this name as any type that implements [`FromTensor`].
    ///
    /// # Errors
    /// The errors of [`dyn_tensor`](Self::dyn_tensor). Also if the type expects another dtype or number of dimensions.
    pub fn tensor<T: for<'de> FromTensor<'de>>(&self, name: &str) -> Result<T> {
        self.dyn_tensor(name)?.into_tensor().map_err(|error| error.in_field(name))
    }

    /// Reads the tensor of this name, whatever its dtype. The rows of all batches are concatenated.
    ///
    /// # Errors
    /// If there is no tensor of this name, if it cannot be read or decompressed, or if it exceeds the limits.
    pub fn dyn_tensor(&self, name: &str) -> Result<DynTensor> {
        let number = self.number(name)?;
        self.read(number).map_err(|error| error.in_field(name))
    }

    /// Reads the column of texts of this name.
    ///
    /// # Errors
    /// If there is no column of texts of this name, if it cannot be read, if it takes more memory than the limits
    /// allow, or if a text is not UTF-8.
    pub fn texts(&self, name: &str) -> Result<Vec<String>> {
        let mut texts = Vec::new();
        self.strings(name, true, &mut |string| {
            texts.push(String::from_utf8_lossy(string).into_owned());
        })?;
        Ok(texts)
    }

    /// Reads the column of byte strings of this name.
    ///
    /// # Errors
    /// If there is no column of byte strings of this name, if it cannot be read, or if it takes more memory than the
    /// limits allow.
    pub fn byte_strings(&self, name: &str) -> Result<Vec<Vec<u8>>> {
        let mut strings = Vec::new();
        self.strings(name, false, &mut |string| strings.push(string.to_vec()))?;
        Ok(strings)
    }

    fn strings(&self, name: &str, text: bool, put: &mut dyn FnMut(&[u8])) -> Result<()> {
        let strings = match self.contents.leaf(name)? {
            Leaf::Strings(number, strings) if strings.text == text => {
                self.strings_at(number, strings)
            }
            _ => {
                let expected = if text { "texts" } else { "byte strings" };
                let what =
                    format!("expected a column of {expected}, found a column of another type");
                return Err(Error::mismatch(what).in_field(name));
            }
        };
        let each = strings.each;
        let read = each(&mut |string| {
            put(string);
            Ok(())
        });
        read.map_err(|error| error.in_field(name))
    }

    /// Returns whether the file says that it was written from a nested value.
    pub fn is_nested(&self) -> bool {
        self.contents.nested
    }

    /// Makes a node of each column that is not left out. Adds those that are not structs to `parts`, with their paths.
    fn branch<'a>(
        &'a self,
        columns: &'a [Column],
        parts: &mut Vec<(&'a str, Part<'a>)>,
    ) -> Result<Vec<(Key<'a>, Node<'a>)>> {
        let mut nodes = Vec::new();
        for column in columns.iter().filter(|column| self.contents.is_kept(column)) {
            let node = match &column.kind {
                Kind::Struct(columns) => Node::Map(self.branch(columns, parts)?),
                _ => {
                    let part = match self.contents.leaf(&column.path)? {
                        Leaf::Tensor(number) => {
                            let tensor = self.deferred_at(number);
                            Part::Tensor(tensor.map_err(|error| error.in_field(&*column.path))?)
                        }
                        Leaf::Strings(number, strings) => {
                            Part::Strings(self.strings_at(number, strings))
                        }
                    };
                    parts.push((&column.path, part));
                    Node::Leaf(parts.len() - 1)
                }
            };
            nodes.push((Key::Text(&column.name), node));
        }
        Ok(nodes)
    }

    fn number(&self, name: &str) -> Result<usize> {
        match self.contents.leaf(name)? {
            Leaf::Tensor(number) => Ok(number),
            Leaf::Strings(..) => {
                Err(Error::mismatch("expected a tensor, found a column of strings").in_field(name))
            }
        }
    }

    fn strings_at(&self, column: usize, kind: super::schema::Strings) -> Strings<'_> {
        let pieces = self.contents.pieces(column);
        Strings {
            rows: self.contents.rows,
            text: kind.text,
            each: Box::new(move |put| {
                let mut left = alloc_budget(self.limits, false);
                pieces
                    .iter()
                    .try_for_each(|piece| strings::each(piece, kind, &self.source, &mut left, put))
            }),
        }
    }

    fn check_limits(&self, info: &TensorInfo, pieces: &[Piece]) -> Result<()> {
        let (found, most) = (info.shape().len(), self.limits.max_rank());
        if found > most {
            return Err(Error::limit(format!(
                "the tensor has {found} dimensions, expected at most {most}"
            )));
        }
        let (found, most) =
            (info.byte_len(), alloc_budget(self.limits, elements::are_plain(pieces)));
        if found > most {
            return Err(over_memory(format!("the tensor has {found} bytes, the limit is {most}")));
        }
        Ok(())
    }

    fn deferred_at(&self, number: usize) -> Result<Deferred<'_>> {
        let (info, cells, pieces) = self.contents.tensor(number)?;
        self.check_limits(info, pieces)?;
        Ok(Deferred::from_blocks(info.dtype().clone(), info.shape(), info.order(), move |put| {
            elements::blocks(&self.source, info, cells, pieces, put)
        }))
    }

    fn read(&self, number: usize) -> Result<DynTensor> {
        let (info, cells, pieces) = self.contents.tensor(number)?;
        self.check_limits(info, pieces)?;
        let sure = if elements::are_plain(pieces) { info.byte_len() } else { 0 };
        let sure = usize::try_from(sure).unwrap_or(0);
        collected(info.meta(), sure, |put| elements::blocks(&self.source, info, cells, pieces, put))
    }
}

/// The value is a map from names to columns, in which structs are maps. If the file has metadata, they are under
/// `__metadata__`. A column is read when it is written: a tensor in blocks, strings one batch at a time.
impl<S: ReadAt> TensorFile for ArrowFile<S> {
    fn value(&self, names: Names) -> Result<AsValue<'_>> {
        let mut parts = Vec::new();
        let tree = self.branch(self.contents.columns(), &mut parts)?;
        if tree.iter().any(|(name, _)| *name == Key::Text(METADATA)) {
            let what =
                format!("a column has the name `{METADATA}`, which is reserved for the metadata");
            return Err(Error::data(what));
        }
        let value = AsValue::of(Node::Map(tree), parts).with_texts(self.metadata());
        value.with_losses(self.losses().clone()).named(names, self.contents.nested)
    }

    fn deferred(&self, name: &str) -> Result<Deferred<'_>> {
        let number = self.number(name)?;
        self.deferred_at(number).map_err(|error| error.in_field(name))
    }

    fn about(&self) -> Result<Value> {
        // The schema was checked when the file was opened.
        let ((), messages, _) = container::open(&self.source, |_, _, _| Ok(()))?;
        container::about(&self.source, messages)
    }
}
