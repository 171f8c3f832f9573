//! The values that a pickle makes: plain data, and descriptions of tensors.

use std::sync::Arc;

use super::global::Global;
use super::storage::{Rebuilt, Storage};

/// A value on the stack, in the memo, or inside of an object.
#[derive(Clone, Copy, Debug, Default)]
pub enum Value {
    #[default]
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    /// The number of an object. Several values may refer to the same object.
    Object(usize),
}

/// An object that values can share. A container may get its contents after it was made.
#[derive(Debug)]
pub enum Object {
    Big(i128),
    Text(Box<str>),
    Bytes(Box<[u8]>),
    /// A list or a set.
    List(Vec<Value>),
    Tuple(Box<[Value]>),
    Dict(Box<Dict>),
    /// A function or a type, of which only the name is known.
    Global(Global),
    Storage(Arc<Storage>),
    Tensor(Box<Rebuilt>),
    Instance(Box<Instance>),
    /// An object that cannot be kept.
    Lost(Lost),
}

impl Object {
    pub fn default_dict() -> Self {
        Self::Dict(Box::default())
    }

    pub fn of_entries(entries: Vec<(Value, Value)>) -> Self {
        Self::Dict(Box::new(Dict { entries, ..Dict::default() }))
    }

    /// An object that is not a tensor, and that cannot be kept.
    pub fn lost(what: impl Into<Arc<str>>) -> Self {
        Self::Lost(Lost { what: what.into(), is_tensor: false })
    }

    /// A tensor that cannot be read.
    pub fn lost_tensor(what: impl Into<Arc<str>>) -> Self {
        Self::Lost(Lost { what: what.into(), is_tensor: true })
    }

    /// Returns the bytes of a byte string or a text. Python 2 writes both in the same way.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Text(text) => Some(text.as_bytes()),
            _ => None,
        }
    }

    /// Estimates how many bytes a new object takes beside its fixed part.
    pub fn cost(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
            Self::List(values) => size_of_val(&values[..]),
            Self::Tuple(values) => size_of_val(&values[..]),
            Self::Tensor(tensor) => 256 + 16 * tensor.shape.len(),
            Self::Lost(lost) => lost.what.len(),
            Self::Global(global) => global.name.len(),
            Self::Instance(_) => size_of::<Instance>(),
            Self::Big(_) | Self::Dict(_) | Self::Storage(_) => 64,
        }
    }
}

/// The description of a lost object.
#[derive(Clone, Debug)]
pub struct Lost {
    /// What the object is, for messages.
    pub what: Arc<str>,
    pub is_tensor: bool,
}

/// A `dict` or an `OrderedDict`.
#[derive(Debug, Default)]
pub struct Dict {
    pub entries: Vec<(Value, Value)>,
    /// The attribute `_metadata`, which a `state_dict` has.
    pub metadata: Option<Value>,
    /// Whether the dict has other attributes. They are not kept.
    pub attributes: bool,
    /// The entries that cannot be kept: a description of each, and whether its value is a tensor.
    pub lost: Vec<(&'static str, bool)>,
}

/// A call that is kept as data, and what the pickle adds to its result. Nothing is called.
#[derive(Debug, Default)]
pub struct Instance {
    /// The function or class, or the result of another call.
    pub function: Value,
    /// The arguments: a tuple.
    pub arguments: Value,
    /// `true` if the function is called. `false` if an object of the class is made without a call of the class.
    pub is_call: bool,
    /// The state that the object is given: mostly the dict of its attributes.
    pub state: Option<Value>,
    /// The values that are appended to the object, as to a list.
    pub items: Vec<Value>,
    /// The entries that are set in the object, as in a dict.
    pub entries: Vec<(Value, Value)>,
}

/// The origin of an object that became plain data.
#[derive(Clone, Debug)]
pub enum Origin {
    /// An object of the class with this name.
    Class(Arc<str>),
    /// A call of the function with this name.
    Call(Arc<str>),
}

/// Returns the object that a value refers to. `None` if the value is not an object.
pub fn object(objects: &[Object], value: Value) -> Option<&Object> {
    match value {
        Value::Object(number) => objects.get(number),
        _ => None,
    }
}

/// Returns the description of a lost object. `None` if the object is not lost.
pub fn lost(objects: &[Object], value: Value) -> Option<&Lost> {
    match object(objects, value)? {
        Object::Lost(lost) => Some(lost),
        _ => None,
    }
}
