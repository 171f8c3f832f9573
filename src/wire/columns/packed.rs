//! Rows of interleaved numbers that are short enough to be read as one block of bytes.

use super::{Column, Data, Field, Kind, NumberType};

/// The length of the longest row that is read as a block.
const MAX_ROW: usize = 255;

/// The length of a block. A number of 8 bytes can start at each of the 256 offsets that fit in a byte.
pub const BLOCK: usize = 256 + 7;

/// A row with more structs and tuples than this is not read as a block.
pub const MAX_NODES: usize = 64;

/// The bytes of interleaved rows, and what is known about the type that they are read into.
pub struct Packed<'de> {
    pub kind: NumberType,
    data: Data<'de>,
    /// The length of a row in bytes.
    pub stride: usize,
    pub known: Known,
}

/// What is known about the type that rows are read into.
#[derive(Clone, Copy)]
pub enum Known {
    /// No row was read yet.
    Nothing,
    /// A row was read as a block. The signature stands for everything that the type asked for.
    Signature(u64),
    /// Rows cannot be read as blocks.
    Unusable,
}

impl<'de> Packed<'de> {
    /// `None` if the rows are too long.
    pub fn new(kind: NumberType, data: Data<'de>, stride: usize) -> Option<Self> {
        let known = Known::Nothing;
        (stride <= MAX_ROW).then_some(Self { kind, data, stride, known })
    }

    /// The block that begins with a row. `None` if there are too few bytes, at the end of the data.
    #[inline(always)]
    pub fn block(&self, row: usize) -> Option<&[u8; BLOCK]> {
        self.data.as_slice().get(row * self.stride..)?.first_chunk()
    }
}

/// A struct or tuple in a row.
pub struct Node<'c> {
    /// The offset of its first number in the row.
    pub start: usize,
    /// The number of fields or elements.
    pub len: usize,
    /// The names of the fields, unless it is a tuple.
    pub names: Option<Vec<&'c str>>,
}

/// Returns all structs and tuples in a row of these fields, each before those that it contains. `None` if there are too
/// many.
pub fn nodes<'c>(fields: &'c [Field<'_>]) -> Option<Vec<Node<'c>>> {
    let mut nodes = Nodes { nodes: Vec::new(), at: 0 };
    nodes.structs(fields)?;
    Some(nodes.nodes)
}

struct Nodes<'c> {
    nodes: Vec<Node<'c>>,
    /// The offset of the next number in the row.
    at: usize,
}

impl<'c> Nodes<'c> {
    fn structs(&mut self, fields: &'c [Field<'_>]) -> Option<()> {
        let names = fields.iter().map(|field| &*field.name).collect();
        self.open(fields.len(), Some(names))?;
        fields.iter().try_for_each(|field| self.column(&field.column))
    }

    fn column(&mut self, column: &'c Column<'_>) -> Option<()> {
        match &column.kind {
            Kind::Numbers(numbers) => {
                self.at += numbers.kind.size();
                Some(())
            }
            Kind::Structs(structs) => self.structs(&structs.fields),
            Kind::Tuples(columns) => {
                self.open(columns.len(), None)?;
                columns.iter().try_for_each(|column| self.column(column))
            }
            _ => None,
        }
    }

    fn open(&mut self, len: usize, names: Option<Vec<&'c str>>) -> Option<()> {
        self.nodes.push(Node { start: self.at, len, names });
        (self.nodes.len() <= MAX_NODES).then_some(())
    }
}
