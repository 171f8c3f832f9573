//! What a value is tested for.

use std::cmp::Ordering;
use std::fmt;

use crate::diag::QuotedText;
use crate::number::{self, END};
use crate::value::Value;

/// What the values of a column are tested for. A value that is not null meets either a test or its opposite.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    Null,
    OneOf(Vec<Value>),
    Compare(Comparison, Value),
    StartsWith(String),
    Contains(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    pub fn holds<T: PartialOrd>(self, one: &T, other: &T) -> bool {
        match self {
            Self::Less => one < other,
            Self::LessOrEqual => one <= other,
            Self::Greater => one > other,
            Self::GreaterOrEqual => one >= other,
        }
    }
}

/// The number of characters of a value that an error shows.
const SHOWN: usize = 64;

impl Test {
    /// What the values are compared with, for errors.
    pub fn describe(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::OneOf(values) => match &**values {
                [value] => described(value),
                values => {
                    let shown: Vec<_> = values.iter().take(3).map(described).collect();
                    format!("one of {}", shown.join(", "))
                }
            },
            Self::Compare(_, value) => described(value),
            Self::StartsWith(text) => format!("the start {}", shown(QuotedText(text))),
            Self::Contains(text) => format!("the part {}", shown(QuotedText(text))),
        }
    }

    /// The ranges of integers that meet the test. `None` if it is no test of numbers.
    pub fn integers(&self) -> Option<Ranges<i128>> {
        let all = (i128::MIN, i128::MAX);
        let prev = |value: i128| value.checked_sub(1);
        let next = |value: i128| value.checked_add(1);
        self.ranges(all, prev, next, |value| match value {
            Value::Integer(value) => Some(Place { below: Some(*value), above: Some(*value) }),
            value => float(value).map(among_integers),
        })
    }

    /// Like [`integers`](Self::integers), for floats.
    pub fn floats(&self) -> Option<Ranges<f64>> {
        let all = (f64::NEG_INFINITY, f64::INFINITY);
        let prev = |value: f64| (value > f64::NEG_INFINITY).then(|| value.next_down());
        let next = |value: f64| (value < f64::INFINITY).then(|| value.next_up());
        self.ranges(all, prev, next, |value| match value {
            Value::Integer(value) => Some(among_floats(*value)),
            value => float(value).map(|value| Place { below: Some(value), above: Some(value) }),
        })
    }

    /// Makes ranges of the places that values have among the numbers of a type.
    fn ranges<T: Copy + PartialOrd>(
        &self,
        all: (T, T),
        prev: impl Fn(T) -> Option<T>,
        next: impl Fn(T) -> Option<T>,
        place: impl Fn(&Value) -> Option<Place<T>>,
    ) -> Option<Ranges<T>> {
        let is_nan = |value: &Value| float(value).is_some_and(f64::is_nan);
        let mut ranges = Vec::new();
        match self {
            Self::OneOf(values) => {
                for value in values {
                    if let Place { below: Some(below), above: Some(above) } = place(value)?
                        && below == above
                    {
                        ranges.push((below, above));
                    }
                }
            }
            Self::Compare(comparison, value) => {
                let Place { below, above } = place(value)?;
                let range = match comparison {
                    _ if is_nan(value) => None,
                    Comparison::Less => match above {
                        None => Some(all),
                        Some(above) => prev(above).map(|end| (all.0, end)),
                    },
                    Comparison::LessOrEqual => below.map(|end| (all.0, end)),
                    Comparison::Greater => match below {
                        None => Some(all),
                        Some(below) => next(below).map(|start| (start, all.1)),
                    },
                    Comparison::GreaterOrEqual => above.map(|start| (start, all.1)),
                };
                ranges.extend(range);
            }
            _ => return None,
        }
        // No NaN is among them, because it does not equal itself.
        ranges
            .sort_unstable_by(|one, other| one.0.partial_cmp(&other.0).unwrap_or(Ordering::Equal));
        ranges.dedup_by(|one, other| one.0 == other.0);
        Some(Ranges(ranges))
    }

    /// Whether false and true meet the test. `None` if it is no test of bools.
    pub fn bools(&self) -> Option<[bool; 2]> {
        let bool = |value: &Value| match value {
            Value::Bool(value) => Some(*value),
            _ => None,
        };
        let met = |value: bool| {
            Some(match self {
                Self::OneOf(values) => {
                    let mut is_met = false;
                    for other in values {
                        is_met |= bool(other)? == value;
                    }
                    is_met
                }
                Self::Compare(comparison, other) => comparison.holds(&value, &bool(other)?),
                _ => return None,
            })
        };
        Some([met(false)?, met(true)?])
    }

    /// The test as one of texts, or of byte strings. `None` if it is none.
    pub fn strings(&self, are_texts: bool) -> Option<StringTest<'_>> {
        Some(match self {
            Self::OneOf(values) => {
                let strings = values.iter().map(|value| string(value, are_texts));
                let mut strings = strings.collect::<Option<Vec<_>>>()?;
                strings.sort_unstable();
                StringTest::OneOf(strings)
            }
            Self::Compare(comparison, value) => {
                StringTest::Compare(*comparison, string(value, are_texts)?)
            }
            Self::StartsWith(text) if are_texts => StringTest::StartsWith(text.as_bytes()),
            Self::Contains(text) if are_texts => StringTest::Contains(text),
            _ => return None,
        })
    }
}

