//! Prepares batches for the crate `arrow-ipc`: reads them into memory, decompresses them, and checks what the crate
//! does not check.

use std::ops::Range;

use arrow_ipc::{
    Buffer as Place, DictionaryBatch, DictionaryBatchArgs, FieldNode, MetadataVersion, RecordBatch,
    RecordBatchArgs,
};
use arrow_schema::{DataType, FieldRef, UnionMode};
use flatbuffers::{FlatBufferBuilder, Follow, Verifiable};
use tenarc::de::Limits;
use tenarc::io::ReadAt;
use tenarc::{Error, Result};

use super::batch::Walk;
use super::body::Codec;
use crate::support::{STEP, alloc_budget, over_memory, reserve};

/// The alignment of buffers in memory.
const ALIGNMENT: usize = 64;

/// The most rows that a column may have if its rows take no bytes. `SPEC.md` has the same limit in section 7.
const MAX_ROWS: u64 = 1 << 24;

/// A batch in memory, whose buffers are not compressed.
pub struct Plain {
    /// The flatbuffer of the batch or dictionary. It says where the buffers are in the body.
    pub metadata: Vec<u8>,
    pub body: arrow_buffer::Buffer,
}

impl Plain {
    /// Returns the batch or the dictionary from the flatbuffer.
    pub fn root<'a, T: Follow<'a, Inner = T> + Verifiable + 'a>(&'a self) -> Result<T> {
        flatbuffers::root::<T>(&self.metadata).map_err(|error| Error::syntax(error.to_string()))
    }
}

/// How a batch is read.
pub struct How {
    /// The codec that the metadata of the message name, as Arrow 0.17 wrote it.
    pub early: Option<Codec>,
    pub version: MetadataVersion,
    pub limits: Limits,
}

/// Reads the buffers of a batch whose columns have these types. If `dictionary` is given, the batch holds its values.
pub fn read<'a, S: ReadAt + ?Sized>(
    batch: &RecordBatch<'_>,
    types: impl Iterator<Item = &'a DataType>,
    dictionary: Option<&DictionaryBatch<'_>>,
    How { early, version, limits }: How,
    body: &Range<u64>,
    source: &S,
) -> Result<Plain> {
    let mut left = alloc_budget(limits, false);
    let mut walk = Walk::new(batch, early, body, source)?;
    let mut widths =
        Widths { of: Vec::new(), counts: walk.counts.iter(), version, most: walk.buffers.len() };
    for of in types {
        widths.column(of)?;
    }
    let (mut bytes, mut places) = (Vec::new(), Vec::new());
    for width in widths.of {
        let buffer = walk.buffer()?;
        let len = buffer.byte_len(source)?;
        if len % width != 0 {
            let what =
                format!("expected a buffer of numbers of {width} bytes each, found {len} bytes");
            return Err(Error::data(what).at(buffer.range.start));
        }
        let needed = len.checked_add(ALIGNMENT as u64);
        left = needed
            .and_then(|needed| left.checked_sub(needed))
            .ok_or_else(|| too_large(left).at(buffer.range.start))?;
        let start = bytes.len().next_multiple_of(ALIGNMENT);
        reserve(&mut bytes, ALIGNMENT)?;
        bytes.resize(start, 0);
        buffer.blocks(source, len, STEP, &mut |block| {
            reserve(&mut bytes, block.len())?;
            bytes.extend_from_slice(block);
            Ok(())
        })?;
        let at = |at: usize| i64::try_from(at).map_err(|_| too_large(left));
        places.push(Place::new(at(start)?, at(bytes.len() - start)?));
    }
    let most = MAX_ROWS.max(bytes.len() as u64 * 8);
    check_rows(batch.length(), 0, most)?;
    let nodes: Vec<FieldNode> = walk.nodes.iter().copied().collect();
    nodes.iter().try_for_each(|node| check_rows(node.length(), node.null_count(), most))?;

    let mut builder = FlatBufferBuilder::new();
    let counts: Option<Vec<i64>> =
        batch.variadicBufferCounts().map(|counts| counts.iter().collect());
    let args = RecordBatchArgs {
        length: batch.length(),
        nodes: Some(builder.create_vector(&nodes)),
        buffers: Some(builder.create_vector(&places)),
        compression: None,
        variadicBufferCounts: counts.map(|counts| builder.create_vector(&counts)),
    };
    let root = RecordBatch::create(&mut builder, &args);
    match dictionary {
        None => builder.finish(root, None),
        Some(found) => {
            let (id, is_delta) = (found.id(), found.isDelta());
            let args = DictionaryBatchArgs { id, data: Some(root), isDelta: is_delta };
            let root = DictionaryBatch::create(&mut builder, &args);
            builder.finish(root, None);
        }
    }
    let metadata = builder.finished_data().to_vec();
    Ok(Plain { metadata, body: arrow_buffer::Buffer::from_vec(bytes) })
}

