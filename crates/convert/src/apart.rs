//! Values that are written without their tensors, which are read later.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use tenarc::Result;
use tenarc::archive::SaveOptions;
use tenarc::parts::Split;

/// A value without its tensors: its metadata, and which of its tensors belongs to which buffer.
#[derive(Debug)]
pub struct Apart {
    metadata: Vec<u8>,
    /// The position and the length of each buffer. The position is always 0, because the buffers are not in a file.
    buffers: Vec<(u64, u64)>,
    /// The number of the tensor in each buffer.
    numbers: Vec<usize>,
}

impl Apart {
    /// Writes a value. Its tensors are those that it writes inside [`Current::tensor`]; they are not read. All other
    /// payloads are in the metadata.
    ///
    /// # Errors
    /// If the value cannot be written.
    pub fn new(value: &impl Serialize, current: &Current) -> Result<Self> {
        let written = Arc::new(Mutex::new(Vec::new()));
        // This is called for each payload while it is being written.
        let is_tensor = {
            let (current, written) = (current.clone(), written.clone());
            move |_: &_| {
                let number = current.number();
                written.lock().unwrap_or_else(PoisonError::into_inner).extend(number);
                number.is_some()
            }
        };
        let options = SaveOptions::default().with_checksums(false).with_columns(false);
        let split = Split::with_options(value, options.with_out_of_band(is_tensor))?;
        let info = split.info();
        let buffers = info.buffers().iter().map(|buffer| (0, buffer.byte_len())).collect();
        let metadata = info.item().to_vec();
        let numbers = std::mem::take(&mut *written.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(Self { metadata, buffers, numbers })
    }

    /// The encoded value, with references in place of tensors.
    pub fn metadata(&self) -> &[u8] {
        &self.metadata
    }

    /// The buffers, as [`Stored::buffers`](crate::Stored::buffers) returns them.
    pub fn buffers(&self) -> &[(u64, u64)] {
        &self.buffers
    }

    /// The number that was given to [`Current::tensor`] for the tensor in a buffer.
    ///
    /// # Errors
    /// If there is no such buffer.
    pub fn number(&self, buffer: usize) -> Result<usize> {
        let number = self.numbers.get(buffer).copied();
        number.ok_or_else(|| {
            tenarc::Error::data(format!("buffer {buffer} is not a tensor of the value"))
        })
    }
}

/// The number of the tensor that is being written, for [`Apart::new`]. serde has no place for it.
#[derive(Clone, Default)]
pub struct Current(Arc<Mutex<Option<usize>>>);

impl fmt::Debug for Current {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Current").field(&self.number()).finish()
    }
}

impl Current {
    /// Writes the tensor with this number by `write`.
    pub fn tensor<T>(&self, number: usize, write: impl FnOnce() -> T) -> T {
        self.set(Some(number));
        let written = write();
        self.set(None);
        written
    }

    fn set(&self, number: Option<usize>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = number;
    }

    fn number(&self) -> Option<usize> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
