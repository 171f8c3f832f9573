//! Which bytes of a tensor a slice of it needs.

use ndarray::{Array, Dimension, IxDyn, ShapeBuilder, SliceInfo, SliceInfoElem};

use crate::dtype::Element;
use crate::elements::copied;
use crate::error::{Error, Result};
use crate::meta::{Order, TensorMeta};

/// A run of bytes of a tensor's payload: all that a slice needs, and as little else as one run can
/// have.
pub struct Part {
    /// Start and length in the payload.
    pub bytes: (usize, usize),
    /// The shape of what is in the run.
    shape: Vec<usize>,
    /// The first index of each axis there.
    first: Vec<usize>,
    /// What the slice takes of each axis of the tensor.
    ranges: Vec<(usize, usize)>,
    order: Order,
}

impl Part {
    /// The run of bytes for a slice of a tensor of `A`.
    pub fn new<A: Element>(meta: &TensorMeta, elems: &[SliceInfoElem]) -> Result<Self> {
        if meta.dtype != A::DTYPE {
            let (expected, found) = (A::DTYPE, &meta.dtype);
            return Err(Error::data(format!("expected a tensor of {expected}, found {found}")));
        }
        let dims = meta.shape.slice();
        let axes = elems.iter().filter(|elem| !matches!(elem, SliceInfoElem::NewAxis));
        if axes.clone().count() != dims.len() {
            let given = axes.count();
            return Err(Error::data(format!("a slice of {given} axes, of a shape {dims:?}")));
        }
        let mut ranges = Vec::with_capacity(dims.len());
        for (elem, &dim) in axes.zip(dims) {
            ranges.push(range(elem, dim)?);
        }
        let slowest_first: Vec<usize> = match meta.order {
            Order::C => (0..dims.len()).collect(),
            Order::F => (0..dims.len()).rev().collect(),
        };
        let mut stride: usize = dims.iter().product();
        let (mut start, mut len) = (0, stride);
        let mut shape = dims.to_vec();
        let mut first = vec![0; dims.len()];
        for axis in slowest_first {
            let (Some(&dim), Some(&(from, to))) = (dims.get(axis), ranges.get(axis)) else { break };
            stride = stride.checked_div(dim).unwrap_or(0);
            start += from * stride;
            len = (to - from) * stride;
            if let (Some(shape), Some(first)) = (shape.get_mut(axis), first.get_mut(axis)) {
                (*shape, *first) = (to - from, from);
            }
            // Of a single index the next axis is one run, too.
            if to - from != 1 {
                break;
            }
        }
        let size = size_of::<A>();
        Ok(Self { bytes: (start * size, len * size), shape, first, ranges, order: meta.order })
    }

    /// The slice, from the bytes of the run.
    pub fn cut<A: Element>(
        &self,
        bytes: &[u8],
        elems: &[SliceInfoElem],
    ) -> Result<Array<A, IxDyn>> {
        let shape = IxDyn(&self.shape).set_f(self.order == Order::F);
        let misfit = |error: ndarray::ShapeError| Error::data(error.to_string());
        let array = Array::from_shape_vec(shape, copied(bytes)?).map_err(misfit)?;
        // In the run, ranges start where it does.
        let mut axes = self.ranges.iter().zip(&self.first);
        let mut moved = Vec::with_capacity(elems.len());
        for &elem in elems {
            let mut next = || {
                let (&(from, to), &first) = axes.next()?;
                Some(((from - first).cast_signed(), (to - first).cast_signed()))
            };
            moved.push(match elem {
                SliceInfoElem::NewAxis => elem,
                SliceInfoElem::Index(_) => SliceInfoElem::Index(next().map_or(0, |(from, _)| from)),
                SliceInfoElem::Slice { step, .. } => {
                    let (start, end) = next().unwrap_or_default();
                    SliceInfoElem::Slice { start, end: Some(end), step }
                }
            });
        }
        let info = SliceInfo::<_, IxDyn, IxDyn>::try_from(moved).map_err(misfit)?;
        Ok(array.slice_move(info))
    }
}

/// First index and the one behind the last that a slice takes of an axis.
fn range(elem: &SliceInfoElem, dim: usize) -> Result<(usize, usize)> {
    if let SliceInfoElem::Slice { step: 0, .. } = elem {
        return Err(Error::data("a slice in steps of 0"));
    }
    let from_end = |at: isize| if at < 0 { at.checked_add(dim.cast_signed()) } else { Some(at) };
    let (start, end) = match *elem {
        SliceInfoElem::Slice { start, end, .. } => {
            (from_end(start), end.map_or(Some(dim.cast_signed()), from_end))
        }
        SliceInfoElem::Index(at) => (from_end(at), from_end(at).and_then(|at| at.checked_add(1))),
        SliceInfoElem::NewAxis => (Some(0), Some(1)),
    };
    let start = start.and_then(|at| usize::try_from(at).ok());
    let end = end.and_then(|at| usize::try_from(at).ok());
    match (start, end) {
        (Some(start), Some(end)) if start <= dim && end <= dim => Ok((start.min(end), end)),
        _ => Err(Error::data(format!("a slice beyond an axis of {dim}"))),
    }
}
