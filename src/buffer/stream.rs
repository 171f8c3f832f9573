//! Reads the body of a segment from a stream.

use std::borrow::Cow;
use std::io;
use std::ops::Range;

use super::unpack::{PackedChunks, Unpacking};
use crate::budget::Budget;
use crate::error::{Category, Error, Result};
use crate::io::buffers::{Buffers, Contents, ReadBuffer};
use crate::io::checksum;
use crate::io::chunks::{ChunkHasher, Hashes};
use crate::io::source::{IoRead, STEP};
use crate::options::{DecodeOptions, Limits};
use crate::path::list;
use crate::segment::buffers::{StoredHashes, check_unpacked, chunk_memory, no_such};
use crate::segment::format::{BufferPlace, PackedPlace};
use crate::segment::header::Header;
use crate::wire::tensor::ItemPayload;

/// The number of bytes received so far. The sender pays for this many bytes, so that we may allocate
/// as many.
pub fn received<R: io::Read>(read: &IoRead<R>) -> usize {
    usize::try_from(read.offset()).unwrap_or(usize::MAX)
}

pub fn take<R: io::Read>(read: &mut IoRead<R>, len: usize, what: &str) -> Result<Vec<u8>> {
    if let Some(bytes) = read.gather(len, what).map_err(cut)? {
        return Ok(bytes);
    }
    let bytes = read.window().get(..len).unwrap_or_default().to_vec();
    read.leave(len);
    Ok(bytes)
}

/// Turns the end of the input into an error that the archive is torn.
pub fn cut(error: Error) -> Error {
    match error.category() {
        Category::Eof => error.into_torn(),
        _ => error,
    }
}

pub fn discard<R: io::Read>(read: &mut IoRead<R>, len: u64) -> Result<()> {
    match read.pass_over(len)? {
        0 => Ok(()),
        missing => {
            let what = format!("the archive ends {missing} bytes before the end of a segment");
            Err(Error::torn(what).at(read.offset()))
        }
    }
}

/// Reads and checks the padding before the body, and the head of the body.
pub fn skip_to_body<R: io::Read>(read: &mut IoRead<R>, header: &Header) -> Result<()> {
    if header.count() == 0 {
        return Ok(());
    }
    let at = read.offset();
    let expected = header.layout.before_body()?;
    if take(read, expected.len(), "padding")? == expected {
        return Ok(());
    }
    Err(Error::damaged("wrong padding before the body").at(at))
}

/// For each buffer, the offset of the last reference to it in the archive; 0 if there is none.
pub fn last_uses(metadata: &[u8], header: &Header, limits: Limits) -> Result<Vec<u64>> {
    let mut uses = vec![0; header.count()];
    if uses.is_empty() {
        return Ok(uses);
    }
    list::valid_references(metadata, header, limits, &mut |at, item| {
        if let ItemPayload::Buffer { number, .. } = item.payload
            && let Some(last) = usize::try_from(number).ok().and_then(|number| uses.get_mut(number))
        {
            *last = at;
        }
    })?;
    Ok(uses)
}

/// The body of a segment, which is read from front to end.
///
/// A buffer that is needed later, or again, is kept in memory.
pub struct StreamBuffers<'a, R> {
    read: &'a mut IoRead<R>,
    header: &'a Header,
    uses: Vec<u64>,
    checksums: bool,
    options: DecodeOptions,
    /// The number of the next buffer in the stream.
    next: usize,
    /// Buffers that were read and are needed later.
    kept: KeptBuffers,
    /// Bytes that were charged and are free again. They are not charged again.
    freed: u64,
    /// The memory for a chunk of the current buffer, if it is compressed and its chunks are long.
    chunk: u64,
    /// The number of buffers that were reached, and the bytes of input before the next one: without and with those of
    /// compressed buffers. The header may announce more bytes than there are. So only what was reached counts, with the
    /// last buffer, whose memory is allocated as its bytes arrive.
    reached: usize,
    /// The number of bytes that were decompressed as they arrived.
    unpacked: u64,
    input: (u64, u64),
    /// The buffer that is being read by the decoder.
    current: Option<PayloadSource<'a>>,
    computed: Vec<Computed>,
    budget: Budget,
}

/// The hash of a chunk that was read. The stored hashes come after the body.
pub struct Computed {
    pub buffer: u64,
    pub chunk: u64,
    pub hash: u64,
}

impl Computed {
    /// Compares the hash with the stored one.
    pub fn check(&self, header: &Header, stored: &Hashes) -> Result<()> {
        StoredHashes::new(header, self.buffer, stored)?.check(self.chunk, self.hash)
    }

