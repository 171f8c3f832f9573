//! The contents of a file or a batch: its columns, and where their rows are.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_ipc::RecordBatch;
use tenarc::io::ReadAt;
use tenarc::tensor::{Order, Shape, TensorInfo, TensorMeta};
use tenarc::{Error, Result};

use super::batch::{self, Found, Piece};
use super::body::Codec;
use super::cells::Cells;
use super::schema::{Column, Kind, LAYOUT, ONE_ROW, Schema, Strings};
use crate::exported::Metadata;
use crate::{Losses, nested};
use tenarc_arrow::TABLE;

/// The columns of a file or a batch, which can be looked up by their paths.
#[derive(Debug)]
pub struct Contents {
    schema: Arc<Schema>,
    pub rows: usize,
    pub metadata: Option<Metadata>,
    /// Whether the file says that it was written from a nested value.
    pub nested: bool,
    pub is_table: bool,
    pub losses: Losses,
    pub infos: Vec<TensorInfo>,
    /// For each of `infos`, the number of its column and the layout of its rows.
    cells: Vec<(usize, Arc<Cells>)>,
    found: Vec<Found>,
    by_path: HashMap<String, Leaf>,
}

/// A column that can be read.
#[derive(Clone, Copy, Debug)]
pub enum Leaf {
    /// The index of the tensor in `infos`.
    Tensor(usize),
    /// The number of the column, and the layout of its strings.
    Strings(usize, Strings),
}

/// The batches that were read so far. [`finish`](Self::finish) makes [`Contents`] of them.
pub struct Batches {
    schema: Arc<Schema>,
    rows: u64,
    found: Vec<Found>,
    losses: Losses,
}

impl Batches {
    pub fn new(schema: Arc<Schema>) -> Self {
        let mut found = Vec::new();
        found.resize_with(schema.count, Found::default);
        let losses = schema.losses.clone();
        Self { schema, rows: 0, found, losses }
    }

    /// Adds a loss of a batch.
    pub fn lose(&mut self, what: &str) {
        self.losses.add("", what);
    }

    pub fn add<S: ReadAt + ?Sized>(
        &mut self,
        batch: &RecordBatch<'_>,
        early: Option<Codec>,
        body: &Range<u64>,
        source: &S,
    ) -> Result<()> {
        let rows = batch::read(batch, early, body, source, &self.schema.columns, &mut self.found)?;
        self.rows = self
            .rows
            .checked_add(rows)
            .ok_or_else(|| Error::limit("the record batches have more than 2^64 rows together"))?;
        Ok(())
    }

    pub fn finish(self) -> Result<Contents> {
        let Self { schema, rows, found, mut losses } = self;
        let rows = usize::try_from(rows)
            .map_err(|_| Error::limit(format!("{rows} rows do not fit in memory")))?;
        if schema.columns.is_empty() && rows > 0 {
            losses.add("", format!("{rows} rows without columns: their number is left out"));
        }
        let mut metadata = schema.metadata.clone();
        let is_mark = |(key, text): &(String, String)| key == LAYOUT && text == ONE_ROW;
        // If another program has concatenated files of one row, the mark is still there, but there are several rows.
        let one_row = rows == 1 && metadata.iter().flatten().any(is_mark);
        if one_row && let Some(texts) = &mut metadata {
            texts.retain(|pair| !is_mark(pair));
        }
        let mut metadata = metadata.filter(|texts| !one_row || !texts.is_empty());
        let nested = nested::take_mark(&mut metadata);
        let is_table = metadata.iter().flatten().any(|(key, _)| key == TABLE);
        let mut contents = Contents {
            losses,
            is_table,
            schema: Arc::clone(&schema),
            rows,
            metadata,
            nested,
            infos: Vec::new(),
            cells: Vec::new(),
            found,
            by_path: HashMap::new(),
        };
        schema.columns.iter().try_for_each(|column| contents.list(column, one_row))?;
        Ok(contents)
    }
}

impl Contents {
    fn list(&mut self, column: &Column, one_row: bool) -> Result<()> {
        let number = column.number;
        if self.found.get(number).is_some_and(|found| found.has_nulls) {
            self.is_table = true;
            let what = "a column with nulls is not a tensor: it is left out";
            match column.kind {
                Kind::Tensor(_) => self.losses.add_tensor(&column.path, what),
                _ => self.losses.add(&column.path, what),
            }
            return Ok(());
        }
        let leaf = match &column.kind {
            Kind::Lost(_) => {
                self.is_table = true;
                return Ok(());
            }
            Kind::Struct(columns) => {
                if columns.is_empty() {
                    self.losses.add(&column.path, "a struct without fields is left out");
                }
                return columns.iter().try_for_each(|column| self.list(column, one_row));
            }
            Kind::Strings(strings) => Leaf::Strings(number, *strings),
            Kind::Tensor(cells) => {
                self.is_table |= cells.are_named && !one_row;
                let info = info(&column.path, cells, (!one_row).then_some(self.rows))
                    .map_err(|error| error.in_field(&*column.path))?;
                self.infos.push(info);
                self.cells.push((number, Arc::clone(cells)));
                Leaf::Tensor(self.infos.len() - 1)
            }
        };
        if self.by_path.insert(column.path.clone(), leaf).is_some() {
            let what = "there are two columns of this name: joined by dots, their paths are equal";
            return Err(Error::data(what).in_field(&*column.path));
        }
        Ok(())
    }

    pub fn columns(&self) -> &[Column] {
        &self.schema.columns
    }

    /// Returns the buffers of a column, for each batch.
    pub fn pieces(&self, column: usize) -> &[Piece] {
        self.found.get(column).map_or(&[], |found| &found.pieces)
    }

    /// Returns the description of a tensor, the layout of its rows, and the buffers that hold them. `number` is its
    /// index in `infos`.
    pub fn tensor(&self, number: usize) -> Result<(&TensorInfo, &Arc<Cells>, &[Piece])> {
        let found = self.infos.get(number).zip(self.cells.get(number));
        let found = found.map(|(info, (column, cells))| (info, cells, self.pieces(*column)));
        found.ok_or_else(|| Error::not_found(format!("there is no tensor {number}")))
    }

    pub fn leaf(&self, path: &str) -> Result<Leaf> {
        let leaf = self.by_path.get(path).copied();
        leaf.ok_or_else(|| Error::not_found("there is no column of this name").in_field(path))
    }

    /// Returns whether a column is read: its type is not left out, and it has no nulls.
    pub fn is_kept(&self, column: &Column) -> bool {
        let has_nulls = self.found.get(column.number).is_some_and(|found| found.has_nulls);
        !has_nulls && !matches!(column.kind, Kind::Lost(_))
    }
}

/// Describes a column as a tensor. `rows` is its first dimension. If it is `None`, the tensor is the only cell of the
/// column.
fn info(path: &str, cells: &Cells, rows: Option<usize>) -> Result<TensorInfo> {
    let shape: Shape = rows.into_iter().chain(cells.shape.iter().copied()).collect();
    let order = if rows.is_none() && cells.is_column_major() { Order::F } else { Order::C };
    let meta = TensorMeta { dtype: cells.dtype.clone(), shape, order };
    let len = meta.byte_len().filter(|&len| isize::try_from(len).is_ok());
    let len = len.ok_or_else(|| Error::limit("the tensor does not fit in memory"))?;
    Ok(TensorInfo::new(path.to_owned(), meta, len as u64))
}
