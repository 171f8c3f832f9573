//! Arrays of Arrow in a form that can be read row by row.

use std::collections::HashMap;
use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, BooleanArray, FixedSizeBinaryArray,
    LargeBinaryArray, LargeStringArray, StringArray, StringViewArray,
};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, NullBuffer, OffsetBuffer, ScalarBuffer, i256};
use arrow_schema::DataType;
use half::f16;
use tenarc::tensor::{DynView, Order};
use tenarc::types::TypeName;
use tenarc::{DType, Error, Result, Tensor};

use crate::category::{around, unordered};
use crate::names::static_name;
use crate::plan::{Is, Plan, Variants};

/// The most digits of decimals that are stored as integers of 64 bits.
const SHORT_DECIMAL: u8 = 18;

/// A column, with its nulls.
pub struct Cells {
    pub kind: Kind,
    pub nulls: Option<NullBuffer>,
    pub is_optional: bool,
}

/// The values of a column.
pub enum Kind {
    Null,
    Bools(BooleanBuffer),
    U8(ScalarBuffer<u8>),
    U16(ScalarBuffer<u16>),
    U32(ScalarBuffer<u32>),
    U64(ScalarBuffer<u64>),
    I8(ScalarBuffer<i8>),
    I16(ScalarBuffer<i16>),
    I32(ScalarBuffer<i32>),
    I64(ScalarBuffer<i64>),
    F16(ScalarBuffer<f16>),
    F32(ScalarBuffer<f32>),
    F64(ScalarBuffer<f64>),
    /// Byte strings of this length.
    Words(usize, Vec<u8>),
    Typed(TypeName, Box<Kind>),
    Texts(Texts),
    Bytes(Bytes),
    List(Cuts, Box<Cells>),
    Fixed(usize, Box<Cells>),
    Tensors(Box<Tensors>),
    Structs(Vec<Field>),
    Tuples(Vec<Field>),
    /// The variant of each row, the names of the variants with the number of their contents, and the contents.
    Enum(Vec<usize>, Vec<(&'static str, Option<usize>)>, Vec<Field>),
    Map(Cuts, Box<Cells>, Box<Cells>),
    /// The index of the value of each row, and the values.
    Dictionary(Vec<usize>, Box<Kind>),
}

pub enum Texts {
    Small(StringArray),
    Large(LargeStringArray),
    View(StringViewArray),
}

impl Texts {
    pub fn get(&self, row: usize) -> &str {
        match self {
            Self::Small(texts) => texts.value(row),
            Self::Large(texts) => texts.value(row),
            Self::View(texts) => texts.value(row),
        }
    }
}

pub enum Bytes {
    Small(BinaryArray),
    Large(LargeBinaryArray),
    View(BinaryViewArray),
    Fixed(FixedSizeBinaryArray),
}

impl Bytes {
    pub fn get(&self, row: usize) -> &[u8] {
        match self {
            Self::Small(bytes) => bytes.value(row),
            Self::Large(bytes) => bytes.value(row),
            Self::View(bytes) => bytes.value(row),
            Self::Fixed(bytes) => bytes.value(row),
        }
    }
}

/// The offsets of lists in the array of their elements.
pub enum Cuts {
    Small(OffsetBuffer<i32>),
    Large(OffsetBuffer<i64>),
}

impl Cuts {
    pub fn range(&self, row: usize) -> Range<usize> {
        fn at<T: ArrowNativeType>(offsets: &[T], row: usize) -> usize {
            offsets.get(row).map_or(0, |offset| offset.as_usize())
        }
        match self {
            Self::Small(offsets) => at(offsets, row)..at(offsets, row + 1),
            Self::Large(offsets) => at(offsets, row)..at(offsets, row + 1),
        }
    }
}

/// Tensors of one shape.
pub struct Tensors {
    dtype: DType,
    shape: Vec<usize>,
    bytes: Vec<u8>,
    /// The number of bytes of each tensor.
    len: usize,
}

impl Tensors {
    /// Bytes of each.
    pub fn row_len(&self) -> usize {
        self.len
    }

    pub fn row(&self, row: usize) -> Result<Tensor<DynView<'_>>> {
        let start = row.saturating_mul(self.len);
        let bytes = self.bytes.get(start..start.saturating_add(self.len)).unwrap_or_default();
        DynView::new(self.dtype.clone(), &self.shape, Order::C, bytes).map(Tensor)
    }
}

/// A field of a struct.
pub struct Field {
    pub name: &'static str,
    pub cells: Cells,
    /// Whether nulls are fields that are missing.
    pub is_missing: bool,
}

impl Field {
    /// Returns the columns that have a plan.
    pub fn all(plans: &[Plan], columns: &[ArrayRef]) -> Result<Vec<Self>> {
        let field = |plan: &Plan| {
            let array = columns.get(plan.number).ok_or_else(|| other_type(plan.name))?;
            let cells = Cells::of(plan, array)?;
            Ok(Self { name: plan.name, cells, is_missing: plan.is_missing })
        };
        plans.iter().map(field).collect()
    }
}

impl Cells {
    fn of(plan: &Plan, array: &ArrayRef) -> Result<Self> {
        let kind = Kind::of(plan, array)?;
        let nulls = match &plan.is {
            Is::Category(..) | Is::Dictionary(_) => array.logical_nulls(),
            _ => array.nulls().cloned(),
        };
        Ok(Self { kind, nulls, is_optional: plan.has_nulls })
    }

