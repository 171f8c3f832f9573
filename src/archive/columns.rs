//! Reads values in the columns of a segment (`SPEC.md`, section 5.10).

use std::ops::Range;

use serde::de::DeserializeOwned;

use super::positioned::Positioned;
use super::segment::Segment;
use super::slice::Part;
use crate::error::{Error, Result};
use crate::io::at::ReadAt;
use crate::segment::columns::{Target, Whole};
use crate::segment::locate::{Found, in_columns, locate};
use crate::tensor::{DynTensor, FromTensor, RawTensor, Slices, Tensor, TensorInfo, ToTensor as _};

impl<S: ReadAt + ?Sized> Segment<'_, S> {
    /// Finds out where the value at a path is.
    pub(super) fn locate<'p>(&self, path: &'p str) -> Result<Found<'p>> {
        locate(self.metadata()?, self.header(), path, self.options.limits)
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

    /// Describes the target, which must be a tensor.
    pub(super) fn info_in(
        &self,
        range: Range<usize>,
        target: &Target<'_>,
        path: &str,
    ) -> Result<TensorInfo> {
        if let Target::Column(whole) = target {
            return whole.info(path.to_owned()).ok_or_else(|| {
                Error::data(
                    "the column is not a tensor: its rows are not numbers of one dtype and shape",
                )
            });
        }
        let Tensor(tensor): Tensor<DynTensor> = self.decode_in(range, target)?;
        let len = tensor.le_bytes().len() as u64;
        Ok(TensorInfo::new(path.to_owned(), tensor.meta(), len))
    }

    /// Reads part of the target, which must be a tensor.
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
        let bytes = all.le_bytes();
        let runs = part.read(&bytes);
        let (meta, bytes) = part.cut(runs);
        T::from_tensor(RawTensor::of_bytes(meta, &bytes))
    }
}
