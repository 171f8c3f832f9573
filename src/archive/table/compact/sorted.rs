//! Sorts the rows of a table.

use std::collections::BTreeMap;
use std::io::Write;
use std::ops::Range;

use super::gather::{Gather, codec};
use super::key::{Key, Keys};
use super::{Compaction, one};
use crate::archive::directory::Entry;
use crate::archive::table::SequenceStorage;
use crate::archive::table::filter::KnownColumn;
use crate::archive::{Archive, OArchive, SaveOptions};
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::io::at::ReadAt;

/// About so many bytes of rows are brought into their order at once.
const BATCH: u64 = 32 << 20;
/// The most rows of a batch.
const MAX_BATCH: u64 = 1 << 20;

/// The name of the rows of a batch, which are in memory.
const NAME: &str = "";

impl Compaction {
    /// Adds the rows that stay, sorted by the last column. Returns the number of rows before.
    pub(super) fn sorted<S: ReadAt, W: Write>(
        &self,
        archive: &Archive<S>,
        parts: &[Entry],
        columns: &[KnownColumn],
        out: &mut Gather<'_, '_, S, W>,
    ) -> Result<u64> {
        let (mut rows, mut bytes, mut keyed) = (0u64, 0u64, Vec::new());
        let mut keys = Keys::default();
        // The notes that all values have, and the codec of the first one that has one.
        let (mut shared, mut used) = (None::<BTreeMap<_, _>>, None);
        let Some(((path, names), columns)) = columns.split_last() else { return Ok(0) };
        let located = |error: Error| error.in_field(path.clone());
        for entry in parts {
            let table = one(archive, entry);
            for part in table.filled() {
                let part = part?;
                if let SequenceStorage::Items(_) = part.stored {
                    let what = "cannot sort a table of which a value is stored as an array, not as columns";
                    return Err(Error::unsupported(what).at(part.segment.offset()));
                }
                let notes = part.segment.notes();
                let shared = shared.get_or_insert_with(|| notes.clone());
                shared.retain(|key, note| notes.get(key) == Some(note));
                used = used.or_else(|| codec(part));
                bytes = bytes.saturating_add(part.row_bytes().saturating_mul(part.rows));
            }
            let mut kept = self.kept(&table, columns)?.into_iter().peekable();
            let mut row = 0;
            let budget = Budget::new(table.limits);
            for (count, mut column) in table.column_of(names).map_err(located)?.into_groups() {
                let read = keys.of_column(&mut column, count, &budget, &mut |key| {
                    kept.next_if(|run| run.end <= row);
                    if kept.peek().is_some_and(|run| run.contains(&row)) {
                        keyed.push((key, rows.saturating_add(row)));
                    }
                    row += 1;
                });
                read.map_err(located)?;
            }
            rows = rows.saturating_add(table.len());
        }
        out.keep(shared.unwrap_or_default(), used);
        keyed.sort_by(|(one, _), (other, _)| Key::compare(one, other));
        let order: Vec<u64> = keyed.into_iter().map(|(_, row)| row).collect();
        let batch = (BATCH / bytes.div_ceil(rows.max(1)).max(1)).clamp(1, MAX_BATCH);
        for batch in order.chunks(usize::try_from(batch).unwrap_or(usize::MAX)) {
            add_in_order(archive, parts, batch, out)?;
        }
        Ok(rows)
    }
}

/// Adds rows of a table, in this order.
fn add_in_order<S: ReadAt, W: Write>(
    archive: &Archive<S>,
    parts: &[Entry],
    order: &[u64],
    out: &mut Gather<'_, '_, S, W>,
) -> Result<()> {
    // Each row, and its place among the rows of this batch. The rows are read in the order in which they are stored.
    let mut rows: Vec<(u64, usize)> = order.iter().copied().zip(0..).collect();
    rows.sort_unstable();
    let options = SaveOptions::default().with_checksums(false);
    let mut memory = OArchive::with_options(Vec::new(), options)?;
    let mut gather = Gather::new(Some(NAME), &mut memory);
    let (mut first, mut rest) = (0u64, &*rows);
    for entry in parts {
        let end = first.saturating_add(entry.rows().unwrap_or(0));
        let (here, later) = rest.split_at(rest.partition_point(|(row, _)| *row < end));
        if !here.is_empty() {
            let table = one(archive, entry);
            let runs = runs(here.iter().map(|(row, _)| row - first));
            for part in table.filled() {
                let part = part?;
                gather.add(part, &runs)?;
            }
        }
        (first, rest) = (end, later);
    }
    gather.finish()?;
    let memory = Archive::new(memory.finish()?)?;
    let table = memory.table(NAME)?;
    let mut columns = Vec::new();
    // For each place, the number of the column with its row, and the number of the row there.
    let mut places = vec![(0, 0); rows.len()];
    let mut next = rows.iter();
    for part in table.filled() {
        let part = part?;
        let SequenceStorage::Columns { groups } = &part.stored else { continue };
        for group in groups {
            let (mut column, count) =
                part.with_column(group, 0..group.rows, |column, count| Ok((column, count)))?;
            column.index(count, &mut |_| Ok(()))?;
            for ((_, place), row) in next.by_ref().take(count).zip(0..) {
                if let Some(at) = places.get_mut(*place) {
                    *at = (columns.len(), row);
                }
            }
            columns.push((column, count));
        }
    }
    let mut last = None;
    for (number, row) in places {
        let Some((column, count)) = columns.get_mut(number) else { continue };
        if last.replace(number) != Some(number) {
            out.begin(column, *count);
        }
        out.push(column, row..row + 1)?;
    }
    Ok(())
}

/// The runs that numbers make, which ascend.
fn runs(numbers: impl Iterator<Item = u64>) -> Vec<Range<u64>> {
    let mut runs: Vec<Range<u64>> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some(run) if run.end == number => run.end += 1,
            _ => runs.push(number..number + 1),
        }
    }
    runs
}
