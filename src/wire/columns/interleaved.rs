//! Reads interleaved columns: one tensor with the numbers of all rows, and names for its columns.

use std::borrow::Cow;

use super::blocks::check_c_order;
use super::heads::{definite, wrong};
use super::parse::COLUMN;
use super::range::Rows;
use super::{Column, Data, Field, Kind, NumberType, Numbers, Packed, Structs};
use crate::error::{Error, Result};
use crate::io::source::Read;
use crate::wire::head;
use crate::wire::reader::Reader;
use crate::wire::tag;
use crate::wire::tensor;

/// How the numbers of an interleaved row form structs and tuples.
pub enum Names<'de> {
    Number,
    Struct(Vec<(Cow<'de, str>, Names<'de>)>),
    Tuple(Vec<Names<'de>>),
}

impl<'de, R: Read<'de>> Reader<R> {
    pub(super) fn interleaved(&mut self, rows: Rows) -> Result<Kind<'de>> {
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
        let mut column = columns.column(names);
        if let Kind::Structs(structs) = &mut column {
            structs.packed = Packed::new(kind, columns.data, stride).map(Box::new);
        }
        Ok(column)
    }

    pub fn interleaved_names(&mut self, rows: usize) -> Result<Names<'de>> {
        self.charge(COLUMN)?;
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
    /// The offset of the next number in a row.
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
