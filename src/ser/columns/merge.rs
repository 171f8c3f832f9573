//! Adds the rows of columns that were read to columns that are written, without decoding them.
//!
//! The rows keep their form: integers their type, structs the order of their fields, types their names. What does not fit
//! into one column starts a new group.

use std::ops::Range;

use super::builder::{
    ColumnBuilder, EnumBuilder, FieldBuilder, ItemsBuilder, LengthsBuilder, NumbersBuilder,
    StringsBuilder, StructBuilder, TensorsBuilder, TupleBuilder, TypedBuilder, VariantBuilder,
    VariantForm,
};
use super::bytes::{Bytes, MAX_BYTES};
use super::{GroupHead, MAX_ROWS, count_group, group, next_check};
use crate::error::{Error, Result};
use crate::meta::{Order, TensorMeta};
use crate::ser::kind::Kind;
use crate::wire::columns::{
    Column, ColumnKind, Enum, Field, NamedType, NumberType, Offsets, RowLengths, Tensors, Validity,
};
use crate::wire::head;
use crate::wire::tag;
use crate::wire::writer::{ToWrite, Writer};

/// The most variants that the codes of an enum can tell apart.
const MAX_VARIANTS: usize = 1 << 16;

/// Groups of rows from several sequences, which are written as one sequence.
#[derive(Default)]
pub struct MergedRows {
    /// The groups that are complete, with the number of their rows.
    groups: Vec<(usize, ColumnBuilder)>,
    /// The number of bytes in them.
    size: usize,
    /// The group to which rows are added.
    node: ColumnBuilder,
    rows: usize,
    /// The number of rows at which the size of the group is looked at again.
    check_at: usize,
}

impl MergedRows {
    /// Prepares for rows of a column, which has this many. If they do not fit into the group so far, it ends.
    pub fn begin(&mut self, column: &Column<'_>, rows: usize) {
        if self.rows > 0 && !self.node.fits(column, rows) {
            self.end_group();
        }
    }

    /// Adds rows of the column that was passed to [`begin`](Self::begin) last.
    ///
    /// # Errors
    /// If a row has more than 2^32 - 1 bytes or elements.
    pub fn add(&mut self, column: &mut Column<'_>, mut rows: Range<usize>) -> Result<()> {
        while !rows.is_empty() {
            let room = self.check_at.saturating_sub(self.rows).max(1);
            let some = rows.start..rows.end.min(rows.start.saturating_add(room));
            self.node.add(column, some.clone())?;
            self.rows += some.len();
            rows.start = some.end;
            if self.rows >= self.check_at {
                self.check();
            }
        }
        Ok(())
    }

    /// Ends the group if it is large enough. Otherwise, says when to look again.
    fn check(&mut self) {
        let size = self.node.size();
        if self.rows >= MAX_ROWS || size >= MAX_BYTES {
            return self.end_group();
        }
        self.check_at = next_check(size, self.rows);
    }

    /// Ends the group so far, if it has rows.
    pub fn end_group(&mut self) {
        if self.rows > 0 {
            self.size += self.node.size();
            self.groups.push((std::mem::take(&mut self.rows), std::mem::take(&mut self.node)));
            self.check_at = 0;
        }
    }

    /// The number of bytes in the complete groups.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Whether there are no rows at all.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty() && self.rows == 0
    }

    /// Removes the complete groups.
    pub fn clear(&mut self) {
        self.groups.clear();
        self.size = 0;
    }
}

/// Writes the complete groups.
impl ToWrite for MergedRows {
    fn write(&self, writer: &mut Writer<'_>) -> Result<()> {
        // The levels of the tag and the array.
        writer.enter(2)?;
        writer.head(head::TAG, tag::COLUMNS)?;
        writer.head(head::ARRAY, 2 * self.groups.len() as u64)?;
        for (rows, node) in &self.groups {
            count_group(writer, node, *rows);
            group(writer, GroupHead::Many, GroupHead::Many, node, *rows)?;
        }
        writer.leave(2)
    }
}

