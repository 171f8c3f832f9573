//! Reads the header of a file: its metadata, and the list of its tensors.

use std::collections::{HashMap, HashSet};

use tenarc::de::Limits;
use tenarc::error::Category;
use tenarc::io::ReadAt;
use tenarc::tensor::{Order, TensorInfo, TensorMeta};
use tenarc::{DType, DynTensor, Error, Result, Value};

use super::dtype::Kind;
use super::types::{self, ARRAY, NAMES, TEXT, Type};
use crate::input::{Input, Positions};

pub const MAGIC: [u8; 4] = *b"GGUF";

/// The most dimensions of a tensor: `GGML_MAX_DIMS`.
pub const MAX_RANK: usize = 4;

/// The metadata key of the alignment, and the alignment of files without this key.
pub const ALIGNMENT: &str = "general.alignment";
pub const DEFAULT_ALIGNMENT: u64 = 32;
const MAX_ALIGNMENT: u64 = 1 << 20;

/// The most arrays that may be nested in each other.
const MAX_DEPTH: usize = 16;

/// The header of a file.
pub struct Header {
    pub version: u32,
    pub metadata: Vec<(String, Value)>,
    pub tensors: Vec<TensorInfo>,
    /// The position of each tensor's bytes in the file.
    pub places: Vec<u64>,
    /// The index in `tensors` for each name.
    pub numbers: HashMap<String, usize>,
}

/// A tensor as the file lists it.
struct Listed {
    info: TensorInfo,
    /// The offset of the tensor's bytes from the end of the padded header.
    offset: u64,
}

impl Header {
    pub fn read<S: ReadAt + ?Sized>(source: &S, limits: Limits) -> Result<Self> {
        let size = source.size().map_err(Error::io)?;
        let mut input = Reader { input: Input::new(Positions::new(source)?, limits), size };
        let mut magic = [0; 4];
        input.input.fill(&mut magic, "`GGUF`")?;
        if magic != MAGIC {
            return Err(Error::syntax(
                "expected `GGUF` at the start of the file, found other bytes",
            )
            .at(0));
        }
        let version = input.u32("the version")?;
        match version {
            2 | 3 => {}
            _ if version != 0 && version.trailing_zeros() >= 16 => {
                let what = "expected a little-endian GGUF file, found a big-endian one";
                return Err(Error::unsupported(what).at(4));
            }
            _ => {
                let what = format!("expected version 2 or 3 of GGUF, found {version}");
                return Err(Error::new(Category::Version, what).at(4));
            }
        }
        let tensor_count = input.u64("the number of tensors")?;
        let key_count = input.u64("the number of keys")?;
        let mut metadata = Vec::new();
        let mut types = Vec::new();
        let mut keys = HashSet::new();
        for _ in 0..key_count {
            let at = input.input.at();
            let key = input.text("a key")?;
            input.charge_name(&key)?;
            if !keys.insert(key.clone()) {
                return Err(Error::data("there are two values for this key").at(at).in_field(key));
            }
            let kind = input.u32("the type of a value")?;
            if key == types::KEY {
                let what = "this key is reserved for the types of the metadata";
                return Err(Error::data(what).at(at).in_field(key));
            }
            let (value, kind) =
                input.value(kind, MAX_DEPTH).map_err(|error| error.in_field(key.as_str()))?;
            metadata.push((key, value));
            types.push(kind);
        }
        let keys = metadata.iter().map(|(key, _)| key.as_str());
        if let Some(types) = types::listed(keys.zip(types).collect()) {
            metadata.push((types::KEY.to_owned(), types));
        }
        let mut listed = Vec::new();
        let mut numbers = HashMap::new();
        for number in 0..tensor_count {
            let at = input.input.at();
            let name = input.text("the name of a tensor")?;
            input.charge_name(&name)?;
            let number = usize::try_from(number).unwrap_or(usize::MAX);
            if numbers.insert(name.clone(), number).is_some() {
                let what = "there are two tensors of this name";
                return Err(Error::data(what).at(at).in_field(name));
            }
            listed.push(input.tensor(&name).map_err(|error| error.in_field(name))?);
        }
        let alignment = match metadata.iter().find(|(key, _)| key == ALIGNMENT) {
            Some((_, value)) => alignment(value)?,
            None => DEFAULT_ALIGNMENT,
        };
        let base = input.input.at().checked_next_multiple_of(alignment).unwrap_or(u64::MAX);
        check_places(&listed, base, size, alignment)?;
        let (tensors, places) = listed
            .into_iter()
            .map(|listed| (listed.info, base.saturating_add(listed.offset)))
            .unzip();
        Ok(Self { version, metadata, tensors, places, numbers })
    }
}

