//! Reads and writes GGUF files, in which llama.cpp and other programs keep models, and converts them to archives.
//!
//! ```
//! use ndarray::Array2;
//! use tenarc::Value;
//! use tenarc_convert::gguf::{self, Gguf};
//!
//! let metadata = [("general.architecture", Value::from("llama"))];
//! let mut bytes = Vec::new();
//! gguf::to_writer(&mut bytes, &metadata, &[("output.weight", Array2::<f32>::eye(4))])?;
//!
//! let file = Gguf::new(bytes)?;
//! assert_eq!(file.metadata()[0].1, Value::from("llama"));
//! let weight: Array2<f32> = file.tensor("output.weight")?;
//! assert_eq!(weight, Array2::<f32>::eye(4));
//! # Ok::<(), tenarc::Error>(())
//! ```
//!
//! Little-endian files of versions 2 and 3 are read. Version 3 is written.
//!
//! Tensors that are not quantised (`f16`, `bf16`, `f32`, `f64` and signed integers) keep their dtype. Quantised tensors
//! consist of blocks, for example of 256 elements in 144 bytes. Their bytes are not changed. Their dtype has the name
//! of their type in GGUF: `q4_k`, `q8_0` and so on. Their shape counts elements. GGUF lists the dimensions of a tensor
//! from the innermost to the outermost. Here they are in the order of ndarray and numpy.
//!
//! The value of a file is a map from names to tensors, with the metadata under `__metadata__`. In the metadata, an
//! array of numbers is a tensor of one dimension. The exact types of numbers and arrays are in a map under
//! `tenarc.gguf.types`, because a value of an archive does not say whether an integer was `u8` or `i64`: see
//! [`Gguf::metadata`] and [`to_writer`].

mod dtype;
mod export;
mod header;
mod types;
mod write;

use std::fmt;
use std::fs::File;
use std::io::Write;
use std::path::Path;

use tenarc::de::Limits;
use tenarc::io::{ReadAt, open_file};
use tenarc::tensor::{Deferred, FromTensor, Order, TensorInfo};
use tenarc::{DynTensor, Result, Value};

use crate::as_value::{AsValue, Metadata, Part};
use crate::codec::Codec;
use crate::support::no_tensor_named;
use crate::{Losses, Names, Options, Stored, TensorFile, nested, source};

pub use write::{save, to_writer};

/// An opened GGUF file. Its source is a [file](open), bytes in memory, or any other [`ReadAt`].
///
/// Opening reads the metadata and the list of tensors, and checks that the tensors fill the rest of the file. Tensors
/// are read when they are requested.
pub struct Gguf<S> {
    source: S,
    header: header::Header,
    /// Whether it was written from a nested value.
    is_nested: bool,
}

impl<S> fmt::Debug for Gguf<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gguf")
            .field("version", &self.header.version)
            .field("keys", &self.header.metadata.len())
            .field("tensors", &self.header.tensors.len())
            .finish_non_exhaustive()
    }
}

/// Opens a file. See [`Gguf::new`].
///
/// # Errors
/// The errors of [`Gguf::new`], and if the file cannot be opened.
pub fn open(path: impl AsRef<Path>) -> Result<Gguf<File>> {
    let path = path.as_ref();
    let (file, _) = open_file(path)?;
    Gguf::new(file).map_err(|error| error.in_file(path))
}

impl<S: ReadAt> Gguf<S> {
    /// Reads the metadata and the list of tensors.
    ///
    /// # Errors
    /// If the source cannot be read; if it is not a GGUF file of version 2 or 3; if two keys or two tensors have the
    /// same name; if a tensor has a type that is not known; and if the tensors do not follow each other up to the end
    /// of the file.
    pub fn new(source: S) -> Result<Self> {
        Self::with_limits(source, Limits::default())
    }

    /// Like [`new`](Self::new), with limits for the memory that the metadata may take.
    ///
    /// # Errors
    /// The errors of [`new`](Self::new), and one of
    /// [`Category::Limit`](tenarc::error::Category::Limit) if a limit is exceeded.
    pub fn with_limits(source: S, limits: Limits) -> Result<Self> {
        let mut header = header::Header::read(&source, limits)?;
        let is_mark = |(key, value): &(String, Value)| {
            key == nested::KEY && value.as_str() == Some(nested::NESTED)
        };
        let is_nested = header.metadata.iter().any(is_mark);
        header.metadata.retain(|pair| !is_mark(pair));
        Ok(Self { source, header, is_nested })
    }

    /// The source of the file.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// The version of the format.
    pub fn version(&self) -> u32 {
        self.header.version
    }

