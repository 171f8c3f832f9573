//! The structure of a value as a tree of nodes. Of tensors it has dtype, shape and place, but not the elements.

mod parse;

use std::cell::OnceCell;
use std::ops::Range;

use tenarc::DType;
pub use tenarc::inspect::Form;
use tenarc::tensor::Order;

pub use parse::{items, parse};

/// A CBOR item.
#[derive(Clone, Debug)]
pub struct Node {
    /// The range of its bytes in the metadata or message.
    pub range: Range<usize>,
    pub kind: Kind,
}

#[derive(Clone, Debug)]
pub enum Kind {
    /// A number, a text, a short byte string, or another item without items inside it.
    Leaf,
    Array(Vec<Node>),
    Map(Vec<(Key, Node)>),
    Tag(u64, Box<Node>),
    Payload(Box<Payload>),
    /// A sequence that is stored as columns. What is inside has no nodes.
    Columns(Box<Columns>),
}

/// A map key.
#[derive(Clone, Debug)]
pub struct Key {
    pub range: Range<usize>,
    /// The key as a step of a path.
    pub step: String,
}

/// A sequence that is stored as columns. Only segments have such nodes: messages are read as rows.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    /// The path of the sequence in its value.
    pub path: String,
    /// The columns with a name, once they were asked for.
    pub fields: OnceCell<Vec<Field>>,
}

/// A column: the values that a field has in all rows.
#[derive(Clone, Debug)]
pub struct Field {
    /// The path of the column in the value.
    pub path: String,
    /// What the rows are, as `SPEC.md` calls it.
    pub kind: &'static str,
    /// The column as a tensor, if it is one.
    pub tensor: Option<Node>,
}

/// A tensor, a typed array or a byte string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload {
    pub form: Form,
    pub dtype: DType,
    pub shape: Vec<usize>,
    pub order: Order,
    pub byte_len: u64,
    /// The number of its buffer. `None` if its bytes are in the metadata.
    pub buffer: Option<usize>,
    /// The path of the column that it is, if that is not one whole buffer.
    pub column: Option<String>,
}

impl Payload {
    /// Whether it is listed as a tensor; byte strings are not.
    pub fn is_listed(&self) -> bool {
        self.form != Form::Bytes
    }

    /// Dtype, shape and order for display: `f32 [64, 64]`.
    pub fn label(&self) -> String {
        let order = if self.order == Order::F { " F" } else { "" };
        let dtype = crate::text::escaped(self.dtype.name());
        format!("{dtype} {}{order}", crate::text::shape(&self.shape))
    }

    /// The number of elements. `None` if it does not fit in a `usize`.
    pub fn count(&self) -> Option<usize> {
        self.shape.iter().try_fold(1usize, |product, &dim| product.checked_mul(dim))
    }
}

impl Node {
    /// The node inside the tags, which do not change the structure of the value.
    pub fn untagged(&self) -> &Node {
        let mut node = self;
        while let Kind::Tag(_, inner) = &node.kind {
            node = inner;
        }
        node
    }

    pub fn payload(&self) -> Option<&Payload> {
        match &self.untagged().kind {
            Kind::Payload(payload) => Some(payload),
            _ => None,
        }
    }

    /// The number of payloads in it.
    pub fn payload_count(&self) -> usize {
        match &self.kind {
            Kind::Leaf | Kind::Columns(_) => 0,
            Kind::Payload(_) => 1,
            Kind::Array(items) => items.iter().map(Node::payload_count).sum(),
            Kind::Map(entries) => entries.iter().map(|(_, node)| node.payload_count()).sum(),
            Kind::Tag(_, inner) => inner.payload_count(),
        }
    }

    /// Whether it contains a sequence that is stored as columns.
    pub fn holds_columns(&self) -> bool {
        match &self.kind {
            Kind::Leaf | Kind::Payload(_) => false,
            Kind::Columns(_) => true,
            Kind::Array(items) => items.iter().any(Node::holds_columns),
            Kind::Map(entries) => entries.iter().any(|(_, node)| node.holds_columns()),
            Kind::Tag(_, inner) => inner.holds_columns(),
        }
    }

    /// Whether it contains a payload.
    pub fn holds_payload(&self) -> bool {
        match &self.kind {
            Kind::Leaf => false,
            // Parts of columns may be in buffers.
            Kind::Payload(_) | Kind::Columns(_) => true,
            Kind::Array(items) => items.iter().any(Node::holds_payload),
            Kind::Map(entries) => entries.iter().any(|(_, node)| node.holds_payload()),
            Kind::Tag(_, inner) => inner.holds_payload(),
        }
    }
}
