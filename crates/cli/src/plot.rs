//! Pictures of tensors and histograms for terminals.

mod bars;
mod colours;
mod grid;
mod pixels;
mod trace;

use std::io::Write;

use clap::ValueEnum;
use tenarc::DType;
use tenarc::tensor::Order;

use crate::elements::{Blocks, Numbers};
use crate::failure::Result;
use crate::output::Out;
pub use bars::{bars, line};
use colours::Palette;
use grid::Grid;
use trace::Trace;

/// Pictures are no wider than this, and than the terminal.
pub const WIDTH: usize = 80;

/// How pictures are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Graphics {
    /// As the terminal can: pixels in `kitty`, Ghostty, `WezTerm`, foot and `mlterm`, otherwise characters
    Auto,
    /// With characters
    Blocks,
    /// With pixels, by kitty's graphics protocol
    Kitty,
    /// With pixels, by sixels
    Sixel,
}

/// What pictures are made of.
enum Canvas {
    /// Pixels, by kitty's graphics protocol.
    Kitty,
    /// Pixels, by sixels.
    Sixel,
    /// Two colours in each character.
    Colours,
    /// Characters of different shades.
    Shades,
}

impl Graphics {
    fn canvas(self, out: &Out) -> Canvas {
        let characters = if out.is_coloured() { Canvas::Colours } else { Canvas::Shades };
        let is_terminal = out.is_coloured() && out.width().is_some();
        match self {
            Self::Kitty => Canvas::Kitty,
            Self::Sixel => Canvas::Sixel,
            Self::Auto if is_terminal => Canvas::of_terminal().unwrap_or(characters),
            Self::Auto | Self::Blocks => characters,
        }
    }
}

impl Canvas {
    /// Returns how the terminal draws pixels, by what the environment says of it. `None` if it draws none.
    fn of_terminal() -> Option<Self> {
        let variable = |name: &str| std::env::var(name).unwrap_or_default().to_ascii_lowercase();
        let (term, program) = (variable("TERM"), variable("TERM_PROGRAM"));
        let is_of = |names: [&str; 2]| names.iter().any(|name| term.starts_with(name));
        // tmux and screen pass on neither without being told to.
        if is_of(["screen", "tmux"]) {
            None
        } else if term.contains("kitty") || ["ghostty", "wezterm"].contains(&&*program) {
            Some(Self::Kitty)
        } else {
            is_of(["foot", "mlterm"]).then_some(Self::Sixel)
        }
    }
}

/// A tensor whose elements arrive in blocks, in the order of memory.
pub struct Picture<'a> {
    pub dtype: &'a DType,
    pub dims: &'a [usize],
    pub order: Order,
}

impl Picture<'_> {
    /// Draws the tensor. One dimension is a curve. Bytes of the shape `[height, width, 3]`, or with 4 channels, are an
    /// image. Everything else is a map of colours with the last axis from left to right, and all other axes from top to
    /// bottom.
    ///
    /// # Errors
    /// If reading or writing fails.
    pub fn draw(&self, graphics: Graphics, blocks: &mut Blocks<'_>, out: &mut Out) -> Result<()> {
        let width = out.line(WIDTH);
        if self.dims.is_empty() || self.dims.contains(&0) {
            return Ok(());
        }
        if let &[len] = self.dims {
            let mut trace = Trace::new(len, width);
            self.each(blocks, &mut |number| trace.push(number))?;
            return trace.print(out);
        }
        let canvas = graphics.canvas(out);
        let (most, largest) = match canvas {
            Canvas::Colours => ((width, 48), 4),
            // A pixel is two characters wide, so that it is about a square.
            Canvas::Shades => ((width / 2, 24), 2),
            Canvas::Kitty | Canvas::Sixel => ((640, 480), 16),
        };
        let may_be_image = *self.dtype == DType::U8;
        let mut grid = Grid::new(self.dims, self.order, may_be_image, most, largest);
        self.each(blocks, &mut |number| grid.push(number))?;
        let drawn = grid.drawn();
        match canvas {
            Canvas::Kitty => pixels::kitty(&drawn.pixels, out)?,
            Canvas::Sixel => pixels::sixel(&drawn.pixels, out)?,
            Canvas::Colours => pixels::blocks(&drawn.pixels, Palette::of_terminal(), out)?,
            Canvas::Shades => pixels::shades(&drawn, out)?,
        }
        if let Some(legend) = drawn.legend(out) {
            writeln!(out, "{legend}")?;
        }
        Ok(())
    }

    /// Calls `each` with all elements. Of a complex one, it is the absolute value.
    fn each(&self, blocks: &mut Blocks<'_>, each: &mut dyn FnMut(f64)) -> Result<()> {
        let is_complex = matches!(self.dtype, DType::C64 | DType::C128);
        let mut numbers = Numbers::new(self.dtype);
        blocks(&mut |block| {
            numbers.block(block, &mut |_, values| {
                if is_complex {
                    values.as_chunks().0.iter().for_each(|[re, im]| each(re.hypot(*im)));
                } else {
                    for &value in values {
                        each(value);
                    }
                }
            });
        })
    }
}