    /// The keys and values of the metadata, in the order of the file.
    ///
    /// If there are numbers or arrays, one entry more follows: under `tenarc.gguf.types` is a map from their keys to
    /// their types, such as `"u16"`, `["i32"]` for an array of `i32`, and `[["text"]]` for an array of arrays of texts. If
    /// inner arrays have different types, each is listed. With this entry, [`to_writer`] writes the same types again.
    pub fn metadata(&self) -> &[(String, Value)] {
        &self.header.metadata
    }

    /// All tensors, in the order in which the file lists them. The path of each is its name.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.header.tensors
    }

    /// Describes a tensor: its dtype, shape and length.
    ///
    /// # Errors
    /// If there is no tensor of this name.
    pub fn info(&self, name: &str) -> Result<&TensorInfo> {
        self.find(name).map(|(info, _)| info)
    }

    /// Returns the position of a tensor's bytes in the source.
    ///
    /// # Errors
    /// If there is no tensor of this name.
    pub fn position(&self, name: &str) -> Result<u64> {
        self.find(name).map(|(_, start)| start)
    }

    /// Reads a tensor as an array type.
    ///
    /// # Errors
    /// If there is no tensor of this name, if it cannot be read, or if it has another dtype or number of dimensions.
    /// Quantised tensors are read by [`dyn_tensor`](Self::dyn_tensor) only.
    pub fn tensor<T: for<'de> FromTensor<'de>>(&self, name: &str) -> Result<T> {
        self.dyn_tensor(name)?.into_tensor().map_err(|error| error.in_field(name))
    }

    /// Reads a tensor of any dtype.
    ///
    /// # Errors
    /// If there is no tensor of this name, or if it cannot be read.
    pub fn dyn_tensor(&self, name: &str) -> Result<DynTensor> {
        let (info, start) = self.find(name)?;
        let tensor = if info.dtype().bits().is_some() {
            source::tensor(&self.source, info.meta().clone(), start)
        } else {
            // tenarc does not know the elements of quantised dtypes. It only reads the bytes.
            source::bytes(&self.source, start, info.byte_len()).and_then(|bytes| {
                DynTensor::new(info.dtype().clone(), info.shape(), Order::C, bytes.into_owned())
            })
        };
        tensor.map_err(|error| error.in_field(name))
    }

    fn find(&self, name: &str) -> Result<(&TensorInfo, u64)> {
        let number = self.header.numbers.get(name);
        let found = number.and_then(|number| {
            self.header.tensors.get(*number).zip(self.header.places.get(*number))
        });
        found.map(|(info, start)| (info, *start)).ok_or_else(|| no_tensor_named(name))
    }

    fn deferred_of<'a>(&'a self, info: &'a TensorInfo, start: u64) -> Result<Deferred<'a>> {
        let len = source::in_memory(info.byte_len(), start)?;
        let deferred =
            Deferred::from_blocks(info.dtype().clone(), info.shape(), Order::C, move |put| {
                let end = start.saturating_add(info.byte_len());
                source::in_steps(&self.source, start..end, |block, _| put(block))
            });
        Ok(deferred.with_byte_len(len))
    }
}

/// The value is a map from names to tensors. If the file has metadata, they are under `__metadata__`.
impl<S: ReadAt> TensorFile for Gguf<S> {
    fn value(&self, names: Names) -> Result<AsValue<'_>> {
        let listed = self.header.tensors.iter().zip(&self.header.places);
        let parts = listed
            .map(|(info, start)| Ok((info.path(), Part::Tensor(self.deferred_of(info, *start)?))));
        let value = AsValue::flat(parts.collect::<Result<_>>()?);
        // Most other formats have no place for a map beside the tensors, even if it is empty.
        let metadata = match self.metadata() {
            [] => Metadata::None,
            metadata => Metadata::Values(metadata),
        };
        value.with_metadata(metadata).named(names, self.is_nested)
    }

    fn deferred(&self, name: &str) -> Result<Deferred<'_>> {
        let (info, start) = self.find(name)?;
        self.deferred_of(info, start)
    }

    fn place(&self, name: &str) -> Result<Option<(&dyn ReadAt, u64)>> {
        Ok(Some((&self.source, self.position(name)?)))
    }
}

/// The [`Codec`] for GGUF files.
pub(crate) struct GgufFiles;

impl Codec for GgufFiles {
    fn open(&self, file: File, _: Option<&Path>, options: &Options) -> Result<Box<dyn TensorFile>> {
        Ok(Box::new(Gguf::with_limits(file, options.limits)?))
    }

    fn write(&self, value: &dyn Stored, out: &mut dyn Write, options: &Options) -> Result<Losses> {
        export::write(value, out, options)
    }
}
