//! Draws pixels with characters, and by the two protocols that terminals have for pixels.

use std::collections::BTreeMap;
use std::io::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::colours::{Colour, Palette, in_cube};
use super::grid::Drawn;
use crate::failure::Result;

/// Shades from dark to light, for output without colours.
pub const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];

/// The colour of cells without a finite element.
const MISSING: Colour = [128, 128, 128];

/// A picture, row by row from the top. Without a colour, no element there is finite.
pub struct Pixels {
    pub width: usize,
    pub colours: Vec<Option<Colour>>,
}

impl Pixels {
    fn rows(&self) -> impl Iterator<Item = &[Option<Colour>]> {
        self.colours.chunks(self.width.max(1))
    }

    fn height(&self) -> usize {
        self.colours.len() / self.width.max(1)
    }
}

/// Draws two pixels in each character.
pub fn blocks(pixels: &Pixels, palette: Palette, out: &mut dyn Write) -> Result<()> {
    let mut rows = pixels.rows();
    while let Some(upper) = rows.next() {
        let lower = rows.next().unwrap_or_default();
        // The colours of the upper and of the lower half. Most neighbours have the same.
        let mut now = [None; 2];
        for (at, &upper) in upper.iter().enumerate() {
            let halves = [Some(upper), lower.get(at).copied()];
            for ((half, now), is_behind) in halves.into_iter().zip(&mut now).zip([false, true]) {
                let colour = half.map(|colour| colour.unwrap_or(MISSING));
                if let Some(colour) = colour.filter(|colour| Some(*colour) != *now) {
                    write!(out, "{}", palette.sequence(is_behind, colour))?;
                }
                *now = colour;
            }
            write!(out, "▀")?;
        }
        writeln!(out, "\x1b[0m")?;
    }
    Ok(())
}

/// Draws each pixel as two characters, the lighter the larger the number. A question mark is a cell without a finite element.
pub fn shades(drawn: &Drawn, out: &mut dyn Write) -> Result<()> {
    for row in drawn.places.chunks(drawn.pixels.width.max(1)) {
        for place in row {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let shade = place.map_or('?', |place| {
                SHADES.get((place * 5.0) as usize).copied().unwrap_or(SHADES[4])
            });
            write!(out, "{shade}{shade}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Draws by kitty's graphics protocol: RGB in base64, in commands of at most 4,096 bytes
/// (<https://sw.kovidgoyal.net/kitty/graphics-protocol/>).
pub fn kitty(pixels: &Pixels, out: &mut dyn Write) -> Result<()> {
    let bytes: Vec<u8> =
        pixels.colours.iter().flat_map(|colour| colour.unwrap_or(MISSING)).collect();
    let text = STANDARD.encode(bytes);
    let (width, height) = (pixels.width, pixels.height());
    let mut pieces = text.as_bytes().chunks(4096).peekable();
    let mut head = format!("a=T,f=24,s={width},v={height},");
    while let Some(piece) = pieces.next() {
        let more = u8::from(pieces.peek().is_some());
        write!(out, "\x1b_G{head}m={more};")?;
        out.write_all(piece)?;
        write!(out, "\x1b\\")?;
        head.clear();
    }
    writeln!(out)?;
    Ok(())
}

/// Draws by sixels: bands of six rows, and in each band the pixels of one colour after the other (DEC's VT330/VT340
/// Programmer Reference Manual, chapter 14). There are six steps of red, of green and of blue.
pub fn sixel(pixels: &Pixels, out: &mut dyn Write) -> Result<()> {
    let register = |colour: Option<Colour>| in_cube(colour.unwrap_or(MISSING));
    write!(out, "\x1bPq\"1;1;{};{}", pixels.width, pixels.height())?;
    for number in 0..216 {
        let percent = [number / 36, number / 6 % 6, number % 6].map(|step| step * 20);
        write!(out, "#{number};2;{};{};{}", percent[0], percent[1], percent[2])?;
    }
    for band in pixels.colours.chunks(pixels.width.max(1) * 6) {
        let mut masks: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
        for (row, colours) in band.chunks(pixels.width.max(1)).enumerate() {
            for (column, colour) in colours.iter().enumerate() {
                let mask = masks.entry(register(*colour)).or_insert_with(|| vec![0; pixels.width]);
                if let Some(mask) = mask.get_mut(column) {
                    *mask |= 1 << row;
                }
            }
        }
        for (number, mask) in &masks {
            write!(out, "#{number}")?;
            for run in mask.chunk_by(|left, right| left == right) {
                let six = char::from(b'?' + run.first().copied().unwrap_or(0));
                match run.len() {
                    len @ 0..4 => (0..len).try_for_each(|_| write!(out, "{six}"))?,
                    len => write!(out, "!{len}{six}")?,
                }
            }
            // Back to the start of the band.
            write!(out, "$")?;
        }
        write!(out, "-")?;
    }
    writeln!(out, "\x1b\\")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const RED: Option<Colour> = Some([255, 0, 0]);
    const BLACK: Option<Colour> = Some([0, 0, 0]);

    fn text(
        draw: impl Fn(&Pixels, &mut dyn Write) -> Result<()>,
        width: usize,
        colours: &[Option<Colour>],
    ) -> String {
        let mut out = Vec::new();
        draw(&Pixels { width, colours: colours.to_vec() }, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_character_has_two_pixels() {
        let red = "\x1b[38;2;255;0;0m";
        assert_eq!(
            text(|pixels, out| blocks(pixels, Palette::Full, out), 3, &[RED, RED, BLACK]),
            format!("{red}▀▀\x1b[38;2;0;0;0m▀\x1b[0m\n")
        );
        assert_eq!(
            text(|pixels, out| blocks(pixels, Palette::Full, out), 1, &[RED, BLACK, RED]),
            format!("{red}\x1b[48;2;0;0;0m▀\x1b[0m\n{red}▀\x1b[0m\n")
        );
    }

    #[test]
    fn terminals_with_few_colours_get_their_numbers() {
        let few = text(|pixels, out| blocks(pixels, Palette::Cube, out), 1, &[RED, BLACK]);
        assert_eq!(few, "\x1b[38;5;196m\x1b[48;5;16m▀\x1b[0m\n");
    }

    #[test]
    fn kitty_gets_pieces_of_4096_bytes() {
        assert_eq!(text(kitty, 1, &[RED, BLACK]), "\x1b_Ga=T,f=24,s=1,v=2,m=0;/wAAAAAA\x1b\\\n");
        let large = text(kitty, 64, &[RED; 64 * 32]);
        let pieces: Vec<&str> = large.split("\x1b_G").skip(1).collect();
        assert_eq!(pieces.len(), 2);
        assert!(pieces[0].starts_with("a=T,f=24,s=64,v=32,m=1;") && pieces[1].starts_with("m=0;"));
        assert!(
            pieces.iter().all(|piece| piece.split_once(';').unwrap().1.trim_end().len() <= 4098)
        );
    }

    #[test]
    fn sixels_are_columns_of_six_pixels() {
        let found = text(sixel, 5, &[[RED; 5], [BLACK; 5]].concat());
        let bands = found.split_once("#215;2;100;100;100").unwrap().1;
        // Five times the first row in red (register 180), and five times the second in black.
        assert_eq!(bands, "#0!5A$#180!5@$-\x1b\\\n");
    }
}
