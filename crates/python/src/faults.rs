//! The path of an error.

use pyo3::prelude::*;
use pyo3::types::PyType;

/// Adds a step to a `Fault` of the package while it propagates, as the package does itself: the number of the child,
/// and its name in a path.
pub(crate) fn at<'py>(
    py: Python<'py>,
    error: PyErr,
    fault: &Bound<'py, PyType>,
    child: usize,
    name: Option<Bound<'py, PyAny>>,
) -> PyErr {
    let value = error.value(py);
    let added = value.is_instance(fault).and_then(|is_fault| {
        if is_fault {
            value.call_method1("at", (child, name))?;
        }
        Ok(())
    });
    added.err().unwrap_or(error)
}
