//! Checks that what an archive stores can be decoded.

use std::collections::BTreeSet;

use super::segment::Segment;
use crate::buffer::file::FileBuffers;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::io::at::ReadAt;
use crate::io::input::Input;
use crate::tensor::DynTensor;
use crate::value;
use crate::wire::head;
use crate::wire::reader::Reader;
use crate::wire::tag;
use crate::wire::tensor::{ItemPayload, Kind};
use crate::wire::walk::{Event, Walk};

impl<S: ReadAt + ?Sized> Segment<'_, S> {
    /// Decodes the whole value without a type, and keeps nothing of it: all texts, all rows of columns, the bytes of bool
    /// tensors, and all compressed tensors. A value that passes can be loaded as a [`Value`](crate::Value), if the
    /// memory suffices. Only what is decompressed or decoded is read; see
    /// [`Archive::verify_decoded`](crate::Archive::verify_decoded). The statistics of columns are compared with the rows.
    ///
    /// # Errors
    /// The first part that cannot be decoded.
    pub fn verify_decoded(&self) -> Result<()> {
        let (header, metadata) = (self.header(), self.metadata()?);
        let packed = header.layout.packed.keys().copied();
        let mut whole: BTreeSet<usize> = packed.collect();
        let mut bools = BTreeSet::new();

        let mut buffers = FileBuffers::new(self.source, &self.loaded, self.options);
        let source = Input::segment(metadata, header.metadata_offset(), &mut buffers);
        let mut wire = Reader::new(source, self.options.limits);
        let mut walk = Walk::default();
        while let Some(event) = walk.next(&mut wire)? {
            match event {
                Event::Tag(tag::COLUMNS) => {
                    let at = wire.offset();
                    let rows = walk.take(&mut wire).within(2, |wire| {
                        let mut left = wire.groups()?;
                        while let Some(mut group) = wire.group(&mut left)? {
                            for row in 0..group.rows {
                                // Each row may take what is left: nothing of it is kept.
                                value::read_row(&mut group.column, row, &wire.allowance())?;
                            }
                        }
                        Ok(())
                    });
                    rows.map_err(|error| error.at(at))?;
                }
                Event::Tag(tag) if tag::is_array(tag) => {
                    let wire = walk.take(&mut wire);
                    let at = wire.offset();
                    let item = wire.tensor(tag).map_err(|error| error.at(at))?;
                    match item.payload {
                        ItemPayload::Buffer { number, .. } => {
                            let number = usize::try_from(number).unwrap_or(usize::MAX);
                            if item.kind == Kind::Tensor && item.meta.dtype == DType::Bool {
                                bools.insert(number);
                                whole.insert(number);
                            }
                        }
                        _ => {
                            let (meta, elements) = wire.payload_elements(item)?;
                            DynTensor::from_parts(meta, elements).map_err(|error| error.at(at))?;
                        }
                    }
                }
                Event::Leaf(head) if head.major() == head::TEXT => drop(wire.text(head)?),
                Event::Leaf(head) => wire.skip_rest(head)?,
                _ => {}
            }
        }
        self.check_statistics()?;
        whole.into_iter().try_for_each(|number| {
            let are_bools = bools.contains(&number);
            let checked = self.read_buffer(number, |block| {
                match block.iter().find(|&&byte| are_bools && byte > 1) {
                    None => Ok(()),
                    Some(byte) => Err(Error::data(format!(
                        "a bool is stored as the byte {byte}; it must be 0 or 1"
                    ))),
                }
            });
            checked.map_err(|error| self.loaded.in_tensor(self.source, number as u64, error))
        })
    }
}