#[cold]
fn too_large(left: u64) -> Error {
    over_memory(format!("a record batch takes more than the {left} bytes that are allowed"))
}

/// The size of the numbers in each buffer of some columns, in bytes. If a buffer of offsets, views or keys ends within
/// a number, the crate panics. All other buffers have the size 1.
struct Widths<I> {
    of: Vec<u64>,
    /// For each of the next columns of views, the number of its further buffers.
    counts: I,
    version: MetadataVersion,
    /// The number of buffers of the batch.
    most: usize,
}

impl<I: Iterator<Item = i64>> Widths<I> {
    fn column(&mut self, of: &DataType) -> Result<()> {
        let nulls_of_v4: &[u64] = if self.version == MetadataVersion::V4 { &[1] } else { &[] };
        match of {
            DataType::Null => Ok(()),
            DataType::Utf8 | DataType::Binary => self.put(&[1, 4, 1]),
            DataType::LargeUtf8 | DataType::LargeBinary => self.put(&[1, 8, 1]),
            DataType::Utf8View | DataType::BinaryView => {
                self.put(&[1, 16])?;
                let count = self.counts.next().unwrap_or(0);
                (0..count).try_for_each(|_| self.put(&[1]))
            }
            DataType::List(item) | DataType::Map(item, _) => self.list(&[1, 4], item),
            DataType::LargeList(item) => self.list(&[1, 8], item),
            DataType::ListView(item) => self.list(&[1, 4, 4], item),
            DataType::LargeListView(item) => self.list(&[1, 8, 8], item),
            DataType::FixedSizeList(item, _) => self.list(&[1], item),
            DataType::Struct(fields) => {
                self.put(&[1])?;
                fields.iter().try_for_each(|field| self.column(field.data_type()))
            }
            DataType::RunEndEncoded(ends, values) => {
                self.put(nulls_of_v4)?;
                self.column(ends.data_type())?;
                self.column(values.data_type())
            }
            DataType::Union(fields, mode) => {
                self.put(nulls_of_v4)?;
                self.put(if *mode == UnionMode::Dense { &[1, 4] } else { &[1] })?;
                fields.iter().try_for_each(|(_, field)| self.column(field.data_type()))
            }
            DataType::Dictionary(keys, _) => {
                self.put(&[1, keys.primitive_width().map_or(1, |width| width as u64)])
            }
            _ => self.put(&[1, 1]),
        }
    }

    fn list(&mut self, widths: &[u64], item: &FieldRef) -> Result<()> {
        self.put(widths)?;
        self.column(item.data_type())
    }

    fn put(&mut self, widths: &[u64]) -> Result<()> {
        self.of.extend_from_slice(widths);
        if self.of.len() > self.most {
            return Err(Error::syntax("a record batch has fewer buffers than its columns need"));
        }
        Ok(())
    }
}

/// Checks that a small file does not describe more rows than a reader can go through.
fn check_rows(rows: i64, nulls: i64, most: u64) -> Result<()> {
    if !(0..=rows).contains(&nulls) {
        return Err(Error::syntax(format!("a column of {rows} rows states {nulls} nulls")));
    }
    match u64::try_from(rows) {
        Ok(rows) if rows <= most => Ok(()),
        _ => Err(Error::limit(format!("a column has {rows} rows, expected at most {most}"))),
    }
}