/// Reads the alignment of tensors from its value in the metadata.
pub fn alignment(value: &Value) -> Result<u64> {
    let found = value.as_u64().filter(|found| *found > 0 && found.is_multiple_of(8));
    found.filter(|found| *found <= MAX_ALIGNMENT).ok_or_else(|| {
        let what = format!("expected a multiple of 8 up to {MAX_ALIGNMENT}, found {value}");
        Error::data(what).in_field(ALIGNMENT)
    })
}

/// Checks that the tensors follow each other, each at the next multiple of the alignment, up to the end of the file. So
/// a file has no bytes that a conversion would leave out.
fn check_places(listed: &[Listed], base: u64, size: u64, alignment: u64) -> Result<()> {
    let mut sorted: Vec<&Listed> = listed.iter().collect();
    sorted.sort_by_key(|listed| (listed.offset, listed.info.byte_len()));
    let mut expected = 0u64;
    let mut end = 0u64;
    for Listed { info, offset } in sorted {
        if *offset != expected {
            let what = format!("expected the tensor at offset {expected}, found offset {offset}");
            return Err(Error::data(what).at(base.saturating_add(*offset)).in_field(info.path()));
        }
        let behind = offset.checked_add(info.byte_len());
        let next = behind.and_then(|behind| behind.checked_next_multiple_of(alignment));
        (end, expected) = behind.zip(next).ok_or_else(|| {
            Error::data("the tensor does not fit in a file").in_field(info.path())
        })?;
        if base.saturating_add(end) > size {
            let there = size.saturating_sub(base.saturating_add(*offset));
            let what = format!("{} bytes of a tensor, found {there}", info.byte_len());
            return Err(Error::eof(&what).at(size).in_field(info.path()));
        }
    }
    // The last tensor may be padded, too.
    let last = if listed.is_empty() { base } else { base.saturating_add(expected) };
    if size > last {
        let what = format!("found {} bytes after the last tensor", size - base.saturating_add(end));
        return Err(Error::data(what).at(base.saturating_add(end)));
    }
    Ok(())
}

struct Reader<'a, S: ?Sized> {
    input: Input<Positions<'a, S>>,
    /// The length of the file.
    size: u64,
}

