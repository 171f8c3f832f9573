//! Arrays: a chunk that says what they are, and one that holds their elements.

use std::io::Read;

use tenarc::de::Limits;
use tenarc::tensor::{Order, TensorMeta};
use tenarc::{DType, DynTensor, Error, Result};

use super::chunk::{Input, cut};
use crate::support::read_all;

/// Dtypes by their codes.
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
    // Which the Python library misspells, so that it can neither write nor read it.
    ("u4", DType::U32),
    ("u8", DType::U64),
];

/// The most dimensions that the Python library writes.
const MAX_RANK: usize = 9;

/// Bytes of code, name and rank.
const FIXED: usize = 24;

/// What a header chunk says: a name of up to eight letters, and of the elements all but them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The name, or nothing.
    pub name: String,
    /// Dtype and shape; row-major.
    pub meta: TensorMeta,
    /// Bytes of the elements.
    pub len: u64,
}

impl Header {
    /// What is to be written; an error where the format has no way to say it.
    pub fn new(name: &str, meta: TensorMeta) -> Result<Self> {
        let wrong = |what: String| Err(Error::data(what).in_field(name));
        // A zero at the end would be taken for padding.
        if name.len() > 8 || !name.is_ascii() || name.ends_with('\0') {
            let name = name.escape_debug();
            return wrong(format!("tenbin takes names of up to 8 ASCII letters, found `{name}`"));
        }
        let dims = &meta.shape;
        if dims.len() > MAX_RANK {
            return wrong(format!(
                "tenbin takes up to {MAX_RANK} dimensions, found {}",
                dims.len()
            ));
        }
        if !CODES.iter().any(|(_, dtype)| *dtype == meta.dtype) {
            return wrong(format!("tenbin has no elements of {}", meta.dtype));
        }
        if meta.order == Order::F {
            return wrong("tenbin arrays are row-major, this tensor is column-major".into());
        }
        let Some(len) = meta.byte_len() else {
            return wrong(format!("shape {dims:?} does not fit memory"));
        };
        Ok(Self { name: name.to_owned(), meta, len: len as u64 })
    }

    /// The content of the header chunk.
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

    /// Takes the content of a header chunk apart, which stands at `at`.
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
            let what =
                format!("{} bytes are no header of {} dimensions", bytes.len(), rank.cast_signed());
            return Err(Error::data(what).at(at + 16));
        }
        if dims.len() > Limits::DEFAULT_RANK {
            let what = format!("an array of {rank} dimensions");
            return Err(Error::limit(what).at(at + 16));
        }
        let mut shape = Vec::with_capacity(dims.len());
        for (index, dim) in dims.iter().enumerate() {
            let dim = i64::from_le_bytes(*dim);
            let found = usize::try_from(dim).map_err(|_| {
                let at = at + (FIXED + 8 * index) as u64;
                Error::data(format!("expected a dimension, found {dim}")).at(at)
            })?;
            shape.push(found);
        }
        let meta = TensorMeta::new(dtype.clone(), shape, Order::C);
        let Some(len) = meta.byte_len() else {
            let shape = &meta.shape;
            return Err(Error::data(format!("shape {shape:?} does not fit memory")).at(at));
        };
        Ok(Self { name: name.to_owned(), meta, len: len as u64 })
    }

    /// That a data chunk is as long as dtype and shape ask for.
    pub fn check_len(&self, found: u64, at: u64) -> Result<()> {
        if found == self.len {
            return Ok(());
        }
        let (dtype, shape, expected) = (&self.meta.dtype, &self.meta.shape, self.len);
        let what = format!("expected {expected} bytes for {dtype} {shape:?}, found {found}");
        Err(Error::data(what).at(at).in_field(&*self.name))
    }

    /// The array, whose bytes are these.
    pub fn with_bytes(self, bytes: Vec<u8>) -> Result<(String, DynTensor)> {
        let TensorMeta { dtype, shape, order } = self.meta;
        Ok((self.name, DynTensor::new(dtype, &shape, order, bytes)?))
    }
}

/// Text up to the zeros that fill its eight bytes.
fn trimmed(word: &[u8; 8]) -> &[u8] {
    let end = word.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    word.get(..end).unwrap_or_default()
}

/// The largest header chunk that is read.
const MAX_HEADER: u64 = (FIXED + 8 * Limits::DEFAULT_RANK) as u64;

impl<R: Read> Input<R> {
    /// The next header chunk, up to and with the head of the data chunk; `None` at the end of the input.
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

    /// The elements of an array whose header was read: straight into typed memory, which follows the
    /// bytes received.
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
