//! Reads the elements of a tensor from its storage, and puts them in order.

use std::borrow::Cow;

use tenarc::io::ReadAt;
use tenarc::tensor::TensorInfo;
use tenarc::{Error, Result};

use super::layout::Place;
use crate::source;
use crate::support::STEP;

/// The part of a storage that a tensor spans is read at once if it has at most this many bytes: `WASTE_TIMES` times
/// those of the tensor, plus `WASTE`.
const WASTE_TIMES: u64 = 2;
const WASTE: u64 = 1 << 20;

/// Passes the elements of a tensor to `put`, block by block. The first element is at position `at` of the source.
pub fn elements<S: ReadAt + ?Sized>(
    source: &S,
    at: u64,
    info: &TensorInfo,
    place: &Place,
    put: &mut dyn FnMut(&mut [u8]) -> Result<()>,
) -> Result<()> {
    let mut put = |mut block: Vec<u8>| put(&mut block);
    match &place.strides {
        None => direct(source, at, info.byte_len(), &mut put),
        Some(strides) => strided(source, at, info, place, strides, &mut put),
    }
}

/// Passes contiguous elements to `put`, block by block. They start at position `at` of the source.
fn direct<S: ReadAt + ?Sized>(
    source: &S,
    at: u64,
    len: u64,
    put: &mut dyn FnMut(Vec<u8>) -> Result<()>,
) -> Result<()> {
    let mut done = 0;
    while done < len {
        let step = (len - done).min(STEP as u64);
        put(source::bytes(source, at.saturating_add(done), step)?.into_owned())?;
        done += step;
    }
    Ok(())
}

/// Passes the elements of a strided view to `put`, in row-major order. In the source, they may have gaps between them,
/// be in another order, or be repeated. The first element of the view is at position `at` of the source.
fn strided<S: ReadAt + ?Sized>(
    source: &S,
    at: u64,
    info: &TensorInfo,
    place: &Place,
    strides: &[u64],
    put: &mut dyn FnMut(Vec<u8>) -> Result<()>,
) -> Result<()> {
    let shape = info.shape();
    let (outer, run) = runs(shape, strides, place.width);
    let (shape, strides) = (shape.get(..outer).unwrap_or(&[]), strides.get(..outer).unwrap_or(&[]));
    let dense = info.byte_len().saturating_mul(WASTE_TIMES).saturating_add(WASTE);
    // Reads the whole span at once if it is not much larger than the tensor. Otherwise reads run by run.
    let all = (source.contents().is_some() || place.span <= dense)
        .then(|| source::bytes(source, at, place.span))
        .transpose()?;
    let piece = |offset: u64, len: usize| match &all {
        Some(all) => source::slice(all, offset, len).map(Cow::Borrowed),
        None => source::bytes(source, at.saturating_add(offset), len as u64),
    };
    let mut block = Vec::new();
    let mut index = vec![0usize; shape.len()];
    let mut offset = 0u64;
    loop {
        let mut done = 0;
        while done < run {
            // This ends between two elements, because `run` and `STEP` are multiples of the width of an element.
            let step = (run - done).min(STEP);
            block.extend_from_slice(&piece(offset.saturating_add(done as u64), step)?);
            done += step;
            if block.len() >= STEP {
                put(std::mem::take(&mut block))?;
            }
        }
        // The last axis changes fastest. An axis that is at its end starts again, and the axis before it makes a step.
        let mut axes = index.iter_mut().zip(shape.iter().zip(strides)).rev();
        loop {
            let Some((step, (&dim, &stride))) = axes.next() else {
                return if block.is_empty() { Ok(()) } else { put(block) };
            };
            *step += 1;
            if *step < dim {
                offset = offset.checked_add(stride).ok_or_else(outside)?;
                break;
            }
            *step = 0;
            let back = stride.checked_mul(dim.saturating_sub(1) as u64);
            offset = back.and_then(|back| offset.checked_sub(back)).ok_or_else(outside)?;
        }
    }
}

#[cold]
fn outside() -> Error {
    Error::damaged("an element lies outside of its storage")
}

/// Splits the axes into outer ones and inner ones, so that the elements along the inner axes are contiguous. Returns
/// the number of outer axes, and the number of bytes of such a run of elements.
fn runs(shape: &[usize], strides: &[u64], width: usize) -> (usize, usize) {
    let mut outer = shape.len();
    let mut run = width;
    for (&dim, &stride) in shape.iter().zip(strides).rev() {
        if dim != 1 && stride != run as u64 {
            break;
        }
        run = run.saturating_mul(dim);
        outer -= 1;
    }
    (outer, run)
}
