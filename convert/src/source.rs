//! Reading pieces of a file: borrowed from memory, or copied out of what reads at positions.

use std::borrow::Cow;

use tenarc::io::ReadAt;
use tenarc::{Error, Result};

use crate::support::{read_some, reserve};

/// A length as one in memory.
pub fn in_memory(len: u64, at: u64) -> Result<usize> {
    usize::try_from(len)
        .ok()
        .filter(|&len| isize::try_from(len).is_ok())
        .ok_or_else(|| Error::limit(format!("{len} bytes do not fit memory")).at(at))
}

/// Fills `out` from `offset` on, however little each read gives.
pub fn read_exact<S: ReadAt + ?Sized>(source: &S, out: &mut [u8], offset: u64) -> Result<()> {
    fill(source, out, offset, " of the file")
}

/// As [`read_exact`]; `whole` ends the error where the input ends.
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

/// `len` bytes from `offset` on, which the file is long enough for.
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

/// `len` bytes of the contents of a file.
pub fn slice(contents: &[u8], offset: u64, len: usize) -> Result<&[u8]> {
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    let found = contents.get(start..).and_then(|rest| rest.get(..len));
    found.ok_or_else(|| Error::eof(&format!("{len} bytes of the file")).at(offset))
}
