//! torch's files (`.pt`, `.pth`, `.bin`), read and converted to archives. No code is ever run.
//!
//! ```no_run
//! use ndarray::Array2;
//! use tenarc_convert::{Format, Options, torch};
//!
//! let file = torch::open("model.pt")?;                            // reads what there is, no elements
//! for tensor in file.tensors() {
//!     println!("{}: {} {:?}", tensor.path(), tensor.dtype(), tensor.shape());
//! }
//! let weight: Array2<f32> = file.tensor("layers.0.weight")?;
//!
//! Format::Torch.to_archive("model.pt", "model.tenarc", &Options::default())?;
//! # Ok::<(), tenarc::Error>(())
//! ```
//!
//! Such a file is a zip file of a pickle and of the bytes of tensors, as `torch.save` has written it since
//! version 1.6, or those one after the other, as before. A pickle is a program; here it is read as data. The functions that torch makes tensors and dicts
//! with are known by their names. Any other call is kept as data, the name of the function and its arguments, and an object
//! of a class as a map of its attributes. [`Losses::notes`](crate::Losses::notes) names them.
//!
//! An archive gets the structure of the pickle: dicts become maps with the same keys, lists and tuples sequences. Tensors are
//! named by their paths in it: keys of dicts, and numbers of elements of lists, joined by dots. Views of a storage are read as
//! the tensors they are: transposed ones in column-major [order](tenarc::tensor::Order), others gathered in row-major
//! order. Plain values beside tensors, such as the number of
//! an epoch, are kept. Not kept, and not counted as lost, is what is no value of a tensor: devices, strides,
//! `requires_grad`, and which tensors overlap in a storage. Those that are the same are stored once.

mod container;
mod file;
mod gather;
mod layout;
mod legacy;
mod pickle;
mod plain;
mod tree;
mod value;

use std::fs::File;
use std::path::Path;

pub use file::TorchFile;
pub use legacy::is_legacy;
pub(crate) use value::Plain;

use super::format::Codec;
use super::{Options, TensorFile};
use tenarc::Result;

/// Opens a file, to read what is asked for of it: see [`TorchFile::new`].
///
/// # Errors
/// Where the file cannot be read, is not of the format, or holds what is refused.
pub fn open(path: impl AsRef<Path>) -> Result<TorchFile<File>> {
    TorchFile::open(path.as_ref())
}

/// torch among the formats.
pub(crate) struct Torch;

impl Codec for Torch {
    fn open(&self, file: File, _: Option<&Path>, _: &Options) -> Result<Box<dyn TensorFile>> {
        Ok(Box::new(TorchFile::new(file)?))
    }
}
