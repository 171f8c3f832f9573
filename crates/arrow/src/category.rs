//! Categories: texts of which few are different. They are dictionaries in Arrow.

use std::collections::HashSet;

use arrow_array::types::{
    ArrowDictionaryKeyType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{ArrayRef, DictionaryArray, PrimitiveArray};
use arrow_buffer::ArrowNativeType;
use arrow_schema::{ArrowError, DataType};
use tenarc::types::{Parameter, TypeName};
use tenarc::{Result, Value};

use crate::columns::Column;

/// The name of the type around a category that came from Arrow. Its parameters are the type of the indices, and then
/// all names in their order if they have one. The dict of a category cannot have that order: its names are in the order
/// in which they first occur.
const DICTIONARY: &str = "arrow.dictionary";

/// The types of indices, and their names in [`DICTIONARY`].
const INDICES: [(DataType, &str); 8] = [
    (DataType::Int8, "int8"),
    (DataType::Int16, "int16"),
    (DataType::Int32, "int32"),
    (DataType::Int64, "int64"),
    (DataType::UInt8, "uint8"),
    (DataType::UInt16, "uint16"),
    (DataType::UInt32, "uint32"),
    (DataType::UInt64, "uint64"),
];

/// The most names of a category in all groups, and their bytes. With more, its rows are texts.
const MAX_NAMES: usize = 1 << 16;
const MAX_BYTES: usize = 16 << 20;

/// The names of a category, in all groups.
#[derive(Clone, Debug, PartialEq)]
pub struct Category {
    index: DataType,
    pub order: Order,
    pub names: Vec<String>,
}

/// Whether the names of a category are in an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Without,
    Ordered,
    /// Groups have no common order.
    Differs,
    /// They are, and the order is left out.
    LeftOut,
}

impl Category {
    /// The category that a column of a type with this name is. `None` if it is none. `read` returns the texts of a
    /// column.
    pub fn of(
        name: &str,
        parameters: &[Value],
        column: &Column,
        read: &dyn Fn(&Column, usize) -> Option<Vec<String>>,
    ) -> Option<Self> {
        match (name, parameters, column) {
            ("category", [Value::Integer(ordered @ 0..=1)], Column::Dict { column, count, .. })
                if *count <= MAX_NAMES && matches!(**column, Column::Texts(..)) =>
            {
                let order = if *ordered == 1 { Order::Ordered } else { Order::Without };
                let mut names = read(column, *count)?;
                let mut known = HashSet::new();
                names.retain(|name| known.insert(name.clone()));
                Self { index: DataType::Int32, order, names }.checked()
            }
            (
                DICTIONARY,
                [Value::Text(index), order @ ..],
                Column::Typed { name, parameters, column },
            ) if name != DICTIONARY => {
                let inner = Self::of(name, parameters, column, read)?;
                let Some((index, _)) = INDICES.into_iter().find(|(_, name)| name == index) else {
                    return Some(inner);
                };
                let order = order.iter().map(|name| Some(name.as_str()?.to_owned()));
                let names: Vec<_> = order.collect::<Option<_>>()?;
                let known: HashSet<_> = names.iter().collect();
                let is_order = known.len() == names.len()
                    && !names.is_empty()
                    && inner.names.iter().all(|name| known.contains(name));
                if is_order {
                    return Some(Self { index, order: Order::Ordered, names });
                }
                Some(Self { index, ..inner })
            }
            _ => None,
        }
    }

    /// The names of both, those of `self` first. `None` if there are too many.
    pub fn merged(self, mut other: Self) -> Option<Self> {
        let order = match (self.order, other.order) {
            (Order::Ordered, Order::Ordered) if other.continues(&self) => {
                return Some(Self { index: self.common_index(&other), ..other });
            }
            (Order::Ordered, Order::Ordered) if self.continues(&other) => Order::Ordered,
            (Order::Without, Order::Without) => Order::Without,
            _ => Order::Differs,
        };
        let index = self.common_index(&other);
        let mut names = self.names;
        let known: HashSet<_> = names.iter().cloned().collect();
        other.names.retain(|name| !known.contains(name));
        names.append(&mut other.names);
        Self { index, order, names }.checked()
    }

