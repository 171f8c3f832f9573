//! Conversions between elements and little-endian bytes.

use std::borrow::Cow;

use super::element::{Element, Sealed as _};
use super::{Elements, each, with_type};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::mem;

/// The bytes of the elements, if they are little-endian in memory. `None` on big-endian machines,
/// unless the elements consist of single bytes.
#[inline]
pub fn le_bytes<A: Element>(values: &[A]) -> Option<&[u8]> {
    (cfg!(target_endian = "little") || A::DTYPE.word() == 1).then(|| mem::bytes_of(values))
}

/// Copies little-endian bytes into a vector of elements.
#[inline]
pub fn copied<A: Element>(bytes: &[u8]) -> Result<Vec<A>> {
    let values = if cfg!(target_endian = "little") || A::DTYPE.word() == 1 {
        mem::checked::copied(bytes)
    } else {
        let mut swapped = bytes.to_vec();
        mem::swap_words(&mut swapped, A::DTYPE.word());
        mem::checked::copied(&swapped)
    };
    values.ok_or_else(|| not_elements::<A>(bytes))
}

#[cold]
fn not_elements<A: Element>(bytes: &[u8]) -> Error {
    if bytes.len().is_multiple_of(size_of::<A>())
        && let Some(byte) = bytes.iter().find(|&&byte| byte > 1)
    {
        return Error::data(format!(
            "a {} is stored as the byte {byte}; it must be 0 or 1",
            A::DTYPE
        ));
    }
    Error::data(format!("{} bytes are not a whole number of {} elements", bytes.len(), A::DTYPE))
}

/// Borrows little-endian bytes as elements, without a copy. It is an error if the bytes are not aligned, or if
/// this machine is big-endian.
pub fn viewed<A: Element>(bytes: &[u8]) -> Result<&[A]> {
    if bytes.is_empty() {
        // An empty slice may have any address.
        return Ok(&[]);
    }
    if A::DTYPE.word() > 1 && cfg!(target_endian = "big") {
        return Err(Error::unsupported(
            "a little-endian tensor cannot be viewed on a big-endian machine; read it into an \
             owned array",
        ));
    }
    mem::checked::viewed(bytes).ok_or_else(|| not_viewable::<A>(bytes))
}

#[cold]
fn not_viewable<A: Element>(bytes: &[u8]) -> Error {
    let address = bytes.as_ptr() as usize;
    if address.is_multiple_of(align_of::<A>()) {
        return not_elements::<A>(bytes);
    }
    Error::unsupported(format!(
        "a view of {} needs memory aligned to {} bytes, found address {address:#x}; read it into \
         an owned array or a CowArray",
        A::DTYPE,
        align_of::<A>()
    ))
}

impl Elements {
    /// The bytes in memory, if they are little-endian.
    pub fn as_le_bytes(&self) -> Option<&[u8]> {
        fn of<A: Element>(values: &[A]) -> Option<&[u8]> {
            le_bytes(values)
        }
        each!(self, values => of(values), (_dtype, bytes) => Some(bytes))
    }

    pub fn to_le_bytes(&self) -> Vec<u8> {
        self.le_bytes().into_owned()
    }

    pub fn le_bytes(&self) -> Cow<'_, [u8]> {
        fn of<A: Element>(values: &[A]) -> Cow<'_, [u8]> {
            if let Some(bytes) = le_bytes(values) {
                return Cow::Borrowed(bytes);
            }
            let mut bytes = mem::bytes_of(values).to_vec();
            mem::swap_words(&mut bytes, A::DTYPE.word());
            Cow::Owned(bytes)
        }
        each!(self, values => of(values), (_dtype, bytes) => Cow::Borrowed(bytes))
    }

    pub fn copied_from_le(dtype: &DType, bytes: &[u8]) -> Result<Self> {
        with_type!(
            dtype,
            A => copied::<A>(bytes).map(A::into_elements),
            _ => Ok(Self::Raw(dtype.clone(), bytes.to_vec()))
        )
    }

    /// Like [`Elements::copied_from_le`], but keeps the vector if it can be used as it is.
    pub fn from_le_bytes(dtype: &DType, bytes: Vec<u8>) -> Result<Self> {
        match dtype {
            DType::U8 => Ok(Self::U8(bytes)),
            _ => with_type!(
                dtype,
                A => copied::<A>(&bytes).map(A::into_elements),
                _ => Ok(Self::Raw(dtype.clone(), bytes))
            ),
        }
    }

    /// Converts bit patterns, in the byte order of this machine, to elements.
    pub fn from_bits<A: Element>(bits: Vec<A::Bits>) -> Result<Self> {
        let values = mem::checked::values(bits);
        let values = values.map_err(|bits| not_elements::<A>(bytemuck::cast_slice(&bits)))?;
        Ok(A::into_elements(values))
    }
}
