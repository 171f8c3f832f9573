//! Averages the elements of a tensor over the cells of a grid.

use tenarc::tensor::Order;

use super::colours::{Colour, Palette, Range};
use super::pixels::Pixels;
use crate::output::Out;
use crate::text::brief;

/// The means of the elements that fall on each cell.
pub struct Grid {
    /// Rows, columns and channels of the tensor, and rows and columns of the grid.
    from: [usize; 3],
    to: [usize; 2],
    /// How many pixels a cell is wide and high.
    scale: usize,
    axes: Vec<Axis>,
    cells: Vec<Mean>,
}

/// An axis, the one that varies fastest in memory first.
struct Axis {
    len: usize,
    at: usize,
    /// Which of rows, columns and channels it belongs to, and how many of these one step is.
    part: usize,
    step: usize,
}

#[derive(Clone, Copy, Default)]
struct Mean {
    mean: f64,
    count: u64,
}

impl Mean {
    #[allow(clippy::cast_precision_loss)]
    fn push(&mut self, number: f64) {
        self.count += 1;
        // Both are divided before subtracting, because the difference of two large numbers may overflow.
        let count = self.count as f64;
        self.mean += number / count - self.mean / count;
    }

    fn get(self) -> Option<f64> {
        (self.count > 0).then_some(self.mean)
    }
}

/// A picture, and what its colours stand for.
pub struct Drawn {
    pub pixels: Pixels,
    /// Where the number of each pixel is between the ends of the range. `None` if no element is finite.
    pub places: Vec<Option<f64>>,
    range: Option<Range>,
    has_missing: bool,
}

impl Grid {
    /// Creates a grid with at most so many pixels from left to right and from top to bottom, of which an element is at most
    /// `largest` wide and high. There are at least two `dims`, and none is zero.
    pub fn new(
        dims: &[usize],
        order: Order,
        may_be_image: bool,
        most: (usize, usize),
        largest: usize,
    ) -> Self {
        let is_image = may_be_image && matches!(dims, [_, _, 3 | 4]);
        let last = dims.len() - 1 - usize::from(is_image);
        let mut from = [1; 3];
        let mut axes = Vec::with_capacity(dims.len());
        for (at, &len) in dims.iter().enumerate().rev() {
            let part = if at < last { 0 } else { 1 + at - last };
            let size = from.get_mut(part).map(|size| std::mem::replace(size, *size * len));
            axes.push(Axis { len, at: 0, part, step: size.unwrap_or(1) });
        }
        if order == Order::F {
            axes.reverse();
        }
        let [rows, columns, channels] = from;
        let to = [rows.min(most.1.max(1)), columns.min(most.0.max(1))];
        let [height, width] = to;
        let scale = (most.0 / width).min(most.1 / height).clamp(1, largest);
        let cells = vec![Mean::default(); height * width * channels];
        Self { from, to, scale, axes, cells }
    }

    /// Adds the next element in the order of memory. One that is not finite is left out.
    pub fn push(&mut self, number: f64) {
        let mut at = [0; 3];
        for axis in &self.axes {
            if let Some(at) = at.get_mut(axis.part) {
                *at += axis.at * axis.step;
            }
        }
        for axis in &mut self.axes {
            axis.at += 1;
            if axis.at < axis.len {
                break;
            }
            axis.at = 0;
        }
        let cell = |at: usize, from: usize, to: usize| {
            if from == to { at } else { (at as u128 * to as u128 / from as u128) as usize }
        };
        let ([rows, columns, channels], [height, width]) = (self.from, self.to);
        let (row, column) = (cell(at[0], rows, height), cell(at[1], columns, width));
        let cell = (row * width + column) * channels + at[2];
        if let Some(mean) = self.cells.get_mut(cell).filter(|_| number.is_finite()) {
            mean.push(number);
        }
    }

