//! The tag that names the type of a value (`SPEC.md`, section 7.2), in a walk over items.

use std::fmt;
use std::ops::Range;

use tenarc::inspect::{Event, Item, Items};
use tenarc::types::{Parameter, TypeName};
use tenarc::{Error, Result, Value};

/// The name and the parameters of a type. They may be of a type that this crate does not know.
#[derive(Clone, Debug, PartialEq)]
pub struct Type {
    pub name: String,
    pub parameters: Vec<Parameter>,
}

impl Type {
    /// The type of a column.
    pub fn of(named: &TypeName) -> Self {
        Self { name: named.name().to_owned(), parameters: named.parameters().to_vec() }
    }

    /// Reads the start of the array in the tag, which is next: the name and the parameters. The item follows, then the end of
    /// the array. `bytes` are those of the items.
    ///
    /// # Errors
    /// If something else is next, or is damaged.
    pub fn read(items: &mut Items<'_>, bytes: &[u8]) -> Result<Self> {
        let mut next = |what: &str, wanted: Event<'_>| match items.next().transpose()? {
            Some(item) if item.event == wanted => Ok(item.range),
            other => Err(expected(what, other.map_or(bytes.len(), |item| item.range.start))),
        };
        next("an array of a name, parameters and an item", Event::Array)?;
        let name = next("the name of a type", Event::Text)?;
        let start = next("the parameters of a type", Event::Array)?.start;
        let parameters = start..items.leave()?.range.end;
        let item = |range: Range<usize>| bytes.get(range).unwrap_or_default();
        let values: Vec<Value> = tenarc::from_slice(item(parameters))?;
        let parameter = |value| match value {
            Value::Integer(number) => Ok(Parameter::Integer(number)),
            Value::Text(text) => Ok(Parameter::Text(text)),
            _ => Err(expected("an integer or a text as a parameter of a type", start)),
        };
        let parameters = values.into_iter().map(parameter).collect::<Result<_>>()?;
        Ok(Self { name: tenarc::from_slice(item(name))?, parameters })
    }

    /// Reads the end of the array in the tag.
    ///
    /// # Errors
    /// If something else is next.
    pub fn end(items: &mut Items<'_>) -> Result<()> {
        match items.next().transpose()? {
            Some(Item { event: Event::End, .. }) => Ok(()),
            other => Err(expected(
                "the end of a value of a type",
                other.map_or(0, |item| item.range.start),
            )),
        }
    }

    /// Whether it says only that few of the rows are different, and not in which order they are.
    pub fn is_category(&self) -> bool {
        matches!(
            (&*self.name, &*self.parameters),
            ("category", [Parameter::Integer(0)]) | ("arrow.dictionary", [Parameter::Text(_)])
        )
    }

    /// What a loss says of a tensor whose type is not kept.
    pub fn left_out(&self) -> String {
        format!("its type, {self}, is left out")
    }

    /// Returns the parameters, if all of them are texts.
    pub fn texts(&self) -> Option<Vec<&str>> {
        fn text(parameter: &Parameter) -> Option<&str> {
            match parameter {
                Parameter::Text(text) => Some(text),
                _ => None,
            }
        }
        self.parameters.iter().map(text).collect()
    }
}

/// The name, as a message shows it.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.name.escape_debug())
    }
}

#[cold]
fn expected(what: &str, at: usize) -> Error {
    Error::data(format!("expected {what}, found another item")).at(at as u64)
}
