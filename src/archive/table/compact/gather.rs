//! Collects rows of a table, and saves them as few values.

use std::collections::BTreeMap;
use std::io::Write;
use std::ops::Range;

use serde::{Serialize, Serializer};

use crate::archive::OArchive;
use crate::archive::stored::Stored;
use crate::archive::table::{GroupSpan, SequenceStorage, TablePart};
use crate::budget::Budget;
use crate::codec::Codec;
use crate::error::Result;
use crate::io::at::ReadAt;
use crate::segment::decode_with;
use crate::segment::ext::Ext;
use crate::segment::options::{Compression, SaveOptions};
use crate::ser::columns::MergedRows;
use crate::wire::columns::{Column, WantedFields};
use crate::wire::reader::Left;

/// A segment is written when this many bytes of complete groups are in memory.
const SEGMENT: usize = 64 << 20;
/// About so many bytes of a group are read at once.
const READ: u64 = 32 << 20;
/// The most rows that are saved in one array.
const MAX_ITEMS: usize = 1 << 16;

/// Rows that are saved under one name.
pub struct Gather<'o, 'a, S: ?Sized, W: Write> {
    name: Option<&'o str>,
    out: &'o mut OArchive<W>,
    columns: MergedRows,
    /// Rows that are not stored as columns. Then there are no others.
    items: Vec<Stored<'a, S>>,
    /// The number of bytes of the metadata that they are in.
    item_bytes: usize,
    /// The notes of the segments that the rows come from.
    notes: BTreeMap<String, String>,
    /// The codec of these segments, if one of them is compressed.
    codec: Option<Codec>,
    /// The number of rows that were added, and of segments that were saved.
    rows: u64,
    segments: u64,
}

impl<'o, 'a, S: ReadAt + ?Sized, W: Write> Gather<'o, 'a, S, W> {
    pub fn new(name: Option<&'o str>, out: &'o mut OArchive<W>) -> Self {
        Self {
            name,
            out,
            columns: MergedRows::default(),
            items: Vec::new(),
            item_bytes: 0,
            notes: BTreeMap::new(),
            codec: None,
            rows: 0,
            segments: 0,
        }
    }

    /// Copies all rows of a value as they are stored.
    pub fn copy(&mut self, part: &TablePart<'a, S>) -> Result<()> {
        self.save()?;
        self.out.save_segment(&part.segment)?;
        self.segments += 1;
        self.rows = self.rows.saturating_add(part.rows);
        Ok(())
    }

    /// Adds rows of a value, whose numbers ascend.
    pub fn add(&mut self, part: &TablePart<'a, S>, rows: &[Range<u64>]) -> Result<()> {
        self.start(part)?;
        match &part.stored {
            SequenceStorage::Items(places) => {
                self.save_columns()?;
                // The items keep the metadata of their segment in memory.
                self.item_bytes = self.item_bytes.saturating_add(part.range.len());
                for row in rows.iter().cloned().flatten() {
                    let range = part.item(places, row)?;
                    self.items.push(part.segment.stored(range)?);
                    self.rows += 1;
                    if self.items.len() >= MAX_ITEMS {
                        self.save_items()?;
                    }
                }
                if self.item_bytes >= SEGMENT { self.save_items() } else { Ok(()) }
            }
            SequenceStorage::Columns { groups } => {
                let step = (READ / part.row_bytes().max(1)).max(1);
                let mut rest = rows;
                for group in groups {
                    let start = group.end - group.rows as u64;
                    // The wanted rows of this group. The last run can go on in the next one.
                    let passed = rest.partition_point(|run| run.end <= start);
                    rest = rest.get(passed..).unwrap_or_default();
                    let end = rest.partition_point(|run| run.start < group.end);
                    let here = rest.get(..end).unwrap_or_default().iter();
                    let runs = here.map(|run| run.start.max(start)..run.end.min(group.end));
                    for runs in read_at_once(runs, step) {
                        self.add_group(part, group, start, &runs)?;
                    }
                }
                Ok(())
            }
        }
    }

    /// Adds runs of rows of a group, which are read at once.
    fn add_group(
        &mut self,
        part: &TablePart<'a, S>,
        group: &GroupSpan,
        start: u64,
        runs: &[Range<u64>],
    ) -> Result<()> {
        let (Some(first), Some(last)) = (runs.first(), runs.last()) else { return Ok(()) };
        let (first, end) = (first.start, last.end);
        let in_group = |row: u64| usize::try_from(row - start).unwrap_or(usize::MAX);
        part.with_column(group, in_group(first)..in_group(end), |mut column, count| {
            self.begin(&column, count);
            for run in runs {
                let of_part =
                    in_group(run.start) - in_group(first)..in_group(run.end) - in_group(first);
                self.push(&mut column, of_part)?;
            }
            Ok(())
        })
    }

    /// Prepares for rows of a column, which has this many.
    pub fn begin(&mut self, column: &Column<'_>, rows: usize) {
        self.columns.begin(column, rows);
    }

