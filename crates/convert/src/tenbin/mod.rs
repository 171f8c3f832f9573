//! Reads and writes webdataset's tenbin files (`.ten`): arrays one after the other, each with a name of up to eight
//! letters.
//!
//! This module reads all files that the Python library `webdataset.tenbin` writes, and writes the same bytes. It also
//! reads and writes `u4` (`u32`), which the Python library cannot because of a misspelled name. It refuses some damaged
//! files that the library reads: those with padding that is cut short or not zero, with dimensions that are negative or
//! do not fit the bytes, or with a rank that does not fit the header.
//!
//! A file has no header and no end mark. So files can be concatenated, and arrays can be appended to a file.
//!
//! ```
//! use ndarray::{Array2, array};
//! use tenarc_convert::tenbin;
//!
//! # let dir = std::env::temp_dir().join(format!("tenarc-doc-tenbin-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir)?;
//! # let path = dir.join("batch.ten");
//! let batch = [("images", array![[0.5f32, 1.0], [0.0, 0.25]])];
//! tenbin::save(&path, &batch)?;
//!
//! for (name, array) in tenbin::load(&path)? {
//!     println!("{name} {} {:?}", array.dtype(), array.shape());
//!     assert_eq!(array.view::<f32>()?, batch[0].1.view().into_dyn());
//! }
//! # std::fs::remove_dir_all(&dir)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | Python | here |
//! |---|---|
//! | `write(stream, arrays, infos)` | [`write()`] |
//! | `read(stream)` | [`read`], [`Reader`] |
//! | `save(fname, *arrays, infos, nocheck)`, `load` | [`save`], [`load`]; [`save_unchecked`], [`load_unchecked`] |
//! | `encode_buffer`, `decode_buffer`; a single-part message or datagram | [`encode_buffer`], [`decode_buffer`] |
//! | `encode_list`, `decode_list`; a multipart message | [`encode_frames`], [`decode_frames`] |
//! | `write_chunk`, `read_chunk` | [`write_chunk`], [`read_chunk`] |

mod archive;
mod array;
mod chunk;
mod frames;

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

pub use super::options::Options;
pub(crate) use archive::Tenbin;
pub use archive::{Layout, TenFile, export};
pub use chunk::{read_chunk, write_chunk};
pub use frames::{decode_frames, encode_frames};

use super::made;
use crate::support::{alloc_budget, over_memory, write_slices};
use array::Header;
use chunk::Input;
use tenarc::de::Limits;
use tenarc::io::SyncLevel;
use tenarc::tensor::ToTensor;
use tenarc::{DynTensor, Error, Result};

/// Writes named arrays. An array without a name has the name `""`. Names need not be unique.
///
/// Contiguous arrays are written without a copy.
///
/// # Errors
/// If the writer fails. Before anything is written: if a name is not ASCII or has more than eight letters, if an array
/// has more than nine dimensions, if its elements are not integers, `f16`, `f32` or `f64`, or if it is column-major
/// (see [`DynTensor::into_row_major`]).
pub fn write<W: Write, N: AsRef<str>, T: ToTensor>(mut writer: W, arrays: &[(N, T)]) -> Result<()> {
    let writer: &mut dyn Write = &mut writer;
    // Checks all arrays before it writes the first.
    let mut headers = Vec::with_capacity(arrays.len());
    for (name, array) in arrays {
        headers.push(Header::new(name.as_ref(), array.meta())?);
    }
    for (header, (name, array)) in headers.iter().zip(arrays) {
        write_one(writer, header, array).map_err(|error| error.in_field(name.as_ref()))?;
    }
    Ok(())
}

fn write_one(writer: &mut dyn Write, header: &Header, array: &dyn ToTensor) -> Result<()> {
    let mut front = Vec::new();
    write_chunk(&mut front, &header.encode())?;
    front.extend_from_slice(&chunk::head(header.len)?);
    let behind = chunk::zeros(header.len);
    if let Some(bytes) = array.as_le_bytes() {
        header.check_len(bytes.len() as u64, 0)?;
        let slices = &mut [&front[..], bytes, behind].map(io::IoSlice::new);
        return write_slices(writer, slices);
    }
    let mut put = |bytes: &[u8]| write_slices(writer, &mut [io::IoSlice::new(bytes)]);
    put(&front)?;
    let mut written = 0;
    array.write_blocks(&mut |block| {
        written += block.len() as u64;
        put(block)
    })?;
    header.check_len(written, 0)?;
    put(behind)
}

