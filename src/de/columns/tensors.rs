//! Rows that are tensors, or that are read as tensors, and tensors that are read as sequences.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::rc::Rc;

use half::bf16;
use serde::de::{self, Deserialize, SeqAccess, Unexpected, Visitor};

use super::access::{RowElements, RowEntries};
use crate::budget::{Budget, Room};
use crate::de::visit::show;
use crate::dtype::DType;
use crate::elements::Elements;
use crate::error::{Error, Result};
use crate::handoff::{self, Held, Slot};
use crate::io::source::SourceBytes;
use crate::meta::{Order, TensorMeta};
use crate::number::Number;
use crate::serde_model::{Narrowing, invalid};
use crate::shape::Shape;
use crate::wire::columns::{
    Bitmap, Column, ColumnData, ColumnKind, ColumnNumbers, Field, NumberType, Offsets, RowLengths,
    Tensors, TextData,
};
use crate::wire::number::Numeric;

/// A tensor for a visitor.
pub struct Presented<'c, 'de> {
    meta: TensorMeta,
    /// Whether the document states its dtype.
    stated: bool,
    held: Held,
    /// There are none if the elements are held.
    bytes: SourceBytes<'de, 'c>,
}

impl<'c, 'de> Presented<'c, 'de> {
    /// A row of tensors.
    pub fn row(tensors: &'c Tensors<'de>, row: usize) -> Self {
        let (dtype, shape) = (tensors.dtype.clone(), tensors.shape.clone());
        let meta = TensorMeta { dtype, shape, order: Order::C };
        let held = tensors.shared_row(row).map_or(Held::Nothing, Held::Shared);
        Self { meta, stated: true, held, bytes: tensors.row(row) }
    }

    /// Floats of a column. They have the type that they have in a plain array too, and can be borrowed. The type of integers
    /// depends on the other rows.
    pub fn floats(numbers: &'c ColumnNumbers<'de>, rows: Range<usize>) -> Self {
        let (dtype, shape) = (numbers.kind.dtype(), Shape::from([rows.len()]));
        let meta = TensorMeta { dtype, shape, order: Order::C };
        Self { meta, stated: false, held: Held::Nothing, bytes: numbers.run(rows) }
    }

    /// A sequence of numbers that is not packed.
    pub fn plain(mut elements: RowElements<'_, 'de>, allowance: &Budget) -> Result<Self> {
        let numbers = PlainArray.visit_seq(&mut elements)?;
        elements.close()?;
        allowance.charge(numbers.elements_len())?;
        let (meta, elements) = numbers.tensor()?;
        let held = Held::Elements(Box::new(elements));
        Ok(Self { meta, stated: false, held, bytes: SourceBytes::Borrowed(&[]) })
    }

    /// Takes the memory that the tensor needs.
    pub fn charge(&self, allowance: &Budget) -> Result<()> {
        let copied = if self.bytes.is_borrowed() { 0 } else { self.bytes.as_slice().len() };
        allowance.charge(copied.saturating_add(self.meta.shape.allocated()) as u64)
    }

    /// Passes the tensor to this crate's own visitor.
    pub fn pass_on<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let Self { meta, stated, held, bytes } = self;
        match held {
            Held::Elements(_) => {
                handoff::offer(Slot::Incoming { meta, stated, held }, || visitor.visit_unit())
            }
            held => show(meta, stated, held, bytes, visitor),
        }
    }

    /// The tensor for any other visitor, which sees a map of dtype, shape, order and data.
    pub fn entries(self, at: u64, allowance: &'c Budget) -> Result<RowEntries<'c, 'de>> {
        RowEntries::of_tensor(&self.meta, self.bytes, at, allowance)
    }
}

/// A tensor of one dimension as a column of numbers or bools, and its rows.
pub fn sequence<'de>(
    tensors: &Tensors<'de>,
    row: usize,
    at: u64,
    expected: &dyn de::Expected,
) -> Result<(Column<'de>, Range<usize>)> {
    check_rank(tensors.shape.len(), expected)?;
    let bytes = ColumnData::from(tensors.row(row));
    numbers(&tensors.dtype, Narrowing::Exact, bytes, at)
}

