//! How a run ends: exit statuses, and what is said of a failure.

use std::error::Error as _;
use std::fmt;
use std::io;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use tenarc::Category;

/// The exit status of a run that came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// All went well; what was compared is the same.
    Good,
    /// Differences, or damage, were found.
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

/// The status of a run that could not do what it was asked.
const FAILED: u8 = 2;
/// That of a run whose reader went away: 128 and the number of SIGPIPE, as shells have it.
const CLOSED: u8 = 141;

/// What the help says of them.
pub const EXIT_STATUSES: &str = "\
Exit status:
  0    all went well; what was compared is the same
  1    differences or damage were found
  2    the command line is wrong, a file cannot be read or written, or does not hold what was asked for
  141  whoever read the output went away";

/// Why a run ended before its time.
#[derive(Debug)]
pub enum Failure {
    /// Whoever read the output went away.
    Closed,
    /// Damage was found in what was read.
    Damage(String),
    /// Anything else.
    Other(String),
}

pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// Whether damage was found, which not every error that passes through other hands says any more.
static DAMAGE: AtomicBool = AtomicBool::new(false);

impl Failure {
    pub fn new(message: impl Into<String>) -> Self {
        Self::Other(message.into())
    }

    /// Says of what, unless the message begins with it.
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
                Self::Damage(error.to_string())
            }
            _ => Self::Other(error.to_string()),
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
            _ => Self::Other(error.to_string()),
        }
    }
}

/// Adds to a failure what it is about.
pub trait Of<T> {
    /// # Errors
    /// As before, with `what` in the message.
    fn of(self, what: impl fmt::Display) -> Result<T>;
}

impl<T, E: Into<Failure>> Of<T> for std::result::Result<T, E> {
    fn of(self, what: impl fmt::Display) -> Result<T> {
        self.map_err(|error| error.into().of(&what.to_string()))
    }
}
