//! Reads the description of a tensor (`TensorProto`): name, dtype, shape, and where the elements are.

use std::ops::Range;

use tenarc::de::Limits;
use tenarc::io::ReadAt;
use tenarc::tensor::Shape;
use tenarc::{DType, Error, Result};

use super::wire::{Field, Wire};
use crate::texts::NO_SHAPE;

/// A tensor, without its elements. It may have texts as elements, or be one that cannot be read.
#[derive(Clone, Debug)]
pub struct Entry {
    pub name: String,
    /// The reason if there is no dtype.
    pub dtype: Result<DType, &'static str>,
    pub shape: Shape,
    pub payload: Payload,
    /// The parts of the tensor's description that are lost.
    pub beside: Vec<&'static str>,
}

impl Entry {
    /// The reason why the tensor cannot be read. `None` if it can.
    pub fn refused(&self) -> Option<&'static str> {
        let why = self.dtype.as_ref().err().copied();
        why.filter(|_| !self.is_texts())
    }

    /// Whether the elements are texts. Such a tensor becomes an array of texts.
    pub fn is_texts(&self) -> bool {
        matches!(self.payload, Payload::Texts { .. })
    }

    /// The reason why the tensor has no dtype. Empty if it has one.
    pub fn why_not(&self) -> &'static str {
        self.dtype.as_ref().err().copied().unwrap_or_default()
    }

    /// The length of all elements in bytes. `None` if the tensor has no dtype, or does not fit in memory.
    pub fn byte_len(&self) -> Option<usize> {
        byte_len(self.dtype.as_ref().ok()?, self.shape.element_count()?)
    }
}

/// The place of the elements.
#[derive(Clone, Debug)]
pub enum Payload {
    /// Little-endian bytes in these ranges of the model.
    Plain(Vec<Range<u64>>),
    /// Varints in these ranges of the model.
    Varints(Vec<Range<u64>>),
    External(External),
    /// The strings in all fields of this number in a message.
    Texts {
        message: Range<u64>,
        field: u64,
    },
}

/// The place of elements in an external file. Without a length, it is that of the tensor.
#[derive(Clone, Debug, Default)]
pub struct External {
    pub location: String,
    pub offset: u64,
    pub length: Option<u64>,
}

/// Returns the dtype for a number of `TensorProto.DataType`, or the reason why there is none.
fn dtype_of(number: u64) -> Result<DType, &'static str> {
    Ok(match number {
        1 => DType::F32,
        2 => DType::U8,
        3 => DType::I8,
        4 => DType::U16,
        5 => DType::I16,
        6 => DType::I32,
        7 => DType::I64,
        STRING => return Err(STRINGS),
        9 => DType::Bool,
        10 => DType::F16,
        11 => DType::F64,
        12 => DType::U32,
        13 => DType::U64,
        14 => DType::C64,
        15 => DType::C128,
        16 => DType::BF16,
        17 => DType::F8E4M3,
        18 => DType::F8E4M3Fnuz,
        19 => DType::F8E5M2,
        20 => DType::F8E5M2Fnuz,
        21 => DType::from_name("u4"),
        22 => DType::from_name("i4"),
        23 => DType::F4,
        24 => DType::F8E8M0,
        25 => DType::from_name("u2"),
        26 => DType::from_name("i2"),
        0 => return Err("its elements have no type"),
        _ => return Err("its elements have an unknown type"),
    })
}

/// Returns the name of a type of elements, for people.
pub fn type_name(number: u64) -> String {
    match dtype_of(number) {
        Ok(dtype) => dtype.name().to_owned(),
        Err(_) if number == STRING => "text".to_owned(),
        Err(_) => format!("type {number}"),
    }
}

/// The number of the type `STRING`.
const STRING: u64 = 8;
const STRINGS: &str = "its elements are texts";
/// The number of the field `string_data`.
const STRING_DATA: u64 = 6;

