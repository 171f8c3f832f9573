//! Finds the buffers of each column in a record batch.

use std::ops::Range;

use arrow_ipc::{
    BodyCompressionMethod, Buffer as StoredBuffer, CompressionType, FieldNode, RecordBatch,
};
use flatbuffers::Vector;
use tenarc::io::ReadAt;
use tenarc::{Error, Result};

use super::body::{Buffer, Codec};
use super::cells::Cells;
use super::physical::Physical;
use super::schema::{Column, Kind, Offsets, Strings};

/// The number of bytes of a bitmap that are read at once.
const STEP: usize = 64 << 10;

/// The buffers of a column in all batches.
#[derive(Debug, Default)]
pub struct Found {
    pub pieces: Vec<Piece>,
    pub has_nulls: bool,
}

/// The buffers of a column in one batch.
#[derive(Debug)]
pub struct Piece {
    pub rows: u64,
    /// The buffers that hold the rows. The bitmap of nulls is not among them.
    pub buffers: Vec<Buffer>,
}

/// Finds the buffers of all columns in a batch, checks them, and adds them to `found`. Returns the number of rows.
/// `early` is the codec that the metadata of the message name, as Arrow 0.17 wrote it.
pub fn read<S: ReadAt + ?Sized>(
    batch: &RecordBatch<'_>,
    early: Option<Codec>,
    body: &Range<u64>,
    source: &S,
    columns: &[Column],
    found: &mut [Found],
) -> Result<u64> {
    let rows = batch.length();
    let rows = u64::try_from(rows)
        .map_err(|_| Error::syntax(format!("a record batch states {rows} rows")))?;
    let mut walk = Walk::new(batch, early, body, source)?;
    for column in columns {
        walk.column(column, rows, found).map_err(|error| error.in_field(&*column.name))?;
    }
    let next = (walk.nodes.len(), walk.buffers.len(), walk.counts.len());
    if walk.next != next {
        return Err(Error::syntax(
            "a record batch has more columns or buffers than its schema needs",
        ));
    }
    Ok(rows)
}

fn codec(batch: &RecordBatch<'_>) -> Result<Option<Codec>> {
    let Some(compression) = batch.compression() else { return Ok(None) };
    if compression.method() != BodyCompressionMethod::BUFFER {
        return Err(Error::unsupported(
            "the body is compressed by an unknown method, expected the method BUFFER",
        ));
    }
    match compression.codec() {
        CompressionType::LZ4_FRAME => Ok(Some(Codec::Lz4)),
        CompressionType::ZSTD => Ok(Some(Codec::Zstd)),
        CompressionType(other) => {
            let what =
                format!("the buffers are compressed with codec {other}, expected LZ4 or zstd");
            Err(Error::unsupported(what))
        }
    }
}

/// The nodes and buffers of a batch, which are passed one by one in their order.
pub struct Walk<'m, 's, S: ?Sized> {
    source: &'s S,
    codec: Option<Codec>,
    pub nodes: Vector<'m, FieldNode>,
    pub buffers: Vector<'m, StoredBuffer>,
    pub counts: Vector<'m, i64>,
    /// How many nodes, buffers and counts were passed.
    next: (usize, usize, usize),
    body: Range<u64>,
    /// The end of the last buffer that is not empty.
    end: u64,
}

impl<'m, 's, S: ReadAt + ?Sized> Walk<'m, 's, S> {
    pub fn new(
        batch: &RecordBatch<'m>,
        early: Option<Codec>,
        body: &Range<u64>,
        source: &'s S,
    ) -> Result<Self> {
        Ok(Self {
            source,
            codec: codec(batch)?.or(early),
            nodes: batch.nodes().unwrap_or_default(),
            buffers: batch.buffers().unwrap_or_default(),
            counts: batch.variadicBufferCounts().unwrap_or_default(),
            next: (0, 0, 0),
            body: body.clone(),
            end: body.start,
        })
    }

    fn column(&mut self, column: &Column, rows: u64, found: &mut [Found]) -> Result<()> {
        let (nulls, buffers) = match &column.kind {
            Kind::Tensor(cells) => self.cells(cells, rows)?,
            Kind::Strings(strings) => self.strings(*strings, rows)?,
            Kind::Struct(columns) => {
                let nulls = self.node(Some(rows))?;
                for inner in columns {
                    self.column(inner, rows, found)
                        .map_err(|error| error.in_field(&*inner.name))?;
                }
                (nulls, Vec::new())
            }
            Kind::Lost(physical) => {
                self.pass(physical)?;
                return Ok(());
            }
        };
        if let Some(found) = found.get_mut(column.number) {
            found.has_nulls |= nulls;
            if !matches!(column.kind, Kind::Struct(_)) {
                found.pieces.push(Piece { rows, buffers });
            }
        }
        Ok(())
    }

    fn cells(&mut self, cells: &Cells, rows: u64) -> Result<(bool, Vec<Buffer>)> {
        let too_many = || Error::limit(format!("{rows} rows of lists have too many elements"));
        let mut count = rows;
        let mut nulls = false;
        for &size in &cells.lists {
            nulls |= self.node(Some(count))?;
            count = count.checked_mul(size).ok_or_else(too_many)?;
        }
        nulls |= self.node(Some(count))?;
        let need = count.checked_mul(cells.slot).and_then(|count| cells.stored(count));
        let buffer = self.buffer()?;
        buffer.check(need.ok_or_else(too_many)?)?;
        Ok((nulls, vec![buffer]))
    }

