//! The error type of the crate. It has a category, a byte offset and the path of the value. It is boxed,
//! so that a `Result` stays small.

use std::cell::Cell;
use std::fmt;
use std::io;
use std::path::Path;

use serde::de::{self, Expected, Unexpected};

/// The result of a fallible call of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a value could not be written or read.
///
/// The message says what was found and what was expected. If they are known, it also gives the path of
/// the value inside the document, such as `layers.3.weight`, and the byte offset in the input or output.
/// An `Error` has the size of one pointer.
///
/// ```
/// use std::collections::BTreeMap;
///
/// let bytes = tenarc::to_vec(&BTreeMap::from([("sizes", [1, 300])]))?;
/// let error = tenarc::from_slice::<BTreeMap<String, Vec<u8>>>(&bytes).unwrap_err();
/// assert_eq!(error.path(), "sizes.1"); // 300 is no u8
/// println!("{error}");
/// # Ok::<(), tenarc::Error>(())
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    kind: Reason,
    offset: Option<u64>,
    /// The parts of the path, innermost first, because the path is built while the error is returned outwards.
    path: Vec<PathPart>,
    /// The source of the error, unless it is an I/O error.
    cause: Option<Box<dyn std::error::Error + Send + Sync>>,
    advice: Option<Advice>,
}

/// What a program can do about an error. The message of the error ends with it. A program with users shows them its own
/// advice instead: `tenarc`'s names its options.
///
/// ```
/// use tenarc::Error;
/// use tenarc::error::Advice;
///
/// let error = Error::limit("the image needs 3 GB").with_advice(Advice::MaxAlloc);
/// assert_eq!(error.to_string(), "the image needs 3 GB; Limits::with_max_alloc sets another limit");
/// assert_eq!(error.advice(), Some(Advice::MaxAlloc));
/// assert_eq!(error.without_advice().to_string(), "the image needs 3 GB");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Advice {
    /// [`Limits::with_max_alloc`](crate::de::Limits::with_max_alloc) allows more memory.
    MaxAlloc,
    /// [`DecodeOptions::with_checksums`](crate::DecodeOptions::with_checksums) reads without verifying.
    NoChecksums,
    /// [`open_torn`](crate::archive::open_torn) reads the complete values.
    OpenTorn,
    /// [`recover`](crate::archive::recover) makes the archive whole: it cuts off what is incomplete at its end.
    Recover,
    /// [`open_torn`](crate::archive::open_torn) reads the complete tensors of a value that was cut off, and
    /// [`Recovery::to`](crate::archive::Recovery::to) writes them to another file.
    Salvage,
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MaxAlloc => "Limits::with_max_alloc sets another limit",
            Self::NoChecksums => "DecodeOptions::with_checksums(false) reads without verifying",
            Self::OpenTorn => "open_torn reads the complete values",
            Self::Recover => "open_torn reads the complete values, recover cuts off the rest",
            Self::Salvage => {
                "open_torn reads the complete tensors of a cut value, and Recovery::to writes them to another file"
            }
        })
    }
}

enum Reason {
    Io(io::Error),
    /// An I/O error with a description of what failed, including the file.
    IoAt(Box<str>, io::Error),
    Other(Category, Box<str>),
}

/// The largest number of bytes of a name that are shown in a path.
const MAX_NAME: usize = 256;

/// A part of a path.
enum PathPart {
    Field(Box<str>),
    Index(u64),
}

