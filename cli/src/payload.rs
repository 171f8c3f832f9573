//! Reading the bytes of payloads, wherever they stand.

use tenarc::{DynTensor, ReadAt, Tensor, Value};

use crate::document::Section;
use crate::failure::{Failure, Result};
use crate::node::{Form, Node, Payload};

impl Section<'_> {
    /// Hands over all bytes of a payload, in blocks of any size, and with checksums verified behind the
    /// last.
    ///
    /// # Errors
    /// Where they cannot be read, are damaged, or `each` fails.
    pub fn blocks(&self, node: &Node, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let payload = node.payload().ok_or_else(|| Failure::new("expected a tensor"))?;
        let (Some(segment), Some(number)) = (self.segment(), payload.buffer) else {
            return each(&self.inline(node, payload)?);
        };
        let mut failed = None;
        let read = segment.read_buffer(number, |block| {
            each(block).map_err(|failure| {
                let error = std::io::Error::other("the block was not taken");
                failed = Some(failure);
                serde::ser::Error::custom(error)
            })
        });
        match failed {
            Some(failure) => Err(failure),
            None => Ok(read?),
        }
    }

    /// All bytes of a payload, in memory.
    ///
    /// # Errors
    /// As [`blocks`](Self::blocks).
    pub fn payload_bytes(&self, node: &Node) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.blocks(node, &mut |block| {
            bytes.try_reserve(block.len()).map_err(|error| Failure::new(error.to_string()))?;
            bytes.extend_from_slice(block);
            Ok(())
        })?;
        Ok(bytes)
    }

    /// Some bytes of a payload. The checksum, which is one of the whole, is not verified.
    ///
    /// # Errors
    /// Where they cannot be read.
    pub fn part(&self, node: &Node, start: usize, len: usize) -> Result<Vec<u8>> {
        let beyond = || Failure::new(format!("a payload without {len} bytes from {start} on"));
        let payload = node.payload().ok_or_else(|| Failure::new("expected a tensor"))?;
        let end = start.checked_add(len).ok_or_else(beyond)?;
        if end as u64 > payload.byte_len {
            return Err(beyond());
        }
        let (Some((segment, source)), Some(number)) = (self.stored(), payload.buffer) else {
            let bytes = self.inline(node, payload)?;
            return Ok(bytes.get(start..end).ok_or_else(beyond)?.to_vec());
        };
        let &(buffer, _) = segment.buffers().get(number).ok_or_else(beyond)?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(len).map_err(|error| Failure::new(error.to_string()))?;
        bytes.resize(len, 0);
        let mut done = 0;
        while let Some(rest) = bytes.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match source.read_at(rest, buffer + (start + done) as u64)? {
                0 => return Err(Failure::Damage("the file ended inside a tensor".into())),
                read => done += read,
            }
        }
        Ok(bytes)
    }

    fn inline(&self, node: &Node, payload: &Payload) -> Result<Vec<u8>> {
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
