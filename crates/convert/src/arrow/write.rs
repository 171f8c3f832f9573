//! Writes files and streams. The layout is planned first, then the columns are written one by one. A saved file is read
//! back and checked.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::path::Path;

use arrow_ipc::{Block, Buffer, FieldNode};
use tenarc::tensor::{TensorMeta, ToTensor};
use tenarc::{Error, Result};

use super::container::HEAD;
use super::encode;
use super::message::{self, CONTINUATION, MAGIC, PREFIX};
use super::options::Container;
use super::plan::{Column, Data, Plan, Texts, is_large};
use super::read::ArrowFile;
use crate::honest::Honest;
use crate::support::WRITE_STEP;
use crate::{Losses, Options, made};

/// The alignment of buffers, as Arrow recommends it.
const ALIGNMENT: u64 = 64;

/// The size of the buffer that collects small writes.
const BUFFER: usize = 64 << 10;

/// Saves named tensors and texts as a file.
pub fn save<N: AsRef<str>, T: ToTensor>(
    path: &Path,
    tensors: &[(N, T)],
    texts: Texts<'_>,
    options: &Options,
) -> Result<Losses> {
    let (plan, losses) = Plan::new(tensors, texts, options)?;
    losses.check(options.accept_losses, plan.columns.len())?;
    let container = options.container.unwrap_or_else(|| Container::of_name(path));
    made::file(path, options.sync(), |file| {
        made::written(file, path, |out| write(&plan, container, out))?;
        check(&plan, file).map_err(|error| error.in_file(path))
    })?;
    Ok(losses)
}

/// Writes named tensors and texts to any writer.
pub fn to_writer<W: Write, N: AsRef<str>, T: ToTensor>(
    writer: W,
    tensors: &[(N, T)],
    texts: Texts<'_>,
    options: &Options,
) -> Result<Losses> {
    let (plan, losses) = Plan::new(tensors, texts, options)?;
    losses.check(options.accept_losses, plan.columns.len())?;
    let mut writer = BufWriter::with_capacity(BUFFER, Honest::new(writer));
    write(&plan, options.container.unwrap_or(Container::Stream), &mut writer)?;
    writer.flush().map_err(Error::io)?;
    Ok(losses)
}

/// Reads the metadata of a file back. Checks the number of rows, and the names, dtypes, shapes and orders of all
/// tensors.
fn check(plan: &Plan<'_>, file: &File) -> Result<()> {
    let found = ArrowFile::new(file)?;
    let tensors = found.tensors().iter().map(|info| (info.path(), info.meta().clone()));
    let expected: Vec<(&str, TensorMeta)> = plan
        .columns
        .iter()
        .filter_map(|column| match &column.data {
            Data::Cells(cells) => Some((column.name, cells.expected())),
            Data::Texts(_) => None,
        })
        .collect();
    if tensors.eq(expected) && found.losses().is_empty() && found.rows() == plan.rows {
        return Ok(());
    }
    Err(Error::damaged("the file that was read back differs from what was written"))
}

fn write(plan: &Plan<'_>, container: Container, writer: &mut dyn Write) -> Result<()> {
    let mut out = Out { writer, at: 0 };
    if container == Container::File {
        out.put(&MAGIC)?;
        out.pad(HEAD)?;
    }
    out.message(&encode::schema(plan))?;
    let mut blocks = Vec::new();
    let mut start = 0;
    while start < plan.rows {
        let end = start.saturating_add(plan.rows_per_batch).min(plan.rows);
        blocks.push(out.batch(plan, start..end)?);
        start = end;
    }
    out.put(&CONTINUATION)?;
    out.put(&[0; 4])?;
    if container == Container::File {
        let footer = encode::footer(plan, &blocks);
        message::check_len(footer.len() as u64)?;
        out.put(&footer)?;
        let len = i32::try_from(footer.len()).unwrap_or(i32::MAX);
        out.put(&len.to_le_bytes())?;
        out.put(&MAGIC)?;
    }
    Ok(())
}

/// A writer that counts the bytes it has written.
struct Out<'w> {
    writer: &'w mut dyn Write,
    at: u64,
}

