//! Abbreviates the `Debug` output of arrays.

use std::fmt::{self, Write};

/// The maximum length of the output in bytes.
const MAX_LEN: usize = 2000;

/// The start of a value's `Debug` output, and `..` if there is more. The rest is not even formatted.
pub struct DebugStart<'a, T>(pub &'a T);

impl<T: fmt::Debug> fmt::Debug for DebugStart<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut start = Limited { text: String::new(), is_full: false };
        let formatted = if f.alternate() {
            write!(start, "{:#?}", self.0)
        } else {
            write!(start, "{:?}", self.0)
        };
        if formatted.is_ok() || !start.is_full {
            // The value is formatted again, because `f` may have more options, such as a precision.
            return self.0.fmt(f);
        }
        // Ends after a comma. A number that is cut in the middle would look like another number.
        let end = start.text.rfind(',').map_or(start.text.len(), |comma| comma + 1);
        write!(f, "{} ..", start.text.get(..end).unwrap_or_default())
    }
}

/// Stops formatting when the output reaches the maximum length.
struct Limited {
    text: String,
    is_full: bool,
}

impl Write for Limited {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.text.len() + text.len() > MAX_LEN {
            self.is_full = true;
            return Err(fmt::Error);
        }
        self.text.push_str(text);
        Ok(())
    }
}
