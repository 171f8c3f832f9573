//! How a run ends: exit statuses and error messages. They are those of the command `tenarc`.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write as _};

use datafusion::arrow::error::ArrowError;
use datafusion::common::DataFusionError;
use tenarc::error::Category;

/// The exit status if a file is damaged.
const DAMAGED: u8 = 1;
/// The exit status after any other error.
const FAILED: u8 = 2;
/// The exit status if the reader of the output closed the pipe: 128 plus the number of SIGPIPE, as in shells.
const CLOSED: u8 = 141;

/// The exit statuses, for the help.
pub const EXIT_STATUSES: &str = "\
Exit status:
  0    success
  1    a file is damaged
  2    wrong command line or query, a file that cannot be read or written, or something that does not exist
  141  the reader of the output closed the pipe";

/// The reason why a run failed.
#[derive(Debug)]
pub struct Failure {
    pub message: String,
    pub status: u8,
}

impl Failure {
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), status: FAILED }
    }

    /// Appends what the user can do.
    #[must_use]
    pub fn with_hint(mut self, hint: &str) -> Self {
        self.message = format!("{}; {hint}", self.message);
        self
    }

    pub fn print(&self) {
        if self.status != CLOSED {
            say(&self.message);
        }
    }
}

impl From<&tenarc::Error> for Failure {
    fn from(error: &tenarc::Error) -> Self {
        let is_damage = matches!(error.category(), Category::Damaged | Category::Torn);
        Self { message: error.to_string(), status: if is_damage { DAMAGED } else { FAILED } }
    }
}

impl From<tenarc::Error> for Failure {
    fn from(error: tenarc::Error) -> Self {
        Self::from(&error)
    }
}

impl From<DataFusionError> for Failure {
    fn from(error: DataFusionError) -> Self {
        let mut cause: Option<&dyn std::error::Error> = Some(&error);
        while let Some(found) = cause {
            if let Some(error) = found.downcast_ref::<tenarc::Error>() {
                return error.into();
            }
            cause = found.source();
        }
        match error.find_root() {
            DataFusionError::SQL(error, _) => Self::new(error.to_string()),
            error @ DataFusionError::ResourcesExhausted(_) => {
                Self::new(error.message()).with_hint("--memory gives a query more")
            }
            error => Self::new(error.message()),
        }
    }
}

impl From<ArrowError> for Failure {
    fn from(error: ArrowError) -> Self {
        DataFusionError::from(error).into()
    }
}

/// Errors of standard output, and of the threads that run a query.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let status = if error.kind() == io::ErrorKind::BrokenPipe { CLOSED } else { FAILED };
        Self { message: error.to_string(), status }
    }
}

/// Prints a message to standard error.
pub fn say(message: &str) {
    // If standard error is closed, there is no other place for the message.
    let _ = writeln!(io::stderr(), "tenarc-query: {}", escaped(message));
}

/// Makes text safe to print: escapes characters other than line feeds that could move the cursor, change colours or change
/// the direction of writing.
pub fn escaped(text: &str) -> Cow<'_, str> {
    replaced(text, |char, safe| safe.extend(char.escape_default()))
}

/// Escapes the same characters in JSON, where they can only be in texts.
pub fn escaped_json(json: &str) -> Cow<'_, str> {
    replaced(json, |char, safe| {
        for unit in char.encode_utf16(&mut [0; 2]) {
            // Writing to a string cannot fail.
            let _ = write!(safe, "\\u{unit:04x}");
        }
    })
}

fn replaced(text: &str, escape: impl Fn(char, &mut String)) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for char in text.chars() {
        if is_unsafe(char) { escape(char, &mut safe) } else { safe.push(char) }
    }
    Cow::Owned(safe)
}

/// Whether a character is a control character, or an invisible one that can change how other text looks.
fn is_unsafe(char: char) -> bool {
    char.is_control() && char != '\n'
        || matches!(char,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}
