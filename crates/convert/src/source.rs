//! Reads parts of a file: borrows them if the file is in memory, and copies them otherwise.

use std::borrow::Cow;
use std::ops::Range;

use tenarc::io::ReadAt;
use tenarc::tensor::TensorMeta;
use tenarc::{DynTensor, Error, Result};

use crate::support::{STEP, read_some, reserve};

/// Converts a length to that of a slice. Fails if no slice can be so long.
pub fn in_memory(len: u64, at: u64) -> Result<usize> {
    usize::try_from(len)
        .ok()
        .filter(|&len| isize::try_from(len).is_ok())
        .ok_or_else(|| Error::limit(format!("{len} bytes do not fit in memory")).at(at))
}

/// Fills `out` with the bytes of a file from `offset` on, with as many reads as that takes.
pub fn read_exact<S: ReadAt + ?Sized>(source: &S, out: &mut [u8], offset: u64) -> Result<()> {
    fill(source, out, offset, " of the file")
}

/// Like [`read_exact`]. `whole` is the end of the message if the source is too short, for example ` of the file`.
pub fn fill<S: ReadAt + ?Sized>(
    source: &S,
    out: &mut [u8],
    offset: u64,
    whole: &str,
) -> Result<()> {
    let mut done = 0;
    while let Some(rest) = out.get_mut(done..).filter(|rest| !rest.is_empty()) {
        let at = offset.saturating_add(done as u64);
        let missing = rest.len();
        match read_some(rest, |rest| source.read_at(rest, at)) {
            Ok(0) => return Err(Error::eof(&format!("{missing} more bytes{whole}")).at(at)),
            Ok(n) => done += n,
            Err(error) => return Err(Error::io(error).at(at)),
        }
    }
    Ok(())
}

/// Returns `len` bytes from `offset` on. Memory for them is allocated at once, so the file must be known to be long
/// enough.
pub fn bytes<S: ReadAt + ?Sized>(source: &S, offset: u64, len: u64) -> Result<Cow<'_, [u8]>> {
    let len = in_memory(len, offset)?;
    if let Some(contents) = source.contents() {
        return slice(contents, offset, len).map(Cow::Borrowed);
    }
    let mut bytes = Vec::new();
    reserve(&mut bytes, len)?;
    bytes.resize(len, 0);
    read_exact(source, &mut bytes, offset)?;
    Ok(Cow::Owned(bytes))
}

/// Reads a range in steps, and calls `each` with the bytes and the offset of each step. The file must be long enough.
pub fn in_steps<S: ReadAt + ?Sized>(
    source: &S,
    Range { start: mut at, end }: Range<u64>,
    mut each: impl FnMut(&[u8], u64) -> Result<()>,
) -> Result<()> {
    while at < end {
        let step = bytes(source, at, (end - at).min(STEP as u64))?;
        each(&step, at)?;
        at = at.saturating_add(step.len() as u64);
    }
    Ok(())
}

/// Reads a tensor directly into its memory, which is not limited: the file must be known to be long enough.
pub fn tensor<S: ReadAt + ?Sized>(source: &S, meta: TensorMeta, start: u64) -> Result<DynTensor> {
    let mut at = start;
    let tensor = DynTensor::read_with(meta, usize::MAX, |step| {
        read_exact(source, step, at)?;
        at = at.saturating_add(step.len() as u64);
        Ok(())
    });
    tensor.map_err(|error| error.at(start))
}

/// Returns `len` bytes of the contents of a file, from `offset` on.
pub fn slice(contents: &[u8], offset: u64, len: usize) -> Result<&[u8]> {
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    let found = contents.get(start..).and_then(|rest| rest.get(..len));
    found.ok_or_else(|| Error::eof(&format!("{len} bytes of the file")).at(offset))
}
