//! Slices of tensors, in numpy's notation: `w[0:10, :, -1]`.

use std::ops::Range;

use tenarc::tensor::Order;

use crate::failure::{Failure, Result};
use crate::text::{quoted, shape};

/// The selection of a slice along one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Index(i64),
    Range {
        start: Option<i64>,
        end: Option<i64>,
        step: i64,
    },
    /// `...`: all axes that are not named, in full.
    Rest,
}

/// A parsed slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice(Vec<Part>);

impl Slice {
    /// Parses the text between the brackets.
    ///
    /// # Errors
    /// If the text is not a slice.
    pub fn parse(text: &str) -> Result<Self> {
        let parts = text.split(',').map(part).collect::<Result<Vec<_>>>()?;
        if parts.iter().filter(|part| **part == Part::Rest).count() > 1 {
            return Err(Failure::new("a slice can have only one `...`"));
        }
        Ok(Self(parts))
    }

    /// Returns the rows that the slice selects in a table with `len` rows.
    ///
    /// # Errors
    /// If the slice has several axes or a step, or if a row or an end of the range is out of range.
    pub fn rows(&self, len: u64) -> Result<Range<u64>> {
        let len = i64::try_from(len).unwrap_or(i64::MAX);
        let place = |at: i64| if at < 0 { at.saturating_add(len) } else { at };
        let (start, end) = match self.0[..] {
            [Part::Rest] => (0, len),
            [Part::Index(index)] => match place(index) {
                row if (0..len).contains(&row) => (row, row + 1),
                _ => {
                    return Err(Failure::new(format!(
                        "expected a row of a table of {len} rows, found row {index}"
                    )));
                }
            },
            [Part::Range { start, end, step: 1 }] => {
                let table = || format!("the table has {len} rows");
                (bound(start, len, table)?.unwrap_or(0), bound(end, len, table)?.unwrap_or(len))
            }
            [_] => return Err(Failure::new("a range of rows has no step")),
            _ => return Err(Failure::new("rows have one axis: use [10:20]")),
        };
        let row = |at: i64| u64::try_from(at).unwrap_or(0);
        Ok(row(start)..row(end.max(start)))
    }
}

/// Splits an argument such as `w[0:10]` into path and slice. Returns `None` if it does not end in brackets.
pub fn split(argument: &str) -> Option<(&str, &str)> {
    argument.strip_suffix(']')?.rsplit_once('[')
}

fn part(text: &str) -> Result<Part> {
    let text = text.trim();
    let refused = || Failure::new(format!("{} is neither an index nor a range", quoted(text)));
    let number = |text: &str| match text.trim() {
        "" => Ok(None),
        digits => digits.parse::<i64>().map(Some).map_err(|_| refused()),
    };
    if text == "..." {
        return Ok(Part::Rest);
    }
    let fields: Vec<&str> = text.split(':').collect();
    match fields[..] {
        [index] => number(index)?.map(Part::Index).ok_or_else(refused),
        [start, end] => Ok(Part::Range { start: number(start)?, end: number(end)?, step: 1 }),
        [start, end, step] => match number(step)?.unwrap_or(1) {
            0 => Err(Failure::new("the step of a range must not be 0")),
            step => Ok(Part::Range { start: number(start)?, end: number(end)?, step }),
        },
        _ => Err(refused()),
    }
}

/// The elements that a slice selects from a tensor of a given shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    axes: Vec<Axis>,
    /// For each axis, the number of elements between one index and the next.
    strides: Vec<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Axis {
    first: usize,
    count: usize,
    step: i64,
    /// Whether the result has this axis. An axis that is selected by an index is left out.
    stays: bool,
}

impl Selection {
    /// Selects the whole tensor, whose number of elements must fit in a `usize`.
    pub fn all(dims: &[usize], order: Order) -> Self {
        let axis = |&count| Axis { first: 0, count, step: 1, stays: true };
        Self { axes: dims.iter().map(axis).collect(), strides: strides(dims, order) }
    }

    /// Applies a slice to a shape.
    ///
    /// # Errors
    /// If the slice has more axes than the shape, or an index is out of range.
    pub fn new(slice: &Slice, dims: &[usize], order: Order) -> Result<Self> {
        let named = slice.0.iter().filter(|part| **part != Part::Rest).count();
        let rest = dims.len().checked_sub(named).ok_or_else(|| {
            Failure::new(format!(
                "the slice has {named} axes, the tensor has the shape {}",
                shape(dims)
            ))
        })?;
        let whole = Part::Range { start: None, end: None, step: 1 };
        let mut parts = Vec::with_capacity(dims.len());
        let has_rest = named != slice.0.len();
        for &part in &slice.0 {
            match part {
                Part::Rest => parts.extend(std::iter::repeat_n(whole, rest)),
                part => parts.push(part),
            }
        }
        if !has_rest {
            parts.extend(std::iter::repeat_n(whole, rest));
        }
        let axes = parts.iter().zip(dims).map(|(&part, &dim)| axis(part, dim));
        Ok(Self { axes: axes.collect::<Result<_>>()?, strides: strides(dims, order) })
    }