    /// Hashes the next bytes of a buffer.
    pub fn add(to: &mut Vec<Self>, hasher: &mut ChunkHasher, buffer: u64, bytes: &[u8]) {
        hasher.update(bytes, |chunk, hash| to.push(Self { buffer, chunk, hash }));
    }
}

enum PayloadSource<'a> {
    Stream {
        number: u64,
        hasher: Option<Box<ChunkHasher>>,
    },
    Kept {
        number: usize,
        position: usize,
        last: bool,
    },
    /// A compressed buffer, in the stream or kept.
    Packed {
        number: u64,
        unpacking: Box<Unpacking<'a>>,
        kept: Option<KeptPacked>,
    },
}

/// A compressed buffer among the kept ones.
struct KeptPacked {
    /// The offset in the archive of its first byte.
    start: u64,
    last: bool,
}

/// The kept buffers, indexed by their numbers. A small segment can have very many buffers and refer to them in
/// any order, so that a search through them would take quadratic time.
struct KeptBuffers(Vec<Option<Vec<u8>>>);

impl KeptBuffers {
    fn new(count: usize) -> Self {
        Self(vec![None; count])
    }

    fn put(&mut self, number: usize, bytes: Vec<u8>) {
        #[cfg(test)]
        tests::look();
        if let Some(place) = self.0.get_mut(number) {
            *place = Some(bytes);
        }
    }

    fn get(&self, number: usize) -> Option<&[u8]> {
        #[cfg(test)]
        tests::look();
        self.0.get(number)?.as_deref()
    }

    fn take(&mut self, number: usize) -> Option<Vec<u8>> {
        #[cfg(test)]
        tests::look();
        self.0.get_mut(number)?.take()
    }
}

impl<'a, R: io::Read> StreamBuffers<'a, R> {
    pub fn new(
        read: &'a mut IoRead<R>,
        header: &'a Header,
        uses: Vec<u64>,
        options: DecodeOptions,
    ) -> Self {
        let (kept, computed) = (KeptBuffers::new(header.count()), Vec::new());
        let checksums = options.checksums && header.is_checked();
        let budget = Budget::new(options.limits);
        let input = (header.layout.body_start.saturating_sub(header.offset), 0);
        Self {
            read,
            header,
            uses,
            checksums,
            options,
            next: 0,
            kept,
            freed: 0,
            chunk: 0,
            reached: 0,
            unpacked: 0,
            input,
            current: None,
            computed,
            budget,
        }
    }

    /// Counts the input up to the end of buffer `number`.
    fn reach(&mut self, number: u64) {
        while (self.reached as u64) <= number
            && let Some(place) = self.header.buffer(self.reached as u64)
        {
            let (plain, packed) = &mut self.input;
            let count = if place.packed().is_some() { packed } else { plain };
            *count = count.saturating_add(place.stored_len());
            self.reached += 1;
        }
    }

    /// The number of bytes of the segment that were received.
    fn received(&self) -> u64 {
        self.read.offset().saturating_sub(self.header.offset)
    }

    fn unpacking(&self, number: u64, place: PackedPlace<'a>) -> Result<Box<Unpacking<'a>>> {
        let chunks = PackedChunks::new(self.header, number, place, self.options, self.input)?;
        Ok(Box::new(Unpacking::new(chunks)))
    }

    /// Skips to the start of buffer `number`.
    fn go_to(&mut self, number: usize) -> Result<()> {
        let start = self.header.buffer(number as u64).map_or(0, BufferPlace::start);
        let gap = start.saturating_sub(self.read.offset());
        discard(self.read, gap)
    }

    fn place(&self, number: u64) -> Result<BufferPlace<'a>> {
        self.header.buffer(number).ok_or_else(|| no_such(number))
    }

    /// Reads the next buffer and keeps it.
    fn keep_next(&mut self) -> Result<()> {
        self.go_to(self.next)?;
        let number = self.next as u64;
        let place = self.place(number)?;
        let (at, len) = (place.start(), place.stored_len());
        let bytes = take(self.read, super::source::in_memory(len, at)?, "a tensor")?;
        if self.checksums {
            match place {
                BufferPlace::Plain { .. } => {
                    let mut hasher = ChunkHasher::new(self.header.chunk_len, len);
                    Computed::add(&mut self.computed, &mut hasher, number, &bytes);
                }
                BufferPlace::Packed(PackedPlace { how, .. }) => {
                    for chunk in 0..how.chunks() {
                        let hash = checksum::of(part(&bytes, how.stored(chunk)), 0);
                        self.computed.push(Computed { buffer: number, chunk, hash });
                    }
                }
            }
        }
        self.kept.put(self.next, bytes);
        self.next += 1;
        Ok(())
    }

