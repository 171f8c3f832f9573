//! Writes what is left of a segment again.
//!
//! The header and the metadata are complete. If the segment was cut off by the end of the file, the checksums of the
//! buffers are missing, because they come after the last buffer: the buffers that are complete cannot be verified.

use std::collections::HashSet;
use std::sync::Arc;

use super::segment::Segment;
use super::write::OArchive;
use crate::buffer::loaded::Loaded;
use crate::error::Result;
use crate::io::at::ReadAt;
use crate::io::chunks::Hashes;
use crate::io::input::Input;
use crate::options::{DecodeOptions, Limits};
use crate::path::list;
use crate::plan::pass::Output;
use crate::segment::items::ItemEncoder;
use crate::segment::packed::PackedBuffers;
use crate::tensor::TensorInfo;
use crate::wire::head;
use crate::wire::reader::Reader;
use crate::wire::tag;

/// What [`Recovery::to`](crate::archive::Recovery::to) kept of a value that was cut off by the end of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Salvaged {
    /// The name of the value, if it has one.
    pub name: Option<String>,
    /// The tensors that were kept. They are not verified, because their checksums were cut off.
    pub tensors: Vec<TensorInfo>,
    /// The tensors, and the byte strings in buffers, that were not complete. The kept value has *undefined*
    /// in their places. If they are in columns, it has *undefined* in place of the sequence that the columns stand for.
    pub missing: Vec<TensorInfo>,
}

/// A segment of which some buffers are missing.
pub struct Salvage<'a, S: ?Sized> {
    segment: Segment<'a, S>,
    /// The numbers of the buffers that are kept, ascending.
    kept: Vec<u64>,
    limits: Limits,
}

impl<'a, S: ReadAt + ?Sized> Salvage<'a, S> {
    /// What is left of a segment that was cut. `None` if no buffer is complete.
    pub fn of_cut(source: &'a S, loaded: Loaded, options: DecodeOptions) -> Option<Self> {
        let count = loaded.header.count() as u64;
        let options = options.with_checksums(false);
        let kept = (0..count).filter(|&number| loaded.buffer(number, options).is_ok());
        let kept: Vec<u64> = kept.collect();
        if kept.is_empty() {
            return None;
        }
        let salvage = Self::new(source, loaded, kept, options);
        (!salvage.kept.is_empty()).then_some(salvage)
    }

    fn new(source: &'a S, loaded: Loaded, kept: Vec<u64>, options: DecodeOptions) -> Self {
        let segment = Segment { source, arena: None, loaded: Arc::new(loaded), options };
        let mut salvage = Self { segment, kept, limits: options.limits };
        // Columns are kept as a whole or not at all. The complete buffers of columns that are not kept are of no use.
        // If the metadata is malformed, `report` says so.
        if let Ok((_, used)) = salvage.metadata() {
            salvage.kept.retain(|number| used.contains(number));
        }
        salvage
    }

    /// The new number of a kept buffer. `None` if the buffer is missing.
    fn number(&self, number: u64) -> Option<u64> {
        self.kept.binary_search(&number).ok().map(|number| number as u64)
    }

    fn is_missing(&self, info: &TensorInfo) -> bool {
        info.buffer().is_some_and(|number| self.number(number).is_none())
    }

    pub fn report(&self) -> Result<Salvaged> {
        let (metadata, header) = (self.segment.metadata()?, self.segment.header());
        let mut missing = vec![];
        let mut tensors = vec![];
        let mut named = vec![false; header.count()];
        let listed = list::list_without_columns(metadata, header, self.limits)?;
        let others = list::in_buffers(metadata, header, self.limits)?;
        for info in &listed {
            let number = info.buffer().and_then(|number| usize::try_from(number).ok());
            if let Some(named) = number.and_then(|number| named.get_mut(number)) {
                *named = true;
            }
        }
        for info in listed {
            if self.is_missing(&info) { missing.push(info) } else { tensors.push(info) }
        }
        // Byte strings, and tensors in map keys, are not listed as tensors, but are reported if they are missing.
        // One place for each buffer is enough.
        let others = others.into_iter().zip(named).filter(|(_, named)| !named);
        missing.extend(others.filter_map(|(info, _)| info).filter(|info| self.is_missing(info)));
        let name = self.segment.name().map(str::to_owned);
        Ok(Salvaged { name, tensors, missing })
    }

