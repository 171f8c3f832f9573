//! Reads what is left of a segment that was cut off by the end of the file.
//!
//! The header and the metadata are complete. The checksums of the buffers come after the last buffer, so they
//! are missing: the buffers that are complete cannot be verified.

use std::sync::Arc;

use super::loaded::Loaded;
use super::segment::Segment;
use super::write::OArchive;
use crate::error::Result;
use crate::io::at::ReadAt;
use crate::io::checksum::Hasher;
use crate::io::source::SliceRead;
use crate::options::{DecodeOptions, Limits};
use crate::segment::format::Items;
use crate::segment::header::Content;
use crate::segment::path;
use crate::segment::walk::Output;
use crate::tensor::TensorInfo;
use crate::wire::head;
use crate::wire::reader::Reader;
use crate::wire::tag;

/// What [`recover_to`](crate::archive::recover_to) kept of a value that was cut off by the end of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Salvaged {
    /// The name of the value, if it has one.
    pub name: Option<String>,
    /// The tensors that were kept. They are not verified, because their checksums were cut off.
    pub tensors: Vec<TensorInfo>,
    /// The tensors, and the byte strings in buffers, that were not complete. The kept value has *undefined*
    /// in their places.
    pub missing: Vec<TensorInfo>,
}

/// A cut segment with at least one complete buffer.
pub struct Salvage<'a, S: ?Sized> {
    segment: Segment<'a, S>,
    /// The numbers of the complete buffers, ascending.
    kept: Vec<u64>,
    limits: Limits,
}

impl<'a, S: ReadAt + ?Sized> Salvage<'a, S> {
    /// `None` if no buffer is complete.
    pub fn new(source: &'a S, loaded: Loaded) -> Option<Self> {
        let count = loaded.header.count() as u64;
        let options = DecodeOptions::default().with_checksums(false);
        let kept = (0..count).filter(|&number| loaded.buffer(number, options).is_ok());
        let kept: Vec<u64> = kept.collect();
        if kept.is_empty() {
            return None;
        }
        let segment = Segment { source, arena: None, loaded: Arc::new(loaded), options };
        Some(Self { segment, kept, limits: options.limits })
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
        let listed = path::list(metadata, header, self.limits)?;
        let others = path::in_buffers(metadata, header, self.limits)?;
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
        let metadata = self.metadata()?;
        let content = Content {
            name: self.segment.name(),
            alignment: header.alignment,
            checked: header.checked,
            lengths: &lengths,
            metadata: &metadata,
        };
        out.whole_segment(&content, |out: &mut dyn Output| {
            let mut hashes = Vec::new();
            for ((number, &len), &old) in (0..).zip(&lengths).zip(&self.kept) {
                out.begin(number, len)?;
                let mut sum = Hasher::new();
                let old = usize::try_from(old).unwrap_or(usize::MAX);
                self.segment.read_buffer(old, |block| {
                    sum.update(block);
                    out.put(block)
                })?;
                out.end()?;
                if header.checked {
                    hashes.push(sum.finish());
                }
            }
            Ok(hashes)
        })?;
        Ok(())
    }

    /// The metadata with *undefined* in place of each reference to a missing buffer.
    fn metadata(&self) -> Result<Vec<u8>> {
        let old = self.segment.metadata()?;
        let part = |from: u64, to: u64| {
            let [from, to] = [from, to].map(|at| usize::try_from(at).unwrap_or(usize::MAX));
            old.get(from..to).unwrap_or_default()
        };
        let mut wire = Reader::new(SliceRead::new(old), self.limits);
        let mut new = Items::new();
        // References are found by their tag. The nesting of the items does not matter.
        let mut copied = 0;
        while wire.peek()?.is_some() {
            let start = wire.offset();
            let head = wire.head()?;
            match head.major() {
                head::BYTES | head::TEXT if !head.is_indefinite() => drop(wire.string(head)?),
                head::TAG if head.arg == tag::BUFFER => {
                    let fields = wire.head()?.arg;
                    for _ in 1..fields {
                        wire.skip()?;
                    }
                    let number_at = wire.offset();
                    let number = wire.head()?.arg;
                    new.raw(part(copied, start))?;
                    match self.number(number) {
                        Some(number) => {
                            new.raw(part(start, number_at))?.head(head::UNSIGNED, number)?;
                        }
                        None => drop(new.raw(&[head::UNDEFINED])?),
                    }
                    copied = wire.offset();
                }
                _ => {}
            }
        }
        new.raw(part(copied, old.len() as u64))?;
        Ok(new.into_bytes())
    }
}
