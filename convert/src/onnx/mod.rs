//! The tensors of ONNX models: the initializers of the graph, and the tensors in its nodes.
//!
//! ```no_run
//! use tenarc_convert::{Format, Options, onnx};
//!
//! let model = onnx::open("model.onnx")?;
//! for tensor in model.tensors() {
//!     println!("{} {:?} {:?}", tensor.name(), tensor.dtype(), tensor.shape());
//! }
//! let bias = model.dyn_tensor("fc.bias")?;
//!
//! // The graph is no tensor: a note says that it is left out.
//! let lost = Format::Onnx.to_archive("model.onnx", "weights.tenarc", &Options::default())?;
//! println!("{}", lost.notes().join("; "));
//! # let _ = bias;
//! # Ok::<(), tenarc::Error>(())
//! ```
//!
//! Every way that ONNX has to store elements is read, in the main file or beside it.
//!
//! | in the model | name |
//! |---|---|
//! | an initializer | its own |
//! | the value of a `Constant` | that of the node's output |
//! | a tensor in another node | the node's first output and the attribute: `output/attribute`; with a number where the attribute is a list |
//! | a tensor in a graph in a node, or in a function | as above; if that name is taken, behind `output/attribute` of the node, or the function's name |
//!
//! Integers of 4 and of 2 bits have the dtypes `i4`, `u4`, `i2` and `u2`: packed, the first element in the lowest bits.
//! Strings become arrays of texts. Sparse tensors and those of training are left out, and reported.

mod elements;
mod graph;
mod model;
mod tensor;
mod texts;
mod wire;

use std::fmt;
use std::fs::File;
use std::path::Path;

pub use tensor::TensorEntry;

use super::{AsValue, Losses, Names, Options, TensorFile};
use crate::as_value::Part;
use crate::format::Codec;
use crate::support::alloc_budget;
use elements::Directory;
use model::Found;
use tenarc::de::Limits;
use tenarc::io::{ReadAt, open_file};
use tenarc::tensor::{Deferred, Order};
use tenarc::{DynTensor, Error, Result};

/// A model, whose tensors are read when they are asked for.
pub struct Onnx<S> {
    source: S,
    found: Found,
    limits: Limits,
    directory: Option<Directory>,
}

impl<S> fmt::Debug for Onnx<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Onnx").field("tensors", &self.found.tensors).finish_non_exhaustive()
    }
}

/// Opens a model, to read what is asked for of it. Other files are not read: see [`open_with_external`].
///
/// # Errors
/// Where the file cannot be read, or is no ONNX model.
pub fn open(path: impl AsRef<Path>) -> Result<Onnx<File>> {
    let path = path.as_ref();
    let (file, _) = open_file(path)?;
    Onnx::new(file).map_err(|error| error.in_file(path))
}

/// As [`open`]; where tensors lie in other files, these are read, if they are in the directory of the model or
/// below. So a model decides which of those files is read.
///
/// # Errors
/// As [`open`].
pub fn open_with_external(path: impl AsRef<Path>) -> Result<Onnx<File>> {
    let path = path.as_ref();
    let mut model = open(path)?;
    model.directory = Some(Directory::of(path)?);
    Ok(model)
}

impl<S: ReadAt> Onnx<S> {
    /// A model that is read at positions: a file, or bytes in memory.
    ///
    /// # Errors
    /// Where reading fails, or there is no ONNX model: no graph, sizes that do not fit, two tensors of
    /// one name.
    pub fn new(source: S) -> Result<Self> {
        Self::with_limits(source, Limits::default())
    }

    /// As [`new`](Self::new), with limits: of the number of dimensions, and of the bytes that each tensor may
    /// take, and the list of all.
    ///
    /// # Errors
    /// As [`new`](Self::new), and with [`Category::Limit`](tenarc::error::Category::Limit) where there is more.
    pub fn with_limits(source: S, limits: Limits) -> Result<Self> {
        let found = model::read(&source, limits)?;
        Ok(Self { source, found, limits, directory: None })
    }

