//! The colours of numbers: the same as in the viewer.

/// Red, green and blue.
pub type Colour = [u8; 3];

/// For numbers below and above zero: blue, white at zero, red.
const DIVERGING: [Colour; 5] =
    [[33, 82, 156], [106, 155, 208], [244, 243, 240], [224, 132, 100], [160, 40, 44]];
/// From dark to light, readable without colours too.
const SEQUENTIAL: [Colour; 5] =
    [[30, 22, 60], [58, 76, 140], [38, 130, 142], [94, 190, 110], [246, 228, 80]];

/// Colours for characters, as terminals can show them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Palette {
    /// All colours.
    Full,
    /// The 216 colours that have six steps of red, of green and of blue (xterm's numbers 16 to 231).
    Cube,
}

impl Palette {
    /// Chooses by the variable `COLORTERM`, which terminals with all colours set.
    pub fn of_terminal() -> Self {
        match std::env::var("COLORTERM").as_deref() {
            Ok("truecolor" | "24bit") => Self::Full,
            _ => Self::Cube,
        }
    }

    /// Returns the sequence that sets the colour of characters, or the one behind them.
    pub fn sequence(self, is_behind: bool, colour: Colour) -> String {
        let kind = if is_behind { 48 } else { 38 };
        let [red, green, blue] = colour;
        match self {
            Self::Full => format!("\x1b[{kind};2;{red};{green};{blue}m"),
            Self::Cube => format!("\x1b[{kind};5;{}m", 16 + in_cube(colour)),
        }
    }
}

/// Returns the number of the nearest colour in a cube of six steps of red, of green and of blue.
pub fn in_cube(colour: Colour) -> usize {
    colour.iter().fold(0, |sum, &part| sum * 6 + (usize::from(part) * 5 + 127) / 255)
}

/// What the ends of a scale of colours stand for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    pub low: f64,
    pub high: f64,
    is_diverging: bool,
}

impl Range {
    /// Chooses a range for these numbers. The most extreme half percent at each end is left out, so that single ones do
    /// not hide the others. If there are numbers of both signs, zero is in the middle. `None` if no number is finite.
    pub fn of(numbers: impl Iterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = numbers.filter(|number| number.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let outer = sorted.len() / 200;
        let (low, high) = (*sorted.get(outer)?, *sorted.get(sorted.len() - 1 - outer)?);
        if low < 0.0 && high > 0.0 {
            let most = high.max(-low);
            return Some(Self { low: -most, high: most, is_diverging: true });
        }
        Some(Self { low, high, is_diverging: false })
    }

    /// Returns where a number is between the ends: from 0 to 1.
    pub fn place(&self, number: f64) -> f64 {
        // The difference of two large numbers may overflow.
        let width = self.high / 2.0 - self.low / 2.0;
        if width > 0.0 { ((number / 2.0 - self.low / 2.0) / width).clamp(0.0, 1.0) } else { 0.5 }
    }

    /// Returns the colour at a place from 0 to 1.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub fn colour(&self, place: f64) -> Colour {
        let colours = if self.is_diverging { &DIVERGING } else { &SEQUENTIAL };
        let at = place.clamp(0.0, 1.0) * 4.0;
        let first = (at as usize).min(3);
        let part = at - at.floor().min(3.0);
        let [from, to] = [first, first + 1].map(|at| colours.get(at).copied().unwrap_or_default());
        let mut mixed = from;
        for (mixed, to) in mixed.iter_mut().zip(to) {
            *mixed = (f64::from(*mixed) * (1.0 - part) + f64::from(to) * part).round() as u8;
        }
        mixed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_leaves_out_single_extremes() {
        let numbers = (0..1000).map(f64::from).chain([1e9, f64::NAN, f64::INFINITY]);
        let range = Range::of(numbers).unwrap();
        assert_eq!((range.low, range.high), (5.0, 995.0));
        assert_eq!((range.place(5.0), range.place(500.0), range.place(1e9)), (0.0, 0.5, 1.0));
        assert_eq!((range.colour(0.0), range.colour(1.0)), (SEQUENTIAL[0], SEQUENTIAL[4]));
        assert_eq!(Range::of([f64::NAN].into_iter()), None);
    }

    #[test]
    fn zero_is_white_among_numbers_of_both_signs() {
        let range = Range::of([-1.0, 0.5].into_iter()).unwrap();
        assert_eq!((range.low, range.high), (-1.0, 1.0));
        assert_eq!(range.colour(range.place(0.0)), DIVERGING[2]);
        assert_eq!(range.colour(range.place(-1.0)), DIVERGING[0]);
        assert_eq!(range.colour(range.place(1.0)), DIVERGING[4]);
        let range = Range::of([f64::MIN, f64::MAX].into_iter()).unwrap();
        assert!((range.place(0.0) - 0.5).abs() < 1e-12);
    }
}
