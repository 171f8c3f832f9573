//! Errors of candle, as errors of tenarc.

use tenarc::Error;

pub fn of_candle(error: &candle_core::Error) -> Error {
    Error::data(error.to_string())
}
