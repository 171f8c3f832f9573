//! Reads columns and checks them.

use std::borrow::Cow;
use std::ops::Range;

use super::{
    Bits, Column, Cuts, Data, Enum, Field, Group, Items, Kind, Lengths, Maps, Marks, NumberType,
    Numbers, Optional, Structs, Tensors, TextData,
};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::io::source::Read;
use crate::mem::shared_bytes::SharedBytes;
use crate::meta::{Order, TensorMeta};
use crate::shape::Shape;
use crate::wire::head::{self, Head};
use crate::wire::reader::{Left, Reader};
use crate::wire::strings::{Text, not_utf8};
use crate::wire::tag;
use crate::wire::tensor::{self, Payload, TensorItem};

/// The most rows that a group may have.
const MAX_ROWS: u64 = 1 << 16;

/// Names of fields and variants may be longer than this many bytes. But a reader may copy a name for each row, so
/// each further piece of this length counts as a row without bytes.
const NAME_PIECE: usize = 256;

/// What the numbers of an interleaved row are.
pub enum Names<'de> {
    Number,
    Struct(Vec<(Cow<'de, str>, Names<'de>)>),
    Tuple(Vec<Names<'de>>),
}

impl<'de, R: Read<'de>> Reader<R> {
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
        let column = self.column_part(rows, 0..rows, &|_| true)?;
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
    /// If it is a struct, it has only the fields that `is_wanted` takes. What is left out is not read and not checked.
    pub fn column_part(
        &mut self,
        rows: usize,
        part: Range<usize>,
        is_wanted: &dyn Fn(&str) -> bool,
    ) -> Result<Column<'de>> {
        let at = self.offset();
        let rows = Rows { all: rows, start: part.start, end: part.end };
        match self.peek_head()? {
            Some((head, len)) if head.major() == head::MAP => {
                self.charge(size_of::<Column>() as u64)?;
                self.src.advance(len);
                let kind = self.within(1, |wire| wire.structs(head, rows, is_wanted, at));
                Ok(Column { at, kind: kind.map_err(|error| error.at(at))? })
            }
            _ => self.column(rows, None),
        }
    }

    /// Reads a column. `present` is for a value of a struct: it is set if some rows do not have it.
    fn column(
        &mut self,
        rows: Rows,
        present: Option<&mut Option<Marks<'de>>>,
    ) -> Result<Column<'de>> {
        self.charge(size_of::<Column>() as u64)?;
        let at = self.offset();
        let head = self.head()?;
        let kind = match head.major() {
            head::MAP => self.within(1, |wire| wire.structs(head, rows, &|_| true, at)),
            head::ARRAY => self.within(1, |wire| wire.named_column(head, rows, present, at)),
            head::TAG if tag::is_array(head.arg) => self.block_column(head.arg, rows, at),
            head::TAG => {
                let what = format!("expected a column, found tag {}", head.arg);
                Err(Error::data(what))
            }
            _ => Err(wrong("a column", head)),
        };
        Ok(Column { at, kind: kind.map_err(|error| error.at(at))? })
    }

    fn structs(
        &mut self,
        head: Head,
        rows: Rows,
        is_wanted: &dyn Fn(&str) -> bool,
        at: u64,
    ) -> Result<Kind<'de>> {
        let len = definite(head, at)?;
        if len == 0 {
            self.free_rows(rows)?;
        }
        let mut fields = Vec::new();
        for _ in 0..len {
            self.charge(size_of::<Field>() as u64)?;
            let name = self.name(rows)?;
            if !is_wanted(&name) {
                self.skip()?;
                continue;
            }
            let mut present = None;
            match self.column(rows, Some(&mut present)) {
                Ok(column) => fields.push(Field { name, present, column }),
                Err(error) => return Err(error.in_field(name)),
            }
        }
        Ok(Kind::Structs(Structs::new(fields)))
    }

    /// Reads a column that is an array with the name of its kind. Its head was read.
    fn named_column(
        &mut self,
        head: Head,
        rows: Rows,
        present: Option<&mut Option<Marks<'de>>>,
        at: u64,
    ) -> Result<Kind<'de>> {
        let len = definite(head, at)?;
        let kind_at = self.offset();
        let name = match len {
            0 => return Err(Error::data("expected a column, found an empty array")),
            _ => self.short_name()?,
        };
        let takes = |expected: u64| match len {
            _ if len == expected => Ok(()),
            _ => Err(Error::data(format!(
                "expected an array of {expected} for a column of kind {name:?}, found one of {len}"
            ))
            .at(at)),
        };
        match &*name {
            "unit" => {
                takes(1)?;
                self.free_rows(rows)?;
                Ok(Kind::Unit)
            }
            "bool" => {
                takes(2)?;
                Ok(Kind::Bools(self.bits(rows)?.part(rows.range())))
            }
            "text" => {
                takes(3)?;
                let (lengths, bytes) = self.lengths(rows, |_| true)?;
                let text = self.texts(&lengths, rows.len(), bytes)?;
                Ok(Kind::Texts(Cuts::new(lengths), text))
            }
            "bytes" => {
                takes(3)?;
                let (lengths, bytes) = self.lengths(rows, |_| true)?;
                let bytes = self.cut_bytes(bytes)?;
                Ok(Kind::Bytes(Cuts::new(lengths), bytes))
            }
            "option" => {
                takes(3)?;
                let (bits, inner) = self.marked(rows)?;
                let column = self.column(inner, None)?;
                let marks = Marks::new(bits);
                Ok(Kind::Optional(Box::new(Optional { marks, column })))
            }
            "present" => {
                takes(3)?;
                let Some(present) = present else {
                    let what = "only a value of a struct can be missing in some rows";
                    return Err(Error::data(what).at(kind_at));
                };
                let (bits, inner) = self.marked(rows)?;
                let column = self.column(inner, None)?;
                *present = Some(Marks::new(bits));
                Ok(column.kind)
            }
            "list" => {
                takes(3)?;
                let (lengths, inner) = self.lengths(rows, |len| len == 0)?;
                let column = self.column(inner, None)?;
                Ok(Kind::Lists(Box::new((Cuts::new(lengths), column))))
            }
            "map" => {
                takes(4)?;
                let (lengths, inner) = self.lengths(rows, |len| len == 0)?;
                let keys = self.column(inner, None)?;
                let values = self.column(inner, None)?;
                Ok(Kind::Maps(Box::new(Maps { cuts: Cuts::new(lengths), keys, values })))
            }
            "tuple" => {
                takes(2)?;
                self.within(1, |wire| wire.tuples(rows))
            }
            "enum" => {
                if len != 3 {
                    takes(4)?;
                }
                self.enums(rows, len == 4)
            }
            "interleaved" => {
                takes(3)?;
                self.interleaved(rows)
            }
            "rows" => {
                takes(2)?;
                self.within(1, |wire| wire.items(rows))
            }
            other => {
                let what = format!("{other:?} is not a kind of column");
                Err(Error::data(what).at(kind_at))
            }
        }
    }

    fn tuples(&mut self, rows: Rows) -> Result<Kind<'de>> {
        let len = self.array("the columns of a tuple")?;
        if len == 0 {
            self.free_rows(rows)?;
        }
        let mut columns = Vec::new();
        for index in 0..len {
            let column = self.column(rows, None);
            columns.push(column.map_err(|error| error.in_index(index))?);
        }
        Ok(Kind::Tuples(columns))
    }

    fn items(&mut self, rows: Rows) -> Result<Kind<'de>> {
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
        let items = Data::from(self.capture_run(rows.len())?);
        self.skip_run(rows.all - rows.end)?;
        self.column_limits().add_bytes(items.len());
        Ok(Kind::Items(Items::new(items, base, self.levels_left())))
    }

    fn enums(&mut self, rows: Rows, has_columns: bool) -> Result<Kind<'de>> {
        let at = self.offset();
        let (codes, wide) = match self.codes("the codes of an enum")? {
            Block::Numbers(NumberType::U8, codes) => (codes, false),
            Block::Numbers(NumberType::U16, codes) => (codes, true),
            _ => {
                let what = "expected the codes of an enum as a typed array of u8 or u16";
                return Err(Error::data(what).at(at));
            }
        };
        let size = 1 + usize::from(wide);
        check_rows(codes.len() / size, rows.all).map_err(|error| error.at(at))?;
        let names = self.within(1, |wire| {
            let len = wire.array("the names of variants")?;
            let mut names = Vec::new();
            for _ in 0..len {
                wire.charge(size_of::<Cow<'_, str>>() as u64)?;
                names.push(wire.name(rows)?);
            }
            Ok(names)
        })?;
        let mut counts = vec![Rows::whole(0); names.len()];
        let all = Enum::new(codes, wide, names);
        for row in 0..rows.all {
            let code = all.code(row);
            let Some(count) = counts.get_mut(code) else {
                let names = counts.len();
                let what = format!("an enum of {names} variants has no variant {code}");
                return Err(Error::data(what).at(at).in_index(row as u64));
            };
            count.all += 1;
            count.start += usize::from(row < rows.start);
            count.end += usize::from(row < rows.end);
        }
        let mut enums = all.part(rows.start * size..rows.end * size);
        if has_columns {
            let columns = self.within(1, |wire| wire.variants(&counts, &enums.names))?;
            enums.set_columns(columns);
        }
        Ok(Kind::Enums(Box::new(enums)))
    }

    fn variants(
        &mut self,
        counts: &[Rows],
        names: &[Cow<'de, str>],
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
            } else {
                let column = self.column(count, None);
                columns.push(Some(column.map_err(|error| error.in_field(&**name))?));
            }
        }
        Ok(columns)
    }

    fn interleaved(&mut self, rows: Rows) -> Result<Kind<'de>> {
        let names = self.interleaved_names(rows.len())?;
        let at = self.offset();
        let head = self.head()?;
        if head.major() != head::TAG || !tag::is_array(head.arg) {
            return Err(wrong("the tensor of interleaved columns", head).at(at));
        }
        let item = self.tensor(head.arg).map_err(|error| error.at(at))?;
        let kind = NumberType::of(&item.meta.dtype);
        let (Some(kind), tensor::Kind::Tensor) = (kind, item.kind) else {
            let dtype = &item.meta.dtype;
            let what =
                format!("expected a tensor of numbers for interleaved columns, found {dtype}");
            return Err(Error::data(what).at(at));
        };
        let width = names.count();
        check_c_order(&item.meta).map_err(|error| error.at(at))?;
        if *item.meta.shape != [rows.all, width] {
            let (rows, shape) = (rows.all, &item.meta.shape);
            let what = format!(
                "expected a tensor of shape [{rows}, {width}] for interleaved columns, found {shape:?}"
            );
            return Err(Error::data(what).at(at));
        }
        let stride = width * kind.size();
        let (_, data, _) = self.column_data(item, rows.of_width(stride))?;
        let mut columns = Interleaved { kind, data, at, stride, next: 0 };
        Ok(columns.column(names))
    }

    pub fn interleaved_names(&mut self, rows: usize) -> Result<Names<'de>> {
        self.charge(size_of::<Column>() as u64)?;
        let at = self.offset();
        let head = self.head()?;
        if head.initial == head::NULL {
            return Ok(Names::Number);
        }
        if !matches!(head.major(), head::ARRAY | head::MAP) {
            return Err(wrong("the names of interleaved columns", head).at(at));
        }
        let len = definite(head, at)?;
        if len == 0 {
            self.free_rows(rows).map_err(|error| error.at(at))?;
        }
        self.within(1, |wire| {
            if head.major() == head::ARRAY {
                let names = (0..len).map(|_| wire.interleaved_names(rows));
                return names.collect::<Result<_>>().map(Names::Tuple);
            }
            let fields = (0..len).map(|_| Ok((wire.name(rows)?, wire.interleaved_names(rows)?)));
            fields.collect::<Result<_>>().map(Names::Struct)
        })
    }

    /// Reads a column that is a typed array or a tensor. Its tag was read.
    fn block_column(&mut self, tag: u64, rows: Rows, at: u64) -> Result<Kind<'de>> {
        let item = self.tensor(tag).map_err(|error| error.at(at))?;
        match item.kind {
            tensor::Kind::Numbers => {
                let Some(kind) = NumberType::of(&item.meta.dtype) else {
                    let dtype = &item.meta.dtype;
                    let what = format!("expected numbers of 8 to 64 bits, found {dtype}");
                    return Err(Error::data(what));
                };
                check_rows(item.payload.len() / kind.size(), rows.all)?;
                let (_, data, _) = self.column_data(item, rows.of_width(kind.size()))?;
                Ok(Kind::Numbers(Numbers::new(kind, data)))
            }
            tensor::Kind::Tensor => self.tensors(item, rows),
            tensor::Kind::Bytes => {
                Err(Error::data("expected a column, found a byte string in a buffer"))
            }
        }
    }

    fn tensors(&mut self, item: TensorItem, rows: Rows) -> Result<Kind<'de>> {
        check_c_order(&item.meta)?;
        let Some((&found, dims)) = item.meta.shape.split_first() else {
            return Err(Error::data("a column of tensors needs a dimension for the rows"));
        };
        check_rows(found, rows.all)?;
        let shape = Shape::from(dims);
        let dtype = item.meta.dtype.clone();
        let len = shape.element_count().and_then(|count| dtype.byte_len(count));
        let Some(len) = len else {
            let what = format!("tensors of {dtype} of shape {shape:?} do not take whole bytes");
            return Err(Error::data(what));
        };
        if len == 0 {
            self.free_rows(rows)?;
        }
        let (_, data, shared) = self.column_data(item, rows.of_width(len))?;
        if dtype == DType::Bool
            && let Some(byte) = data.as_slice().iter().find(|&&byte| byte > 1)
        {
            return Err(Error::data(format!("byte {byte} is no bool")));
        }
        Ok(Kind::Tensors(Box::new(Tensors { dtype, shape, len, data, shared })))
    }

    /// Part of the payload of a typed array or tensor. `None` is the whole payload.
    fn column_data(
        &mut self,
        item: TensorItem,
        part: Option<Range<usize>>,
    ) -> Result<(TensorMeta, Data<'de>, Option<SharedBytes>)> {
        if item.unclosed || matches!(item.payload, Payload::Chunks(_)) {
            return Err(Error::data("columns must have definite lengths"));
        }
        if let Payload::Numbers(_) = item.payload {
            return Err(Error::data("expected a typed array in a column, found a plain array"));
        }
        let (shared, (meta, bytes)) = match part {
            None => (self.shared(&item), self.payload_bytes(item)?),
            Some(part) => {
                let shared = self.shared(&item).and_then(|shared| shared.slice(part.clone()));
                (shared, self.payload_part(item, part)?)
            }
        };
        let data = Data::from(bytes);
        self.column_limits().add_bytes(data.len());
        Ok((meta, data, shared))
    }

    /// Reads the lengths of rows. Also returns what is in all rows together. `is_free` says whether rows take no bytes
    /// if all have this length.
    fn lengths(
        &mut self,
        rows: Rows,
        is_free: impl Fn(usize) -> bool,
    ) -> Result<(Lengths<'de>, Rows)> {
        let at = self.offset();
        let lengths = if self.initial()? >> 5 == head::UNSIGNED {
            let len = self.head()?.arg;
            let len = usize::try_from(len).map_err(|_| overflow(at))?;
            if is_free(len) {
                self.free_rows(rows)?;
            }
            Lengths::Same(len)
        } else {
            match self.codes("lengths")? {
                Block::Numbers(kind, data) if kind.is_unsigned() => {
                    check_rows(data.len() / kind.size(), rows.all).map_err(|error| error.at(at))?;
                    Lengths::Each(kind.size(), data)
                }
                _ => {
                    let what = "expected lengths: an unsigned integer, or a typed array of them";
                    return Err(Error::data(what).at(at));
                }
            }
        };
        let total = lengths.total(rows.all).filter(|&total| isize::try_from(total).is_ok());
        let Some(all) = total else { return Err(overflow(at)) };
        if rows.is_whole() {
            return Ok((lengths, Rows::whole(all)));
        }
        // The sums of fewer lengths fit, too.
        let start = lengths.total(rows.start).unwrap_or_default();
        let end = lengths.total(rows.end).unwrap_or_default();
        Ok((lengths.part(rows.start..rows.end), Rows { all, start, end }))
    }

    /// Reads a byte string or a typed array, which may be in a buffer.
    fn codes(&mut self, what: &str) -> Result<Block<'de>> {
        let at = self.offset();
        let head = self.head()?;
        match head.major() {
            head::BYTES => {
                definite(head, at)?;
                let data = Data::from(self.string(head)?);
                self.column_limits().add_bytes(data.len());
                Ok(Block::Bytes(data))
            }
            head::TAG if tag::is_array(head.arg) => {
                let item = self.tensor(head.arg).map_err(|error| error.at(at))?;
                let (kind, dtype) = (item.kind, NumberType::of(&item.meta.dtype));
                let (_, data, _) = self.column_data(item, None).map_err(|error| error.at(at))?;
                match (kind, dtype) {
                    (tensor::Kind::Bytes, _) => Ok(Block::Bytes(data)),
                    (tensor::Kind::Numbers, Some(kind)) => Ok(Block::Numbers(kind, data)),
                    _ => Err(Error::data(format!("expected {what}, found a tensor")).at(at)),
                }
            }
            _ => Err(wrong(what, head).at(at)),
        }
    }

    fn byte_string(&mut self) -> Result<Data<'de>> {
        let at = self.offset();
        match self.codes("a byte string")? {
            Block::Bytes(bytes) => Ok(bytes),
            Block::Numbers(..) => {
                Err(Error::data("expected a byte string, found a typed array").at(at))
            }
        }
    }

    /// Reads a byte string of which a part is wanted.
    fn cut_bytes(&mut self, wanted: Rows) -> Result<Data<'de>> {
        let at = self.offset();
        match self.peek_head()? {
            Some((head, _)) if !wanted.is_whole() && head.major() == head::TAG => {
                let head = self.head()?;
                let item = self.tensor(head.arg).map_err(|error| error.at(at))?;
                if item.kind != tensor::Kind::Bytes {
                    let what = "expected a byte string, found a typed array";
                    return Err(Error::data(what).at(at));
                }
                check_total(item.payload.len(), wanted.all).map_err(|error| error.at(at))?;
                let (_, data, _) = self.column_data(item, wanted.of_width(1))?;
                Ok(data)
            }
            _ => {
                let bytes = self.byte_string()?;
                check_total(bytes.len(), wanted.all).map_err(|error| error.at(at))?;
                Ok(bytes.cut(wanted.start..wanted.end))
            }
        }
    }

    /// Reads the bits of all rows, of which there may be more than are wanted.
    fn bits(&mut self, rows: Rows) -> Result<Bits<'de>> {
        let at = self.offset();
        let bits = self.byte_string()?;
        check_bits(bits, rows.all).map(Bits).map_err(|error| error.at(at))
    }

    /// Reads the bits of optional values. Also returns the rows of the column that follows.
    fn marked(&mut self, rows: Rows) -> Result<(Bits<'de>, Rows)> {
        let bits = self.bits(rows)?;
        let all = bits.count(0..rows.all);
        if rows.is_whole() {
            return Ok((bits, Rows::whole(all)));
        }
        let (start, end) = (bits.count(0..rows.start), bits.count(0..rows.end));
        Ok((bits.part(rows.range()), Rows { all, start, end }))
    }

    /// Reads the texts of `rows` rows in one text, and checks that it can be cut between rows.
    fn texts(&mut self, lengths: &Lengths<'de>, rows: usize, bytes: Rows) -> Result<TextData<'de>> {
        let at = self.offset();
        let text = match self.peek_head()? {
            Some((head, len)) if head.major() == head::TEXT => {
                definite(head, at)?;
                self.src.advance(len);
                let text = match self.text(head)? {
                    Text::Borrowed(text) => TextData::Borrowed(text),
                    Text::Copied(text) => TextData::Owned(text.to_owned()),
                    Text::Owned(text) => TextData::Owned(text),
                };
                check_total(text.as_str().len(), bytes.all).map_err(|error| error.at(at))?;
                text.cut(bytes.start..bytes.end).ok_or_else(|| inside_character(0).at(at))?
            }
            Some((head, _)) if head.major() == head::TAG => match self.cut_bytes(bytes)? {
                Data::Borrowed(bytes) => {
                    let text = std::str::from_utf8(bytes);
                    TextData::Borrowed(text.map_err(|error| not_utf8(error).at(at))?)
                }
                Data::Owned(bytes) => {
                    let bytes = std::rc::Rc::unwrap_or_clone(bytes);
                    let text = String::from_utf8(bytes);
                    TextData::Owned(text.map_err(|error| not_utf8(error.utf8_error()).at(at))?)
                }
            },
            _ => {
                let head = self.head()?;
                return Err(wrong("the texts of a column", head).at(at));
            }
        };
        let all = text.as_str();
        self.column_limits().add_bytes(all.len());
        let mut end = 0;
        // In ASCII, texts can be cut everywhere.
        for row in 0..if all.is_ascii() { 0 } else { rows } {
            end += lengths.get(row);
            if !all.is_char_boundary(end) {
                return Err(inside_character(row).at(at));
            }
        }
        Ok(text)
    }

    /// Reads the head of an array of definite length.
    fn array(&mut self, what: &str) -> Result<u64> {
        let at = self.offset();
        let head = self.head()?;
        if head.major() != head::ARRAY {
            return Err(wrong(what, head).at(at));
        }
        definite(head, at)
    }

    /// Reads the name of a field or variant that each of `rows` rows may have.
    fn name(&mut self, rows: impl Into<usize>) -> Result<Cow<'de, str>> {
        let at = self.offset();
        let name = self.short_name()?;
        let pieces = name.len().saturating_sub(1) / NAME_PIECE;
        self.free_rows(pieces.saturating_mul(rows.into())).map_err(|error| error.at(at))?;
        Ok(name)
    }

    fn short_name(&mut self) -> Result<Cow<'de, str>> {
        let at = self.offset();
        let head = self.head()?;
        if head.major() != head::TEXT {
            return Err(wrong("a name in columns", head).at(at));
        }
        definite(head, at)?;
        let name = self.text(head)?.into_cow();
        self.column_limits().add_bytes(name.len());
        Ok(name)
    }

    fn free_rows(&mut self, rows: impl Into<usize>) -> Result<()> {
        self.column_limits().take_free_rows(rows.into())
    }

    fn skip_run(&mut self, items: usize) -> Result<()> {
        self.within(0, |wire| (0..items).try_for_each(|_| wire.skip()))
    }
}

