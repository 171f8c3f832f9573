//! Formats texts and numbers for people.

use std::borrow::Cow;
use std::fmt::Write as _;

use strsim::osa_distance;

/// Makes text safe to print: escapes characters that could move the cursor, change colours or change the direction of
/// writing.
pub fn escaped(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for char in text.chars() {
        if is_unsafe(char) {
            safe.extend(char.escape_default());
        } else {
            safe.push(char);
        }
    }
    Cow::Owned(safe)
}

/// Returns whether a character is a control character, or an invisible character that can change how other text looks.
pub fn is_unsafe(char: char) -> bool {
    char.is_control()
        || matches!(char,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

/// Returns a text in quotes. Characters that are not safe to print are escaped.
pub fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for char in text.chars() {
        match char {
            '"' | '\\' => quoted.extend(['\\', char]),
            char if is_unsafe(char) => quoted.extend(char.escape_default()),
            char => quoted.push(char),
        }
    }
    quoted.push('"');
    quoted
}

/// Formats a number of bytes in a suitable unit, such as `1.5 MiB`.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    #[allow(clippy::cast_precision_loss)]
    let mut size = count as f64 / 1024.0;
    let mut unit = UNITS[0];
    for next in &UNITS[1..] {
        // A size that would round to 1024.0 is shown in the next unit.
        if size < 1023.95 {
            break;
        }
        size /= 1024.0;
        unit = next;
    }
    format!("{size:.1} {unit}")
}

/// Formats dimensions, such as `[2, 3]`.
pub fn shape(dims: &[usize]) -> String {
    let mut text = String::from("[");
    for (at, dim) in dims.iter().enumerate() {
        let comma = if at == 0 { "" } else { ", " };
        // Writing to a string cannot fail.
        let _ = write!(text, "{comma}{dim}");
    }
    text.push(']');
    text
}

/// Formats a float in few digits, for tables.
pub fn short(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value.is_nan() { "NaN".into() } else { format!("{value}") };
    }
    let size = value.abs();
    if !(1e-4..1e6).contains(&size) {
        return format!("{value:.3e}");
    }
    let text = format!("{value:.5}");
    let text = text.trim_end_matches('0');
    text.trim_end_matches('.').to_owned()
}

/// Formats a float in at most eight characters, for tables with many columns.
pub fn brief(value: f64) -> String {
    let size = value.abs();
    let digits = match size {
        _ if !value.is_finite() || value == 0.0 => return short(value),
        _ if !(1e-3..99_999.5).contains(&size) => {
            let text = format!("{value:.2e}");
            // With a three-digit exponent, there is no room for digits after the point.
            return if text.len() > 8 { format!("{value:.0e}") } else { text };
        }
        _ if size < 1.0 => 4,
        _ if size < 10.0 => 3,
        _ if size < 100.0 => 2,
        _ if size < 1000.0 => 1,
        _ => 0,
    };
    let text = format!("{value:.digits$}");
    match text.split_once('.') {
        Some(_) => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        None => text,
    }
}

/// Returns a number with a noun, which is in the plural if needed: `1 tensor`, `2 tensors`.
pub fn counted(count: u64, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

/// Returns the question whether the user meant the most similar name, as the end of a message. It is empty if no name is
/// similar: more than a third of the characters would have to be edited, as in the messages of the library.
pub fn nearest<'n>(wanted: &str, names: impl IntoIterator<Item = &'n str>) -> String {
    const MOST_NAMES: usize = 1000;
    const LONGEST: usize = 256;
    if wanted.len() > LONGEST {
        return String::new();
    }
    let len = wanted.chars().count();
    let most = (len.max(3) / 3).min(len.saturating_sub(1));
    let names = names.into_iter().take(MOST_NAMES).filter(|name| name.len() <= LONGEST);
    let edits = names.map(|name| (osa_distance(wanted, name), name));
    let nearest = edits.filter(|(edits, _)| (1..=most).contains(edits)).min_by_key(|found| found.0);
    nearest
        .map_or_else(String::new, |(_, name)| format!("; did you mean `{}`?", name.escape_debug()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_terminal_control_characters() {
        assert_eq!(escaped("weight.0"), "weight.0");
        assert_eq!(escaped("a\u{1b}[31mb"), "a\\u{1b}[31mb");
        assert_eq!(escaped("a\u{9b}b\u{202e}c\n"), "a\\u{9b}b\\u{202e}c\\n");
        assert_eq!(quoted("a\"\\\u{7}"), "\"a\\\"\\\\\\u{7}\"");
    }

    #[test]
    fn the_most_similar_name_is_named() {
        assert_eq!(nearest("wieght", ["bias", "weights", "weight"]), "; did you mean `weight`?");
        assert_eq!(nearest("weight", ["weight"]), "");
        assert_eq!(nearest("b", ["w"]), "");
        assert_eq!(nearest("head", ["heads.0.weight"]), "");
    }

    #[test]
    fn shows_sizes_and_numbers_in_few_digits() {
        assert_eq!(
            (bytes(0), bytes(1023), bytes(1024)),
            ("0 B".into(), "1023 B".into(), "1.0 KiB".into())
        );
        assert_eq!(bytes((1 << 20) - 1), "1.0 MiB");
        assert_eq!(bytes(u64::MAX), "16.0 EiB");
        assert_eq!(
            (short(0.5), short(-3.0), short(1e-7)),
            ("0.5".into(), "-3".into(), "1.000e-7".into())
        );
        assert_eq!((short(f64::NAN), short(f64::INFINITY)), ("NaN".into(), "inf".into()));
        assert_eq!(shape(&[2, 3]), "[2, 3]");
    }

    #[test]
    fn shows_numbers_in_at_most_eight_characters() {
        let pairs = [
            (0.0, "0"),
            (-0.001_234_5, "-0.0012"),
            (1.436_14, "1.436"),
            (-12.0, "-12"),
            (99_999.0, "99999"),
            (99_999.9, "1.00e5"),
            (-1.234_56e-7, "-1.23e-7"),
            (-9.223_372e18, "-9.22e18"),
            (-1e-300, "-1e-300"),
        ];
        for (value, text) in pairs {
            assert_eq!(brief(value), text);
            assert!(brief(value).len() <= 8, "{text}");
        }
    }
}
