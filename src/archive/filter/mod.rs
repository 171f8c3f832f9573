//! Conditions that rows of a table meet or do not meet.

mod known;
mod mask;
mod test;

use std::ops::Not;

pub(super) use self::mask::Asked;
pub(super) use self::test::{Comparison, Test};
use crate::error::Result;
use crate::value::Value;
use crate::wire::statistics::Statistic;

/// The column at a path, in a condition: see [`Table::filter`](super::Table::filter).
///
/// The path is one that [`Table::column`](super::Table::column) takes: a field, or several that are joined by dots, such
/// as `request.size`. The fields of a variant of an enum follow its name, such as `kind.Click.x`, and have no value in
/// rows of other variants.
///
/// ```
/// # #[derive(serde::Serialize)]
/// # struct Event { id: u64, score: f32 }
/// # let events: Vec<_> = (0..300).map(|id| Event { id, score: id as f32 }).collect();
/// # let mut out = tenarc::OArchive::new(Vec::new())?;
/// # out.save_as("events", &events)?;
/// # let archive = tenarc::Archive::new(out.finish()?)?;
/// use tenarc::archive::col;
///
/// let table = archive.table("events")?;
/// assert_eq!(table.filter(col("score").gt_eq(298)).row_numbers()?, [298, 299]);
/// # Ok::<(), tenarc::Error>(())
/// ```
pub fn col(path: impl Into<String>) -> Col {
    Col { path: path.into() }
}

/// A column in a condition, which [`col`] makes. Its methods make conditions of it.
///
/// What a column is compared with can be a number, a bool, a text, or [`Value::Bytes`]:
///
/// - **Numbers** are compared by their value, whatever their types are: an integer of any width with an integer or a
///   float. Nothing is rounded. Comparisons with NaN are false, and [`ne`](Self::ne) is true, as in Rust.
/// - **Texts and byte strings** are compared byte by byte.
/// - **Bools**: false is less than true.
/// - **Enums** are compared with texts, which are names of variants. What is in the variant makes no difference.
/// - **Null** meets no condition but [`is_null`](Self::is_null), not even [`ne`](Self::ne). A field that a row does not
///   have is null.
///
/// A column with values of another kind than what it is compared with is an error.
#[derive(Clone, Debug)]
#[must_use]
pub struct Col {
    path: String,
}

impl Col {
    /// The value equals this one.
    pub fn eq(self, value: impl Into<Value>) -> Filter {
        self.is_in([value])
    }

    /// There is a value, and it does not equal this one.
    pub fn ne(self, value: impl Into<Value>) -> Filter {
        !self.eq(value)
    }

    /// The value is less than this one.
    pub fn lt(self, value: impl Into<Value>) -> Filter {
        self.compares(Comparison::Less, value)
    }

    /// The value is less than this one, or equals it.
    pub fn lt_eq(self, value: impl Into<Value>) -> Filter {
        self.compares(Comparison::LessOrEqual, value)
    }

    /// The value is greater than this one.
    pub fn gt(self, value: impl Into<Value>) -> Filter {
        self.compares(Comparison::Greater, value)
    }

    /// The value is greater than this one, or equals it.
    pub fn gt_eq(self, value: impl Into<Value>) -> Filter {
        self.compares(Comparison::GreaterOrEqual, value)
    }

    /// The value equals one of these, which must be of one kind. No value equals one of none.
    pub fn is_in<V: Into<Value>>(self, values: impl IntoIterator<Item = V>) -> Filter {
        self.meets(Test::OneOf(values.into_iter().map(Into::into).collect()))
    }

    /// There is no value: it is null or missing.
    pub fn is_null(self) -> Filter {
        self.meets(Test::Null)
    }

    /// There is a value: it is neither null nor missing.
    pub fn is_not_null(self) -> Filter {
        !self.is_null()
    }

    /// The text starts with this one.
    pub fn starts_with(self, text: impl Into<String>) -> Filter {
        self.meets(Test::StartsWith(text.into()))
    }

    /// The text contains this one.
    pub fn contains(self, text: impl Into<String>) -> Filter {
        self.meets(Test::Contains(text.into()))
    }

    fn compares(self, comparison: Comparison, value: impl Into<Value>) -> Filter {
        self.meets(Test::Compare(comparison, value.into()))
    }

    fn meets(self, test: Test) -> Filter {
        Filter(Condition::Column { path: self.path, test })
    }
}

