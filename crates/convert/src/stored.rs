//! Values whose tensors are read from an archive, or from a file of another format, when they are needed.

use std::ops::Range;
use std::rc::Rc;

use tenarc::archive::Segment;
use tenarc::inspect::{Event, Form, Item, Items, Payload, TYPE};
use tenarc::io::ReadAt;
use tenarc::tensor::TensorMeta;
use tenarc::value::from_value;
use tenarc::{DynTensor, Result, Tensor, Value};

use crate::Losses;
use crate::columns::{FlatColumn, flat_columns};
use crate::support::reserve;
use crate::typed::Type;

/// A function that receives the bytes of a tensor in blocks.
pub type Put<'a> = dyn FnMut(&[u8]) -> Result<()> + 'a;

/// A value that can be written to any format. It is a value of an archive (a [`Segment`]), or an opened file of another
/// format ([`Opened`](crate::Opened)). Its tensors are read when they are written.
pub trait Stored {
    /// Returns the encoded value, with references to buffers in place of tensors.
    ///
    /// # Errors
    /// If the value is damaged.
    fn metadata(&self) -> Result<&[u8]>;

    /// Returns the position and the length of each buffer. Only the lengths are used.
    fn buffers(&self) -> &[(u64, u64)];

    /// Passes the bytes of the buffer with this number to `put` in blocks.
    ///
    /// # Errors
    /// If the bytes cannot be read or are damaged, or if `put` fails.
    fn blocks(&self, buffer: usize, put: &mut Put<'_>) -> Result<()>;

    /// Returns what was already left out of the value, for example because a part of its file cannot be read. Writers
    /// count it as lost.
    fn lost(&self) -> Losses {
        Losses::default()
    }

    /// Checks data that belongs to the tensors, but is not checked when they are read. Writers call it before they write.
    /// An example is the checksum of a torch storage of which the tensors use only a part.
    ///
    /// # Errors
    /// If something is damaged, or cannot be read.
    fn verify_unread(&self) -> Result<()> {
        Ok(())
    }

    /// Returns the items of the metadata.
    ///
    /// # Errors
    /// If the metadata are damaged.
    fn items(&self) -> Result<Items<'_>> {
        Ok(Items::new(self.metadata()?).with_buffers(self.buffers()))
    }

    /// Returns whether the whole value is a tensor.
    ///
    /// # Errors
    /// If the metadata are damaged.
    fn is_tensor(&self) -> Result<bool> {
        let mut items = self.items()?;
        while let Some(item) = items.next().transpose()? {
            match item.event {
                Event::Tag(TYPE) => drop(Type::read(&mut items, self.metadata()?)?),
                Event::Tag(_) => {}
                Event::Payload(payload) => return Ok(payload.form != Form::Bytes),
                _ => break,
            }
        }
        Ok(false)
    }

    /// Decodes the item at this range of the metadata.
    ///
    /// # Errors
    /// If the item cannot be read, or is damaged.
    fn decode(&self, range: Range<usize>) -> Result<Value> {
        let item = self.metadata()?.get(range.clone()).unwrap_or_default();
        let first = Items::new(item).with_buffers(self.buffers()).next().transpose()?;
        if let Some(Item { event: Event::Payload(payload), .. }) = first
            && payload.buffer.is_some()
        {
            let mut bytes = Vec::new();
            self.payload(&payload, range, &mut |block| {
                reserve(&mut bytes, block.len())?;
                bytes.extend_from_slice(block);
                Ok(())
            })?;
            let TensorMeta { dtype, shape, order } = payload.meta;
            return Ok(Value::Tensor(Box::new(DynTensor::new(dtype, &shape, order, bytes)?)));
        }
        tenarc::from_slice(item).map_err(|error| error.moved_by(range.start as u64))
    }

    /// Decodes the tensor at this range of the metadata.
    ///
    /// # Errors
    /// If the item is not a tensor, cannot be read, or is damaged.
    fn tensor(&self, range: Range<usize>) -> Result<DynTensor> {
        match self.decode(range)? {
            Value::Tensor(tensor) => Ok(*tensor),
            value => from_value::<Tensor<DynTensor>>(value).map(Tensor::into_inner),
        }
    }

    /// Passes the bytes of the tensor at this range of the metadata to `put` in blocks.
    ///
    /// # Errors
    /// If the bytes cannot be read or are damaged, or if `put` fails.
    fn payload(&self, payload: &Payload, range: Range<usize>, put: &mut Put<'_>) -> Result<()> {
        match payload.buffer {
            Some(buffer) => self.blocks(usize::try_from(buffer).unwrap_or(usize::MAX), put),
            None => put(&self.tensor(range)?.le_bytes()),
        }
    }

    /// Returns the columns of a sequence that are tensors or texts. The others are added to the losses. `pointer` is the path of the sequence as a JSON Pointer. `name` is the same path as the names of its
    /// tensors have it. The default is for values without sequences that are stored as columns.
    ///
    /// # Errors
    /// If the columns are damaged.
    fn columns<'a>(
        &'a self,
        _pointer: &str,
        _name: &str,
        _losses: &mut Losses,
    ) -> Result<Vec<FlatColumn<'a>>> {
        Ok(Vec::new())
    }
}

impl<S: ReadAt + ?Sized> Stored for Segment<'_, S> {
    fn metadata(&self) -> Result<&[u8]> {
        self.metadata()
    }

    fn buffers(&self) -> &[(u64, u64)] {
        self.buffers()
    }

    fn blocks(&self, buffer: usize, put: &mut Put<'_>) -> Result<()> {
        self.read_buffer(buffer, put)
    }

    fn items(&self) -> Result<Items<'_>> {
        self.inspect()
    }

    fn decode(&self, range: Range<usize>) -> Result<Value> {
        self.decode(range)
    }

    fn tensor(&self, range: Range<usize>) -> Result<DynTensor> {
        self.decode(range).map(Tensor::into_inner)
    }

    fn columns<'a>(
        &'a self,
        pointer: &str,
        name: &str,
        losses: &mut Losses,
    ) -> Result<Vec<FlatColumn<'a>>> {
        flat_columns(&Rc::new(self.table(pointer)?), name, losses)
    }
}
