//! The handwritten digits: images of 8 x 8 pixels from 0 to 16, with labels.

use std::error::Error;
use std::fs::File;
use std::io::{BufRead, BufReader};

use flate2::read::GzDecoder;
use ndarray::{Array2, ArrayView1, Axis};

use crate::optimizer::Rng;

/// Width and height of an image.
pub const SIDE: usize = 8;
pub const PIXELS: usize = SIDE * SIDE;
pub const CLASSES: usize = 10;

/// Images, one in each row, and their labels.
pub struct Rows {
    pub pixels: Array2<f32>,
    pub labels: Vec<usize>,
}

impl Rows {
    /// Reads the gzipped CSV file in the directory of this example.
    pub fn load() -> Result<Self, Box<dyn Error>> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/digits/digits.csv.gz");
        let file = File::open(path).map_err(|e| format!("{path}: {e}"))?;
        let mut pixels = Vec::new();
        let mut labels = Vec::new();
        for (number, line) in BufReader::new(GzDecoder::new(file)).lines().enumerate() {
            let line = line?;
            let row = line
                .split(',')
                .map(str::parse::<u8>)
                .collect::<Result<Vec<_>, _>>()
                .map_err(|e| format!("{path}, line {}: {e}", number + 1))?;
            match row.split_last() {
                Some((&label, image)) if image.len() == PIXELS && usize::from(label) < CLASSES => {
                    pixels.extend(image.iter().copied().map(f32::from));
                    labels.push(usize::from(label));
                }
                _ => return Err(format!("{path}, line {}: not a digit", number + 1).into()),
            }
        }
        let pixels = Array2::from_shape_vec((labels.len(), PIXELS), pixels)?;
        Ok(Self { pixels, labels })
    }

    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// The rows with these numbers, in this order.
    pub fn select(&self, rows: &[usize]) -> Self {
        Self {
            pixels: self.pixels.select(Axis(0), rows),
            labels: rows.iter().map(|&row| self.labels[row]).collect(),
        }
    }

    /// Shuffles the rows, and holds out every `nth`. Returns the training rows and the held-out rows.
    pub fn split(&self, nth: usize, rng: &mut Rng) -> (Self, Self) {
        let order = rng.permutation(self.len());
        let (held_out, train) = order.split_at(self.len() / nth);
        (self.select(train), self.select(held_out))
    }
}

/// Draws images side by side as lines of text, with two characters for each pixel.
pub fn draw(images: &[ArrayView1<f32>]) -> Vec<String> {
    let line = |y: usize| {
        let one = |image: &ArrayView1<f32>| {
            (0..SIDE)
                .map(|x| match image[y * SIDE + x] {
                    v if v < 2.0 => "  ",
                    v if v < 6.0 => "░░",
                    v if v < 10.0 => "▒▒",
                    v if v < 14.0 => "▓▓",
                    _ => "██",
                })
                .collect::<String>()
        };
        images.iter().map(one).collect::<Vec<_>>().join("   ")
    };
    (0..SIDE).map(line).collect()
}