    /// Skips the rest of the body. Returns the hashes of the chunks that were read.
    pub fn finish(mut self) -> Result<Vec<Computed>> {
        let left = self.header.layout.body_end.saturating_sub(self.read.offset());
        discard(self.read, left)?;
        Ok(std::mem::take(&mut self.computed))
    }
}

impl<'de, R: io::Read> Buffers<'de> for StreamBuffers<'_, R> {
    fn places(&self) -> &[(u64, u64)] {
        &self.header.layout.buffers
    }

    fn cost(&mut self, number: u64, len: u64, at: u64) -> u64 {
        self.reach(number);
        let wanted = usize::try_from(number).unwrap_or(usize::MAX);
        let kept = self.uses.get(self.next..=wanted).unwrap_or_default().iter();
        let kept = (self.next as u64..).zip(kept).filter(|&(_, &last)| last > at);
        let kept = kept.filter_map(|(number, _)| self.header.buffer(number));
        let kept = kept.fold(0u64, |sum, place| sum.saturating_add(place.stored_len()));
        self.chunk = match self.header.buffer(number) {
            Some(BufferPlace::Packed(place)) => chunk_memory(place.len, self.header.chunk_len),
            _ => 0,
        };
        let cost = len.saturating_add(kept).saturating_add(self.chunk);
        let again = cost.min(self.freed);
        self.freed -= again;
        cost - again
    }

    fn allowed(&self) -> u64 {
        Limits::allowed(self.input.0, self.input.1)
    }

    fn budget(&self) -> Option<&Budget> {
        Some(&self.budget)
    }

    fn contents(&mut self) -> Contents<'_, 'de> {
        Contents::Read(self)
    }
}

impl<R: io::Read> ReadBuffer for StreamBuffers<'_, R> {
    fn proven(&self) -> usize {
        match &self.current {
            // What is decompressed does not grow with what arrives. Its length is within the budget for the stored bytes that
            // the header announces, but only what was received proves that they are there.
            Some(PayloadSource::Packed { .. }) => {
                usize::try_from(self.options.limits.memory(0, self.received()))
                    .unwrap_or(usize::MAX)
            }
            _ => received(self.read),
        }
    }

    fn start(&mut self, number: u64, at: u64) -> Result<()> {
        let wanted = usize::try_from(number).unwrap_or(usize::MAX);
        // The buffers before it are skipped, unless they are referred to later.
        while self.next < wanted {
            if self.uses.get(self.next).is_some_and(|&last| last > at) {
                self.keep_next()?;
            } else {
                self.next += 1;
            }
        }
        let used_again = self.uses.get(wanted).is_some_and(|&last| last > at);
        if self.next == wanted && used_again {
            self.keep_next()?;
        }
        if self.next == wanted {
            self.go_to(wanted)?;
            self.next += 1;
            let len = match self.place(number)? {
                BufferPlace::Plain { len, .. } => len,
                BufferPlace::Packed(place) => {
                    let unpacking = self.unpacking(number, place)?;
                    self.current = Some(PayloadSource::Packed { number, unpacking, kept: None });
                    return Ok(());
                }
            };
            let hasher = ChunkHasher::new(self.header.chunk_len, len);
            let hasher = self.checksums.then(|| Box::new(hasher));
            self.current = Some(PayloadSource::Stream { number, hasher });
            return Ok(());
        }
        if self.kept.get(wanted).is_none() {
            return Err(Error::data(format!(
                "buffer {number} was skipped and cannot be read again"
            )));
        }
        let last = !used_again;
        self.current = Some(match self.place(number)? {
            BufferPlace::Plain { .. } => PayloadSource::Kept { number: wanted, position: 0, last },
            BufferPlace::Packed(place) => {
                let kept = Some(KeptPacked { start: place.start, last });
                PayloadSource::Packed { number, unpacking: self.unpacking(number, place)?, kept }
            }
        });
        Ok(())
    }

    fn read(&mut self, out: &mut [u8]) -> Result<()> {
        let received = self.received();
        match &mut self.current {
            Some(PayloadSource::Stream { number, hasher }) => {
                // Small steps: the bytes are still in the cache when they are hashed.
                for step in out.chunks_mut(STEP) {
                    self.read.read_exact(step, "a tensor").map_err(cut)?;
                    if let Some(hasher) = hasher {
                        Computed::add(&mut self.computed, hasher, *number, step);
                    }
                }
            }
            Some(PayloadSource::Kept { number, position, .. }) => {
                let kept = self.kept.get(*number).unwrap_or_default();
                let from = kept.get(*position..).and_then(|rest| rest.get(..out.len()));
                let from = from.ok_or_else(|| Error::data("read past the end of a buffer"))?;
                out.copy_from_slice(from);
                *position += out.len();
            }
            Some(PayloadSource::Packed {
                number,
                unpacking,
                kept: Some(KeptPacked { start, .. }),
            }) => {
                let index = usize::try_from(*number).unwrap_or(usize::MAX);
                let bytes = self.kept.get(index).unwrap_or_default();
                unpacking.read(out, |_, Range { start: from, end }| {
                    Ok(Cow::Borrowed(part(bytes, from - *start..end - *start)))
                })?;
            }
            Some(PayloadSource::Packed { number, unpacking, kept: None }) => {
                check_unpacked(self.unpacked, self.options.limits, (0, received))?;
                self.unpacked = self.unpacked.saturating_add(out.len() as u64);
                let mut computed = self.checksums.then_some(&mut self.computed);
                unpacking.read(out, |chunk, stored| {
                    let computed = computed.as_deref_mut();
                    read_stored_chunk(self.read, *number, chunk, stored, computed).map(Cow::Owned)
                })?;
            }
            None => {}
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        let last = match self.current.take() {
            Some(PayloadSource::Kept { number, last: true, .. }) => Some(number),
            Some(PayloadSource::Packed {
                number,
                kept: Some(KeptPacked { last: true, .. }),
                ..
            }) => usize::try_from(number).ok(),
            _ => None,
        };
        if let Some(number) = last {
            let freed = self.kept.take(number).map_or(0, |bytes| bytes.len() as u64);
            self.freed += freed;
        }
        self.freed += std::mem::take(&mut self.chunk);
        Ok(())
    }
}