/// The type of a failure, for callers that handle failures differently.
///
/// Which category an error has follows from what would make the call succeed:
///
/// | what must change | categories |
/// |---|---|
/// | the name, path, index or step: nothing is there, or more than one value | [`NotFound`](Self::NotFound) |
/// | the type that the program asks for: the value is intact, but of another type, dtype, rank or shape | [`Mismatch`](Self::Mismatch) |
/// | the call, a feature of this build or its machine: the value is intact and known, but cannot be had in this way | [`Unsupported`](Self::Unsupported) |
/// | the version of tenarc: a newer one wrote this | [`Version`](Self::Version) |
/// | [`Limits`](crate::de::Limits), or the memory of the machine | [`Limit`](Self::Limit) |
/// | the file or message: it is bad, or cut off | [`Syntax`](Self::Syntax), [`Eof`](Self::Eof), [`Damaged`](Self::Damaged), [`Torn`](Self::Torn), [`Data`](Self::Data) |
/// | the value that is written, or an argument that no input would fit | [`Data`](Self::Data) |
/// | a file, the disk or the connection | [`Io`](Self::Io) |
///
/// Errors that a type's own `Serialize` or `Deserialize` raises with serde's `Error::custom` are [`Data`](Self::Data).
/// Those with which serde says that a value is not one of the type are [`Mismatch`](Self::Mismatch): `invalid_type`,
/// `invalid_value`, `invalid_length`, `missing_field`, `unknown_field` and `unknown_variant`.
///
/// ```
/// use tenarc::error::Category;
///
/// let error = tenarc::from_slice::<String>(&tenarc::to_vec(&7)?).unwrap_err();
/// let advice = match error.category() {
///     Category::Mismatch => "the data is good: ask for another type",
///     Category::Eof | Category::Torn => "the rest is missing: send it again",
///     _ => "see the message",
/// };
/// assert_eq!(advice, "the data is good: ask for another type");
/// # Ok::<(), tenarc::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Category {
    /// The reader or writer failed, or a file cannot be opened. [`Error::io_error_kind`] tells why. A file that does not
    /// exist is such an error too, with [`io::ErrorKind::NotFound`].
    Io,
    /// The input is not well-formed CBOR (RFC 8949, Appendix F).
    Syntax,
    /// The input is well-formed CBOR but breaks another rule of the format, the value cannot be written, or an argument
    /// makes no sense.
    Data,
    /// No value is at the path, or has the name, index or step that was asked for: a tensor, a segment, a row, a column
    /// or a checkpoint. Also if several values fit, and one must be chosen.
    NotFound,
    /// The value is there, but of another type, dtype, rank or shape than the program asked for.
    Mismatch,
    /// The input ended inside a value.
    Eof,
    /// A limit of [`Limits`](crate::de::Limits) was reached, or memory ran out.
    Limit,
    /// The archive is damaged: a checksum does not match, or bytes with a fixed value have another one.
    Damaged,
    /// The archive ends inside a segment or without an end mark: it was not finished, or was truncated.
    Torn,
    /// The archive has a format version, a codec, a checksum or an extension that this version of the crate does not know,
    /// or a file of another format has a version that the converter does not know. The file may be whole.
    Version,
    /// What was asked for is known, but cannot be done here: this build lacks the feature that a compressed tensor needs,
    /// the bytes of a tensor are not in the archive, or a view was asked for and the value must be loaded. Converters give
    /// it for parts of other formats that they do not support. The file may be whole.
    Unsupported,
}

impl Error {
    /// An error of this category. The most common categories have functions of their own.
    ///
    /// ```
    /// use tenarc::Error;
    /// use tenarc::error::Category;
    ///
    /// let error = Error::data("expected f32, found f64").in_index(3).in_field("layers").at(17);
    /// assert_eq!(error.category(), Category::Data);
    /// assert_eq!(error.to_string(), "expected f32, found f64 at `layers.3` (byte 17)");
    /// ```
    #[cold]
    pub fn new(category: Category, message: impl Into<String>) -> Self {
        let kind = Reason::Other(category, message.into().into_boxed_str());
        Self::of(kind)
    }

    /// An error of [`Category::Syntax`].
    #[cold]
    pub fn syntax(message: impl Into<String>) -> Self {
        Self::new(Category::Syntax, message)
    }

    /// An error of [`Category::Data`].
    #[cold]
    pub fn data(message: impl Into<String>) -> Self {
        Self::new(Category::Data, message)
    }

