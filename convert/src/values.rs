//! What formats share whose files are values, one after the other.

use std::io::{self, Write};

use crate::honest::Honest;
use tenarc::{Error, Result, Value};

use super::options::Options;
use super::saved::{Fetch, Saved, Tree, nowhere};
use crate::{Losses, Stored};

/// Reads value after value.
pub trait ReadValues {
    /// The next value; none at the end.
    fn next_value(&mut self) -> Result<Option<Value>>;

    /// Where the next one starts.
    fn at(&self) -> u64;
}

/// The one value, which must be all there is; `what` it is.
pub fn only(mut values: impl ReadValues, what: &str) -> Result<Value> {
    let value = values.next_value()?.ok_or_else(|| Error::eof(what).at(0))?;
    let at = values.at();
    match values.next_value() {
        Ok(None) => Ok(value),
        _ => Err(Error::syntax(format!("expected the end behind {what}")).at(at)),
    }
}

/// Values up to the first error, behind which nothing is known of what follows.
pub struct Each<R>(Option<R>);

impl<R> Each<R> {
    pub fn new(values: R) -> Self {
        Self(Some(values))
    }

    pub fn is_ended(&self) -> bool {
        self.0.is_none()
    }
}

impl<R: ReadValues> Iterator for Each<R> {
    type Item = Result<Value>;

    fn next(&mut self) -> Option<Result<Value>> {
        let next = self.0.as_mut()?.next_value().transpose();
        if !matches!(next, Some(Ok(_))) {
            self.0 = None;
        }
        next
    }
}

/// Tensors that are kept: a value without any is still a value.
const NOT_COUNTED: usize = usize::MAX;

/// Writes values; what is lost of each.
pub trait WriteValue {
    fn write<T: Tree>(out: &mut dyn Write, fetch: &Fetch<'_>, value: &T) -> Result<Losses>;
}

/// Writes a value, if it can be kept or losses are accepted; what was lost.
pub fn write<F: WriteValue>(
    writer: impl Write,
    value: &Value,
    options: &Options,
) -> Result<Losses> {
    F::write(&mut io::sink(), &nowhere, value)?.check(options.accept_losses, NOT_COUNTED)?;
    let mut out = io::BufWriter::new(Honest::new(writer));
    let losses = F::write(&mut out, &nowhere, value)?;
    out.flush().map_err(Error::io)?;
    Ok(losses)
}

/// Writes a value, one tensor at a time in memory; what was lost, if that is accepted.
pub fn export<F: WriteValue>(
    value: &dyn Stored,
    writer: impl Write,
    options: &Options,
) -> Result<Losses> {
    let mut out = io::BufWriter::new(Honest::new(writer));
    let mut losses = value.lost();
    losses.extend(F::write(&mut out, &|range| value.decode(range), &Saved::of(value)?)?);
    losses.check(options.accept_losses, NOT_COUNTED)?;
    out.flush().map_err(Error::io)?;
    Ok(losses)
}
