//! Compares the elements of two tensors of the same dtype and shape.

use std::fmt;

use serde::Serialize;
use tenarc::DType;
use tenarc::tensor::Order;

use crate::document::Section;
use crate::elements::{self, Element};
use crate::failure::Result;
use crate::node::{Node, Payload};
use crate::slices::Selection;
use crate::text::{shape, short};

/// How the elements of two tensors differ.
#[derive(Debug, Serialize)]
pub struct Values {
    /// The number of elements that differ by more than the tolerance.
    differing: u64,
    count: u64,
    /// The largest difference. `None` if the elements are not numbers, or if a differing element is not finite.
    max_abs: Option<f64>,
    max_rel: Option<f64>,
    /// The index of the first element that differs.
    first: Vec<usize>,
    #[serde(skip)]
    elements: (String, String),
}

impl fmt::Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} elements differ", self.differing, self.count)?;
        if let (Some(abs), Some(rel)) = (self.max_abs, self.max_rel) {
            write!(f, ", by up to {} ({} relative)", short(abs), short(rel))?;
        }
        let (a, b) = &self.elements;
        write!(f, "; first at {}: {a} → {b}", shape(&self.first))
    }
}

/// Returns whether two numbers are equal within the tolerances. NaN equals NaN.
pub fn is_close(a: f64, b: f64, atol: f64, rtol: f64) -> bool {
    Pair::of(a, b).is_close(atol, rtol)
}

/// Two numbers and their absolute difference.
#[derive(Clone, Copy)]
struct Pair {
    a: f64,
    b: f64,
    difference: f64,
}

impl Pair {
    #[allow(clippy::float_cmp)]
    fn of(a: f64, b: f64) -> Self {
        // The difference of two equal infinities would be NaN.
        Self { a, b, difference: if a == b { 0.0 } else { (a - b).abs() } }
    }

    /// Subtracts as integers: as doubles, large integers that differ could look equal.
    #[allow(clippy::cast_precision_loss)]
    fn of_integers(a: i128, b: i128) -> Self {
        Self { a: a as f64, b: b as f64, difference: a.abs_diff(b) as f64 }
    }

    /// Returns one pair for the numbers (or real parts), and one for the imaginary parts.
    fn each(a: Element, b: Element) -> [Self; 2] {
        let ((re, im), (other, other_im)) = (parts(a), parts(b));
        match (a, b) {
            (Element::Int(a), Element::Int(b)) => [Self::of_integers(a, b), Self::of(0.0, 0.0)],
            _ => [Self::of(re, other), Self::of(im, other_im)],
        }
    }

    fn is_close(self, atol: f64, rtol: f64) -> bool {
        // The tolerance of an infinite number would be infinite.
        let finite = self.a.is_finite() && self.b.is_finite();
        let within = finite && self.difference <= atol + rtol * self.b.abs();
        self.difference == 0.0 || within || self.a.is_nan() && self.b.is_nan()
    }
}

type Side<'a> = (&'a Section<'a>, &'a Node, &'a Payload);

/// Compares two tensors. Returns `None` if they are equal. Tensor `a` is loaded into memory. If both have the same
/// order, `b` is read in blocks, and loaded only if a block differs.
pub fn compare(a: Side<'_>, b: Side<'_>, tolerance: (f64, f64)) -> Result<Option<Values>> {
    let (section, node, payload) = b;
    let mut seen = Seen::new(payload, tolerance);
    let held = a.0.payload_bytes(a.1)?;
    if a.2.order == payload.order {
        let mut at = 0;
        section.blocks(node, &mut |block| {
            let end = held.len().min(at + block.len());
            let same = held.get(at..end).is_some_and(|other| other == block);
            if !same {
                // An element may cross the end of a block, so elements are compared afterwards.
                seen.mark(at, end);
            }
            at = end;
            Ok(())
        })?;
        if seen.dirty.is_none() {
            return Ok(None);
        }
        let other = section.payload_bytes(node)?;
        seen.elements(&held, &other);
    } else {
        // The orders differ, so both tensors are converted to row-major order.
        let size = elements::size(&payload.dtype).unwrap_or(1);
        let rows = |bytes: Vec<u8>, order| {
            let selection = Selection::all(&payload.shape, order);
            if order == Order::C { bytes } else { selection.gather(&bytes, size) }
        };
        let other = rows(section.payload_bytes(node)?, payload.order);
        let held = rows(held, a.2.order);
        seen.mark(0, held.len());
        seen.order = Order::C;
        seen.elements(&held, &other);
    }
    Ok(seen.values())
}

struct Seen<'a> {
    dtype: &'a DType,
    dims: &'a [usize],
    order: Order,
    tolerance: (f64, f64),
    /// The range of bytes outside of which the tensors are equal: start and end.
    dirty: Option<(usize, usize)>,
    differing: u64,
    count: u64,
    max: Option<(f64, f64)>,
    finite: bool,
    first: Option<(usize, String, String)>,
}

impl<'a> Seen<'a> {
    fn new(payload: &'a Payload, tolerance: (f64, f64)) -> Self {
        Self {
            dtype: &payload.dtype,
            dims: &payload.shape,
            order: payload.order,
            tolerance,
            dirty: None,
            differing: 0,
            count: payload.count().unwrap_or(0) as u64,
            max: None,
            finite: true,
            first: None,
        }
    }

