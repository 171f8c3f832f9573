//! Parts of a segment that are saved again as they are stored.

use std::fmt;
use std::ops::Range;

use serde::ser::{Error as _, Serialize, SerializeSeq, Serializer};
use serde_bytes::Bytes;

use super::segment::Segment;
use crate::error::{Error, Result};
use crate::handoff::{self, Slot, name};
use crate::io::at::ReadAt;
use crate::io::buffers::BufferLengths;
use crate::io::compressed::Precompressed;
use crate::io::input::Input;
use crate::meta::TensorMeta;
use crate::segment::header::Header;
use crate::serde_model::serialize_blocks;
use crate::value::Value;
use crate::wire::reader::Reader;
use crate::wire::tensor::{ItemPayload, Kind, TensorItem};
use crate::wire::walk::{Event, Walk};
use crate::wire::{head, tag};

/// An item of a segment, to be saved again as it is stored: [`Segment::stored`] makes it.
///
/// Saving it copies the encoded item without decoding it. Payloads in buffers are copied block by block, and their
/// checksums are verified after the last block. As for any other value, [`SaveOptions`](crate::archive::SaveOptions)
/// decide which of these payloads get a buffer in the new segment. A message has no buffers. Payloads that are inline
/// stay inline.
///
/// Compressed payloads stay compressed, unless the options say how tensors are compressed
/// ([`with_compression`](crate::archive::SaveOptions::with_compression)). If the chunks of the new segment have the
/// same length ([`Segment::chunk_len`]), the compressed bytes are copied. This needs no codec, and they are never in
/// memory as a whole. Otherwise the content is compressed again with the same codec, at its default level.
///
/// Sequences that are stored as columns stay columns, and a whole value keeps its statistics. Serde formats other than tenarc see the [`Value`] that the item
/// stands for.
pub struct Stored<'a, S: ?Sized> {
    segment: Segment<'a, S>,
    /// The range of the item in the metadata.
    range: Range<usize>,
    /// The references to buffers in the item, in their order.
    references: Vec<Reference>,
    /// The number of levels of nesting that the item takes, even if the new value has none of its payloads in buffers.
    levels: usize,
}

/// A reference to a buffer.
struct Reference {
    /// The range of its item in the metadata.
    range: Range<usize>,
    /// The name under which [`handoff`] passes the value that the reference stands for.
    name: &'static str,
    meta: TensorMeta,
    number: usize,
    len: usize,
}

impl<S: ?Sized> Segment<'_, S> {
    /// Returns how a buffer is compressed, for a writer. `None` if it is not compressed.
    fn precompressed(&self, number: usize) -> Option<Precompressed> {
        let Header { layout, chunk_len, .. } = &self.loaded.header;
        let how = layout.place(number)?.packed()?.clone();
        Some(Precompressed { how, chunk_len: *chunk_len })
    }
}

impl<S: ?Sized> fmt::Debug for Stored<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { segment, range, .. } = self;
        f.debug_struct("Stored").field("segment", segment).field("range", range).finish()
    }
}

impl<'a, S: ReadAt + ?Sized> Segment<'a, S> {
    /// Returns the item at this range of the [metadata](Self::metadata), to be saved again as it is stored.
    /// [`inspect`](Self::inspect) gives the ranges.
    ///
    /// ```
    /// use std::collections::BTreeMap;
    ///
    /// use serde::Serialize;
    /// use tenarc::{Archive, OArchive};
    ///
    /// #[derive(Serialize)]
    /// struct Event {
    ///     id: u64,
    ///     size: f32,
    /// }
    ///
    /// let events: Vec<Event> = (0u16..5000).map(|n| Event { id: n.into(), size: n.into() }).collect();
    /// let mut out = OArchive::new(Vec::new())?;
    /// out.save(&events)?;
    /// let archive = Archive::new(out.finish()?)?;
    ///
    /// // Another value with the same columns. They are not decoded.
    /// let segment = archive.segment(0)?;
    /// let all = segment.stored(0..segment.metadata()?.len())?;
    /// let mut out = OArchive::new(Vec::new())?;
    /// out.save(&BTreeMap::from([("events", all)]))?;
    /// let copy = Archive::new(out.finish()?)?;
    /// let sizes = copy.segment(0)?.info("events.size")?;
    /// assert_eq!((sizes.shape(), sizes.buffer()), (&[5000][..], Some(1)));
    /// # Ok::<(), tenarc::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the range is not that of one item.
    pub fn stored(&self, range: Range<usize>) -> Result<Stored<'a, S>> {
        let (base, item) = self.item(range.clone())?;
        let mut lengths = BufferLengths(self.buffers());
        let mut wire = Reader::new(Input::segment(item, base, &mut lengths), self.options.limits);
        let mut walk = Walk::default();
        let mut references = Vec::new();
        let mut levels = 0;
        // The depth at which columns start, while inside them, and whether the last text there says that a column
        // is one of texts.
        let (mut columns, mut is_text) = (None, false);
        let place = |offset: u64| {
            let at = usize::try_from(offset.saturating_sub(base)).unwrap_or(usize::MAX);
            range.start.saturating_add(at)
        };
        loop {
            let start = wire.offset();
            let Some(event) = walk.next(&mut wire)? else { break };
            levels = levels.max(walk.depth());
            match event {
                Event::Tag(tag::BUFFER) => {
                    let found = walk.take(&mut wire).tensor(tag::BUFFER)?;
                    let (name, more) = match found.kind {
                        Kind::Tensor => {
                            (name::TENSOR, 3 + usize::from(found.meta.dtype.is_complex()))
                        }
                        Kind::Numbers => (name::NUMBERS, 2),
                        // The reference to a text is like that to a byte string. Only columns have texts in buffers.
                        Kind::Bytes if columns.is_some() && is_text => (name::TEXT, 2),
                        Kind::Bytes => (name::BYTES, 2),
                    };
                    levels = levels.max(walk.depth().saturating_add(more));
                    let range = place(start)..place(wire.offset());
                    references.push(Reference::new(range, name, found)?);
                }
                Event::Tag(tag::COLUMNS) if columns.is_none() => columns = Some(walk.depth()),
                Event::End { .. } if columns.is_some_and(|depth| walk.depth() < depth) => {
                    columns = None;
                }
                Event::Leaf(head) if head.major() == head::TEXT => {
                    is_text = wire.text(head)?.as_str() == "text";
                }
                Event::Leaf(head) => wire.skip_rest(head)?,
                _ => {}
            }
        }
        if wire.peek()?.is_some() {
            return Err(Error::data("expected exactly one item, found more").at(wire.offset()));
        }
        Ok(Stored { segment: self.clone(), range, references, levels })
    }
}