    fn strings(&mut self, strings: Strings, rows: u64) -> Result<(bool, Vec<Buffer>)> {
        let nulls = self.node(Some(rows))?;
        let first = self.buffer()?;
        first.check(strings.layout.byte_len(rows)?)?;
        let more = if strings.layout == Offsets::Views { self.variadic()? } else { 1 };
        let mut buffers = vec![first];
        for _ in 0..more {
            buffers.push(self.buffer()?);
        }
        Ok((nulls, buffers))
    }

    fn pass(&mut self, physical: &Physical) -> Result<()> {
        let mut buffers = physical.buffers;
        self.next_node()?;
        if physical.variadic {
            buffers = buffers.saturating_add(self.variadic()?);
        }
        for _ in 0..buffers {
            self.buffer()?;
        }
        physical.children.iter().try_for_each(|inner| self.pass(inner))
    }

    fn next_node(&mut self) -> Result<FieldNode> {
        if self.next.0 >= self.nodes.len() {
            return Err(Error::syntax("a record batch has fewer columns than its schema needs"));
        }
        let node = self.nodes.get(self.next.0);
        self.next.0 += 1;
        Ok(*node)
    }

    /// Passes a node, which must have `expected` slots, and its bitmap of nulls. Returns whether a slot is null.
    fn node(&mut self, expected: Option<u64>) -> Result<bool> {
        let node = self.next_node()?;
        let (found, nulls) = (node.length(), node.null_count());
        let len = u64::try_from(found).ok().filter(|&len| expected.is_none_or(|e| e == len));
        let Some(len) = len else {
            let expected = expected.unwrap_or_default();
            return Err(Error::syntax(format!("expected {expected} rows, found {found}")));
        };
        if !(0..=found).contains(&nulls) {
            return Err(Error::syntax(format!("a column of {found} rows states {nulls} nulls")));
        }
        let bitmap = self.buffer()?;
        if nulls > 0 || bitmap.range.is_empty() {
            return Ok(nulls > 0);
        }
        self.has_zero(&bitmap, len)
    }

    /// Returns whether one of the first `bits` bits is 0.
    fn has_zero(&self, bitmap: &Buffer, bits: u64) -> Result<bool> {
        let (mut left, mut found) = (bits, false);
        bitmap.blocks(self.source, bits.div_ceil(8), STEP, &mut |block| {
            for &byte in &*block {
                let mask = if left < 8 { (1 << left) - 1 } else { u8::MAX };
                found |= byte & mask != mask;
                left = left.saturating_sub(8);
            }
            Ok(())
        })?;
        Ok(found)
    }

    fn variadic(&mut self) -> Result<usize> {
        let Some(at) = Some(self.next.2).filter(|&at| at < self.counts.len()) else {
            return Err(Error::syntax(
                "a record batch does not state how many buffers its views have",
            ));
        };
        self.next.2 += 1;
        let count = usize::try_from(self.counts.get(at)).ok();
        let left = self.buffers.len() - self.next.1;
        count.filter(|&count| count <= left).ok_or_else(no_buffer)
    }

    /// Returns the next buffer. It must start after the end of the previous ones, unless it is empty.
    pub fn buffer(&mut self) -> Result<Buffer> {
        if self.next.1 >= self.buffers.len() {
            return Err(no_buffer());
        }
        let stored = self.buffers.get(self.next.1);
        self.next.1 += 1;
        let (offset, len) = (stored.offset(), stored.length());
        let range = u64::try_from(offset).ok().zip(u64::try_from(len).ok());
        let range = range.and_then(|(offset, len)| {
            let start = self.body.start.checked_add(offset)?;
            Some(start..start.checked_add(len)?)
        });
        let Some(range) = range.filter(|range| range.end <= self.body.end) else {
            let room = self.body.end - self.body.start;
            let what = format!(
                "a buffer of {len} bytes at offset {offset} is outside of its body of {room} bytes"
            );
            return Err(Error::syntax(what));
        };
        if !range.is_empty() {
            if range.start < self.end {
                let (end, start) = (self.end, range.start);
                let what = format!(
                    "two buffers overlap: one ends at byte {end}, the next starts at byte {start}"
                );
                return Err(Error::syntax(what).at(range.start));
            }
            self.end = range.end;
        }
        Ok(Buffer { range, codec: self.codec })
    }
}

#[cold]
fn no_buffer() -> Error {
    Error::syntax("a record batch has fewer buffers than its columns need")
}

impl Offsets {
    /// Returns the length of the buffer of offsets or views, in bytes.
    pub fn byte_len(self, rows: u64) -> Result<u64> {
        let len = match self {
            // If there are no rows, even the first offset may be missing.
            _ if rows == 0 => Some(0),
            Self::Small => rows.checked_add(1).and_then(|count| count.checked_mul(4)),
            Self::Large => rows.checked_add(1).and_then(|count| count.checked_mul(8)),
            Self::Views => rows.checked_mul(16),
        };
        len.ok_or_else(|| Error::limit(format!("{rows} rows of strings do not fit in memory")))
    }
}
