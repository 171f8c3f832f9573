//! From columns to the rows of them.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};

/// The texts in UTF-8 between each edge and the next. `edges` are integers of 64 bits, little-endian.
#[pyfunction]
pub(crate) fn texts<'py>(
    data: &Bound<'py, PyBytes>,
    edges: &Bound<'py, PyBytes>,
) -> PyResult<Bound<'py, PyList>> {
    let (edges, _) = edges.as_bytes().as_chunks();
    let edge = |bytes| usize::try_from(i64::from_le_bytes(bytes));
    let mut rows = Vec::with_capacity(edges.len());
    for pair in edges.windows(2) {
        let text = data.as_bytes().get(edge(pair[0])?..edge(pair[1])?);
        let text = text.ok_or_else(|| PyValueError::new_err("an edge outside of the data"))?;
        rows.push(PyString::from_bytes(data.py(), text)?);
    }
    PyList::new(data.py(), rows)
}
