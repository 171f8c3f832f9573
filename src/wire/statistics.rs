//! Statistics of the columns of a segment (`SPEC.md`, section 5.13): how many rows of a group are null, and between
//! which bounds the other values are.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use half::f16;

use super::number::Numeric;
use super::reader::Reader;
use super::{head, items};
use crate::error::{Error, Result};
use crate::io::input::Input;
use crate::io::sink::{Memory, Sink};
use crate::number::double_to_single;
use crate::options::Limits;

/// The most bytes of a bound that is a text or a byte string.
const MAX_BOUND: usize = 16;
/// How many of them are written. With the length, they fit into one number.
pub const KEPT: usize = MAX_BOUND - 1;
/// Sequences with fewer rows get no statistics. To read them costs hardly more than to judge them.
const MIN_ROWS: u64 = 1024;
/// The most statistics that are in memory while a value is written. Not so many fit into a header.
const MAX_KEPT: usize = 1 << 14;
/// The most bytes that the heads around the columns take.
const HEADS: usize = 16;

/// A value at or below, or at or above, all values of some rows.
#[derive(Clone, Debug, PartialEq)]
pub enum Bound {
    Bool(bool),
    Integer(i128),
    Float(f64),
    Text(Box<str>),
    Bytes(Box<[u8]>),
}

/// Values of different kinds have no order.
impl PartialOrd for Bound {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Bool(one), Self::Bool(other)) => Some(one.cmp(other)),
            (Self::Integer(one), Self::Integer(other)) => Some(one.cmp(other)),
            (Self::Float(one), Self::Float(other)) => one.partial_cmp(other),
            (Self::Text(one), Self::Text(other)) => Some(one.cmp(other)),
            (Self::Bytes(one), Self::Bytes(other)) => Some(one.cmp(other)),
            _ => None,
        }
    }
}

impl Bound {
    /// The longest bound that is not above a string that starts like this.
    pub fn below(start: &[u8], is_text: bool) -> Self {
        let start = start.get(..KEPT).unwrap_or(start);
        if is_text { Self::Text(whole_characters(start).into()) } else { Self::Bytes(start.into()) }
    }

    /// The least bound that is not below this string, of which only the start must be given. `None` if there is none.
    pub fn above(start: &[u8], is_text: bool) -> Option<Self> {
        let Some(start) = start.get(..KEPT).filter(|cut| cut.len() < start.len()) else {
            return Some(Self::below(start, is_text));
        };
        if is_text {
            let mut text = whole_characters(start).to_owned();
            while let Some(last) = text.pop() {
                let next = (last..=char::MAX).nth(1);
                if let Some(next) = next.filter(|next| text.len() + next.len_utf8() <= MAX_BOUND) {
                    text.push(next);
                    return Some(Self::Text(text.into()));
                }
            }
            return None;
        }
        let mut bytes = start.to_vec();
        while let Some(last) = bytes.pop() {
            if let Some(next) = last.checked_add(1) {
                bytes.push(next);
                return Some(Self::Bytes(bytes.into()));
            }
        }
        None
    }

    #[allow(clippy::float_cmp)] // Only a width that keeps the value is right.
    fn write(&self, to: &mut Sink<Memory>) -> Result<()> {
        match self {
            Self::Bool(value) => to.put([items::bool(*value)]),
            Self::Integer(value) => {
                let (negative, arg) = items::wide_signed(*value);
                to.wide_integer(negative, arg)
            }
            Self::Float(value) => {
                // There is one zero.
                let value = value + 0.0;
                let half = f16::from_f64(value);
                if f64::from(half) == value {
                    let [high, low] = half.to_be_bytes();
                    return to.put([head::HALF, high, low]);
                }
                match double_to_single(value) {
                    Some(single) => to.single(single),
                    None => to.double(value),
                }
            }
            Self::Text(text) => to.text(text),
            Self::Bytes(bytes) => to.bytes(bytes),
        }
    }

