//! From Python objects to CBOR.

use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};

use crate::faults;
use crate::resolve::is_plain;

/// The deepest nesting here. What is deeper, the package writes itself.
const MAX_DEPTH: usize = 128;

const UNSIGNED: u8 = 0;
const NEGATIVE: u8 = 1;
const BYTES: u8 = 2;
const TEXT: u8 = 3;
const ARRAY: u8 = 4;
const MAP: u8 = 5;

/// Writes a value that is nested `depth` levels deep to the list `encoder.out`.
///
/// What is no plain value, list or dict, `encoder.other` writes, and also what cannot be written: it raises the
/// error. The steps to the place of a `fault` are added to it.
#[pyfunction]
pub(crate) fn write<'py>(
    encoder: &Bound<'py, PyAny>,
    value: &Bound<'py, PyAny>,
    depth: usize,
    fault: Bound<'py, PyType>,
) -> PyResult<()> {
    let py = encoder.py();
    let mut writer = Writer {
        out: encoder.getattr("out")?.cast_into()?,
        other: encoder.getattr("other")?,
        max_depth: encoder.getattr("max_depth")?.extract::<usize>()?.min(MAX_DEPTH),
        inline_below: encoder.getattr("inline_below")?.extract()?,
        fault,
        bytes: Vec::new(),
        waiting: Vec::new(),
    };
    writer.value(py, value, depth)?;
    writer.flush(py)
}

struct Writer<'py> {
    out: Bound<'py, PyList>,
    other: Bound<'py, PyAny>,
    max_depth: usize,
    /// The length from which on byte strings may be in buffers.
    inline_below: f64,
    fault: Bound<'py, PyType>,
    /// What has been written, and is not in `out`.
    bytes: Vec<u8>,
    /// The keys and values of the dicts that are not complete, the outermost dict first.
    waiting: Vec<Bound<'py, PyAny>>,
}

impl<'py> Writer<'py> {
    fn value(&mut self, py: Python<'py>, value: &Bound<'py, PyAny>, depth: usize) -> PyResult<()> {
        if let Ok(text) = value.cast_exact::<PyString>() {
            match text.to_str() {
                Ok(text) => self.string(TEXT, text.as_bytes()),
                // Half of a pair of surrogates.
                Err(_) => self.leave(py, value, depth),
            }
        } else if value.is_exact_instance_of::<PyInt>() {
            if let Ok(small) = value.extract::<i64>() {
                let (major, argument) =
                    if small < 0 { (NEGATIVE, !small) } else { (UNSIGNED, small) };
                self.head(major, argument.cast_unsigned())
            } else if let Ok(large) = value.extract::<u64>() {
                self.head(UNSIGNED, large)
            } else {
                self.leave(py, value, depth)
            }
        } else if let Ok(number) = value.cast_exact::<PyFloat>() {
            self.reserve(9)?;
            self.bytes.push(0xfb);
            self.bytes.extend_from_slice(&number.value().to_be_bytes());
            Ok(())
        } else if let Ok(boolean) = value.cast_exact::<PyBool>() {
            self.push(if boolean.is_true() { 0xf5 } else { 0xf4 })
        } else if value.is_none() {
            self.push(0xf6)
        } else if let Ok(list) = value.cast_exact::<PyList>() {
            self.sequence(py, value, list.len(), depth, |index| list.get_item(index))
        } else if let Ok(tuple) = value.cast_exact::<PyTuple>() {
            self.sequence(py, value, tuple.len(), depth, |index| tuple.get_item(index))
        } else if let Ok(dict) = value.cast_exact::<PyDict>() {
            self.dict(py, dict, depth)
        } else {
            self.byte_string_or_other(py, value, depth)
        }
    }

    fn byte_string_or_other(
        &mut self,
        py: Python<'py>,
        value: &Bound<'py, PyAny>,
        depth: usize,
    ) -> PyResult<()> {
        #[expect(clippy::cast_precision_loss, reason = "the limit is much shorter, or infinite")]
        match value.cast_exact::<PyBytes>() {
            Ok(bytes) if (bytes.as_bytes().len() as f64) < self.inline_below => {
                self.string(BYTES, bytes.as_bytes())
            }
            _ => self.leave(py, value, depth),
        }
    }

    fn sequence(
        &mut self,
        py: Python<'py>,
        value: &Bound<'py, PyAny>,
        count: usize,
        depth: usize,
        item: impl Fn(usize) -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        if depth >= self.max_depth {
            return self.leave(py, value, depth);
        }
        self.head(ARRAY, count as u64)?;
        for index in 0..count {
            self.value(py, &item(index)?, depth + 1).map_err(|error| {
                let name = PyString::new(py, &index.to_string()).into_any();
                faults::at(py, error, &self.fault, index, Some(name))
            })?;
        }
        Ok(())
    }

    fn dict(&mut self, py: Python<'py>, dict: &Bound<'py, PyDict>, depth: usize) -> PyResult<()> {
        if depth >= self.max_depth {
            return self.leave(py, dict, depth);
        }
        let before = self.waiting.len();
        // First all of them: no code of Python runs while the dict is iterated, which could change it.
        for (key, item) in dict {
            if !is_plain(&key) {
                self.waiting.truncate(before);
                return self.leave(py, dict, depth);
            }
            self.waiting.extend([key, item]);
        }
        self.head(MAP, dict.len() as u64)?;
        for child in (before..self.waiting.len()).step_by(2) {
            let (key, item) = (self.waiting[child].clone(), self.waiting[child + 1].clone());
            let child = child - before;
            let written = self.value(py, &key, depth + 1);
            written.map_err(|error| faults::at(py, error, &self.fault, child, None))?;
            if let Err(error) = self.value(py, &item, depth + 1) {
                let name = key.str()?.into_any();
                return Err(faults::at(py, error, &self.fault, child + 1, Some(name)));
            }
        }
        self.waiting.truncate(before);
        Ok(())
    }

    /// Leaves a value to the package.
    fn leave(&mut self, py: Python<'py>, value: &Bound<'py, PyAny>, depth: usize) -> PyResult<()> {
        self.flush(py)?;
        self.other.call1((value, depth))?;
        Ok(())
    }

    fn flush(&mut self, py: Python<'py>) -> PyResult<()> {
        if !self.bytes.is_empty() {
            self.out.append(PyBytes::new(py, &self.bytes))?;
            self.bytes.clear();
        }
        Ok(())
    }

    fn string(&mut self, major: u8, content: &[u8]) -> PyResult<()> {
        self.head(major, content.len() as u64)?;
        self.reserve(content.len())?;
        self.bytes.extend_from_slice(content);
        Ok(())
    }

    fn head(&mut self, major: u8, argument: u64) -> PyResult<()> {
        self.reserve(9)?;
        let bytes = argument.to_be_bytes();
        let (info, from) = match argument {
            0..24 => (bytes[7], 8),
            24..0x100 => (24, 7),
            0x100..0x1_0000 => (25, 6),
            0x1_0000..0x1_0000_0000 => (26, 4),
            _ => (27, 0),
        };
        self.bytes.push(major << 5 | info);
        self.bytes.extend_from_slice(&bytes[from..]);
        Ok(())
    }

    fn push(&mut self, byte: u8) -> PyResult<()> {
        self.reserve(1)?;
        self.bytes.push(byte);
        Ok(())
    }

    /// Without memory, this is an error rather than the end of the process.
    fn reserve(&mut self, count: usize) -> PyResult<()> {
        self.bytes
            .try_reserve(count)
            .map_err(|_| PyMemoryError::new_err("there is no memory for what is written"))
    }
}
