//! Datatypes of HDF5 and the dtypes that correspond to them.

use std::collections::HashSet;

use hdf5_reader::io::Cursor;
use hdf5_reader::messages::datatype::{
    StringPadding, StringSize, VarLenKind, parse_datatype_description,
};
use hdf5_reader::{CompoundField, Datatype, EnumMember, ReferenceType};
use tenarc::{DType, Error, Result};

use super::budget::Budget;
use super::error::failed;
use crate::elements::is_typed;
use crate::place::Place;
use crate::support::{integer_of, swap_words};

/// What the elements of a dataset or an attribute are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    Numbers(Numbers),
    /// Texts, and the dimensions of an element, if the elements are arrays.
    Text(Text, Vec<usize>),
    /// Lists of any number of such numbers.
    List(Numbers),
    /// References to objects, each of this many bytes.
    Reference(u8),
    Struct(Vec<Field>),
    /// Elements that no dtype describes, and what they are.
    Other(String),
}

/// A field of a struct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    pub name: String,
    pub place: Place,
    pub kind: Kind,
}

/// Elements that are numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbers {
    pub dtype: DType,
    /// The dimensions of an element, if the elements are arrays.
    pub inner: Vec<usize>,
    pub is_big_endian: bool,
    /// The numbers to which the datatype gives names.
    pub names: Vec<(String, i128)>,
}

/// Elements that are texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text {
    /// Each text takes this number of bytes, which is not 0.
    Fixed(usize, StringPadding),
    /// An element says where the text is.
    Variable,
}

/// The bytes of a datatype before the properties of its class.
const HEAD: usize = 8;

impl Kind {
    /// Determines what the elements of a datatype are. `raw` are the bytes of the datatype in the file.
    pub fn of(datatype: &Datatype, raw: &[u8]) -> Self {
        if let Some(numbers) = Numbers::of(datatype, raw) {
            return Self::Numbers(numbers);
        }
        if let Datatype::Compound { size, fields } = datatype
            && let Some(fields) = fields_of(*size, fields, raw)
        {
            return Self::Struct(fields);
        }
        if let Some(text) = Text::of(datatype) {
            return Self::Text(text, Vec::new());
        }
        if let Datatype::Array { base, dims } = datatype
            && let Some(text) = Text::of(base)
            && let Some(inner) = dims.iter().map(|&dim| usize::try_from(dim).ok()).collect()
        {
            return Self::Text(text, inner);
        }
        Self::Other(match datatype {
            Datatype::String { .. } => "texts of no bytes".to_owned(),
            Datatype::VarLen { base, kind: VarLenKind::Sequence, .. } => {
                let base = raw.get(HEAD..).and_then(|raw| Numbers::of(base, raw));
                match base.filter(|base| base.inner.is_empty() && is_typed(&base.dtype)) {
                    Some(numbers) => return Self::List(numbers),
                    None => "lists of different lengths, of what is no number".to_owned(),
                }
            }
            Datatype::VarLen { .. } => "lists of different lengths".to_owned(),
            Datatype::Compound { .. } => {
                "structs whose fields have no own names and places".to_owned()
            }
            Datatype::Opaque { size, tag } => {
                let tag = tag.trim_end_matches('\0');
                let of = if tag.is_empty() { String::new() } else { format!(" ({tag:?})") };
                format!("raw elements of {size} bytes{of}")
            }
            &Datatype::Reference { ref_type: ReferenceType::Object, size: size @ 1..=8 } => {
                return Self::Reference(size);
            }
            Datatype::Reference { .. } => "references to parts of datasets".to_owned(),
            Datatype::FloatingPoint { size, .. } => {
                format!("floats of {size} bytes that have no dtype")
            }
            Datatype::FixedPoint { size, .. } | Datatype::Bitfield { size, .. } => {
                format!("integers that do not fill their {size} bytes, or have no dtype")
            }
            Datatype::Array { .. } => return Self::other_array(),
            Datatype::Enum { .. } => "enums of integers that have no dtype".to_owned(),
        })
    }

