//! Draws a curve with the dots of Braille: two by four in each character.

use std::fmt::Write as _;
use std::io::Write as _;

use crate::failure::Result;
use crate::output::Out;
use crate::text::brief;

/// The height of a curve in characters.
const HEIGHT: usize = 8;

/// The lowest and the highest of the numbers that fall on each column of dots.
pub struct Trace {
    len: usize,
    at: usize,
    columns: Vec<Option<(f64, f64)>>,
}

impl Trace {
    /// Creates a curve of this many numbers that takes at most `width` characters with its labels.
    pub fn new(len: usize, width: usize) -> Self {
        let columns = (width.saturating_sub(LABEL + 1) * 2).clamp(1, len.max(1));
        Self { len, at: 0, columns: vec![None; columns] }
    }

    /// Adds the next number. One that is not finite leaves a gap.
    pub fn push(&mut self, number: f64) {
        let column = self.at as u128 * self.columns.len() as u128 / self.len.max(1) as u128;
        self.at += 1;
        let column = usize::try_from(column).ok().and_then(|at| self.columns.get_mut(at));
        if let Some(column) = column.filter(|_| number.is_finite()) {
            let (low, high) = column.unwrap_or((number, number));
            *column = Some((low.min(number), high.max(number)));
        }
    }

    pub fn print(self, out: &mut Out) -> Result<()> {
        write!(out, "{}", self.text())?;
        Ok(())
    }

    fn text(&self) -> String {
        let ends = self.columns.iter().flatten().copied();
        let Some((low, high)) =
            ends.reduce(|(low, high), (least, most)| (low.min(least), high.max(most)))
        else {
            return "no finite element\n".to_owned();
        };
        let dots = HEIGHT * 4;
        // Rows of dots count from the top. Halves, because the difference of two large numbers may overflow.
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss
        )]
        let row = |number: f64| {
            let width = high / 2.0 - low / 2.0;
            let place = if width > 0.0 { (high / 2.0 - number / 2.0) / width } else { 0.5 };
            (place * (dots - 1) as f64).round() as usize
        };
        let mut cells = vec![vec![0u8; self.columns.len().div_ceil(2)]; HEIGHT];
        let mut before: Option<(usize, usize)> = None;
        for (column, ends) in self.columns.iter().enumerate() {
            let own = ends.map(|(low, high)| (row(high), row(low)));
            // A line leads from the column before to this one.
            let joined = own.map(|(top, bottom)| match before {
                Some((_, lowest)) if lowest < top => (lowest + 1, bottom),
                Some((highest, _)) if highest > bottom => (top, highest - 1),
                _ => (top, bottom),
            });
            for dot in joined.map_or(0..0, |(top, bottom)| top..bottom + 1) {
                let cell = cells.get_mut(dot / 4).and_then(|line| line.get_mut(column / 2));
                if let Some(cell) = cell {
                    *cell |= DOTS
                        .get(dot % 4)
                        .and_then(|pair| pair.get(column % 2))
                        .copied()
                        .unwrap_or(0);
                }
            }
            before = own;
        }
        let mut text = String::new();
        for (at, line) in cells.iter().enumerate() {
            let label = match at {
                0 => brief(high),
                _ if at + 1 == HEIGHT => brief(low),
                _ => String::new(),
            };
            let dots =
                line.iter().map(|&dots| char::from_u32(0x2800 + u32::from(dots)).unwrap_or(' '));
            let _ = write!(text, "{label:>LABEL$} ");
            text.extend(dots);
            text.push('\n');
        }
        text
    }
}

/// The characters of a label.
const LABEL: usize = 8;

/// The bits of the dots in a character of Braille: four rows of two (Unicode, chapter 21.1).
const DOTS: [[u8; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_from_the_lower_left_to_the_upper_right() {
        let mut trace = Trace::new(8, 80);
        for number in 0..8 {
            trace.push(f64::from(number));
        }
        let expected = "       7 ⠀⠀⠀⢸
         ⠀⠀⠀⡇
         ⠀⠀⢰⠁
         ⠀⠀⡎⠀
         ⠀⢠⠃⠀
         ⠀⡜⠀⠀
         ⢀⠇⠀⠀
       0 ⡸⠀⠀⠀
";
        assert_eq!(trace.text(), expected);
    }

    #[test]
    fn gaps_and_constants_are_drawn() {
        let mut trace = Trace::new(4, 80);
        for number in [1.0, f64::NAN, 1.0, f64::INFINITY] {
            trace.push(number);
        }
        let text = trace.text();
        let dots: u32 = text
            .chars()
            .filter(|char| ('\u{2801}'..='\u{28ff}').contains(char))
            .map(|char| (char as u32 - 0x2800).count_ones())
            .sum();
        assert_eq!(dots, 2, "{text}");
        let mut trace = Trace::new(2, 80);
        for number in [f64::NAN; 2] {
            trace.push(number);
        }
        assert_eq!(trace.text(), "no finite element\n");
    }
}
