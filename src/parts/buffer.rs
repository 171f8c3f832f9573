//! Memory for buffers, aligned as the metadata says.

use std::fmt;
use std::io;
use std::ops::{Deref, DerefMut};

use crate::error::{Error, Result};
use crate::io::checksum::STEP;
use crate::io::source::read_all;
use crate::mem::{self, LARGE};

/// Bytes that start at an aligned address. Buffers are received into it, so that arrays can borrow from it.
///
/// ```
/// let mut buffer = tenarc::parts::Buffer::zeroed(1000, 256)?;
/// assert_eq!(buffer.as_ptr() as usize % 256, 0);
/// buffer.fill(1);
/// # Ok::<(), tenarc::Error>(())
/// ```
pub struct Buffer {
    /// The content, preceded by up to `alignment - 1` unused bytes.
    bytes: Vec<u8>,
    start: usize,
    alignment: usize,
}

impl Buffer {
    /// Allocates `len` zero bytes. Their address is a multiple of `alignment`, which is in bytes.
    ///
    /// # Errors
    /// With [`Category::Limit`](crate::error::Category::Limit) if the memory cannot be allocated or
    /// `alignment` is not a power of two.
    pub fn zeroed(len: usize, alignment: usize) -> Result<Self> {
        check(alignment)?;
        let total = len.checked_add(alignment - 1).ok_or_else(|| out_of_memory(len))?;
        // Pages fresh from the system are zero already and need not be written.
        let bytes = bytemuck::allocation::try_zeroed_vec::<u8>(total);
        let mut bytes = bytes.map_err(|()| out_of_memory(len))?;
        let start = gap(&bytes, alignment);
        bytes.truncate(start + len);
        if len >= LARGE {
            mem::prefer_large_pages(&mut bytes);
        }
        Ok(Self { bytes, start, alignment })
    }

    /// Makes an aligned copy of `bytes`, for transports that receive into memory of their own.
    ///
    /// # Errors
    /// With [`Category::Limit`](crate::error::Category::Limit) if the memory cannot be allocated or
    /// `alignment` is not a power of two.
    pub fn copied(bytes: &[u8], alignment: usize) -> Result<Self> {
        check(alignment)?;
        let mut buffer = Self::empty(alignment);
        buffer.extend(bytes)?;
        Ok(buffer)
    }

    /// Lengthens the content to `len` bytes, to receive it piece by piece. The new bytes are zeros.
    ///
    /// `whole` is the length that it will have in the end, if that can be believed. Memory for up to 8 times `len` is
    /// obtained, but not for more than `whole`. So a large buffer moves only a few times, and a wrong length does no harm.
    ///
    /// ```
    /// let mut buffer = tenarc::parts::Buffer::zeroed(10, 256)?;
    /// buffer[9] = 1;
    /// buffer.grow(20, 1 << 40)?;
    /// assert_eq!((buffer.len(), buffer[9], buffer[19]), (20, 1, 0));
    /// # Ok::<(), tenarc::Error>(())
    /// ```
    ///
    /// # Errors
    /// With [`Category::Limit`](crate::error::Category::Limit) if the memory cannot be allocated.
    pub fn grow(&mut self, len: usize, whole: usize) -> Result<()> {
        const AHEAD: usize = 8;

        let more = len.saturating_sub(self.len());
        if self.bytes.capacity() - self.bytes.len() < more {
            let wanted = len.saturating_mul(AHEAD).min(whole).max(len);
            self.reserve(wanted - self.len())?;
            if wanted >= LARGE {
                mem::prefer_large_pages(self.bytes.spare_capacity_mut());
            }
        }
        self.bytes.resize(self.bytes.len() + more, 0);
        Ok(())
    }

    pub(crate) fn empty(alignment: usize) -> Self {
        Self { bytes: Vec::new(), start: 0, alignment }
    }

    /// Reserves memory for `additional` more bytes. The content does not move until these are used up.
    pub(crate) fn reserve(&mut self, additional: usize) -> Result<()> {
        if self.bytes.capacity() - self.bytes.len() >= additional && !self.bytes.is_empty() {
            return Ok(());
        }
        let total = additional.checked_add(self.alignment - 1);
        let reserved = total.map(|total| self.bytes.try_reserve_exact(total));
        let Some(Ok(())) = reserved else { return Err(out_of_memory(additional)) };
        self.align();
        Ok(())
    }

    /// Moves the content to the first aligned address. The capacity must suffice.
    fn align(&mut self) {
        let (from, to) = (self.start, gap(&self.bytes, self.alignment));
        let len = self.bytes.len() - from.min(self.bytes.len());
        if from == to {
            return;
        }
        if to > from {
            self.bytes.resize(to + len, 0);
        }
        self.bytes.copy_within(from..from + len, to);
        self.bytes.truncate(to + len);
        self.start = to;
    }

