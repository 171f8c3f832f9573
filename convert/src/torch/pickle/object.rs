//! What a pickle makes: plain data, and descriptions of tensors.

use std::sync::Arc;

use tenarc::DType;

use super::global::Global;

/// A value on the stack, in the memo, or inside of an object.
#[derive(Clone, Copy, Debug, Default)]
pub enum Value {
    #[default]
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
    /// A list or a set.
    List(Vec<Value>),
    Tuple(Box<[Value]>),
    Dict(Box<Dict>),
    /// A function or a type, of which only the name is known.
    Global(Global),
    Storage(Arc<Storage>),
    Tensor(Box<Rebuilt>),
    Instance(Box<Instance>),
    /// What cannot be kept.
    Lost(Lost),
}

impl Object {
    pub fn default_dict() -> Self {
        Self::Dict(Box::default())
    }

    pub fn of_entries(entries: Vec<(Value, Value)>) -> Self {
        Self::Dict(Box::new(Dict { entries, ..Dict::default() }))
    }

    /// Something that is no tensor, and cannot be kept.
    pub fn lost(what: impl Into<Arc<str>>) -> Self {
        Self::Lost(Lost { what: what.into(), is_tensor: false })
    }

    /// A tensor that cannot be read.
    pub fn lost_tensor(what: impl Into<Arc<str>>) -> Self {
        Self::Lost(Lost { what: what.into(), is_tensor: true })
    }

    /// Bytes, which Python 2 does not tell from texts.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Text(text) => Some(text.as_bytes()),
            _ => None,
        }
    }

    /// About how many bytes it takes beside its fixed part, as it is made.
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

/// What it is that is lost.
#[derive(Clone, Debug)]
pub struct Lost {
    pub what: Arc<str>,
    pub is_tensor: bool,
}

/// A `dict` or an `OrderedDict`.
#[derive(Debug, Default)]
pub struct Dict {
    pub entries: Vec<(Value, Value)>,
    /// The attribute `_metadata`, which a `state_dict` has.
    pub metadata: Option<Value>,
    /// Whether it has other attributes, which are not kept.
    pub attributes: bool,
    /// Entries that cannot be kept: why, and whether each is a tensor.
    pub lost: Vec<(&'static str, bool)>,
}

/// What Python would make by a call, as far as the pickle says: nothing is called.
#[derive(Debug, Default)]
pub struct Instance {
    /// A function or a class, or what another call gives.
    pub function: Value,
    /// A tuple.
    pub arguments: Value,
    /// Whether the function is called, rather than an object of the class made.
    pub is_call: bool,
    /// Mostly the dict of its attributes.
    pub state: Option<Value>,
    /// What is appended, as to a list.
    pub items: Vec<Value>,
    /// What is set, as in a dict.
    pub entries: Vec<(Value, Value)>,
}

/// What an object was before it became plain data, by its name.
#[derive(Clone, Debug)]
pub enum Origin {
    /// An object of this class.
    Class(Arc<str>),
    /// What this function would give.
    Call(Arc<str>),
}

/// Bytes that tensors lie in.
#[derive(Clone, Debug)]
pub struct Storage {
    pub at: At,
    pub elements: Kind,
    /// How many elements there are, as the pickle claims.
    pub count: u64,
    /// The part that is meant: its first element, and how many it has.
    pub view: (u64, u64),
}

/// Where bytes are.
#[derive(Clone, Debug)]
pub enum At {
    /// In a member of this name, behind that of the file; or in the storage of this name of a file that is no zip file.
    Member(Box<str>),
    /// In the pickle, as the object of this number.
    Object(usize),
}

/// The elements of a storage.
#[derive(Clone, Debug)]
pub enum Kind {
    Typed(DType),
    /// Bytes, whatever lies in them.
    Untyped,
}

impl Kind {
    pub fn dtype(&self) -> &DType {
        match self {
            Self::Typed(dtype) => dtype,
            Self::Untyped => &DType::U8,
        }
    }
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
    /// Whether its words are big-endian, whatever those of the file are.
    pub swapped: bool,
    pub signs: Signs,
}

/// Which signs of the elements in the storage are changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Signs {
    /// Of real numbers, and of real parts.
    pub real: bool,
    /// Of imaginary parts.
    pub imaginary: bool,
}

impl Rebuilt {
    /// All elements of a storage.
    pub fn all(storage: &Arc<Storage>) -> Self {
        Self {
            storage: storage.clone(),
            dtype: storage.elements.dtype().clone(),
            offset: storage.view.0,
            shape: vec![storage.view.1],
            strides: vec![1],
            attributes: false,
            swapped: false,
            signs: Signs::default(),
        }
    }
}