#[cold]
fn too_long() -> Error {
    Error::limit("a row has more than 2^32 - 1 bytes or elements, which is too many to be merged")
}

impl ColumnBuilder {
    /// Whether all rows of a column can be added. Columns that were not looked at any row say nothing.
    fn fits(&self, column: &Column<'_>, rows: usize) -> bool {
        self.fits_as(column.of.as_deref(), &column.kind, rows)
    }

    fn fits_as(&self, of: Option<&NamedType>, kind: &ColumnKind<'_>, rows: usize) -> bool {
        match (self, of, kind) {
            // Nobody says of what kind no rows are.
            _ if rows == 0 => true,
            (Self::Empty, ..) => true,
            (Self::Present(present), ..) => present.node.fits_as(of, kind, rows),
            (_, None, ColumnKind::Dict(dict)) => self.fits(&dict.column, dict.distinct(rows)),
            (Self::Typed(typed), Some(of), _) => {
                typed.of == of.name
                    && (!of.name.is_ordered() || typed.order == order(kind))
                    && typed.node.fits_as(of.inside.as_deref(), kind, rows)
            }
            (Self::Typed(_), None, _) | (_, Some(_), _) => false,
            (Self::Unit(_), _, ColumnKind::Unit) => true,
            (Self::Bools(_), _, ColumnKind::Bools(_)) => true,
            (Self::Halves(_), _, ColumnKind::Numbers(numbers)) => numbers.kind == NumberType::F16,
            (Self::Numbers(some), _, ColumnKind::Numbers(numbers)) => {
                NumberType::of(&some.kind.dtype()) == Some(numbers.kind)
            }
            (Self::Strings(strings), _, ColumnKind::Texts(..)) => strings.is_text,
            (Self::Strings(strings), _, ColumnKind::Bytes(..)) => !strings.is_text,
            (Self::Tensors(some), _, ColumnKind::Tensors(tensors)) => {
                some.len == tensors.len
                    && some.meta.dtype == tensors.dtype
                    && some.meta.shape == tensors.shape
            }
            (Self::Optional(some), _, ColumnKind::Optional(optional)) => {
                some.node.fits(&optional.column, optional.marks.count(rows))
            }
            (Self::List(list), _, ColumnKind::Lists(lists)) => {
                list.node.fits(&lists.1, total(&lists.0, rows))
            }
            (Self::Tuple(tuple), _, ColumnKind::Tuples(columns)) => {
                let mut pairs = tuple.nodes.iter().zip(columns);
                tuple.nodes.len() == columns.len()
                    && pairs.all(|(node, column)| node.fits(column, rows))
            }
            // Tuples of numbers of one type are arrays, which those of another group need not be.
            (Self::Tuple(tuple), _, ColumnKind::Lists(lists)) => {
                let (cuts, column) = &**lists;
                matches!(cuts.lengths(), RowLengths::Same(len) if *len == tuple.nodes.len())
                    && tuple.nodes.iter().all(|node| node.fits(column, rows))
            }
            (Self::Map(map), _, ColumnKind::Maps(maps)) => {
                let entries = total(&maps.cuts, rows);
                map.keys.fits(&maps.keys, entries) && map.values.fits(&maps.values, entries)
            }
            (Self::Struct(some), _, ColumnKind::Structs(structs)) => {
                some.takes(&structs.fields, rows)
            }
            (Self::Enum(some), _, ColumnKind::Enums(enums)) => some.takes(enums, rows),
            (Self::Items(_), _, ColumnKind::Items(_)) => true,
            _ => false,
        }
    }

    /// Adds some rows of a column that fits.
    fn add(&mut self, column: &mut Column<'_>, rows: Range<usize>) -> Result<()> {
        self.add_as(column.of.as_deref(), &mut column.kind, rows)
    }