/// Reads all arrays with their names, to the end of the reader.
///
/// # Errors
/// If the reader fails, or if its bytes are not complete arrays.
pub fn read<R: Read>(reader: R) -> Result<Vec<(String, DynTensor)>> {
    Reader::new(reader).collect()
}

/// Reads arrays with their names, one after the other. Elements are read directly into the memory of their array.
///
/// Memory is only allocated as bytes arrive, so a wrong length does not take much. All arrays together may take as many
/// bytes as the limits allow, 16 GiB by default. Headers are read in small pieces, so wrap a file in a [`BufReader`].
#[derive(Debug)]
pub struct Reader<R> {
    input: Option<Input<R>>,
    left: u64,
}

impl<R: Read> Reader<R> {
    /// Reads arrays with the default limits.
    pub fn new(reader: R) -> Self {
        Self::with_limits(reader, Limits::default())
    }

    /// Reads arrays with these limits.
    pub fn with_limits(reader: R, limits: Limits) -> Self {
        Self { input: Some(Input::new(reader)), left: alloc_budget(limits, false) }
    }

    fn next_array(&mut self) -> Result<Option<(String, DynTensor)>> {
        let Some(input) = &mut self.input else { return Ok(None) };
        let Some(header) = input.header()? else { return Ok(None) };
        match self.left.checked_sub(header.len) {
            Some(left) => self.left = left,
            None => {
                let what = format!(
                    "the array has {} bytes, {} are left of the limit",
                    header.len, self.left
                );
                return Err(over_memory(what).at(input.at).in_field(&*header.name));
            }
        }
        input.array(header).map(Some)
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<(String, DynTensor)>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_array().transpose();
        if !matches!(next, Some(Ok(_))) {
            // After an error, the start of the next array is not known.
            self.input = None;
        }
        next
    }
}

/// Saves named arrays as a file whose name ends in `.ten`. If there is a file at `path`, it is replaced.
///
/// The file is read back and compared before it takes its name. If the save fails, the file at `path` does not change.
///
/// # Errors
/// The errors of [`write()`]. Also if the name does not end in `.ten`, or if the file cannot be written.
pub fn save<N: AsRef<str>, T: ToTensor>(path: impl AsRef<Path>, arrays: &[(N, T)]) -> Result<()> {
    let path = path.as_ref();
    check_name(path)?;
    save_unchecked(path, arrays)
}

/// Like [`save`], for a file of any name. In Python, this is `nocheck`.
///
/// # Errors
/// The errors of [`save`], except for the name.
pub fn save_unchecked<N: AsRef<str>, T: ToTensor>(
    path: impl AsRef<Path>,
    arrays: &[(N, T)],
) -> Result<()> {
    let path = path.as_ref();
    let write = |out: &mut dyn Write| write(out, arrays).map_err(|error| error.in_file(path));
    made::file(path, SyncLevel::Full, |file| made::written(file, path, |out| write(out)))
}

/// Loads all arrays of a file whose name ends in `.ten`.
///
/// # Errors
/// The errors of [`read`]. Also if the name does not end in `.ten`, or if the file cannot be opened.
pub fn load(path: impl AsRef<Path>) -> Result<Vec<(String, DynTensor)>> {
    let path = path.as_ref();
    check_name(path)?;
    load_unchecked(path)
}

/// Like [`load`], for a file of any name. In Python, this is `nocheck`.
///
/// # Errors
/// The errors of [`load`], except for the name.
pub fn load_unchecked(path: impl AsRef<Path>) -> Result<Vec<(String, DynTensor)>> {
    let path = path.as_ref();
    let file = File::open(path).map_err(|error| Error::io_at(error, "cannot open", path))?;
    read(BufReader::new(file)).map_err(|error| error.in_file(path))
}

fn check_name(path: &Path) -> Result<()> {
    if path.extension().is_some_and(|extension| extension == "ten") {
        return Ok(());
    }
    Err(Error::data("expected a file name that ends in .ten").in_file(path))
}

/// Encodes arrays as bytes, for example for a file, a message or a datagram.
///
/// # Errors
/// The errors of [`write()`].
pub fn encode_buffer<N: AsRef<str>, T: ToTensor>(arrays: &[(N, T)]) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    write(&mut bytes, arrays)?;
    Ok(bytes)
}

/// Decodes the arrays of [`encode_buffer`].
///
/// # Errors
/// The errors of [`read`].
pub fn decode_buffer(bytes: &[u8]) -> Result<Vec<(String, DynTensor)>> {
    read(bytes)
}
