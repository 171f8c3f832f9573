//! The structure of a value: what there is in its metadata, with tensors known by dtype, shape and
//! place, not by their elements.

mod parse;

use std::ops::Range;

use tenarc::DType;
pub use tenarc::inspect::Form;
use tenarc::tensor::Order;

pub use parse::{items, parse};

/// An item of CBOR.
#[derive(Debug)]
pub struct Node {
    /// Where it stands in the metadata or message.
    pub range: Range<usize>,
    pub kind: Kind,
}

#[derive(Debug)]
pub enum Kind {
    /// A number, a text, a byte string, or another item that holds none.
    Leaf,
    Array(Vec<Node>),
    Map(Vec<(Key, Node)>),
    Tag(u64, Box<Node>),
    Payload(Box<Payload>),
}

/// A map key.
#[derive(Debug)]
pub struct Key {
    pub range: Range<usize>,
    /// As a step of a path.
    pub step: String,
}

/// A tensor, or another block of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload {
    pub form: Form,
    pub dtype: DType,
    pub shape: Vec<usize>,
    pub order: Order,
    pub byte_len: u64,
    /// The buffer that it is the content of; otherwise it stands in the metadata.
    pub buffer: Option<usize>,
}

impl Payload {
    /// Whether it is listed as a tensor.
    pub fn is_listed(&self) -> bool {
        self.form != Form::Bytes
    }

    /// `f32 [64, 64]`
    pub fn label(&self) -> String {
        let order = if self.order == Order::F { " F" } else { "" };
        let dtype = crate::text::escaped(self.dtype.name());
        format!("{dtype} {}{order}", crate::text::shape(&self.shape))
    }

    /// How many elements the shape has, if memory could hold so many.
    pub fn count(&self) -> Option<usize> {
        self.shape.iter().try_fold(1usize, |product, &dim| product.checked_mul(dim))
    }
}

impl Node {
    /// Inside of tags, that change nothing of what a value holds.
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

    /// Whether a payload is somewhere in it.
    pub fn holds_payload(&self) -> bool {
        match &self.kind {
            Kind::Leaf => false,
            Kind::Payload(_) => true,
            Kind::Array(items) => items.iter().any(Node::holds_payload),
            Kind::Map(entries) => entries.iter().any(|(_, node)| node.holds_payload()),
            Kind::Tag(_, inner) => inner.holds_payload(),
        }
    }
}
