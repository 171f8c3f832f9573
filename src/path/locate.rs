//! Finds the value at a path, also in columns, and reads it there (`SPEC.md`, annex A).

use std::marker::PhantomData;
use std::ops::Range;

use serde::de::Deserialize;

use super::find::{self, FoundPlace};
use super::schema::{ColumnTarget, Schema};
use crate::budget::Budget;
use crate::de::ColumnOfGroups;
use crate::error::Result;
use crate::io::buffers::Buffers;
use crate::options::{DecodeOptions, Limits};
use crate::segment::decode_with;
use crate::segment::header::Header;
use crate::steps::Steps;

/// Where the value at a path is.
pub enum Location<'p> {
    /// The value is the item in this range of the metadata.
    Item(Range<usize>),
    /// The value is in the columns that are the item in this range.
    InColumns(Range<usize>, Inside<'p>),
}

/// A value in columns, and how errors name it.
#[derive(Clone)]
pub struct Inside<'p> {
    pub target: ColumnTarget<'p>,
    /// If the target is a column, the rows of it that are read.
    pub rows: Range<u64>,
    /// The path of the sequence that is stored as columns. It is in front of errors of the columns, whose path starts
    /// with a row.
    pub sequence: &'p str,
    /// The path of the value. It is in front of errors of the value.
    pub path: &'p str,
    /// Whether the sequence is packed, and the target is one of its numbers.
    pub is_packed: bool,
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
) -> Result<Location<'p>> {
    let (range, steps) = match find::find(metadata, &header.layout.buffers, path, limits)? {
        FoundPlace::Item(range) => return Ok(Location::Item(range)),
        FoundPlace::InColumns(range, steps) => (range, steps),
        FoundPlace::InPacked(range, row) => {
            let target = ColumnTarget::InRow { names: Vec::new(), row, rest: Steps::of("") };
            let (rows, sequence) = (row..row.saturating_add(1), path);
            return Ok(Location::InColumns(
                range,
                Inside { target, rows, sequence, path, is_packed: true },
            ));
        }
    };
    let sequence = path.get(..path.len().saturating_sub(steps.len())).unwrap_or_default();
    let sequence = match steps {
        Steps::Dotted(_) => sequence.strip_suffix('.').unwrap_or(sequence),
        Steps::Pointer(_) => sequence,
    };
    let found = |target| {
        Location::InColumns(
            range.clone(),
            Inside { target, rows: 0..u64::MAX, sequence, path, is_packed: false },
        )
    };
    // In a JSON Pointer, a position may be the name of a field.
    if let (Steps::Dotted(_), (Some(row), Some(rest))) = (steps, steps.index()) {
        return Ok(found(ColumnTarget::InRow { names: Vec::new(), row, rest }));
    }
    let base = header.metadata_offset() + range.start as u64;
    let mut outline = Schema::default();
    let item = metadata.get(range.clone()).unwrap_or_default();
    let target = outline.add(item, base, header, limits).and_then(|()| outline.target(steps));
    target.map(found).map_err(|error| error.in_field(path))
}

/// Decodes a value in columns. Errors have their whole path.
pub fn in_columns<'de, T: Deserialize<'de>>(
    metadata: &'de [u8],
    base: u64,
    buffers: &mut dyn Buffers<'de>,
    options: DecodeOptions,
    inside: &Inside<'_>,
) -> Result<T> {
    let read = decode_with(metadata, base, buffers, options, |deserializer| match &inside.target {
        ColumnTarget::InRow { row, .. } if inside.is_packed => {
            deserializer.in_packed(*row, PhantomData)
        }
        ColumnTarget::InRow { names, row, rest } => {
            deserializer.in_row(*row, names, *rest, PhantomData)
        }
        ColumnTarget::Column(whole) => {
            let dtype = whole.meta.as_ref().map(|meta| meta.dtype.clone());
            let budget = Budget::new(options.limits);
            let mut column = ColumnOfGroups::new(budget).with_dtype(dtype);
            deserializer.column(&whole.names, inside.rows.clone(), &mut column)?;
            Ok(T::deserialize(column))
        }
    });
    let value = read.map_err(|error| error.under(inside.sequence))?;
    value.map_err(|error| error.under(inside.path))
}
