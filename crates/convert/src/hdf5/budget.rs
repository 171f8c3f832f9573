//! The memory that names, attributes and texts may take.

use crate::support::over_memory;
use tenarc::Result;
use tenarc::de::Limits;

/// How much memory names, attributes and texts may take. Many texts can refer to the same bytes of the file.
#[derive(Clone, Copy, Debug)]
pub struct Budget(pub u64);

impl Budget {
    /// The budget that the limits give, or else that of a file of `len` bytes.
    pub fn new(len: u64, limits: Limits) -> Self {
        Self(limits.max_alloc().unwrap_or(of_file(len)))
    }

    pub fn take(&mut self, bytes: usize) -> Result<()> {
        let left = self.0;
        self.0 = left.checked_sub(bytes as u64).ok_or_else(|| {
            over_memory(format!(
                "names, attributes or texts take {bytes} more bytes, {left} are allowed"
            ))
        })?;
        Ok(())
    }
}

/// A multiple of the length of a file that no file reaches unless it is made for that.
pub fn of_file(len: u64) -> u64 {
    len.saturating_mul(64).saturating_add(64 << 20)
}
