//! webdataset's tenbin (`.ten`): arrays one after the other, each with a name of up to eight letters.
//!
//! What the Python library `webdataset.tenbin` writes is read, and what is written here is what it
//! would have written, to the bit; `u4` (`u32`) too, which that library misspells. What it reads
//! although it is broken is refused here: paddings cut short or not zero, dimensions that are
//! negative or do not fit the bytes, ranks that the header has no room for.
//!
//! A file has neither a header nor an end, so that files can be joined, and an array more at the end is
//! one more array.
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
use crate::support::{alloc_budget, write_slices};
use array::Header;
use chunk::Input;
use tenarc::de::Limits;
use tenarc::io::SyncLevel;
use tenarc::tensor::ToTensor;
use tenarc::{DynTensor, Error, Result};

/// Writes named arrays; `""` is no name. Names need not be unique.
///
/// Arrays that lie contiguous in memory are handed to the writer as they lie.
///
/// # Errors
/// Where the writer fails, and for what tenbin cannot say: names of more than eight ASCII letters, more
/// than nine dimensions, elements other than integers and `f16`, `f32`, `f64`, and the order of
/// column-major arrays (see [`DynTensor::into_row_major`]).
pub fn write<W: Write, N: AsRef<str>, T: ToTensor>(mut writer: W, arrays: &[(N, T)]) -> Result<()> {
    let writer: &mut dyn Write = &mut writer;
    // Nothing is written of a list that cannot be written.
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
/// Where the reader fails, or gives something else than whole arrays.
pub fn read<R: Read>(reader: R) -> Result<Vec<(String, DynTensor)>> {
    Reader::new(reader).collect()
}

/// Reads arrays with their names one after the other, each straight into its memory.
///
/// Memory follows the bytes received; together all arrays may take what the limits allow to be
/// allocated, 16 GiB by default. Small reads are made: a file should be buffered.
#[derive(Debug)]
pub struct Reader<R> {
    input: Option<Input<R>>,
    left: u64,
}

impl<R: Read> Reader<R> {
    /// Starts to read.
    pub fn new(reader: R) -> Self {
        Self::with_limits(reader, Limits::default())
    }

    /// As [`new`](Self::new), with limits.
    pub fn with_limits(reader: R, limits: Limits) -> Self {
        Self { input: Some(Input::new(reader)), left: alloc_budget(limits, false) }
    }

    fn next_array(&mut self) -> Result<Option<(String, DynTensor)>> {
        let Some(input) = &mut self.input else { return Ok(None) };
        let Some(header) = input.header()? else { return Ok(None) };
        match self.left.checked_sub(header.len) {
            Some(left) => self.left = left,
            None => {
                let what = format!("an array of {} bytes, {} are allowed", header.len, self.left);
                return Err(Error::limit(what).at(input.at).in_field(&*header.name));
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
            // Nothing is known of what follows.
            self.input = None;
        }
        next
    }
}

/// Saves named arrays as a file whose name ends in `.ten`, whole or not at all, in place of what is
/// there. It is read back and compared before it takes its name.
///
/// # Errors
/// As [`write()`], where the name ends in something else, and where the file cannot be written.
pub fn save<N: AsRef<str>, T: ToTensor>(path: impl AsRef<Path>, arrays: &[(N, T)]) -> Result<()> {
    let path = path.as_ref();
    check_name(path)?;
    save_unchecked(path, arrays)
}

/// As [`save`], whatever the file is called: `nocheck` in Python.
///
/// # Errors
/// As [`save`], but for the name.
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
/// As [`read`], where the name ends in something else, and where the file cannot be read.
pub fn load(path: impl AsRef<Path>) -> Result<Vec<(String, DynTensor)>> {
    let path = path.as_ref();
    check_name(path)?;
    load_unchecked(path)
}

/// As [`load`], whatever the file is called: `nocheck` in Python.
///
/// # Errors
/// As [`load`], but for the name.
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

/// The arrays as one run of bytes: a file's, a message's or a datagram's.
///
/// # Errors
/// As [`write()`].
pub fn encode_buffer<N: AsRef<str>, T: ToTensor>(arrays: &[(N, T)]) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    write(&mut bytes, arrays)?;
    Ok(bytes)
}

/// The arrays in one run of bytes.
///
/// # Errors
/// As [`read`].
pub fn decode_buffer(bytes: &[u8]) -> Result<Vec<(String, DynTensor)>> {
    read(bytes)
}