    /// Whether all names of `other` are here, in the same order.
    fn continues(&self, other: &Self) -> bool {
        let mut left = self.names.iter();
        other.names.iter().all(|name| left.any(|other| other == name))
    }

    fn common_index(&self, other: &Self) -> DataType {
        if self.index == other.index { self.index.clone() } else { DataType::Int32 }
    }

    /// `None` if there are too many names.
    fn checked(self) -> Option<Self> {
        let bytes = self.names.iter().fold(0usize, |sum, name| sum.saturating_add(name.len()));
        (self.names.len() <= MAX_NAMES && bytes <= MAX_BYTES).then_some(self)
    }

    /// The type of the indices, which has a number for each name.
    fn index(&self) -> DataType {
        let most = match self.index {
            DataType::Int8 => 1 << 7,
            DataType::UInt8 => 1 << 8,
            DataType::Int16 => 1 << 15,
            _ => MAX_NAMES,
        };
        if self.names.len() > most { DataType::Int32 } else { self.index.clone() }
    }

    pub fn data_type(&self) -> DataType {
        DataType::Dictionary(Box::new(self.index()), Box::new(DataType::Utf8))
    }

    /// Rows with these numbers of names. `values` has the names.
    pub fn array(&self, codes: &[usize], values: ArrayRef) -> Result<ArrayRef, ArrowError> {
        macro_rules! array {
            ($($index:ident $key:ident;)*) => {
                match self.index() {
                    $(DataType::$index => keyed::<$key>(codes, values),)*
                    other => Err(ArrowError::InvalidArgumentError(format!("indices of {other}"))),
                }
            };
        }
        array! {
            Int8 Int8Type;
            Int16 Int16Type;
            Int32 Int32Type;
            Int64 Int64Type;
            UInt8 UInt8Type;
            UInt16 UInt16Type;
            UInt32 UInt32Type;
            UInt64 UInt64Type;
        }
    }
}

fn keyed<K: ArrowDictionaryKeyType>(
    codes: &[usize],
    values: ArrayRef,
) -> Result<ArrayRef, ArrowError> {
    let key =
        |code: &usize| K::Native::from_usize(*code).ok_or(ArrowError::DictionaryKeyOverflowError);
    let keys = codes.iter().map(key).collect::<Result<Vec<_>, _>>()?;
    let keys = PrimitiveArray::<K>::from_iter_values(keys);
    Ok(std::sync::Arc::new(DictionaryArray::try_new(keys, values)?))
}

/// The type around a category with these indices, whose names are in this order if there are any.
///
/// # Errors
/// If the order has too many names, or one is too long.
pub fn around(index: &DataType, order: &[String]) -> Result<TypeName> {
    let index = INDICES.iter().find(|(other, _)| other == index).map_or("int32", |(_, name)| name);
    let texts = std::iter::once(index).chain(order.iter().map(String::as_str));
    let parameters = texts.map(|text| Parameter::Text(text.to_owned())).collect();
    TypeName::new(DICTIONARY, parameters)
}

/// A category whose dict has no order.
pub fn unordered() -> Result<TypeName> {
    TypeName::new("category", vec![Parameter::Integer(0)])
}

/// The order of the names in dictionaries, as far as they were seen.
#[derive(Clone, Debug)]
pub enum Seen {
    Unordered,
    Ordered(Vec<String>),
    /// The dictionaries have names in several orders, or names that are not distinct.
    Differs,
}

impl Seen {
    /// Adds the names of a dictionary.
    pub fn add<'a>(&mut self, names: impl Iterator<Item = Option<&'a str>>) {
        let Self::Ordered(known) = self else { return };
        let Some(names) = names.collect::<Option<Vec<_>>>() else {
            *self = Self::Differs;
            return;
        };
        let is_same = known.iter().zip(&names).all(|(known, name)| known == name);
        let distinct: HashSet<_> = names.iter().collect();
        if !is_same || distinct.len() < names.len() {
            *self = Self::Differs;
        } else if names.len() > known.len() {
            *known = names.into_iter().map(str::to_owned).collect();
        }
    }

    /// All names, if they have an order.
    pub fn names(&self) -> &[String] {
        match self {
            Self::Ordered(names) => names,
            _ => &[],
        }
    }
}
