//! Reading the payloads of tensors: either as borrowed bytes, or into a vector of typed elements.

use std::ops::Range;

use bytemuck::Pod;

use super::reader::Reader;
use super::tensor::{ItemPayload, TensorItem};
use crate::dtype::DType;
use crate::elements::{Element, Elements, with_type};
use crate::error::{Error, Result};
use crate::io::buffers::{Buffers, Contents, ReadBuffer};
use crate::io::source::{STEP, SourceBytes, of_whole, reserve_exact};
use crate::mem::shared_bytes::SharedBytes;
use crate::mem::{self, LARGE};
use crate::meta::TensorMeta;

impl<'de> Reader<'de, '_> {
    /// The next `len` bytes, which are a payload in one block. `word` is the size in bytes to which views
    /// of it are aligned.
    #[inline]
    pub fn payload_block(&mut self, word: usize, len: usize) -> Result<SourceBytes<'de, '_>> {
        if self.src.remaining().is_some() {
            return match self.src.take(len, "a tensor")? {
                SourceBytes::Borrowed(bytes) => {
                    Ok(SourceBytes::Borrowed(self.src.aligned(bytes, word)))
                }
                // Does not happen: a source in memory returns borrowed bytes.
                SourceBytes::Copied(bytes) => Ok(SourceBytes::Owned(bytes.to_vec())),
                SourceBytes::Owned(bytes) => Ok(SourceBytes::Owned(bytes)),
            };
        }
        self.charge_steps(len, STEP)?;
        self.src.take(len, "a tensor")
    }

    /// The payload as little-endian bytes, borrowed from the input if possible. The caller must call
    /// [`Reader::close`] next.
    #[inline]
    pub fn payload_bytes(
        &mut self,
        item: TensorItem,
    ) -> Result<(TensorMeta, SourceBytes<'de, '_>)> {
        let bytes = match item.payload {
            ItemPayload::Block { len, big_endian: false } => {
                self.payload_block(item.meta.dtype.word(), len)?
            }
            ItemPayload::Block { len, big_endian: true } => {
                let mut bytes = self.fill::<u8>(len)?;
                mem::swap_words(&mut bytes, item.meta.dtype.word());
                SourceBytes::Owned(bytes)
            }
            ItemPayload::Chunks(bytes) => SourceBytes::Owned(bytes),
            ItemPayload::Numbers(elements) => {
                self.charge(elements.byte_len() as u64)?;
                SourceBytes::Owned(elements.to_le_bytes())
            }
            ItemPayload::Buffer { number, len } => match self.lend_buffer(number)? {
                Some(bytes) => {
                    // The caller may copy the borrowed bytes.
                    self.charge_copy(number, len)?;
                    SourceBytes::Borrowed(bytes)
                }
                None => SourceBytes::Owned(self.fill_buffer::<u8>(number, len)?),
            },
        };
        Ok((item.meta, bytes))
    }

    /// Charges for `len` bytes of a buffer, which may be copied.
    fn charge_copy(&mut self, number: u64, len: usize) -> Result<()> {
        let at = self.offset();
        let Some(buffers) = self.src.buffers() else { return Ok(()) };
        let cost = buffers.cost(number, len as u64, at);
        self.charge(cost)
    }

    /// Part of the payload as little-endian bytes, borrowed from the input if possible. The caller must call
    /// [`Reader::close`] next.
    pub fn payload_part(
        &mut self,
        item: TensorItem,
        part: Range<usize>,
    ) -> Result<(TensorMeta, SourceBytes<'de, 'static>)> {
        if let ItemPayload::Buffer { number, len } = item.payload {
            let Some(bytes) = self.lend_buffer(number)? else {
                return Ok((
                    item.meta,
                    SourceBytes::Owned(self.fill_part::<u8>(number, len, part)?),
                ));
            };
            // As in `payload_bytes`, but only the part may be copied.
            self.charge_copy(number, part.len())?;
            return Ok((item.meta, SourceBytes::Borrowed(bytes.get(part).unwrap_or_default())));
        }
        let (meta, bytes) = self.payload_bytes(item)?;
        Ok((
            meta,
            match bytes {
                SourceBytes::Borrowed(bytes) => {
                    SourceBytes::Borrowed(bytes.get(part).unwrap_or_default())
                }
                other => {
                    SourceBytes::Owned(other.as_slice().get(part).unwrap_or_default().to_vec())
                }
            },
        ))
    }

    /// The payload as typed elements, read directly into their vector.
    pub fn payload_elements(&mut self, item: TensorItem) -> Result<(TensorMeta, Elements)> {
        let TensorItem { meta, payload, unclosed, .. } = item;
        let at = self.offset();
        let elements = match payload {
            ItemPayload::Block { len, big_endian } => {
                self.elements(&meta.dtype, Origin::Here, len, big_endian)?
            }
            ItemPayload::Buffer { number, len } => {
                self.elements(&meta.dtype, Origin::Buffer(number), len, false)?
            }
            ItemPayload::Chunks(bytes) => {
                self.charge(bytes.len() as u64)?;
                Elements::from_le_bytes(&meta.dtype, bytes).map_err(|error| error.at(at))?
            }
            ItemPayload::Numbers(elements) => elements,
        };
        self.close(unclosed)?;
        Ok((meta, elements))
    }

    /// Skips the payload.
    pub fn skip_payload(&mut self, item: &TensorItem) -> Result<()> {
        if let ItemPayload::Block { len, .. } = item.payload {
            self.src.take(len, "a tensor")?;
        }
        self.close(item.unclosed)
    }

    /// Ends a tensor after its payload: if `unclosed`, a break must follow.
    pub fn close(&mut self, unclosed: bool) -> Result<()> {
        if unclosed { self.end("a tensor") } else { Ok(()) }
    }

    fn elements(
        &mut self,
        dtype: &DType,
        origin: Origin,
        len: usize,
        big_endian: bool,
    ) -> Result<Elements> {
        let at = self.offset();
        typed(dtype, big_endian, &mut FromWire { wire: self, origin, len })
            .map_err(|error| error.at(at))
    }

    fn fill_from<A: Pod>(&mut self, origin: Origin, len: usize) -> Result<Vec<A>> {
        match origin {
            Origin::Here => self.fill(len),
            Origin::Buffer(number) => self.fill_buffer(number, len),
        }
    }

    /// The content of a buffer, if it is in memory.
    fn lend_buffer(&mut self, number: u64) -> Result<Option<&'de [u8]>> {
        match self.src.buffers().map(Buffers::contents) {
            Some(Contents::Lent(contents)) => contents.lend(number).map(Some),
            _ => Ok(None),
        }
    }

    /// A payload that is a buffer, as bytes with shared ownership. `None` if the payload is not in a
    /// buffer or the buffer cannot be shared.
    pub fn shared(&mut self, item: &TensorItem) -> Option<SharedBytes> {
        let ItemPayload::Buffer { number, .. } = item.payload else { return None };
        match self.src.buffers()?.contents() {
            Contents::Lent(contents) => contents.share(number),
            _ => None,
        }
    }

    /// Whether the payload is in memory as little-endian bytes, so that it can be borrowed.
    pub fn can_borrow(&mut self, item: &TensorItem) -> bool {
        match item.payload {
            ItemPayload::Block { big_endian: false, .. } => self.src.remaining().is_some(),
            ItemPayload::Buffer { .. } => {
                let contents = self.src.buffers().map(Buffers::contents);
                matches!(contents, Some(Contents::Lent(_)))
            }
            _ => false,
        }
    }

    /// Reads the content of a buffer directly into a vector of typed values.
    fn fill_buffer<A: Pod>(&mut self, number: u64, len: usize) -> Result<Vec<A>> {
        self.fill_part(number, len, 0..len)
    }

    /// Reads part of a buffer of `len` bytes directly into a vector of typed values.
    fn fill_part<A: Pod>(&mut self, number: u64, len: usize, part: Range<usize>) -> Result<Vec<A>> {
        let at = self.offset();
        let size = size_of::<A>();
        let taken = part.len();
        self.charge_copy(number, taken)?;
        if !taken.is_multiple_of(size) {
            return Err(partial(taken).at(at));
        }
        if let Some(bytes) = self.lend_buffer(number)? {
            let bytes = bytes.get(part).unwrap_or_default();
            return mem::plain::copied(bytes).ok_or_else(|| partial(taken).at(at));
        }
        let buffers = self.read_buffers()?;
        buffers.start(number, at)?;
        // As in `charge_steps`, but the cost of the buffer was charged before. Without a limit that was set, the input allows
        // as much.
        if taken > buffers.proven().max(STEP) && self.limits().max_alloc().is_some() {
            self.charge(taken as u64)?;
            self.refund(taken as u64);
        }
        let buffers = self.read_buffers()?;
        buffers.skip(part.start as u64)?;
        let values = filled(taken, buffers.proven(), |step| buffers.read(step))?;
        buffers.skip(len.saturating_sub(part.end) as u64)?;
        buffers.finish()?;
        Ok(values)
    }

    /// The buffers, if they are read on demand.
    fn read_buffers<'s>(&'s mut self) -> Result<&'s mut (dyn ReadBuffer + 's)>
    where
        'de: 's,
    {
        let at = self.offset();
        match self.src.buffers().map(Buffers::contents) {
            Some(Contents::Read(buffers)) => Ok(buffers),
            _ => Err(Error::data("the contents of buffers cannot be read here").at(at)),
        }
    }

    /// Reads `len` bytes of input into a vector of typed values, without changing the byte order.
    ///
    /// If the length of the input is unknown, memory is allocated step by step as bytes arrive,
    /// because `len` may be false.
    fn fill<A: Pod>(&mut self, len: usize) -> Result<Vec<A>> {
        if self.src.remaining().is_some() {
            self.charge(len as u64)?;
            let at = self.offset();
            let bytes = self.src.take(len, "a tensor")?;
            return mem::plain::copied(bytes.as_slice()).ok_or_else(|| partial(len).at(at));
        }
        let size = size_of::<A>();
        if !len.is_multiple_of(size) {
            return Err(partial(len).at(self.offset()));
        }
        let at = self.offset();
        // The input has provided this many bytes so far, so it may cause an allocation of the same
        // size.
        let proven = usize::try_from(at).unwrap_or(usize::MAX);
        self.charge_steps(len, proven.max(STEP))?;
        let mut read = |step: &mut [u8]| self.src.read_exact(step, "a tensor");
        filled(len, proven, |bytes| bytes.chunks_mut(STEP).try_for_each(&mut read))
            .map_err(|error| of_whole(error, len, self.offset() - at, "a tensor").at(at))
    }
}

