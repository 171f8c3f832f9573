//! What the options for writing npz files choose from.

/// How the arrays of an npz file are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Compression {
    /// Not compressed, as `numpy.savez` stores them.
    #[default]
    Stored,
    /// Deflated, as `numpy.savez_compressed` stores them.
    Deflated,
}