    /// Returns the shape of the result.
    pub fn shape(&self) -> Vec<usize> {
        self.axes.iter().filter(|axis| axis.stays).map(|axis| axis.count).collect()
    }

    /// Returns the start and the end of the elements in the payload that must be read.
    pub fn extent(&self) -> (usize, usize) {
        if self.axes.iter().any(|axis| axis.count == 0) {
            return (0, 0);
        }
        let (mut low, mut high) = (0, 0);
        for (axis, stride) in self.axes.iter().zip(&self.strides) {
            let last = axis.at(axis.count - 1);
            low += axis.first.min(last) * stride;
            high += axis.first.max(last) * stride;
        }
        (low, high + 1)
    }

    /// Returns the selected elements in row-major order. `bytes` are the elements of the [extent](Self::extent), with
    /// `size` bytes each.
    pub fn gather(&self, bytes: &[u8], size: usize) -> Vec<u8> {
        let (low, _) = self.extent();
        let count: usize = self.axes.iter().map(|axis| axis.count).product();
        let mut out = Vec::with_capacity(count.saturating_mul(size));
        if count > 0 {
            self.level(0, 0, &mut |at| {
                let start = (at - low) * size;
                out.extend_from_slice(bytes.get(start..start + size).unwrap_or_default());
            });
        }
        out
    }

    fn level(&self, level: usize, base: usize, each: &mut dyn FnMut(usize)) {
        let (Some(axis), Some(stride)) = (self.axes.get(level), self.strides.get(level)) else {
            each(base);
            return;
        };
        for index in 0..axis.count {
            self.level(level + 1, base + axis.at(index) * stride, each);
        }
    }

    /// Returns whether the selection is the whole payload, in row-major order.
    pub fn is_all(&self, dims: &[usize], order: Order) -> bool {
        let same = self.axes.iter().zip(dims);
        let mut same = same.map(|(axis, &dim)| (axis.first, axis.count, axis.step) == (0, dim, 1));
        same.all(|same| same) && (order == Order::C || dims.len() < 2)
    }
}

impl Axis {
    fn at(&self, index: usize) -> usize {
        let moved = self.step.unsigned_abs();
        let moved = usize::try_from(moved).unwrap_or(usize::MAX).saturating_mul(index);
        if self.step < 0 { self.first.saturating_sub(moved) } else { self.first + moved }
    }
}

fn strides(dims: &[usize], order: Order) -> Vec<usize> {
    let mut strides = vec![0; dims.len()];
    let mut stride = 1usize;
    let mut set = |at: usize| {
        if let (Some(slot), Some(&dim)) = (strides.get_mut(at), dims.get(at)) {
            *slot = stride;
            stride = stride.saturating_mul(dim);
        }
    };
    match order {
        Order::C => (0..dims.len()).rev().for_each(&mut set),
        Order::F => (0..dims.len()).for_each(&mut set),
    }
    strides
}

/// Returns a bound of a range, counted from the start. A negative number counts from the end, as in Python. Unlike there,
/// a bound beyond the axis is an error: who asks for ten rows must not get nine without noticing.
fn bound(at: Option<i64>, len: i64, axis: impl FnOnce() -> String) -> Result<Option<i64>> {
    let Some(at) = at else { return Ok(None) };
    let from_start = if at < 0 { at.saturating_add(len) } else { at };
    if (0..=len).contains(&from_start) {
        return Ok(Some(from_start));
    }
    Err(Failure::new(format!("{at} is out of range: {}", axis())))
}

