//! Why a chunk cannot be read or written.

use std::fmt;

/// What is wrong with a stored chunk. The caller knows which chunk of which file it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodecError {
    /// The byte of the stored chunk at which the problem was found.
    pub at: usize,
    /// The problem.
    pub problem: Problem,
}

/// See [`CodecError`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// This build cannot read the codec with this name.
    Unreadable(&'static str),
    /// This build cannot write the codec with this name.
    Unwritable(&'static str),
    /// This build cannot compress with levels.
    Level(i32),
    /// More bytes are stored than the chunk has.
    Longer {
        /// The number of stored bytes.
        found: usize,
        /// The length of the chunk in bytes.
        length: usize,
    },
    /// The plane table is cut off.
    Table {
        /// The number of stored bytes.
        found: usize,
        /// The length of the table in bytes.
        needed: usize,
    },
    /// The method of a plane is unknown.
    Method {
        /// The number of the plane.
        plane: usize,
        /// The method.
        found: u8,
    },
    /// The stored length of a plane is not possible for its method.
    PlaneLength {
        /// The number of the plane.
        plane: usize,
        /// The method.
        method: u8,
        /// The stored length.
        found: u32,
        /// The length of the plane in bytes.
        length: usize,
    },
    /// The stored lengths do not add up to the bytes of the stored chunk.
    Total {
        /// The number of stored bytes.
        found: usize,
        /// The number of bytes according to the table.
        needed: usize,
    },
    /// The bytes of a compressed plane are damaged.
    Plane {
        /// The number of the plane.
        plane: usize,
        /// What is wrong.
        what: &'static str,
    },
}

impl fmt::Display for CodecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.at;
        match &self.problem {
            Problem::Unreadable(codec) => {
                write!(f, "this build cannot read {codec}: turn on the feature `compression`")
            }
            Problem::Unwritable(codec) => {
                write!(f, "this build cannot write {codec}: turn on the feature `compression`")
            }
            Problem::Level(level) => {
                write!(
                    f,
                    "this build cannot compress with level {level}, only with 0: turn on the feature `zstd`"
                )
            }
            Problem::Longer { found, length } => {
                write!(
                    f,
                    "a chunk of {length} bytes is stored in {found} bytes, expected at most {length}"
                )
            }
            Problem::Table { found, needed } => {
                write!(
                    f,
                    "the stored chunk has {found} bytes, but its plane table alone needs {needed}"
                )
            }
            Problem::Method { plane, found } => {
                write!(
                    f,
                    "plane {plane} is stored by method {found}, expected 0, 1 or 2 (at byte {at} of the stored chunk)"
                )
            }
            Problem::PlaneLength { plane, method, found, length } => {
                let expected = match method {
                    0 => format!("expected {length}"),
                    1 => "expected 1".into(),
                    _ => format!("expected less than the {length} bytes of the plane"),
                };
                write!(
                    f,
                    "plane {plane} is stored by method {method} in {found} bytes, {expected} (at byte {at} of the stored chunk)"
                )
            }
            Problem::Total { found, needed } => {
                write!(f, "the stored chunk has {found} bytes, but its plane table gives {needed}")
            }
            Problem::Plane { plane, what } => {
                write!(
                    f,
                    "plane {plane} cannot be decompressed: {what} (at byte {at} of the stored chunk)"
                )
            }
        }
    }
}

impl std::error::Error for CodecError {}
