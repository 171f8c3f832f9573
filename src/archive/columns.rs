//! Reads values in the columns of a segment (`SPEC.md`, annex A).

use std::collections::BTreeSet;
use std::ops::Range;

use serde::de::DeserializeOwned;

use super::segment::Segment;
use crate::buffer::file::FileBuffers;
use crate::buffer::slice::{PayloadPart, rows_of};
use crate::error::{Error, Result};
use crate::io::at::ReadAt;
use crate::path::list::references_at;
use crate::path::locate::{Inside, Location, in_columns, locate};
use crate::path::schema::{ColumnTarget, Schema, WholeColumn};
use crate::steps::Steps;
use crate::tensor::{DynTensor, FromTensor, RawTensor, Slices, Tensor, TensorInfo, ToTensor as _};
use crate::wire::columns::WantedFields;
use crate::wire::tensor::ItemPayload;

impl<S: ReadAt + ?Sized> Segment<'_, S> {
    /// Finds out where the value at a path is.
    pub(super) fn locate<'p>(&self, path: &'p str) -> Result<Location<'p>> {
        locate(self.metadata()?, self.header(), path, self.options.limits)
    }

    /// Decodes a value in the columns that are at this range of the metadata. Errors have their whole path, as those of
    /// the functions below.
    pub(super) fn decode_in<T: DeserializeOwned>(
        &self,
        range: Range<usize>,
        inside: &Inside<'_>,
    ) -> Result<T> {
        self.announce(|| self.numbers_inside(range.clone(), inside));
        let mut buffers = FileBuffers::new(self.source, &self.loaded, self.options);
        let (base, item) = self.item(range)?;
        in_columns(item, base, &mut buffers, self.options, inside)
    }

    /// Describes the target, which must be a tensor.
    pub(super) fn info_in(&self, range: Range<usize>, inside: &Inside<'_>) -> Result<TensorInfo> {
        let path = inside.path.to_owned();
        if let ColumnTarget::Column(whole) = &inside.target {
            return whole.info(path).ok_or_else(|| {
                let what =
                    "the column is not a tensor: its rows are not numbers of one dtype and shape";
                Error::mismatch(what).under(inside.path)
            });
        }
        let Tensor(tensor): Tensor<DynTensor> = self.decode_in(range, inside)?;
        let len = tensor.le_bytes().len() as u64;
        Ok(TensorInfo::new(path, tensor.meta(), len))
    }

    /// Reads part of the target, which must be a tensor. Of a column, only the groups with rows of the slice are read.
    pub(super) fn slice_in<T: for<'de> FromTensor<'de>>(
        &self,
        range: Range<usize>,
        inside: &Inside<'_>,
        slices: &Slices,
    ) -> Result<T> {
        let located = |error: Error| error.under(inside.path);
        let cut = |part: PayloadPart, bytes: &[u8]| {
            let runs = part.read(bytes);
            let (meta, bytes) = part.cut(runs);
            T::from_tensor(RawTensor::of_bytes(meta, &bytes)).map_err(located)
        };
        // A damaged column can claim more bytes than can be counted. Reading it is an error.
        let known = match &inside.target {
            ColumnTarget::Column(WholeColumn { meta: Some(meta), buffer, .. })
                if meta.byte_len().is_some() =>
            {
                Some((meta, buffer))
            }
            _ => None,
        };
        let Some((meta, buffer)) = known else {
            // The dtype and the shape are known only after the value is read.
            let Tensor(all): Tensor<DynTensor> = self.decode_in(range, inside)?;
            return cut(PayloadPart::new(&all.meta(), slices).map_err(located)?, &all.le_bytes());
        };
        let part = PayloadPart::new(meta, slices).map_err(located)?;
        if let Some(number) = *buffer {
            return self.part_of_buffer(part, number).map_err(located);
        }
        if part.len() == 0 {
            return cut(part, &[]);
        }
        let rows = meta.shape.first().copied().unwrap_or_default();
        let (rows, slices) = rows_of(slices, rows).map_err(located)?;
        let rows = rows.start as u64..rows.end as u64;
        let inside = Inside { rows, ..inside.clone() };
        let Tensor(read): Tensor<DynTensor> = self.decode_in(range, &inside)?;
        cut(PayloadPart::new(&read.meta(), &slices).map_err(located)?, &read.le_bytes())
    }

    /// The numbers of the buffers that a target refers to: those of a column, or those of the group of a row.
    pub(super) fn numbers_inside(
        &self,
        range: Range<usize>,
        inside: &Inside<'_>,
    ) -> Result<BTreeSet<u64>> {
        let (names, rows) = match &inside.target {
            _ if inside.is_packed => return self.numbers_of(range),
            ColumnTarget::Column(whole) => (&whole.names, inside.rows.clone()),
            ColumnTarget::InRow { names, row, .. } => (names, *row..row.saturating_add(1)),
        };
        self.numbers_in(range, WantedFields::At(names, Steps::of("")), vec![rows])
    }

    /// The numbers of the buffers of these fields in groups with these rows.
    pub(super) fn numbers_in(
        &self,
        range: Range<usize>,
        fields: WantedFields<'_>,
        rows: Vec<Range<u64>>,
    ) -> Result<BTreeSet<u64>> {
        let (base, item) = self.item(range)?;
        let (header, limits) = (self.header(), self.options.limits);
        let mut outline = Schema::default();
        outline.add(item, base, header, limits)?;
        let mut holders = outline.holders();
        let wanted = outline.wanted(fields, rows);
        let mut numbers = BTreeSet::new();
        references_at(item, base, &header.layout.buffers, limits, &mut |end, item| {
            if let ItemPayload::Buffer { number, .. } = item.payload
                && wanted.takes(holders.at(end.saturating_sub(1)))
            {
                numbers.insert(number);
            }
        })?;
        Ok(numbers)
    }
}