/// Returns the length of `count` elements in bytes. Integers of 4 and of 2 bits are packed. The last byte may have
/// unused bits.
fn byte_len(dtype: &DType, count: usize) -> Option<usize> {
    match dtype.name() {
        "i4" | "u4" => Some(count.div_ceil(2)),
        "i2" | "u2" => Some(count.div_ceil(4)),
        _ => dtype.byte_len(count),
    }
}

/// Returns the number of the field that holds elements of a dtype, if `raw_data` does not.
fn field_of(dtype: &DType) -> u64 {
    match dtype {
        DType::F32 | DType::C64 => 4,
        DType::F64 | DType::C128 => 10,
        DType::I64 => 7,
        DType::U32 | DType::U64 => 11,
        _ => 5,
    }
}

/// Reads the description of a tensor. The wire must be at the start of its message.
pub fn read<S: ReadAt + ?Sized>(
    wire: &mut Wire<'_, S>,
    message: &Range<u64>,
    limits: Limits,
) -> Result<Entry> {
    let mut parts = Parts::default();
    while let Some((number, field)) = wire.field(message.end)? {
        let next = field.range().end;
        parts.take(wire, number, field, limits)?;
        wire.skip_to(next)?;
    }
    let name = parts.name.clone();
    parts.finish(message).map_err(|error| error.at(message.start).in_field(name))
}

/// The fields of a tensor that were read so far.
#[derive(Default)]
struct Parts {
    name: String,
    /// The number of the data type.
    kind: u64,
    dims: Vec<u64>,
    /// The number of the field that holds the elements, and their ranges in the source.
    elements: Option<(u64, Vec<Range<u64>>)>,
    /// The number of strings.
    strings: usize,
    /// The data location: 0 for the model, 1 for an external file.
    location: u64,
    external: External,
    /// The parts of the description that are lost.
    beside: Vec<&'static str>,
    in_segments: bool,
}

impl Parts {
    fn take<S: ReadAt + ?Sized>(
        &mut self,
        wire: &mut Wire<'_, S>,
        number: u64,
        field: Field,
        limits: Limits,
    ) -> Result<()> {
        let at = wire.at();
        match (number, field) {
            (1, Field::Varint(dim, _)) => self.dim(dim, limits),
            (1, Field::Bytes(range)) => {
                while wire.at() < range.end {
                    let dim = wire.varint(range.end)?;
                    self.dim(dim, limits)?;
                }
                Ok(())
            }
            (2, Field::Varint(kind, _)) => {
                self.kind = kind;
                Ok(())
            }
            (3, Field::Bytes(_)) => {
                self.in_segments = true;
                Ok(())
            }
            // The fields for elements. Each holds a single number or a packed sequence; 9 is `raw_data`.
            (4, Field::Bytes(range) | Field::Fixed4(range))
            | (10, Field::Bytes(range) | Field::Fixed8(range))
            | (5 | 7 | 11, Field::Bytes(range) | Field::Varint(_, range))
            | (9, Field::Bytes(range)) => self.elements(wire, number, range),
            (STRING_DATA, Field::Bytes(_)) => {
                self.strings += 1;
                Ok(())
            }
            (8, Field::Bytes(range)) => {
                self.name = wire.text(&range)?;
                Ok(())
            }
            (12, Field::Bytes(_)) => self.lose("its description is left out"),
            (13, Field::Bytes(range)) => self.external(wire, &range),
            (14, Field::Varint(location, _)) => {
                self.location = location;
                Ok(())
            }
            (16, Field::Bytes(_)) => self.lose("its metadata are left out"),
            (1..=16, _) => {
                let what = format!("field {number} of a tensor has a wrong wire type");
                Err(Error::syntax(what).at(at))
            }
            _ => self.lose("its unknown fields are left out"),
        }
    }

    // Returns a result, because every arm of `take` does.
    #[allow(clippy::unnecessary_wraps)]
    fn lose(&mut self, what: &'static str) -> Result<()> {
        if !self.beside.contains(&what) {
            self.beside.push(what);
        }
        Ok(())
    }

