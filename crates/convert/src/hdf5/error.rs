//! Errors of the crate that reads HDF5, as errors of tenarc.

use crate::support::over_memory;
use hdf5_reader::error::Error as Hdf5Error;
use tenarc::Error;
use tenarc::error::Category;

/// Converts an error of the crate that reads the format.
pub fn failed(error: Hdf5Error) -> Error {
    let message = error.to_string();
    let mut innermost = error;
    // The message has the objects around it.
    while let Hdf5Error::Context { source, .. } = innermost {
        innermost = *source;
    }
    match innermost {
        Hdf5Error::Io(error) => Error::io(error),
        Hdf5Error::ResourceLimit(_) => over_memory(message),
        Hdf5Error::InvalidMagic => Error::data(message),
        other if is_unsupported(&other) => Error::unsupported(message),
        _ => Error::damaged(message),
    }
}

/// Returns an error of the crate without the objects in which it occurred.
pub fn innermost(mut error: &Hdf5Error) -> &Hdf5Error {
    while let Hdf5Error::Context { source, .. } = error {
        error = source;
    }
    error
}

/// Whether an error costs only the object in which it occurred. After another one, no object can be read.
pub fn is_of_object(error: &Error) -> bool {
    !matches!(error.category(), Category::Io | Category::Limit)
}

/// Whether a file uses what the crate does not know. It is not damaged then. There are many variants for that.
pub fn is_unsupported(error: &Hdf5Error) -> bool {
    error.to_string().starts_with("unsupported")
}