    /// An error of [`Category::NotFound`].
    #[cold]
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(Category::NotFound, message)
    }

    /// An error of [`Category::Mismatch`].
    #[cold]
    pub fn mismatch(message: impl Into<String>) -> Self {
        Self::new(Category::Mismatch, message)
    }

    /// An error of [`Category::Unsupported`].
    #[cold]
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(Category::Unsupported, message)
    }

    /// An error of [`Category::Limit`].
    #[cold]
    pub fn limit(message: impl Into<String>) -> Self {
        Self::new(Category::Limit, message)
    }

    /// An error of [`Category::Eof`], for crates that read other formats. `expected` names the missing part, for example `the rest of a
    /// header`.
    #[cold]
    pub fn eof(expected: &str) -> Self {
        Self::new(Category::Eof, format!("input ended, expected {expected}"))
    }

    /// An error of [`Category::Damaged`].
    #[cold]
    pub fn damaged(message: impl Into<String>) -> Self {
        Self::new(Category::Damaged, message)
    }

    /// An error of [`Category::Torn`].
    #[cold]
    pub fn torn(message: impl Into<String>) -> Self {
        Self::new(Category::Torn, message)
    }

    /// An error of [`Category::Io`]. The same as `Error::from`.
    #[cold]
    pub fn io(error: io::Error) -> Self {
        Self::of(Reason::Io(error))
    }

    /// An I/O error for a file, as the functions of this crate that take a path give it. `attempt` says what failed, for example `cannot open`.
    #[cold]
    pub fn io_at(error: io::Error, attempt: &str, file: &Path) -> Self {
        let attempt = format!("{attempt} {}", shown(file)).into_boxed_str();
        Self::of(Reason::IoAt(attempt, error))
    }

    /// An error with which serde says that a value is not one of the type. The message is serde's.
    fn of_type(error: &de::value::Error) -> Self {
        Self::mismatch(error.to_string())
    }

    /// The error of a value that was serialized differently the second time.
    #[cold]
    pub(crate) fn changed(how: &str) -> Self {
        Self::data(format!(
            "the value changed between the two passes: {how} (does `serialize` build a `HashMap`, or read a clock?)"
        ))
    }

    fn of(kind: Reason) -> Self {
        Self(Box::new(Inner { kind, offset: None, path: Vec::new(), cause: None, advice: None }))
    }

    /// Sets the [`source`](std::error::Error::source) of the error, so that programs can find out what caused it. The
    /// message of the source does not become part of this error's message. I/O errors keep their own source.
    ///
    /// ```
    /// use std::error::Error as _;
    ///
    /// let zero = "x".parse::<u8>().unwrap_err();
    /// let error = tenarc::Error::data("expected a number of layers").with_source(zero);
    /// assert!(error.source().unwrap().is::<std::num::ParseIntError>());
    /// ```
    #[must_use]
    pub fn with_source(
        mut self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        self.0.cause = Some(source.into());
        self
    }

    /// Sets what a program can do about the error.
    #[must_use]
    pub fn with_advice(mut self, advice: Advice) -> Self {
        self.0.advice = Some(advice);
        self
    }

    /// What a program can do about the error.
    pub fn advice(&self) -> Option<Advice> {
        self.0.advice
    }

    /// Shows the error like `Display`, but without the advice.
    pub fn without_advice(&self) -> impl fmt::Display + '_ {
        WithoutAdvice(self)
    }

    /// Adds the name of the file to the message, unless the error is an I/O error that names a file
    /// already.
    #[cold]
    #[must_use]
    pub fn in_file(mut self, file: &Path) -> Self {
        let kind = std::mem::replace(&mut self.0.kind, Reason::Other(Category::Io, "".into()));
        self.0.kind = match kind {
            Reason::Io(error) => Reason::IoAt(format!("cannot read {}", shown(file)).into(), error),
            Reason::Other(category, message) => {
                Reason::Other(category, format!("{}: {message}", shown(file)).into())
            }
            named @ Reason::IoAt(..) => named,
        };
        self
    }

    /// Puts an explanation in front of the message. I/O errors stay unchanged.
    #[cold]
    pub(crate) fn meaning(mut self, what: &str) -> Self {
        if let Reason::Other(_, message) = &mut self.0.kind {
            *message = format!("{what}: {message}").into();
        }
        self
    }

    /// Changes the category to [`Category::Torn`]. I/O errors stay unchanged.
    #[cold]
    pub(crate) fn into_torn(mut self) -> Self {
        if let Reason::Other(category, _) = &mut self.0.kind {
            *category = Category::Torn;
        }
        self
    }

    /// Changes the category from [`Category::Data`] to [`Category::Mismatch`].
    #[cold]
    pub(crate) fn into_mismatch(mut self) -> Self {
        if let Reason::Other(category @ Category::Data, _) = &mut self.0.kind {
            *category = Category::Mismatch;
        }
        self
    }

    /// Passes the error through serde, whose errors are made of text: `custom` is that of the serializer or deserializer. If it
    /// is one of this crate, the category and the advice are kept. Offset and path become part of the message, because they are
    /// not those of the whole input.
    #[cold]
    pub(crate) fn through<E>(self, custom: impl FnOnce(String) -> E) -> E {
        let text = self.to_string();
        let passed = if self.0.offset.is_some() || !self.0.path.is_empty() {
            let mut passed = Self::new(self.category(), self.without_advice().to_string());
            passed.0.advice = self.0.advice;
            passed
        } else {
            self
        };
        PASSED.set(Some(passed));
        let error = custom(text);
        // The error of another crate has not taken it.
        PASSED.take();
        error
    }

    /// A copy of the error without its path and source, for objects that report the same error again.
    pub(crate) fn again(&self) -> Self {
        let mut error = Self::new(self.category(), self.message());
        error.0.offset = self.0.offset;
        error.0.advice = self.0.advice;
        error
    }

    /// The message without path, offset and advice.
    pub fn message(&self) -> String {
        match &self.0.kind {
            Reason::Io(error) => error.to_string(),
            Reason::IoAt(attempt, error) => format!("{attempt}: {error}"),
            Reason::Other(_, message) => message.to_string(),
        }
    }

    /// Sets the [offset](Self::offset), unless it is set already. The first caller that sets it is the
    /// nearest to the fault.
    #[cold]
    #[must_use]
    pub fn at(mut self, offset: u64) -> Self {
        self.0.offset.get_or_insert(offset);
        self
    }

    /// Adds `base` to the [offset](Self::offset), if there is one. For readers that pass a part of their input to a reader
    /// of its own: `base` is where the part starts.
    #[cold]
    #[must_use]
    pub fn moved_by(mut self, base: u64) -> Self {
        if let Some(offset) = &mut self.0.offset {
            *offset = offset.saturating_add(base);
        }
        self
    }

    /// Puts a field name or map key in front of the [path](Self::path).
    #[cold]
    #[must_use]
    pub fn in_field(mut self, name: impl Into<String>) -> Self {
        let mut name = name.into();
        // Keys come from the input.
        if name.len() > MAX_NAME {
            let end = (0..=MAX_NAME).rfind(|&at| name.is_char_boundary(at));
            name.truncate(end.unwrap_or(0));
            name.push('…');
        }
        self.0.path.push(PathPart::Field(name.into_boxed_str()));
        self
    }

    /// Puts the path of a value in front of the [path](Self::path). The path `""` is that of the whole value.
    #[cold]
    pub(crate) fn under(self, path: &str) -> Self {
        if path.is_empty() { self } else { self.in_field(path) }
    }

    /// Puts the index of an element in front of the [path](Self::path).
    #[cold]
    #[must_use]
    pub fn in_index(mut self, index: u64) -> Self {
        self.0.path.push(PathPart::Index(index));
        self
    }

    /// The type of the failure.
    pub fn category(&self) -> Category {
        match &self.0.kind {
            Reason::Io(_) | Reason::IoAt(..) => Category::Io,
            Reason::Other(category, _) => *category,
        }
    }

    /// Whether the error means that the input is bad at this place, or not of the type asked for. I/O errors, limits and
    /// what this version or build cannot read do not.
    pub(crate) fn is_of_input(&self) -> bool {
        use Category::{Io, Limit, Unsupported, Version};
        !matches!(self.category(), Io | Limit | Unsupported | Version)
    }

    /// Whether the error is about one value, so that other values can still be read.
    pub(crate) fn is_of_value(&self) -> bool {
        use Category::{Data, Mismatch, NotFound, Unsupported};
        matches!(self.category(), Data | Mismatch | NotFound | Unsupported)
    }

    /// The kind of the I/O error, if the category is [`Category::Io`]. `serde_json` has the same method.
    ///
    /// ```
    /// use std::io::ErrorKind;
    ///
    /// let missing = tenarc::load::<f32>("no such directory/model.tenarc").unwrap_err();
    /// assert_eq!(missing.io_error_kind(), Some(ErrorKind::NotFound));
    /// ```
    pub fn io_error_kind(&self) -> Option<io::ErrorKind> {
        match &self.0.kind {
            Reason::Io(error) | Reason::IoAt(_, error) => Some(error.kind()),
            Reason::Other(..) => None,
        }
    }

    /// The byte offset at which reading or writing failed, counted from the position at which the slice,
    /// reader or writer started. `None` if no offset is known.
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// The path of the value that failed: field names, map keys and element indices joined by dots, such
    /// as `layers.3.weight`. Empty for the outermost value.
    pub fn path(&self) -> String {
        let mut path = String::new();
        for segment in self.0.path.iter().rev() {
            if !path.is_empty() {
                path.push('.');
            }
            match segment {
                PathPart::Field(name) => path.push_str(name),
                PathPart::Index(index) => path.push_str(&index.to_string()),
            }
        }
        path
    }
}