    fn dim(&mut self, dim: u64, limits: Limits) -> Result<()> {
        if self.dims.len() == limits.max_rank() {
            let most = limits.max_rank();
            return Err(Error::limit(format!("the tensor has more than {most} dimensions")));
        }
        self.dims.push(dim);
        Ok(())
    }

    fn elements<S: ReadAt + ?Sized>(
        &mut self,
        wire: &mut Wire<'_, S>,
        number: u64,
        range: Range<u64>,
    ) -> Result<()> {
        let (field, ranges) = self.elements.get_or_insert_with(|| (number, Vec::new()));
        if *field != number || number == 9 && !ranges.is_empty() {
            return Err(Error::syntax("a tensor has its elements twice").at(range.start));
        }
        add(wire, ranges, range)
    }

    fn external<S: ReadAt + ?Sized>(
        &mut self,
        wire: &mut Wire<'_, S>,
        range: &Range<u64>,
    ) -> Result<()> {
        let (mut key, mut value) = (String::new(), String::new());
        while let Some((number, field)) = wire.field(range.end)? {
            let next = field.range().end;
            match (number, field) {
                (1, Field::Bytes(range)) => key = wire.text(&range)?,
                (2, Field::Bytes(range)) => value = wire.text(&range)?,
                _ => {}
            }
            wire.skip_to(next)?;
        }
        let number = || {
            let shown = value.chars().take(32).collect::<String>();
            let what = format!("expected a number of bytes, found `{}`", shown.escape_debug());
            value.parse().map_err(|_| Error::syntax(what).at(range.start))
        };
        match key.as_str() {
            "location" => self.external.location = value,
            "offset" => self.external.offset = number()?,
            "length" => self.external.length = Some(number()?),
            // The checksum is not compared. The tensor is complete without it.
            "checksum" => {}
            _ => self.lose("unknown properties of its external file are left out")?,
        }
        Ok(())
    }

    fn finish(self, message: &Range<u64>) -> Result<Entry> {
        let dims = self.dims.iter().map(|&dim| usize::try_from(dim).ok());
        // As `u64`, a negative dimension does not fit in a `usize`, or makes too many elements.
        let shape = dims.collect::<Option<Shape>>();
        let counted = shape.and_then(|shape| Some((shape.element_count()?, shape)));
        let Some((count, shape)) = counted else {
            let dims: Vec<i64> = self.dims.iter().map(|dim| dim.cast_signed()).collect();
            return Err(Error::limit(format!("shape {dims:?} does not fit in memory")));
        };
        let mut dtype = dtype_of(self.kind);
        if self.in_segments {
            dtype = Err("it is stored in segments");
        }
        if let (Ok(dtype), Some((field, _))) = (&dtype, &self.elements)
            && *field != 9
            && *field != field_of(dtype)
        {
            let expected = field_of(dtype);
            let what =
                format!("expected {dtype} elements in field {expected}, found field {field}");
            return Err(Error::syntax(what));
        }
        if self.strings > 0 && self.kind != STRING {
            return Err(Error::syntax("a tensor has texts, but its type is not STRING"));
        }
        if let (STRING, Some((field, _))) = (self.kind, &self.elements) {
            let what = format!("expected texts in field {STRING_DATA}, found field {field}");
            return Err(Error::syntax(what));
        }
        let len = match &dtype {
            Ok(dtype) => byte_len(dtype, count),
            Err(_) => None,
        };
        if len.is_none() && dtype.is_ok() {
            dtype = Err("its elements do not fill whole bytes");
        }
        let payload = match (self.location, self.elements) {
            (0, None) if self.kind == STRING && !self.in_segments => {
                if self.strings != count {
                    let what =
                        format!("{} texts do not make a tensor of shape {shape:?}", self.strings);
                    return Err(Error::syntax(what));
                }
                if count == 0 && shape.len() > 1 {
                    dtype = Err(NO_SHAPE);
                    Payload::Plain(Vec::new())
                } else {
                    Payload::Texts { message: message.clone(), field: STRING_DATA }
                }
            }
            (0, None) => Payload::Plain(Vec::new()),
            (0, Some((9 | 4 | 10, ranges))) => Payload::Plain(ranges),
            (0, Some((_, ranges))) => Payload::Varints(ranges),
            (1, None) => Payload::External(self.external),
            (1, Some(_)) => {
                let what = "a tensor has elements in the model and in an external file";
                return Err(Error::syntax(what));
            }
            (other, _) => {
                return Err(Error::syntax(format!("expected data location 0 or 1, found {other}")));
            }
        };
        if let (Ok(dtype), Some(len), Payload::Plain(ranges)) = (&dtype, len, &payload) {
            let found: u64 = ranges.iter().map(|range| range.end - range.start).sum();
            if found != len as u64 {
                let what = format!("{found} bytes do not make a {dtype} tensor of shape {shape:?}");
                return Err(Error::syntax(what));
            }
        }
        Ok(Entry { name: self.name, dtype, shape, payload, beside: self.beside })
    }
}

