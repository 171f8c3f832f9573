//! Code shared by the formats whose files hold values one after the other: JSON and MessagePack.

use std::io::{self, Write};

use crate::honest::Honest;
use tenarc::{Error, Result, Value};

use super::options::Options;
use super::saved::{Fetch, Saved, Tree, nowhere};
use crate::{Losses, Stored};

/// Reads value after value.
pub trait ReadValues {
    /// Reads the next value. `None` at the end.
    fn next_value(&mut self) -> Result<Option<Value>>;

    /// Returns the offset of the next value.
    fn at(&self) -> u64;
}

/// Reads a single value, after which the input must end. `what` names the value in errors.
pub fn only(mut values: impl ReadValues, what: &str) -> Result<Value> {
    let value = values.next_value()?.ok_or_else(|| Error::eof(what).at(0))?;
    let at = values.at();
    match values.next_value() {
        Ok(None) => Ok(value),
        _ => Err(Error::syntax(format!("expected the end of the input after {what}")).at(at)),
    }
}

/// An iterator over values. It ends after an error, because it is not known then where the next value starts.
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

/// The head of an array or map of CBOR with so many elements or entries.
pub fn head(is_map: bool, len: u64) -> Vec<u8> {
    let major = if is_map { 0xa0 } else { 0x80 };
    let [.., a, b, c, d] = len.to_be_bytes();
    match len {
        0..=23 => vec![major + d],
        24..=0xff => vec![major + 24, d],
        0x100..=0xffff => vec![major + 25, c, d],
        0x1_0000..=0xffff_ffff => vec![major + 26, a, b, c, d],
        _ => [&[major + 27][..], &len.to_be_bytes()].concat(),
    }
}

/// A format that can write values. `write` returns what was lost, and the number of tensors that were kept, for
/// [`Losses::check`].
pub trait WriteValue {
    fn write<T: Tree>(out: &mut dyn Write, fetch: &Fetch<'_>, value: &T)
    -> Result<(Losses, usize)>;
}

/// Writes a value, if nothing is lost or the options accept losses. Returns what was lost.
pub fn write<F: WriteValue>(
    writer: impl Write,
    value: &Value,
    options: &Options,
) -> Result<Losses> {
    let (losses, kept) = F::write(&mut io::sink(), &nowhere, value)?;
    losses.check(options.accept_losses, kept)?;
    let mut out = io::BufWriter::new(Honest::new(writer));
    F::write(&mut out, &nowhere, value)?;
    out.flush().map_err(Error::io)?;
    Ok(losses)
}

/// Writes a value of which one tensor at a time is in memory. Returns what was lost, if the options accept losses.
pub fn export<F: WriteValue>(
    value: &dyn Stored,
    writer: impl Write,
    options: &Options,
) -> Result<Losses> {
    value.verify_unread()?;
    let mut out = io::BufWriter::new(Honest::new(writer));
    let mut losses = value.lost();
    let (lost, kept) = F::write(&mut out, &|range| value.decode(range), &Saved::of(value)?)?;
    losses.extend(lost);
    losses.check(options.accept_losses, kept)?;
    out.flush().map_err(Error::io)?;
    Ok(losses)
}