    /// Arrays of such elements, with these dimensions.
    fn in_array(self, dims: Vec<usize>) -> Self {
        match self {
            kind if dims.is_empty() => kind,
            Self::Numbers(numbers) => {
                let inner = [dims, numbers.inner].concat();
                Self::Numbers(Numbers { inner, ..numbers })
            }
            Self::Text(text, inner) => Self::Text(text, [dims, inner].concat()),
            _ => Self::other_array(),
        }
    }

    fn other_array() -> Self {
        Self::Other("arrays of what is neither numbers nor texts".to_owned())
    }
}

impl Numbers {
    /// Returns `None` if the elements are not numbers of a dtype.
    fn of(datatype: &Datatype, raw: &[u8]) -> Option<Self> {
        let plain = |dtype, order: &hdf5_reader::ByteOrder| Self {
            dtype,
            inner: Vec::new(),
            is_big_endian: *order == hdf5_reader::ByteOrder::BigEndian,
            names: Vec::new(),
        };
        match datatype {
            Datatype::FixedPoint { size, signed, byte_order } => {
                fills(*size, raw)?;
                Some(plain(integer(*size, *signed)?, byte_order))
            }
            Datatype::Bitfield { size, byte_order } => {
                fills(*size, raw)?;
                Some(plain(integer(*size, false)?, byte_order))
            }
            Datatype::FloatingPoint { size, byte_order } => {
                Some(plain(float(*size, raw)?, byte_order))
            }
            Datatype::Enum { base, members } => {
                let base = Self::of(base, raw.get(HEAD..)?)?;
                if is_bool(&base.dtype, members) {
                    return Some(Self { dtype: DType::Bool, ..base });
                }
                let member =
                    |member: &EnumMember| Some((member.name.clone(), base.integer(&member.value)?));
                let names = members.iter().map(member).collect::<Option<_>>()?;
                Some(Self { names, ..base })
            }
            Datatype::Array { base: of, dims } => {
                // The number of dimensions, then the dimensions. Before version 3, there are three unused bytes behind
                // the first, and an unused number for each dimension.
                let rank = usize::from(*raw.get(HEAD)?);
                let after = if version(raw)? < 3 { 4 + 8 * rank } else { 1 + 4 * rank };
                let base = raw.get(HEAD + after..)?;
                let numbers = Self::of(of, base)?;
                let base = Some(numbers).filter(|base| base.inner.is_empty())?;
                let dims = dims.iter().map(|&dim| usize::try_from(dim).ok());
                Some(Self { inner: dims.collect::<Option<_>>()?, ..base })
            }
            Datatype::Compound { size, fields } => complex(*size, fields, raw),
            _ => None,
        }
    }

    /// The value of one element, if it is an integer.
    fn integer(&self, bytes: &[u8]) -> Option<i128> {
        let mut bytes = bytes.to_vec();
        self.to_le(&mut bytes);
        let is_signed = matches!(self.dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64);
        integer_of(&bytes, is_signed)
    }

    /// Converts the bytes of elements to little-endian.
    pub fn to_le(&self, bytes: &mut [u8]) {
        if self.is_big_endian {
            swap_words(bytes, self.dtype.word());
        }
    }

    /// Reads a list of these numbers, to which an element refers. The bytes are little-endian.
    pub fn list(
        &self,
        element: &[u8],
        resolve: &Resolve<'_>,
        budget: &mut Budget,
    ) -> Result<Vec<u8>> {
        let size = self.dtype.byte_len(1).unwrap_or(1);
        let mut list = resolve(element, size).map_err(failed)?;
        budget.take(list.len())?;
        self.to_le(&mut list);
        Ok(list)
    }

    /// Makes an array of these elements. `outer` are its dimensions without those of the elements.
    pub fn array(self, outer: &[usize]) -> Result<Array> {
        let shape: Vec<_> = outer.iter().chain(&self.inner).copied().collect();
        let count = shape.iter().try_fold(1usize, |count, &dim| count.checked_mul(dim));
        match count.and_then(|count| self.dtype.byte_len(count)) {
            Some(len) if isize::try_from(len).is_ok() => Ok(Array { numbers: self, shape, len }),
            _ => Err(Error::limit(format!(
                "elements of {} in the shape {shape:?} do not fit in memory",
                self.dtype
            ))),
        }
    }
}