    fn add_as(
        &mut self,
        of: Option<&NamedType>,
        kind: &mut ColumnKind<'_>,
        rows: Range<usize>,
    ) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        if let Self::Present(present) = self {
            present.bits.push_many(1, rows.len());
            return present.node.add_as(of, kind, rows);
        }
        if self.is_new() {
            *self = Self::like(of, kind);
        }
        match (self, kind) {
            (node, ColumnKind::Dict(dict)) if of.is_none() => {
                for row in rows {
                    let inner = dict.inner(row);
                    node.add(&mut dict.column, inner..inner + 1)?;
                }
            }
            (Self::Typed(typed), kind) => {
                let inside = of.and_then(|of| of.inside.as_deref());
                typed.node.add_as(inside, kind, rows)?;
            }
            (Self::Unit(count), _) => *count += rows.len(),
            (Self::Bools(bytes), ColumnKind::Bools(bits)) => {
                bytes.push_bits(rows, |row| bits.get(row));
            }
            (
                Self::Numbers(NumbersBuilder { bytes, .. }) | Self::Halves(bytes),
                ColumnKind::Numbers(numbers),
            ) => bytes.push_slice(numbers.run(rows).as_slice()),
            (Self::Strings(strings), ColumnKind::Texts(cuts, texts)) => {
                strings.add(cuts, texts.as_str().as_bytes(), rows)?;
            }
            (Self::Strings(strings), ColumnKind::Bytes(cuts, data)) => {
                strings.add(cuts, data.as_slice(), rows)?;
            }
            (Self::Tensors(some), ColumnKind::Tensors(tensors)) => {
                some.rows += rows.len();
                some.bytes.push_slice(tensors.run(rows).as_slice());
            }
            (Self::Optional(some), ColumnKind::Optional(optional)) => {
                some.bits.push_bits(rows.clone(), |row| optional.marks.get(row));
                some.node.add(&mut optional.column, optional.marks.run(rows))?;
            }
            (Self::List(list), ColumnKind::Lists(lists)) => {
                let (cuts, column) = &mut **lists;
                list.lengths.add(cuts, rows.clone())?;
                list.node.add(column, cuts.run(rows))?;
            }
            (Self::Tuple(tuple), ColumnKind::Tuples(columns)) => {
                tuple.rows += rows.len();
                for (node, column) in tuple.nodes.iter_mut().zip(columns) {
                    node.add(column, rows.clone())?;
                }
            }
            (Self::Tuple(tuple), ColumnKind::Lists(lists)) => {
                let (cuts, column) = &mut **lists;
                tuple.rows += rows.len();
                for row in rows {
                    for (node, inner) in tuple.nodes.iter_mut().zip(cuts.run(row..row + 1)) {
                        node.add(column, inner..inner + 1)?;
                    }
                }
            }
            (Self::Map(map), ColumnKind::Maps(maps)) => {
                map.lengths.add(&maps.cuts, rows.clone())?;
                let entries = maps.cuts.run(rows);
                map.keys.add(&mut maps.keys, entries.clone())?;
                map.values.add(&mut maps.values, entries)?;
            }
            (Self::Struct(some), ColumnKind::Structs(structs)) => {
                some.add(&mut structs.fields, rows)?;
            }
            (Self::Enum(some), ColumnKind::Enums(enums)) => some.add(enums, rows)?,
            (Self::Items(some), ColumnKind::Items(items)) => {
                for row in rows {
                    some.bytes.extend_from_slice(items.item(row));
                    some.ends.push(some.bytes.len());
                }
            }
            // The caller has asked whether the column fits.
            _ => return Err(super::emit::inconsistent()),
        }
        Ok(())
    }

    /// A column without rows that takes those of another one.
    fn like(of: Option<&NamedType>, kind: &ColumnKind<'_>) -> Self {
        if let Some(NamedType { name, .. }) = of {
            let order = if name.is_ordered() { order(kind) } else { None };
            let typed = TypedBuilder { of: name.clone(), order, node: Self::Empty };
            return Self::Typed(Box::new(typed));
        }
        match kind {
            ColumnKind::Dict(dict) => Self::like(dict.column.of.as_deref(), &dict.column.kind),
            ColumnKind::Unit => Self::Unit(0),
            ColumnKind::Bools(_) => Self::Bools(Bytes::default()),
            ColumnKind::Numbers(numbers) => match Kind::of(&numbers.kind.dtype()) {
                Some(kind) => Self::Numbers(NumbersBuilder { kind, bytes: Bytes::default() }),
                None => Self::Halves(Bytes::default()),
            },
            ColumnKind::Texts(..) => Self::strings_of(true),
            ColumnKind::Bytes(..) => Self::strings_of(false),
            ColumnKind::Tensors(tensors) => {
                let Tensors { dtype, shape, len, .. } = &**tensors;
                let meta = TensorMeta::new(dtype.clone(), shape.clone(), Order::C);
                let bytes = Bytes::default();
                Self::Tensors(Box::new(TensorsBuilder { meta, len: *len, rows: 0, bytes }))
            }
            ColumnKind::Optional(_) => Self::Optional(Box::default()),
            ColumnKind::Lists(_) => Self::List(Box::default()),
            ColumnKind::Maps(_) => Self::Map(Box::default()),
            ColumnKind::Tuples(columns) => {
                let nodes = columns.iter().map(|_| Self::Empty).collect();
                let len = columns.len();
                Self::Tuple(Box::new(TupleBuilder { len, nodes, ..TupleBuilder::default() }))
            }
            ColumnKind::Structs(_) => Self::Struct(Box::default()),
            ColumnKind::Enums(_) => Self::Enum(Box::default()),
            ColumnKind::Items(_) => Self::Items(ItemsBuilder::default()),
        }
    }

    fn strings_of(is_text: bool) -> Self {
        Self::Strings(StringsBuilder { is_text, ..StringsBuilder::default() })
    }

    /// Adds rows in which this field is missing. `before` is the number of rows before them.
    fn push_all_missing(&mut self, before: usize, rows: usize) {
        if let Some(present) = self.present(before) {
            present.bits.push_many(0, rows);
        }
    }
}

