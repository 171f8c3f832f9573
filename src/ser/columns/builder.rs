//! [`ColumnBuilder`]: the values of one column that are collected until their group ends.

use std::cell::OnceCell;

use super::bytes::Bytes;
use super::dict::Dict;
use crate::meta::TensorMeta;
use crate::ser::kind::Kind;
use crate::type_name::TypeName;

/// Longer tensors are not copied into columns.
pub const SMALL_TENSOR: usize = 16 << 10;

/// The values of a column, and of the columns in it. The first value decides the kind.
#[derive(Default)]
pub enum ColumnBuilder {
    /// No value was added yet.
    #[default]
    Empty,
    Unit(usize),
    /// One byte for each value, 0 or 1.
    Bools(Bytes),
    Numbers(NumbersBuilder),
    /// Floats of 16 bits, little-endian. serde has none, but columns that are merged can have them.
    Halves(Bytes),
    Strings(StringsBuilder),
    Tensors(Box<TensorsBuilder>),
    Optional(Box<OptionalBuilder>),
    /// A field that is missing in some rows. Only in [`StructBuilder`].
    Present(Box<OptionalBuilder>),
    List(Box<ListBuilder>),
    Map(Box<MapBuilder>),
    Tuple(Box<TupleBuilder>),
    Struct(Box<StructBuilder>),
    Enum(Box<EnumBuilder>),
    Typed(Box<TypedBuilder>),
    /// Encoded items, for values that fit into none of the other columns.
    Items(ItemsBuilder),
    /// A column that got a value which does not fit into it: see [`ColumnBuilder::settle`].
    Misfit(Box<ColumnBuilder>),
}

/// Numbers of one type, little-endian.
pub struct NumbersBuilder {
    pub kind: Kind,
    pub bytes: Bytes,
}

/// Texts or byte strings.
#[derive(Default)]
pub struct StringsBuilder {
    pub is_text: bool,
    pub lengths: LengthsBuilder,
    pub bytes: Bytes,
    /// Found when the group ends: see [`StringsBuilder::dict`].
    pub dict: OnceCell<Option<Box<Dict>>>,
}

/// Tensors of one dtype and shape, in row-major order.
pub struct TensorsBuilder {
    /// The metadata of each tensor.
    pub meta: TensorMeta,
    /// The length of each tensor in bytes.
    pub len: usize,
    pub rows: usize,
    pub bytes: Bytes,
}

/// `bits` has one byte for each row: 1 if there is a value in `node`, otherwise 0.
#[derive(Default)]
pub struct OptionalBuilder {
    pub bits: Bytes,
    pub node: ColumnBuilder,
}

#[derive(Default)]
pub struct ListBuilder {
    pub lengths: LengthsBuilder,
    pub node: ColumnBuilder,
}

#[derive(Default)]
pub struct MapBuilder {
    pub lengths: LengthsBuilder,
    pub keys: ColumnBuilder,
    pub values: ColumnBuilder,
}

#[derive(Default)]
pub struct TupleBuilder {
    pub rows: usize,
    /// The number of elements of each row.
    pub len: usize,
    /// A column for each element. If `is_array`, one column for all elements.
    pub nodes: Vec<ColumnBuilder>,
    /// Whether the elements of the first row were numbers of one type, bools, or arrays of them: see [`TupleBuilder::join`].
    pub is_array: bool,
    /// Whether a row had another number of elements: see [`ColumnBuilder::settle`].
    pub is_misfit: bool,
}

#[derive(Default)]
pub struct StructBuilder {
    pub rows: usize,
    pub fields: Vec<FieldBuilder>,
    /// Whether a row had its fields in another order: see [`ColumnBuilder::settle`].
    pub is_misfit: bool,
}

pub struct FieldBuilder {
    /// The name that serde gave. Empty if it was read.
    pub key: &'static str,
    /// The name that was read.
    read: Option<Box<str>>,
    pub node: ColumnBuilder,
}