/// Checks that a tensor with so many dimensions can be read as a sequence.
pub fn check_rank(rank: usize, expected: &dyn de::Expected) -> Result<()> {
    if rank == 1 {
        return Ok(());
    }
    let found = format!("a tensor of {rank} dimensions");
    Err(invalid(Unexpected::Other(&found), expected))
}

/// The elements of a typed array as a column, and its rows.
fn numbers<'de>(
    dtype: &DType,
    narrowing: Narrowing,
    bytes: ColumnData<'de>,
    at: u64,
) -> Result<(Column<'de>, Range<usize>)> {
    let (kind, bytes) = match dtype {
        DType::Bool => {
            let rows = 0..bytes.len();
            let bits = Bitmap(ColumnData::Owned(Rc::new(bits_of(bytes.as_slice())?)));
            return Ok((Column::new(at, ColumnKind::Bools(bits)), rows));
        }
        // Each is a number of type f32.
        DType::BF16 => {
            let words =
                bytes.as_slice().as_chunks().0.iter().map(|word| bf16::from_le_bytes(*word));
            let bytes = words.flat_map(|number| number.to_f32().to_le_bytes()).collect();
            (NumberType::F32, ColumnData::Owned(Rc::new(bytes)))
        }
        dtype => match NumberType::of(dtype) {
            Some(kind) => (kind, bytes),
            None => {
                let what = format!("expected numbers, found elements of {dtype}; use a Tensor");
                return Err(Error::mismatch(what));
            }
        },
    };
    let rows = 0..bytes.len() / kind.size();
    let mut numbers = ColumnNumbers::new(kind, bytes);
    numbers.exact = narrowing == Narrowing::Exact;
    Ok((Column::new(at, ColumnKind::Numbers(numbers)), rows))
}

fn bits_of(bools: &[u8]) -> Result<Vec<u8>> {
    let mut bits = vec![0; bools.len().div_ceil(8)];
    for (row, &byte) in bools.iter().enumerate() {
        if byte > 1 {
            let what = format!("a bool is stored as the byte {byte}; it must be 0 or 1");
            return Err(Error::data(what).in_index(row as u64));
        }
        if let Some(bits) = bits.get_mut(row / 8) {
            *bits |= byte << (row % 8);
        }
    }
    Ok(bits)
}

/// The memory for each dimension of a shape, while a `Vec` of them grows. The visitor can read numbers as values of any
/// size. Most are not larger than a `Value`.
const DIM: usize = 3 * 32;

impl<'c, 'de> RowEntries<'c, 'de> {
    /// A tensor as other formats write it: a struct of four fields.
    pub fn of_tensor(
        meta: &TensorMeta,
        payload: SourceBytes<'de, '_>,
        at: u64,
        allowance: &'c Budget,
    ) -> Result<Self> {
        let text = |text: &str| {
            let cuts = Offsets::new(RowLengths::Same(text.len()));
            ColumnKind::Texts(cuts, TextData::Owned(text.to_owned()))
        };
        let dims = meta.shape.iter().flat_map(|&dim| (dim as u64).to_le_bytes()).collect();
        let dims = ColumnNumbers::new(NumberType::U64, ColumnData::Owned(Rc::new(dims)));
        let shape = (
            Offsets::new(RowLengths::Same(meta.shape.len())),
            Column::new(at, ColumnKind::Numbers(dims)),
        );
        if let SourceBytes::Copied(bytes) = payload {
            allowance.charge(bytes.len() as u64)?;
        }
        let payload = ColumnData::from(payload);
        let fields = [
            ("dtype", text(meta.dtype.name())),
            ("shape", ColumnKind::Lists(Box::new(shape))),
            ("order", text(meta.order.name())),
            ("data", ColumnKind::Bytes(Offsets::new(RowLengths::Same(payload.len())), payload)),
        ];
        let keys = fields.iter().map(|(name, _)| name.len()).sum::<usize>();
        let dims = meta.shape.len().saturating_mul(DIM);
        allowance.charge(keys.saturating_add(dims) as u64)?;
        let field = |(name, kind)| Field {
            name: Cow::Borrowed(name),
            present: None,
            column: Column::new(at, kind),
        };
        Ok(Self::own(fields.map(field).into(), at, allowance))
    }
}