    fn mark(&mut self, start: usize, end: usize) {
        let (from, to) = self.dirty.unwrap_or((start, end));
        self.dirty = Some((from.min(start), to.max(end)));
    }

    fn elements(&mut self, a: &[u8], b: &[u8]) {
        let Some((start, end)) = self.dirty else { return };
        // Packed elements, and elements of unknown dtypes, are compared byte by byte.
        let size = elements::size(self.dtype).unwrap_or(1);
        let (start, end) = (start / size * size, end.div_ceil(size).saturating_mul(size));
        let cut = |bytes: &'_ [u8]| start.min(bytes.len())..end.min(bytes.len());
        let (a, b) = (a.get(cut(a)).unwrap_or_default(), b.get(cut(b)).unwrap_or_default());
        for (at, (a, b)) in a.chunks(size).zip(b.chunks(size)).enumerate() {
            if a != b {
                self.pair(start / size + at, a, b);
            }
        }
        if a.len() != b.len() {
            self.pair(start + a.len().min(b.len()), &[], &[]);
        }
    }

    fn pair(&mut self, at: usize, a: &[u8], b: &[u8]) {
        let pair = (elements::decode(self.dtype, a), elements::decode(self.dtype, b));
        let (atol, rtol) = self.tolerance;
        if let (Some(a), Some(b)) = pair {
            let pairs = Pair::each(a, b);
            if pairs.iter().all(|pair| pair.is_close(atol, rtol)) {
                return;
            }
            for Pair { b, difference: abs, .. } in pairs {
                let rel = if b == 0.0 { f64::INFINITY } else { abs / b.abs() };
                let rel = if abs == 0.0 { 0.0 } else { rel };
                self.finite &= abs.is_finite();
                let (max_abs, max_rel) = self.max.unwrap_or((0.0, 0.0));
                self.max = Some((max_abs.max(abs), max_rel.max(rel)));
            }
        }
        self.differing += 1;
        let text = |element: Option<Element>, bytes: &[u8]| match element {
            Some(element) => element.text(),
            None => hex(bytes),
        };
        self.first.get_or_insert_with(|| (at, text(pair.0, a), text(pair.1, b)));
    }

    fn values(self) -> Option<Values> {
        let (at, a, b) = self.first?;
        let decoded = elements::size(self.dtype).is_some();
        let first = if decoded { index(at, self.dims, self.order) } else { vec![at] };
        let max = self.max.filter(|_| self.finite);
        let (differing, count) = (self.differing, self.count);
        let (max_abs, max_rel) = (max.map(|max| max.0), max.map(|max| max.1));
        Some(Values { differing, count, max_abs, max_rel, first, elements: (a, b) })
    }
}

#[allow(clippy::cast_precision_loss)]
fn parts(element: Element) -> (f64, f64) {
    match element {
        Element::Bool(value) => (f64::from(u8::from(value)), 0.0),
        Element::Int(value) => (value as f64, 0.0),
        Element::Float(value, _) => (value, 0.0),
        Element::Complex(re, im, _) => (re, im),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

/// Returns the index, along each axis, of element number `at` in the given order.
fn index(mut at: usize, dims: &[usize], order: Order) -> Vec<usize> {
    let mut index = vec![0; dims.len()];
    let mut set = |axis: usize| {
        if let (Some(slot), Some(&dim)) = (index.get_mut(axis), dims.get(axis)) {
            *slot = at % dim.max(1);
            at /= dim.max(1);
        }
    };
    match order {
        Order::C => (0..dims.len()).rev().for_each(&mut set),
        Order::F => (0..dims.len()).for_each(&mut set),
    }
    index
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_close_only_within_the_tolerance() {
        assert!(is_close(1.0, 1.1, 0.11, 0.0) && is_close(1.0, 1.1, 0.0, 0.1));
        assert!(!is_close(1.0, 1.1, 0.05, 0.0));
        assert!(is_close(f64::NAN, f64::NAN, 0.0, 0.0) && !is_close(f64::NAN, 1.0, 1e9, 1e9));
        assert!(!is_close(f64::INFINITY, f64::NEG_INFINITY, 1e9, 1e9));
        assert!(is_close(f64::INFINITY, f64::INFINITY, 0.0, 0.0) && is_close(0.0, -0.0, 0.0, 0.0));
        assert!(!is_close(f64::INFINITY, 1.0, 0.0, 1.0) && !is_close(1.0, f64::INFINITY, 0.0, 1.0));
    }

    #[test]
    fn distinguishes_integers_that_are_equal_as_doubles() {
        let (a, b) = (Element::Int(i64::MAX.into()), Element::Int((i64::MAX - 1).into()));
        assert!(!Pair::each(a, b)[0].is_close(1e-3, 0.0) && Pair::each(a, b)[0].is_close(1.0, 0.0));
        assert!(Pair::each(a, b)[0].is_close(0.0, 1e-18) && Pair::each(a, a)[0].is_close(0.0, 0.0));
    }

    #[test]
    fn finds_the_index_of_an_element() {
        assert_eq!(index(5, &[2, 3], Order::C), [1, 2]);
        assert_eq!(index(5, &[2, 3], Order::F), [1, 2]);
        assert_eq!(index(1, &[2, 3], Order::C), [0, 1]);
        assert_eq!(index(1, &[2, 3], Order::F), [1, 0]);
    }
}