    pub(crate) fn extend(&mut self, bytes: &[u8]) -> Result<()> {
        self.reserve(bytes.len())?;
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Reads `len` bytes. Memory beyond `proven` bytes is only allocated as bytes arrive, so that a wrong
    /// length cannot fill the memory. If the input ends early, the buffer is shorter than `len`. Calls `each` with the
    /// bytes as they arrive.
    pub(crate) fn read<R: io::Read + ?Sized>(
        reader: &mut R,
        len: usize,
        proven: usize,
        alignment: usize,
        mut each: impl FnMut(&[u8]),
    ) -> Result<Self> {
        let mut buffer = Self::empty(alignment);
        buffer.fill_up(len, proven, |step| {
            let found = read_all(reader, step)?;
            each(step.get(..found).unwrap_or_default());
            Ok(found)
        })?;
        Ok(buffer)
    }

    /// Calls `read` to fill the buffer step by step, until it has `len` bytes or a step is not filled.
    pub(crate) fn fill_up(
        &mut self,
        len: usize,
        proven: usize,
        mut read: impl FnMut(&mut [u8]) -> Result<usize>,
    ) -> Result<()> {
        if len >= LARGE && len <= proven && self.bytes.is_empty() {
            *self = Self::zeroed(len, self.alignment)?;
            let mut done = 0;
            for step in self.chunks_mut(STEP) {
                let found = read(step)?;
                done += found;
                if found < step.len() {
                    break;
                }
            }
            self.bytes.truncate(self.start + done);
            return Ok(());
        }
        self.reserve(len.min(proven.max(STEP)))?;
        while self.len() < len {
            let done = self.len();
            let step = (len - done).min(STEP);
            if self.bytes.capacity() - self.bytes.len() < step {
                self.reserve((len - done).min(done.max(step)))?;
            }
            // Each step is zeroed right before it is filled, so that it is still in the cache.
            let at = self.bytes.len();
            self.bytes.resize(at + step, 0);
            let found = read(self.bytes.get_mut(at..).unwrap_or_default())?;
            self.bytes.truncate(at + found);
            if found < step {
                break;
            }
        }
        Ok(())
    }
}

fn check(alignment: usize) -> Result<()> {
    if alignment.is_power_of_two() {
        return Ok(());
    }
    Err(Error::limit(format!("expected an alignment that is a power of two, found {alignment}")))
}

/// The number of bytes before the first aligned address in a vector's memory.
fn gap(bytes: &[u8], alignment: usize) -> usize {
    (bytes.as_ptr() as usize).wrapping_neg() & (alignment - 1)
}

#[cold]
fn out_of_memory(len: usize) -> Error {
    Error::limit(format!("out of memory: cannot allocate a buffer of {len} bytes"))
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer")
            .field("len", &self.len())
            .field("alignment", &self.alignment)
            .finish_non_exhaustive()
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.start..).unwrap_or_default()
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl AsMut<[u8]> for Buffer {
    fn as_mut(&mut self) -> &mut [u8] {
        self
    }
}

impl PartialEq for Buffer {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Buffer {}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_aligned(buffer: &Buffer) -> bool {
        (buffer.as_ptr() as usize).is_multiple_of(buffer.alignment)
    }

    #[test]
    fn stays_aligned_while_it_grows() {
        for alignment in [1, 8, 256, 4096] {
            let mut buffer = Buffer::empty(alignment);
            let mut expected = Vec::new();
            for step in 0..if cfg!(miri) { 20 } else { 300 } {
                let more = vec![u8::try_from(step % 251).unwrap(); step];
                buffer.extend(&more).unwrap();
                expected.extend_from_slice(&more);
                assert!(is_aligned(&buffer) || buffer.is_empty());
                assert_eq!(*buffer, *expected);
            }
            assert!(is_aligned(&Buffer::zeroed(100, alignment).unwrap()));
            assert_eq!(*Buffer::copied(&expected, alignment).unwrap(), *expected);
        }
        assert!(Buffer::zeroed(10, 3).is_err());
        assert!(Buffer::zeroed(usize::MAX, 8).is_err());
        assert!(Buffer::zeroed(usize::MAX / 2, 8).is_err());
    }

    #[test]
    fn grows_to_a_length_that_is_only_believed_in_part() {
        for alignment in [1, 64, 4096] {
            let mut buffer = Buffer::zeroed(100, alignment).unwrap();
            buffer.fill(7);
            for len in [50, 100, 101, 1000, 20_000] {
                let before = buffer.to_vec();
                buffer.grow(len, usize::MAX).unwrap();
                let expected = [&before[..], &vec![0; len.saturating_sub(before.len())]].concat();
                assert_eq!(*buffer, *expected);
                assert!(is_aligned(&buffer));
                assert!(buffer.bytes.capacity() <= 8 * len.max(100) + 2 * alignment);
                buffer.fill(7);
            }
            assert!(buffer.grow(usize::MAX, 0).is_err());
        }
    }

    #[test]
    fn reads_what_there_is() {
        let bytes: Vec<u8> =
            (0..=255).cycle().take(if cfg!(miri) { 3000 } else { 3 * STEP + 77 }).collect();
        for (len, proven) in [(bytes.len(), 0), (bytes.len() - 1, 1 << 30), (bytes.len() + 1, 0)] {
            let mut seen = Vec::new();
            let each = |bytes: &[u8]| seen.extend_from_slice(bytes);
            let buffer = Buffer::read(&mut &bytes[..], len, proven, 256, each).unwrap();
            let expected = &bytes[..len.min(bytes.len())];
            assert_eq!(*buffer, *expected);
            assert!(is_aligned(&buffer));
            assert_eq!(seen, expected);
        }
    }
}
