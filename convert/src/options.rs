//! How files and archives are read and written.

use tenarc::archive::SaveOptions;
use tenarc::de::Limits;
use tenarc::io::SyncLevel;

use crate::Names;
use crate::exported::Metadata;

/// How a conversion reads and writes. What the format at hand has no use for is not looked at.
///
/// ```
/// # #[cfg(feature = "msgpack")]
/// # fn main() -> tenarc::Result<()> {
/// use tenarc_convert::{Options, msgpack};
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
    pub(crate) names: Names,
    pub(crate) accept_losses: bool,
    pub(crate) save: SaveOptions,
    pub(crate) limits: Limits,
    pub(crate) metadata: Option<Metadata>,
    pub(crate) external: bool,
    #[cfg(feature = "npy")]
    pub(crate) compression: crate::npy::Compression,
    #[cfg(feature = "arrow")]
    pub(crate) layout: crate::arrow::Layout,
    #[cfg(feature = "arrow")]
    pub(crate) container: Option<crate::arrow::Container>,
    #[cfg(feature = "arrow")]
    pub(crate) rows_per_batch: Option<usize>,
    #[cfg(any(feature = "arrow", feature = "parquet"))]
    pub(crate) table: Option<String>,
    #[cfg(feature = "parquet")]
    pub(crate) page_compression: crate::parquet::Compression,
    #[cfg(feature = "parquet")]
    pub(crate) rows_per_group: Option<usize>,
}

impl Options {
    /// How the names of tensors are taken into an archive; by default, as the file says.
    #[must_use]
    pub fn with_names(mut self, names: Names) -> Self {
        self.names = names;
        self
    }

    /// Goes on if something cannot be kept, rather than stop. Off by default. What it was is returned as
    /// [`Losses`](crate::Losses). Depending on the format, column-major tensors are written in row-major order, for which
    /// each is in memory twice; elements get another dtype, or tensors of dtypes that it has not are left out; and what is
    /// no tensor is left out. Decimals of a Parquet file become `f64`.
    #[must_use]
    pub fn with_losses(mut self, accepted: bool) -> Self {
        self.accept_losses = accepted;
        self
    }

    /// How an archive is written. It has checksums, whatever these options say. Their
    /// [`with_sync`](SaveOptions::with_sync) counts for other files too.
    #[must_use]
    pub fn with_save(mut self, options: SaveOptions) -> Self {
        self.save = options;
        self
    }

    /// How far a save of a file goes to survive a crash of the machine.
    #[must_use]
    pub fn with_sync(mut self, level: SyncLevel) -> Self {
        self.save = self.save.with_sync(level);
        self
    }

    /// Limits for reading: of the memory that each value or tensor may take, and of dimensions and levels.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Texts that go into a file of safetensors or Arrow beside the tensors, in the order given. They take the place of
    /// those that a value has under `__metadata__`.
    #[must_use]
    pub fn with_metadata<K: Into<String>, V: Into<String>>(
        mut self,
        metadata: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let texts = metadata.into_iter().map(|(key, text)| (key.into(), text.into()));
        self.metadata = Some(texts.collect());
        self
    }

    /// Reads tensors of an ONNX model that lie in other files, too, if these are in the directory of the model or below. So a
    /// model decides which of those files is read. Off by default.
    #[must_use]
    pub fn with_external(mut self, on: bool) -> Self {
        self.external = on;
        self
    }

    /// How arrays are stored in an npz file.
    #[cfg(feature = "npy")]
    #[must_use]
    pub fn with_compression(mut self, compression: crate::npy::Compression) -> Self {
        self.compression = compression;
        self
    }

    /// The name of the table in the archive, for Parquet and Arrow. To a file, it is needed only if the archive has values of
    /// several names. From one, it is by default the name that the table had in the archive that the file was made of. Other
    /// files give their file name without its extension.
    ///
    /// An Arrow file is converted as a table whenever this is given, even if all its columns are tensors.
    #[cfg(any(feature = "arrow", feature = "parquet"))]
    #[must_use]
    pub fn with_table(mut self, name: impl Into<String>) -> Self {
        self.table = Some(name.into());
        self
    }

    pub(crate) fn sync(&self) -> SyncLevel {
        self.save.sync()
    }
}