/// A test of texts or byte strings.
pub enum StringTest<'t> {
    /// They ascend.
    OneOf(Vec<&'t [u8]>),
    Compare(Comparison, &'t [u8]),
    StartsWith(&'t [u8]),
    Contains(&'t str),
}

impl StringTest<'_> {
    #[inline]
    pub fn is_met(&self, string: &[u8]) -> bool {
        match self {
            Self::OneOf(strings) => match &**strings {
                [one] => string == *one,
                strings => strings.binary_search(&string).is_ok(),
            },
            Self::Compare(comparison, other) => comparison.holds(&string, other),
            Self::StartsWith(start) => string.starts_with(start),
            Self::Contains(part) => {
                // It was checked to be UTF-8 when it was read.
                std::str::from_utf8(string).is_ok_and(|string| string.contains(part))
            }
        }
    }
}

/// The ranges of numbers that meet a test. Both ends are in the range. Ranges do not overlap, and ascend.
pub struct Ranges<T>(pub Vec<(T, T)>);

impl<T: Copy + PartialOrd> Ranges<T> {
    #[inline]
    pub fn contain(&self, value: T) -> bool {
        let before = self.0.partition_point(|(_, end)| *end < value);
        self.0.get(before).is_some_and(|(start, end)| *start <= value && value <= *end)
    }
}

/// The place of a number among the numbers of another type.
struct Place<T> {
    /// The greatest number of the type that is at most this one. `None` if there is none.
    below: Option<T>,
    /// The least number of the type that is at least this one.
    above: Option<T>,
}

/// The place of a float among the integers.
#[allow(clippy::cast_possible_truncation)]
fn among_integers(value: f64) -> Place<i128> {
    // `as` saturates.
    Place {
        below: (value >= -END).then(|| value.floor() as i128),
        above: (value < END).then(|| value.ceil() as i128),
    }
}

/// The place of an integer among the floats.
#[allow(clippy::cast_precision_loss)]
fn among_floats(value: i128) -> Place<f64> {
    let near = value as f64;
    let (below, above) = match number::order(value, near) {
        Ordering::Less => (near.next_down(), near),
        Ordering::Equal => (near, near),
        Ordering::Greater => (near, near.next_up()),
    };
    Place { below: Some(below), above: Some(above) }
}

/// A value, for errors.
fn described(value: &Value) -> String {
    match value {
        Value::Null => "null, for which there is is_null".to_owned(),
        Value::F32(value) => format!("the number {value}"),
        Value::F64(value) => format!("the number {value}"),
        Value::Integer(value) => format!("the number {value}"),
        Value::Text(text) => format!("the text {}", shown(QuotedText(text))),
        value => shown(value),
    }
}

fn shown(value: impl fmt::Display) -> String {
    value.to_string().chars().take(SHOWN).collect()
}

fn float(value: &Value) -> Option<f64> {
    match value {
        Value::F32(value) => Some((*value).into()),
        Value::F64(value) => Some(*value),
        _ => None,
    }
}

fn string(value: &Value, is_text: bool) -> Option<&[u8]> {
    match value {
        Value::Text(text) if is_text => Some(text.as_bytes()),
        Value::Bytes(bytes) if !is_text => Some(bytes),
        _ => None,
    }
}
