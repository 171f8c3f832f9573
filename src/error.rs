//! The error of every fallible call: small, boxed, with category, byte offset and path.

use std::fmt;
use std::io;

/// What a fallible call of this crate returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a value could not be written or read.
///
/// An error names what was found and what was expected, the byte offset in the input (or output)
/// and the path of the value inside the document, such as `layers.3.weight`. It is one pointer
/// wide.
pub struct Error(Box<Inner>);

struct Inner {
    kind: Kind,
    offset: Option<u64>,
    /// Innermost segment first: the path is built while the error unwinds.
    path: Vec<Segment>,
}

enum Kind {
    Io(io::Error),
    Other(Category, Box<str>),
}

/// Bytes shown of a name.
const MAX_NAME: usize = 256;

enum Segment {
    Field(Box<str>),
    Index(u64),
}

/// The kinds of failure, for callers that react to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Category {
    /// The reader or writer failed.
    Io,
    /// The input is not well-formed CBOR (RFC 8949, Appendix F).
    Syntax,
    /// The input is well-formed but does not fit the type asked for, or the value cannot be
    /// written.
    Data,
    /// The input ended inside a value.
    Eof,
    /// A limit of [`Limits`](crate::Limits) was reached, or memory ran out.
    Limit,
}

impl Error {
    #[cold]
    pub(crate) fn new(category: Category, message: impl Into<String>) -> Self {
        let kind = Kind::Other(category, message.into().into_boxed_str());
        Self(Box::new(Inner { kind, offset: None, path: Vec::new() }))
    }

    #[cold]
    pub(crate) fn syntax(message: impl Into<String>) -> Self {
        Self::new(Category::Syntax, message)
    }

    #[cold]
    pub(crate) fn data(message: impl Into<String>) -> Self {
        Self::new(Category::Data, message)
    }

    #[cold]
    pub(crate) fn limit(message: impl Into<String>) -> Self {
        Self::new(Category::Limit, message)
    }

    #[cold]
    pub(crate) fn eof(expected: &str) -> Self {
        Self::new(Category::Eof, format!("input ended, expected {expected}"))
    }

    #[cold]
    pub(crate) fn io(error: io::Error) -> Self {
        Self(Box::new(Inner { kind: Kind::Io(error), offset: None, path: Vec::new() }))
    }

    /// Sets the offset unless a place nearer to the fault has set it already.
    #[cold]
    pub(crate) fn at(mut self, offset: u64) -> Self {
        self.0.offset.get_or_insert(offset);
        self
    }

    #[cold]
    pub(crate) fn in_field(mut self, name: impl Into<String>) -> Self {
        let mut name = name.into();
        // Keys come from the input.
        if name.len() > MAX_NAME {
            let end = (0..=MAX_NAME).rfind(|&at| name.is_char_boundary(at));
            name.truncate(end.unwrap_or(0));
            name.push('…');
        }
        self.0.path.push(Segment::Field(name.into_boxed_str()));
        self
    }

    #[cold]
    pub(crate) fn in_index(mut self, index: u64) -> Self {
        self.0.path.push(Segment::Index(index));
        self
    }

    /// What kind of failure this is.
    pub fn category(&self) -> Category {
        match &self.0.kind {
            Kind::Io(_) => Category::Io,
            Kind::Other(category, _) => *category,
        }
    }

    /// The byte offset at which reading or writing failed, counted from where the reader, slice
    /// or writer stood at first; `None` where no position makes sense.
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// The path of the value that failed: field names, map keys and element numbers joined by
    /// dots, as in `layers.3.weight`. Empty for the outermost value.
    pub fn path(&self) -> String {
        let mut path = String::new();
        for segment in self.0.path.iter().rev() {
            if !path.is_empty() {
                path.push('.');
            }
            match segment {
                Segment::Field(name) => path.push_str(name),
                Segment::Index(index) => path.push_str(&index.to_string()),
            }
        }
        path
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.kind {
            Kind::Io(error) => write!(f, "{error}")?,
            Kind::Other(_, message) => f.write_str(message)?,
        }
        if !self.0.path.is_empty() {
            // Keys come from the input: control characters must not reach a terminal.
            write!(f, " at `{}`", self.path().escape_debug())?;
        }
        if let Some(offset) = self.0.offset {
            write!(f, " (byte {offset})")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({:?}, {:?})", self.category(), self.to_string())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0.kind {
            Kind::Io(error) => Some(error),
            Kind::Other(..) => None,
        }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match &error.0.kind {
            Kind::Io(inner) => inner.kind(),
            Kind::Other(Category::Eof, _) => io::ErrorKind::UnexpectedEof,
            Kind::Other(..) => io::ErrorKind::InvalidData,
        };
        io::Error::new(kind, error)
    }
}

impl serde::ser::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::data(message.to_string())
    }
}

impl serde::de::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::data(message.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_one_pointer_wide() {
        assert_eq!(size_of::<Error>(), size_of::<usize>());
        assert_eq!(size_of::<Result<()>>(), size_of::<usize>());
    }

    #[test]
    fn says_what_where_and_at_which_path() {
        let error = Error::data("expected f32, found f64").in_field("weight").in_index(3);
        let error = error.in_field("layers").at(17).at(4);
        assert_eq!(error.path(), "layers.3.weight");
        assert_eq!(error.to_string(), "expected f32, found f64 at `layers.3.weight` (byte 17)");
        assert_eq!(error.category(), Category::Data);
        assert_eq!(io::Error::from(error).kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn escapes_control_characters_of_keys() {
        let text = Error::data("bad").in_field("a\u{1b}[31m").to_string();
        assert!(!text.contains('\u{1b}'), "{text}");
    }
}