impl FieldBuilder {
    pub fn new(key: &'static str, node: ColumnBuilder) -> Self {
        Self { key, read: None, node }
    }

    /// A field with a name that was read.
    pub fn named(name: &str) -> Self {
        Self { key: "", read: Some(name.into()), node: ColumnBuilder::Empty }
    }

    pub fn name(&self) -> &str {
        self.read.as_deref().unwrap_or(self.key)
    }
}

#[derive(Default)]
pub struct EnumBuilder {
    /// The position in `variants` for each row, of the type `u16`.
    pub codes: Bytes,
    pub variants: Vec<VariantBuilder>,
    /// For each index that serde gives to variants: the position in `variants` plus one, or 0.
    pub by_index: Vec<u16>,
    /// Whether a variant had another name or form than before, or there were too many variants: see [`ColumnBuilder::settle`].
    pub is_misfit: bool,
}

/// Values of a type with a name.
pub struct TypedBuilder {
    pub of: TypeName,
    /// The names of an ordered category, if they were read.
    pub order: Option<Vec<String>>,
    pub node: ColumnBuilder,
}

impl TypedBuilder {
    /// The type that the rows have if these are the names that occur in them, in the order in which they first do.
    pub fn name(&self, names: &StringsBuilder) -> TypeName {
        let Some(order) = &self.order else { return self.of.clone() };
        let all = names.bytes.joined();
        let (mut left, mut start) = (order.iter(), 0);
        let is_in_order = names.lengths.iter().all(|len| {
            let end = start + len as usize;
            let name = all.get(start..end).unwrap_or_default();
            start = end;
            left.any(|other| other.as_bytes() == name)
        });
        if is_in_order { self.of.clone() } else { TypeName::category() }
    }
}

pub struct VariantBuilder {
    /// The name that serde gave. Empty if it was read.
    pub key: &'static str,
    /// The name that was read.
    read: Option<Box<str>>,
    pub form: VariantForm,
    /// The content of the variant. It stays empty for a unit variant.
    pub node: ColumnBuilder,
}

impl VariantBuilder {
    pub fn new(key: &'static str, form: VariantForm) -> Self {
        Self { key, read: None, form, node: ColumnBuilder::Empty }
    }

    /// A variant with a name that was read.
    pub fn named(name: &str, form: VariantForm) -> Self {
        Self { key: "", read: Some(name.into()), form, node: ColumnBuilder::Empty }
    }

    pub fn name(&self) -> &str {
        self.read.as_deref().unwrap_or(self.key)
    }
}

/// What a variant contains.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum VariantForm {
    Unit,
    Newtype,
    /// A tuple or struct. Its column can never become one of items, because serde never passes its content
    /// as one value.
    Fields,
}

/// Encoded items, and the offset at which each ends.
#[derive(Default)]
pub struct ItemsBuilder {
    pub bytes: Vec<u8>,
    pub ends: Vec<usize>,
    /// Whether an item has an indefinite length inside.
    pub have_unknown_lengths: bool,
}

impl ItemsBuilder {
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = [0].iter().chain(&self.ends);
        starts.zip(&self.ends).map(|(&start, &end)| self.bytes.get(start..end).unwrap_or_default())
    }
}

impl EnumBuilder {
    /// Returns the number of rows of each variant.
    pub fn counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.variants.len()];
        for code in self.codes.words() {
            if let Some(count) = counts.get_mut(usize::from(u16::from_le_bytes(code))) {
                *count += 1;
            }
        }
        counts
    }
}

/// A length for each row, of the type `u32`.
#[derive(Default)]
pub struct LengthsBuilder(pub Bytes);

