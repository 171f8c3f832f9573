//! How files are written.

use tenarc::io::SyncLevel;

use crate::exported::Metadata;

/// How safetensors files are written.
///
/// ```
/// use ndarray::Array1;
/// use tenarc_convert::safetensors::{self, Options, SafeTensors};
///
/// let options = Options::default().with_metadata([("format", "pt")]);
/// let mut bytes = Vec::new();
/// safetensors::to_writer_with(&mut bytes, &[("bias", Array1::<f32>::zeros(8))], &options)?;
/// let file = SafeTensors::new(bytes)?;
/// assert_eq!(file.metadata(), Some(&[("format".into(), "pt".into())][..]));
/// # Ok::<(), tenarc::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub(super) metadata: Option<Metadata>,
    pub(super) accept_losses: bool,
    pub(super) sync: SyncLevel,
}

impl Options {
    /// Texts that go into the header, under `__metadata__`, in the order given.
    #[must_use]
    pub fn with_metadata<K: Into<String>, V: Into<String>>(
        mut self,
        metadata: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let texts = metadata.into_iter().map(|(key, text)| (key.into(), text.into()));
        self.metadata = Some(texts.collect());
        self
    }

    /// Goes on where something cannot be kept, rather than stop: column-major tensors are written in
    /// row-major order, for which each is in memory twice; tensors of a dtype that safetensors has not are left out, and so is all that is
    /// no tensor. What it was is returned as [`Losses`](crate::Losses).
    #[must_use]
    pub fn with_losses(mut self, accepted: bool) -> Self {
        self.accept_losses = accepted;
        self
    }

    /// How far a save of a file goes to survive a crash of the machine.
    #[must_use]
    pub fn with_sync(mut self, level: SyncLevel) -> Self {
        self.sync = level;
        self
    }
}
