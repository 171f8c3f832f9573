//! Loops over readers and writers, and other functions that are too small for modules of their own.

use std::io;
use std::path::Path;

use tenarc::de::Limits;
use tenarc::error::Advice;
#[cfg(any(feature = "msgpack", feature = "npy"))]
use tenarc::error::Category;
use tenarc::{Error, Result};

/// The number of bytes that are read and hashed at once, so that they are hashed while they are in cache. Also how much
/// memory is allocated first for a length that the input only claims.
pub const STEP: usize = 256 << 10;

/// The number of bytes that are hashed and then written at once. Long writes are less work for a file system than short
/// ones, and so many bytes still fit into the last-level cache.
pub const WRITE_STEP: usize = 4 << 20;

/// How many bytes one document may allocate by default, if the length of the input does not limit it. tenarc has the
/// same default.
const READER_ALLOC: u64 = 16 << 30;

/// Returns whether an error is about one array, which other readers may read: the file is not damaged.
#[cfg(any(feature = "msgpack", feature = "npy"))]
pub fn is_of_array(error: &Error) -> bool {
    matches!(error.category(), Category::Data | Category::Mismatch | Category::Unsupported)
}

/// Returns the error if a file has no tensor of this name.
#[cfg(any(feature = "gguf", feature = "hdf5", feature = "safetensors", feature = "torch"))]
#[cold]
pub fn no_tensor_named(name: &str) -> Error {
    Error::not_found(format!("there is no tensor named `{}`", name.escape_debug()))
}

/// Returns the error if a document needs more memory than its limits allow.
pub fn over_memory(what: impl Into<String>) -> Error {
    Error::limit(what).with_advice(Advice::MaxAlloc)
}

/// Returns how many bytes one document may allocate.
pub fn alloc_budget(limits: Limits, input_is_in_memory: bool) -> u64 {
    limits.max_alloc().unwrap_or(if input_is_in_memory { u64::MAX } else { READER_ALLOC })
}

/// Returns a little-endian integer, in two's complement if it is signed. No bytes are 0. `None` if it has more than 16.
#[cfg(any(feature = "hdf5", feature = "torch"))]
pub fn integer_of(bytes: &[u8], is_signed: bool) -> Option<i128> {
    let is_negative = is_signed && bytes.last().is_some_and(|last| last >> 7 == 1);
    let mut wide = if is_negative { [0xff; 16] } else { [0; 16] };
    wide.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(i128::from_le_bytes(wide))
}

/// Calls a reader once, and again if it was interrupted. Fails if it claims to have read more than `out` can hold.
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

/// Fills `out`, or a part of it if the reader ends before. Returns the number of bytes read.
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

/// Reserves memory for more values. Fails if there is not enough.
pub fn reserve<T>(values: &mut Vec<T>, additional: usize) -> Result<()> {
    values.try_reserve(additional).map_err(|_| {
        let bytes = additional.saturating_mul(size_of::<T>());
        Error::limit(format!("out of memory: cannot allocate {bytes} bytes to read into"))
    })
}

/// Writes all slices, with as few calls of the writer as it allows.
pub fn write_slices<W: io::Write + ?Sized>(
    writer: &mut W,
    mut slices: &mut [io::IoSlice<'_>],
) -> Result<()> {
    let mut left = slices.iter().map(|slice| slice.len()).sum::<usize>();
    // Removes empty slices at the front.
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

/// Reverses the bytes of each word.
pub fn swap_words(bytes: &mut [u8], width: usize) {
    if width > 1 {
        for word in bytes.chunks_exact_mut(width) {
            word.reverse();
        }
    }
}

/// Returns the directory that a file is in.
pub fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