impl<S: ReadAt + ?Sized> Reader<'_, S> {
    fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.input.fill(&mut bytes, what)?;
        Ok(bytes)
    }

    fn u32(&mut self, what: &str) -> Result<u32> {
        self.array(what).map(u32::from_le_bytes)
    }

    fn u64(&mut self, what: &str) -> Result<u64> {
        self.array(what).map(u64::from_le_bytes)
    }

    /// Reads the next `len` bytes. If the file is too short for them, this fails before it allocates memory.
    fn bytes(&mut self, len: u64, what: &str) -> Result<Vec<u8>> {
        let at = self.input.at();
        let there = self.size.saturating_sub(at);
        if len > there {
            let found = format!("{what} of {len} bytes, found {there}");
            return Err(Error::eof(&found).at(at));
        }
        self.input.bytes(len, what)
    }

    fn text(&mut self, what: &str) -> Result<String> {
        let len = self.u64("a length")?;
        let at = self.input.at();
        let bytes = self.bytes(len, what)?;
        String::from_utf8(bytes).map_err(|_| Error::data(format!("{what} is not UTF-8")).at(at))
    }

    /// Counts the memory of the second copy of a name, which is used to find duplicates.
    fn charge_name(&mut self, name: &str) -> Result<()> {
        self.input.charge(name.len() as u64)
    }

    /// Reads a value of this type. Also returns the type of the elements, if it is an array.
    fn value(&mut self, kind: u32, depth: usize) -> Result<(Value, Type)> {
        self.input.charge((size_of::<Value>() + size_of::<Type>()) as u64)?;
        let value = match kind {
            0 => Value::from(u8::from_le_bytes(self.array("a number")?)),
            1 => Value::from(i8::from_le_bytes(self.array("a number")?)),
            2 => Value::from(u16::from_le_bytes(self.array("a number")?)),
            3 => Value::from(i16::from_le_bytes(self.array("a number")?)),
            4 => Value::from(u32::from_le_bytes(self.array("a number")?)),
            5 => Value::from(i32::from_le_bytes(self.array("a number")?)),
            6 => Value::from(f32::from_le_bytes(self.array("a number")?)),
            7 => Value::from(self.bool()?),
            TEXT => Value::from(self.text("a text")?),
            ARRAY => return self.values(depth),
            10 => Value::from(u64::from_le_bytes(self.array("a number")?)),
            11 => Value::from(i64::from_le_bytes(self.array("a number")?)),
            12 => Value::from(f64::from_le_bytes(self.array("a number")?)),
            other => return Err(self.unknown_kind(other)),
        };
        Ok((value, Type::One(kind)))
    }

    #[cold]
    fn unknown_kind(&self, kind: u32) -> Error {
        let what = format!("expected a value type from 0 to 12, found {kind}");
        Error::data(what).at(self.input.at().saturating_sub(4))
    }

    fn bool(&mut self) -> Result<bool> {
        match self.array("a bool")? {
            [0] => Ok(false),
            [1] => Ok(true),
            [other] => {
                let what = format!("a bool is stored as the byte {other}; it must be 0 or 1");
                Err(Error::data(what).at(self.input.at().saturating_sub(1)))
            }
        }
    }

    /// Reads an array. An array of numbers becomes a tensor of one dimension.
    fn values(&mut self, depth: usize) -> Result<(Value, Type)> {
        let depth = depth.checked_sub(1).ok_or_else(|| {
            Error::limit("arrays are nested deeper than the limit").at(self.input.at())
        })?;
        let kind = self.u32("the type of the values of an array")?;
        let name = usize::try_from(kind).ok().and_then(|kind| NAMES.get(kind));
        let name = name.ok_or_else(|| self.unknown_kind(kind))?;
        let count = self.u64("the length of an array")?;
        if matches!(kind, TEXT | ARRAY) {
            let (mut values, mut types) = (Vec::new(), Vec::new());
            for _ in 0..count {
                let (value, kind) = self.value(kind, depth)?;
                values.push(value);
                types.push(kind);
            }
            let kind = match kind {
                TEXT => Type::Array(vec![Type::One(TEXT)]),
                _ => Type::array(types),
            };
            return Ok((Value::Array(values), kind));
        }
        let dtype = DType::from_name(name);
        let at = self.input.at();
        let len = usize::try_from(count).ok();
        let byte_len = len.and_then(|len| dtype.byte_len(len)).ok_or_else(|| {
            Error::limit(format!("an array of {count} numbers does not fit in memory")).at(at)
        })?;
        let bytes = self.bytes(byte_len as u64, "an array")?;
        let shape = [len.unwrap_or_default()];
        let tensor = DynTensor::new(dtype, &shape, Order::C, bytes);
        let tensor = tensor.map_err(|error| error.at(at))?;
        Ok((Value::from(tensor), Type::Array(vec![Type::One(kind)])))
    }

    /// Reads the description of a tensor, which follows its name.
    fn tensor(&mut self, name: &str) -> Result<Listed> {
        let at = self.input.at();
        let rank = self.u32("the number of dimensions")?;
        let rank =
            usize::try_from(rank).ok().filter(|rank| *rank <= MAX_RANK).ok_or_else(|| {
                Error::data(format!("expected at most {MAX_RANK} dimensions, found {rank}")).at(at)
            })?;
        let mut shape = Vec::with_capacity(rank);
        for _ in 0..rank {
            let len = self.u64("a dimension")?;
            shape.push(usize::try_from(len).map_err(|_| {
                Error::limit(format!("a dimension of {len} does not fit in memory")).at(at)
            })?);
        }
        // GGUF lists the innermost dimension first.
        shape.reverse();
        let number = self.u32("the type of a tensor")?;
        let offset = self.u64("the offset of a tensor")?;
        let kind = Kind::of_number(number).ok_or_else(|| {
            Error::unsupported(format!("the tensor has the unknown type {number}")).at(at)
        })?;
        let byte_len = kind.byte_len(&shape).ok_or_else(|| {
            let Kind { name, block, .. } = kind;
            let what = format!(
                "the rows of a {name} tensor of shape {shape:?} are not whole blocks of {block} \
                 elements, or the tensor does not fit in memory"
            );
            Error::data(what).at(at)
        })?;
        let meta = TensorMeta::new(kind.dtype(), &*shape, Order::C);
        self.input.charge(size_of::<Listed>() as u64)?;
        Ok(Listed { info: TensorInfo::new(name.to_owned(), meta, byte_len), offset })
    }
}
