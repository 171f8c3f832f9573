//! Memory for reads from drives.

use std::fmt;

use crate::io::at::PIECE;
use crate::mem::prefer_large_pages;

/// Memory that starts at the address of a large page, so that drives can fill it without help of the processor. They
/// take longer to fill many small pages.
pub struct Aligned {
    memory: Vec<u8>,
    /// The position of the first byte with the address of a large page.
    start: usize,
    len: usize,
}

impl fmt::Debug for Aligned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Aligned").field("len", &self.len).finish_non_exhaustive()
    }
}

impl Aligned {
    /// `len` zeros.
    pub fn new(len: usize) -> Self {
        // Such memory comes from the system, and is not touched before it prefers large pages.
        let mut memory = vec![0; len.saturating_add(PIECE)];
        prefer_large_pages(&mut memory);
        // Less than a piece, which has the length of a large page.
        let start = memory.as_ptr().align_offset(PIECE).min(PIECE);
        Self { memory, start, len }
    }

    pub fn bytes(&self) -> &[u8] {
        self.memory.get(self.start..).and_then(|rest| rest.get(..self.len)).unwrap_or_default()
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let rest = self.memory.get_mut(self.start..).unwrap_or_default();
        rest.get_mut(..self.len).unwrap_or_default()
    }
}