/// The rows of a column, and which of them are wanted.
#[derive(Clone, Copy)]
pub struct Rows {
    all: usize,
    start: usize,
    end: usize,
}

impl Rows {
    fn whole(all: usize) -> Self {
        Self { all, start: 0, end: all }
    }

    /// The number of rows that are wanted.
    pub fn len(self) -> usize {
        self.end - self.start
    }

    fn is_whole(self) -> bool {
        self.len() == self.all
    }

    /// The bytes of the wanted rows, if each row takes `width` bytes. `None` if these are all. The caller has checked
    /// that all rows fit in memory.
    fn of_width(self, width: usize) -> Option<Range<usize>> {
        (!self.is_whole()).then(|| self.start * width..self.end * width)
    }

    pub fn range(self) -> Range<usize> {
        self.start..self.end
    }
}

impl From<Rows> for usize {
    fn from(rows: Rows) -> Self {
        rows.len()
    }
}

/// A byte string or the numbers of a typed array.
enum Block<'de> {
    Bytes(Data<'de>),
    Numbers(NumberType, Data<'de>),
}

impl Names<'_> {
    /// The number of numbers in a row.
    fn count(&self) -> usize {
        match self {
            Self::Number => 1,
            Self::Struct(fields) => fields.iter().map(|(_, names)| names.count()).sum(),
            Self::Tuple(items) => items.iter().map(Self::count).sum(),
        }
    }
}

