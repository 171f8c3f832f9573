//! Reads groups and the columns in them, and checks them. What columns store as blocks of bytes is read in
//! [`blocks`](super::blocks).

use std::borrow::Cow;
use std::ops::Range;

use super::heads::{check_items, check_names, definite, wrong};
use super::range::RowRange;
use super::{
    Column, ColumnData, ColumnKind, EncodedRows, Enum, Field, Group, Maps, NamedType, Offsets,
    Optional, RowLengths, Structs, Uniform, Validity, WantedFields,
};
use crate::error::{Error, Result};
use crate::wire::head::{self, Head};
use crate::wire::reader::{GROWING, ItemStart, Left, Reader};
use crate::wire::tag;

/// The most rows that a group may have.
const MAX_ROWS: u64 = 1 << 16;

/// What a column costs of the budget: it is in the `Vec` of its parent, which grows, and some kinds are in a box.
pub(super) const COLUMN: u64 = GROWING * size_of::<Field>() as u64 + size_of::<Optional>() as u64;

/// What a variant of an enum costs: its name, and how often it occurs before, in and behind the part that is read.
const VARIANT: u64 = GROWING * size_of::<Cow<'_, str>>() as u64 + 16 * size_of::<usize>() as u64;

/// How a sequence starts.
#[derive(Clone, Copy, Debug)]
pub enum Start {
    /// With the tag of columns.
    Columns,
    /// With the head of an array.
    Array(Head),
}

