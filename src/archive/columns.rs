//! Reads values in the columns of a segment (`SPEC.md`, section 5.10).

use std::borrow::Cow;
use std::marker::PhantomData;
use std::ops::Range;

use serde::de::{Deserialize, DeserializeOwned};

use super::positioned::Positioned;
use super::segment::{Segment, under};
use super::slice::Part;
use crate::de::ColumnOfGroups;
use crate::error::{Error, Result};
use crate::io::at::ReadAt;
use crate::io::buffers::Buffers;
use crate::options::DecodeOptions;
use crate::segment::columns::{Outline, Target, Whole};
use crate::segment::decode_with;
use crate::segment::find::{self, Place};
use crate::tensor::{DynTensor, FromTensor, RawTensor, Slices, Tensor, TensorInfo, ToTensor as _};

/// Where the value at a path is.
pub(super) enum Found<'p> {
    /// It is the item in this range of the metadata.
    Item(Range<usize>),
    /// It is in the columns that are the item in this range.
    InColumns(Range<usize>, Target<'p>),
}

impl<S: ReadAt + ?Sized> Segment<'_, S> {
    /// Finds out where the value at a path is.
    pub(super) fn locate<'p>(&self, path: &'p str) -> Result<Found<'p>> {
        let (range, steps) = match find::find(self.metadata()?, path, self.options.limits)? {
            Place::Item(range) => return Ok(Found::Item(range)),
            Place::InColumns(range, steps) => (range, steps),
        };
        let target = match steps.index() {
            (Some(row), Some(rest)) => Ok(Target::InRow { names: Vec::new(), row, rest }),
            _ => self.item(range.clone()).and_then(|(base, item)| {
                let mut outline = Outline::default();
                outline.add(item, base, self.header(), self.options.limits)?;
                outline.target(steps)
            }),
        };
        Ok(Found::InColumns(range, target.map_err(|error| under(error, path))?))
    }

    /// Decodes a value in the columns that are at this range of the metadata.
    pub(super) fn decode_in<T: DeserializeOwned>(
        &self,
        range: Range<usize>,
        target: &Target<'_>,
    ) -> Result<T> {
        let mut buffers = Positioned::new(self.source, &self.loaded, self.options);
        let (base, item) = self.item(range)?;
        in_columns(item, base, &mut buffers, self.options, target)
    }

    /// Describes the tensor that the target is.
    pub(super) fn info_in(
        &self,
        range: Range<usize>,
        target: &Target<'_>,
        path: &str,
    ) -> Result<TensorInfo> {
        if let Target::Column(whole) = target {
            return whole.info(path.to_owned()).ok_or_else(|| {
                Error::data(
                    "the column is no tensor: its rows are not numbers of one dtype and shape",
                )
            });
        }
        let Tensor(tensor): Tensor<DynTensor> = self.decode_in(range, target)?;
        let len = tensor.le_bytes().len() as u64;
        Ok(TensorInfo::new(path.to_owned(), tensor.meta(), len))
    }

    /// Reads part of the tensor that the target is.
    pub(super) fn slice_in<T: for<'de> FromTensor<'de>>(
        &self,
        range: Range<usize>,
        target: &Target<'_>,
        slices: &Slices,
    ) -> Result<T> {
        if let Target::Column(Whole { meta: Some(meta), buffer: Some(number), .. }) = target {
            return self.part_of_buffer(Part::new(meta, slices)?, *number);
        }
        // The tensor is not in one piece.
        let Tensor(all): Tensor<DynTensor> = self.decode_in(range, target)?;
        let part = Part::new(&all.meta(), slices)?;
        let (start, len) = part.bytes;
        let bytes = all.le_bytes();
        let run = bytes.get(start..).and_then(|rest| rest.get(..len)).unwrap_or_default();
        let (meta, bytes) = part.cut(Cow::Borrowed(run));
        T::from_tensor(RawTensor::of_bytes(meta, &bytes))
    }
}

/// Decodes a value in columns.
pub(super) fn in_columns<'de, T: Deserialize<'de>>(
    metadata: &'de [u8],
    base: u64,
    buffers: &mut dyn Buffers<'de>,
    options: DecodeOptions,
    target: &Target<'_>,
) -> Result<T> {
    decode_with(metadata, base, buffers, options, |deserializer| match target {
        Target::InRow { names, row, rest } => deserializer.in_row(*row, names, *rest, PhantomData),
        Target::Column(whole) => {
            let mut column = ColumnOfGroups::new(options.limits);
            deserializer.column(&whole.names, &mut column)?;
            T::deserialize(column)
        }
    })
}
