//! Finds out which bytes of a tensor a slice needs, and takes the slice from them.

use std::borrow::Cow;
use std::ops::Range;

use crate::error::{Error, Result};
use crate::meta::{Order, TensorMeta};
use crate::strided::{Axis, starts};
use crate::tensor::{AxisSlice, Slices};

/// Rows from this length on are read one by one if a slice takes every second row, or fewer. Shorter rows are read
/// together with those between them.
const MIN_ROW: usize = 4096;

/// Runs of bytes of equal length at equal distances.
#[derive(Clone, Copy, Default)]
struct Runs {
    /// The start of the first run.
    start: usize,
    distance: usize,
    count: usize,
    len: usize,
}

/// The part of a tensor's payload to read for a slice: runs of bytes that contain all selected elements.
///
/// They are limited by the leading axes that select a single index, and by the first axis after them. The other
/// axes are applied in memory.
pub struct PayloadPart {
    runs: Runs,
    /// Dtype, shape and order of the slice.
    meta: TensorMeta,
    /// The size of an element in bytes.
    width: usize,
    /// The offset of the slice's first element in the joined runs.
    first: usize,
    /// What is selected along each axis of the tensor, slowest axis first. Strides are in bytes.
    axes: Vec<Axis>,
}

impl PayloadPart {
    /// The bytes for a slice of a tensor.
    pub fn new(tensor: &TensorMeta, slices: &Slices) -> Result<Self> {
        let TensorMeta { dtype, shape: dims, order } = tensor;
        let width = match dtype.bits() {
            Some(bits) if bits.is_multiple_of(8) => bits / 8,
            _ => {
                return Err(Error::unsupported(format!(
                    "cannot slice a tensor of {dtype}: its elements are not whole bytes, or of unknown size"
                )));
            }
        };
        let slices = slices.as_slice();
        let given = slices.iter().filter(|slice| **slice != AxisSlice::NewAxis);
        if given.clone().count() != dims.len() {
            let given = given.count();
            return Err(Error::mismatch(format!(
                "expected a slice of {} axes for the shape {dims:?}, found {given}",
                dims.len()
            )));
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
            return Ok(Self { runs: Runs::default(), meta, width, first: 0, axes: Vec::new() });
        }

        // From here on, the slowest axis comes first. No axis is empty.
        let mut dims = dims.to_vec();
        if *order == Order::F {
            dims.reverse();
            taken.reverse();
        }
        let mut stride = dims.iter().product::<usize>() * width;
        let mut runs = Runs { start: 0, distance: stride, count: 1, len: stride };
        let mut first = 0;
        let mut leading = true;
        let mut axes = Vec::with_capacity(dims.len());
        for (dim, taken) in dims.into_iter().zip(taken) {
            stride /= dim;
            if !leading {
                first += taken.first() * stride;
                axes.push(taken.axis(stride));
                continue;
            }
            // The next axis limits the runs too only if this one selects a single index.
            leading = taken.to - taken.from == 1;
            let count = taken.count();
            if count > 1 && taken.step.unsigned_abs() > 1 && stride >= MIN_ROW {
                // Only the selected rows are read.
                let lowest = if taken.step > 0 { taken.from } else { taken.last() };
                runs.start += lowest * stride;
                runs = Runs {
                    distance: taken.step.unsigned_abs() * stride,
                    count,
                    len: stride,
                    ..runs
                };
                let (from, stride) = match taken.step {
                    1.. => (0, stride.cast_signed()),
                    _ => ((count - 1) * stride, -stride.cast_signed()),
                };
                first += from;
                axes.push(Axis { count, stride });
            } else {
                runs.start += taken.from * stride;
                runs.len = (taken.to - taken.from) * stride;
                first += (taken.first() - taken.from) * stride;
                axes.push(taken.axis(stride));
            }
        }
        Ok(Self { runs, meta, width, first, axes })
    }

    /// The number of bytes that [`read`](Self::read) returns.
    pub fn len(&self) -> usize {
        self.runs.count * self.runs.len
    }