impl Reference {
    fn new(range: Range<usize>, name: &'static str, found: TensorItem) -> Result<Self> {
        let ItemPayload::Buffer { number, len } = found.payload else {
            return Err(Error::mismatch("expected a reference to a buffer"));
        };
        let number = usize::try_from(number)
            .map_err(|_| Error::limit("the number of a buffer does not fit in memory"))?;
        Ok(Self { range, name, meta: found.meta, number, len })
    }
}

impl<S: ReadAt + ?Sized> Serialize for Stored<'_, S> {
    fn serialize<T: Serializer>(&self, serializer: T) -> Result<T::Ok, T::Error> {
        let is_whole = self.range == (0..self.segment.header().metadata.len());
        let statistics = self.segment.header().ext.statistics().filter(|_| is_whole);
        let slot = Slot::Stored { levels: self.levels, statistics: statistics.map(Into::into) };
        handoff::offer(slot, || {
            serializer.serialize_newtype_struct(name::STORED, &StoredContent(self))
        })
    }
}

struct StoredContent<'s, 'a, S: ?Sized>(&'s Stored<'a, S>);

impl<S: ReadAt + ?Sized> Serialize for StoredContent<'_, '_, S> {
    fn serialize<T: Serializer>(&self, serializer: T) -> Result<T::Ok, T::Error> {
        let Stored { segment, range, references, .. } = self.0;
        let Slot::Pieces = handoff::take() else {
            let value: Value =
                segment.decode(range.clone()).map_err(|error| error.through(T::Error::custom))?;
            return value.serialize(serializer);
        };
        let metadata = segment.metadata().map_err(|error| error.through(T::Error::custom))?;
        let piece = |range: Range<usize>| Bytes::new(metadata.get(range).unwrap_or_default());
        let mut seq = serializer.serialize_seq(None)?;
        let mut at = range.start;
        for reference in references {
            seq.serialize_element(piece(at..reference.range.start))?;
            seq.serialize_element(&Referenced { segment, reference })?;
            at = reference.range.end;
        }
        seq.serialize_element(piece(at..range.end))?;
        seq.end()
    }
}

/// The value that a reference stands for.
struct Referenced<'s, 'a, S: ?Sized> {
    segment: &'s Segment<'a, S>,
    reference: &'s Reference,
}

impl<S: ReadAt + ?Sized> Serialize for Referenced<'_, '_, S> {
    fn serialize<T: Serializer>(&self, serializer: T) -> Result<T::Ok, T::Error> {
        let Reference { name, meta, len, number, .. } = self.reference;
        let slot = match self.segment.precompressed(*number) {
            Some(compressed) => Slot::Compressed(Box::new((meta.clone(), *len, compressed))),
            None => Slot::Outgoing(meta.clone(), *len),
        };
        handoff::offer(slot, || serializer.serialize_newtype_struct(name, &Blocks(self)))
    }
}

/// The blocks of the buffer.
struct Blocks<'s, 'a, S: ?Sized>(&'s Referenced<'s, 'a, S>);

impl<S: ReadAt + ?Sized> Serialize for Blocks<'_, '_, S> {
    fn serialize<T: Serializer>(&self, serializer: T) -> Result<T::Ok, T::Error> {
        let stored = matches!(handoff::take(), Slot::StoredBlocks);
        let Referenced { segment, reference } = self.0;
        serialize_blocks(serializer, |put| {
            if stored {
                segment.stored_chunks(reference.number, put, None)
            } else {
                segment.read_buffer(reference.number, put)
            }
        })
    }
}
