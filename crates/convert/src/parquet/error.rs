//! Errors of the library that reads and writes Parquet, as errors of tenarc.

use parquet::errors::ParquetError;
use tenarc::Error;

/// Converts an error of the library that occurred while it read a file.
pub fn failed(error: ParquetError) -> Error {
    converted(error, Error::damaged)
}

/// Converts an error of the library that occurred while it wrote a file.
pub fn not_written(error: ParquetError) -> Error {
    converted(error, Error::data)
}

/// Converts an error of the library. `other` makes an error of a message of any other kind.
fn converted(error: ParquetError, other: fn(String) -> Error) -> Error {
    match error {
        ParquetError::External(error) => match error.downcast::<std::io::Error>() {
            // Errors of a header come through the reader, whose errors are of this type.
            Ok(error) => error.downcast::<Error>().unwrap_or_else(Error::io),
            Err(error) => match error.downcast::<Error>() {
                Ok(error) => *error,
                Err(error) => other(error.to_string()),
            },
        },
        ParquetError::EOF(what) => {
            Error::damaged(format!("the Parquet file is cut or damaged: {what}"))
        }
        ParquetError::NYI(what) => Error::unsupported(format!("not supported: {what}")),
        // Codecs and encryption that this build lacks have no variants of their own.
        ParquetError::General(what)
            if what.starts_with("Disabled feature") || what.contains("encrypt") =>
        {
            Error::unsupported(format!("not supported: {what}"))
        }
        error => other(error.to_string()),
    }
}