    /// The start and length of each run in the payload, ascending.
    pub fn runs(&self) -> impl Iterator<Item = (usize, usize)> {
        let Runs { start, distance, count, len } = self.runs;
        (0..count).map(move |at| (start + at * distance, len))
    }

    /// Returns the bytes of the runs from a payload in memory, one run after the other.
    pub fn read<'b>(&self, payload: &'b [u8]) -> Cow<'b, [u8]> {
        let run = |(start, len): (usize, usize)| {
            payload.get(start..).and_then(|rest| rest.get(..len)).unwrap_or_default()
        };
        let mut runs = self.runs();
        match (self.runs.count, runs.next()) {
            (1, Some(only)) => Cow::Borrowed(run(only)),
            _ => Cow::Owned(self.runs().flat_map(run).copied().collect()),
        }
    }

    /// Dtype, shape and order of the slice, if its elements are all bytes of the runs in the same order.
    pub fn unchanged(&self) -> Option<&TensorMeta> {
        let (outer, _) = self.pieces();
        (outer.is_empty() && self.meta.byte_len() == Some(self.len())).then_some(&self.meta)
    }

    /// The axes along which pieces are copied, and the length of a piece. Adjacent elements are copied together.
    fn pieces(&self) -> (&[Axis], usize) {
        let (mut outer, mut piece) = (&self.axes[..], self.width);
        while let Some((last, others)) = outer.split_last()
            && (last.count == 1 || last.stride == piece.cast_signed())
        {
            piece *= last.count;
            outer = others;
        }
        (outer, piece)
    }

    /// Takes the slice from the bytes of the runs. The result has the same memory order as the tensor.
    pub fn cut(self, run: Cow<'_, [u8]>) -> (TensorMeta, Cow<'_, [u8]>) {
        let (outer, piece) = self.pieces();
        let len = self.meta.byte_len().unwrap_or(0);
        if outer.is_empty() && run.len() == len {
            return (self.meta, run);
        }
        let mut bytes = Vec::with_capacity(len);
        if len > 0 {
            for at in starts(self.first, outer) {
                let piece = run.get(at..).and_then(|rest| rest.get(..piece));
                bytes.extend_from_slice(piece.unwrap_or_default());
            }
        }
        (self.meta, Cow::Owned(bytes))
    }
}

/// The range of rows that a slice takes of a tensor with `rows` rows, and the slice that takes the same of these rows
/// alone. Rows are the indices along the first axis.
pub fn rows_of(slices: &Slices, rows: usize) -> Result<(Range<usize>, Slices)> {
    let mut slices = slices.as_slice().to_vec();
    let Some(first) = slices.iter_mut().find(|slice| **slice != AxisSlice::NewAxis) else {
        return Ok((0..rows, slices.into()));
    };
    let Taken { from, to, .. } = Taken::of(*first, rows)?;
    match first {
        AxisSlice::Index(at) => *at = 0,
        AxisSlice::Range { start, end, .. } => (*start, *end) = (0, None),
        AxisSlice::NewAxis => {}
    }
    Ok((from..to, slices.into()))
}

/// The indices that a slice selects along an axis: every `step`-th index from `from` up to, not including, `to`.
/// A negative step selects from the end of the range.
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
            AxisSlice::Range { step: 0, .. } => {
                return Err(Error::data("the step of a slice must not be 0"));
            }
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
            _ => Err(Error::mismatch(format!("the slice exceeds an axis of length {dim}"))),
        }
    }

    fn count(&self) -> usize {
        (self.to - self.from).div_ceil(self.step.unsigned_abs())
    }

    /// The first selected index. The range must not be empty.
    fn first(&self) -> usize {
        if self.step > 0 { self.from } else { self.to - 1 }
    }

    /// The last selected index. The range must not be empty.
    fn last(&self) -> usize {
        let between = (self.count() - 1) * self.step.unsigned_abs();
        if self.step > 0 { self.from + between } else { self.to - 1 - between }
    }

    fn axis(&self, stride: usize) -> Axis {
        let count = self.count();
        // If only one index is selected, the step can exceed the axis, and the product could overflow.
        let step = if count > 1 { self.step } else { 0 };
        Axis { count, stride: step * stride.cast_signed() }
    }
}
