//! From CBOR to a tree of Python objects.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyMemoryView, PyNone, PySlice, PyString,
};

/// The deepest nesting here, whatever the limit of the caller: reading is recursive.
const MAX_DEPTH: usize = 128;
/// Longer keys are not kept, and at most so many are.
const MAX_KEY: usize = 32;
const KEYS: usize = 256;
/// The least length of a payload that becomes a view of the input. A shorter one is copied as fast.
const MIN_VIEW: u64 = 4096;
/// The tags of typed arrays (RFC 8746), and the one of tensors of any dtype (SPEC 2.2).
const TYPED: std::ops::RangeInclusive<u64> = 64..=87;
const NAMED: u64 = u32::from_be_bytes(*b"TENS") as u64;

/// Parses one item, as `tree.py` does with cbor2. `tag` makes the node of a tag from its number and content.
///
/// With `views`, long payloads of tensors are a `memoryview` of the input instead of a copy.
///
/// Raises `ValueError` if something is wrong, or rare: indefinite lengths, other simple values than booleans and
/// null, keys that are no plain values. The caller then parses it in another way, which says what is wrong.
#[pyfunction]
pub(crate) fn parse<'py>(
    data: &Bound<'py, PyBytes>,
    max_depth: usize,
    tag: &Bound<'py, PyAny>,
    views: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let mut reader = Reader {
        py: data.py(),
        data: data.as_bytes(),
        at: 0,
        max_depth: max_depth.min(MAX_DEPTH),
        tag,
        view: views.then(|| PyMemoryView::from(data)).transpose()?,
        keys: [const { None }; KEYS],
        items: Vec::new(),
    };
    let tree = reader.item(0, Place::Other)?;
    if reader.at == reader.data.len() { Ok(tree) } else { Err(refused()) }
}

/// What an item is to the tag around it.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// The content of tag `NAMED`: an array whose last element is a payload.
    Tensor,
    Payload,
    Other,
}

struct Reader<'a, 'py> {
    py: Python<'py>,
    data: &'a [u8],
    at: usize,
    max_depth: usize,
    tag: &'a Bound<'py, PyAny>,
    /// The input, if payloads become views of it.
    view: Option<Bound<'py, PyMemoryView>>,
    /// Keys that were read, and their bytes. Records have the same keys again and again.
    keys: [Option<(&'a [u8], Bound<'py, PyString>)>; KEYS],
    /// The elements of the lists that are not complete, the outermost list first.
    items: Vec<Bound<'py, PyAny>>,
}

