//! Serializes record batches of Arrow as a sequence of structs, which tenarc writes as columns.

use std::sync::atomic::{AtomicBool, Ordering};
use std::{cell, fmt};

use arrow_array::RecordBatch;
use serde::ser::{
    Error as _, Serialize, SerializeMap as _, SerializeSeq as _, SerializeStruct as _,
    SerializeTuple as _, Serializer,
};
use tenarc::Result;
use tenarc::de::Limits;
use tenarc::types::Typed;

use crate::cells::{Cells, Field, Kind};
use crate::plan::Plan;
use crate::report::Report;

/// The memory that rows may take by default, in bytes.
const MAX_ALLOC: u64 = 16 << 30;

/// The greatest length of lists of fixed length with nulls in them that keep their type. Longer ones become lists of any
/// length.
const MOST_COLUMNS: usize = 16;

/// The rows of a table. They are serialized like a `Vec` of structs, so an archive stores them as columns.
pub struct Rows {
    batches: Vec<(usize, Vec<Field>)>,
    report: Report,
    limits: Limits,
    /// Whether the rows were serialized and needed more memory than the limits allow. An error of serde has no category.
    exceeded: AtomicBool,
}

impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows").field("rows", &self.len()).finish_non_exhaustive()
    }
}

impl Rows {
    /// Makes rows of these batches. They have the fields that have a plan. The limits are those of the memory that the
    /// rows may take when they are serialized.
    pub(crate) fn of(
        batches: &[RecordBatch],
        mut plans: Vec<Plan>,
        limits: Limits,
    ) -> Result<Self> {
        for batch in batches {
            for plan in &mut plans {
                if let Some(column) = batch.columns().get(plan.number) {
                    plan.observe(column, None);
                }
            }
        }
        let mut report = Report::default();
        for plan in &plans {
            plan.lost("", &mut report);
        }
        let fields =
            |batch: &RecordBatch| Ok((batch.num_rows(), Field::all(&plans, batch.columns())?));
        let batches = batches.iter().map(fields).collect::<Result<_>>()?;
        Ok(Self { batches, report, limits, exceeded: AtomicBool::new(false) })
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.batches.iter().map(|(rows, _)| rows).sum()
    }

    /// What is lost of these rows, beside what [`Import::report`](crate::Import::report) says of their types.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Whether the rows were serialized and needed more memory than the limits allow. An error of serde has no category.
    pub fn exceeds_limit(&self) -> bool {
        self.exceeded.load(Ordering::Relaxed)
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Serialize for Rows {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let budget = cell::Cell::new(self.limits.max_alloc().unwrap_or(MAX_ALLOC));
        let left = Left { budget, exceeded: &self.exceeded };
        let mut rows = serializer.serialize_seq(Some(self.len()))?;
        for (count, fields) in &self.batches {
            for row in 0..*count {
                rows.serialize_element(&Record { fields, row, left: &left })?;
            }
        }
        rows.end()
    }
}

/// The memory that the rows may still take, in bytes. Many rows can refer to one value of a dictionary, so the rows of a small
/// file can need a lot of memory.
struct Left<'a> {
    budget: cell::Cell<u64>,
    exceeded: &'a AtomicBool,
}

impl Left<'_> {
    /// Counts a value of `bytes` bytes.
    fn take<E: serde::ser::Error>(&self, bytes: usize) -> Result<(), E> {
        let left = self.budget.get().checked_sub(1 + bytes as u64);
        self.budget.set(left.ok_or_else(|| {
            self.exceeded.store(true, Ordering::Relaxed);
            E::custom("the rows exceed the memory limit")
        })?);
        Ok(())
    }
}

/// A row of a table or of a column of structs.
struct Record<'a> {
    fields: &'a [Field],
    row: usize,
    left: &'a Left<'a>,
}

impl Serialize for Record<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut record = serializer.serialize_struct("Record", self.fields.len())?;
        let Self { row, left, .. } = *self;
        for Field { name, cells, is_missing } in self.fields {
            if !is_missing {
                record.serialize_field(name, &Cell { cells, row, left })?;
            } else if cells.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                record.skip_field(name)?;
            } else {
                record.serialize_field(name, &Value { kind: &cells.kind, row, left })?;
            }
        }
        record.end()
    }
}

/// A value of a column in a row, which can be null.
struct Cell<'a> {
    cells: &'a Cells,
    row: usize,
    left: &'a Left<'a>,
}

impl Serialize for Cell<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { cells, row, left } = *self;
        let value = Value { kind: &cells.kind, row, left };
        match &cells.nulls {
            _ if !cells.is_optional => value.serialize(serializer),
            Some(nulls) if nulls.is_null(row) => serializer.serialize_none(),
            _ => serializer.serialize_some(&value),
        }
    }
}

