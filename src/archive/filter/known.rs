//! Tells from statistics whether rows can meet a test, without reading them.

use super::mask::Asked;
use super::test::{Comparison, Ranges, StringTest, Test};
use crate::wire::statistics::{Bound, Statistic};

impl Asked<'_> {
    /// Whether some of the rows that `known` is about may meet the test. `None` if it is not known that they can be
    /// compared as the test asks: to read them can be an error.
    pub fn may_be_met(self, known: Option<&Statistic>) -> Option<bool> {
        let is_null = matches!(self.test, Test::Null);
        let Some(known) = known else { return is_null.then_some(true) };
        if is_null {
            let wanted = if self.is_opposite { known.rows - known.nulls } else { known.nulls };
            return Some(wanted > 0);
        }
        // No NaN meets a test, and each meets its opposite.
        let nans = self.is_opposite && known.nans > 0;
        if !known.has_values() {
            if known.nans > 0 {
                self.test.floats()?;
            }
            return Some(nans);
        }
        let (least, greatest) = (known.least.as_ref(), known.greatest.as_ref());
        Some(match least.or(greatest)? {
            Bound::Bool(_) => {
                let answers = self.test.bools()?;
                let may_be =
                    [least != Some(&Bound::Bool(true)), greatest != Some(&Bound::Bool(false))];
                may_be.iter().zip(answers).any(|(may_be, met)| *may_be && met != self.is_opposite)
            }
            Bound::Integer(_) => {
                let end = |bound: Option<&Bound>, or| match bound {
                    Some(Bound::Integer(value)) => *value,
                    _ => or,
                };
                let range = (end(least, i128::MIN), end(greatest, i128::MAX));
                self.may_be_in(&self.test.integers()?, range)
            }
            Bound::Float(_) => {
                let end = |bound: Option<&Bound>, or| match bound {
                    Some(Bound::Float(value)) => *value,
                    _ => or,
                };
                let range = (end(least, f64::NEG_INFINITY), end(greatest, f64::INFINITY));
                nans || self.may_be_in(&self.test.floats()?, range)
            }
            bound @ (Bound::Text(_) | Bound::Bytes(_)) => {
                let test = self.test.strings(matches!(bound, Bound::Text(_)))?;
                let least = least.and_then(string).unwrap_or_default();
                test.may_be_met(self.is_opposite, least, greatest.and_then(string))
            }
        })
    }

    /// Whether a number between these two may meet the test, which is met in `ranges`.
    fn may_be_in<T: Copy + PartialOrd>(
        self,
        ranges: &Ranges<T>,
        (least, greatest): (T, T),
    ) -> bool {
        let mut ranges = ranges.0.iter();
        if self.is_opposite {
            !ranges.any(|(start, end)| *start <= least && greatest <= *end)
        } else {
            ranges.any(|(start, end)| *start <= greatest && least <= *end)
        }
    }
}

impl StringTest<'_> {
    /// Whether a string between these two may meet the test, or the opposite of it.
    fn may_be_met(&self, is_opposite: bool, least: &[u8], greatest: Option<&[u8]>) -> bool {
        match self {
            Self::OneOf(strings) if is_opposite => {
                greatest != Some(least) || !strings.contains(&least)
            }
            Self::OneOf(strings) => strings.iter().any(|string| {
                least <= *string && greatest.is_none_or(|greatest| *string <= greatest)
            }),
            Self::Compare(comparison, other) => {
                let is_upward =
                    matches!(comparison, Comparison::Greater | Comparison::GreaterOrEqual);
                // If any string does, the one at this end does.
                let end = if is_upward == is_opposite { Some(least) } else { greatest };
                end.is_none_or(|end| comparison.holds(&end, other) != is_opposite)
            }
            Self::StartsWith(start) if is_opposite => {
                let starts = |end: &[u8]| end.starts_with(start);
                !(starts(least) && greatest.is_some_and(starts))
            }
            Self::StartsWith(start) => {
                (least <= *start || least.starts_with(start))
                    && greatest.is_none_or(|greatest| greatest >= *start)
            }
            Self::Contains(_) => true,
        }
    }
}

fn string(bound: &Bound) -> Option<&[u8]> {
    match bound {
        Bound::Text(text) => Some(text.as_bytes()),
        Bound::Bytes(bytes) => Some(bytes),
        _ => None,
    }
}
