//! Which elements of a tensor are read.

use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

/// Part of a tensor, an [`AxisSlice`] for each axis: for [`Archive::slice`](crate::Archive::slice).
///
/// Made of ndarray's `s![10..20, ..]`, of a tuple of ranges and indices, or of any list of
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

/// What is taken of one axis of a tensor. Numbers below 0 count from its end.
///
/// Made of ranges, and of integers, which are indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AxisSlice {
    /// One index; the result has no such axis.
    Index(isize),
    /// The indices from `start` to before `end`, or to the end of the axis: the first of them and each
    /// that follows in steps of `step`. A negative step takes the last of them first.
    Range {
        /// The first index.
        start: isize,
        /// The index behind the last; the end of the axis if there is none.
        end: Option<isize>,
        /// From one index to the next; not 0.
        step: isize,
    },
    /// None of the tensor's axes: the result has one more, of one index.
    NewAxis,
}

impl AxisSlice {
    /// The whole axis.
    pub const FULL: Self = Self::Range { start: 0, end: None, step: 1 };

    /// The same range in steps of `step`; an index or a new axis stays as it is.
    #[must_use]
    pub fn step_by(self, step: isize) -> Self {
        match self {
            Self::Range { start, end, .. } => Self::Range { start, end, step },
            other => other,
        }
    }
}

impl Slices {
    /// What is taken of each axis.
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

/// An integer as an index. Beyond `isize` there is no axis, so that the largest is as good.
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

/// The index behind one; behind -1, the last, is the end.
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
