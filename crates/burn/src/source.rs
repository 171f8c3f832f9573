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
    /// With whether the checksums of tensors are verified.
    Memory(Archive<SharedBytes>, bool),
    Map(Map),
}

macro_rules! with_archive {
    ($source:expr, $archive:ident => $result:expr) => {
        match $source {
            Source::File($archive) => $result,
            Source::Memory($archive, _) => $result,
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
        let archive = Archive::new(bytes)?.with_options(options);
        Ok(Self::Memory(archive, options.checksums()))
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
        if let Some(tensor) = self.shared(info)? {
            let bytes = bytes::Bytes::from_owner(Owner(tensor));
            return Ok(Bytes::from_shared(bytes, AllocationProperty::File));
        }
        let Elements(bytes) =
            with_archive!(self, archive => archive.tensor::<Elements>(info.path()))?;
        Ok(bytes)
    }

    /// A tensor whose memory burn can use as it is. Bytes are verified before they are shared, but a map is not.
    fn shared(&self, info: &TensorInfo) -> Result<Option<SharedTensor>> {
        if info.order() != Order::C || cfg!(target_endian = "big") {
            return Ok(None);
        }
        let (value, verify) = match self {
            Self::File(_) => return Ok(None),
            Self::Memory(archive, verify) => (archive.only()?, *verify),
            Self::Map(map) => {
                return Ok(map.share(info.path()).ok().filter(SharedTensor::is_shared));
            }
        };
        let shared = value.share(info.path()).ok().filter(SharedTensor::is_shared);
        if shared.is_some() && verify && value.has_checksums() {
            value.verify_at(info.path())?;
        }
        Ok(shared)
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
