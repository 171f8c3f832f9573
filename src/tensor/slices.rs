//! Describes which part of a tensor is read.

use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

/// A part of a tensor, with an [`AxisSlice`] for each axis. Used with
/// [`Archive::slice`](crate::Archive::slice).
///
/// It can be made from ndarray's `s![10..20, ..]`, from a tuple of ranges and indices, or from any list of
/// [`AxisSlice`]s:
///
/// ```
/// use tenarc::tensor::{AxisSlice, Slices};
///
/// let rows = Slices::from((10..20, ..));
/// let listed = [AxisSlice::from(10..20), AxisSlice::from(..)].into_iter().collect::<Slices>();
/// assert_eq!(rows, listed);
/// assert_eq!(rows, ndarray::s![10..20, ..].into());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Slices(Vec<AxisSlice>);

/// The part that is read of one axis. Negative numbers count from the end of the axis.
///
/// Can be made from a range, or from an integer, which is an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AxisSlice {
    /// One index. The result does not have this axis.
    Index(isize),
    /// Every `step`th index from `start` to before `end`. With a negative step, the same range is read from
    /// its last index backwards, as ndarray does.
    Range {
        /// The first index.
        start: isize,
        /// One past the last index. `None` is the end of the axis.
        end: Option<isize>,
        /// The distance from one index to the next. Must not be 0.
        step: isize,
    },
    /// A new axis of length 1 in the result. It does not correspond to an axis of the tensor.
    NewAxis,
}

impl AxisSlice {
    /// The whole axis.
    pub const FULL: Self = Self::Range { start: 0, end: None, step: 1 };

    /// The same range with another step. An index or a new axis is returned unchanged.
    #[must_use]
    pub fn step_by(self, step: isize) -> Self {
        match self {
            Self::Range { start, end, .. } => Self::Range { start, end, step },
            other => other,
        }
    }
}

impl Slices {
    /// The slices of all axes.
    pub fn as_slice(&self) -> &[AxisSlice] {
        &self.0
    }
}

impl<A: Into<AxisSlice>> FromIterator<A> for Slices {
    fn from_iter<I: IntoIterator<Item = A>>(slices: I) -> Self {
        Self(slices.into_iter().map(Into::into).collect())
    }
}

impl From<Vec<AxisSlice>> for Slices {
    fn from(slices: Vec<AxisSlice>) -> Self {
        Self(slices)
    }
}

impl<const N: usize> From<[AxisSlice; N]> for Slices {
    fn from(slices: [AxisSlice; N]) -> Self {
        Self(slices.into())
    }
}

macro_rules! tuples {
    ($(($($axis:ident)+))*) => {$(
        impl<$($axis: Into<AxisSlice>),+> From<($($axis,)+)> for Slices {
            #[allow(non_snake_case)]
            fn from(($($axis,)+): ($($axis,)+)) -> Self {
                Self(vec![$($axis.into()),+])
            }
        }
    )*};
}

tuples!((A) (A B) (A B C) (A B C D) (A B C D E) (A B C D E F));

impl From<RangeFull> for AxisSlice {
    fn from(_: RangeFull) -> Self {
        Self::FULL
    }
}

/// Integers are indices. Those that do not fit `isize` become the nearest `isize`: no axis is that long.
macro_rules! integers {
    ($($int:ty, |$value:ident| $index:expr;)*) => {$(
        impl From<$int> for AxisSlice {
            fn from($value: $int) -> Self {
                Self::Index($index)
            }
        }

        impl From<Range<$int>> for AxisSlice {
            fn from(range: Range<$int>) -> Self {
                let index = |$value: $int| $index;
                Self::Range { start: index(range.start), end: Some(index(range.end)), step: 1 }
            }
        }

        impl From<RangeFrom<$int>> for AxisSlice {
            fn from(range: RangeFrom<$int>) -> Self {
                let index = |$value: $int| $index;
                Self::Range { start: index(range.start), end: None, step: 1 }
            }
        }

        impl From<RangeTo<$int>> for AxisSlice {
            fn from(range: RangeTo<$int>) -> Self {
                let index = |$value: $int| $index;
                Self::Range { start: 0, end: Some(index(range.end)), step: 1 }
            }
        }

        impl From<RangeInclusive<$int>> for AxisSlice {
            fn from(range: RangeInclusive<$int>) -> Self {
                let index = |$value: $int| $index;
                Self::Range { start: index(*range.start()), end: behind(index(*range.end())), step: 1 }
            }
        }

        impl From<RangeToInclusive<$int>> for AxisSlice {
            fn from(range: RangeToInclusive<$int>) -> Self {
                let index = |$value: $int| $index;
                Self::Range { start: 0, end: behind(index(range.end)), step: 1 }
            }
        }
    )*};
}

integers! {
    isize, |value| value;
    usize, |value| isize::try_from(value).unwrap_or(isize::MAX);
    i32, |value| isize::try_from(value).unwrap_or(if value < 0 { isize::MIN } else { isize::MAX });
}

/// The index after `index`. After -1, the last index, comes the end of the axis.
fn behind(index: isize) -> Option<isize> {
    match index {
        -1 => None,
        index => Some(index.saturating_add(1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_integers_are_slices() {
        let range = |start, end| AxisSlice::Range { start, end, step: 1 };
        let expected = [
            range(1, Some(3)),
            range(1, None),
            range(0, Some(-3)),
            range(1, Some(4)),
            range(-2, None),
            AxisSlice::Index(-1),
        ];
        assert_eq!(Slices::from((1..3, 1usize.., ..-3isize, 1..=3, -2..=-1, -1)), expected.into());
        assert_eq!(AxisSlice::from(..=2), range(0, Some(3)));
        assert_eq!(
            AxisSlice::from(..).step_by(-2),
            AxisSlice::Range { start: 0, end: None, step: -2 }
        );
        assert_eq!(AxisSlice::from(usize::MAX), AxisSlice::Index(isize::MAX));
    }
}
