//! How a run ends: exit statuses and error messages.

use std::error::Error as _;
use std::fmt;
use std::io;
use std::process::ExitCode;

use tenarc::error::{Advice, Category};
use tenarc_convert::Losses;

/// The result of a run. Its errors, if any, are already printed. A worse status compares as greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// Success; `diff` found no difference, `verify` no damage.
    Good,
    /// Differences or damage were found.
    Found,
    /// One of several inputs could not be read.
    Failed,
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> Self {
        Self::from(match status {
            Status::Good => 0,
            Status::Found => 1,
            Status::Failed => FAILED,
        })
    }
}

/// The exit status after an error.
const FAILED: u8 = 2;
/// The exit status if the reader of the output closed the pipe: 128 plus the number of SIGPIPE, as in shells.
const CLOSED: u8 = 141;

/// The exit statuses, for the help and the manual page.
pub const EXIT_STATUSES: &str = "\
Exit status:
  0    success; for diff, the files are the same
  1    differences or damage were found
  2    wrong command line, a file that cannot be read, checked or written, or something that does not exist
  141  the reader of the output closed the pipe";

/// The reason why a run failed.
#[derive(Clone, Debug)]
pub struct Failure {
    pub kind: Kind,
    message: String,
    /// The offset in the input at which the error occurred, if it is known.
    pub offset: Option<u64>,
    /// Whether the error is about the output. Its message then names the output, not an input.
    of_output: bool,
}

/// The kind of a failure, which decides the exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The reader of the output closed the pipe.
    Closed,
    /// The input is damaged or truncated.
    Damage,
    /// A file cannot be read or written.
    Io,
    /// The input needs more memory, or another resource, than the limits allow.
    Limit,
    /// The input has a version or a part of its format that is not supported.
    Unsupported,
    /// Something would be lost. `tenarc convert --lossy` accepts the loss.
    Loss,
    /// Anything else.
    Other,
}

impl Kind {
    fn of(category: Category) -> Self {
        match category {
            Category::Damaged | Category::Torn => Self::Damage,
            Category::Io => Self::Io,
            Category::Limit => Self::Limit,
            Category::Version | Category::Unsupported => Self::Unsupported,
            _ => Self::Other,
        }
    }

    /// The exit status of a failure of this kind. `None` if the output was closed.
    fn status(self) -> Option<Status> {
        match self {
            Self::Closed => None,
            Self::Damage => Some(Status::Found),
            Self::Io | Self::Limit | Self::Unsupported | Self::Loss | Self::Other => {
                Some(Status::Failed)
            }
        }
    }
}

pub type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    pub fn new(message: impl Into<String>) -> Self {
        Self::of_kind(Kind::Other, message)
    }

    pub fn damage(message: impl Into<String>) -> Self {
        Self::of_kind(Kind::Damage, message)
    }

    pub fn closed() -> Self {
        Self::of_kind(Kind::Closed, "the output was closed")
    }

    pub fn of_kind(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), offset: None, of_output: false }
    }

    /// Puts `what` (a file or a path) in front of the message, unless the message names it already or is about the
    /// output.
    #[must_use]
    pub fn of(mut self, what: &str) -> Self {
        // The library puts the names of files between backticks.
        let named =
            |message: &str| message.starts_with(what) || message.contains(&format!("`{what}`"));
        if !self.of_output && self.kind != Kind::Closed && !named(&self.message) {
            self.message = format!("{what}: {}", self.message);
        }
        self
    }

    /// Like [`of`](Self::of), for the name of the output. The failure is marked as one of the output.
    #[must_use]
    pub fn of_output(self, name: &str) -> Self {
        Self { of_output: true, ..self.of(name) }
    }

    /// Appends a hint about what the user can do.
    #[must_use]
    pub fn with_hint(mut self, hint: &str) -> Self {
        self.message.push_str(hint);
        self
    }

    pub fn status(&self) -> ExitCode {
        self.kind.status().map_or(CLOSED.into(), Into::into)
    }

    /// Returns the status of a run with several inputs after one of them failed in this way. `None` means that the run
    /// must stop, because the failure is about the output.
    pub fn of_one_input(&self) -> Option<Status> {
        self.kind.status().filter(|_| !self.of_output)
    }

    /// Converts an error of the library that occurred while a value was read from an input and written to the output of
    /// this name. An I/O error is about the output unless it is marked as an error of an input.
    pub fn while_writing(error: tenarc::Error, output: &str) -> Self {
        let source = error.source().and_then(|source| source.downcast_ref::<io::Error>());
        let of_output = source.is_some_and(|source| !is::<OfInput>(source));
        let failure = Self::from(error);
        if of_output { failure.of_output(output) } else { failure }
    }

    /// Converts the failure to an error of the library, for callbacks that must return one.
    pub fn into_library(self) -> tenarc::Error {
        // The message contains the offset already.
        let Self { kind, message, of_output, .. } = self;
        match kind {
            Kind::Damage => tenarc::Error::damaged(message),
            Kind::Io if of_output => tenarc::Error::io(io::Error::other(OfOutput(message))),
            Kind::Io => tenarc::Error::io(io::Error::other(OfInput(message))),
            Kind::Closed => tenarc::Error::io(io::Error::new(io::ErrorKind::BrokenPipe, message)),
            Kind::Limit => tenarc::Error::limit(message),
            Kind::Unsupported => tenarc::Error::unsupported(message),
            Kind::Loss => tenarc::Error::data(message).with_source(OfLoss),
            Kind::Other => tenarc::Error::data(message),
        }
    }
}