/// Reads a payload into a vector, whose type the caller chooses.
trait PayloadFill {
    fn fill<A: Pod>(&mut self) -> Result<Vec<A>>;
}

struct FromWire<'w, 'de, 'b> {
    wire: &'w mut Reader<'de, 'b>,
    origin: Origin,
    len: usize,
}

impl PayloadFill for FromWire<'_, '_, '_> {
    fn fill<A: Pod>(&mut self) -> Result<Vec<A>> {
        self.wire.fill_from(self.origin, self.len)
    }
}

/// Reads a payload as elements of this dtype, and converts them to the byte order of this machine.
fn typed(dtype: &DType, big_endian: bool, payload: &mut impl PayloadFill) -> Result<Elements> {
    fn of<A: Element>(big_endian: bool, payload: &mut impl PayloadFill) -> Result<Elements> {
        let mut bits = payload.fill::<A::Bits>()?;
        if big_endian != cfg!(target_endian = "big") {
            mem::swap_words(bytemuck::cast_slice_mut(&mut bits), A::DTYPE.word());
        }
        Elements::from_bits::<A>(bits)
    }
    with_type!(dtype, A => of::<A>(big_endian, payload), _ => {
        let mut bytes = payload.fill::<u8>()?;
        if big_endian {
            mem::swap_words(&mut bytes, dtype.word());
        }
        Ok(Elements::Raw(dtype.clone(), bytes))
    })
}

