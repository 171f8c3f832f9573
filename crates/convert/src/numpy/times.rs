//! numpy's times and durations, `datetime64` and `timedelta64`, and the types of `SPEC.md`, section 7.2, for arrays of them.

use std::ops::RangeInclusive;

use tenarc::tensor::{Deferred, Order};
use tenarc::types::{Parameter, TimeUnit, TypeName};
use tenarc::{DType, Error, Result};

use crate::as_value::Part;
use crate::stored::Put;
use crate::typed::Type;

/// The types of arrays that no type of the format holds, because of their unit or because of a missing time. The parameter
/// is the unit, as numpy writes it.
const TIMES: &str = "numpy.org/datetime64";
const DURATIONS: &str = "numpy.org/timedelta64";

/// The unit of a dtype that states none.
const GENERIC: &str = "generic";

/// The units of which numpy makes all others, with their multiples.
const UNITS: [&str; 13] = ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as"];

/// The units that the format has.
const KNOWN: [TimeUnit; 4] =
    [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond];

/// What integers of 64 bits mean to numpy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Times {
    /// `M` for times, and `m` for durations.
    kind: char,
    /// A unit, after the number of them that a step has if it is not 1, such as `ns` or `25s`; or [`GENERIC`].
    unit: String,
}

impl Times {
    /// Returns the times that a type string without its byte order describes, such as `M8[ns]`.
    pub fn of_code(code: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(code).ok()?;
        let (kind, unit) = match text.strip_prefix('M') {
            Some(rest) => ('M', rest),
            None => ('m', text.strip_prefix('m')?),
        };
        let unit = match unit.strip_prefix('8')? {
            "" => GENERIC,
            unit => unit.strip_prefix('[')?.strip_suffix(']')?,
        };
        Self::new(kind, unit)
    }

    fn new(kind: char, unit: &str) -> Option<Self> {
        let name = unit.trim_start_matches(|c: char| c.is_ascii_digit());
        let count = unit.strip_suffix(name)?;
        let is_count = count.len() < 10 && !count.starts_with('0');
        let is_unit = unit == GENERIC || is_count && UNITS.contains(&name);
        is_unit.then(|| Self { kind, unit: unit.to_owned() })
    }

    /// Returns numpy's type string.
    pub fn descr(&self) -> String {
        match &*self.unit {
            GENERIC => format!("<{}8", self.kind),
            unit => format!("<{}8[{unit}]", self.kind),
        }
    }

    /// Returns the type of the format for these times, and the numbers that it holds. `None` if the format has none.
    pub fn known(&self) -> Option<(TypeName, RangeInclusive<i64>)> {
        if self.kind == 'M' && self.unit == "D" {
            return Some((TypeName::date(), i32::MIN.into()..=i32::MAX.into()));
        }
        let unit = KNOWN.into_iter().find(|unit| unit.name() == self.unit)?;
        let of = match self.kind {
            'M' => TypeName::timestamp(unit, "").ok()?,
            _ => TypeName::duration(unit),
        };
        // The least integer is numpy's `NaT`.
        Some((of, -i64::MAX..=i64::MAX))
    }

    /// Returns the type that has the name of numpy.
    ///
    /// # Errors
    /// None: both names may be written.
    pub fn own(&self) -> Result<TypeName> {
        let name = if self.kind == 'M' { TIMES } else { DURATIONS };
        TypeName::new(name, vec![Parameter::Text(self.unit.clone())])
    }

    /// Returns the times that `read` reads, as numbers of a type. All of them are read here, because they decide on the type: only
    /// numpy's own has a number for a missing time.
    pub fn part<'a>(
        &self,
        shape: &[usize],
        order: Order,
        read: impl Fn(&mut Put<'_>) -> Result<()> + 'a,
    ) -> Result<Part<'a>> {
        if let Some((of, numbers)) = self.known() {
            let mut fits = true;
            read(&mut |block| {
                fits &= numbers_in(block).all(|number| numbers.contains(&number));
                Ok(())
            })?;
            if fits && of.name() == "date" {
                let days = move |put: &mut Put<'_>| {
                    read(&mut |block| {
                        let days =
                            numbers_in(block).map(|days| i32::try_from(days).map(i32::to_le_bytes));
                        let days: Vec<_> = days.collect::<Result<_, _>>().map_err(|_| changed())?;
                        put(days.as_flattened())
                    })
                };
                return Ok(Part::Typed(of, Deferred::from_blocks(DType::I32, shape, order, days)));
            }
            if fits {
                return Ok(Part::Typed(of, Deferred::from_blocks(DType::I64, shape, order, read)));
            }
        }
        Ok(Part::Typed(self.own()?, Deferred::from_blocks(DType::I64, shape, order, read)))
    }

    /// Returns the times of a type that has the name of numpy.
    pub fn of_own(of: &Type) -> Option<Self> {
        match (&*of.name, of.texts()?.as_slice()) {
            (TIMES, [unit]) => Self::new('M', unit),
            (DURATIONS, [unit]) => Self::new('m', unit),
            _ => None,
        }
    }

    /// Returns the times that a tensor of this type holds. `None` if it holds something else.
    pub fn of_type(of: &Type) -> Option<Self> {
        let (kind, unit) = match (&*of.name, of.texts()?.as_slice()) {
            ("date", []) => ('M', "D"),
            ("timestamp", [unit, _]) => ('M', *unit),
            ("duration", [unit]) => ('m', *unit),
            _ => return Self::of_own(of),
        };
        let is_known = unit == "D" || KNOWN.iter().any(|known| known.name() == unit);
        is_known.then(|| Self { kind, unit: unit.to_owned() })
    }
}

fn numbers_in(block: &[u8]) -> impl Iterator<Item = i64> + '_ {
    block.as_chunks().0.iter().map(|bytes| i64::from_le_bytes(*bytes))
}

#[cold]
fn changed() -> Error {
    Error::damaged("the file has changed while it was read")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_strings_come_back() {
        for text in ["M8[ns]", "M8[D]", "m8[D]", "m8[25s]", "M8", "m8", "M8[as]", "M8[999999999Y]"]
        {
            let found = Times::of_code(text.as_bytes()).unwrap();
            assert_eq!(found.descr(), format!("<{text}"));
            let own = found.own().unwrap();
            let of = Type { name: own.name().to_owned(), parameters: own.parameters().to_vec() };
            assert_eq!(Times::of_type(&of), Some(found.clone()));
            if let Some((known, _)) = found.known() {
                let parameters = known.parameters().to_vec();
                let of = Type { name: known.name().to_owned(), parameters };
                assert_eq!(Times::of_type(&of), Some(found));
            }
        }
        for text in [
            "M4[s]",
            "M8[s",
            "M8[]",
            "M8[0s]",
            "M8[parsec]",
            "M8[s/2]",
            "M8[1000000000s]",
            "M8[5]",
            "f8",
        ] {
            assert_eq!(Times::of_code(text.as_bytes()), None, "{text}");
        }
    }
}
