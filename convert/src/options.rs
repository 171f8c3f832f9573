//! How files of other formats are written.

use tenarc::io::SyncLevel;

/// How a conversion writes.
///
/// ```
/// # #[cfg(feature = "msgpack")]
/// # fn main() -> tenarc::Result<()> {
/// use tenarc_convert::msgpack::{self, Options};
/// use tenarc::Value;
///
/// let wide = Value::Integer(1 << 100);
/// assert!(msgpack::write(Vec::new(), &wide).is_err());
/// let mut bytes = Vec::new();
/// let lost = msgpack::write_with(&mut bytes, &wide, &Options::default().with_losses(true))?;
/// assert_eq!(lost.count(), 1);
/// # Ok(())
/// # }
/// # #[cfg(not(feature = "msgpack"))]
/// # fn main() {}
/// ```
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub(super) accept_losses: bool,
    pub(super) sync: SyncLevel,
}

impl Options {
    /// Goes on where something cannot be kept, rather than stop. What it was is returned as
    /// [`Losses`](crate::Losses).
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