    /// Saves the value with the complete buffers.
    pub fn save<W: std::io::Write>(&self, out: &mut OArchive<W>) -> Result<()> {
        let header = self.segment.header();
        let lengths = header.layout.buffers.iter().map(|&(_, len)| len).enumerate();
        let lengths = lengths.filter(|&(number, _)| self.number(number as u64).is_some());
        let lengths: Vec<u64> = lengths.map(|(_, len)| len).collect();
        let (metadata, _) = self.metadata()?;
        let packed = (0..)
            .zip(&self.kept)
            .filter_map(|(number, &old)| Some((number, header.buffer(old)?.packed()?.clone())));
        let packed: PackedBuffers = packed.collect();
        let content = header.content(self.segment.name(), &lengths, &packed, &metadata);
        out.whole_segment(&content, |out: &mut dyn Output| {
            let (mut hashes, mut memory) = (Hashes::default(), Vec::new());
            for ((number, &len), &old) in (0..).zip(&lengths).zip(&self.kept) {
                out.begin(number, len)?;
                for index in 0..header.chunk_len.count(len) {
                    let mut push = |hash| hashes.push(hash);
                    let with_hash = header.is_checked().then_some(&mut push as &mut dyn FnMut(u64));
                    let put = |block: &[u8]| out.put(block);
                    self.segment.stored_chunk(old, index, &mut memory, put, with_hash)?;
                }
                out.end()?;
                hashes.end_buffer();
            }
            Ok(hashes.bytes())
        })?;
        Ok(())
    }

    /// The metadata with *undefined* in place of each reference to a missing buffer, and of columns with such a
    /// reference. Also returns the numbers of the buffers that it still refers to.
    fn metadata(&self) -> Result<(Vec<u8>, HashSet<u64>)> {
        let mut new = ItemEncoder::new();
        let mut used = HashSet::new();
        self.rewrite(self.segment.metadata()?, &mut new, &mut used)?;
        Ok((new.into_bytes(), used))
    }

    /// Copies items to `new`. Returns whether nothing that they refer to is missing.
    fn rewrite(&self, old: &[u8], new: &mut ItemEncoder, used: &mut HashSet<u64>) -> Result<bool> {
        let part = |from: u64, to: u64| {
            let [from, to] = [from, to].map(|at| usize::try_from(at).unwrap_or(usize::MAX));
            old.get(from..to).unwrap_or_default()
        };
        let mut wire = Reader::new(Input::slice(old), self.limits);
        // References are found by their tag. The nesting of the items does not matter.
        let mut copied = 0;
        let mut is_complete = true;
        while wire.peek()?.is_some() {
            let start = wire.offset();
            let head = wire.head()?;
            match head.major() {
                head::BYTES | head::TEXT if !head.is_indefinite() => drop(wire.string(head)?),
                head::TAG if head.arg == tag::COLUMNS => {
                    let content = wire.offset();
                    wire.skip()?;
                    let (mut columns, mut used_there) = (ItemEncoder::new(), HashSet::new());
                    let all = part(content, wire.offset());
                    new.raw(part(copied, start))?;
                    if self.rewrite(all, &mut columns, &mut used_there)? {
                        new.raw(part(start, content))?.raw(&columns.into_bytes())?;
                        used.extend(used_there);
                    } else {
                        new.raw(&[head::UNDEFINED])?;
                        is_complete = false;
                    }
                    copied = wire.offset();
                }
                head::TAG if head.arg == tag::BUFFER => {
                    let (number_at, number) = reference(&mut wire)?;
                    new.raw(part(copied, start))?;
                    match self.number(number) {
                        Some(new_number) => {
                            used.insert(number);
                            new.raw(part(start, number_at))?.head(head::UNSIGNED, new_number)?;
                        }
                        None => {
                            new.raw(&[head::UNDEFINED])?;
                            is_complete = false;
                        }
                    }
                    copied = wire.offset();
                }
                _ => {}
            }
        }
        new.raw(part(copied, old.len() as u64))?;
        Ok(is_complete)
    }
}

/// Reads the array of a reference, whose tag was read. Returns the offset of the buffer's number, and the number.
fn reference(wire: &mut Reader<'_, '_>) -> Result<(u64, u64)> {
    let fields = wire.head()?.arg;
    for _ in 1..fields {
        wire.skip()?;
    }
    Ok((wire.offset(), wire.head()?.arg))
}
