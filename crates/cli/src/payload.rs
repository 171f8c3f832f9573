//! Reads the bytes of payloads: from the metadata, a segment, or a file of another format.

use std::ops::Range;

use tenarc::archive::Segment;
use tenarc::io::ReadAt;
use tenarc::tensor::AxisSlice;
use tenarc::{DynTensor, Tensor, Value};
use tenarc_convert::Stored as _;

use crate::document::Section;
use crate::failure::{Failure, Of, Result};
use crate::node::{Form, Node, Payload};

impl Section<'_> {
    /// Reads a payload, and calls `each` with its bytes in blocks of any size. The checksum, if there is one,
    /// is verified after the last block.
    ///
    /// # Errors
    /// If the bytes cannot be read, if the checksum does not match, or if `each` fails.
    pub fn blocks(&self, node: &Node, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let payload = node.payload().ok_or_else(|| Failure::new("expected a tensor"))?;
        let Some(number) = payload.buffer else { return each(&self.inline(node, payload)?) };
        let mut failed = None;
        let mut each = |block: &[u8]| {
            each(block).map_err(|failure| {
                let error = std::io::Error::other("reading was stopped");
                failed = Some(failure);
                serde::ser::Error::custom(error)
            })
        };
        let read = match (self.segment(), self.opened(), self.changed()) {
            (Some(segment), _, _) => segment.read_buffer(number, each).map_err(Failure::from),
            (_, Some(opened), _) => opened.blocks(number, &mut each).map_err(Failure::from),
            (_, _, Some(changed)) => changed.blocks(number, &mut each).map_err(Failure::from),
            _ => return Err(Failure::new("reference to a buffer, but a message has no buffers")),
        };
        failed.map_or(read.of(self.file), Err)
    }

    /// Reads all bytes of a payload into memory.
    ///
    /// # Errors
    /// If the bytes cannot be read, if the checksum does not match, or if there is not enough memory.
    pub fn payload_bytes(&self, node: &Node) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.blocks(node, &mut |block| {
            bytes.try_reserve(block.len()).map_err(|error| Failure::new(error.to_string()))?;
            bytes.extend_from_slice(block);
            Ok(())
        })?;
        Ok(bytes)
    }

    /// Reads some bytes of a payload. In an archive, the chunks that contain them are verified.
    ///
    /// # Errors
    /// If the bytes cannot be read, or are outside of the payload.
    pub fn part(&self, node: &Node, start: usize, len: usize) -> Result<Vec<u8>> {
        let beyond = || {
            Failure::new(format!(
                "expected {len} bytes from byte {start} of a tensor, which is shorter"
            ))
        };
        let payload = node.payload().ok_or_else(|| Failure::new("expected a tensor"))?;
        let end = start.checked_add(len).ok_or_else(beyond)?;
        if end as u64 > payload.byte_len {
            return Err(beyond());
        }
        let Some(number) = payload.buffer else {
            let (bytes, first) = match (&payload.column, self.segment()) {
                (Some(path), Some(segment)) => rows_around(segment, path, payload, start..end)?,
                _ => (self.inline(node, payload)?, 0),
            };
            let wanted = start.saturating_sub(first)..end.saturating_sub(first);
            return Ok(bytes.get(wanted).ok_or_else(beyond)?.to_vec());
        };
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(len).map_err(|error| Failure::new(error.to_string()))?;
        bytes.resize(len, 0);
        if let Some(segment) = self.segment() {
            segment.read_buffer_part(number, start as u64, &mut bytes)?;
        } else if !self
            .opened()
            .map_or(Ok(false), |from| from.part(number, start as u64, &mut bytes))?
        {
            bytes = self.read_up_to(node, start..end)?;
        }
        Ok(bytes)
    }

    /// Reads some bytes of a payload that can only be read from its start, such as a compressed one. Reading stops
    /// after the last wanted byte.
    fn read_up_to(&self, node: &Node, wanted: Range<usize>) -> Result<Vec<u8>> {
        let (mut at, mut bytes) = (0, Vec::new());
        let enough = |bytes: &Vec<u8>| bytes.len() == wanted.len();
        let read = self.blocks(node, &mut |block| {
            let [start, end] = [wanted.start, wanted.end].map(|edge| edge.saturating_sub(at));
            let range = start.min(block.len())..end.min(block.len());
            bytes.extend_from_slice(block.get(range).unwrap_or_default());
            at += block.len();
            // The error stops the reading, because the rest is not needed.
            if enough(&bytes) { Err(Failure::closed()) } else { Ok(()) }
        });
        match read {
            _ if enough(&bytes) => Ok(bytes),
            Err(failure) => Err(failure),
            Ok(()) => Err(Failure::damage("the file ends inside a tensor")),
        }
    }

    fn inline(&self, node: &Node, payload: &Payload) -> Result<Vec<u8>> {
        if let (Some(path), Some(segment)) = (&payload.column, self.segment()) {
            return Ok(segment.dyn_tensor(path)?.le_bytes().into_owned());
        }
        let item = self.item(&node.untagged().range);
        if payload.form == Form::Bytes {
            return match tenarc::from_slice(item)? {
                Value::Bytes(bytes) => Ok(bytes),
                _ => Err(Failure::new("expected bytes")),
            };
        }
        let Tensor(tensor) = tenarc::from_slice::<Tensor<DynTensor>>(item)?;
        Ok(tensor.le_bytes().into_owned())
    }
}

/// Reads the rows of a column that have these bytes of it. Returns their bytes, and the number of bytes before them.
fn rows_around<S: ReadAt + ?Sized>(
    segment: &Segment<'_, S>,
    path: &str,
    payload: &Payload,
    bytes: Range<usize>,
) -> Result<(Vec<u8>, usize)> {
    let rows = payload.shape.first().copied().unwrap_or_default();
    let len = usize::try_from(payload.byte_len).unwrap_or(usize::MAX);
    let Some(row_len) = len.checked_div(rows).filter(|&row_len| row_len > 0) else {
        return Ok((Vec::new(), 0));
    };
    let first = bytes.start / row_len;
    let mut slices = vec![AxisSlice::from(first..bytes.end.div_ceil(row_len))];
    slices.resize(payload.shape.len(), AxisSlice::from(..));
    let read: DynTensor = segment.slice(path, slices)?;
    Ok((read.le_bytes().into_owned(), first * row_len))
}