/// The names of a category, in the order of their dict.
fn order(kind: &ColumnKind<'_>) -> Option<Vec<String>> {
    let ColumnKind::Dict(dict) = kind else { return None };
    let ColumnKind::Texts(cuts, texts) = &dict.column.kind else { return None };
    let mut start = 0;
    let names = (0..dict.count()).map(|row| {
        let end = start + cuts.lengths().get(row);
        let name = texts.as_str().get(start..end).unwrap_or_default();
        start = end;
        name.to_owned()
    });
    Some(names.collect())
}

/// The number of elements in all rows.
fn total(cuts: &Offsets<'_>, rows: usize) -> usize {
    cuts.lengths().sum(0..rows).unwrap_or(usize::MAX)
}

impl LengthsBuilder {
    fn add(&mut self, cuts: &Offsets<'_>, rows: Range<usize>) -> Result<()> {
        for row in rows {
            self.push(u32::try_from(cuts.lengths().get(row)).map_err(|_| too_long())?);
        }
        Ok(())
    }
}

impl StringsBuilder {
    fn add(&mut self, cuts: &mut Offsets<'_>, all: &[u8], rows: Range<usize>) -> Result<()> {
        self.lengths.add(cuts, rows.clone())?;
        self.bytes.push_slice(all.get(cuts.run(rows)).unwrap_or_default());
        Ok(())
    }
}

