//! A reader of a part of a source that is read at offsets.

use std::io;
use std::ops::Range;

use tenarc::io::ReadAt;

/// A reader of a range of a source, from front to back.
pub struct Part<'a, S: ?Sized> {
    source: &'a S,
    range: Range<u64>,
}

impl<'a, S: ReadAt + ?Sized> Part<'a, S> {
    pub fn new(source: &'a S, range: Range<u64>) -> Self {
        Self { source, range }
    }

    /// Skips bytes. Returns `false` without skipping if there are fewer.
    pub fn pass(&mut self, len: u64) -> bool {
        match self.range.start.checked_add(len) {
            Some(start) if start <= self.range.end => {
                self.range.start = start;
                true
            }
            _ => false,
        }
    }
}

impl<S: ReadAt + ?Sized> io::Read for Part<'_, S> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let left = self.range.end.saturating_sub(self.range.start);
        let most = out.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let read =
            self.source.read_at(out.get_mut(..most).unwrap_or_default(), self.range.start)?;
        // A source may claim to have read more than it could. The count is returned as it is: callers check it.
        self.range.start += read.min(most) as u64;
        Ok(read)
    }
}
