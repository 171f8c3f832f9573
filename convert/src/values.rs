//! What formats share whose files are values, one after the other.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use crate::honest::Honest;
use tenarc::io::open_file;
use tenarc::{Archive, Error, Result, Value};

use super::made;
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
    let losses = put::<F>(value, &mut out)?;
    losses.check(options.accept_losses, NOT_COUNTED)?;
    out.flush().map_err(Error::io)?;
    Ok(losses)
}

fn put<F: WriteValue>(value: &dyn Stored, out: &mut dyn Write) -> Result<Losses> {
    F::write(out, &|range| value.decode(range), &Saved::of(value)?)
}

/// Converts an archive to a file of one value for each segment, with `end` behind it. What was written is
/// given to `check`, with the number of values.
pub fn from_archive<F: WriteValue>(
    from: &Path,
    to: &Path,
    options: &Options,
    end: &[u8],
    check: impl FnOnce(&File, u64) -> Result<()>,
) -> Result<Losses> {
    let archive = Archive::new(open_file(from)?.0).map_err(|error| error.in_file(from))?;
    let write = |out: &mut dyn Write| {
        let mut losses = Losses::default();
        for segment in archive.segments() {
            losses.extend(put::<F>(&segment?, out)?);
            out.write_all(end).map_err(Error::io)?;
        }
        losses.check(options.accept_losses, NOT_COUNTED)?;
        Ok(losses)
    };
    made::file(
        to,
        options.sync,
        |out| write(out).map_err(|error: Error| error.in_file(from)),
        |file, _| check(file, archive.len()),
    )
}
