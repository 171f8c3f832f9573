//! Finds the value at a path, also in columns, and reads it there (`SPEC.md`, section 5.10).

use std::marker::PhantomData;
use std::ops::Range;

use serde::de::Deserialize;

use super::columns::{Outline, Target};
use super::decode_with;
use super::find::{self, Place};
use super::header::Header;
use crate::de::ColumnOfGroups;
use crate::error::Result;
use crate::io::buffers::Buffers;
use crate::options::{DecodeOptions, Limits};

/// Where the value at a path is.
pub enum Found<'p> {
    /// The value is the item in this range of the metadata.
    Item(Range<usize>),
    /// The value is in the columns that are the item in this range.
    InColumns(Range<usize>, Target<'p>),
}

/// Returns where the value at `path` is in the metadata of a segment.
///
/// # Errors
/// If there is no such value, or several.
pub fn locate<'p>(
    metadata: &[u8],
    header: &Header,
    path: &'p str,
    limits: Limits,
) -> Result<Found<'p>> {
    let (range, steps) = match find::find(metadata, path, limits)? {
        Place::Item(range) => return Ok(Found::Item(range)),
        Place::InColumns(range, steps) => (range, steps),
    };
    if let (Some(row), Some(rest)) = steps.index() {
        return Ok(Found::InColumns(range, Target::InRow { names: Vec::new(), row, rest }));
    }
    let base = header.metadata_offset() + range.start as u64;
    let mut outline = Outline::default();
    let item = metadata.get(range.clone()).unwrap_or_default();
    let target = outline.add(item, base, header, limits).and_then(|()| outline.target(steps));
    target.map(|target| Found::InColumns(range, target)).map_err(|error| error.in_field(path))
}

/// Decodes a value in columns.
pub fn in_columns<'de, T: Deserialize<'de>>(
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
