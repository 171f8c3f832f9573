//! Which bytes of a tensor a slice of it needs.

use std::borrow::Cow;

use crate::error::{Error, Result};
use crate::meta::{Order, TensorMeta};
use crate::strided::{Axis, starts};
use crate::tensor::{AxisSlice, Slices};

/// A run of bytes of a tensor's payload: all that a slice needs, and as little else as one run can
/// have.
pub struct Part {
    /// Start and length in the payload.
    pub bytes: (usize, usize),
    /// Of what the slice is.
    meta: TensorMeta,
    /// The bytes of one element.
    width: usize,
    /// Where in the run the first element of the slice starts.
    first: usize,
    /// What is taken along each axis of the tensor, those that change slowest first; strides are in bytes.
    axes: Vec<Axis>,
}

impl Part {
    /// The run of bytes for a slice of a tensor.
    pub fn new(tensor: &TensorMeta, slices: &Slices) -> Result<Self> {
        let TensorMeta { dtype, shape: dims, order } = tensor;
        let width = match dtype.bits() {
            Some(bits) if bits.is_multiple_of(8) => bits / 8,
            _ => return Err(Error::data(format!("elements of {dtype} are not read in part"))),
        };
        let slices = slices.as_slice();
        let given = slices.iter().filter(|slice| **slice != AxisSlice::NewAxis);
        if given.clone().count() != dims.len() {
            let given = given.count();
            return Err(Error::data(format!("a slice of {given} axes, of a shape {dims:?}")));
        }
        let taken = given.zip(dims).map(|(slice, &dim)| Taken::of(*slice, dim));
        let mut taken = taken.collect::<Result<Vec<_>>>()?;

        let mut counts = taken.iter().map(Taken::count);
        let shape = slices.iter().filter_map(|slice| match slice {
            AxisSlice::Index(_) => counts.next().and(None),
            AxisSlice::Range { .. } => counts.next(),
            AxisSlice::NewAxis => Some(1),
        });
        let shape: Vec<usize> = shape.collect();
        let meta = TensorMeta::new(dtype.clone(), shape, *order);
        if meta.element_count() == Some(0) {
            return Ok(Self { bytes: (0, 0), meta, width, first: 0, axes: Vec::new() });
        }

        // From here on axes that change slowest come first, and none of them is empty.
        let mut dims = dims.to_vec();
        if *order == Order::F {
            dims.reverse();
            taken.reverse();
        }
        let mut stride = dims.iter().product::<usize>() * width;
        let (mut start, mut len, mut first) = (0, stride, 0);
        let mut leading = true;
        let mut axes = Vec::with_capacity(dims.len());
        for (dim, taken) in dims.into_iter().zip(taken) {
            stride /= dim;
            if leading {
                start += taken.from * stride;
                len = (taken.to - taken.from) * stride;
                // Of a single index the next axis is one run, too.
                leading = taken.to - taken.from == 1;
            }
            first += taken.first() * stride;
            axes.push(taken.axis(stride));
        }
        Ok(Self { bytes: (start, len), meta, width, first: first - start, axes })
    }

    /// The slice, from the bytes of the run: in the same order as the tensor.
    pub fn cut(self, run: Cow<'_, [u8]>) -> (TensorMeta, Cow<'_, [u8]>) {
        let Self { meta, width, first, axes, .. } = self;
        let len = meta.byte_len().unwrap_or(0);
        let (mut outer, mut piece) = (&axes[..], width);
        // Elements that lie behind each other are copied together.
        while let Some((last, others)) = outer.split_last()
            && (last.count == 1 || last.stride == piece.cast_signed())
        {
            piece *= last.count;
            outer = others;
        }
        if outer.is_empty() && run.len() == len {
            return (meta, run);
        }
        let mut bytes = Vec::with_capacity(len);
        if len > 0 {
            for at in starts(first, outer) {
                let piece = run.get(at..).and_then(|rest| rest.get(..piece));
                bytes.extend_from_slice(piece.unwrap_or_default());
            }
        }
        (meta, Cow::Owned(bytes))
    }
}

/// What a slice takes of an axis: every so many indices of a range.
struct Taken {
    from: usize,
    to: usize,
    step: isize,
}

impl Taken {
    fn of(slice: AxisSlice, dim: usize) -> Result<Self> {
        let from_end =
            |at: isize| if at < 0 { at.checked_add(dim.cast_signed()) } else { Some(at) };
        let (from, to, step) = match slice {
            AxisSlice::Range { step: 0, .. } => return Err(Error::data("a slice in steps of 0")),
            AxisSlice::Range { start, end, step } => {
                (from_end(start), end.map_or(Some(dim.cast_signed()), from_end), step)
            }
            AxisSlice::Index(at) => {
                (from_end(at), from_end(at).and_then(|at| at.checked_add(1)), 1)
            }
            AxisSlice::NewAxis => (Some(0), Some(1), 1),
        };
        let from = from.and_then(|at| usize::try_from(at).ok());
        let to = to.and_then(|at| usize::try_from(at).ok());
        match (from, to) {
            (Some(from), Some(to)) if from <= dim && to <= dim => {
                Ok(Self { from: from.min(to), to, step })
            }
            _ => Err(Error::data(format!("a slice beyond an axis of {dim}"))),
        }
    }

    fn count(&self) -> usize {
        (self.to - self.from).div_ceil(self.step.unsigned_abs())
    }

    /// The first index that is taken; the range is not empty.
    fn first(&self) -> usize {
        if self.step > 0 { self.from } else { self.to - 1 }
    }

    fn axis(&self, stride: usize) -> Axis {
        let count = self.count();
        // With one index the step may be longer than the axis.
        let step = if count > 1 { self.step } else { 0 };
        Axis { count, stride: step * stride.cast_signed() }
    }
}
