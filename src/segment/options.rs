//! How archives and parts are written.

use std::fmt;
use std::sync::Arc;

use super::format;
use super::path::TensorInfo;
use crate::error::{Error, Result};
use crate::io::atomic::SyncLevel;

/// Chooses for a payload whether it goes to a buffer (`true`) or stays inline.
type Chooser = Arc<dyn Fn(&TensorInfo) -> bool + Send + Sync>;

/// How archives and parts are written.
///
/// ```
/// let options = tenarc::archive::SaveOptions::default().with_alignment(4096).with_dedup(true);
/// let mut out = tenarc::OArchive::with_options(Vec::new(), options)?;
/// out.save(&vec![0.5f32; 1000])?;
/// # out.finish()?;
/// # Ok::<(), tenarc::Error>(())
/// ```
#[derive(Clone)]
pub struct SaveOptions {
    pub(crate) alignment: u64,
    pub(crate) inline_below: usize,
    pub(crate) chooser: Option<Chooser>,
    pub(crate) checksums: bool,
    pub(crate) dedup: bool,
    pub(crate) sync: SyncLevel,
}

impl Default for SaveOptions {
    fn default() -> Self {
        Self {
            alignment: format::DEFAULT_ALIGNMENT,
            inline_below: 2048,
            chooser: None,
            checksums: true,
            dedup: false,
            sync: SyncLevel::Full,
        }
    }
}

impl fmt::Debug for SaveOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SaveOptions")
            .field("alignment", &self.alignment)
            .field("inline_below", &self.inline_below)
            .field("checksums", &self.checksums)
            .field("dedup", &self.dedup)
            .field("sync", &self.sync)
            .finish_non_exhaustive()
    }
}

impl SaveOptions {
    /// The alignment of every buffer in the archive: a power of two from 8 to 65,536 bytes, 256 by
    /// default, which GPU libraries and SIMD code take as it is. 4,096 lets single buffers be
    /// mapped, read past the page cache, or shared by file systems.
    #[must_use]
    pub fn with_alignment(mut self, bytes: u64) -> Self {
        self.alignment = bytes;
        self
    }

    /// Payloads of fewer bytes stay inline in the metadata, without alignment; 2,048 by default.
    /// Tensors without elements always do.
    #[must_use]
    pub fn with_inline_below(mut self, bytes: usize) -> Self {
        self.inline_below = bytes;
        self
    }

    /// Lets a function choose for each tensor of at least one byte, in place of
    /// [`with_inline_below`](Self::with_inline_below): `true` puts it into a buffer.
    ///
    /// It sees the path of the tensor, its dtype, shape and order and the number of its bytes, and is
    /// asked once about each, in the order of the value's fields. Byte strings (`serde_bytes`) and
    /// sequences that could be stored as one block of numbers are asked about too, as tensors of one
    /// dimension; one that turns out to hold something else stays inline whatever the answer. The
    /// path is the one that is listed later, but where a key with dots reads like a path through
    /// another key beside it: then two payloads may have the same.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    ///
    /// use tenarc::Tensor;
    /// use tenarc::archive::SaveOptions;
    ///
    /// // Every second array, and all of the optimizer's.
    /// let asked = AtomicUsize::new(0);
    /// let options = SaveOptions::default().with_out_of_band(move |tensor| {
    ///     tensor.path().starts_with("optimizer.") || asked.fetch_add(1, Ordering::Relaxed) % 2 == 1
    /// });
    /// let arrays = vec![Tensor(vec![0.5f32; 4]); 5];
    /// let parts = tenarc::parts::to_parts_with(&arrays, options)?;
    /// assert_eq!(parts.buffers().len(), 2);
    /// # Ok::<(), tenarc::Error>(())
    /// ```
    #[must_use]
    pub fn with_out_of_band(
        mut self,
        choose: impl Fn(&TensorInfo) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.chooser = Some(Arc::new(choose));
        self
    }

    /// Whether each buffer gets a checksum; on by default. Headers have one in any case.
    #[must_use]
    pub fn with_checksums(mut self, on: bool) -> Self {
        self.checksums = on;
        self
    }

    /// Whether buffers of one saved value with equal bytes are stored once, as tied weights are;
    /// off by default, as it reads every payload once more. Reading gives every field its own.
    #[must_use]
    pub fn with_dedup(mut self, on: bool) -> Self {
        self.dedup = on;
        self
    }

    /// How far a save of a file goes to survive a crash of the machine. Writers that are no files
    /// are not affected.
    #[must_use]
    pub fn with_sync(mut self, level: SyncLevel) -> Self {
        self.sync = level;
        self
    }

    /// What [`with_sync`](Self::with_sync) set.
    pub fn sync(&self) -> SyncLevel {
        self.sync
    }

    pub(crate) fn check(&self) -> Result<()> {
        let range = format::MIN_ALIGNMENT..=format::MAX_ALIGNMENT;
        if self.alignment.is_power_of_two() && range.contains(&self.alignment) {
            return Ok(());
        }
        Err(Error::limit(format!(
            "expected an alignment that is a power of two from {} to {}, found {}",
            format::MIN_ALIGNMENT,
            format::MAX_ALIGNMENT,
            self.alignment
        )))
    }
}
