//! numpy's `.npy` and `.npz` files, read, written, and converted to and from archives.
//!
//! ```
//! use ndarray::{Array1, Array2, array};
//! use tenarc::tensor::ToTensor;
//! use tenarc_convert::npy::{self, Compression, Npz};
//! use tenarc_convert::{Format, Options};
//!
//! # let dir = std::env::temp_dir().join(format!("tenarc-doc-npy-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir)?;
//! let weight = array![[1.0f32, 2.0], [3.0, 4.0]];
//! npy::save(dir.join("weight.npy"), &weight)?;                            // numpy.save
//! let back: Array2<f32> = npy::load(dir.join("weight.npy"))?.into_array()?.into_dimensionality()?;
//! assert_eq!(back, weight);
//!
//! let bias = array![0.5f64, -0.5];
//! let tensors: [(&str, &dyn ToTensor); 2] = [("weight", &weight), ("bias", &bias)];
//! npy::save_npz(dir.join("model.npz"), &tensors, Compression::Deflated)?; // numpy.savez_compressed
//! let npz = Npz::open(dir.join("model.npz"))?;
//! let back: Array1<f64> = npz.tensor("bias")?;
//! assert_eq!(back, bias);
//!
//! let options = Options::default();
//! let lost = Format::Npz.to_archive(dir.join("model.npz"), dir.join("model.tenarc"), &options)?;
//! assert!(lost.is_empty());
//! # std::fs::remove_dir_all(&dir)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Versions 1 to 3 are read, in C and Fortran order, of either byte order: `bool`, integers of 8 to 64
//! bits, `f16`, `f32`, `f64`, and complex numbers of the latter two. Version 1 is written, which holds
//! every header that such tensors have. The bytes are those that numpy writes.
//!
//! Arrays of strings become arrays of texts in an archive. Of structured arrays, each field is a column: a tensor or an array
//! of texts, under the name of the array and that of the field, with a dot in between.
//!
//! Nothing in a file is run: a header is read as the literal it must be, and object arrays, which are
//! pickled Python, are refused by name, as are dates and long doubles. Tensors of dtypes that numpy has not, such as bf16, are
//! refused when they are written.
//!
//! Sizes in a file are claims. An array takes memory as its bytes arrive, a member of an npz is inflated
//! no further than its own header says, and whatever does not fit together is an error: checksums, two
//! lengths of the same thing, members that lie over each other. Names of members are keys, and never
//! become paths of files.

mod archive;
mod columns;
mod dtype;
mod file;
mod header;
mod input;
mod literal;
mod npz;
mod part;
mod payload;
mod texts;
mod write;

use std::io::{self, BufReader, Write as _};
use std::path::Path;

pub use super::options::Options;
pub use archive::export;
pub(crate) use archive::{Npy, NpzFiles};
pub use file::NpyFile;
pub use npz::{Npz, TensorEntry};
pub use write::{Compression, NpzWriter, save_npz};

pub use super::zip::Member;

use super::made;

use crate::honest::Honest;
use crate::support::alloc_budget;
use header::Array;
use input::{Input, Stream};
use tenarc::de::Limits;
use tenarc::error::Category;
use tenarc::io::{SyncLevel, open_file};
use tenarc::tensor::{FromTensor, ToTensor};
use tenarc::{DynTensor, Error, Result};

/// Reads one array in npy format. What follows it is left unread, so that several can be read from one
/// stream, as numpy does; [`load`] refuses a file that goes on.
///
/// # Errors
/// Where the reader fails or ends, the header is none, or the array is no tensor.
pub fn read<R: io::Read>(reader: R) -> Result<DynTensor> {
    read_with(reader, Limits::default())
}

/// As [`read`], with limits: of the number of dimensions, and of the bytes the array may take.
///
/// # Errors
/// As [`read`], and with [`Category::Limit`] where there is more.
pub fn read_with<R: io::Read>(reader: R, limits: Limits) -> Result<DynTensor> {
    let mut input = Input::new(Stream(reader));
    let array = Array::read(&mut input, limits)?;
    charge(array.byte_len, limits, false)?;
    payload::tensor(&array, input, 0).map(|(tensor, _)| tensor)
}

/// As [`read`], as any type that can be read from a tensor.
///
/// # Errors
/// As [`read`], and where the elements are of another type or the dimensions others.
pub fn read_as<T: for<'de> FromTensor<'de>>(reader: impl io::Read) -> Result<T> {
    read(reader)?.into_tensor()
}

/// Writes a tensor in npy format, in the order it has.
///
/// # Errors
/// Where the writer fails, and where numpy has no such dtype; then nothing was written.
pub fn write<W: io::Write>(writer: W, tensor: &(impl ToTensor + ?Sized)) -> Result<()> {
    let mut writer = Honest::new(writer);
    emit(tensor, &mut |block| writer.write_all(block).map_err(Error::io))
}

/// Loads the one array of an npy file.
///
/// # Errors
/// As [`read`], and where the file holds more than the array.
pub fn load(path: impl AsRef<Path>) -> Result<DynTensor> {
    let path = path.as_ref();
    let (file, len) = open_file(path)?;
    of_file(BufReader::new(file), len).map_err(|error| error.in_file(path))
}

fn of_file(reader: impl io::Read, len: u64) -> Result<DynTensor> {
    let limits = Limits::default();
    let mut input = Input::new(Stream(reader));
    let array = Array::read(&mut input, limits)?;
    check_len(&array, input.position(), len)?;
    payload::tensor(&array, input, array.byte_len).map(|(tensor, _)| tensor)
}

/// Saves a tensor as an npy file, which appears whole or not at all, as that of [`save`](tenarc::save). It is read
/// back and compared before it takes its name.
///
/// # Errors
/// As [`write()`], and where the file cannot be written.
pub fn save(path: impl AsRef<Path>, tensor: &(impl ToTensor + ?Sized)) -> Result<()> {
    let path = path.as_ref();
    made::file(path, SyncLevel::Full, |file| {
        made::written(file, path, |out| write(out, tensor).map_err(|error| error.in_file(path)))
    })
}

/// That header and elements are all there is of `len` bytes.
fn check_len(array: &Array, start: u64, len: u64) -> Result<()> {
    let end = start.saturating_add(array.byte_len as u64);
    if end == len {
        return Ok(());
    }
    let expected = format!("an array of shape {:?} ends after {end} bytes", array.shape);
    if end > len {
        let what = format!("{expected}, but there are only {len}");
        return Err(Error::new(Category::Eof, what));
    }
    Err(Error::syntax(format!("{expected}, but there are {len}")).at(end))
}

/// That the limit allows so much memory.
fn charge(byte_len: usize, limits: Limits, backed: bool) -> Result<()> {
    let (found, most) = (byte_len as u64, alloc_budget(limits, backed));
    if found <= most {
        return Ok(());
    }
    Err(Error::limit(format!("an array of {found} bytes, {most} are allowed")))
}

/// Hands over header and elements, as many as the header says.
fn emit(tensor: &(impl ToTensor + ?Sized), put: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
    let (bytes, expected) = header::encode(&tensor.meta())?;
    put(&bytes)?;
    let mut written = 0usize;
    tensor.write_blocks(&mut |block| {
        written = written.saturating_add(block.len());
        if written > expected {
            return Err(not_as_told(expected, "more"));
        }
        put(block)
    })?;
    if written < expected {
        return Err(not_as_told(expected, &written.to_string()));
    }
    Ok(())
}

#[cold]
fn not_as_told(expected: usize, found: &str) -> Error {
    Error::data(format!("expected {expected} bytes of a tensor, it gave {found}"))
}
