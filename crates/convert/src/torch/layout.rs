//! Finds the elements of a tensor, and checks that they lie inside of their storage.

use tenarc::tensor::{Order, Shape, TensorInfo, TensorMeta};
use tenarc::{DType, Error, Result};

use super::container::{Container, Home};
use super::pickle::{At, Object, Rebuilt, Signs};
use crate::source::in_memory;
use crate::support::swap_words;

/// The place of a tensor's elements, all of which lie inside of their storage.
#[derive(Debug)]
pub struct Place {
    pub home: Home,
    /// The offset of the first element in the storage, in bytes.
    pub start: u64,
    /// The number of bytes from the start of the first element to the end of the last one.
    pub span: u64,
    /// The length of an element in bytes.
    pub width: usize,
    /// The stride along each axis in bytes. `None` if the elements are contiguous and in the order of the tensor.
    pub strides: Option<Vec<u64>>,
    /// Whether the tensor is contiguous and fills its storage.
    pub whole: bool,
    /// The length of a big-endian word in bytes. 1 if no bytes are swapped.
    swapped: usize,
    pub signs: Signs,
    is_complex: bool,
}

impl Place {
    /// Turns elements as they are in the storage into those of the tensor: makes them little-endian, and changes their
    /// signs if the tensor says so.
    pub fn finish(&self, block: &mut [u8]) {
        swap_words(block, self.swapped);
        let Signs { real, imaginary } = self.signs;
        let parts = if self.is_complex { 2 } else { 1 };
        for (changes, at) in [(real, 0), (imaginary, 1)].into_iter().take(parts) {
            if changes {
                let word = self.width / parts;
                let words = block.chunks_exact_mut(word.max(1)).skip(at).step_by(parts);
                // The sign is the highest bit of the last byte.
                words.filter_map(<[u8]>::last_mut).for_each(|byte| *byte ^= 0x80);
            }
        }
    }

    /// Makes readers gather the elements of a tensor in row-major order, whatever their order in the storage.
    pub fn in_rows(&mut self, tensor: &Rebuilt) {
        let width = self.width as u64;
        // `place` has checked these products.
        self.strides = Some(tensor.strides.iter().map(|s| s.saturating_mul(width)).collect());
        self.whole = false;
    }

    /// Whether the bytes in the storage are those of the tensor.
    pub fn is_as_stored(&self) -> bool {
        self.strides.is_none() && self.swapped <= 1 && self.signs == Signs::default()
    }
}

/// Finds the storage of a tensor, and the place of the tensor in it.
pub fn place(
    name: &str,
    tensor: &Rebuilt,
    container: &Container,
    objects: &[Object],
) -> Result<(TensorInfo, Place)> {
    let width = tensor.dtype.bits().unwrap_or(8) / 8;
    let (home, room) = match &tensor.storage.at {
        At::Member(key) => container.storage(key).ok_or_else(|| {
            Error::damaged(format!("the file has no storage `{}`", key.escape_debug()))
        })?,
        At::Object(number) => {
            let bytes = objects.get(*number).and_then(Object::as_bytes).unwrap_or_default();
            (Home::Object(*number), bytes.len() as u64)
        }
        At::Chunks(_) => return Err(Error::data("the tensor is in chunks, not in a storage")),
    };
    check_claim(tensor, room)?;
    let shape = tensor.shape.iter().map(|&dim| usize::try_from(dim).ok());
    let shape: Option<Shape> = shape.collect();
    let counted = shape.and_then(|shape| {
        let count = shape.element_count()?;
        Some((shape, count, tensor.dtype.byte_len(count)?))
    });
    let Some((shape, count, len)) = counted else {
        let (dtype, shape) = (&tensor.dtype, &tensor.shape);
        let what = format!("a {dtype} tensor of shape {shape:?} does not fit in memory");
        return Err(Error::data(what));
    };
    if tensor.strides.len() != shape.len() {
        let (found, expected) = (tensor.strides.len(), shape.len());
        return Err(Error::data(format!("expected {expected} strides, found {found}")));
    }
    in_memory(len as u64, 0)?;
    if matches!(home, Home::Object(_)) && len as u64 != room {
        let what = format!("expected {len} bytes of an array, found {room} in the pickle");
        return Err(Error::damaged(what));
    }
    let (start, span) = if count == 0 { (0, 0) } else { reach(tensor, width as u64, room)? };
    let order = order(&shape, &tensor.strides, count);
    let whole = order.is_some() && start == 0 && len as u64 == room;
    let strides = match order {
        Some(_) => None,
        // `reach` has checked these products. Only the stride of an axis with one element may be too large; it is never
        // used.
        None => Some(tensor.strides.iter().map(|s| s.saturating_mul(width as u64)).collect()),
    };
    let order = order.unwrap_or(Order::C);
    let meta = TensorMeta { dtype: tensor.dtype.clone(), shape, order };
    let info = TensorInfo::new(name.to_owned(), meta, len as u64);
    let swapped = match home {
        Home::Member(_) => container.big_endian,
        Home::Raw(_) => false,
        Home::Object(_) => tensor.swapped,
    };
    let swapped = if swapped { tensor.dtype.word() } else { 1 };
    let is_complex = matches!(tensor.dtype, DType::C64 | DType::C128);
    let signs = tensor.signs;
    Ok((info, Place { home, start, span, width, strides, whole, swapped, signs, is_complex }))
}

/// Checks that the storage has as many elements as the pickle says.
fn check_claim(tensor: &Rebuilt, room: u64) -> Result<()> {
    let dtype = tensor.storage.elements.dtype();
    let width = dtype.bits().unwrap_or(8) as u64 / 8;
    let count = tensor.storage.count;
    // A storage may end with a part of an element.
    if room / width == count {
        return Ok(());
    }
    Err(Error::damaged(format!(
        "expected a storage of {count} {dtype} elements, as the pickle says, found {room} bytes"
    )))
}

/// Returns the offset of the first element in the storage, and the number of bytes that the elements span.
fn reach(tensor: &Rebuilt, width: u64, room: u64) -> Result<(u64, u64)> {
    let last = tensor.shape.iter().zip(&tensor.strides).try_fold(0u64, |last, (&dim, &stride)| {
        last.checked_add(dim.saturating_sub(1).checked_mul(stride)?)
    });
    let start = tensor.offset.checked_mul(width);
    let span = last.and_then(|last| last.checked_add(1)?.checked_mul(width));
    let end = start.zip(span).and_then(|(start, span)| start.checked_add(span));
    match (start, span, end) {
        (Some(start), Some(span), Some(end)) if end <= room => Ok((start, span)),
        _ => Err(Error::damaged(format!(
            "the elements (offset {}, shape {:?}, strides {:?}) lie outside of the {room} bytes of their storage",
            tensor.offset, tensor.shape, tensor.strides
        ))),
    }
}

/// Returns the order of contiguous elements. `None` if the elements are not contiguous in either order.
fn order(shape: &[usize], strides: &[u64], count: usize) -> Option<Order> {
    fn dense<'a>(axes: impl Iterator<Item = (&'a usize, &'a u64)>) -> bool {
        let mut expected = 1u64;
        for (&dim, &stride) in axes {
            // The stride of an axis with one element is never used.
            if dim != 1 && stride != expected {
                return false;
            }
            expected = expected.saturating_mul(dim as u64);
        }
        true
    }
    if count == 0 || dense(shape.iter().zip(strides).rev()) {
        return Some(Order::C);
    }
    dense(shape.iter().zip(strides)).then_some(Order::F)
}
