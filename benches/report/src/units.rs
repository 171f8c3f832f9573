//! Formats numbers for documents. They have two significant digits, because further digits change from run to run.

/// A number with two significant digits, or three if it is 100 or more.
pub fn two_digits(value: f64) -> String {
    let decimals = match value {
        v if v < 0.0995 => 3,
        v if v < 0.995 => 2,
        v if v < 9.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

/// A time in a suitable unit.
pub fn time(nanoseconds: u64) -> String {
    time_beside(nanoseconds, nanoseconds)
}

/// A time in the unit that suits the longest of the times beside it.
pub fn time_beside(nanoseconds: u64, longest: u64) -> String {
    let (one, unit) = unit_of(longest);
    let value = nanoseconds as f64 / one;
    format!("{} {unit}", if unit == "ns" { format!("{value:.0}") } else { two_digits(value) })
}

/// The unit that suits a time: in nanoseconds, and its name.
pub fn unit_of(nanoseconds: u64) -> (f64, &'static str) {
    match nanoseconds as f64 {
        v if v < 995.0 => (1.0, "ns"),
        v if v < 995e3 => (1e3, "µs"),
        v if v < 9_995e6 => (1e6, "ms"),
        _ => (1e9, "s"),
    }
}

pub fn milliseconds(nanoseconds: u64) -> String {
    two_digits(nanoseconds as f64 / 1e6)
}

/// A size in megabytes.
pub fn megabytes(bytes: u64) -> String {
    format!("{} MB", two_digits(bytes as f64 / 1e6))
}

/// A ratio with its significant digits.
pub fn times(ratio: f64) -> String {
    match ratio {
        r if r < 0.001 => "<0.001".to_string(),
        r if r < 0.01 => format!("{r:.3}"),
        r if r < 10.0 => format!("{r:.2}"),
        r if r < 100.0 => format!("{r:.1}"),
        r => format!("{r:.0}"),
    }
}

/// Formats 12345678 as 12,345,678.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_two_digits_and_a_unit() {
        for (nanoseconds, expected) in [
            (0, "0 ns"),
            (87, "87 ns"),
            (994, "994 ns"),
            (996, "1.0 µs"),
            (9_540, "9.5 µs"),
            (85_400, "85 µs"),
            (219_600, "220 µs"),
            (8_910_000, "8.9 ms"),
            (369_200_000, "369 ms"),
            (1_234_000_000, "1234 ms"),
            (12_340_000_000, "12 s"),
        ] {
            assert_eq!(time(nanoseconds), expected);
        }
        assert_eq!(time_beside(258_000, 11_000_000), "0.26 ms");
        assert_eq!(megabytes(30_182_620), "30 MB");
        assert_eq!(megabytes(346_167), "0.35 MB");
        assert_eq!(milliseconds(404_123), "0.40");
        assert_eq!(milliseconds(36_700), "0.037");
        assert_eq!(milliseconds(994_000), "0.99");
        assert_eq!(milliseconds(996_000), "1.0");
    }
}
