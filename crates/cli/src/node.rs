//! The structure of a value as a tree of nodes. The node of a tensor has its dtype, shape and position, but not its
//! elements.

mod parse;

use std::cell::OnceCell;
use std::ops::Range;
use std::rc::Rc;

use tenarc::DType;
pub use tenarc::inspect::Form;
use tenarc::inspect::TYPE;
use tenarc::tensor::Order;
use tenarc::types::TypeName;

pub use parse::{items, parse, parse_items};

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
    /// A sequence that is stored as columns. Its items have no nodes.
    Columns(Box<Columns>),
}

/// A map key.
#[derive(Clone, Debug)]
pub struct Key {
    /// The range of its bytes. It is empty if the key is the rest of a name, in a [group](crate::paths::group).
    pub range: Range<usize>,
    /// The key as a step of a path.
    pub step: Rc<str>,
}

/// A sequence that is stored as columns. Only segments have such nodes: messages are read as rows.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    /// The path of the sequence in its value.
    pub path: String,
    /// The columns that have a name. They are read when they are first needed.
    pub fields: OnceCell<Vec<Field>>,
}

/// A column: the values that a field has in all rows.
#[derive(Clone, Debug)]
pub struct Field {
    /// The path of the column in the value.
    pub path: String,
    /// The kind of the rows, as section 7 of `SPEC.md` names it.
    pub kind: &'static str,
    /// The type that is named for the rows.
    pub of: Option<TypeName>,
    /// The column as a tensor, if it is one.
    pub tensor: Option<Node>,
    /// The column as numbers, if it is one of numbers in which rows can be null.
    pub optional: Option<Optional>,
}

/// A column of numbers in which rows can be null.
#[derive(Clone, Debug)]
pub struct Optional {
    /// The path of the column in its table.
    pub column: String,
    pub dtype: DType,
}

/// A tensor, a typed array or a byte string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload {
    pub form: Form,
    pub dtype: DType,
    pub shape: Vec<usize>,
    pub order: Order,
    pub byte_len: u64,
    /// The number of its buffer. `None` if its bytes are in the metadata, or if `column` is set.
    pub buffer: Option<usize>,
    /// The path of the column, if the payload is a column that is not one whole buffer. Such a column is read by its
    /// path.
    pub column: Option<String>,
}

impl Payload {
    /// Returns whether the payload is listed as a tensor. Byte strings are not listed.
    pub fn is_listed(&self) -> bool {
        self.form != Form::Bytes
    }

    /// Returns dtype, shape and order for display: `f32 [64, 64]`.
    pub fn label(&self) -> String {
        let order = if self.order == Order::F { " F" } else { "" };
        let dtype = crate::text::escaped(self.dtype.name());
        format!("{dtype} {}{order}", crate::text::shape(&self.shape))
    }

    /// Returns the number of elements. `None` if it does not fit in a `usize`.
    pub fn count(&self) -> Option<usize> {
        self.shape.iter().try_fold(1usize, |product, &dim| product.checked_mul(dim))
    }
}

/// Returns the node that a tag around `inner` stands for, with the same path: `inner`, or the item of a value of a named type.
pub fn tagged(tag: u64, inner: &Node) -> &Node {
    named(tag, inner).get(2).unwrap_or(inner)
}

/// The name, the parameters and the item of a value of a named type. Nothing for another tag.
pub fn named(tag: u64, inner: &Node) -> &[Node] {
    match &inner.kind {
        Kind::Array(parts) if tag == TYPE => parts,
        _ => &[],
    }
}

impl Node {
    /// Returns the node inside the tags, which do not change the structure of the value.
    pub fn untagged(&self) -> &Node {
        let mut node = self;
        while let Kind::Tag(tag, inner) = &node.kind {
            node = tagged(*tag, inner);
        }
        node
    }

    pub fn payload(&self) -> Option<&Payload> {
        match &self.untagged().kind {
            Kind::Payload(payload) => Some(payload),
            _ => None,
        }
    }

    /// Returns the number of payloads in the node. Columns are not counted.
    pub fn payload_count(&self) -> usize {
        match &self.kind {
            Kind::Leaf | Kind::Columns(_) => 0,
            Kind::Payload(_) => 1,
            Kind::Array(items) => items.iter().map(Node::payload_count).sum(),
            Kind::Map(entries) => entries.iter().map(|(_, node)| node.payload_count()).sum(),
            Kind::Tag(_, inner) => inner.payload_count(),
        }
    }

    /// Returns whether the node contains a sequence that is stored as columns.
    pub fn holds_columns(&self) -> bool {
        match &self.kind {
            Kind::Leaf | Kind::Payload(_) => false,
            Kind::Columns(_) => true,
            Kind::Array(items) => items.iter().any(Node::holds_columns),
            Kind::Map(entries) => entries.iter().any(|(_, node)| node.holds_columns()),
            Kind::Tag(_, inner) => inner.holds_columns(),
        }
    }

    /// Returns whether the node contains a payload or columns.
    pub fn holds_payload(&self) -> bool {
        match &self.kind {
            Kind::Leaf => false,
            // Buffers may hold parts of columns.
            Kind::Payload(_) | Kind::Columns(_) => true,
            Kind::Array(items) => items.iter().any(Node::holds_payload),
            Kind::Map(entries) => entries.iter().any(|(_, node)| node.holds_payload()),
            Kind::Tag(_, inner) => inner.holds_payload(),
        }
    }
}