impl LengthsBuilder {
    #[inline]
    pub fn push(&mut self, len: u32) {
        self.0.push(len.to_le_bytes());
    }

    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.words().map(u32::from_le_bytes)
    }

    pub fn rows(&self) -> usize {
        self.0.len() / size_of::<u32>()
    }

    /// The length of all rows, if they have the same.
    pub fn same(&self) -> Option<u32> {
        let first = self.iter().next()?;
        self.iter().all(|len| len == first).then_some(first)
    }

    fn truncate(&mut self, rows: usize) {
        self.0.truncate(rows * size_of::<u32>());
    }

    /// Each length was counted when its elements were added, so the sum is in memory.
    pub fn sum(&self) -> usize {
        self.iter().map(|len| len as usize).sum()
    }
}

impl TupleBuilder {
    /// After the first row: if all elements are numbers of one type, bools, or arrays of them of one length, collects
    /// them in one column from now on.
    pub fn join(&mut self) {
        let Some((first, others)) = self.nodes.split_first_mut() else { return };
        if first.is_block() && others.iter().all(|other| first.takes(other)) {
            for other in others.iter() {
                first.append(other);
            }
            self.nodes.truncate(1);
            self.is_array = true;
        }
    }
}

pub fn ones(bits: &Bytes) -> usize {
    bits.words().map(|[bit]| usize::from(bit)).sum()
}

impl ColumnBuilder {
    /// Removes all rows but the first `rows`, including a row that was added only in part.
    pub fn truncate(&mut self, rows: usize) {
        match self {
            Self::Empty => {}
            Self::Unit(count) => *count = rows.min(*count),
            Self::Bools(bits) => bits.truncate(rows),
            Self::Halves(bytes) => bytes.truncate(rows * 2),
            Self::Numbers(numbers) => numbers.bytes.truncate(rows * numbers.kind.size()),
            Self::Strings(strings) => {
                strings.dict.take();
                strings.lengths.truncate(rows);
                strings.bytes.truncate(strings.lengths.sum());
            }
            Self::Tensors(tensors) => {
                tensors.rows = rows.min(tensors.rows);
                tensors.bytes.truncate(tensors.rows * tensors.len);
            }
            Self::Optional(optional) | Self::Present(optional) => {
                optional.bits.truncate(rows);
                optional.node.truncate(ones(&optional.bits));
            }
            Self::List(list) => {
                list.lengths.truncate(rows);
                list.node.truncate(list.lengths.sum());
            }
            Self::Map(map) => {
                map.lengths.truncate(rows);
                let entries = map.lengths.sum();
                map.keys.truncate(entries);
                map.values.truncate(entries);
            }
            Self::Tuple(tuple) => {
                tuple.rows = rows.min(tuple.rows);
                let rows = if tuple.is_array { rows * tuple.len } else { rows };
                tuple.nodes.iter_mut().for_each(|node| node.truncate(rows));
            }
            Self::Struct(columns) => {
                columns.rows = rows.min(columns.rows);
                columns.fields.iter_mut().for_each(|field| field.node.truncate(rows));
            }
            Self::Enum(columns) => {
                columns.codes.truncate(rows * size_of::<u16>());
                let counts = columns.counts();
                for (variant, rows) in columns.variants.iter_mut().zip(counts) {
                    variant.node.truncate(rows);
                }
            }
            Self::Items(items) => {
                items.ends.truncate(rows);
                items.bytes.truncate(items.ends.last().copied().unwrap_or(0));
            }
            Self::Typed(typed) => typed.node.truncate(rows),
            Self::Misfit(node) => node.truncate(rows),
        }
    }

    /// Whether this column has numbers, bools, or arrays of them.
    fn is_block(&self) -> bool {
        match self {
            Self::Numbers(_) | Self::Bools(_) => true,
            Self::Tuple(tuple) => tuple.is_array,
            _ => false,
        }
    }

