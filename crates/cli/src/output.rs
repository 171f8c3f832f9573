//! Prints results to standard output, and messages to standard error.

use std::io::{self, BufWriter, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use serde::Serialize;

use crate::failure::{OfOutput, Result};
use crate::text::{escaped, is_unsafe};

/// The name of standard output in messages.
pub const STDOUT: &str = "standard output";

/// Standard output, for text.
pub struct Out {
    writer: BufWriter<io::Stdout>,
    coloured: bool,
    width: Option<usize>,
}

pub const HEADING: Style = Style::new().bold();
pub const DTYPE: Style = AnsiColor::Cyan.on_default();
pub const GOOD: Style = AnsiColor::Green.on_default();
pub const BAD: Style = AnsiColor::Red.on_default();
pub const FAINT: Style = Style::new().dimmed();

impl Out {
    /// Opens standard output. With `Auto`, colours are on if it is a terminal that supports them and `NO_COLOR` is not
    /// set.
    pub fn new(choice: ColorChoice) -> Self {
        let coloured = match choice {
            ColorChoice::Auto => AutoStream::choice(&io::stdout()) != ColorChoice::Never,
            other => other != ColorChoice::Never,
        };
        let terminal = console::Term::stdout();
        let size = if terminal.is_term() { terminal.size_checked() } else { None };
        let width = size.map(|(_, columns)| columns.into());
        let writer = BufWriter::with_capacity(64 << 10, io::stdout());
        Self { writer, coloured, width }
    }

    pub fn is_coloured(&self) -> bool {
        self.coloured
    }

    /// Returns the number of characters in a line of the terminal. `None` if the output is not a terminal: then lines
    /// may have any length, because other programs read them.
    pub fn width(&self) -> Option<usize> {
        self.width
    }

    /// Returns the number of characters in a line: that of the terminal, but at most `most`.
    pub fn line(&self, most: usize) -> usize {
        self.width().map_or(most, |width| width.min(most))
    }

    /// Returns the text in a style, if colours are on.
    pub fn styled(&self, style: Style, text: &str) -> String {
        if self.coloured { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    /// Prints a value as JSON on one line.
    ///
    /// # Errors
    /// If writing fails.
    pub fn json(&mut self, value: &impl Serialize) -> Result<()> {
        write_json(self, value)?;
        self.write_all(b"\n")?;
        Ok(())
    }

    /// Prints an array as JSON, with one line for each element.
    ///
    /// # Errors
    /// If writing fails.
    pub fn json_rows<T: Serialize>(&mut self, rows: impl IntoIterator<Item = T>) -> Result<()> {
        let mut lines = JsonLines::default();
        rows.into_iter().try_for_each(|row| lines.line(self, &row))?;
        lines.end(self)
    }
}

/// Writes a JSON array with one line for each element. Each element is written at once, so that the elements are not
/// collected in memory.
#[derive(Default)]
pub struct JsonLines {
    begun: bool,
}

impl JsonLines {
    /// Writes one element.
    ///
    /// # Errors
    /// If writing fails, or the element cannot be read.
    pub fn line(&mut self, out: &mut dyn Write, row: &impl Serialize) -> Result<()> {
        out.write_all(if self.begun { b",\n" } else { b"[\n" })?;
        self.begun = true;
        write_json(out, row)
    }

    /// Writes the end of the array.
    ///
    /// # Errors
    /// If writing fails.
    pub fn end(self, out: &mut dyn Write) -> Result<()> {
        out.write_all(if self.begun { b"\n]\n" } else { b"[]\n" })?;
        Ok(())
    }
}

/// Writes JSON that is safe to print on a terminal. It escapes every character that could control the terminal, even if
/// JSON allows that character.
fn write_json(writer: &mut dyn Write, value: &impl Serialize) -> Result<()> {
    value.serialize(&mut serde_json::Serializer::with_formatter(writer, Escaping))?;
    Ok(())
}

struct Escaping;

impl serde_json::ser::Formatter for Escaping {
    fn write_string_fragment<W: Write + ?Sized>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut units = [0; 2];
        for char in fragment.chars() {
            if is_unsafe(char) {
                for unit in char.encode_utf16(&mut units) {
                    write!(writer, "\\u{unit:04x}")?;
                }
            } else {
                write!(writer, "{char}")?;
            }
        }
        Ok(())
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes).map_err(|error| OfOutput::error(&error, STDOUT))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush().map_err(|error| OfOutput::error(&error, STDOUT))
    }
}

/// Whether `--quiet` was given. It silences notes and progress bars.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Silences notes and progress bars.
pub fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

pub fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Prints a message to standard error.
pub fn say(message: &str) {
    // If standard error is closed, there is no other place for the message.
    let _ = writeln!(io::stderr(), "tenarc: {}", escaped(message));
}
