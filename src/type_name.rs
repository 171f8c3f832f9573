//! Names of types, which say what a value means (`SPEC.md`, section 7.2).

use std::fmt;
use std::sync::Arc;

use crate::error::{Error, Result};

/// The longest name, and the longest text among the parameters, in bytes.
const MAX_TEXT: usize = 64;
/// The most parameters.
const MAX_PARAMETERS: usize = 16;

/// The name of a type and its parameters. It is cheap to clone.
///
/// ```
/// use tenarc::types::{Parameter, TimeUnit, TypeName};
///
/// let time = TypeName::timestamp(TimeUnit::Millisecond, "Europe/Berlin")?;
/// assert_eq!(time.name(), "timestamp");
/// assert_eq!(time.parameters()[1], Parameter::Text("Europe/Berlin".into()));
/// let money = TypeName::new("example.com/money", vec![Parameter::Text("EUR".into())])?; // one of your own
/// assert_eq!(money.name(), "example.com/money");
/// assert!(TypeName::new("money", Vec::new()).is_err());
/// # Ok::<(), tenarc::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct TypeName(Arc<Parts>);

#[derive(PartialEq, Eq, Hash)]
struct Parts {
    name: String,
    parameters: Vec<Parameter>,
}

/// A parameter of a type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Parameter {
    /// An integer from -2^64 to 2^64 - 1.
    Integer(i128),
    /// A text of at most 64 bytes.
    Text(String),
}

/// The unit of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum TimeUnit {
    Second,
    Millisecond,
    Microsecond,
    Nanosecond,
}

impl TimeUnit {
    /// The name in the format: `s`, `ms`, `us` or `ns`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Second => "s",
            Self::Millisecond => "ms",
            Self::Microsecond => "us",
            Self::Nanosecond => "ns",
        }
    }

    fn parameter(self) -> Parameter {
        Parameter::Text(self.name().to_owned())
    }
}

impl TypeName {
    /// A type of any name. A name that is not in the table of `SPEC.md`, section 7.2, must contain a dot or a slash, such as
    /// `example.com/money`.
    ///
    /// # Errors
    /// If the name is empty, longer than 64 bytes, or neither in the table nor has a dot or slash. If there are more than 16
    /// parameters, or one of them is a text of more than 64 bytes, or an integer that is out of range.
    pub fn new(name: impl Into<String>, parameters: Vec<Parameter>) -> Result<Self> {
        const KNOWN: [&str; 7] =
            ["timestamp", "date", "time", "duration", "decimal", "uuid", "category"];
        let name = name.into();
        if name.is_empty() || name.len() > MAX_TEXT {
            let found = name.len();
            let what = format!("the name of a type has 1 to {MAX_TEXT} bytes, found {found}");
            return Err(Error::data(what));
        }
        if !KNOWN.contains(&&*name) && !name.contains(['.', '/']) {
            let name = name.escape_debug();
            let what = format!(
                "the type `{name}` is not known: a name of your own must have a dot or slash"
            );
            return Err(Error::data(what));
        }
        if parameters.len() > MAX_PARAMETERS {
            let found = parameters.len();
            let what = format!("a type has at most {MAX_PARAMETERS} parameters, found {found}");
            return Err(Error::data(what));
        }
        let is_long = |parameter: &Parameter| matches!(parameter, Parameter::Text(text) if text.len() > MAX_TEXT);
        if parameters.iter().any(is_long) {
            let what = format!("a parameter of a type is a text of more than {MAX_TEXT} bytes");
            return Err(Error::data(what));
        }
        let most = i128::from(u64::MAX);
        let is_wrong = |parameter: &Parameter| match *parameter {
            Parameter::Integer(number) => {
                Some(number).filter(|number| !(!most..=most).contains(number))
            }
            Parameter::Text(_) => None,
        };
        if let Some(found) = parameters.iter().find_map(is_wrong) {
            let what = format!(
                "expected an integer from -2^64 to 2^64 - 1 as a parameter of a type, found {found}"
            );
            return Err(Error::data(what));
        }
        Ok(Self::of(name, parameters))
    }

    /// A name that was read, and checked as a reader checks it.
    pub(crate) fn of(name: impl Into<String>, parameters: Vec<Parameter>) -> Self {
        Self(Arc::new(Parts { name: name.into(), parameters }))
    }

    /// Integers that count units since 1970-01-01T00:00:00 UTC, without leap seconds. `zone` is a name of the IANA time zone
    /// database, an offset such as `+02:00`, or empty: then the clock is not known.
    ///
    /// # Errors
    /// If the zone has more than 64 bytes.
    pub fn timestamp(unit: TimeUnit, zone: &str) -> Result<Self> {
        Self::new("timestamp", vec![unit.parameter(), Parameter::Text(zone.to_owned())])
    }

    /// Integers of at most 32 bits that count days since 1970-01-01.
    pub fn date() -> Self {
        Self::of("date", Vec::new())
    }

    /// Integers that count units since midnight.
    pub fn time(unit: TimeUnit) -> Self {
        Self::of("time", vec![unit.parameter()])
    }

    /// Integers that count units.
    pub fn duration(unit: TimeUnit) -> Self {
        Self::of("duration", vec![unit.parameter()])
    }

    /// Numbers of `precision` decimal digits, times 10^-`scale`. Their values are integers of at most 64 bits, or byte strings of
    /// one length, from 1 to 32 bytes: big-endian integers in two's complement.
    ///
    /// # Errors
    /// If the precision is not from 1 to 76.
    pub fn decimal(precision: u8, scale: i8) -> Result<Self> {
        if !(1..=76).contains(&precision) {
            let what = format!("the precision of a decimal is from 1 to 76, found {precision}");
            return Err(Error::data(what));
        }
        let parameters =
            vec![Parameter::Integer(precision.into()), Parameter::Integer(scale.into())];
        Ok(Self::of("decimal", parameters))
    }

    /// Byte strings of 16 bytes: UUIDs (RFC 9562), in the order of their text.
    pub fn uuid() -> Self {
        Self::of("uuid", Vec::new())
    }

    /// Whether these are names of which few are there: the rows are then the distinct names, and which of them each row is.
    pub(crate) fn is_category(&self) -> bool {
        self.name() == "category"
    }

    /// Whether the names of a category are in an order, which their dict has.
    pub(crate) fn is_ordered(&self) -> bool {
        self.is_category() && *self != Self::category()
    }

    /// A category whose names are in no order.
    pub(crate) fn category() -> Self {
        Self::of("category", vec![Parameter::Integer(0)])
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The parameters.
    pub fn parameters(&self) -> &[Parameter] {
        &self.0.parameters
    }
}

impl fmt::Debug for TypeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, parameters) = (self.name(), self.parameters());
        f.debug_struct("TypeName").field("name", &name).field("parameters", &parameters).finish()
    }
}
