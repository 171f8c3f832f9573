//! The archives that tensors are read from.

use std::fs::File;
use std::path::Path;

use burn_core::tensor::AllocationProperty;
use burn_store::burn_pack::Bytes;
use serde::de::DeserializeOwned;
use tenarc::de::DecodeOptions;
use tenarc::io::SharedBytes;
use tenarc::tensor::{Order, SharedTensor, TensorInfo, ToTensor};
use tenarc::{Archive, Map, Result};

use crate::dtype::Elements;

/// An open archive that holds one value.
pub enum Source {
    File(Archive<File>),
    Memory(Archive<SharedBytes>),
    Map(Map),
}

macro_rules! with_archive {
    ($source:expr, $archive:ident => $result:expr) => {
        match $source {
            Source::File($archive) => $result,
            Source::Memory($archive) => $result,
            Source::Map(map) => {
                let $archive = &**map;
                $result
            }
        }
    };
}

impl Source {
    pub fn open(path: &Path, options: DecodeOptions) -> Result<Self> {
        tenarc::open(path).map(|archive| Self::File(archive.with_options(options)))
    }

    pub fn in_memory(bytes: SharedBytes, options: DecodeOptions) -> Result<Self> {
        Archive::new(bytes).map(|archive| Self::Memory(archive.with_options(options)))
    }

    pub fn tensors(&self) -> Result<Vec<TensorInfo>> {
        with_archive!(self, archive => archive.tensors())
    }

    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        with_archive!(self, archive => archive.get(path))
    }

    /// The names of the fields, or the keys, of the value at this path.
    pub fn keys(&self, path: &str) -> Result<Vec<String>> {
        with_archive!(self, archive => archive.only()?.keys(path))
    }

    /// The elements of a tensor. If possible, they share the memory of a map or of bytes.
    pub fn elements(&self, info: &TensorInfo) -> Result<Bytes> {
        if info.order() == Order::C && cfg!(target_endian = "little") {
            let shared = match self {
                Self::File(_) => None,
                Self::Memory(archive) => archive.only()?.share(info.path()).ok(),
                Self::Map(map) => map.share(info.path()).ok(),
            };
            if let Some(tensor) = shared.filter(SharedTensor::is_shared) {
                let bytes = bytes::Bytes::from_owner(Owner(tensor));
                return Ok(Bytes::from_shared(bytes, AllocationProperty::File));
            }
        }
        let Elements(bytes) =
            with_archive!(self, archive => archive.tensor::<Elements>(info.path()))?;
        Ok(bytes)
    }
}

/// Keeps the memory of a tensor alive.
struct Owner(SharedTensor);

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        // A shared tensor always has its bytes in memory.
        self.0.as_le_bytes().unwrap_or_default()
    }
}
