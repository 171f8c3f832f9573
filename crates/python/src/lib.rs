//! Makes the slow parts of tenarc's Python package fast.
//!
//! The package in `python/` works without this module, and is the only place that knows what values mean. Here are
//! loops over plain values: items to objects and back. Whatever a loop does not know, and whatever is wrong, it
//! leaves to the package. So results and errors are the same with and without it.

mod faults;
mod read;
mod resolve;
mod rows;
mod write;

/// What the package calls.
#[pyo3::pymodule]
mod tenarc_accelerator {
    #[pymodule_export]
    use crate::read::parse;
    #[pymodule_export]
    use crate::resolve::resolve;
    #[pymodule_export]
    use crate::rows::{structs, texts};
    #[pymodule_export]
    use crate::write::write;

    /// The package uses only a module with the number that it knows. It changes with the functions above.
    #[pymodule_export]
    const INTERFACE: u32 = 1;
}
