//! The error of this crate.

use std::{error, fmt, io};

/// The result of a call that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why something in a store could not be read or written.
///
/// [`kind`](Self::kind) tells failures apart that a program may want to handle. The message says what was found, and which
/// object it is about.
pub struct Error {
    kind: Kind,
    what: String,
    source: Option<Box<dyn error::Error + Send + Sync>>,
}

/// The type of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// There is no such object.
    NotFound,
    /// The object exists already, and must not be replaced.
    Exists,
    /// The object is another one than when it was opened. What was read of it before must not be mixed with what would be read
    /// now: open it again.
    Changed,
    /// The store cannot do this.
    Unsupported,
    /// What the ranks have written is no whole state: a receipt, a block or an object is missing, or is there twice.
    Incomplete,
    /// Others committed at the same time, again and again.
    Conflict,
    /// What is stored cannot be read, or a value cannot be written. The source is a [`tenarc::Error`].
    Archive,
    /// The store, or the way to it, failed.
    Store,
}

impl Error {
    /// An error of this kind. `what` says what was found and what was expected.
    pub fn new(kind: Kind, what: impl Into<String>) -> Self {
        Self { kind, what: what.into(), source: None }
    }

    /// Sets what caused it.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The type of the failure.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The error of the archive, if it is one of [`Kind::Archive`].
    pub fn archive(&self) -> Option<&tenarc::Error> {
        self.source.as_ref()?.downcast_ref()
    }

    /// Says which object an error is about.
    pub(crate) fn of_object(mut self, key: &str) -> Self {
        self.what = format!("`{}`: {}", key.escape_debug(), self.what);
        self
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({self})", self.kind)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

/// The kind of an error of this crate stays the same on its way through an archive.
impl From<tenarc::Error> for Error {
    fn from(error: tenarc::Error) -> Self {
        let mut source: Option<&(dyn error::Error + 'static)> = Some(&error);
        let mut kind = Kind::Archive;
        while let Some(cause) = source {
            let inner = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
            if let Some(inner) = inner.and_then(|inner| inner.downcast_ref::<Self>()) {
                kind = inner.kind;
                break;
            }
            if let Some(inner) = cause.downcast_ref::<Self>() {
                kind = inner.kind;
                break;
            }
            source = cause.source();
        }
        Self { kind, what: error.to_string(), source: Some(Box::new(error)) }
    }
}

/// For [`std::io::Read`] and the like.
impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match error.kind {
            Kind::NotFound => io::ErrorKind::NotFound,
            Kind::Exists => io::ErrorKind::AlreadyExists,
            Kind::Unsupported => io::ErrorKind::Unsupported,
            _ => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}
