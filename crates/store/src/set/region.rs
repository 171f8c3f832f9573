//! Boxes of elements in a tensor: which of them meet, how they are divided into tiles, and copying between them.

use std::ops::Range;

use tenarc::tensor::{AxisSlice, Slices};

/// A box of elements: a range along each axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region(pub Vec<Range<u64>>);

impl Region {
    /// The box that starts at `offset`. `None` if it is not in a tensor of this shape.
    pub fn new(offset: &[u64], shape: &[u64], whole: &[u64]) -> Option<Self> {
        if offset.len() != whole.len() || shape.len() != whole.len() {
            return None;
        }
        let ranges = offset.iter().zip(shape).zip(whole).map(|((&start, &len), &whole)| {
            let end = start.checked_add(len)?;
            (end <= whole).then_some(start..end)
        });
        ranges.collect::<Option<_>>().map(Self)
    }

    /// The length along each axis.
    pub fn shape(&self) -> Vec<u64> {
        self.0.iter().map(|range| range.end - range.start).collect()
    }

    /// The number of elements. `None` if it cannot be counted.
    pub fn count(&self) -> Option<u64> {
        self.shape().into_iter().try_fold(1u64, u64::checked_mul)
    }

    /// What two boxes have in common. `None` if that is nothing.
    pub fn meet(&self, other: &Self) -> Option<Self> {
        let both = self.0.iter().zip(&other.0);
        let both = both.map(|(a, b)| a.start.max(b.start)..a.end.min(b.end));
        let common: Vec<_> = both.collect();
        common.iter().all(|range| range.start < range.end).then_some(Self(common))
    }

    /// The same box, counted from the start of `other`, which contains it.
    pub fn within(&self, other: &Self) -> Self {
        let ranges = self.0.iter().zip(&other.0);
        Self(ranges.map(|(range, base)| range.start - base.start..range.end - base.start).collect())
    }

    /// The box as a slice.
    pub fn slices(&self) -> Slices {
        let end = |at: u64| isize::try_from(at).unwrap_or(isize::MAX);
        let axis = |range: &Range<u64>| AxisSlice::Range {
            start: end(range.start),
            end: Some(end(range.end)),
            step: 1,
        };
        self.0.iter().map(axis).collect()
    }

    /// Divides the box into tiles of at most this shape, which are numbered in row-major order, and returns those that meet a part
    /// of it. Tiles at the ends can be smaller. A box without elements is one tile.
    pub fn tiles(&self, tile: &[u64], part: &Self) -> Vec<(u64, Self)> {
        let mut tiles = vec![(0, Self(Vec::new()))];
        for ((range, part), &len) in self.0.iter().zip(&part.0).zip(tile) {
            let len = len.max(1);
            let count = (range.end - range.start).div_ceil(len).max(1);
            let first = (part.start - range.start) / len;
            let last =
                (part.end - range.start).div_ceil(len).clamp(first + 1, count.max(first + 1));
            let along = |(number, before): &(u64, Self)| {
                let of = |index: u64| {
                    let start = range.start + index * len;
                    let mut ranges = before.0.clone();
                    ranges.push(start..range.end.min(start + len));
                    (number * count + index, Self(ranges))
                };
                (first..last).map(of).collect::<Vec<_>>()
            };
            tiles = tiles.iter().flat_map(along).collect();
        }
        tiles
    }
}

/// The least bytes of a tile: a tile costs about 50 bytes of metadata and checksums.
const LEAST: u64 = 4 << 10;
/// The most tiles in a block.
const MOST: u64 = 4096;

/// The shape of the tiles of a block, so that a reader who needs part of it along any axes reads little else. The axes are
/// divided into about as many pieces, but those along which ranks have divided the whole tensor into twice as many: there,
/// others will divide it differently.
pub fn tile_shape(shape: &[u64], whole: &[u64], width: u64) -> Vec<u64> {
    let mut tile = shape.to_vec();
    let weight = |axis: usize| if shape[axis] < whole[axis] { 1 } else { 2 };
    let pieces = |tile: &[u64], axis: usize| shape[axis].div_ceil(tile[axis].max(1));
    loop {
        let long = (0..shape.len()).filter(|&axis| tile[axis] > 1);
        let Some(axis) = long.min_by_key(|&axis| weight(axis) * pieces(&tile, axis)) else {
            return tile;
        };
        let mut smaller = tile.clone();
        // Equal pieces, one more than before or a little more.
        let count = pieces(&tile, axis);
        smaller[axis] = shape[axis].div_ceil(count + 1 + count / 8).min(tile[axis] - 1);
        let bytes = smaller.iter().fold(width, |bytes, &len| bytes.saturating_mul(len));
        let tiles =
            (0..shape.len()).fold(1u64, |all, axis| all.saturating_mul(pieces(&smaller, axis)));
        if bytes < LEAST || tiles > MOST {
            return tile;
        }
        tile = smaller;
    }
}

/// Copies a box from one row-major array to another. `from` and `to` are the arrays with the boxes of elements that they hold, and
/// elements have `width` bytes.
pub fn copy(
    region: &Region,
    (from, from_region): (&[u8], &Region),
    (to, to_region): (&mut [u8], &Region),
    width: usize,
) -> Option<()> {
    let at = |region: &Region, of: &Region| -> Option<(usize, Vec<usize>)> {
        let shape = of.shape();
        let mut strides = vec![width; shape.len()];
        for axis in (1..shape.len()).rev() {
            strides[axis - 1] = strides[axis].checked_mul(usize::try_from(shape[axis]).ok()?)?;
        }
        let inside = region.within(of);
        let mut starts = inside
            .0
            .iter()
            .zip(&strides)
            .map(|(range, stride)| usize::try_from(range.start).ok()?.checked_mul(*stride));
        let start = starts.try_fold(0usize, |sum, start| sum.checked_add(start?))?;
        Some((start, strides))
    };
    let (from_start, from_strides) = at(region, from_region)?;
    let (to_start, to_strides) = at(region, to_region)?;
    let shape: Vec<usize> =
        region.shape().iter().map(|&len| usize::try_from(len).ok()).collect::<Option<_>>()?;
    // The last axis is one run of bytes.
    let run = shape.last().map_or(Some(width), |len| len.checked_mul(width))?;
    let outer = &shape[..shape.len().saturating_sub(1)];
    let mut index = vec![0usize; outer.len()];
    loop {
        let place = |start: usize, strides: &[usize]| {
            index.iter().zip(strides).fold(start, |at, (index, stride)| at + index * stride)
        };
        let (source, target) = (place(from_start, &from_strides), place(to_start, &to_strides));
        to.get_mut(target..target.checked_add(run)?)?
            .copy_from_slice(from.get(source..source.checked_add(run)?)?);
        let mut axis = outer.len();
        loop {
            let Some(next) = axis.checked_sub(1) else { return Some(()) };
            axis = next;
            index[axis] += 1;
            if index[axis] < outer[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
}
