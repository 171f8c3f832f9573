//! Reads a safetensors file: the header first, then single tensors at their offsets.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::path::Path;

use serde::Deserialize;
use tenarc::io::{ReadAt, open_file};
use tenarc::tensor::{Deferred, FromTensor, Shape, TensorInfo};
use tenarc::{DType, DynTensor, Error, Result};

use super::header::{Header, shown};
use crate::as_value::{AsValue, Part};
use crate::nested::{self, Names};
use crate::{Losses, TensorFile, source};

/// A safetensors file that is open for reading. Its source is a [file](super::open), bytes in memory, or anything else
/// that implements [`ReadAt`].
///
/// Opening reads the header and checks all of it. Each tensor is read when it is requested. All methods take `&self`,
/// so several threads can read at the same time.
pub struct SafeTensors<S> {
    source: S,
    header: Header,
    /// Whether the file is marked as written from a nested value.
    nested: bool,
}

/// The indices of the first elements of tensors in those of which they are parts, by their names.
pub type Starts = BTreeMap<String, Vec<usize>>;

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
    /// Reads the header of a file, and makes the checks of version 0.8 of the reference implementation: the header
    /// takes at most 100 MB, and the tensors fill the rest of the file without gaps or overlaps.
    ///
    /// Three further cases are errors, because the specification forbids them or does not define them: a header that
    /// does not begin with `{`, a repeated name or key, and an unknown field of a tensor. If they were accepted, data
    /// would be lost, or two readers could read different things.
    ///
    /// # Errors
    /// If the source cannot be read, or is not a valid safetensors file.
    pub fn new(source: S) -> Result<Self> {
        let mut header = Header::read(&source)?;
        let nested = nested::take_mark(&mut header.metadata);
        Ok(Self { source, header, nested })
    }

    /// Returns the source that the file is read from.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// Returns descriptions of all tensors, in the order of their bytes in the file. The path of each is its name.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.header.tensors
    }

    /// Returns the keys and texts under `__metadata__`, in their order. `None` if the header has no such key.
    pub fn metadata(&self) -> Option<&[(String, String)]> {
        self.header.metadata.as_deref()
    }

    /// Returns the description of a tensor, without reading its elements.
    ///
    /// # Errors
    /// If there is no tensor with this name.
    pub fn info(&self, name: &str) -> Result<&TensorInfo> {
        self.at(self.header.find(name)?).map(|(info, _)| info)
    }

    /// Reads a tensor into any type that implements [`FromTensor`].
    ///
    /// # Errors
    /// The errors of [`dyn_tensor`](Self::dyn_tensor). Also if the type has another dtype or number of dimensions than
    /// the tensor.
    pub fn tensor<T: for<'de> FromTensor<'de>>(&self, name: &str) -> Result<T> {
        self.dyn_tensor(name)?.into_tensor().map_err(|error| error.in_field(name))
    }

    /// Reads a tensor of any dtype directly into its final memory.
    ///
    /// # Errors
    /// If there is no tensor with this name, it cannot be read, its shape is too large for memory, or a byte of a bool
    /// tensor is neither 0 nor 1.
    pub fn dyn_tensor(&self, name: &str) -> Result<DynTensor> {
        let number = self.header.find(name)?;
        self.read(number).map_err(|error| error.in_field(name))
    }

    /// Returns the offset in the source at which the elements of a tensor start. They are stored there in row-major
    /// order and little-endian.
    ///
    /// # Errors
    /// If there is no tensor with this name.
    pub fn position(&self, name: &str) -> Result<u64> {
        self.at(self.header.find(name)?).map(|(_, start)| start)
    }

    /// Returns whether the file is marked as written from a nested value.
    pub fn is_nested(&self) -> bool {
        self.nested
    }

    /// Returns where the tensors start in those of which they are parts, if a process of `torch.distributed.checkpoint` has saved
    /// the file.
    pub(super) fn starts(&self) -> Option<Starts> {
        #[derive(Deserialize)]
        struct Saved {
            saved_offsets: Vec<usize>,
        }
        let mut metadata = self.metadata()?.iter();
        let (_, text) = metadata.find(|(key, _)| key == "DCP_SHARDING_INFO")?;
        let saved: BTreeMap<String, Saved> = serde_json::from_str(text).ok()?;
        Some(saved.into_iter().map(|(name, saved)| (name, saved.saved_offsets)).collect())
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
        self.header
            .at(number)
            .ok_or_else(|| Error::not_found(format!("there is no tensor {number}")))
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
                && let Some((wrong, byte)) = block.iter().enumerate().find(|(_, byte)| **byte > 1)
            {
                let what = format!("a bool is stored as the byte {byte}; it must be 0 or 1");
                return Err(Error::data(what).at(at.saturating_add(wrong as u64)));
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
        let losses = parts_of_tensors(self.starts());
        let value = AsValue::flat(self.parts()?).with_texts(self.metadata()).with_losses(losses);
        value.named(names, self.nested)
    }

    fn deferred(&self, name: &str) -> Result<Deferred<'_>> {
        self.deferred_at(self.header.find(name)?)
    }

    fn place(&self, name: &str) -> Result<Option<(&dyn ReadAt, u64)>> {
        Ok(Some((&self.source, self.position(name)?)))
    }
}

/// Returns the losses of a file that one process of `torch.distributed.checkpoint` has saved, without those of others. Its tensors
/// can be parts of tensors. The file says where each part starts, but not how large the tensors are.
fn parts_of_tensors(starts: Option<Starts>) -> Losses {
    let mut losses = Losses::default();
    let Some(starts) = starts else { return losses };
    for (name, start) in starts {
        if start.iter().any(|offset| *offset > 0) {
            let start = shown(&start);
            losses
                .add(&name, format!("it is a part of a tensor: it starts at {start} of the whole"));
        }
    }
    if losses.is_empty() {
        losses.note(
            "one process of torch.distributed.checkpoint has saved the file: other files can have more of its tensors",
        );
    }
    losses
}

/// Checks that the product of the dimensions other than 0 does not overflow. A shape such as `[0, 2^63, 2]` has no
/// elements, so it passes the checks of the header. But tensors in memory cannot have it.
fn check_shape(info: &TensorInfo) -> Result<()> {
    match Shape::from(info.shape()).element_count() {
        Some(_) => Ok(()),
        None => {
            let shape = shown(info.shape());
            Err(Error::data(format!("a tensor of shape {shape} does not fit in memory")))
        }
    }
}
