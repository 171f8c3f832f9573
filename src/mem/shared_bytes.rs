//! Bytes with shared ownership.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// Bytes with shared ownership. They live until the last clone is dropped. A
/// [`SharedTensor`](crate::tensor::SharedTensor) uses them to keep its buffer alive.
///
/// Any owner of bytes can be converted, such as `bytes::Bytes`, `Arc<[u8]>`, a memory map or a
/// [`Buffer`](crate::parts::Buffer). A clone only increments a reference count.
#[derive(Clone)]
pub struct SharedBytes(Arc<dyn AsRef<[u8]> + Send + Sync>);

impl SharedBytes {
    /// The bytes of `owner`, which is dropped with the last clone.
    pub fn from_owner<T: AsRef<[u8]> + Send + Sync + 'static>(owner: T) -> Self {
        Self(Arc::new(owner))
    }

    /// Returns a part of the bytes, which keeps the same owner alive. `None` if the range exceeds the bytes.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Option<Self> {
        self.get(range.clone())?;
        Some(Self::from_owner(Part { whole: self.clone(), range }))
    }
}

/// Part of shared bytes.
struct Part {
    whole: SharedBytes,
    range: Range<usize>,
}

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        self.whole.get(self.range.clone()).unwrap_or_default()
    }
}

impl fmt::Debug for SharedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedBytes").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl AsRef<[u8]> for SharedBytes {
    fn as_ref(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

impl Deref for SharedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.as_ref()
    }
}