impl<'de> Reader<'de, '_> {
    /// Reads the start of a sequence, which may be in options.
    pub fn sequence(&mut self) -> Result<Start> {
        let at = self.offset();
        loop {
            let found = match self.item()? {
                ItemStart::Tag(tag::SOME) | ItemStart::Within(_) => continue,
                ItemStart::Tag(tag::COLUMNS) => return Ok(Start::Columns),
                ItemStart::Head(head) if head.major() == head::ARRAY => {
                    return Ok(Start::Array(head));
                }
                ItemStart::Head(head) => head::name(head.initial),
                ItemStart::Tag(_) => "another value",
            };
            return Err(Error::mismatch(format!("expected a sequence, found {found}")).at(at));
        }
    }

    /// Reads the tag of columns, which may be in options.
    pub fn columns(&mut self) -> Result<()> {
        let at = self.offset();
        match self.sequence()? {
            Start::Columns => Ok(()),
            Start::Array(_) => Err(Error::mismatch("expected columns, found an array").at(at)),
        }
    }

    /// Reads the head of the array around the groups. The tag was read. The caller must have entered the two levels
    /// of the tag and the array.
    pub fn groups(&mut self) -> Result<Left> {
        let at = self.offset();
        let head = self.head()?;
        if head.major() != head::ARRAY {
            return Err(wrong("an array of groups of columns", head).at(at));
        }
        Ok(Left::of(head))
    }

    /// Reads the next group of rows. `None` after the last one.
    pub fn group(&mut self, left: &mut Left) -> Result<Option<Group<'de>>> {
        let Some(rows) = self.group_rows(left)? else { return Ok(None) };
        let column = self.column_part(rows, 0..rows, &WantedFields::All)?;
        Ok(Some(Group { rows, column }))
    }

    /// Reads the number of rows of the next group. Their column follows. `None` after the last group.
    pub fn group_rows(&mut self, left: &mut Left) -> Result<Option<usize>> {
        if !self.more(left)? {
            return Ok(None);
        }
        let at = self.offset();
        let head = self.head()?;
        let rows = usize::try_from(head.arg).ok().filter(|_| head.arg <= MAX_ROWS);
        let Some(rows) = rows.filter(|_| head.major() == head::UNSIGNED) else {
            let found = match head.major() {
                head::UNSIGNED => head.arg.to_string(),
                _ => head::name(head.initial).to_owned(),
            };
            let what = format!(
                "expected the number of rows of a group, at most {MAX_ROWS}, found {found}"
            );
            return Err(Error::data(what).at(at));
        };
        let at = self.offset();
        if !self.more(left)? {
            let what = format!("expected a column of {rows} rows, found the end of the groups");
            return Err(Error::data(what).at(at));
        }
        Ok(Some(rows))
    }

    /// Reads part of the column of a group of `rows` rows. The column that is returned has only the rows in `part`.
    /// Its structs have only the wanted fields. What is left out is not read and not checked.
    pub fn column_part(
        &mut self,
        rows: usize,
        part: Range<usize>,
        wanted: &WantedFields<'_>,
    ) -> Result<Column<'de>> {
        let rows = RowRange { all: rows, start: part.start, end: part.end };
        self.part_of_column(rows, None, wanted)
    }

    fn column(&mut self, rows: RowRange) -> Result<Column<'de>> {
        self.part_of_column(rows, None, &WantedFields::All)
    }

    /// Reads a column. `present` is for a value of a struct: it is set if some rows do not have it.
    pub(super) fn part_of_column(
        &mut self,
        rows: RowRange,
        present: Option<&mut Option<Validity<'de>>>,
        wanted: &WantedFields<'_>,
    ) -> Result<Column<'de>> {
        self.charge(COLUMN)?;
        let at = self.offset();
        let head = self.head()?;
        let kind = match head.major() {
            head::MAP => self.within(1, |wire| wire.structs(head, rows, wanted, at)),
            head::ARRAY => {
                let column =
                    self.within(1, |wire| wire.named_column(head, rows, present, wanted, at));
                return column.map_err(|error| error.at(at));
            }
            head::TAG if tag::is_array(head.arg) => self.block_column(head.arg, rows, at),
            head::TAG => {
                let what = format!("expected a column, found tag {}", head.arg);
                Err(Error::data(what))
            }
            _ => Err(wrong("a column", head)),
        };
        Ok(Column::new(at, kind.map_err(|error| error.at(at))?))
    }

    fn structs(
        &mut self,
        head: Head,
        rows: RowRange,
        wanted: &WantedFields<'_>,
        at: u64,
    ) -> Result<ColumnKind<'de>> {
        let len = definite(head, at)?;
        if len == 0 {
            self.free_rows(rows)?;
        }
        let wanted = wanted.of_struct();
        let mut fields = Vec::new();
        for _ in 0..len {
            let name = self.name(rows)?;
            let place = wanted.place(&name);
            let Some(inside) = wanted.within(&place) else {
                self.skip()?;
                continue;
            };
            let mut present = None;
            match self.part_of_column(rows, Some(&mut present), &inside) {
                Ok(column) => fields.push(Field { name, present, column }),
                Err(error) => return Err(error.in_field(name)),
            }
        }
        if fields.is_empty() && len > 0 {
            // No field is wanted. So nothing proves that the rows are there.
            self.free_rows(rows)?;
        }
        check_names(fields.iter().map(|field| &*field.name)).map_err(|error| error.at(at))?;
        Ok(ColumnKind::Structs(Structs::new(fields)))
    }

    /// Reads a column that is an array with the name of its kind. Its head was read.
    fn named_column(
        &mut self,
        head: Head,
        rows: RowRange,
        present: Option<&mut Option<Validity<'de>>>,
        wanted: &WantedFields<'_>,
        at: u64,
    ) -> Result<Column<'de>> {
        let len = definite(head, at)?;
        let kind_at = self.offset();
        if len == 0 {
            return Err(Error::data("expected a column, found an empty array"));
        }
        let name = self.short_name()?;
        let takes = |expected: u64| match len {
            _ if len == expected => Ok(()),
            _ => Err(Error::data(format!(
                "expected an array of {expected} for a column of kind {name:?}, found one of {len}"
            ))
            .at(at)),
        };
        let kind = match &*name {
            "unit" => {
                takes(1)?;
                self.free_rows(rows)?;
                Ok(ColumnKind::Unit)
            }
            "bool" => {
                takes(2)?;
                Ok(ColumnKind::Bools(self.bits(rows)?.part(rows.range())))
            }
            "text" => {
                takes(3)?;
                let (lengths, bytes) = self.lengths(rows, |_| true)?;
                let text = self.texts(&lengths, rows.len(), bytes)?;
                Ok(ColumnKind::Texts(Offsets::new(lengths), text))
            }
            "bytes" => {
                takes(3)?;
                let (lengths, bytes) = self.lengths(rows, |_| true)?;
                let bytes = self.cut_bytes(bytes)?;
                Ok(ColumnKind::Bytes(Offsets::new(lengths), bytes))
            }
            "option" => {
                takes(3)?;
                let (bits, inner) = self.marked(rows)?;
                let column = self.part_of_column(inner, None, wanted)?;
                let marks = Validity::new(bits);
                Ok(ColumnKind::Optional(Box::new(Optional { marks, column })))
            }
            "present" => {
                takes(3)?;
                let Some(present) = present else {
                    let what = "only a value of a struct can be missing in some rows";
                    return Err(Error::data(what).at(kind_at));
                };
                let (bits, inner) = self.marked(rows)?;
                let column = self.part_of_column(inner, None, wanted)?;
                *present = Some(Validity::new(bits));
                return Ok(column);
            }
            "dict" => {
                takes(4)?;
                self.dict(rows, wanted)
            }
            "type" => {
                takes(4)?;
                let name = self.named_type()?;
                let column = self.part_of_column(rows, None, wanted)?;
                let of = Some(Box::new(NamedType { name, inside: column.of }));
                return Ok(Column { of, ..column });
            }
            "list" => {
                takes(3)?;
                let (lengths, inner) = self.list_lengths(rows)?;
                let column = self.column(inner)?;
                Ok(ColumnKind::Lists(Box::new((Offsets::new(lengths), column))))
            }
            "array" => {
                takes(3)?;
                let (len, inner) = self.array_len(rows)?;
                let column = self.column(inner)?;
                Ok(ColumnKind::Lists(Box::new((Offsets::new(RowLengths::Same(len)), column))))
            }
            "map" => {
                takes(4)?;
                let (lengths, inner) = self.lengths(rows, |len| len == 0)?;
                let keys = self.column(inner)?;
                let values = self.column(inner)?;
                Ok(ColumnKind::Maps(Box::new(Maps { cuts: Offsets::new(lengths), keys, values })))
            }
            "tuple" => {
                takes(2)?;
                self.within(1, |wire| wire.tuples(rows, at))
            }
            "enum" => {
                if len != 3 {
                    takes(4)?;
                }
                self.enums(rows, len == 4, wanted)
            }
            "rows" => {
                takes(2)?;
                self.within(1, |wire| wire.items(rows))
            }
            other => Err(Error::data(format!("{other:?} is not a kind of column")).at(kind_at)),
        };
        Ok(Column::new(at, kind?))
    }

    fn tuples(&mut self, rows: RowRange, at: u64) -> Result<ColumnKind<'de>> {
        let len = self.array("the columns of a tuple")?;
        if len == 0 {
            let what = "a tuple has at least one column; rows without elements are a column of kind \"array\"";
            return Err(Error::data(what).at(at));
        }
        let mut columns = Vec::new();
        for index in 0..len {
            let column = self.column(rows);
            columns.push(column.map_err(|error| error.in_index(index))?);
        }
        if let Some(uniform) = Uniform::of_tuple(columns.iter().map(Uniform::of)) {
            let what = format!(
                "a tuple has only {uniform}, which must be one column of kind \"array\", not {len} columns"
            );
            return Err(Error::data(what).at(at));
        }
        Ok(ColumnKind::Tuples(columns))
    }

    fn items(&mut self, rows: RowRange) -> Result<ColumnKind<'de>> {
        let at = self.offset();
        let len = self.array("the items of rows")?;
        if len != rows.all as u64 {
            let rows = rows.all;
            return Err(Error::data(format!(
                "expected {rows} items for as many rows, found {len}"
            ))
            .at(at));
        }
        self.skip_run(rows.start)?;
        let base = self.offset();
        let items = ColumnData::from(self.capture_run(rows.len())?);
        if self.src.buffers().is_some() {
            check_items(items.as_slice(), base)?;
        }
        self.skip_run(rows.all - rows.end)?;
        Ok(ColumnKind::Items(EncodedRows::new(items, base, self.levels_left())))
    }

    fn enums(
        &mut self,
        rows: RowRange,
        has_columns: bool,
        wanted: &WantedFields<'_>,
    ) -> Result<ColumnKind<'de>> {
        let at = self.offset();
        let codes = self.codes_of(rows.all, "the codes of an enum")?;
        let names = self.within(1, |wire| {
            let len = wire.array("the names of variants")?;
            let mut names = Vec::new();
            for _ in 0..len {
                wire.charge(VARIANT)?;
                names.push(wire.name(rows)?);
            }
            check_names(names.iter().map(|name| &**name)).map_err(|error| error.at(at))?;
            Ok(names)
        })?;
        let all = Enum::new(codes, names);
        let count = |rows: Range<usize>| {
            all.count(rows).map_err(|row| {
                let (names, code) = (all.names.len(), all.code(row));
                let what = format!("an enum of {names} variants has no variant {code}");
                Error::data(what).at(at).in_index(row as u64)
            })
        };
        let before = count(0..rows.start)?;
        let inside = count(rows.range())?;
        let behind = count(rows.end..rows.all)?;
        let counts = before.iter().zip(&inside).zip(&behind).map(|((before, inside), behind)| {
            let end = before + inside;
            RowRange { all: end + behind, start: *before, end }
        });
        let counts: Vec<_> = counts.collect();
        let mut enums = all.part(rows.range());
        if has_columns {
            let columns = self.within(1, |wire| wire.variants(&counts, &enums.names, wanted))?;
            enums.set_columns(columns);
        }
        Ok(ColumnKind::Enums(Box::new(enums)))
    }

    fn variants(
        &mut self,
        counts: &[RowRange],
        names: &[Cow<'de, str>],
        wanted: &WantedFields<'_>,
    ) -> Result<Vec<Option<Column<'de>>>> {
        let at = self.offset();
        let len = self.array("the columns of variants")?;
        if len != counts.len() as u64 {
            let names = counts.len();
            let what =
                format!("expected a column or null for each of {names} variants, found {len}");
            return Err(Error::data(what).at(at));
        }
        let mut columns = Vec::new();
        for (&count, name) in counts.iter().zip(names) {
            if self.initial()? == head::NULL {
                self.src.advance(1);
                columns.push(None);
            } else if let Some(wanted) = wanted.within_variant(name) {
                let column = self.part_of_column(count, None, &wanted);
                columns.push(Some(column.map_err(|error| error.in_field(&**name))?));
            } else {
                self.skip()?;
                columns.push(None);
            }
        }
        Ok(columns)
    }

    fn skip_run(&mut self, items: usize) -> Result<()> {
        self.within(0, |wire| (0..items).try_for_each(|_| wire.skip()))
    }
}