/// A condition that rows meet or do not meet: [`Table::filter`](super::Table::filter). [`col`] starts one.
///
/// `!filter` is met where `filter` is not. Null meets neither: both `col("size").gt(5)` and `!col("size").gt(5)` leave
/// out rows whose size is null, as in SQL.
///
/// ```
/// # #[derive(serde::Serialize)]
/// # struct Request { size: Option<u32> }
/// # let requests: Vec<_> = [Some(3), None, Some(9), Some(70)].map(|size| Request { size }).into();
/// # let mut out = tenarc::OArchive::new(Vec::new())?;
/// # out.save_as("requests", &requests)?;
/// # let archive = tenarc::Archive::new(out.finish()?)?;
/// use tenarc::archive::col;
///
/// let requests = archive.table("requests")?; // their sizes are 3, null, 9 and 70
/// let is_large = col("size").gt(5);
/// assert_eq!(requests.filter(is_large.clone()).row_numbers()?, [2, 3]);
/// assert_eq!(requests.filter(!is_large.clone()).row_numbers()?, [0]);
/// assert_eq!(requests.filter(is_large.and(col("size").lt(10))).row_numbers()?, [2]);
/// # Ok::<(), tenarc::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Filter(Condition);

#[derive(Clone, Debug, PartialEq)]
enum Condition {
    Column {
        path: String,
        test: Test,
    },
    Not(Box<Filter>),
    /// Several conditions. All of them must be met, or any of them.
    Several {
        all: bool,
        first: Box<Filter>,
        rest: Vec<Filter>,
    },
}

impl Filter {
    /// Both conditions are met.
    pub fn and(self, other: Self) -> Self {
        self.joined(true, other)
    }

    /// At least one of the conditions is met.
    pub fn or(self, other: Self) -> Self {
        self.joined(false, other)
    }

    /// Conditions that are joined in the same way are one list, so that many of them are not nested.
    fn joined(mut self, are_all: bool, other: Self) -> Self {
        if let Condition::Several { all, rest, .. } = &mut self.0
            && *all == are_all
        {
            rest.push(other);
            return self;
        }
        Self(Condition::Several { all: are_all, first: Box::new(self), rest: vec![other] })
    }

    /// The paths of all columns, each once.
    pub(super) fn paths(&self) -> Vec<&str> {
        let mut paths = Vec::new();
        self.add_paths(&mut paths);
        paths.sort_unstable();
        paths.dedup();
        paths
    }

    fn add_paths<'f>(&'f self, paths: &mut Vec<&'f str>) {
        match &self.0 {
            Condition::Column { path, .. } => paths.push(path),
            Condition::Not(filter) => filter.add_paths(paths),
            Condition::Several { first, rest, .. } => {
                first.add_paths(paths);
                for filter in rest {
                    filter.add_paths(paths);
                }
            }
        }
    }

    /// Whether any row of a group may meet the condition. `known` returns what is known about the column at a path.
    /// `None` if it is not known that all columns can be compared as the condition asks: to read them can be an error.
    pub(super) fn may_be_met<'k>(
        &self,
        known: &dyn Fn(&str) -> Option<&'k Statistic>,
    ) -> Option<bool> {
        self.may_be(false, known)
    }

    /// Like [`may_be_met`](Self::may_be_met), but can ask for the opposite, as [`asked`](Self::asked) does.
    fn may_be<'k>(
        &self,
        is_opposite: bool,
        known: &dyn Fn(&str) -> Option<&'k Statistic>,
    ) -> Option<bool> {
        match &self.0 {
            Condition::Column { path, test } => Asked { test, is_opposite }.may_be_met(known(path)),
            Condition::Not(filter) => filter.may_be(!is_opposite, known),
            Condition::Several { all, first, rest } => {
                let mut may_be = first.may_be(is_opposite, known)?;
                for filter in rest {
                    let other = filter.may_be(is_opposite, known)?;
                    may_be = if *all == is_opposite { may_be || other } else { may_be && other };
                }
                Some(may_be)
            }
        }
    }

    /// For each row, whether it meets the condition. `of_column` tests the column at a path.
    pub(super) fn mask(
        &self,
        of_column: &mut dyn FnMut(&str, Asked<'_>) -> Result<Vec<bool>>,
    ) -> Result<Vec<bool>> {
        self.asked(false, of_column)
    }

    /// Like [`mask`](Self::mask), but can ask for the opposite of the condition. Null meets neither a test nor its
    /// opposite. So the opposite of several conditions is made of their opposites.
    fn asked(
        &self,
        is_opposite: bool,
        of_column: &mut dyn FnMut(&str, Asked<'_>) -> Result<Vec<bool>>,
    ) -> Result<Vec<bool>> {
        match &self.0 {
            Condition::Column { path, test } => of_column(path, Asked { test, is_opposite }),
            Condition::Not(filter) => filter.asked(!is_opposite, of_column),
            Condition::Several { all, first, rest } => {
                let mut mask = first.asked(is_opposite, of_column)?;
                for filter in rest {
                    let other = filter.asked(is_opposite, of_column)?;
                    let both = mask.iter_mut().zip(other);
                    if *all == is_opposite {
                        both.for_each(|(one, other)| *one |= other);
                    } else {
                        both.for_each(|(one, other)| *one &= other);
                    }
                }
                Ok(mask)
            }
        }
    }
}

impl Not for Filter {
    type Output = Self;

    fn not(self) -> Self {
        match self.0 {
            Condition::Not(filter) => *filter,
            condition => Self(Condition::Not(Box::new(Self(condition)))),
        }
    }
}
