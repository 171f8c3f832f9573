//! What a pickle makes: plain data, and descriptions of tensors.

use std::sync::Arc;

use tenarc::DType;

use super::global::Global;

/// A value on the stack, in the memo, or inside of an object.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    /// The number of an object. Several values may have the same.
    Object(usize),
}

/// What is shared, and may be filled after it was made.
#[derive(Debug)]
pub enum Object {
    Big(i128),
    Text(Box<str>),
    Bytes(Box<[u8]>),
    List(Vec<Value>),
    Tuple(Box<[Value]>),
    Dict(Box<Dict>),
    Global(Global),
    Storage(Arc<Storage>),
    Tensor(Box<Rebuilt>),
    /// What is not understood, and so not made: what it would be.
    Other(Arc<str>),
}

impl Object {
    /// About how many bytes it takes beside its fixed part, as it is made.
    pub fn cost(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
            Self::List(values) => size_of_val(&values[..]),
            Self::Tuple(values) => size_of_val(&values[..]),
            Self::Tensor(tensor) => 256 + 16 * tensor.shape.len(),
            Self::Other(what) | Self::Global(Global::Unknown(what)) => what.len(),
            Self::Big(_) | Self::Dict(_) | Self::Global(_) | Self::Storage(_) => 64,
        }
    }
}

/// A `dict` or an `OrderedDict`.
#[derive(Debug, Default)]
pub struct Dict {
    pub entries: Vec<(Value, Value)>,
    /// The attribute `_metadata`, which a `state_dict` has.
    pub metadata: Option<Value>,
    /// Whether it has other attributes, which are not kept.
    pub attributes: bool,
}

/// Bytes that tensors lie in, by the name of their member of the zip file.
#[derive(Clone, Debug)]
pub struct Storage {
    pub key: Box<str>,
    pub elements: Kind,
    /// How many elements there are, as the pickle claims.
    pub count: u64,
}

/// The elements of a storage.
#[derive(Clone, Debug)]
pub enum Kind {
    Typed(DType),
    /// Bytes, whatever lies in them.
    Untyped,
}

/// A tensor as the pickle describes it: nothing of it was checked yet but that numbers are numbers.
#[derive(Debug)]
pub struct Rebuilt {
    pub storage: Arc<Storage>,
    pub dtype: DType,
    /// All in elements.
    pub offset: u64,
    pub shape: Vec<u64>,
    pub strides: Vec<u64>,
    /// Whether it has attributes, which are not kept.
    pub attributes: bool,
}
