//! Converts tensors from other orders to row-major order.

use tenarc::tensor::{TensorMeta, ToTensor};
use tenarc::{Error, Result};

/// The note about tensors that were converted.
pub const TURNED: &str = "tensors in column-major order are written in row-major order";

/// The number of bytes that are collected before they are passed on.
const BLOCK: usize = 64 << 10;

/// Returns whether elements of a tensor can be moved one by one. Elements of four or six bits cannot.
pub fn can_reorder(meta: &TensorMeta) -> bool {
    meta.dtype.bits().is_some_and(|bits| bits.is_multiple_of(8))
}

/// Passes the elements of a column-major tensor to `put` in row-major order. The whole tensor is in memory meanwhile.
pub fn row_major(
    tensor: &dyn ToTensor,
    meta: &TensorMeta,
    put: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let mut gathered = Vec::new();
    let bytes = match tensor.as_le_bytes() {
        Some(bytes) => bytes,
        None => {
            let len = tensor.byte_len(meta).unwrap_or(0);
            crate::support::reserve(&mut gathered, len)?;
            tensor.write_blocks(&mut |block| {
                gathered.extend_from_slice(block);
                if gathered.len() <= len { Ok(()) } else { Err(other_length(len)) }
            })?;
            &gathered[..]
        }
    };
    let (shape, width) = (&meta.shape, meta.dtype.bits().unwrap_or(8) / 8);
    if bytes.is_empty() {
        return Ok(());
    }
    // The distance in bytes from an element to the next one along each axis.
    let mut stride = width;
    let mut strides = Vec::with_capacity(shape.len());
    for &dim in shape {
        strides.push(stride);
        stride = stride.saturating_mul(dim);
    }
    if stride != bytes.len() {
        return Err(other_length(stride));
    }
    gather(bytes, shape, &strides, width, put)
}

/// Passes the elements of a tensor to `put` in row-major order of its shape. `strides` and `width`, the length of an
/// element, are in bytes. The tensor must not be empty, and all its elements must be inside of `bytes`.
pub fn gather(
    bytes: &[u8],
    shape: &[usize],
    strides: &[usize],
    width: usize,
    put: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let mut block = Vec::with_capacity(BLOCK + width);
    let mut index = vec![0; shape.len()];
    let mut at = 0;
    loop {
        block.extend_from_slice(bytes.get(at..).and_then(|rest| rest.get(..width)).unwrap_or(&[]));
        if block.len() >= BLOCK {
            put(&block)?;
            block.clear();
        }
        // The last axis changes fastest. An axis that reached its end starts again.
        let mut axes = index.iter_mut().zip(shape.iter().zip(strides)).rev();
        loop {
            let Some((step, (&dim, &stride))) = axes.next() else { return put(&block) };
            *step += 1;
            if *step < dim {
                at += stride;
                break;
            }
            *step = 0;
            at -= (dim - 1) * stride;
        }
    }
}

#[cold]
fn other_length(expected: usize) -> Error {
    Error::data(format!("expected {expected} bytes of a tensor, found another length"))
}
