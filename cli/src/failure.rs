//! How a run ends: exit statuses and error messages.

use std::error::Error as _;
use std::fmt;
use std::io;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use tenarc::error::Category;

/// The result of a run without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Success; `diff` found no difference, `verify` no damage.
    Good,
    /// Differences or damage were found.
    Found,
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> Self {
        Self::from(match status {
            Status::Good => 0,
            Status::Found => 1,
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
  2    wrong command line, a file that cannot be read or written, or something that does not exist
  141  the reader of the output closed the pipe";

/// Why a run failed.
#[derive(Debug)]
pub enum Failure {
    /// The reader of the output closed the pipe.
    Closed,
    /// The input is damaged or truncated.
    Damage(String),
    /// Anything else.
    Other(String),
}

pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// Whether damage was found. An error that went through serde is only a text, and no longer says so itself.
static DAMAGE: AtomicBool = AtomicBool::new(false);

impl Failure {
    pub fn new(message: impl Into<String>) -> Self {
        Self::Other(message.into())
    }

    /// Puts `what` (a file or a path) in front of the message, unless the message names it already.
    #[must_use]
    pub fn of(self, what: &str) -> Self {
        let named = |message: String| {
            // The library names files between backticks.
            let there = message.starts_with(what) || message.contains(&format!("`{what}`"));
            if there { message } else { format!("{what}: {message}") }
        };
        match self {
            Self::Closed => Self::Closed,
            Self::Damage(message) => Self::Damage(named(message)),
            Self::Other(message) => Self::Other(named(message)),
        }
    }

    pub fn status(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Closed => CLOSED,
            Self::Damage(_) => 1,
            Self::Other(_) if DAMAGE.load(Ordering::Relaxed) => 1,
            Self::Other(_) => FAILED,
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("the output was closed"),
            Self::Damage(message) | Self::Other(message) => f.write_str(message),
        }
    }
}

/// What the library's messages recommend to programs, and what a user of the command can do instead.
const RECOMMENDED: [(&str, &str); 4] = [
    ("use DecodeOptions::with_checksums(false) to read", "use --no-verify to read"),
    ("open_torn reads", "--torn reads"),
    ("recover cuts off", "`tenarc recover` cuts off"),
    ("recover_to writes", "`tenarc recover -o` writes"),
];

/// A message of the library, with recommendations for users of the command.
pub fn for_users(error: &impl fmt::Display) -> String {
    let message = error.to_string();
    RECOMMENDED.iter().fold(message, |message, (program, user)| message.replace(program, user))
}

impl From<tenarc::Error> for Failure {
    fn from(error: tenarc::Error) -> Self {
        let closed = error
            .source()
            .and_then(|source| source.downcast_ref::<io::Error>())
            .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe);
        match error.category() {
            _ if closed => Self::Closed,
            Category::Damaged | Category::Torn => {
                DAMAGE.store(true, Ordering::Relaxed);
                Self::Damage(for_users(&error))
            }
            _ => Self::Other(for_users(&error)),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Other(error.to_string()),
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        match error.io_error_kind() {
            Some(io::ErrorKind::BrokenPipe) => Self::Closed,
            // An error of the library may have gone through serde.
            _ => Self::Other(for_users(&error)),
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