/// Applies an index or range to an axis. Negative numbers count from the end.
fn axis(part: Part, dim: usize) -> Result<Axis> {
    let len = i64::try_from(dim).map_err(|_| Failure::new("the axis is longer than 2^63 - 1"))?;
    let index = |at: i64| usize::try_from(at).unwrap_or(0);
    match part {
        Part::Index(at) => {
            let from_start = if at < 0 { at + len } else { at };
            if !(0..len).contains(&from_start) {
                return Err(Failure::new(format!(
                    "index {at} is out of range for an axis of length {dim}"
                )));
            }
            Ok(Axis { first: index(from_start), count: 1, step: 1, stays: false })
        }
        Part::Range { start, end, step } => {
            let on_axis = || format!("the axis has the length {dim}");
            let (start, end) = (bound(start, len, on_axis)?, bound(end, len, on_axis)?);
            let (from, to) = if step < 0 {
                // A range that runs backwards begins at an element, not behind the last one.
                (start.unwrap_or(len).min(len - 1), end.unwrap_or(-1))
            } else {
                (start.unwrap_or(0), end.unwrap_or(len))
            };
            let span = if step < 0 { from - to } else { to - from };
            let step_size = step.unsigned_abs();
            let count = u64::try_from(span).unwrap_or(0).div_ceil(step_size);
            let count = usize::try_from(count).unwrap_or(0);
            Ok(Axis { first: index(from), count, step, stays: true })
        }
        // `Selection::new` has replaced this part by ranges.
        Part::Rest => Ok(Axis { first: 0, count: dim, step: 1, stays: true }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(slice: &str, dims: &[usize], order: Order) -> (Vec<usize>, Vec<u8>) {
        let selection = Selection::new(&Slice::parse(slice).unwrap(), dims, order).unwrap();
        let (low, high) = selection.extent();
        let all: Vec<u8> = (0..=255).collect();
        (selection.shape(), selection.gather(&all[low..high], 1))
    }

    #[test]
    fn selects_what_python_selects() {
        let c = Order::C;
        assert_eq!(taken("1", &[3, 2], c), (vec![2], vec![2, 3]));
        assert_eq!(taken(":, -1", &[3, 2], c), (vec![3], vec![1, 3, 5]));
        assert_eq!(taken("0:3:2, :", &[3, 2], c), (vec![2, 2], vec![0, 1, 4, 5]));
        assert_eq!(taken("-3:3", &[3], c), (vec![3], vec![0, 1, 2]));
        assert_eq!(taken("3:", &[3], c), (vec![0], vec![]));
        assert_eq!(taken("3:0:-1", &[3], c), (vec![2], vec![2, 1]));
        assert_eq!(taken("0:0", &[0], c), (vec![0], vec![]));
        assert_eq!(taken("::-1", &[0], c), (vec![0], vec![]));
        assert_eq!(taken("::-1", &[4], c), (vec![4], vec![3, 2, 1, 0]));
        assert_eq!(taken("-2:", &[4], c), (vec![2], vec![2, 3]));
        assert_eq!(taken("3:1", &[4], c), (vec![0], vec![]));
        assert_eq!(taken("..., 0", &[2, 2, 2], c), (vec![2, 2], vec![0, 2, 4, 6]));
        assert_eq!(taken("2:0:-1", &[4], c), (vec![2], vec![2, 1]));
        assert_eq!(taken("1, :", &[2, 3], Order::F), (vec![3], vec![1, 3, 5]));
        assert_eq!(taken("...", &[2, 3], Order::F), (vec![2, 3], vec![0, 2, 4, 1, 3, 5]));
        assert_eq!(taken("::9223372036854775807", &[4], c), (vec![1], vec![0]));
        assert_eq!(taken("::-9223372036854775808", &[4], c), (vec![1], vec![3]));
    }

    #[test]
    fn refuses_invalid_slices() {
        for text in ["a", "", "1:2:3:4", "::0", "..., ...", "1.5", "99999999999999999999"] {
            assert!(Slice::parse(text).is_err(), "{text}");
        }
        for (text, dims) in [("2", &[2][..]), ("-3", &[2]), ("0, 0", &[2]), ("0", &[])] {
            let slice = Slice::parse(text).unwrap();
            assert!(Selection::new(&slice, dims, Order::C).is_err(), "{text} of {dims:?}");
        }
        let big = Slice::parse("-9223372036854775808").unwrap();
        assert!(Selection::new(&big, &[2], Order::C).is_err());
        for text in ["0:3", "3:", "-3:", ":-3", "3::-1", "0:-3:-1", "-9223372036854775808:"] {
            let slice = Slice::parse(text).unwrap();
            let error = Selection::new(&slice, &[2], Order::C).unwrap_err().to_string();
            assert!(error.contains("the axis has the length 2"), "{text}: {error}");
        }
        for text in ["0:3", "3:", "-3:", ":-3"] {
            let error = Slice::parse(text).unwrap().rows(2).unwrap_err().to_string();
            assert!(error.contains("the table has 2 rows"), "{text}: {error}");
        }
    }
}