    /// Reads a bound. `None` for null.
    fn read(wire: &mut Reader<'_, '_>) -> Result<Option<Self>> {
        let at = wire.offset();
        let found = wire.head()?;
        let long = || {
            let what =
                format!("expected a bound of at most {MAX_BOUND} bytes, found {} bytes", found.arg);
            Error::data(what).at(at)
        };
        let bound = match (found.initial, found.major()) {
            (head::NULL, _) => return Ok(None),
            (head::FALSE | head::TRUE, _) => Some(Self::Bool(found.initial == head::TRUE)),
            (_, head::TEXT | head::BYTES) if found.arg > MAX_BOUND as u64 => return Err(long()),
            (_, head::TEXT) => Some(Self::Text(wire.text(found)?.as_str().into())),
            (_, head::BYTES) => Some(Self::Bytes(wire.string(found)?.as_slice().into())),
            (_, head::UNSIGNED | head::NEGATIVE) => {
                Numeric::from_head(found).and_then(Numeric::as_int).map(Self::Integer)
            }
            _ => {
                let number = Numeric::from_head(found).and_then(Numeric::as_double);
                number.filter(|number| !number.is_nan()).map(Self::Float)
            }
        };
        let what = || Error::data("expected a number, bool, text, byte string or null as a bound");
        bound.ok_or_else(|| what().at(at)).map(Some)
    }
}

/// The characters of a text that are whole, if bytes behind these are missing.
fn whole_characters(start: &[u8]) -> &str {
    start.utf8_chunks().next().map(|chunk| chunk.valid()).unwrap_or_default()
}

/// What is known about the values of a column in some rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Statistic {
    pub rows: u64,
    /// How many of the rows are null or missing.
    pub nulls: u64,
    pub nans: u64,
    /// All other values are at or above this one. `None` if it is not known.
    pub least: Option<Bound>,
    pub greatest: Option<Bound>,
}

impl Statistic {
    /// Whether there is a value that is not null and not NaN.
    pub fn has_values(&self) -> bool {
        self.nulls.saturating_add(self.nans) < self.rows
    }

    /// What is known about these rows and others together.
    fn and(self, other: Self) -> Option<Self> {
        let outer = |one: Option<Bound>, other: Option<Bound>, wanted| {
            let Some((one, other)) = one.zip(other) else { return Some(None) };
            let order = one.partial_cmp(&other)?;
            Some(Some(if order == wanted { one } else { other }))
        };
        let (least, greatest) = match (self.has_values(), other.has_values()) {
            (_, false) => (self.least, self.greatest),
            (false, true) => (other.least, other.greatest),
            (true, true) => (
                outer(self.least, other.least, Ordering::Less)?,
                outer(self.greatest, other.greatest, Ordering::Greater)?,
            ),
        };
        Some(Self {
            rows: self.rows.saturating_add(other.rows),
            nulls: self.nulls.saturating_add(other.nulls),
            nans: self.nans.saturating_add(other.nans),
            least,
            greatest,
        })
    }

    fn write(&self, to: &mut Sink<Memory>) -> Result<()> {
        to.head(head::ARRAY, 4)?;
        to.head(head::UNSIGNED, self.nulls)?;
        to.head(head::UNSIGNED, self.nans)?;
        for bound in [&self.least, &self.greatest] {
            match bound {
                Some(bound) => bound.write(to)?,
                None => to.put([head::NULL])?,
            }
        }
        Ok(())
    }
}

/// The statistics of columns, by the names that lead to each.
pub type ByPath<T> = BTreeMap<Vec<String>, T>;

/// The statistics of all groups of a sequence that is stored as columns.
#[derive(Debug)]
pub struct Statistics {
    /// How many groups each statistic covers.
    step: usize,
    /// `None` where nothing is known.
    pub columns: ByPath<Vec<Option<Statistic>>>,
}

