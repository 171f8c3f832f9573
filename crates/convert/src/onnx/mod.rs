//! Reads the tensors of ONNX models: the initializers of the graph, and the tensors in its nodes.
//!
//! ```no_run
//! use tenarc_convert::{Format, Options, TensorFile, onnx};
//!
//! let model = onnx::open("model.onnx")?;
//! for tensor in model.tensors() {
//!     println!("{} {} {:?}", tensor.path(), tensor.dtype(), tensor.shape());
//! }
//! let bias = model.dyn_tensor("fc.bias")?;
//! // Inputs and outputs, operators, and the program that wrote the model.
//! println!("{:?}", model.about()?.get("inputs"));
//!
//! // Only tensors are converted. A note says that the graph is left out.
//! let lost = Format::Onnx.to_archive("model.onnx", "weights.tenarc", &Options::default())?;
//! println!("{}", lost.notes().join("; "));
//! # let _ = bias;
//! # Ok::<(), tenarc::Error>(())
//! ```
//!
//! ONNX has several ways to store elements, in the model itself or in external files. All of them are read.
//!
//! | tensor in the model | name |
//! |---|---|
//! | an initializer | its own name |
//! | the value of a `Constant` node | the name of the node's output |
//! | a tensor in an attribute of another node | `output/attribute`, with the name of the node's first output. If the attribute is a list, a number follows: `output/attribute/0` |
//! | a tensor in a graph in a node, or in a function | as above. If another tensor has this name, `output/attribute/` of the node or `function/` comes before it |
//!
//! Integers of 4 and of 2 bits have the dtypes `i4`, `u4`, `i2` and `u2`. They are packed, the first element in the
//! lowest bits. Strings become arrays of texts. Sparse tensors and tensors for training are left out and reported.

mod about;
mod elements;
mod graph;
mod model;
mod tensor;
mod texts;
mod wire;

use std::fmt;
use std::fs::File;
use std::path::Path;

use super::{AsValue, Losses, Names, Options, TensorFile};
use crate::as_value::Part;
use crate::codec::Codec;
use crate::support::{alloc_budget, over_memory};
use elements::Directory;
use model::Found;
use tenarc::de::Limits;
use tenarc::io::{ReadAt, open_file};
use tenarc::tensor::{Deferred, Order, TensorInfo, TensorMeta};
use tenarc::{DynTensor, Error, Result, Value};
use tensor::Entry;

/// An opened model. Its tensors are read when they are requested.
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

/// Opens a model, without its external files. [`open_with_external`] reads them too.
///
/// # Errors
/// If the file cannot be opened. Also the errors of [`Onnx::new`].
pub fn open(path: impl AsRef<Path>) -> Result<Onnx<File>> {
    let path = path.as_ref();
    let (file, _) = open_file(path)?;
    Onnx::new(file).map_err(|error| error.in_file(path))
}

/// Like [`open`], and also reads elements in external files. These files must be in the directory of the model or
/// below. The model itself names them, so it decides which files of this directory are read.
///
/// If the model is a link, external files may also be in the directory of the link's target.
///
/// # Errors
/// The errors of [`open`].
pub fn open_with_external(path: impl AsRef<Path>) -> Result<Onnx<File>> {
    let path = path.as_ref();
    let mut model = open(path)?;
    model.directory = Some(Directory::of(path)?);
    Ok(model)
}

impl<S: ReadAt> Onnx<S> {
    /// Reads a model from a file, from bytes in memory, or from any other [`ReadAt`]. Elements are not read yet.
    ///
    /// # Errors
    /// If reading fails, if the source is not an ONNX model with a graph, if the elements of a tensor do not fit its
    /// shape, or if two tensors have the same name.
    pub fn new(source: S) -> Result<Self> {
        Self::with_limits(source, Limits::default())
    }

    /// Like [`new`](Self::new), with limits for the number of dimensions, for the bytes of each tensor, for the bytes
    /// of the list of all tensors, and for the nesting of graphs.
    ///
    /// # Errors
    /// The errors of [`new`](Self::new), and one of [`Category::Limit`](tenarc::error::Category::Limit) if a limit is
    /// exceeded.
    pub fn with_limits(source: S, limits: Limits) -> Result<Self> {
        let found = model::read(&source, limits)?;
        Ok(Self { source, found, limits, directory: None })
    }

