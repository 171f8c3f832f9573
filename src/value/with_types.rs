//! Values that keep the types that are named for them.

use std::cell::Cell;

use serde::de::{Deserialize, Deserializer};

use super::Value;
use crate::budget::Budget;
use crate::error::Result;
use crate::type_name::{Parameter, TypeName};
use crate::wire::tag;

thread_local! {
    static KEPT: Cell<bool> = const { Cell::new(false) };
}

/// A [`Value`] in which numbers, byte strings and tensors of a [type](crate::types) keep it, wherever they are in the value: they are
/// [`Value::Tag`] [`TYPE`](crate::inspect::TYPE) around an array of the name, the parameters and the item. A `Value` by itself reads
/// through types. Texts have no tag: all that the type of a category adds is an order.
///
/// ```
/// use tenarc::inspect::TYPE;
/// use tenarc::types::{TypeName, Typed};
/// use tenarc::value::WithTypes;
/// use tenarc::{Value, from_slice, to_vec};
///
/// let date = TypeName::date();
/// let days = to_vec(&[Typed::new(&date, &20_783)])?;
/// assert_eq!(from_slice::<Value>(&days)?[0], Value::Integer(20_783));
/// let WithTypes(value) = from_slice(&days)?;
/// let item = Value::Array(vec!["date".into(), Value::Array(Vec::new()), 20_783.into()]);
/// assert_eq!(value[0], Value::Tag(TYPE, Box::new(item)));
/// # Ok::<(), tenarc::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WithTypes(pub Value);

impl<'de> Deserialize<'de> for WithTypes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// Sets what was there before, also if a deserializer panics.
        struct Before(bool);

        impl Drop for Before {
            fn drop(&mut self) {
                KEPT.set(self.0);
            }
        }

        let _before = Before(KEPT.replace(true));
        Value::deserialize(deserializer).map(Self)
    }
}

/// Whether the value that is being read keeps types.
pub fn are_kept() -> bool {
    KEPT.get()
}

/// A value with its type, if it is a number, a byte string or a tensor.
pub fn tagged(of: &TypeName, value: Value, allowance: &Budget) -> Result<Value> {
    if !matches!(value, Value::Integer(_) | Value::Bytes(_) | Value::Numbers(_) | Value::Tensor(_))
    {
        return Ok(value);
    }
    let (name, parameters) = (of.name(), of.parameters());
    allowance.charge((name.len() + (parameters.len() + 4) * size_of::<Value>()) as u64)?;
    let parameter = |parameter: &Parameter| match parameter {
        Parameter::Integer(number) => Value::Integer(*number),
        Parameter::Text(text) => Value::Text(text.clone()),
    };
    let parameters = parameters.iter().map(parameter).collect();
    let parts = vec![Value::Text(name.to_owned()), Value::Array(parameters), value];
    Ok(Value::Tag(tag::TYPE, Box::new(Value::Array(parts))))
}
