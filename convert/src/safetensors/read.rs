//! Reading a file at any position.

use std::fmt;
use std::fs::File;
use std::path::Path;

use tenarc::io::{ReadAt, open_file};
use tenarc::tensor::{Deferred, FromTensor, Shape, TensorInfo};
use tenarc::{DType, DynTensor, Error, Result};

use super::header::{Header, shown};
use crate::as_value::{AsValue, Part};
use crate::nested::{self, Names};
use crate::{TensorFile, source};

/// A safetensors file that can be read at any position: a [file](super::open), bytes in memory, or
/// anything else that is [`ReadAt`].
///
/// Opening reads the header and checks all of it; tensors are read when they are asked for, each by
/// itself. All methods take `&self`, so that several threads can read at once.
pub struct SafeTensors<S> {
    source: S,
    header: Header,
    /// Whether it was written from a nested value.
    nested: bool,
}

impl<S> fmt::Debug for SafeTensors<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SafeTensors")
            .field("tensors", &self.header.tensors.len())
            .finish_non_exhaustive()
    }
}

impl SafeTensors<File> {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let (file, _) = open_file(path)?;
        Self::new(file).map_err(|error| error.in_file(path))
    }
}

impl<S: ReadAt> SafeTensors<S> {
    /// Reads the header of a file, and checks it as the reference implementation, version 0.8, does: it
    /// takes at most 100 MB, and its tensors cover the rest of the file without hole or overlap.
    ///
    /// Beyond that, what the text of the format rules out or says nothing of is refused, as it would
    /// be lost or read in more than one way: a header that does not begin with `{`, names and keys that
    /// stand there twice, and further fields of a tensor.
    ///
    /// # Errors
    /// Where reading fails, and where the file is none.
    pub fn new(source: S) -> Result<Self> {
        let mut header = Header::read(&source)?;
        let nested = nested::take_mark(&mut header.metadata);
        Ok(Self { source, header, nested })
    }

    /// What the file is read from.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// All tensors, in the order of their bytes in the file. The path of each is its name.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.header.tensors
    }

    /// The texts under `__metadata__`, in their order; `None` where there is no such key.
    pub fn metadata(&self) -> Option<&[(String, String)]> {
        self.header.metadata.as_deref()
    }

    /// The tensor of that name, without its elements.
    ///
    /// # Errors
    /// Where there is none.
    pub fn info(&self, name: &str) -> Result<&TensorInfo> {
        self.at(self.header.find(name)?).map(|(info, _)| info)
    }

    /// The tensor of that name as any type that can be read from one.
    ///
    /// # Errors
    /// As [`dyn_tensor`](Self::dyn_tensor), and where its dtype or number of dimensions is another.
    pub fn tensor<T: for<'de> FromTensor<'de>>(&self, name: &str) -> Result<T> {
        self.dyn_tensor(name)?.into_tensor().map_err(|error| error.in_field(name))
    }

    /// The tensor of that name, whatever its dtype, read straight into its memory.
    ///
    /// # Errors
    /// Where there is no such tensor, it cannot be read, its shape does not fit memory, or a byte of
    /// a bool tensor is neither 0 nor 1.
    pub fn dyn_tensor(&self, name: &str) -> Result<DynTensor> {
        let number = self.header.find(name)?;
        self.read(number).map_err(|error| error.in_field(name))
    }

    /// Where in the source the elements of that tensor start: they lie there as they are read.
    ///
    /// # Errors
    /// Where there is no such tensor.
    pub fn position(&self, name: &str) -> Result<u64> {
        self.at(self.header.find(name)?).map(|(_, start)| start)
    }

    /// Whether the file says that it was written from a nested value.
    pub fn is_nested(&self) -> bool {
        self.nested
    }

    pub(super) fn parts(&self) -> Result<Vec<(&str, Part<'_>)>> {
        let numbers = 0..self.header.tensors.len();
        numbers
            .map(|number| {
                let (info, _) = self.at(number)?;
                Ok((info.path(), Part::Tensor(self.deferred_at(number)?)))
            })
            .collect()
    }

    fn at(&self, number: usize) -> Result<(&TensorInfo, u64)> {
        self.header.at(number).ok_or_else(|| Error::data(format!("there is no tensor {number}")))
    }

    pub(super) fn deferred_at(&self, number: usize) -> Result<Deferred<'_>> {
        let (info, start) = self.at(number)?;
        check_shape(info).map_err(|error| error.in_field(info.path()))?;
        Ok(Deferred::from_blocks(info.dtype().clone(), info.shape(), info.order(), move |put| {
            self.blocks(info, start, put)
        }))
    }

    fn blocks(
        &self,
        info: &TensorInfo,
        start: u64,
        put: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let end = start.saturating_add(info.byte_len());
        source::in_steps(&self.source, start..end, |block, at| {
            if *info.dtype() == DType::Bool
                && let Some(wrong) = block.iter().position(|&byte| byte > 1)
            {
                let error = Error::data("found a byte in a bool tensor that is neither 0 nor 1");
                return Err(error.at(at.saturating_add(wrong as u64)));
            }
            put(block)
        })
    }

    fn read(&self, number: usize) -> Result<DynTensor> {
        let (info, start) = self.at(number)?;
        check_shape(info)?;
        source::in_memory(info.byte_len(), start)?;
        source::tensor(&self.source, info.meta().clone(), start)
    }
}

impl<S: ReadAt> TensorFile for SafeTensors<S> {
    fn value(&self, names: Names) -> Result<AsValue<'_>> {
        AsValue::flat(self.parts()?).with_texts(self.metadata()).named(names, self.nested)
    }

    fn deferred(&self, name: &str) -> Result<Deferred<'_>> {
        self.deferred_at(self.header.find(name)?)
    }

    fn place(&self, name: &str) -> Result<Option<(&dyn ReadAt, u64)>> {
        Ok(Some((&self.source, self.position(name)?)))
    }
}

/// Refuses shapes that only zeros make small: the number of elements in a part of them is no number here.
fn check_shape(info: &TensorInfo) -> Result<()> {
    match Shape::from(info.shape()).element_count() {
        Some(_) => Ok(()),
        None => {
            let shape = shown(info.shape());
            Err(Error::data(format!("shape {shape} does not fit memory")))
        }
    }
}