/// Reads the next chunk of a compressed buffer, as it is stored, and hashes it.
pub fn read_stored_chunk<R: io::Read>(
    read: &mut IoRead<R>,
    buffer: u64,
    chunk: u64,
    stored: Range<u64>,
    computed: Option<&mut Vec<Computed>>,
) -> Result<Vec<u8>> {
    let len = super::source::in_memory(stored.end - stored.start, stored.start)?;
    let bytes = take(read, len, "a tensor")?;
    if let Some(computed) = computed {
        computed.push(Computed { buffer, chunk, hash: checksum::of(&bytes, 0) });
    }
    Ok(bytes)
}

/// Returns a part of a kept buffer.
fn part(bytes: &[u8], range: Range<u64>) -> &[u8] {
    let [start, end] = [range.start, range.end].map(|at| usize::try_from(at).unwrap_or(usize::MAX));
    bytes.get(start..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use crate::io::chunks::ChunkLen;
    use crate::segment::ext::Ext;
    use crate::segment::format::Check;
    use crate::segment::header::HeaderContent;
    use crate::segment::items::ItemEncoder;
    use crate::segment::packed::PackedBuffers;
    use crate::wire::{head, tag};
    use crate::{IArchive, OArchive};

    thread_local! {
        static LOOKS: Cell<usize> = const { Cell::new(0) };
    }

    /// Called for each buffer that is looked at among those kept.
    pub fn look() {
        LOOKS.set(LOOKS.get() + 1);
    }

    /// A search through all kept buffers once took 30 seconds for 4 MB.
    #[test]
    #[cfg_attr(miri, ignore = "takes minutes when interpreted")]
    fn buffers_referred_to_in_reverse_are_found_without_looking_at_others() {
        const COUNT: u16 = 2000;
        let mut items = ItemEncoder::new();
        items.head(head::ARRAY, COUNT.into()).unwrap();
        for number in (0..COUNT).rev() {
            items.head(head::TAG, tag::BUFFER).unwrap();
            items.head(head::ARRAY, 1).unwrap().head(head::UNSIGNED, number.into()).unwrap();
        }
        let metadata = items.into_bytes();
        let content = HeaderContent {
            name: None,
            alignment: 8,
            check: &Check::None,
            chunk_len: ChunkLen::default(),
            lengths: &[1; COUNT as usize],
            packed: &PackedBuffers::new(),
            ext: &Ext::default(),
            metadata: &metadata,
        };
        let mut out = OArchive::new(Vec::new()).unwrap();
        out.whole_segment(&content, |out| {
            for number in 0..COUNT {
                out.begin(number.into(), 1)?;
                out.put(&[u8::try_from(number % 251).unwrap()])?;
                out.end()?;
            }
            Ok(Vec::new())
        })
        .unwrap();
        let bytes = out.finish().unwrap();
        LOOKS.set(0);
        let found: Vec<serde_bytes::ByteBuf> = IArchive::new(&bytes[..]).unwrap().load().unwrap();
        let expected = (0..COUNT).rev().map(|number| vec![u8::try_from(number % 251).unwrap()]);
        assert!(found.into_iter().map(serde_bytes::ByteBuf::into_vec).eq(expected));
        // Put once, then found, read and taken.
        let looks = LOOKS.get();
        assert!(looks <= 4 * usize::from(COUNT), "{looks}");
    }
}