    /// Whether the rows of `other`, in which there are numbers or bools, can be added to this column.
    fn takes(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Numbers(one), Self::Numbers(other)) => one.kind == other.kind,
            (Self::Bools(_), Self::Bools(_)) => true,
            (Self::Tuple(one), Self::Tuple(other)) => {
                one.is_array
                    && other.is_array
                    && one.len == other.len
                    && one.nodes.iter().zip(&other.nodes).all(|(one, other)| one.takes(other))
            }
            _ => false,
        }
    }

    /// Adds the rows of a column that this one [takes](Self::takes).
    fn append(&mut self, other: &Self) {
        match (self, other) {
            (
                Self::Numbers(NumbersBuilder { bytes, .. }) | Self::Bools(bytes),
                Self::Numbers(NumbersBuilder { bytes: more, .. }) | Self::Bools(more),
            ) => {
                more.pieces().for_each(|piece| bytes.push_slice(piece));
            }
            (Self::Tuple(tuple), Self::Tuple(other)) => {
                tuple.rows += other.rows;
                for (node, other) in tuple.nodes.iter_mut().zip(&other.nodes) {
                    node.append(other);
                }
            }
            _ => {}
        }
    }

    /// Whether this column, or one in it, got a value that does not fit into it.
    pub fn has_misfit(&self) -> bool {
        match self {
            Self::Misfit(_) => true,
            Self::Optional(optional) | Self::Present(optional) => optional.node.has_misfit(),
            Self::List(list) => list.node.has_misfit(),
            Self::Map(map) => map.keys.has_misfit() || map.values.has_misfit(),
            Self::Tuple(tuple) => tuple.is_misfit || tuple.nodes.iter().any(Self::has_misfit),
            Self::Struct(columns) => {
                columns.is_misfit || columns.fields.iter().any(|field| field.node.has_misfit())
            }
            Self::Enum(columns) => {
                columns.is_misfit
                    || columns.variants.iter().any(|variant| variant.node.has_misfit())
            }
            Self::Typed(typed) => typed.node.has_misfit(),
            _ => false,
        }
    }

    /// Whether no value was added yet, so that the next one decides the kind of the column.
    #[inline]
    pub fn is_new(&self) -> bool {
        matches!(self, Self::Empty)
    }

    fn is_misfit(&self) -> bool {
        match self {
            Self::Misfit(_) => true,
            Self::Tuple(tuple) => tuple.is_misfit,
            Self::Struct(columns) => columns.is_misfit,
            Self::Enum(columns) => {
                let mut variants = columns.variants.iter();
                columns.is_misfit
                    || variants.any(|variant| {
                        variant.form == VariantForm::Fields && variant.node.is_misfit()
                    })
            }
            // Each item then has its type.
            Self::Typed(typed) => typed.node.has_misfit(),
            _ => false,
        }
    }

    /// Turns the columns that got a value that does not fit into columns of items, which accept every value. The rows
    /// must have been written and removed before.
    pub fn settle(&mut self) {
        if self.is_misfit() {
            *self = Self::Items(ItemsBuilder::default());
            return;
        }
        match self {
            Self::Optional(optional) | Self::Present(optional) => optional.node.settle(),
            Self::List(list) => list.node.settle(),
            Self::Map(map) => {
                map.keys.settle();
                map.values.settle();
            }
            Self::Tuple(tuple) => tuple.nodes.iter_mut().for_each(Self::settle),
            Self::Struct(columns) => {
                columns.fields.iter_mut().for_each(|field| field.node.settle());
            }
            Self::Enum(columns) => {
                columns.variants.iter_mut().for_each(|variant| variant.node.settle());
            }
            _ => {}
        }
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        match self {
            Self::Empty => 0,
            Self::Unit(rows) => *rows,
            Self::Bools(bits) => bits.len(),
            Self::Halves(bytes) => bytes.len() / 2,
            Self::Numbers(numbers) => numbers.bytes.len() / numbers.kind.size(),
            Self::Strings(strings) => strings.lengths.rows(),
            Self::Tensors(tensors) => tensors.rows,
            Self::Optional(optional) | Self::Present(optional) => optional.bits.len(),
            Self::List(list) => list.lengths.rows(),
            Self::Map(map) => map.lengths.rows(),
            Self::Tuple(tuple) => tuple.rows,
            Self::Struct(columns) => columns.rows,
            Self::Enum(columns) => columns.codes.len() / size_of::<u16>(),
            Self::Items(items) => items.ends.len(),
            Self::Typed(typed) => typed.node.rows(),
            Self::Misfit(node) => node.rows(),
        }
    }

    /// The number of bytes that the values take in memory.
    pub fn size(&self) -> usize {
        match self {
            Self::Empty | Self::Unit(_) => 0,
            Self::Bools(bytes) | Self::Halves(bytes) => bytes.len(),
            Self::Numbers(numbers) => numbers.bytes.len(),
            Self::Strings(strings) => strings.lengths.0.len() + strings.bytes.len(),
            Self::Tensors(tensors) => tensors.bytes.len(),
            Self::Optional(optional) | Self::Present(optional) => {
                optional.bits.len() + optional.node.size()
            }
            Self::List(list) => list.lengths.0.len() + list.node.size(),
            Self::Map(map) => map.lengths.0.len() + map.keys.size() + map.values.size(),
            Self::Tuple(tuple) => tuple.nodes.iter().map(Self::size).sum(),
            Self::Struct(columns) => columns.fields.iter().map(|field| field.node.size()).sum(),
            Self::Enum(columns) => {
                let sizes = columns.variants.iter().map(|variant| variant.node.size());
                columns.codes.len() + sizes.sum::<usize>()
            }
            Self::Items(items) => size_of_val(&*items.ends) + items.bytes.len(),
            Self::Typed(typed) => typed.node.size(),
            Self::Misfit(node) => node.size(),
        }
    }

    /// Whether there are tensors whose length in bytes satisfies `is`.
    pub fn has_tensor(&self, is: impl Fn(usize) -> bool) -> bool {
        self.any(&|node| matches!(node, Self::Tensors(tensors) if is(tensors.len)))
    }

    /// Whether there are tensors, or items in which tensors may be.
    pub fn may_have_tensors(&self) -> bool {
        self.any(&|node| matches!(node, Self::Tensors(_) | Self::Items(_)))
    }

    /// Whether this column, or one in it, satisfies `is`.
    pub fn any(&self, is: &dyn Fn(&Self) -> bool) -> bool {
        is(self)
            || match self {
                Self::Misfit(node) => node.any(is),
                Self::Optional(optional) | Self::Present(optional) => optional.node.any(is),
                Self::List(list) => list.node.any(is),
                Self::Map(map) => map.keys.any(is) || map.values.any(is),
                Self::Tuple(tuple) => tuple.nodes.iter().any(|node| node.any(is)),
                Self::Struct(columns) => columns.fields.iter().any(|field| field.node.any(is)),
                Self::Enum(columns) => columns.variants.iter().any(|variant| variant.node.any(is)),
                Self::Typed(typed) => typed.node.any(is),
                _ => false,
            }
    }

    /// Makes this the column of a field that some rows do not have. `rows` is the number of rows before the next one.
    #[inline]
    pub fn present(&mut self, rows: usize) -> Option<&mut OptionalBuilder> {
        if !matches!(self, Self::Present(_)) {
            let node = std::mem::take(self);
            let is_there = u8::from(!node.is_new());
            *self = Self::Present(Box::new(OptionalBuilder {
                bits: Bytes::filled(is_there, rows),
                node,
            }));
        }
        if let Self::Present(optional) = self { Some(optional) } else { None }
    }

    /// Adds a row in which this field is missing. `rows` is the number of rows before it.
    pub fn push_missing(&mut self, rows: usize) {
        if let Some(optional) = self.present(rows) {
            optional.bits.push([0]);
        }
    }
}