impl StructBuilder {
    /// Whether the fields of rows can be added: those that are known have the order that they have here.
    fn takes(&self, fields: &[Field<'_>], rows: usize) -> bool {
        let mut at = 0;
        fields.iter().all(|field| match self.place(&field.name, at) {
            None => true,
            Some(place) if place < at => false,
            Some(place) => {
                at = place + 1;
                let rows = field.present.as_ref().map_or(rows, |present| present.count(rows));
                self.fields.get(place).is_some_and(|here| here.node.fits(&field.column, rows))
            }
        })
    }

    /// The place of a field. Most often, it is the next one.
    fn place(&self, name: &str, next: usize) -> Option<usize> {
        if self.fields.get(next).is_some_and(|field| field.name() == name) {
            return Some(next);
        }
        self.fields.iter().position(|field| field.name() == name)
    }

    fn add(&mut self, fields: &mut [Field<'_>], rows: Range<usize>) -> Result<()> {
        let before = self.rows;
        let mut at = 0;
        for field in fields {
            let place = match self.place(&field.name, at) {
                Some(place) => place,
                None => {
                    let mut new = FieldBuilder::named(&field.name);
                    if before > 0 {
                        new.node.push_all_missing(0, before);
                    }
                    self.fields.insert(at, new);
                    at
                }
            };
            let passed = self.fields.iter_mut().take(place).skip(at);
            passed.for_each(|field| field.node.push_all_missing(before, rows.len()));
            at = place + 1;
            let Some(FieldBuilder { node, .. }) = self.fields.get_mut(place) else { continue };
            match &mut field.present {
                None => node.add(&mut field.column, rows.clone())?,
                Some(marks) => {
                    let Some(present) = node.present(before) else { continue };
                    present.bits.push_bits(rows.clone(), |row| Validity::get(marks, row));
                    present.node.add(&mut field.column, marks.run(rows.clone()))?;
                }
            }
        }
        let passed = self.fields.iter_mut().skip(at);
        passed.for_each(|field| field.node.push_all_missing(before, rows.len()));
        self.rows += rows.len();
        Ok(())
    }
}

impl EnumBuilder {
    /// Whether the variants of rows can be added.
    fn takes(&self, enums: &Enum<'_>, rows: usize) -> bool {
        // All codes were checked.
        let counts = enums.count(0..rows).unwrap_or_default();
        let mut new = 0;
        enums.names.iter().zip(&counts).enumerate().all(|(code, (name, &count))| {
            let column = enums.columns.get(code).and_then(Option::as_ref);
            match self.variants.iter().find(|variant| variant.name() == name) {
                _ if count == 0 => true,
                None => {
                    new += 1;
                    self.variants.len() + new <= MAX_VARIANTS
                }
                Some(variant) => match column {
                    None => variant.form == VariantForm::Unit,
                    Some(column) => {
                        variant.form != VariantForm::Unit && variant.node.fits(column, count)
                    }
                },
            }
        })
    }

    fn add(&mut self, enums: &mut Enum<'_>, rows: Range<usize>) -> Result<()> {
        /// What is known of a variant of the rows.
        #[derive(Clone)]
        struct Here {
            code: u16,
            contents: Range<usize>,
        }
        let mut known: Vec<Option<Here>> = vec![None; enums.names.len()];
        for row in rows {
            let (code, inner) = enums.entry(row);
            let Some(here) = known.get_mut(code) else { continue };
            let here = match here {
                Some(here) => here,
                None => {
                    let name = enums.names.get(code).map_or("", |name| &**name);
                    let is_unit = !matches!(enums.columns.get(code), Some(Some(_)));
                    let code = self.code(name, is_unit);
                    here.insert(Here { code, contents: inner..inner })
                }
            };
            here.contents.end += 1;
            self.codes.push(here.code.to_le_bytes());
        }
        for (here, column) in known.into_iter().zip(&mut enums.columns) {
            if let (Some(Here { code, contents }), Some(column)) = (here, column)
                && let Some(variant) = self.variants.get_mut(usize::from(code))
            {
                variant.node.add(column, contents)?;
            }
        }
        Ok(())
    }

    /// The code of a variant, which may be new.
    fn code(&mut self, name: &str, is_unit: bool) -> u16 {
        let known = self.variants.iter().position(|variant| variant.name() == name);
        let code = known.unwrap_or_else(|| {
            let form = if is_unit { VariantForm::Unit } else { VariantForm::Newtype };
            self.variants.push(VariantBuilder::named(name, form));
            self.variants.len() - 1
        });
        // There is room for all: see `takes`.
        u16::try_from(code).unwrap_or_default()
    }
}
