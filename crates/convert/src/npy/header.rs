//! The header of an npy file: magic, version, and a dict with dtype, order and shape.

use std::fmt::Write as _;

use tenarc::de::Limits;
use tenarc::error::Category;
use tenarc::tensor::{Order, Shape, TensorMeta};
use tenarc::{DType, Error, Result};

use super::input::{Bytes, Input};
use crate::numpy::ByteOrder;
use crate::numpy::columns::{self, Column, Decode, Elements};
use crate::numpy::literal::{self, Literal};
use crate::shown::shown;

const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// The length of the longest header that is read. Version 1 cannot have longer ones, and in other versions only records
/// of more than a thousand fields need them.
const MAX_LEN: u32 = 0xffff;

/// The elements start at a multiple of this offset.
const ALIGNMENT: usize = 64;

/// The number of digits that numpy leaves room for in the dimension that grows if elements are appended.
const GROWTH: usize = 21;

/// The most dimensions that numpy has.
const MAX_RANK: usize = 64;

/// The loss of an array of records in which nothing is.
pub const WITHOUT_FIELDS: &str = "records without fields: their number is left out";

/// The contents of a header.
#[derive(Clone, Debug)]
pub struct Array {
    /// The fields of the records. An array without records is a single column.
    pub columns: Vec<Column>,
    /// The number of bytes of a record, or of an element if there are no records.
    pub record_len: usize,
    pub shape: Shape,
    pub order: Order,
    /// The number of bytes of all elements.
    pub byte_len: usize,
}

impl Array {
    /// Returns the only column of an array that is a tensor, with the description of the tensor and its byte order.
    ///
    /// # Errors
    /// If the array is not a tensor.
    pub fn tensor(&self) -> Result<(&Column, TensorMeta, ByteOrder)> {
        let column = match &self.columns[..] {
            [column] if column.path.is_empty() => column,
            _ => {
                return Err(Error::mismatch("a structured array is not a tensor; read its fields"));
            }
        };
        match &column.elements {
            Elements::Tensor(dtype, order) => {
                let meta = TensorMeta::new(dtype.clone(), self.shape.clone(), self.order);
                Ok((column, meta, *order))
            }
            Elements::Times(times, _) => {
                let descr = times.descr();
                Err(Error::mismatch(format!(
                    "the array has times or durations (`{descr}`), not numbers: read it as a value"
                )))
            }
            Elements::Texts(_) => Err(Error::mismatch("a string array is not a tensor")),
            Elements::Void(len, _) => Err(columns::unknown(*len)),
            Elements::Refused(why) => Err(Error::unsupported(why.clone())),
        }
    }

    /// Returns whether there are records, but nothing in them.
    pub fn is_without_fields(&self) -> bool {
        self.columns.is_empty() && self.shape.element_count() != Some(0)
    }

    /// Reads raw elements as elements of the first of these dtypes that has as many bytes.
    pub fn resolve(&mut self, dtypes: &[DType]) {
        self.columns.iter_mut().for_each(|column| column.elements.resolve(dtypes));
    }

    /// Reads a header. The elements follow it in the input.
    pub fn read<B: Bytes>(input: &mut Input<B>, limits: Limits) -> Result<Self> {
        const WHAT: &str = "an npy header";
        let mut start = [0; 8];
        input.fill(&mut start, WHAT)?;
        let [magic @ .., major, minor] = start;
        if magic != *MAGIC {
            let found = shown(&magic);
            return Err(Error::syntax(format!("expected npy data, found {found}")).at(0));
        }
        let mut len = [0; 4];
        let width = match (major, minor) {
            (1, 0) => 2,
            (2 | 3, 0) => 4,
            _ => {
                let what = format!("expected npy version 1.0, 2.0 or 3.0, found {major}.{minor}");
                return Err(Error::new(Category::Version, what).at(6));
            }
        };
        input.fill(len.get_mut(..width).unwrap_or_default(), WHAT)?;
        let len = u32::from_le_bytes(len);
        if len > MAX_LEN {
            let what = format!("the npy header has {len} bytes, expected at most {MAX_LEN}");
            return Err(Error::limit(what).at(8));
        }
        let at = input.position();
        let mut text = vec![0; usize::try_from(len).unwrap_or(0)];
        input.fill(&mut text, WHAT)?;
        if major == 3 && std::str::from_utf8(&text).is_err() {
            return Err(Error::syntax(
                "expected UTF-8 in an npy header of version 3, found other bytes",
            )
            .at(at));
        }
        // Before version 3, headers are Latin-1.
        let decode = if major == 3 { utf_8 } else { latin_1 };
        Self::parse(&text, at, limits, decode).map_err(|error| error.at(at))
    }