/// Makes columns of numbers of interleaved rows.
struct Interleaved<'de> {
    kind: NumberType,
    data: Data<'de>,
    at: u64,
    stride: usize,
    /// Where the next number is in a row.
    next: usize,
}

impl<'de> Interleaved<'de> {
    fn column(&mut self, names: Names<'de>) -> Kind<'de> {
        let at = self.at;
        match names {
            Names::Number => {
                let start = self.next;
                self.next += self.kind.size();
                let (kind, data) = (self.kind, self.data.clone());
                Kind::Numbers(Numbers::interleaved(kind, data, start, self.stride))
            }
            Names::Struct(fields) => {
                let field = |(name, names)| {
                    let kind = self.column(names);
                    Field { name, present: None, column: Column { at, kind } }
                };
                Kind::Structs(Structs::new(fields.into_iter().map(field).collect()))
            }
            Names::Tuple(items) => {
                let item = |names| Column { at, kind: self.column(names) };
                Kind::Tuples(items.into_iter().map(item).collect())
            }
        }
    }
}

/// The length of an array, map or string in columns.
fn definite(head: Head, at: u64) -> Result<u64> {
    head.length().ok_or_else(|| Error::data("columns must have definite lengths").at(at))
}

fn check_rows(found: usize, expected: usize) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(Error::data(format!("expected a column of {expected} rows, found one of {found}")))
}