    fn boxed(plan: &Plan, array: &ArrayRef) -> Result<Box<Self>> {
        Self::of(plan, array).map(Box::new)
    }
}

impl Kind {
    fn of(plan: &Plan, array: &ArrayRef) -> Result<Self> {
        let other = || other_type(plan.name);
        Ok(match &plan.is {
            Is::Plain => Self::plain(array)?,
            Is::Typed(of) => Self::Typed(of.clone(), Box::new(Self::plain(array)?)),
            Is::List(items) => match (array.as_list_opt::<i32>(), array.as_list_opt::<i64>()) {
                (Some(list), _) => Self::List(
                    Cuts::Small(list.offsets().clone()),
                    Cells::boxed(items, list.values())?,
                ),
                (_, Some(list)) => Self::List(
                    Cuts::Large(list.offsets().clone()),
                    Cells::boxed(items, list.values())?,
                ),
                _ => return Err(other()),
            },
            Is::Fixed(items) | Is::Tensor(_, _, items) => {
                let list = array.as_fixed_size_list_opt().ok_or_else(other)?;
                let size = usize::try_from(list.value_length()).map_err(|_| other())?;
                let cells = Cells::boxed(items, list.values())?;
                match &plan.is {
                    Is::Tensor(dtype, shape, _) if !cells.is_optional => {
                        let bytes = elements(&cells.kind).ok_or_else(other)?;
                        let len = size.saturating_mul(dtype.word());
                        let (dtype, shape) = (dtype.clone(), shape.clone());
                        Self::Tensors(Box::new(Tensors { dtype, shape, bytes, len }))
                    }
                    _ => Self::Fixed(size, cells),
                }
            }
            Is::Struct(plans) => {
                let array = array.as_struct_opt().ok_or_else(other)?;
                Self::Structs(Field::all(plans, array.columns())?)
            }
            Is::Tuple(plans) => {
                let array = array.as_struct_opt().ok_or_else(other)?;
                Self::Tuples(Field::all(plans, array.columns())?)
            }
            Is::Enum(names, plans) => {
                let array = array.as_struct_opt().ok_or_else(other)?;
                let column = array.columns().first().ok_or_else(other)?;
                let variants = Variants::of(column).ok_or_else(other)?;
                let numbers: HashMap<_, _> = names.iter().map(String::as_str).zip(0..).collect();
                let number = |row| {
                    let number = variants.name(row).and_then(|name| numbers.get(name).copied());
                    // The cell of a row that is null is never read.
                    number.unwrap_or(usize::MAX)
                };
                let codes = (0..array.len()).map(number).collect();
                let name = |name: &String| {
                    let content = plans.iter().position(|plan| plan.name == name);
                    Ok((static_name(name)?, content))
                };
                let names = names.iter().map(name).collect::<Result<_>>()?;
                Self::Enum(codes, names, Field::all(plans, array.columns())?)
            }
            Is::Map(plans) => {
                let map = array.as_map_opt().ok_or_else(other)?;
                let cuts = Cuts::Small(map.offsets().clone());
                let keys = Cells::boxed(&plans.0, map.keys())?;
                Self::Map(cuts, keys, Cells::boxed(&plans.1, map.values())?)
            }
            Is::Category(index, order, values) => {
                let texts = Self::dictionary(values, array).ok_or_else(other)??;
                // What is lost was noted when the dictionaries were seen.
                let of = around(index, order.names()).or_else(|_| around(index, &[]))?;
                Self::Typed(of, Box::new(Self::Typed(unordered()?, Box::new(texts))))
            }
            Is::Dictionary(values) => Self::dictionary(values, array).ok_or_else(other)??,
        })
    }

    /// The rows of a dictionary. `None` if the array is none.
    fn dictionary(values: &Plan, array: &ArrayRef) -> Option<Result<Self>> {
        let dictionary = array.as_any_dictionary_opt()?;
        // If there are no values, all keys are null, and `normalized_keys` would panic.
        let keys = match dictionary.values().len() {
            0 => vec![0; array.len()],
            _ => dictionary.normalized_keys(),
        };
        let values = Self::of(values, dictionary.values());
        Some(values.map(|values| Self::Dictionary(keys, Box::new(values))))
    }

