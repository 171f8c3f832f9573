//! Sequences as columns (`SPEC.md`, section 7): all values of the first field, then all values of the second.
//!
//! [`Reader::group`](super::reader::Reader::group) reads a group of rows into a tree of [`Column`]s and checks all
//! of it. Afterwards, each row can be found without further checks. Rows may be asked for in any order, but in rising
//! order they are found without a search: see [`Offsets`], [`Validity`], [`Enum`] and [`EncodedRows`].
//!
//! A column that nobody asks for costs nothing. A column does not know which row its parent is at. It is told the row
//! when it is asked, and then moves over the rows in between.

mod blocks;
mod codes;
mod data;
mod dict;
mod heads;
mod numbers;
mod parse;
mod pick;
mod range;
mod rows;
mod structs;
mod tensor;
mod uniform;
mod wanted;

pub use self::data::{ColumnData, TextData};
pub use self::dict::DictColumn;
pub use self::heads::{check_items, check_names};
pub use self::numbers::{ColumnNumbers, NumberType, cast, holding};
pub use self::parse::Start;
pub use self::rows::{Bitmap, EncodedRows, Enum, Offsets, Optional, RowLengths, Tensors, Validity};
pub use self::structs::{Field, Structs};
pub use self::tensor::{ColumnTensor, tensor_of_groups};
pub use self::uniform::Uniform;
pub use self::wanted::{Ask, Place, WantedFields};

use crate::type_name::TypeName;

/// The type of the rows of a column.
pub struct NamedType {
    pub name: TypeName,
    /// A type that was named inside of this one.
    pub inside: Option<Box<NamedType>>,
}

/// Rows, and the column with their content.
pub struct Group<'de> {
    pub rows: usize,
    pub column: Column<'de>,
}

/// A column. Its parent knows the number of its rows.
pub struct Column<'de> {
    /// The offset of the column in the input.
    pub at: u64,
    pub kind: ColumnKind<'de>,
    /// The type that was named for the rows.
    pub of: Option<Box<NamedType>>,
}

/// The content of a column. The kinds are those of the table in `SPEC.md`, except that arrays become lists of one length.
pub enum ColumnKind<'de> {
    Numbers(ColumnNumbers<'de>),
    Tensors(Box<Tensors<'de>>),
    Structs(Structs<'de>),
    Unit,
    Bools(Bitmap<'de>),
    Texts(Offsets<'de>, TextData<'de>),
    Bytes(Offsets<'de>, ColumnData<'de>),
    Optional(Box<Optional<'de>>),
    Lists(Box<(Offsets<'de>, Column<'de>)>),
    Tuples(Vec<Column<'de>>),
    Maps(Box<Maps<'de>>),
    Enums(Box<Enum<'de>>),
    Items(EncodedRows<'de>),
    Dict(Box<DictColumn<'de>>),
}

pub struct Maps<'de> {
    pub cuts: Offsets<'de>,
    pub keys: Column<'de>,
    pub values: Column<'de>,
}

impl ColumnKind<'_> {
    /// What a row is called in error messages. The names are those of items: see
    /// [`head::name`](super::head::name).
    pub fn name(&self) -> &'static str {
        match self {
            Self::Numbers(_) => "number",
            Self::Tensors(_) => "tensor",
            Self::Structs(_) | Self::Maps(_) => "map",
            Self::Unit | Self::Optional(_) => "null",
            Self::Bools(_) => "boolean",
            Self::Texts(..) => "text string",
            Self::Bytes(..) => "byte string",
            Self::Lists(_) | Self::Tuples(_) => "array",
            Self::Enums(_) => "enum",
            Self::Items(_) => "item",
            Self::Dict(dict) => dict.column.kind.name(),
        }
    }
}

impl<'de> Column<'de> {
    pub fn new(at: u64, kind: ColumnKind<'de>) -> Self {
        Self { at, kind, of: None }
    }

    /// Whether these are numbers of type u8.
    pub fn is_u8(&self) -> bool {
        matches!(&self.kind, ColumnKind::Numbers(numbers) if numbers.kind == NumberType::U8)
    }

    /// Whether these are floats.
    pub fn is_float(&self) -> bool {
        matches!(&self.kind, ColumnKind::Numbers(numbers) if numbers.kind.is_float())
    }

    /// Whether a row is encoded as null, or begins with the tag `TSOM`: then "some" of this row has the tag
    /// (`SPEC.md`, section 1.1).
    pub fn needs_some(&mut self, row: usize) -> bool {
        match &mut self.kind {
            ColumnKind::Unit => true,
            ColumnKind::Optional(optional) => match optional.marks.inner(row) {
                Some(inner) => optional.column.needs_some(inner),
                None => true,
            },
            ColumnKind::Items(items) => items.reads_as_none(row),
            ColumnKind::Dict(dict) => {
                let row = dict.inner(row);
                dict.column.needs_some(row)
            }
            _ => false,
        }
    }

    /// The text of a row, if these are texts that borrow from the input. Not inlined: arguments and result fit
    /// in registers, and each field of a struct takes little code.
    #[inline(never)]
    pub fn borrowed_text(&mut self, row: usize) -> Option<&'de str> {
        match &mut self.kind {
            // Cuts were checked to be between characters.
            ColumnKind::Texts(cuts, TextData::Borrowed(text)) => {
                Some(text.get(cuts.range_here(row)).unwrap_or_default())
            }
            ColumnKind::Dict(dict) => {
                let row = dict.inner(row);
                dict.column.borrowed_text(row)
            }
            _ => None,
        }
    }

    /// The column with the row, and its number there, if each distinct row of this column is stored once.
    #[inline]
    pub fn distinct(&mut self, row: usize) -> (&mut Self, usize) {
        match self.kind {
            ColumnKind::Dict(ref mut dict) => {
                let row = dict.inner(row);
                (&mut dict.column, row)
            }
            _ => (self, row),
        }
    }

    /// The value in options: the column with the row, and its number there. If there is none, that of the innermost
    /// option.
    #[inline]
    pub fn innermost(&mut self, row: usize) -> (&mut Self, usize) {
        let (mut column, mut row) = self.distinct(row);
        while let Some(inner) = column.some(row) {
            (column, row) = column.inside().distinct(inner);
        }
        (column, row)
    }

    /// The row of the inner column, if these are optional values and the row is "some".
    #[inline]
    pub fn some(&mut self, row: usize) -> Option<usize> {
        let ColumnKind::Optional(optional) = &mut self.kind else { return None };
        optional.marks.inner(row)
    }

    /// The inner column, if these are optional values; otherwise this column.
    #[inline]
    pub fn inside(&mut self) -> &mut Self {
        match self.kind {
            ColumnKind::Optional(ref mut optional) => &mut optional.column,
            _ => self,
        }
    }
}