/// A value of a column in a row, which is not null.
struct Value<'a> {
    kind: &'a Kind,
    row: usize,
    left: &'a Left<'a>,
}

impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { row, left, .. } = *self;
        left.take(match self.kind {
            Kind::Texts(texts) => texts.get(row).len(),
            Kind::Bytes(bytes) => bytes.get(row).len(),
            Kind::Words(len, _) => *len,
            Kind::Tensors(tensors) => tensors.row_len(),
            _ => 0,
        })?;
        macro_rules! number {
            ($values:ident, $method:ident) => {
                match $values.get(row) {
                    Some(value) => serializer.$method(*value),
                    None => Err(no_row()),
                }
            };
        }
        match self.kind {
            Kind::Null => serializer.serialize_unit(),
            Kind::Bools(bits) => serializer.serialize_bool(bits.value(row)),
            Kind::U8(values) => number!(values, serialize_u8),
            Kind::U16(values) => number!(values, serialize_u16),
            Kind::U32(values) => number!(values, serialize_u32),
            Kind::U64(values) => number!(values, serialize_u64),
            Kind::I8(values) => number!(values, serialize_i8),
            Kind::I16(values) => number!(values, serialize_i16),
            Kind::I32(values) => number!(values, serialize_i32),
            Kind::I64(values) => number!(values, serialize_i64),
            Kind::F16(values) => match values.get(row) {
                Some(value) => serializer.serialize_f32(value.to_f32()),
                None => Err(no_row()),
            },
            Kind::F32(values) => number!(values, serialize_f32),
            Kind::F64(values) => number!(values, serialize_f64),
            Kind::Words(len, bytes) => match bytes.chunks_exact(*len).nth(row) {
                Some(word) => serializer.serialize_bytes(word),
                None => Err(no_row()),
            },
            Kind::Typed(of, kind) => {
                Typed::new(of, &Value { kind, row, left }).serialize(serializer)
            }
            Kind::Texts(texts) => serializer.serialize_str(texts.get(row)),
            Kind::Bytes(bytes) => serializer.serialize_bytes(bytes.get(row)),
            Kind::List(cuts, cells) => {
                let mut items = serializer.serialize_seq(Some(cuts.range(row).len()))?;
                for row in cuts.range(row) {
                    items.serialize_element(&Cell { cells, row, left })?;
                }
                items.end()
            }
            Kind::Fixed(size, cells) => {
                let rows = row.saturating_mul(*size)..(row + 1).saturating_mul(*size);
                // In a tuple, each element that can be null becomes a column of its own.
                if cells.is_optional && *size > MOST_COLUMNS {
                    return serializer.collect_seq(rows.map(|row| Cell { cells, row, left }));
                }
                let mut items = serializer.serialize_tuple(*size)?;
                for row in rows {
                    items.serialize_element(&Cell { cells, row, left })?;
                }
                items.end()
            }
            Kind::Tensors(tensors) => {
                tensors.row(row).map_err(S::Error::custom)?.serialize(serializer)
            }
            Kind::Structs(fields) => Record { fields, row, left }.serialize(serializer),
            Kind::Tuples(fields) => {
                let mut items = serializer.serialize_tuple(fields.len())?;
                for Field { cells, .. } in fields {
                    items.serialize_element(&Cell { cells, row, left })?;
                }
                items.end()
            }
            Kind::Enum(codes, variants, contents) => {
                let code = codes.get(row).copied().unwrap_or(usize::MAX);
                let (Some(&(name, content)), Ok(index)) = (variants.get(code), u32::try_from(code))
                else {
                    return Err(S::Error::custom("a row of an enum has no variant"));
                };
                match content.and_then(|content| contents.get(content)) {
                    None => serializer.serialize_unit_variant("Enum", index, name),
                    Some(Field { cells, .. }) => {
                        let content = Cell { cells, row, left };
                        serializer.serialize_newtype_variant("Enum", index, name, &content)
                    }
                }
            }
            Kind::Map(cuts, keys, values) => {
                let mut entries = serializer.serialize_map(Some(cuts.range(row).len()))?;
                for row in cuts.range(row) {
                    let (key, value) =
                        (Cell { cells: keys, row, left }, Cell { cells: values, row, left });
                    entries.serialize_entry(&key, &value)?;
                }
                entries.end()
            }
            Kind::Dictionary(keys, values) => match keys.get(row) {
                Some(&row) => Value { kind: values, row, left }.serialize(serializer),
                None => Err(no_row()),
            },
        }
    }
}

fn no_row<E: serde::ser::Error>() -> E {
    E::custom("the column has fewer rows than its table")
}