/// Reads `len` bytes of little-endian elements by calling `read` for one piece after the other. At most
/// `proven` bytes of memory are allocated at once; beyond that, memory grows with the bytes received.
pub fn read_elements(
    dtype: &DType,
    len: usize,
    proven: usize,
    read: impl FnMut(&mut [u8]) -> Result<()>,
) -> Result<Elements> {
    struct FromRead<F>(usize, usize, F);

    impl<F: FnMut(&mut [u8]) -> Result<()>> PayloadFill for FromRead<F> {
        fn fill<A: Pod>(&mut self) -> Result<Vec<A>> {
            if !self.0.is_multiple_of(size_of::<A>()) {
                return Err(partial(self.0));
            }
            filled(self.0, self.1, &mut self.2)
        }
    }

    typed(dtype, false, &mut FromRead(len, proven, read))
}

/// Where a payload is read from.
#[derive(Clone, Copy)]
enum Origin {
    /// The next bytes of the input.
    Here,
    /// The buffer of this number.
    Buffer(u64),
}

/// A vector of zeros. The allocator can take fresh memory from the system, which is zero already.
fn zeroed<A: Pod>(count: usize) -> Result<Vec<A>> {
    match bytemuck::allocation::try_zeroed_slice_box(count) {
        Ok(mut values) => {
            mem::prefer_large_pages(&mut values);
            Ok(Vec::from(values))
        }
        Err(()) => {
            let bytes = count.saturating_mul(size_of::<A>());
            Err(Error::limit(format!("out of memory: cannot allocate {bytes} bytes to read into")))
        }
    }
}

/// Reads `len` bytes, which must be a multiple of the size of `A`. At most `proven` bytes of memory are
/// allocated at once (but at least one step); beyond that, memory grows with the bytes received.
fn filled<A: Pod>(
    len: usize,
    proven: usize,
    mut read: impl FnMut(&mut [u8]) -> Result<()>,
) -> Result<Vec<A>> {
    let size = size_of::<A>();
    let count = len / size;
    if len >= LARGE && len <= proven {
        let mut values = zeroed(count)?;
        // All at once, because several threads may read it.
        read(bytemuck::cast_slice_mut(&mut values))?;
        return Ok(values);
    }
    let proven = proven.clamp(STEP, len.max(STEP));
    let mut values: Vec<A> = Vec::new();
    while values.len() < count {
        let done = values.len();
        // Memory is zeroed and then read into in steps that fit in the cache. The allocation grows
        // by doubling.
        let step = (count - done).min(STEP / size);
        if values.capacity() - done < step {
            let grown = (count - done).min(done.max(proven / size).max(step));
            reserve_exact(&mut values, grown)?;
        }
        values.resize(done + step, A::zeroed());
        read(bytemuck::cast_slice_mut(values.get_mut(done..).unwrap_or_default()))?;
    }
    Ok(values)
}

#[cold]
fn partial(len: usize) -> Error {
    Error::data(format!("{len} bytes are not a whole number of elements"))
}