/// The name of a file between backticks. Control characters are escaped because they must not reach a
/// terminal. Nothing else is escaped, so that the name can be copied.
pub(crate) fn shown(file: &Path) -> String {
    let mut name = String::from("`");
    for char in file.to_string_lossy().chars() {
        if char.is_control() {
            name.extend(char.escape_default());
        } else {
            name.push(char);
        }
    }
    name.push('`');
    name
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        WithoutAdvice(self).fmt(f)?;
        self.0.advice.map_or(Ok(()), |advice| write!(f, "; {advice}"))
    }
}

struct WithoutAdvice<'a>(&'a Error);

impl fmt::Display for WithoutAdvice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(error) = self;
        f.write_str(&error.message())?;
        if !error.0.path.is_empty() {
            // Keys come from the input, and their control characters must not reach a terminal.
            write!(f, " at `{}`", error.path().escape_debug())?;
        }
        if let Some(offset) = error.0.offset {
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
            Reason::Io(error) | Reason::IoAt(_, error) => Some(error),
            Reason::Other(..) => match &self.0.cause {
                Some(cause) => Some(&**cause),
                None => None,
            },
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::io(error)
    }
}

/// The kind is that of the I/O error, `NotFound` for [`Category::NotFound`], `UnexpectedEof` for [`Category::Eof`] and
/// [`Category::Torn`], `Unsupported` for [`Category::Unsupported`] and [`Category::Version`], and otherwise `InvalidData`.
impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = error.io_error_kind().unwrap_or(match error.category() {
            Category::NotFound => io::ErrorKind::NotFound,
            Category::Eof | Category::Torn => io::ErrorKind::UnexpectedEof,
            Category::Unsupported | Category::Version => io::ErrorKind::Unsupported,
            _ => io::ErrorKind::InvalidData,
        });
        io::Error::new(kind, error)
    }
}

thread_local! {
    /// The error that [`Error::through`] passes.
    static PASSED: Cell<Option<Error>> = const { Cell::new(None) };
}

impl serde::ser::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        PASSED.take().unwrap_or_else(|| Self::data(message.to_string()))
    }
}

impl serde::de::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        <Self as serde::ser::Error>::custom(message)
    }

    #[cold]
    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::of_type(&de::value::Error::invalid_type(found, expected))
    }

    #[cold]
    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::of_type(&de::value::Error::invalid_value(found, expected))
    }

    #[cold]
    fn invalid_length(len: usize, expected: &dyn Expected) -> Self {
        Self::of_type(&de::value::Error::invalid_length(len, expected))
    }

    #[cold]
    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Self::of_type(&de::value::Error::unknown_variant(variant, expected))
    }

    #[cold]
    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self::of_type(&de::value::Error::unknown_field(field, expected))
    }

    #[cold]
    fn missing_field(field: &'static str) -> Self {
        Self::of_type(&de::value::Error::missing_field(field))
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