    fn plain(array: &ArrayRef) -> Result<Self> {
        let other = || other_type("");
        macro_rules! cloned {
            ($array:expr) => {
                $array.ok_or_else(other)?.clone()
            };
        }
        Ok(match array.data_type() {
            DataType::Null => Self::Null,
            DataType::Boolean => {
                let array: BooleanArray = cloned!(array.as_boolean_opt());
                Self::Bools(array.values().clone())
            }
            DataType::UInt8 => Self::U8(numbers(array)?),
            DataType::UInt16 => Self::U16(numbers(array)?),
            DataType::UInt32 => Self::U32(numbers(array)?),
            DataType::UInt64 => Self::U64(numbers(array)?),
            DataType::Int8 => Self::I8(numbers(array)?),
            DataType::Int16 => Self::I16(numbers(array)?),
            DataType::Int32 | DataType::Date32 | DataType::Time32(_) => Self::I32(numbers(array)?),
            DataType::Int64
            | DataType::Date64
            | DataType::Time64(_)
            | DataType::Timestamp(..)
            | DataType::Duration(_) => Self::I64(numbers(array)?),
            DataType::Float16 => Self::F16(numbers(array)?),
            DataType::Float32 => Self::F32(numbers(array)?),
            DataType::Float64 => Self::F64(numbers(array)?),
            DataType::Decimal32(..) => {
                let numbers =
                    numbers::<i32>(array)?.iter().map(|number| i64::from(*number)).collect();
                Self::I64(numbers)
            }
            DataType::Decimal64(..) => Self::I64(numbers(array)?),
            DataType::Decimal128(precision, _) if *precision <= SHORT_DECIMAL => {
                let short = |(row, number): (usize, &i128)| match i64::try_from(*number) {
                    Ok(number) => Ok(number),
                    // Nothing is said about what is in the place of a null.
                    Err(_) if array.is_null(row) => Ok(0),
                    Err(_) => Err(Error::data("a decimal has more digits than its precision")),
                };
                let numbers = numbers::<i128>(array)?;
                Self::I64(numbers.iter().enumerate().map(short).collect::<Result<_>>()?)
            }
            DataType::Decimal128(..) => {
                let words = numbers::<i128>(array)?
                    .iter()
                    .flat_map(|number| number.to_be_bytes())
                    .collect();
                Self::Words(16, words)
            }
            DataType::Decimal256(..) => {
                let words = numbers::<i256>(array)?
                    .iter()
                    .flat_map(|number| number.to_be_bytes())
                    .collect();
                Self::Words(32, words)
            }
            DataType::Utf8 => Self::Texts(Texts::Small(cloned!(array.as_string_opt()))),
            DataType::LargeUtf8 => Self::Texts(Texts::Large(cloned!(array.as_string_opt()))),
            DataType::Utf8View => Self::Texts(Texts::View(cloned!(array.as_string_view_opt()))),
            DataType::Binary => Self::Bytes(Bytes::Small(cloned!(array.as_binary_opt()))),
            DataType::LargeBinary => Self::Bytes(Bytes::Large(cloned!(array.as_binary_opt()))),
            DataType::BinaryView => Self::Bytes(Bytes::View(cloned!(array.as_binary_view_opt()))),
            DataType::FixedSizeBinary(_) => {
                Self::Bytes(Bytes::Fixed(cloned!(array.as_fixed_size_binary_opt())))
            }
            _ => return Err(other()),
        })
    }
}

/// Returns the numbers of an array, whatever its logical type is.
fn numbers<T: ArrowNativeType>(array: &ArrayRef) -> Result<ScalarBuffer<T>> {
    let data = array.to_data();
    let buffer = data.buffers().first().ok_or_else(|| other_type(""))?;
    Ok(ScalarBuffer::new(buffer.clone(), data.offset(), data.len()))
}

/// Returns the elements of tensors as little-endian bytes.
fn elements(kind: &Kind) -> Option<Vec<u8>> {
    macro_rules! bytes {
        ($values:expr) => {
            $values.iter().flat_map(|value| value.to_le_bytes()).collect()
        };
    }
    Some(match kind {
        Kind::Bools(bits) => bits.iter().map(u8::from).collect(),
        Kind::U8(values) => values.to_vec(),
        Kind::U16(values) => bytes!(values),
        Kind::U32(values) => bytes!(values),
        Kind::U64(values) => bytes!(values),
        Kind::I8(values) => bytes!(values),
        Kind::I16(values) => bytes!(values),
        Kind::I32(values) => bytes!(values),
        Kind::I64(values) => bytes!(values),
        Kind::F16(values) => bytes!(values),
        Kind::F32(values) => bytes!(values),
        Kind::F64(values) => bytes!(values),
        _ => return None,
    })
}

#[cold]
fn other_type(name: &str) -> Error {
    Error::data("a column does not have the type that the schema states").in_field(name)
}
