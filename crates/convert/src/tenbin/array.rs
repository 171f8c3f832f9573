//! Reads and writes arrays. An array is two chunks: a header with its dtype, name and shape, and the elements.

use std::io::Read;

use tenarc::de::Limits;
use tenarc::tensor::{Order, TensorMeta};
use tenarc::{DType, DynTensor, Error, Result};

use super::chunk::{Input, cut};
use crate::support::read_all;

/// The codes of dtypes.
const CODES: [(&str, DType); 11] = [
    ("f2", DType::F16),
    ("f4", DType::F32),
    ("f8", DType::F64),
    ("i1", DType::I8),
    ("i2", DType::I16),
    ("i4", DType::I32),
    ("i8", DType::I64),
    ("u1", DType::U8),
    ("u2", DType::U16),
    // The Python library misspells this code, so it can neither write nor read such arrays.
    ("u4", DType::U32),
    ("u8", DType::U64),
];

/// The most dimensions that the Python library writes.
const MAX_RANK: usize = 9;

/// The length of the code, the name and the rank in a header chunk, in bytes.
const FIXED: usize = 24;

/// The content of a header chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The name of up to eight letters. Empty if the array has none.
    pub name: String,
    /// The dtype and the shape. The order is always row-major.
    pub meta: TensorMeta,
    /// The length of the elements in bytes.
    pub len: u64,
}

impl Header {
    /// Makes the header of an array. An error if the format cannot hold its name, dtype, shape or order.
    pub fn new(name: &str, meta: TensorMeta) -> Result<Self> {
        let wrong = |what: String| Err(Error::data(what).in_field(name));
        // Names are padded with zeros. So a reader would remove a zero at the end of a name.
        if name.len() > 8 || !name.is_ascii() || name.ends_with('\0') {
            let name = name.escape_debug();
            return wrong(format!("expected a name of at most 8 ASCII characters, found `{name}`"));
        }
        let dims = &meta.shape;
        if dims.len() > MAX_RANK {
            return wrong(format!("expected at most {MAX_RANK} dimensions, found {}", dims.len()));
        }
        if !CODES.iter().any(|(_, dtype)| *dtype == meta.dtype) {
            return wrong(format!("tenbin has no dtype {}", meta.dtype));
        }
        if meta.order == Order::F {
            return wrong("expected a row-major tensor, found a column-major one".into());
        }
        let Some(len) = meta.byte_len() else {
            return wrong(format!("shape {dims:?} does not fit in memory"));
        };
        Ok(Self { name: name.to_owned(), meta, len: len as u64 })
    }

    /// Encodes the content of the header chunk.
    pub fn encode(&self) -> Vec<u8> {
        let code = CODES.iter().find(|(_, dtype)| *dtype == self.meta.dtype);
        let mut bytes = Vec::with_capacity(FIXED + 8 * MAX_RANK);
        for text in [code.map_or("", |(code, _)| code), &self.name] {
            let mut word = [0; 8];
            word.iter_mut().zip(text.bytes()).for_each(|(to, from)| *to = from);
            bytes.extend_from_slice(&word);
        }
        let dims = &self.meta.shape;
        for &number in [dims.len()].iter().chain(dims) {
            bytes.extend_from_slice(&(number as u64).to_le_bytes());
        }
        bytes
    }

