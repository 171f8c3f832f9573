//! From a tree of items to values.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyType};

use crate::faults;

/// The deepest nesting here. What is deeper, the package resolves itself.
const MAX_DEPTH: usize = 128;

/// Replaces the nodes in a list or dict that are no plain values by what `value` makes of them. The list or dict is
/// changed, and returned. If a key is no plain value, `map` makes another dict instead. `deep` is for what is nested
/// deeply.
///
/// The steps to the place of a `fault` are added to it.
#[pyfunction]
pub(crate) fn resolve<'py>(
    node: Bound<'py, PyAny>,
    value: Bound<'py, PyAny>,
    map: Bound<'py, PyAny>,
    deep: Bound<'py, PyAny>,
    fault: Bound<'py, PyType>,
) -> PyResult<Bound<'py, PyAny>> {
    let found = Resolver { value, map, deep, fault }.replacement(&node, 0)?;
    Ok(found.unwrap_or(node))
}

struct Resolver<'py> {
    value: Bound<'py, PyAny>,
    map: Bound<'py, PyAny>,
    deep: Bound<'py, PyAny>,
    fault: Bound<'py, PyType>,
}

impl<'py> Resolver<'py> {
    /// What comes in place of a node; `None` if the node itself stays.
    fn replacement(
        &self,
        node: &Bound<'py, PyAny>,
        depth: usize,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        if is_plain(node) {
            Ok(None)
        } else if depth == MAX_DEPTH {
            self.deep.call1((node,)).map(Some)
        } else if let Ok(list) = node.cast_exact::<PyList>() {
            self.list(list, depth)?;
            Ok(None)
        } else if let Ok(dict) = node.cast_exact::<PyDict>() {
            self.dict(dict, depth)
        } else {
            self.value.call1((node,)).map(Some)
        }
    }

    fn list(&self, list: &Bound<'py, PyList>, depth: usize) -> PyResult<()> {
        for index in 0..list.len() {
            let found = self.replacement(&list.get_item(index)?, depth + 1).map_err(|error| {
                let name = PyString::new(list.py(), &index.to_string()).into_any();
                faults::at(list.py(), error, &self.fault, index, Some(name))
            })?;
            if let Some(found) = found {
                list.set_item(index, found)?;
            }
        }
        Ok(())
    }

    fn dict(&self, dict: &Bound<'py, PyDict>, depth: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
        // First all that is not plain: no code of Python runs while the dict is iterated, which could change it.
        let mut rest = Vec::new();
        for (index, (key, item)) in dict.iter().enumerate() {
            if !is_plain(&key) {
                return self.map.call1((dict,)).map(Some);
            }
            if !is_plain(&item) {
                rest.push((index, key, item));
            }
        }
        for (index, key, item) in rest {
            match self.replacement(&item, depth + 1) {
                Ok(None) => {}
                Ok(Some(found)) => dict.set_item(key, found)?,
                Err(error) => {
                    let name = key.str()?.into_any();
                    return Err(faults::at(
                        dict.py(),
                        error,
                        &self.fault,
                        2 * index + 1,
                        Some(name),
                    ));
                }
            }
        }
        Ok(None)
    }
}

/// Whether an object has exactly one of the types that the package calls plain.
pub(crate) fn is_plain(node: &Bound<'_, PyAny>) -> bool {
    node.is_exact_instance_of::<PyString>()
        || node.is_exact_instance_of::<PyInt>()
        || node.is_exact_instance_of::<PyFloat>()
        || node.is_exact_instance_of::<PyBool>()
        || node.is_none()
        || node.is_exact_instance_of::<PyBytes>()
}