    /// Describes all tensors that can be read and whose elements are numbers. The path of each is its name, which can be
    /// any text, so do not use it as the path of a file. Initializers come first, then the tensors in nodes, then those
    /// in inner graphs and functions.
    pub fn tensors(&self) -> Vec<TensorInfo> {
        let info = |tensor: &Entry| {
            let meta = TensorMeta::new(tensor.dtype.clone().ok()?, &*tensor.shape, Order::C);
            Some(TensorInfo::new(tensor.name.clone(), meta, tensor.byte_len()? as u64))
        };
        self.found.tensors.iter().filter_map(info).collect()
    }

    /// The tensors of the model that cannot be read, and parts of it that are not known. A note lists the parts of the
    /// graph.
    pub fn losses(&self) -> &Losses {
        &self.found.losses
    }

    /// Reads a tensor.
    ///
    /// # Errors
    /// If there is no tensor of this name, if it is one of the [losses](Self::losses) or has texts, if its elements cannot
    /// be read, or if they do not fit its dtype and shape.
    pub fn dyn_tensor(&self, name: &str) -> Result<DynTensor> {
        self.read(self.entry(name)?).map_err(|error| error.in_field(name))
    }

    fn entry(&self, name: &str) -> Result<&Entry> {
        let number = self.found.by_name.get(name).copied();
        let tensor = number.and_then(|number| self.found.tensors.get(number));
        tensor.ok_or_else(|| Error::not_found("there is no tensor of this name").in_field(name))
    }

    /// Returns a tensor whose elements are read when it is written. `None` if it is refused or has texts.
    fn deferred_of<'a>(&'a self, tensor: &'a Entry) -> Option<Deferred<'a>> {
        let dtype = tensor.dtype.clone().ok()?;
        let (source, directory) = (&self.source, self.directory.as_ref());
        let deferred = Deferred::from_blocks(dtype, &tensor.shape, Order::C, move |put| {
            elements::blocks(tensor, source, directory, put)
        });
        Some(deferred.with_byte_len(tensor.byte_len()?))
    }

    fn read(&self, tensor: &Entry) -> Result<DynTensor> {
        let dtype = tensor.dtype.clone().map_err(Error::data)?;
        let mut left = alloc_budget(self.limits, false);
        let mut bytes = Vec::new();
        elements::blocks(tensor, &self.source, self.directory.as_ref(), &mut |block| {
            left = left.checked_sub(block.len() as u64).ok_or_else(|| {
                let most = alloc_budget(self.limits, false);
                over_memory(format!("the tensor has more than {most} bytes, which is the limit"))
            })?;
            bytes.try_reserve(block.len()).map_err(|_| Error::limit("out of memory"))?;
            bytes.extend_from_slice(block);
            Ok(())
        })?;
        DynTensor::new(dtype, &tensor.shape, Order::C, bytes)
    }
}

/// The value is a map from names to tensors, and to arrays of texts. Refused tensors are left out.
impl<S: ReadAt> TensorFile for Onnx<S> {
    fn value(&self, names: Names) -> Result<AsValue<'_>> {
        let mut parts = Vec::new();
        for tensor in &self.found.tensors {
            let part = match self.deferred_of(tensor) {
                Some(deferred) => Part::Tensor(deferred),
                None if tensor.is_texts() => Part::Texts(texts::of(tensor, &self.source)?),
                None => continue,
            };
            parts.push((&*tensor.name, part));
        }
        let value = AsValue::flat(parts);
        value.with_losses(self.losses().clone()).named(names, false)
    }

    fn deferred(&self, name: &str) -> Result<Deferred<'_>> {
        let tensor = self.entry(name)?;
        self.deferred_of(tensor).ok_or_else(|| Error::mismatch(tensor.why_not()).in_field(name))
    }

    fn about(&self) -> Result<Value> {
        about::of(&self.source, self.limits)
    }
}

/// The [`Codec`] for ONNX models.
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