    /// Colours the cells.
    pub fn drawn(self) -> Drawn {
        let ([_, _, channels], [height, width]) = (self.from, self.to);
        let numbers = || self.cells.iter().filter_map(|cell| cell.get());
        let range = if channels == 1 { Range::of(numbers()) } else { None };
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let byte = |cell: &Mean| cell.mean.round() as u8;
        let cells = self.cells.chunks_exact(channels).map(|cell| match (cell, &range) {
            ([red, green, blue, ..], _) => {
                let sum: f64 = [red, green, blue].iter().map(|cell| cell.mean).sum();
                Some((sum / 765.0, [red, green, blue].map(byte)))
            }
            ([cell, ..], Some(range)) => cell.get().map(|number| {
                let place = range.place(number);
                (place, range.colour(place))
            }),
            _ => None,
        });
        let cells: Vec<Option<(f64, Colour)>> = cells.collect();
        let pixel = |at: usize| {
            let (row, column) = (at / (width * self.scale), at % (width * self.scale));
            cells.get(row / self.scale * width + column / self.scale).copied().flatten()
        };
        let count = width * height * self.scale * self.scale;
        let colours = (0..count).map(|at| pixel(at).map(|(_, colour)| colour)).collect();
        Drawn {
            pixels: Pixels { width: width * self.scale, colours },
            places: (0..count).map(|at| pixel(at).map(|(place, _)| place)).collect(),
            has_missing: cells.contains(&None),
            range,
        }
    }
}

impl Drawn {
    /// Returns a line that says which numbers the colours are. `None` for an image.
    pub fn legend(&self, out: &Out) -> Option<String> {
        let Some(range) = self.range else {
            return self.has_missing.then(|| "no finite element".to_owned());
        };
        let scale: String = if out.is_coloured() {
            let palette = Palette::of_terminal();
            let step = |at: u32| palette.sequence(true, range.colour(f64::from(at) / 23.0)) + " ";
            (0..24).map(step).collect::<String>() + "\x1b[0m"
        } else {
            super::pixels::SHADES.iter().collect()
        };
        let missing = if self.has_missing { ", not finite: grey" } else { "" };
        Some(format!("{} {scale} {}{missing}", brief(range.low), brief(range.high)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(dims: &[usize], order: Order, numbers: &[f64], most: (usize, usize)) -> Drawn {
        let mut grid = Grid::new(dims, order, false, most, 4);
        for &number in numbers {
            grid.push(number);
        }
        grid.drawn()
    }

    #[test]
    fn the_order_of_memory_does_not_matter() {
        let dims = [2, 3, 4];
        let numbers: Vec<f64> = (0..24).map(f64::from).collect();
        let mut transposed = Vec::new();
        for c in 0..4 {
            for b in 0..3 {
                for a in 0..2 {
                    transposed.push(f64::from(a * 12 + b * 4 + c));
                }
            }
        }
        let by_rows = places(&dims, Order::C, &numbers, (4, 6));
        let by_columns = places(&dims, Order::F, &transposed, (4, 6));
        assert_eq!(by_rows.pixels.width, 4);
        assert_eq!(by_rows.places, by_columns.places);
        assert_eq!(by_rows.places.first().copied().flatten(), Some(0.0));
        assert_eq!(by_rows.places.last().copied().flatten(), Some(1.0));
    }

    #[test]
    fn cells_are_means_of_what_is_finite() {
        let numbers = [1.0, f64::NAN, 5.0, 7.0, f64::NAN, f64::NAN, 1.0, 3.0];
        // The means are 1 and 6; none and 2.
        let drawn = places(&[2, 4], Order::C, &numbers, (2, 2));
        assert_eq!(drawn.places, [Some(0.0), Some(1.0), None, Some(0.2)]);
        assert!(drawn.has_missing);
        let large = places(&[1, 2], Order::C, &[f64::MAX, f64::MIN], (1, 1));
        assert_eq!(large.range.map(|range| range.low), Some(0.0));
    }

    #[test]
    fn small_tensors_are_enlarged_and_images_keep_their_colours() {
        let drawn = places(&[1, 2], Order::C, &[0.0, 1.0], (9, 9));
        assert_eq!((drawn.pixels.width, drawn.pixels.colours.len()), (8, 32));
        let mut grid = Grid::new(&[1, 2, 3], Order::C, true, (2, 1), 4);
        for byte in [1, 2, 3, 4, 5, 255] {
            grid.push(f64::from(byte));
        }
        let drawn = grid.drawn();
        assert_eq!(drawn.pixels.colours, [Some([1, 2, 3]), Some([4, 5, 255])]);
    }
}