    /// The initializers, then the tensors in nodes; also those that cannot be read.
    pub fn tensors(&self) -> &[TensorEntry] {
        &self.found.tensors
    }

    /// What a model holds that is not read: tensors that are refused, and sparse ones. The graph itself is a note.
    pub fn losses(&self) -> &Losses {
        &self.found.losses
    }

    /// A tensor by its name.
    ///
    /// # Errors
    /// Where there is none, it is refused, or what there is does not make it.
    pub fn dyn_tensor(&self, name: &str) -> Result<DynTensor> {
        self.read(self.entry(name)?).map_err(|error| error.in_field(name))
    }

    /// A tensor by its name, whose elements are read when it is written, in steps.
    ///
    /// # Errors
    /// Where there is none, or it is refused.
    pub fn deferred(&self, name: &str) -> Result<Deferred<'_>> {
        let tensor = self.entry(name)?;
        self.deferred_of(tensor).ok_or_else(|| Error::data(tensor.why_not()).in_field(name))
    }

    fn entry(&self, name: &str) -> Result<&TensorEntry> {
        let number = self.found.by_name.get(name).copied();
        let tensor = number.and_then(|number| self.found.tensors.get(number));
        tensor.ok_or_else(|| Error::data("no such tensor").in_field(name))
    }

    /// None of a tensor that is refused.
    fn deferred_of<'a>(&'a self, tensor: &'a TensorEntry) -> Option<Deferred<'a>> {
        let dtype = tensor.dtype()?.clone();
        let (source, directory) = (&self.source, self.directory.as_ref());
        let deferred = Deferred::from_blocks(dtype, &tensor.shape, Order::C, move |put| {
            elements::blocks(tensor, source, directory, put)
        });
        Some(deferred.with_byte_len(tensor.byte_len()?))
    }

    fn read(&self, tensor: &TensorEntry) -> Result<DynTensor> {
        let dtype = tensor.dtype.clone().map_err(Error::data)?;
        let mut left = alloc_budget(self.limits, false);
        let mut bytes = Vec::new();
        elements::blocks(tensor, &self.source, self.directory.as_ref(), &mut |block| {
            left = left.checked_sub(block.len() as u64).ok_or_else(|| {
                let most = alloc_budget(self.limits, false);
                Error::limit(format!("a tensor of more than the {most} bytes that are allowed"))
            })?;
            bytes.try_reserve(block.len()).map_err(|_| Error::limit("out of memory"))?;
            bytes.extend_from_slice(block);
            Ok(())
        })?;
        DynTensor::new(dtype, &tensor.shape, Order::C, bytes)
    }
}

/// A map of the tensors and texts that are not refused, by name.
impl<S: ReadAt> TensorFile for Onnx<S> {
    fn value(&self, names: Names) -> Result<AsValue<'_>> {
        let mut parts = Vec::new();
        for tensor in self.tensors() {
            let part = match self.deferred_of(tensor) {
                Some(deferred) => Part::Tensor(deferred),
                None if tensor.is_texts() => Part::Texts(texts::of(tensor, &self.source)?),
                None => continue,
            };
            parts.push((tensor.name(), part));
        }
        let value = AsValue::flat(parts);
        value.with_losses(self.losses().clone()).named(names, false)
    }

    fn deferred(&self, name: &str) -> Result<Deferred<'_>> {
        self.deferred(name)
    }
}

/// ONNX among the formats.
pub(crate) struct OnnxModels;

impl Codec for OnnxModels {
    fn open(
        &self,
        file: File,
        path: Option<&Path>,
        options: &Options,
    ) -> Result<Box<dyn TensorFile>> {
        let mut model = Onnx::with_limits(file, options.limits)?;
        model.directory = path.filter(|_| options.external).map(Directory::of).transpose()?;
        Ok(Box::new(model))
    }
}