/// An array of numbers.
#[derive(Clone, Debug)]
pub struct Array {
    pub numbers: Numbers,
    /// All dimensions.
    pub shape: Vec<usize>,
    /// The number of bytes.
    pub len: usize,
}

fn integer(size: u8, signed: bool) -> Option<DType> {
    Some(match (size, signed) {
        (1, true) => DType::I8,
        (1, false) => DType::U8,
        (2, true) => DType::I16,
        (2, false) => DType::U16,
        (4, true) => DType::I32,
        (4, false) => DType::U32,
        (8, true) => DType::I64,
        (8, false) => DType::U64,
        _ => return None,
    })
}

/// Checks that integers use all bits of their bytes.
fn fills(size: u8, raw: &[u8]) -> Option<()> {
    // The offset of the first bit and the number of bits.
    let [offset, _, precision, more] = *raw.get(HEAD..)?.first_chunk()?;
    let precision = u16::from_le_bytes([precision, more]);
    (offset == 0 && precision == u16::from(size) * 8).then_some(())
}

/// The dtype of a float by the places of its sign, its exponent and its mantissa.
fn float(size: u8, raw: &[u8]) -> Option<DType> {
    let [_, flags, sign, ..] = *raw.first_chunk::<HEAD>()?;
    // The first bit of the mantissa is not stored, and is 1. The other bit stands for the byte order of a VAX.
    let is_normalized = flags >> 4 & 3 == 2 && flags & 0x40 == 0;
    let properties = raw.get(HEAD..)?;
    fills(size, raw)?;
    let [exponent, exponent_bits, mantissa, mantissa_bits] = *properties.get(4..)?.first_chunk()?;
    let bias = u32::from_le_bytes(*properties.get(8..)?.first_chunk()?);
    if !is_normalized || mantissa != 0 || sign.checked_add(1)? != size.checked_mul(8)? {
        return None;
    }
    Some(match (size, exponent, exponent_bits, mantissa_bits, bias) {
        (2, 10, 5, 10, 15) => DType::F16,
        (2, 7, 8, 7, 127) => DType::BF16,
        (4, 23, 8, 23, 127) => DType::F32,
        (8, 52, 11, 52, 1023) => DType::F64,
        (16, 112, 15, 112, 16383) => DType::F128,
        _ => return None,
    })
}

/// Returns whether an enum is the one that h5py writes for bools.
fn is_bool(base: &DType, members: &[EnumMember]) -> bool {
    let is = |name: &str, value: u8| {
        members.iter().any(|member| member.name == name && member.value == [value])
    };
    members.len() == 2 && matches!(base, DType::I8 | DType::U8) && is("FALSE", 0) && is("TRUE", 1)
}

/// The version of the encoding of a datatype.
fn version(raw: &[u8]) -> Option<u8> {
    Some(raw.first()? >> 4)
}

/// Complex numbers are structs of two floats. h5py calls them `r` and `i`.
fn complex(size: u32, fields: &[CompoundField], raw: &[u8]) -> Option<Numbers> {
    let [re, im] = fields else { return None };
    let names = (&*re.name, &*im.name);
    if !matches!(names, ("r", "i") | ("real", "imag") | ("re", "im")) || re.datatype != im.datatype
    {
        return None;
    }
    let Datatype::FloatingPoint { size: part, .. } = re.datatype else { return None };
    let part = u32::from(part);
    if (re.byte_offset, im.byte_offset, size) != (0, part, 2 * part) {
        return None;
    }
    let mut numbers = None;
    for (dims, raw) in raw_fields(fields, raw)? {
        let found = Numbers::of(&re.datatype, raw)?;
        if !dims.is_empty() || numbers.get_or_insert_with(|| found.clone()) != &found {
            return None;
        }
    }
    let numbers = numbers?;
    let dtype = if numbers.dtype == DType::F32 { DType::C64 } else { DType::C128 };
    Some(Numbers { dtype, ..numbers })
}

