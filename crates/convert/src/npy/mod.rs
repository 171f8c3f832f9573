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
//! Versions 1 to 3 of the npy format are read, in C and Fortran order and in both byte orders. The dtypes are `bool`,
//! integers of 8 to 64 bits, `f16`, `f32`, `f64`, and complex numbers of the latter two. Version 1 is written, which is
//! enough for the header of any such tensor. The bytes written are the same that numpy writes.
//!
//! An array of strings becomes an array of texts in an archive. Each field of a structured array becomes a tensor or an
//! array of texts. Its name is `array.field`: the name of the array, a dot, and the name of the field.
//!
//! Nothing in a file is executed. A header is parsed as a Python literal. Object arrays, which are pickled Python, are
//! refused; so are long doubles. Arrays of times and durations keep their unit: the value has the named types of `SPEC.md`,
//! section 7.2, or, with another unit or missing times, `numpy.org/datetime64` and `numpy.org/timedelta64`. A tensor whose dtype numpy does not have, such as bf16, cannot be written.
//!
//! Sizes in a file are not trusted. Memory for an array grows as its bytes arrive, and a member of an npz file is not
//! inflated beyond the length in its header. Contradictions are errors: a wrong checksum, two different lengths of the
//! same thing, overlapping members. Names of members are used as keys, never as paths of files.

mod archive;
mod dtype;
mod file;
mod header;
mod input;
mod npz;
pub(crate) mod options;
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
pub use npz::Npz;
pub use options::Compression;
pub use write::{NpzWriter, save_npz};

pub use super::zip::Member;

use super::made;

use crate::honest::Honest;
use crate::support::{alloc_budget, over_memory};
use header::Array;
use input::{Input, Stream};
use tenarc::de::Limits;
use tenarc::error::Category;
use tenarc::io::{SyncLevel, open_file};
use tenarc::tensor::{FromTensor, ToTensor};
use tenarc::{DynTensor, Error, Result};

/// Reads one array in npy format. The bytes after it are not read, so a stream can hold several arrays, as with numpy.
/// [`load`] refuses a file with bytes after the array.
///
/// # Errors
/// If the reader fails or ends early, the header is not one of npy, or the array is not a tensor.
pub fn read<R: io::Read>(reader: R) -> Result<DynTensor> {
    read_with(reader, Limits::default())
}

/// Like [`read`], with limits for the number of dimensions and for the bytes of the array.
///
/// # Errors
/// The errors of [`read`]. [`Category::Limit`] if the array exceeds a limit.
pub fn read_with<R: io::Read>(reader: R, limits: Limits) -> Result<DynTensor> {
    let mut input = Input::new(Stream(reader));
    let array = Array::read(&mut input, limits)?;
    charge(array.byte_len, limits, false)?;
    payload::tensor(&array, input, 0).map(|(tensor, _)| tensor)
}

/// Like [`read`], but returns any type that can be read from a tensor.
///
/// # Errors
/// The errors of [`read`]. Also if the type has another element type or another number of dimensions.
pub fn read_as<T: for<'de> FromTensor<'de>>(reader: impl io::Read) -> Result<T> {
    read(reader)?.into_tensor()
}

/// Writes a tensor in npy format, in its own order: row-major or column-major.
///
/// # Errors
/// If the writer fails. If numpy does not have the dtype; then nothing was written.
pub fn write<W: io::Write>(writer: W, tensor: &(impl ToTensor + ?Sized)) -> Result<()> {
    let mut writer = Honest::new(writer);
    let descr = dtype::descr_of(&tensor.meta().dtype)?;
    emit(descr, tensor, &mut |block| writer.write_all(block).map_err(Error::io))
}

/// Loads the array of an npy file.
///
/// # Errors
/// The errors of [`read`]. Also if the file does not end with the array.
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

/// Saves a tensor as an npy file. As with [`save`](tenarc::save), the file appears complete or not at all. Before it
/// appears under its name, it is read back and compared.
///
/// # Errors
/// The errors of [`write()`]. Also if the file cannot be written.
pub fn save(path: impl AsRef<Path>, tensor: &(impl ToTensor + ?Sized)) -> Result<()> {
    let path = path.as_ref();
    made::file(path, SyncLevel::Full, |file| {
        made::written(file, path, |out| write(out, tensor).map_err(|error| error.in_file(path)))
    })
}

/// Checks that a file of `len` bytes ends with the elements, which start at `start`.
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

/// Checks that the limit allows memory for an array of so many bytes.
fn charge(byte_len: usize, limits: Limits, backed: bool) -> Result<()> {
    let (found, most) = (byte_len as u64, alloc_budget(limits, backed));
    if found <= most {
        return Ok(());
    }
    Err(over_memory(format!("the array has {found} bytes, the limit is {most}")))
}

/// Passes the header and the elements of a tensor to `put`. `descr` is the type string of the elements. Fails if the tensor has more or fewer bytes than its header
/// says.
fn emit(
    descr: &str,
    tensor: &(impl ToTensor + ?Sized),
    put: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let (bytes, expected) = header::encode(descr, &tensor.meta())?;
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
    Error::data(format!("expected {expected} bytes of a tensor, found {found}"))
}