fn check_total(found: usize, expected: usize) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(Error::data(format!("all lengths together are {expected} bytes, found {found}")))
}

fn check_bits(bits: Data<'_>, rows: usize) -> Result<Data<'_>> {
    let (found, expected) = (bits.len(), rows.div_ceil(8));
    if found != expected {
        let what = format!("expected {expected} bytes with bits of {rows} rows, found {found}");
        return Err(Error::data(what));
    }
    let last = bits.as_slice().last().copied().unwrap_or_default();
    if !rows.is_multiple_of(8) && last >> (rows % 8) != 0 {
        return Err(Error::data("the unused bits after the last row must be 0"));
    }
    Ok(bits)
}

fn check_c_order(meta: &TensorMeta) -> Result<()> {
    match meta.order {
        Order::C => Ok(()),
        Order::F => Err(Error::data("the tensor of a column must have order C, found F")),
    }
}

#[cold]
fn inside_character(row: usize) -> Error {
    Error::syntax(format!("the text of row {row} ends inside a character"))
}

#[cold]
fn overflow(at: u64) -> Error {
    Error::data("the lengths of all rows together do not fit in memory").at(at)
}

#[cold]
fn wrong(expected: &str, found: Head) -> Error {
    let found = head::name(found.initial);
    Error::data(format!("expected {expected}, found {found}"))
}