impl Statistics {
    /// Reads the statistics of groups with these numbers of rows.
    ///
    /// # Errors
    /// If they have another form.
    pub fn parse(encoded: &[u8], groups: &[u64]) -> Result<Self> {
        let mut wire = Reader::new(Input::slice(encoded), Limits::default());
        let wire = &mut wire;
        array(wire, "statistics", Some(2))?;
        let at = wire.offset();
        let step = unsigned(wire, "a number of groups")?;
        if step == 0 {
            return Err(Error::data("expected a number of groups, found 0").at(at));
        }
        let step = usize::try_from(step).unwrap_or(usize::MAX);
        let spans: Vec<u64> = groups.chunks(step).map(|groups| groups.iter().sum()).collect();
        let mut columns = ByPath::new();
        for _ in 0..array(wire, "columns", None)? {
            array(wire, "a column", Some(2))?;
            let at = wire.offset();
            let mut path = Vec::new();
            for _ in 0..array(wire, "the names of a path", None)? {
                let name = wire.head()?;
                if name.major() != head::TEXT {
                    return Err(unlike("a name", name.initial).at(at));
                }
                path.push(wire.text(name)?.as_str().to_owned());
            }
            array(wire, "the statistics of groups", Some(spans.len() as u64))?;
            let found = spans.iter().map(|&rows| statistic(wire, rows));
            let found = found.collect::<Result<Vec<_>>>()?;
            if columns.insert(path, found).is_some() {
                return Err(Error::data("a path is there twice").at(at));
            }
        }
        Ok(Self { step, columns })
    }

    /// Which of the statistics of a column covers a group.
    pub fn span(&self, group: usize) -> usize {
        group / self.step
    }

    /// What is known about a column in the rows around a group.
    pub fn of_group(&self, group: usize, path: &[String]) -> Option<&Statistic> {
        self.columns.get(path)?.get(self.span(group))?.as_ref()
    }
}

/// Reads what is known about some rows of a column. `None` for null.
fn statistic(wire: &mut Reader<'_, '_>, rows: u64) -> Result<Option<Statistic>> {
    let at = wire.offset();
    if wire.initial()? == head::NULL {
        wire.head()?;
        return Ok(None);
    }
    array(wire, "a statistic", Some(4))?;
    let nulls = unsigned(wire, "a number of nulls")?;
    let nans = unsigned(wire, "a number of NaNs")?;
    let (least, greatest) = (Bound::read(wire)?, Bound::read(wire)?);
    if nulls.checked_add(nans).is_none_or(|sum| sum > rows) {
        let what = format!("expected at most {rows} nulls and NaNs, found {nulls} and {nans}");
        return Err(Error::data(what).at(at));
    }
    if let (Some(least), Some(greatest)) = (&least, &greatest)
        && !matches!(least.partial_cmp(greatest), Some(Ordering::Less | Ordering::Equal))
    {
        return Err(Error::data("expected an upper bound that is not below the lower one").at(at));
    }
    Ok(Some(Statistic { rows, nulls, nans, least, greatest }))
}

/// Reads the head of an array of this length, or of any. `what` says in an error what was expected.
fn array(wire: &mut Reader<'_, '_>, what: &str, len: Option<u64>) -> Result<u64> {
    let at = wire.offset();
    let found = wire.head()?;
    if found.major() != head::ARRAY {
        return Err(unlike(what, found.initial).at(at));
    }
    match len {
        Some(len) if len != found.arg => {
            let what = format!("expected {what}, an array of {len}, found one of {}", found.arg);
            Err(Error::data(what).at(at))
        }
        _ => Ok(found.arg),
    }
}

fn unsigned(wire: &mut Reader<'_, '_>, what: &str) -> Result<u64> {
    let at = wire.offset();
    let found = wire.head()?;
    if found.major() == head::UNSIGNED {
        Ok(found.arg)
    } else {
        Err(unlike(what, found.initial).at(at))
    }
}

#[cold]
fn unlike(what: &str, initial: u8) -> Error {
    Error::data(format!("expected {what}, found {}", head::name(initial)))
}

/// Collects the statistics of a sequence while it is written.
#[derive(Debug)]
pub struct StatisticsBuilder {
    /// If not, statistics are only copied.
    pub are_computed: bool,
    statistics: Statistics,
    rows: u64,
    groups: usize,
    /// Those of a value that is copied.
    copied: Option<Box<[u8]>>,
}

