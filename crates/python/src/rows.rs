//! From columns to the rows of them.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

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

/// A dict for each row of some columns, which are lists of one length. Values that are `absent` are left out.
#[pyfunction]
pub(crate) fn structs<'py>(
    names: &Bound<'py, PyTuple>,
    columns: &Bound<'py, PyList>,
    count: usize,
    absent: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyList>> {
    let py = names.py();
    let columns =
        columns.iter().map(Bound::cast_into).collect::<Result<Vec<Bound<'py, PyList>>, _>>()?;
    let names: Vec<_> = names.iter().collect();
    let rows = PyList::empty(py);
    for row in 0..count {
        let fields = PyDict::new(py);
        for (name, column) in names.iter().zip(&columns) {
            let value = column.get_item(row)?;
            if !value.is(absent) {
                fields.set_item(name, value)?;
            }
        }
        rows.append(fields)?;
    }
    Ok(rows)
}