    fn parse(text: &[u8], at: u64, limits: Limits, decode: Decode) -> Result<Self> {
        let entries = match literal::parse(text, at)? {
            Literal::Dict(entries) => entries,
            other => {
                let found = other.kind();
                return Err(Error::syntax(format!("expected a dict as npy header, found {found}")));
            }
        };
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        for (key, value) in entries {
            let slot = match &key {
                Literal::Text(b"descr") => &mut descr,
                Literal::Text(b"fortran_order") => &mut fortran,
                Literal::Text(b"shape") => &mut shape,
                Literal::Text(other) => {
                    return Err(Error::syntax(format!(
                        "the npy header has the unknown key {}",
                        shown(other)
                    )));
                }
                other => {
                    let found = other.kind();
                    return Err(Error::syntax(format!("expected a string as key, found {found}")));
                }
            };
            if slot.replace(value).is_some() {
                return Err(Error::syntax("a key occurs twice in the npy header"));
            }
        }
        let missing = |key| Error::syntax(format!("the npy header has no `{key}`"));
        let (columns, record_len) =
            columns::parse(&descr.ok_or_else(|| missing("descr"))?, decode)?;
        let order = match fortran.ok_or_else(|| missing("fortran_order"))? {
            Literal::Bool(true) => Order::F,
            Literal::Bool(false) => Order::C,
            other => {
                let found = other.kind();
                return Err(Error::syntax(format!(
                    "expected a bool for `fortran_order`, found {found}"
                )));
            }
        };
        let shape = Shape::from(dims(&shape.ok_or_else(|| missing("shape"))?, limits)?);
        let byte_len = shape
            .element_count()
            .and_then(|count| count.checked_mul(record_len))
            .filter(|&len| isize::try_from(len).is_ok())
            .ok_or_else(|| {
                Error::limit(format!("an array of shape {shape:?} does not fit in memory"))
            })?;
        Ok(Self { columns, record_len, shape, order, byte_len })
    }
}

fn utf_8(name: &[u8]) -> String {
    // The whole header was checked.
    String::from_utf8_lossy(name).into_owned()
}

fn latin_1(name: &[u8]) -> String {
    name.iter().copied().map(char::from).collect()
}

fn dims(shape: &Literal<'_>, limits: Limits) -> Result<Vec<usize>> {
    let Literal::Tuple(items) = shape else {
        let found = shape.kind();
        return Err(Error::syntax(format!("expected a tuple for `shape`, found {found}")));
    };
    if items.len() > limits.max_rank() {
        let (found, max) = (items.len(), limits.max_rank());
        return Err(Error::limit(format!(
            "the array has {found} dimensions, expected at most {max}"
        )));
    }
    let dim = |item: &Literal<'_>| match item {
        Literal::Int { negative: true, .. } => Err(Error::syntax("a dimension is negative")),
        Literal::Int { value, .. } => value
            .and_then(|value| usize::try_from(value).ok())
            .ok_or_else(|| Error::limit("a dimension does not fit in memory")),
        other => {
            let found = other.kind();
            Err(Error::syntax(format!("expected integers in `shape`, found {found}")))
        }
    };
    items.iter().map(dim).collect()
}

/// Returns the header of a tensor as numpy writes it, and the number of bytes of the tensor. `descr` is the type string of its
/// elements. The header has version 1,
/// and is padded so that the elements start at a multiple of 64 bytes.
///
/// # Errors
/// If the tensor has too many dimensions or does not fit in memory.
pub fn encode(descr: &str, meta: &TensorMeta) -> Result<(Vec<u8>, usize)> {
    let shape = &meta.shape;
    let byte_len = meta.byte_len().ok_or_else(|| {
        Error::data(format!("a tensor of shape {shape:?} does not fit in memory"))
    })?;
    Ok((encode_as(descr, shape, meta.order)?, byte_len))
}

/// Returns the header of an array as numpy writes it. `descr` is the type string of its elements.
///
/// # Errors
/// If the array has more dimensions than numpy has.
pub fn encode_as(descr: &str, shape: &[usize], order: Order) -> Result<Vec<u8>> {
    if shape.len() > MAX_RANK {
        let found = shape.len();
        return Err(Error::unsupported(format!(
            "the array has {found} dimensions, numpy allows at most {MAX_RANK}"
        )));
    }
    let fortran = order == Order::F && shape.len() > 1;
    let order = if fortran { "True" } else { "False" };
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': (");
    for (at, dim) in shape.iter().enumerate() {
        let comma = if at == 0 { "" } else { ", " };
        let _ = write!(text, "{comma}{dim}");
    }
    text.push_str(if shape.len() == 1 { ",), }" } else { "), }" });
    if let Some(grows) = if fortran { shape.last() } else { shape.first() } {
        let digits = grows.to_string().len();
        text.extend(std::iter::repeat_n(' ', GROWTH.saturating_sub(digits)));
    }
    // The padding counts magic, version, length and the line feed at the end.
    let taken = MAGIC.len() + 4 + text.len() + 1;
    text.extend(std::iter::repeat_n(' ', ALIGNMENT - taken % ALIGNMENT));
    text.push('\n');
    // This cannot fail: 64 dimensions of 20 digits are much shorter.
    let len = u16::try_from(text.len())
        .map_err(|_| Error::limit("the npy header has more than 65,535 bytes"))?;
    let mut bytes = MAGIC.to_vec();
    bytes.extend([1, 0]);
    bytes.extend(len.to_le_bytes());
    bytes.extend(text.into_bytes());
    Ok(bytes)
}
