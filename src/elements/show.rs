//! `Debug` output of elements and bytes, abbreviated: a tensor can have millions of elements.

use std::fmt;

use super::{Elements, each};
use crate::dtype::DType;
use crate::meta::TensorMeta;

/// The number of elements, or of bytes of an unknown dtype, that are shown.
const SHOWN: usize = 8;

/// Shows the first `MOST` items of a list, and `..` if there are more.
pub struct FirstOf<'a, T, const MOST: usize = SHOWN>(pub &'a [T]);

impl<T: fmt::Debug, const MOST: usize> fmt::Debug for FirstOf<'_, T, MOST> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut list = f.debug_list();
        match self.0.split_at_checked(MOST) {
            Some((first, [_, ..])) => list.entries(first).finish_non_exhaustive(),
            _ => list.entries(self.0).finish(),
        }
    }
}

/// Shows dtype, shape, order and the first elements of a tensor, in the order in which they are stored. If the dtype
/// has no Rust type, shows bytes instead of elements.
pub fn show_tensor(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    meta: &TensorMeta,
    elements: &Elements,
) -> fmt::Result {
    let mut shown = f.debug_struct(name);
    shown.field("dtype", &meta.dtype).field("shape", &meta.shape).field("order", &meta.order);
    elements.show(&mut shown)
}

/// Like [`show_tensor`], for little-endian bytes, which may be unaligned.
pub fn show_bytes_of_tensor(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    meta: &TensorMeta,
    bytes: &[u8],
) -> fmt::Result {
    // One element more than is shown, so that `..` follows.
    let len = (SHOWN + 1) * meta.dtype.bits().unwrap_or(8).div_ceil(8);
    let first = bytes.get(..len).unwrap_or(bytes);
    let elements = Elements::copied_from_le(&meta.dtype, first);
    let elements = elements.unwrap_or_else(|_| Elements::Raw(DType::U8, first.to_vec()));
    show_tensor(f, name, meta, &elements)
}

impl Elements {
    /// Adds the first elements to the output, and finishes it.
    pub fn show(&self, shown: &mut fmt::DebugStruct<'_, '_>) -> fmt::Result {
        each!(self, values => shown.field("elements", &FirstOf::<_>(values)), (_dtype, bytes) => {
            shown.field("bytes", &FirstOf::<_>(bytes))
        })
        .finish()
    }
}