    /// Adds rows of the column of the last call of [`begin`](Self::begin).
    pub fn push(&mut self, column: &mut Column<'_>, rows: Range<usize>) -> Result<()> {
        self.rows = self.rows.saturating_add(rows.len() as u64);
        self.columns.add(column, rows)?;
        if self.columns.size() >= SEGMENT { self.save_groups() } else { Ok(()) }
    }

    /// Sets what is kept of the values that the rows come from.
    pub fn keep(&mut self, notes: BTreeMap<String, String>, codec: Option<Codec>) {
        (self.notes, self.codec) = (notes, codec);
    }

    /// Prepares for rows of a value.
    fn start(&mut self, part: &TablePart<'_, S>) -> Result<()> {
        let notes = part.segment.notes();
        if notes != self.notes {
            self.save()?;
            self.notes = notes;
        }
        if let SequenceStorage::Columns { .. } = part.stored {
            self.save_items()?;
        }
        self.codec = self.codec.or_else(|| codec(part));
        Ok(())
    }

    /// Saves all rows. A table without rows stays a table. Returns the number of rows.
    pub fn finish(mut self) -> Result<u64> {
        self.save()?;
        if self.segments == 0 {
            self.save_groups()?;
        }
        Ok(self.rows)
    }

    fn save(&mut self) -> Result<()> {
        self.save_items()?;
        self.save_columns()
    }

    fn save_columns(&mut self) -> Result<()> {
        self.columns.end_group();
        if self.columns.is_empty() { Ok(()) } else { self.save_groups() }
    }

    /// Saves the complete groups.
    fn save_groups(&mut self) -> Result<()> {
        let mut options = self.options()?;
        if let Some(codec) = self.codec
            && options.keeps_compressed()
        {
            options = options.with_compression(Compression::with(codec));
        }
        self.out.segment_with(self.name, &self.columns, &options)?;
        self.columns.clear();
        self.segments += 1;
        Ok(())
    }

    /// The options of the archive, with the notes of the rows.
    fn options(&self) -> Result<SaveOptions> {
        let mut options = self.out.options().clone().with_statistics_by_default();
        let mut notes = self.notes.clone();
        notes.extend(options.ext.notes());
        options.ext = Ext::of_notes(&notes)?;
        Ok(options)
    }

    fn save_items(&mut self) -> Result<()> {
        if self.items.is_empty() {
            return Ok(());
        }
        let options = self.options()?.with_columns(false);
        self.out.segment_with(self.name, &&StoredRows(&self.items), &options)?;
        self.items.clear();
        self.item_bytes = 0;
        self.segments += 1;
        Ok(())
    }
}

/// The codec of the first compressed buffer that this build can write.
pub fn codec<S: ReadAt + ?Sized>(part: &TablePart<'_, S>) -> Option<Codec> {
    let mut packed = part.segment.header().layout.packed.values();
    packed.find_map(|how| how.coding.decodes().ok()).map(|(codec, _)| codec)
}

/// Divides runs of rows, whose numbers ascend, so that the rows from the first to the last of each part are at most `step`.
fn read_at_once(runs: impl Iterator<Item = Range<u64>>, step: u64) -> Vec<Vec<Range<u64>>> {
    let mut parts: Vec<Vec<Range<u64>>> = Vec::new();
    let mut end = 0;
    for mut run in runs {
        while !run.is_empty() {
            if run.start >= end || parts.is_empty() {
                end = run.start.saturating_add(step);
                parts.push(Vec::new());
            }
            let now = run.start..run.end.min(end);
            run.start = now.end;
            if let Some(part) = parts.last_mut() {
                part.push(now);
            }
        }
    }
    parts
}

impl<S: ReadAt + ?Sized> TablePart<'_, S> {
    /// Reads rows of a group, and calls `read` with their column and their number.
    pub(super) fn with_column<'s, R>(
        &'s self,
        group: &GroupSpan,
        rows: Range<usize>,
        read: impl FnOnce(Column<'s>, usize) -> Result<R>,
    ) -> Result<R> {
        let options = self.segment.options;
        let first = group.end - group.rows as u64 + rows.start as u64;
        self.read(&Budget::new(options.limits), |buffers| {
            let range = self.range.start.saturating_add(group.at)..self.range.end;
            let (base, item) = self.segment.item(range)?;
            let column = decode_with(item, base, buffers, options, |deserializer| {
                // The tag, and the array around the groups.
                deserializer.wire.within(2, |wire| {
                    let all = wire.group_rows(&mut Left::groups(1))?.unwrap_or_default();
                    wire.column_part(all, rows.start..rows.end.min(all), &WantedFields::All)
                })
            });
            let column = column.map_err(|error| error.in_index(self.first.saturating_add(first)));
            read(column?, rows.len())
        })
    }
}

/// Rows that are saved as they are stored.
struct StoredRows<'r, 'a, S: ?Sized>(&'r [Stored<'a, S>]);

impl<S: ReadAt + ?Sized> Serialize for StoredRows<'_, '_, S> {
    fn serialize<T: Serializer>(&self, serializer: T) -> Result<T::Ok, T::Error> {
        serializer.collect_seq(self.0)
    }
}
