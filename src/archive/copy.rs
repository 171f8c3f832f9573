//! Copies segments, and reads the bytes of buffers, without decoding or holding them in memory.

use std::collections::BTreeSet;
use std::io::Write;

use super::segment::Segment;
use super::write::{OArchive, check_name};
use crate::buffer::ranges::Ranges;
use crate::buffer::source;
use crate::buffer::unpack::Unpack;
use crate::error::{Error, Result};
use crate::io::at::ReadAt;
use crate::io::checksum::Hasher;
use crate::plan::pass::Output;
use crate::segment::buffers::stored_range;
use crate::segment::format::BufferPlace;

impl<S: ReadAt + ?Sized> Segment<'_, S> {
    /// Reads a buffer of the segment, counted from zero, and passes its bytes to `each` in blocks. A block
    /// has any size; the buffer as a whole is never in memory.
    ///
    /// [`TensorInfo::buffer`](crate::tensor::TensorInfo::buffer) is the number of a tensor's buffer. The bytes are
    /// little-endian.
    ///
    /// ```
    /// use tenarc::{Archive, OArchive, Tensor};
    ///
    /// let mut out = OArchive::new(Vec::new())?;
    /// out.save(&Tensor(vec![1u8; 5000]))?;
    /// let archive = Archive::new(out.finish()?)?;
    /// let segment = archive.segment(0)?;
    /// let mut sum = 0;
    /// segment.read_buffer(0, |block| {
    ///     sum += block.len();
    ///     Ok(())
    /// })?;
    /// assert_eq!(sum, 5000);
    /// # Ok::<(), tenarc::Error>(())
    /// ```
    ///
    /// # Errors
    /// - There is no buffer with this number, or it cannot be read.
    /// - `each` returned an error.
    /// - A checksum does not match. Blocks of the damaged chunk may have been passed to `each` before.
    pub fn read_buffer(
        &self,
        number: usize,
        mut each: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        self.announce(|| Ok(BTreeSet::from([number as u64])));
        let (start, len) = match self.loaded.buffer(number as u64, self.options)? {
            BufferPlace::Plain { start, len } => (start, len),
            BufferPlace::Packed(place) => {
                let (source, options) = (self.source, self.options);
                let mut unpack = Unpack::new(source, &self.loaded, number as u64, place, options)?;
                return unpack.each(&mut each);
            }
        };
        let mut checker = self.loaded.checker(self.source, number as u64, self.options)?;
        source::in_pieces(self.source, start..start + len, &mut Vec::new(), |block| {
            if let Some(checker) = &mut checker {
                checker.update(block)?;
            }
            each(block)
        })
    }

    /// Reads a buffer as it is stored. Calls `each` with its bytes, in blocks, and `with_hash`, if it
    /// is given, with the hash of each chunk.
    pub(super) fn stored_chunks(
        &self,
        number: usize,
        mut each: impl FnMut(&[u8]) -> Result<()>,
        mut with_hash: Option<&mut dyn FnMut(u64)>,
    ) -> Result<()> {
        let place = self.loaded.stored_buffer(number as u64)?;
        let chunks = 0..place.chunks(self.header().chunk_len);
        let mut memory = Vec::new();
        chunks.into_iter().try_for_each(|index| {
            // The borrow checker wants the optional function to be borrowed anew for each chunk.
            let with_hash = with_hash.as_mut().map(|with_hash| &mut **with_hash as _);
            self.stored_chunk(number as u64, index, &mut memory, &mut each, with_hash)
        })
    }

    /// Like [`stored_chunks`](Self::stored_chunks), for one chunk. Copies are made in `memory`, which may have been used
    /// before.
    pub(super) fn stored_chunk(
        &self,
        number: u64,
        index: u64,
        memory: &mut Vec<u8>,
        mut each: impl FnMut(&[u8]) -> Result<()>,
        with_hash: Option<&mut dyn FnMut(u64)>,
    ) -> Result<()> {
        let place = self.loaded.stored_buffer(number)?;
        let expected = self.loaded.stored(self.source, number, self.options)?;
        let hashing = expected.is_some() || with_hash.is_some();
        let mut hasher = hashing.then(Hasher::new);
        let range = stored_range(place, self.header().chunk_len, index);
        source::in_pieces(self.source, range, memory, |block| {
            if let Some(hasher) = &mut hasher {
                hasher.update(block);
            }
            each(block)
        })?;
        let Some(hash) = hasher.map(|hasher| hasher.finish()) else { return Ok(()) };
        if let Some(expected) = expected {
            expected.check(index, hash)?;
        }
        if let Some(with_hash) = with_hash {
            with_hash(hash);
        }
        Ok(())
    }

    /// Fills `out` with the bytes of a buffer, counted from zero, starting `start` bytes into the buffer.
    ///
    /// The checksums of all chunks with these bytes are verified. For this, the rest of the first and of the last chunk
    /// is read too. [`DecodeOptions::with_checksums`](crate::de::DecodeOptions::with_checksums)`(false)` reads only
    /// these bytes.
    ///
    /// # Errors
    /// - There is no buffer with this number, or it cannot be read or is damaged.
    /// - The buffer ends before `out` is full.
    pub fn read_buffer_part(&self, number: usize, start: u64, out: &mut [u8]) -> Result<()> {
        let place = self.loaded.buffer(number as u64, self.options)?;
        let (at, len) = (place.start(), place.len());
        let wanted = out.len();
        if start.checked_add(wanted as u64).is_none_or(|end| end > len) {
            return Err(Error::not_found(format!(
                "expected {wanted} bytes from byte {start} of buffer {number}, which has {len} bytes"
            ))
            .at(at));
        }
        Ranges::new(self.source, &self.loaded, number as u64, self.options)?.read(start, out)
    }
}

impl<W: Write> OArchive<W> {
    /// Saves a segment of another archive without decoding it or holding its buffers in memory. Name, metadata,
    /// alignment and checksums are kept. The checksums are verified on the way.
    ///
    /// # Errors
    /// If the segment cannot be read or is damaged, or the writer fails.
    pub fn save_segment<S: ReadAt + ?Sized>(
        &mut self,
        segment: &Segment<'_, S>,
    ) -> Result<&mut Self> {
        self.copy(segment.name(), segment)
    }

    /// Like [`save_segment`](Self::save_segment), under the given name.
    ///
    /// # Errors
    /// The same errors as [`save_segment`](Self::save_segment), and if the name is longer than 1,024 bytes.
    pub fn save_segment_as<S: ReadAt + ?Sized>(
        &mut self,
        name: &str,
        segment: &Segment<'_, S>,
    ) -> Result<&mut Self> {
        check_name(name)?;
        self.copy(Some(name), segment)
    }

    fn copy<S: ReadAt + ?Sized>(
        &mut self,
        name: Option<&str>,
        segment: &Segment<'_, S>,
    ) -> Result<&mut Self> {
        self.check()?;
        let header = segment.header();
        let lengths = header.lengths();
        let metadata = segment.metadata()?;
        segment.announce(|| Ok((0..lengths.len() as u64).collect()));
        let hashes = segment.loaded.hash_bytes(segment.source)?;
        let content = header.content(name, &lengths, &header.layout.packed, metadata);
        self.whole_segment(&content, |out: &mut dyn Output| {
            for (number, &len) in lengths.iter().enumerate() {
                out.begin(number as u64, len)?;
                segment.stored_chunks(number, |block| out.put(block), None)?;
                out.end()?;
            }
            Ok::<_, Error>(hashes)
        })
    }
}
