//! Loops over readers and writers, and what else is too small for a module of its own.

use std::io;
use std::path::Path;

use tenarc::de::Limits;
use tenarc::{Error, Result};

/// How much is read and hashed at once: it stays in cache in between. So much memory is asked for at once
/// for bytes that are only claimed, too.
pub const STEP: usize = 256 << 10;

/// How much is hashed and then written at once. File systems take long writes with less work than
/// short ones; the last cache still holds so much.
pub const WRITE_STEP: usize = 4 << 20;

/// What one document may allocate by default, if the input does not bound it: as in tenarc.
const READER_ALLOC: u64 = 16 << 30;

/// How many bytes one document may allocate.
pub fn alloc_budget(limits: Limits, input_is_in_memory: bool) -> u64 {
    limits.max_alloc().unwrap_or(if input_is_in_memory { u64::MAX } else { READER_ALLOC })
}

/// One successful call of a reader: again where it was interrupted, and no more than there is room for.
pub fn read_some(
    out: &mut [u8],
    mut read: impl FnMut(&mut [u8]) -> io::Result<usize>,
) -> io::Result<usize> {
    loop {
        match read(out) {
            Ok(n) if n <= out.len() => return Ok(n),
            Ok(n) => {
                let what = format!("reader claims to have read {n} bytes of {}", out.len());
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Fills `out`, or as much of it as there is.
pub fn read_all<R: io::Read + ?Sized>(reader: &mut R, out: &mut [u8]) -> Result<usize> {
    let mut done = 0;
    while let Some(rest) = out.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match read_some(rest, |rest| reader.read(rest)).map_err(Error::io)? {
            0 => break,
            n => done += n,
        }
    }
    Ok(done)
}

/// Makes room for more values; an error where there is no memory.
pub fn reserve<T>(values: &mut Vec<T>, additional: usize) -> Result<()> {
    values.try_reserve(additional).map_err(|_| {
        let bytes = additional.saturating_mul(size_of::<T>());
        Error::limit(format!("out of memory: {bytes} more bytes to read"))
    })
}

/// Writes all slices, in as few calls as the writer takes.
pub fn write_slices<W: io::Write + ?Sized>(
    writer: &mut W,
    mut slices: &mut [io::IoSlice<'_>],
) -> Result<()> {
    let mut left = slices.iter().map(|slice| slice.len()).sum::<usize>();
    // Those in front that are empty.
    io::IoSlice::advance_slices(&mut slices, 0);
    while left > 0 {
        match writer.write_vectored(slices) {
            Ok(0) => return Err(Error::io(io::ErrorKind::WriteZero.into())),
            Ok(n) if n <= left => {
                io::IoSlice::advance_slices(&mut slices, n);
                left -= n;
            }
            Ok(n) => {
                let what = format!("writer claims to have written {n} bytes of {left}");
                return Err(Error::io(io::Error::new(io::ErrorKind::InvalidData, what)));
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::io(error)),
        }
    }
    Ok(())
}

/// Turns round the bytes of each word.
pub fn swap_words(bytes: &mut [u8], width: usize) {
    if width > 1 {
        for word in bytes.chunks_exact_mut(width) {
            word.reverse();
        }
    }
}

/// The directory that a file is in.
pub fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