impl<'a, 'py> Reader<'a, 'py> {
    fn item(&mut self, depth: usize, place: Place) -> PyResult<Bound<'py, PyAny>> {
        let (first, argument) = self.head()?;
        match first >> 5 {
            0 => Ok(PyInt::new(self.py, argument).into_any()),
            1 => Ok(match i64::try_from(argument) {
                Ok(small) => PyInt::new(self.py, !small),
                Err(_) => PyInt::new(self.py, -1 - i128::from(argument)),
            }
            .into_any()),
            2 => self.bytes(argument, place),
            3 => Ok(PyString::from_bytes(self.py, self.take(argument)?)?.into_any()),
            4 => self.array(argument, self.inside(depth, argument)?, place),
            5 => self.map(argument, self.inside(depth, argument)?),
            6 => {
                let depth = self.inside(depth, 1)?;
                let place = match argument {
                    NAMED => Place::Tensor,
                    number if TYPED.contains(&number) => Place::Payload,
                    _ => Place::Other,
                };
                let content = self.item(depth, place)?;
                self.tag.call1((argument, content))
            }
            _ => self.simple(first, argument),
        }
    }

    fn head(&mut self) -> PyResult<(u8, u64)> {
        let &first = self.data.get(self.at).ok_or_else(refused)?;
        self.at += 1;
        let argument = match first & 31 {
            short @ 0..24 => u64::from(short),
            24 => u64::from(self.fixed::<1>()?[0]),
            25 => u64::from(u16::from_be_bytes(self.fixed()?)),
            26 => u64::from(u32::from_be_bytes(self.fixed()?)),
            27 => u64::from_be_bytes(self.fixed()?),
            _ => return Err(refused()),
        };
        Ok((first, argument))
    }

    fn fixed<const N: usize>(&mut self) -> PyResult<[u8; N]> {
        let found = self.data.get(self.at..).and_then(<[u8]>::first_chunk).ok_or_else(refused)?;
        self.at += N;
        Ok(*found)
    }

    fn take(&mut self, length: u64) -> PyResult<&'a [u8]> {
        let rest = self.data.get(self.at..).unwrap_or_default();
        let length = usize::try_from(length).map_err(|_| refused())?;
        let found = rest.get(..length).ok_or_else(refused)?;
        self.at += length;
        Ok(found)
    }

    /// The depth of `count` children. Each of them takes at least a byte.
    fn inside(&self, depth: usize, count: u64) -> PyResult<usize> {
        let left = (self.data.len() - self.at) as u64;
        if depth < self.max_depth && count <= left { Ok(depth + 1) } else { Err(refused()) }
    }

    fn bytes(&mut self, length: u64, place: Place) -> PyResult<Bound<'py, PyAny>> {
        let start = self.at;
        let content = self.take(length)?;
        match &self.view {
            Some(view) if place == Place::Payload && length >= MIN_VIEW => {
                let (start, end) = (isize::try_from(start)?, isize::try_from(self.at)?);
                view.get_item(PySlice::new(self.py, start, end, 1))
            }
            _ => Ok(PyBytes::new(self.py, content).into_any()),
        }
    }

    fn array(&mut self, count: u64, depth: usize, place: Place) -> PyResult<Bound<'py, PyAny>> {
        let before = self.items.len();
        for index in 0..count {
            let inside =
                if place == Place::Tensor && index == 3 { Place::Payload } else { Place::Other };
            let item = self.item(depth, inside)?;
            self.items.push(item);
        }
        Ok(PyList::new(self.py, self.items.drain(before..))?.into_any())
    }

    fn map(&mut self, count: u64, depth: usize) -> PyResult<Bound<'py, PyAny>> {
        let found = PyDict::new(self.py);
        for _ in 0..count {
            let key = self.key(depth)?;
            found.set_item(key, self.item(depth, Place::Other)?)?;
        }
        // Otherwise a key occurs twice.
        if found.len() as u64 == count { Ok(found.into_any()) } else { Err(refused()) }
    }

    fn key(&mut self, depth: usize) -> PyResult<Bound<'py, PyAny>> {
        let &first = self.data.get(self.at).ok_or_else(refused)?;
        match first >> 5 {
            3 => {
                let (_, length) = self.head()?;
                let content = self.take(length)?;
                Ok(self.text(content)?.into_any())
            }
            4..=6 => Err(refused()),
            _ => self.item(depth, Place::Other),
        }
    }

    fn text(&mut self, content: &'a [u8]) -> PyResult<Bound<'py, PyString>> {
        if content.len() > MAX_KEY {
            return PyString::from_bytes(self.py, content);
        }
        // FNV-1a. If two keys meet in a slot, each replaces the other.
        let hash = content.iter().fold(0x811c_9dc5_u32, |hash, &byte| {
            (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
        });
        let slot = &mut self.keys[hash as usize % KEYS];
        match slot {
            Some((known, text)) if *known == content => Ok(text.clone()),
            _ => {
                let text = PyString::from_bytes(self.py, content)?;
                *slot = Some((content, text.clone()));
                Ok(text)
            }
        }
    }

    fn simple(&self, first: u8, argument: u64) -> PyResult<Bound<'py, PyAny>> {
        let number = match first & 31 {
            20 | 21 => return Ok(PyBool::new(self.py, argument == 21).to_owned().into_any()),
            22 => return Ok(PyNone::get(self.py).to_owned().into_any()),
            #[expect(clippy::cast_possible_truncation, reason = "the argument has 2 bytes")]
            25 => half(argument as u16).ok_or_else(refused)?,
            #[expect(clippy::cast_possible_truncation, reason = "the argument has 4 bytes")]
            26 => f64::from(f32::from_bits(argument as u32)),
            27 => f64::from_bits(argument),
            _ => return Err(refused()),
        };
        Ok(PyFloat::new(self.py, number).into_any())
    }
}

/// A float of 16 bits; `None` if it is one of the unusual NaNs.
fn half(bits: u16) -> Option<f64> {
    let fraction = bits & 0x3ff;
    let magnitude = match (bits >> 10 & 31, fraction) {
        (0, _) => f64::from(fraction) * 2f64.powi(-24),
        (31, 0) => f64::INFINITY,
        (31, _) => return (bits == 0x7e00).then_some(f64::NAN),
        (exponent, _) => f64::from(1024 + fraction) * 2f64.powi(i32::from(exponent) - 25),
    };
    Some(if bits >> 15 == 0 { magnitude } else { -magnitude })
}

fn refused() -> PyErr {
    PyValueError::new_err("this item is not read here")
}