/// An I/O error of the output. Its message names the output.
#[derive(Debug)]
pub struct OfOutput(String);

impl OfOutput {
    /// Creates a write error of the output of this name.
    pub fn error(error: &io::Error, name: &str) -> io::Error {
        let message = error.to_string();
        let named = message.contains(&format!("`{name}`")) || message.starts_with(name);
        let message = if named { message } else { format!("{name}: {message}") };
        io::Error::new(error.kind(), Self(message))
    }
}

/// An I/O error of an input.
#[derive(Debug)]
pub struct OfInput(pub String);

/// Marks an error as a loss that the user did not accept.
#[derive(Debug)]
struct OfLoss;

impl fmt::Display for OfLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("losses are not accepted")
    }
}

impl std::error::Error for OfLoss {}

fn is_loss(error: &tenarc::Error) -> bool {
    error.source().is_some_and(<dyn std::error::Error>::is::<OfLoss>)
}

fn is<E: std::error::Error + 'static>(error: &io::Error) -> bool {
    error.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<E>)
}

impl fmt::Display for OfInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for OfInput {}

impl fmt::Display for OfOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for OfOutput {}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Returns an error of the library as text. Its advice for programmers is replaced by advice for users of the command.
pub fn for_users(error: &tenarc::Error) -> String {
    let message = error.without_advice();
    let Some(advice) = error.advice() else { return message.to_string() };
    let advice = match advice {
        Advice::MaxAlloc => "--max-memory sets another limit",
        Advice::NoChecksums => "--no-verify reads without verifying",
        Advice::OpenTorn => "--torn reads the complete values",
        Advice::Recover => "--torn reads the complete values, `tenarc recover` cuts off the rest",
        Advice::Salvage => {
            "--torn reads the complete tensors of a cut value, and `tenarc recover -o` writes them to another file"
        }
        other => return format!("{message}; {other}"),
    };
    format!("{message}; {advice}")
}

impl From<tenarc::Error> for Failure {
    fn from(error: tenarc::Error) -> Self {
        let source = error.source().and_then(|source| source.downcast_ref::<io::Error>());
        let kind = match source.map(io::Error::kind) {
            Some(io::ErrorKind::BrokenPipe) => return Self::closed(),
            _ if Losses::of(&error).is_some() || is_loss(&error) => Kind::Loss,
            _ => Kind::of(error.category()),
        };
        let of_output = source.is_some_and(is::<OfOutput>);
        Self { kind, message: for_users(&error), offset: error.offset(), of_output }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::closed(),
            _ => {
                let of_output = is::<OfOutput>(&error);
                Self { of_output, ..Self::of_kind(Kind::Io, error.to_string()) }
            }
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        match error.io_error_kind() {
            Some(_) => io::Error::from(error).into(),
            None => Self::new(error.to_string()),
        }
    }
}

/// Adds to an error the file or path that it is about.
pub trait Of<T> {
    /// Puts `what` in front of the error's message; see [`Failure::of`].
    ///
    /// # Errors
    /// If `self` is an error.
    fn of(self, what: impl fmt::Display) -> Result<T>;
}

impl<T, E: Into<Failure>> Of<T> for std::result::Result<T, E> {
    fn of(self, what: impl fmt::Display) -> Result<T> {
        self.map_err(|error| error.into().of(&what.to_string()))
    }
}
