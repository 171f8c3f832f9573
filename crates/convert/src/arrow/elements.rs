//! Reads the elements of columns, and converts them to the form that they have in tensors.

use tenarc::io::ReadAt;
use tenarc::tensor::{Order, TensorInfo};
use tenarc::{Error, Result};

use super::batch::Piece;
use super::cells::{Cells, Form};
use crate::order;
use crate::support::STEP;

/// Returns whether no buffer has a codec. Then the elements cannot take much more memory than the file.
pub fn are_plain(pieces: &[Piece]) -> bool {
    pieces.iter().flat_map(|piece| &piece.buffers).all(super::body::Buffer::is_plain)
}

/// Passes the elements of a tensor to `put` in blocks. Each block holds a whole number of elements.
pub fn blocks<S: ReadAt + ?Sized>(
    source: &S,
    info: &TensorInfo,
    cells: &Cells,
    pieces: &[Piece],
    put: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let strides = cells.strides.as_ref().filter(|_| info.order() == Order::C);
    let Some(strides) = strides else { return stored(source, cells, pieces, put) };
    let width = cells.width();
    let row = cells.count().and_then(|count| usize::try_from(count).ok()?.checked_mul(width));
    let row = row.ok_or_else(|| Error::limit("a row does not fit in memory"))?;
    let strides: Vec<usize> = strides.iter().map(|s| s.saturating_mul(width)).collect();
    let mut held = Vec::new();
    stored(source, cells, pieces, &mut |mut block| {
        while !block.is_empty() {
            let (part, rest) = block.split_at(block.len().min(row - held.len()));
            crate::support::reserve(&mut held, part.len())?;
            held.extend_from_slice(part);
            block = rest;
            if held.len() == row {
                order::gather(&held, &cells.shape, &strides, width, put)?;
                held.clear();
            }
        }
        Ok(())
    })
}

/// Passes elements to `put` in the order in which they are stored.
fn stored<S: ReadAt + ?Sized>(
    source: &S,
    cells: &Cells,
    pieces: &[Piece],
    put: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    for piece in pieces {
        let count = cells.count().and_then(|count| count.checked_mul(piece.rows));
        let need = count.and_then(|count| cells.stored(count));
        let (Some(buffer), Some(mut left), Some(need)) = (piece.buffers.first(), count, need)
        else {
            return Err(Error::limit("the rows do not fit in memory"));
        };
        let step = if cells.form == Form::Bits { STEP / 8 } else { STEP };
        buffer.blocks(source, need, step, &mut |block| match cells.form {
            Form::Plain => put(block),
            Form::Bool8 => {
                for byte in &mut *block {
                    *byte = u8::from(*byte != 0);
                }
                put(block)
            }
            Form::Bits => {
                let bits = block.iter().flat_map(|byte| (0..8).map(move |bit| byte >> bit & 1));
                let most = usize::try_from(left).unwrap_or(usize::MAX);
                let bools: Vec<u8> = bits.take(most).collect();
                left -= bools.len() as u64;
                put(&bools)
            }
        })?;
    }
    Ok(())
}
