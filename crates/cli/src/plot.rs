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

impl Graphics {
    /// Chooses by what the environment says of the terminal. If the output is none, characters are chosen.
    fn chosen(self, out: &Out) -> Self {
        if self != Self::Auto {
            return self;
        }
        if out.width().is_none() || !out.is_coloured() {
            return Self::Blocks;
        }
        let variable = |name: &str| std::env::var(name).unwrap_or_default().to_ascii_lowercase();
        let (term, program) = (variable("TERM"), variable("TERM_PROGRAM"));
        // tmux and screen pass on neither without being told to.
        if term.starts_with("screen") || term.starts_with("tmux") {
            Self::Blocks
        } else if term.contains("kitty") || ["ghostty", "wezterm"].contains(&&*program) {
            Self::Kitty
        } else if ["foot", "mlterm"].iter().any(|name| term.starts_with(name)) {
            Self::Sixel
        } else {
            Self::Blocks
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
        let graphics = graphics.chosen(out);
        if self.dims.is_empty() || self.dims.contains(&0) {
            return Ok(());
        }
        if let &[len] = self.dims {
            let mut trace = Trace::new(len, width);
            self.each(blocks, &mut |number| trace.push(number))?;
            return trace.print(out);
        }
        let (most, largest) = match graphics {
            Graphics::Blocks if out.is_coloured() => ((width, 48), 4),
            // A pixel is two characters wide, so that it is about a square.
            Graphics::Blocks | Graphics::Auto => ((width / 2, 24), 2),
            Graphics::Kitty | Graphics::Sixel => ((640, 480), 16),
        };
        let may_be_image = *self.dtype == DType::U8;
        let mut grid = Grid::new(self.dims, self.order, may_be_image, most, largest);
        self.each(blocks, &mut |number| grid.push(number))?;
        let drawn = grid.drawn();
        match graphics {
            Graphics::Kitty => pixels::kitty(&drawn.pixels, out)?,
            Graphics::Sixel => pixels::sixel(&drawn.pixels, out)?,
            Graphics::Blocks | Graphics::Auto if out.is_coloured() => {
                pixels::blocks(&drawn.pixels, Palette::of_terminal(), out)?;
            }
            Graphics::Blocks | Graphics::Auto => pixels::shades(&drawn, out)?,
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