/// The numbers and texts of an attribute. In a `Constant` node, they are a tensor.
#[derive(Default)]
pub struct Plain {
    floats: Vec<Range<u64>>,
    integers: Vec<Range<u64>>,
    /// The number of integers.
    integer_count: usize,
    /// The number of texts.
    text_count: usize,
}

impl Plain {
    /// Adds a field of an attribute.
    pub fn take<S: ReadAt + ?Sized>(
        &mut self,
        wire: &mut Wire<'_, S>,
        number: u64,
        field: &Field,
    ) -> Result<()> {
        match (number, field) {
            (2 | 7, Field::Fixed4(range)) | (7, Field::Bytes(range)) => {
                add(wire, &mut self.floats, range.clone())
            }
            (3 | 8, Field::Varint(_, range)) => {
                self.integer_count += 1;
                add(wire, &mut self.integers, range.clone())
            }
            (8, Field::Bytes(range)) => {
                while wire.at() < range.end {
                    wire.varint(range.end)?;
                    self.integer_count += 1;
                }
                add(wire, &mut self.integers, range.clone())
            }
            (4 | 9, Field::Bytes(_)) => {
                self.text_count += 1;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Returns the tensor that the numbers or texts are in a `Constant` node. `None` if this is not the name of an
    /// attribute that holds its value. The documentation of the operator lists these names.
    pub fn of_constant(self, attribute: &str, message: &Range<u64>) -> Option<Entry> {
        let bytes: u64 = self.floats.iter().map(|range| range.end - range.start).sum();
        let float_count = usize::try_from(bytes / 4).ok()?;
        let (is_list, dtype, count, payload) = match attribute {
            "value_float" | "value_floats" => {
                let is_list = attribute == "value_floats";
                (is_list, Ok(DType::F32), float_count, Payload::Plain(self.floats))
            }
            "value_int" | "value_ints" => {
                let payload = Payload::Varints(self.integers);
                (attribute == "value_ints", Ok(DType::I64), self.integer_count, payload)
            }
            "value_string" | "value_strings" => {
                let is_list = attribute == "value_strings";
                let field = if is_list { 9 } else { 4 };
                let payload = Payload::Texts { message: message.clone(), field };
                (is_list, Err(STRINGS), self.text_count, payload)
            }
            _ => return None,
        };
        let shape: &[usize] = if is_list { &[count] } else { &[] };
        // If the attribute does not hold one value of its type, the tensor is refused.
        let fits = (is_list || count == 1) && bytes.is_multiple_of(4);
        let dtype = if fits { dtype } else { Err("it does not have a value of its type") };
        let payload = if fits { payload } else { Payload::Plain(Vec::new()) };
        let (name, shape, beside) = (String::new(), Shape::from(shape), Vec::new());
        Some(Entry { name, dtype, shape, payload, beside })
    }
}

/// Adds a range to those of the elements.
fn add<S: ReadAt + ?Sized>(
    wire: &mut Wire<'_, S>,
    ranges: &mut Vec<Range<u64>>,
    range: Range<u64>,
) -> Result<()> {
    wire.charge(2 * size_of::<Range<u64>>())?;
    ranges.push(range);
    Ok(())
}