    /// Decodes the content of a header chunk, which is at position `at`.
    pub fn decode(bytes: &[u8], at: u64) -> Result<Self> {
        let (words, rest) = bytes.as_chunks::<8>();
        let [code, name, rank, dims @ ..] = words else {
            let what =
                format!("expected a header of at least {FIXED} bytes, found {}", bytes.len());
            return Err(Error::data(what).at(at));
        };
        let dtype = CODES.iter().find(|(known, _)| trimmed(code) == known.as_bytes());
        let Some((_, dtype)) = dtype else {
            let found = trimmed(code).escape_ascii();
            return Err(
                Error::data(format!("expected a dtype code of tenbin, found `{found}`")).at(at)
            );
        };
        let name = std::str::from_utf8(trimmed(name)).ok().filter(|name| name.is_ascii());
        let name =
            name.ok_or_else(|| Error::data("the name of an array is not ASCII").at(at + 8))?;
        let rank = u64::from_le_bytes(*rank);
        if rank != dims.len() as u64 || !rest.is_empty() {
            let (len, rank) = (bytes.len(), rank.cast_signed());
            let what = format!("a header of {len} bytes does not fit its {rank} dimensions");
            return Err(Error::data(what).at(at + 16));
        }
        if dims.len() > Limits::DEFAULT_RANK {
            let most = Limits::DEFAULT_RANK;
            let what = format!("the array has {rank} dimensions, expected at most {most}");
            return Err(Error::limit(what).at(at + 16));
        }
        let mut shape = Vec::with_capacity(dims.len());
        for (index, dim) in dims.iter().enumerate() {
            let dim = i64::from_le_bytes(*dim);
            let found = usize::try_from(dim).map_err(|_| {
                let at = at + (FIXED + 8 * index) as u64;
                Error::data(format!("a dimension of {dim} is negative or too large")).at(at)
            })?;
            shape.push(found);
        }
        let meta = TensorMeta::new(dtype.clone(), shape, Order::C);
        let Some(len) = meta.byte_len() else {
            let shape = &meta.shape;
            return Err(Error::data(format!("shape {shape:?} does not fit in memory")).at(at));
        };
        Ok(Self { name: name.to_owned(), meta, len: len as u64 })
    }

    /// Checks that the elements have as many bytes as the dtype and the shape require.
    pub fn check_len(&self, found: u64, at: u64) -> Result<()> {
        if found == self.len {
            return Ok(());
        }
        let (dtype, shape, expected) = (&self.meta.dtype, &self.meta.shape, self.len);
        let what = format!("expected {expected} bytes for {dtype} {shape:?}, found {found}");
        Err(Error::data(what).at(at).in_field(&*self.name))
    }

    /// Returns the name, and the array with these elements.
    pub fn with_bytes(self, bytes: Vec<u8>) -> Result<(String, DynTensor)> {
        let TensorMeta { dtype, shape, order } = self.meta;
        Ok((self.name, DynTensor::new(dtype, &shape, order, bytes)?))
    }
}

/// Returns a text without the zeros that pad it to eight bytes.
fn trimmed(word: &[u8; 8]) -> &[u8] {
    let end = word.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    word.get(..end).unwrap_or_default()
}

/// The length of the longest header chunk that is read, in bytes.
const MAX_HEADER: u64 = (FIXED + 8 * Limits::DEFAULT_RANK) as u64;

impl<R: Read> Input<R> {
    /// Reads the next header chunk, and the head of the data chunk after it. `None` at the end of the input.
    pub fn header(&mut self) -> Result<Option<Header>> {
        let Some(len) = self.head()? else { return Ok(None) };
        let at = self.at;
        let content = self.content(len, MAX_HEADER)?;
        self.padding(len)?;
        let header = Header::decode(&content, at)?;
        let at = self.at;
        match self.head()? {
            Some(len) => header.check_len(len, at + 8)?,
            None => return Err(cut(header.len, 0, "an array").at(at).in_field(&*header.name)),
        }
        Ok(Some(header))
    }

    /// Reads the elements of an array after its header. They are read directly into the memory of the array, which is
    /// only allocated as bytes arrive.
    pub fn array(&mut self, header: Header) -> Result<(String, DynTensor)> {
        let Header { name, meta, len } = header;
        let at = self.at;
        let proven = usize::try_from(at).unwrap_or(usize::MAX);
        let mut received = 0;
        let tensor = DynTensor::read_with(meta, proven, |step| {
            let found = read_all(self.reader(), step)?;
            received += found as u64;
            if found == step.len() { Ok(()) } else { Err(cut(len, received, "an array")) }
        });
        self.at += received;
        let tensor = tensor.map_err(|error| error.at(at).in_field(&*name))?;
        self.padding(len)?;
        Ok((name, tensor))
    }
}