/// The fields of a struct of `size` bytes. `None` if it has none, some lie outside of it, or two have the same name.
fn fields_of(size: u32, fields: &[CompoundField], raw: &[u8]) -> Option<Vec<Field>> {
    let size = size as usize;
    let places = fields.iter().zip(raw_fields(fields, raw)?).map(|(field, (dims, raw))| {
        let len = u32::from_le_bytes(*raw.get(4..)?.first_chunk()?) as usize;
        let len = dims.iter().try_fold(len, |len, &dim| len.checked_mul(dim))?;
        let offset = field.byte_offset as usize;
        offset.checked_add(len).filter(|&end| len > 0 && end <= size)?;
        let place = Place { offset, len };
        let kind = Kind::of(&field.datatype, raw).in_array(dims);
        Some(Field { name: field.name.clone(), place, kind })
    });
    let names: HashSet<_> = fields.iter().map(|field| &*field.name).collect();
    let are_different = names.len() == fields.len() && !names.is_empty();
    places.collect::<Option<_>>().filter(|_| are_different)
}

/// Returns the dimensions of each field of a struct, which only a struct of version 1 has, and the bytes of its datatype.
fn raw_fields<'a>(fields: &[CompoundField], raw: &'a [u8]) -> Option<Vec<(Vec<usize>, &'a [u8])>> {
    // An offset takes as many bytes as the size of the struct needs.
    let size = u32::from_le_bytes(*raw.get(4..)?.first_chunk()?);
    let offset_len = (size.max(1).ilog2() / 8 + 1) as usize;
    let version = version(raw)?;
    let mut rest = raw.get(HEAD..)?;
    let mut found = Vec::with_capacity(fields.len());
    for _ in fields {
        // The name with a zero byte, the offset, and the type. Before version 3, the name is filled up to a multiple of
        // eight bytes.
        let name = rest.iter().position(|&byte| byte == 0)? + 1;
        let before = match version {
            1 | 2 => name.next_multiple_of(8) + 4,
            _ => name + offset_len,
        };
        let mut start = rest.get(before..)?;
        let mut dims = Vec::new();
        if version == 1 {
            // The number of dimensions, eleven bytes that nobody uses, and four dimensions.
            let (array, after) = start.split_first_chunk::<28>()?;
            let sizes = array.get(12..)?.as_chunks().0.get(..array[0].into())?;
            dims = sizes.iter().map(|&size| u32::from_le_bytes(size) as usize).collect();
            start = after;
        }
        let mut cursor = Cursor::new(start);
        parse_datatype_description(&mut cursor).ok()?;
        let (datatype, after) = start.split_at_checked(usize::try_from(cursor.position()).ok()?)?;
        found.push((dims, datatype));
        rest = after;
    }
    Some(found)
}

/// Returns what an element of variable length refers to: the bytes of a text, or of a list of values of this size.
pub type Resolve<'a> = dyn Fn(&[u8], usize) -> hdf5_reader::error::Result<Vec<u8>> + 'a;

impl Text {
    /// Returns `None` if the elements are no texts, or have no bytes.
    fn of(datatype: &Datatype) -> Option<Self> {
        match datatype {
            Datatype::String { size: StringSize::Fixed(0), .. } => None,
            Datatype::String { size: StringSize::Fixed(len), padding, .. } => {
                Some(Self::Fixed(*len as usize, *padding))
            }
            Datatype::String { size: StringSize::Variable, .. }
            | Datatype::VarLen { kind: VarLenKind::String, .. } => Some(Self::Variable),
            _ => None,
        }
    }

    /// Reads the text of an element. `resolve` returns the text that an element of variable length refers to.
    pub fn read(
        self,
        element: &[u8],
        resolve: &Resolve<'_>,
        budget: &mut Budget,
    ) -> Result<Vec<u8>> {
        let text = match self {
            Self::Fixed(_, padding) => trimmed(element, padding).to_vec(),
            Self::Variable => resolve(element, 1).map_err(failed)?,
        };
        budget.take(text.len())?;
        Ok(text)
    }
}

/// Removes from a text of fixed length what fills it up.
fn trimmed(text: &[u8], padding: StringPadding) -> &[u8] {
    let filler = if padding == StringPadding::SpacePad { b' ' } else { 0 };
    let len = match padding {
        StringPadding::NullTerminate => text.iter().position(|&byte| byte == 0),
        _ => Some(text.iter().rposition(|&byte| byte != filler).map_or(0, |last| last + 1)),
    };
    text.get(..len.unwrap_or(text.len())).unwrap_or_default()
}
