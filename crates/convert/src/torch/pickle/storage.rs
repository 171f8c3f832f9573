//! Descriptions of tensors, and of the storages in which their elements are.

use std::sync::Arc;

use tenarc::DType;

/// A storage: the bytes of one or more tensors.
#[derive(Clone, Debug)]
pub struct Storage {
    pub at: At,
    pub elements: Kind,
    /// The number of elements that the pickle claims.
    pub count: u64,
    /// The part of the storage that is used: the index of its first element, and its number of elements.
    pub view: (u64, u64),
}

/// The place of the bytes of a storage.
#[derive(Clone, Debug)]
pub enum At {
    /// The member of a zip file with this name, which lacks the prefix that all members share. In a file from before
    /// torch 1.6, the storage with this name.
    Member(Box<str>),
    /// The object of the pickle with this number.
    Object(usize),
    /// The chunks of the tensor with this number, in a distributed checkpoint.
    Chunks(usize),
}

/// The type of the elements of a storage.
#[derive(Clone, Debug)]
pub enum Kind {
    Typed(DType),
    /// Bytes that tensors of any dtype may use.
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

/// A tensor as the pickle describes it. Offset, shape and strides are not yet checked against the storage.
#[derive(Debug)]
pub struct Rebuilt {
    pub storage: Arc<Storage>,
    pub dtype: DType,
    /// The index of the first element in the storage.
    pub offset: u64,
    pub shape: Vec<u64>,
    /// The stride along each axis, in elements.
    pub strides: Vec<u64>,
    /// Whether the tensor has attributes. They are not kept.
    pub attributes: bool,
    /// Whether the elements are big-endian. Only used for elements in the pickle: the file says it for all others.
    pub swapped: bool,
    pub signs: Signs,
}

/// Whether the elements of a tensor have other signs than those in the storage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Signs {
    /// Whether real numbers, and real parts, have another sign.
    pub real: bool,
    /// Whether imaginary parts have another sign.
    pub imaginary: bool,
}

impl Rebuilt {
    /// A tensor of one dimension with all elements of a storage.
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
