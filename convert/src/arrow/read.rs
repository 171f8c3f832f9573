//! Reading a file or a stream at any position.

use std::fmt;
use std::fs::File;
use std::path::Path;

use tenarc::de::Limits;
use tenarc::io::{ReadAt, open_file};
use tenarc::tensor::{Deferred, FromTensor, TensorInfo};
use tenarc::{DynTensor, Error, Result};

use super::batch::Piece;
use super::container;
use super::contents::{Contents, Leaf};
use super::elements;
use super::schema::{Column, Kind};
use super::strings;
use crate::as_value::{AsValue, Part, Strings};
use crate::elements::collected;
use crate::exported::METADATA;
use crate::nested::{Key, Node};
use crate::support::alloc_budget;
use crate::{Losses, Names, TensorFile};

/// Arrow's columns in a file or a stream that can be read at any position: a [file](super::open), bytes in
/// memory, or anything else that is [`ReadAt`]. Also a batch of a stream: see [`Batches`](super::Batches).
///
/// Opening reads the metadata of all batches, and bitmaps of nulls where there are any, and checks them; rows
/// are read when they are asked for. All methods take `&self`, so that several threads can read at once.
///
/// Columns have the names of fields; those inside of structs, the names that lead there, joined by dots.
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
    /// Reads what a file or a stream says of its columns, and checks it.
    ///
    /// # Errors
    /// Where reading fails; where there is neither a file nor a stream of Arrow's IPC format, of version 1.0 or
    /// later, or it contradicts itself; where columns are big-endian, two have one name, or one is of a
    /// type that is not known here.
    pub fn new(source: S) -> Result<Self> {
        let contents = container::read(&source)?;
        Ok(Self::of(source, contents, Limits::default()))
    }

    pub(super) fn of(source: S, contents: Contents, limits: Limits) -> Self {
        Self { source, contents, limits }
    }

    /// Limits the dimensions and bytes of each tensor, and the bytes of each column of strings. By default,
    /// strings and what is compressed may take 16 GiB, and a tensor that is not as many bytes as there are.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// What the file is read from.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// The number of rows, in all batches together.
    pub fn rows(&self) -> usize {
        self.contents.rows
    }

    /// All columns that are tensors, in their order. The path of each is its name.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.contents.infos
    }

    /// Whether the columns are rather those of records, which [`TableFile`](super::TableFile) reads: the file was made of a table,
    /// or a column has nulls or is of a type that is no tensor, such as lists.
    pub fn is_table(&self) -> bool {
        self.contents.is_table
    }

    /// The texts that belong to the schema, in their order; `None` where there are none.
    pub fn metadata(&self) -> Option<&[(String, String)]> {
        self.contents.metadata.as_deref()
    }

    /// What of the file is in none of what this type gives: columns with nulls and of types that are no tensors,
    /// units of times, and what is said of columns beside their types.
    pub fn losses(&self) -> &Losses {
        &self.contents.losses
    }

    /// The tensor of that name, without its elements.
    ///
    /// # Errors
    /// Where there is none.
    pub fn info(&self, name: &str) -> Result<&TensorInfo> {
        self.contents.tensor(self.number(name)?).map(|(info, ..)| info)
    }

    /// The tensor of that name as any type that can be read from one.
    ///
    /// # Errors
    /// As [`dyn_tensor`](Self::dyn_tensor), and where its dtype or number of dimensions is another.
    pub fn tensor<T: for<'de> FromTensor<'de>>(&self, name: &str) -> Result<T> {
        self.dyn_tensor(name)?.into_tensor().map_err(|error| error.in_field(name))
    }

    /// The tensor of that name, whatever its dtype: all rows one behind the other.
    ///
    /// # Errors
    /// Where there is no such tensor, it cannot be read or decompressed, or is larger than the limits allow.
    pub fn dyn_tensor(&self, name: &str) -> Result<DynTensor> {
        let number = self.number(name)?;
        self.read(number).map_err(|error| error.in_field(name))
    }

    /// The column of that name as texts.
    ///
    /// # Errors
    /// Where there is no such column of texts, it cannot be read, takes more memory than the limits allow, or
    /// holds something else than UTF-8.
    pub fn texts(&self, name: &str) -> Result<Vec<String>> {
        let mut texts = Vec::new();
        self.strings(name, true, &mut |string| {
            texts.push(String::from_utf8_lossy(string).into_owned());
        })?;
        Ok(texts)
    }

    /// The column of that name as byte strings.
    ///
    /// # Errors
    /// Where there is no such column of byte strings, it cannot be read, or takes more memory than the limits
    /// allow.
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
                let what = format!("expected a column of {expected}, found another");
                return Err(Error::data(what).in_field(name));
            }
        };
        let each = strings.each;
        let read = each(&mut |string| {
            put(string);
            Ok(())
        });
        read.map_err(|error| error.in_field(name))
    }

    /// Whether the file says that it was written from a nested value.
    pub fn is_nested(&self) -> bool {
        self.contents.nested
    }

    /// The columns that are there, as a part of a tree. What is no struct is added to `parts`, with its path.
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
                Err(Error::data("expected a tensor, found a column of strings").in_field(name))
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
            return Err(Error::limit(format!("{found} dimensions, {most} are allowed")));
        }
        let (found, most) =
            (info.byte_len(), alloc_budget(self.limits, elements::are_plain(pieces)));
        if found > most {
            return Err(Error::limit(format!("a tensor of {found} bytes, {most} are allowed")));
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

/// A map of its columns by name, structs as maps inside, and its metadata, if there are any, under `__metadata__`. Columns are
/// read as they are written: tensors in steps, of texts and byte strings those of one batch.
impl<S: ReadAt> TensorFile for ArrowFile<S> {
    fn value(&self, names: Names) -> Result<AsValue<'_>> {
        let mut parts = Vec::new();
        let tree = self.branch(self.contents.columns(), &mut parts)?;
        if tree.iter().any(|(name, _)| *name == Key::Text(METADATA)) {
            let what = format!("a column of the name `{METADATA}`, which is that of the metadata");
            return Err(Error::data(what));
        }
        let value = AsValue::of(Node::Map(tree), parts).with_texts(self.metadata());
        value.with_losses(self.losses().clone()).named(names, self.contents.nested)
    }

    fn deferred(&self, name: &str) -> Result<Deferred<'_>> {
        let number = self.number(name)?;
        self.deferred_at(number).map_err(|error| error.in_field(name))
    }
}