impl StatisticsBuilder {
    pub fn new(are_computed: bool) -> Self {
        let statistics = Statistics { step: 1, columns: ByPath::new() };
        Self { are_computed, statistics, rows: 0, groups: 0, copied: None }
    }

    /// Adds what is known about the next group.
    pub fn add_group(&mut self, rows: usize, mut found: ByPath<Statistic>) {
        let Statistics { step, columns } = &mut self.statistics;
        let (before, is_first) = (self.groups / *step, self.groups.is_multiple_of(*step));
        for (path, spans) in columns.iter_mut() {
            let next = found.remove(path);
            if is_first {
                spans.push(next);
            } else if let Some(last) = spans.last_mut() {
                *last = both(last.take(), next);
            }
        }
        for (path, next) in found {
            let mut spans = vec![None; before];
            spans.push(Some(next).filter(|_| is_first));
            columns.insert(path, spans);
        }
        self.rows = self.rows.saturating_add(rows as u64);
        self.groups += 1;
        while self.kept() > MAX_KEPT && self.join() {}
    }

    /// Takes over encoded statistics.
    pub fn copy(&mut self, encoded: Box<[u8]>) {
        self.copied = Some(encoded);
    }

    fn kept(&self) -> usize {
        self.statistics.columns.values().map(Vec::len).sum()
    }

    /// Lets each statistic cover twice as many groups. Returns whether there are fewer now.
    fn join(&mut self) -> bool {
        let Statistics { step, columns } = &mut self.statistics;
        if *step >= self.groups {
            return false;
        }
        *step *= 2;
        for spans in columns.values_mut() {
            let mut each = std::mem::take(spans).into_iter();
            while let Some(one) = each.next() {
                spans.push(match each.next() {
                    Some(other) => both(one, other),
                    None => one,
                });
            }
        }
        true
    }

    /// The statistics in at most so many bytes. `None` if there are none, or they are not worth it.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn encoded(mut self, most: usize) -> Result<Option<Vec<u8>>> {
        if let Some(copied) = self.copied {
            return Ok(Some(copied.into_vec()).filter(|copied| copied.len() <= most));
        }
        if self.rows < MIN_ROWS {
            return Ok(None);
        }
        loop {
            let mut columns = Vec::new();
            let mut len = HEADS;
            for (path, spans) in &self.statistics.columns {
                if spans.iter().all(Option::is_none) {
                    continue;
                }
                let column = encoded_column(path, spans)?;
                len += column.len();
                columns.push(column);
            }
            if len > most {
                if self.join() {
                    continue;
                }
                // The first columns are kept.
                let mut left = most.saturating_sub(HEADS);
                columns.retain(|column| match left.checked_sub(column.len()) {
                    Some(rest) => {
                        left = rest;
                        true
                    }
                    None => false,
                });
            }
            if columns.is_empty() {
                return Ok(None);
            }
            let mut to = Sink::new(Vec::with_capacity(len), Memory::growing());
            to.head(head::ARRAY, 2)?;
            to.head(head::UNSIGNED, self.statistics.step as u64)?;
            to.head(head::ARRAY, columns.len() as u64)?;
            columns.iter().try_for_each(|column| to.put_slice(column))?;
            return Ok(Some(to.into_parts().0));
        }
    }
}

fn both(one: Option<Statistic>, other: Option<Statistic>) -> Option<Statistic> {
    one.zip(other).and_then(|(one, other)| one.and(other))
}

fn encoded_column(path: &[String], spans: &[Option<Statistic>]) -> Result<Vec<u8>> {
    let mut to = Sink::new(Vec::new(), Memory::growing());
    to.head(head::ARRAY, 2)?;
    to.head(head::ARRAY, path.len() as u64)?;
    path.iter().try_for_each(|name| to.text(name))?;
    to.head(head::ARRAY, spans.len() as u64)?;
    for statistic in spans {
        match statistic {
            Some(statistic) => statistic.write(&mut to)?,
            None => to.put([head::NULL])?,
        }
    }
    Ok(to.into_parts().0)
}