impl<'c, 'de> RowElements<'c, 'de> {
    /// The little-endian numbers in `bytes`, which are at offset `at`.
    pub fn of_numbers(
        dtype: &DType,
        narrowing: Narrowing,
        bytes: SourceBytes<'de, '_>,
        at: u64,
        allowance: &'c Budget,
    ) -> Result<Self> {
        let (column, rows) = numbers(dtype, narrowing, ColumnData::from(bytes), at)?;
        Ok(Self::own(column, rows, allowance, Room::NONE))
    }
}

/// Reads a sequence of numbers that is not packed, as the elements of a tensor.
pub struct PlainArray;

impl<'de> Visitor<'de> for PlainArray {
    type Value = PlainNumbers;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a tensor")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<PlainNumbers, A::Error> {
        let mut found = PlainNumbers { numbers: Vec::new(), are_single: true };
        while let Some(PlainNumber { number, is_single }) = seq.next_element()? {
            found.numbers.push(number);
            found.are_single &= is_single;
        }
        Ok(found)
    }
}

/// The elements of a [`PlainArray`].
pub struct PlainNumbers {
    numbers: Vec<Number>,
    are_single: bool,
}

impl PlainNumbers {
    /// The most bytes that the elements of the tensor take.
    pub fn elements_len(&self) -> u64 {
        (self.numbers.len() as u64).saturating_mul(Elements::MAX_NUMBER)
    }

    /// The tensor that they are.
    fn tensor(&self) -> Result<(TensorMeta, Elements)> {
        let elements = Elements::of_plain_array(&self.numbers, self.are_single)?;
        let shape = Shape::from([elements.len()]);
        Ok((TensorMeta { dtype: elements.dtype(), shape, order: Order::C }, elements))
    }

    /// Passes the numbers to this crate's own visitor of tensors.
    pub fn pass_on<'de, V: Visitor<'de>>(&self, visitor: V) -> Result<V::Value> {
        let (meta, elements) = self.tensor()?;
        let held = Held::Elements(Box::new(elements));
        handoff::offer(Slot::Incoming { meta, stated: false, held }, || visitor.visit_unit())
    }
}

struct PlainNumber {
    number: Number,
    is_single: bool,
}

impl<'de> Deserialize<'de> for PlainNumber {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PlainNumberVisitor)
    }
}

struct PlainNumberVisitor;

impl Visitor<'_> for PlainNumberVisitor {
    type Value = PlainNumber;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of at most 64 bits")
    }

    fn visit_bool<E>(self, value: bool) -> Result<PlainNumber, E> {
        Ok(PlainNumber { number: Number::Bool(value), is_single: false })
    }

    fn visit_u64<E>(self, value: u64) -> Result<PlainNumber, E> {
        Ok(PlainNumber { number: Number::Unsigned(value), is_single: false })
    }

    fn visit_i64<E>(self, value: i64) -> Result<PlainNumber, E> {
        let number = u64::try_from(value).map_or(Number::Signed(value), Number::Unsigned);
        Ok(PlainNumber { number, is_single: false })
    }

    fn visit_f32<E>(self, value: f32) -> Result<PlainNumber, E> {
        let number = Numeric::Single(value).as_double();
        Ok(PlainNumber { number: Number::Float(number.unwrap_or_default()), is_single: true })
    }

    fn visit_f64<E>(self, value: f64) -> Result<PlainNumber, E> {
        Ok(PlainNumber { number: Number::Float(value), is_single: false })
    }
}
