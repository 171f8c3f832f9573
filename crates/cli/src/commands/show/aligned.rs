//! Formats numbers in columns, with their decimal points below each other, as numpy prints them.

use crate::elements::Element;

/// The number of digits after the point, as in numpy.
const PRECISION: usize = 8;

/// Returns the elements as texts of equal width. Without `full`, floats are rounded to a few digits. All floats have
/// exponents if one of them would have too many digits otherwise. Unlike numpy, they do not get exponents because some
/// are a thousand times larger than others.
pub fn texts(elements: &[Element], full: bool) -> Vec<String> {
    let scientific = elements.iter().any(|element| match element {
        Element::Float(value, _) => {
            let size = value.abs();
            size.is_finite() && size != 0.0 && !(1e-4..1e8).contains(&size)
        }
        _ => false,
    });
    let parts: Vec<Parts> =
        elements.iter().map(|element| Parts::of(*element, scientific, full)).collect();
    let longest = |part: fn(&Parts) -> usize| parts.iter().map(part).max().unwrap_or(0);
    let digits = longest(|parts| parts.fraction.len());
    let exponent = longest(|parts| parts.exponent.trim_start_matches('-').len()).max(2);
    let texts: Vec<String> = parts.iter().map(|parts| parts.text(digits, exponent)).collect();
    let width = texts.iter().map(|text| text.chars().count()).max().unwrap_or(0);
    texts.into_iter().map(|text| format!("{text:>width$}")).collect()
}

/// The parts of a number. An element that is not a finite float has only the first part.
struct Parts {
    whole: String,
    has_point: bool,
    fraction: String,
    /// The exponent. Empty if there is none.
    exponent: String,
}

impl Parts {
    fn of(element: Element, scientific: bool, full: bool) -> Self {
        let (value, bits) = match element {
            Element::Float(value, bits) if value.is_finite() => (value, bits),
            _ => return Self::parse(&element.text(), false),
        };
        #[allow(clippy::cast_possible_truncation)]
        let single = value as f32;
        let exact = match (scientific, bits == 64) {
            (true, true) => format!("{value:e}"),
            (true, false) => format!("{single:e}"),
            (false, true) => format!("{value}"),
            (false, false) => format!("{single}"),
        };
        let parts = Self::parse(&exact, true);
        if full || parts.fraction.len() <= PRECISION {
            return parts;
        }
        let rounded = if scientific {
            format!("{value:.PRECISION$e}")
        } else {
            format!("{value:.PRECISION$}")
        };
        let mut parts = Self::parse(&rounded, true);
        parts.fraction.truncate(parts.fraction.trim_end_matches('0').len());
        parts
    }

    fn parse(text: &str, has_point: bool) -> Self {
        if !has_point {
            let (fraction, exponent) = (String::new(), String::new());
            return Self { whole: text.to_owned(), has_point, fraction, exponent };
        }
        let (number, exponent) = text.split_once('e').unwrap_or((text, ""));
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let [whole, fraction, exponent] = [whole, fraction, exponent].map(str::to_owned);
        Self { whole, has_point, fraction, exponent }
    }

    /// Returns the number with this many digits after the point. Missing digits are filled with spaces, or with zeros
    /// before an exponent.
    fn text(&self, digits: usize, exponent_digits: usize) -> String {
        let Self { whole, has_point, fraction, exponent } = self;
        match (has_point, exponent.strip_prefix('-')) {
            (false, _) => whole.clone(),
            (true, None) if exponent.is_empty() => format!("{whole}.{fraction:digits$}"),
            (true, None) => format!("{whole}.{fraction:0<digits$}e+{exponent:0>exponent_digits$}"),
            (true, Some(small)) => {
                format!("{whole}.{fraction:0<digits$}e-{small:0>exponent_digits$}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(values: &[f64], bits: u8) -> String {
        let elements: Vec<Element> =
            values.iter().map(|value| Element::Float(*value, bits)).collect();
        format!("[{}]", texts(&elements, false).join(" "))
    }

    /// Compares with what numpy 2 prints for the same arrays. Only the name of NaN differs.
    #[test]
    fn aligns_as_numpy_does() {
        let single = |values: &[f32]| {
            let values: Vec<f64> = values.iter().map(|value| f64::from(*value)).collect();
            line(&values, 32)
        };
        assert_eq!(single(&[0.1, 0.25, 1.0, -12.5]), "[  0.1    0.25   1.   -12.5 ]");
        assert_eq!(single(&[0.123_456_79, 0.1]), "[0.12345679 0.1       ]");
        let thirds = [1.0 / 3.0, 1.5, 1000.0 / 3.0];
        assert_eq!(line(&thirds, 64), "[  0.33333333   1.5        333.33333333]");
        assert_eq!(line(&[1.0 / 3.0, 2.0, f64::NAN], 64), "[0.33333333 2.                NaN]");
        assert_eq!(line(&[1e-5, 1.25, 0.0], 64), "[1.00e-05 1.25e+00 0.00e+00]");
        let large = [1e8, -2.5e100, f64::INFINITY];
        assert_eq!(line(&large, 64), "[ 1.0e+008 -2.5e+100       inf]");
        let mixed = [1e-7, 2.5, 3.123_456_789e10, -4.0];
        let expected = "[ 1.00000000e-07  2.50000000e+00  3.12345679e+10 -4.00000000e+00]";
        assert_eq!(line(&mixed, 64), expected);
    }

    #[test]
    fn prints_all_digits_if_asked_for() {
        let third = [Element::Float(1.0 / 3.0, 64), Element::Float(0.5, 64)];
        assert_eq!(texts(&third, true), ["0.3333333333333333", "0.5               "]);
        let others = [Element::Int(-3), Element::Int(10)];
        assert_eq!(texts(&others, false), ["-3", "10"]);
    }
}