impl Out<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        for step in bytes.chunks(WRITE_STEP) {
            self.writer.write_all(step).map_err(Error::io)?;
        }
        self.at = self.at.saturating_add(bytes.len() as u64);
        Ok(())
    }

    fn pad(&mut self, to: u64) -> Result<()> {
        let zeros = [0; 64];
        let len = usize::try_from(self.at.next_multiple_of(to) - self.at).unwrap_or(0);
        self.put(zeros.get(..len).unwrap_or_default())
    }

    /// Writes the prefix and the metadata of a message, padded so that its body is aligned. Returns the number of bytes
    /// written.
    fn message(&mut self, metadata: &[u8]) -> Result<u64> {
        let start = self.at;
        let end = (start + PREFIX).saturating_add(metadata.len() as u64);
        let len = end.next_multiple_of(ALIGNMENT) - start - PREFIX;
        message::check_len(len)?;
        self.put(&CONTINUATION)?;
        self.put(&i32::try_from(len).unwrap_or(i32::MAX).to_le_bytes())?;
        self.put(metadata)?;
        self.pad(ALIGNMENT)?;
        Ok(self.at - start)
    }

    fn batch(&mut self, plan: &Plan<'_>, rows: Range<usize>) -> Result<Block> {
        let count = rows.len() as u64;
        let mut layout = Layout { nodes: Vec::new(), buffers: Vec::new(), end: 0 };
        for column in &plan.columns {
            layout.add(column, &rows).map_err(|error| error.in_field(column.name))?;
        }
        let body = signed(layout.end)?;
        let start = self.at;
        let metadata = encode::batch(signed(count)?, &layout.nodes, &layout.buffers, body);
        let metadata = self.message(&metadata)?;
        for column in &plan.columns {
            self.column(column, &rows).map_err(|error| error.in_field(column.name))?;
        }
        let metadata = i32::try_from(metadata).unwrap_or(i32::MAX);
        Ok(Block::new(signed(start)?, metadata, body))
    }

    fn column(&mut self, column: &Column<'_>, rows: &Range<usize>) -> Result<()> {
        match &column.data {
            Data::Cells(cells) => cells.write(rows.clone(), &mut |block| self.put(block))?,
            Data::Texts(texts) => {
                let large = is_large(texts);
                let texts = texts.get(rows.clone()).unwrap_or_default();
                let mut end = 0u64;
                let ends = std::iter::once(0).chain(texts.iter().map(|text| {
                    end += text.len() as u64;
                    end
                }));
                for end in ends {
                    let wide = end.to_le_bytes();
                    let width = if large { 8 } else { 4 };
                    self.put(wide.get(..width).unwrap_or_default())?;
                }
                self.pad(ALIGNMENT)?;
                texts.iter().try_for_each(|text| self.put(text.as_bytes()))?;
            }
        }
        self.pad(ALIGNMENT)
    }
}

/// The nodes of a batch, and the positions of the buffers in its body.
struct Layout {
    nodes: Vec<FieldNode>,
    buffers: Vec<Buffer>,
    end: u64,
}

impl Layout {
    fn add(&mut self, column: &Column<'_>, rows: &Range<usize>) -> Result<()> {
        let count = rows.len() as u64;
        self.node(count)?;
        match &column.data {
            Data::Cells(cells) => {
                if !cells.cell.is_empty() {
                    self.node(count.checked_mul(cells.count as u64).ok_or_else(too_large)?)?;
                }
                self.buffer(cells.byte_len(rows.len()).ok_or_else(too_large)? as u64)
            }
            Data::Texts(texts) => {
                let width = if is_large(texts) { 8 } else { 4 };
                self.buffer((count + 1).checked_mul(width).ok_or_else(too_large)?)?;
                let texts = texts.get(rows.clone()).unwrap_or_default();
                self.buffer(texts.iter().map(|text| text.len() as u64).sum())
            }
        }
    }

    /// Adds a node of `count` slots. None of them is null, so its bitmap of nulls is empty.
    fn node(&mut self, count: u64) -> Result<()> {
        self.nodes.push(FieldNode::new(signed(count)?, 0));
        self.buffer(0)
    }

    fn buffer(&mut self, len: u64) -> Result<()> {
        self.buffers.push(Buffer::new(signed(self.end)?, signed(len)?));
        let end = self.end.checked_add(len).and_then(|end| end.checked_next_multiple_of(ALIGNMENT));
        self.end = end.ok_or_else(too_large)?;
        Ok(())
    }
}

fn signed(number: u64) -> Result<i64> {
    i64::try_from(number).map_err(|_| too_large())
}

#[cold]
fn too_large() -> Error {
    Error::limit("a record batch would be longer than 2^63 bytes")
}
