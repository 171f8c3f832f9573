//! Rows of a table by their numbers.

use std::collections::BTreeSet;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use serde::de::{self, DeserializeOwned, DeserializeSeed, Deserializer, IgnoredAny, SeqAccess};

use super::{SequenceStorage, Table, TableEntry, TablePart};
use crate::budget::Budget;
use crate::buffer::file::FileBuffers;
use crate::buffer::unpack::KeptChunks;
use crate::de::fields_at;
use crate::error::Result;
use crate::io::at::{ReadAt, announce};
use crate::wire::columns::{Ask, Place, WantedFields};

/// Rows of a group are read together if there are at most this part of the group's rows between them. So a group is read
/// at most this many times, and few rows are read that nobody wants.
const NEAR: u64 = 64;

impl<S: ReadAt + ?Sized> Table<'_, S> {
    /// Loads the rows with these numbers, in this order. A row may be asked for several times. As by [`row`](Self::row),
    /// only the columns that the type has fields for are read, and their checksums are not verified.
    ///
    /// This is faster than a call of [`row`](Self::row) for each: rows that are near each other are read together,
    /// whatever their order.
    ///
    /// **Compressed columns** are read and decompressed in whole chunks, of 1 MiB by default, which are verified. The
    /// chunks that this function and [`row`](Self::row) decompressed last stay in memory with the table, up to 32 MiB of
    /// them (or [`Limits::with_max_alloc`](crate::de::Limits::with_max_alloc), if that is less). This is more than a
    /// group of rows takes that tenarc wrote, so rows near the last one are read without decompressing anything.
    ///
    /// ```
    /// # let mut out = tenarc::OArchive::new(Vec::new())?;
    /// # out.save_as("squares", &(0..1000u32).map(|n| (n, n * n)).collect::<Vec<_>>())?;
    /// # let archive = tenarc::Archive::new(out.finish()?)?;
    /// let squares = archive.table("squares")?;
    /// let batch: Vec<(u32, u32)> = squares.take(&[30, 7, 999])?;
    /// assert_eq!(batch, [(30, 900), (7, 49), (999, 998_001)]);
    /// # Ok::<(), tenarc::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no row with one of these numbers, or a row cannot be read or does not fit the type.
    pub fn take<T: DeserializeOwned>(&self, rows: &[u64]) -> Result<Vec<T>> {
        let mut order: Vec<(u64, usize)> = rows.iter().copied().zip(0..).collect();
        order.sort_unstable();
        if let Some(&(last, _)) = order.last() {
            self.check_row(last)?;
        }
        if let Some(source) = self.parts.first().and_then(TableEntry::source) {
            announce(source, || self.headers_of_rows(&order));
            announce(source, || self.places_of_rows(&order, &fields_at::<T>));
        }
        let mut taken: Vec<(usize, T)> = Vec::new();
        let budget = Budget::new(self.limits);
        let mut last = None;
        let mut rest = &*order;
        while let Some(&(row, _)) = rest.first() {
            let number = self.part_of(row);
            let Some(part) = self.parts.get(number) else { break };
            let part = part.part()?;
            if last.replace(number) != Some(number) {
                budget.start(0);
            }
            let (now, later) = rest.split_at(part.count_together(rest));
            let read = part.take(now, &self.chunks, &budget)?;
            budget.reserve(&mut taken, read.len())?;
            budget.refund_vec(&read);
            taken.extend(now.iter().map(|(_, place)| *place).zip(read));
            rest = later;
        }
        budget.charge((taken.len() * size_of::<T>()) as u64)?;
        taken.sort_unstable_by_key(|(place, _)| *place);
        Ok(taken.into_iter().map(|(_, row)| row).collect())
    }

    /// The headers of the sequences with these rows, which ascend, as far as they were not read yet.
    fn headers_of_rows(&self, order: &[(u64, usize)]) -> Vec<Range<u64>> {
        let mut numbers: Vec<usize> = order.iter().map(|(row, _)| self.part_of(*row)).collect();
        numbers.dedup();
        let parts = numbers.into_iter().filter_map(|number| self.parts.get(number));
        let unread = parts.filter(|part| part.part.get().is_none());
        unread.filter_map(|part| Some(part.unread.as_ref()?.place.clone())).collect()
    }

    /// The ranges of the archive with these rows, which ascend.
    fn places_of_rows(&self, mut rest: &[(u64, usize)], fields: &Ask<'_>) -> Vec<Range<u64>> {
        let mut places = Vec::new();
        while let Some(&(row, _)) = rest.first() {
            let part = self.parts.get(self.part_of(row)).and_then(|part| part.part().ok());
            let Some(part) = part else { break };
            let (now, later) = rest.split_at(part.count_together(rest));
            // What cannot be found out is read when it is needed.
            places.extend(part.places_of_rows(now, fields).unwrap_or_default());
            rest = later;
        }
        places
    }
}

impl<S: ReadAt + ?Sized> TablePart<'_, S> {
    /// The first row of the group with this row, and the one behind the group, counted through the table.
    fn around(&self, row: u64) -> (u64, u64) {
        let group = self.group(row - self.first);
        (self.first.saturating_add(group.start), self.first.saturating_add(group.end))
    }

    /// How many of these rows, which ascend, are read together: those of one group that are near each other. At least 1.
    fn count_together(&self, rows: &[(u64, usize)]) -> usize {
        let Some(&(mut before, _)) = rows.first() else { return 0 };
        let (group, end) = self.around(before);
        let near = ((end - group) / NEAR).max(1);
        let is_near = |&&(row, _): &&(u64, usize)| {
            // A row that is wanted twice is read twice.
            let is_near = row > before && row - before <= near && row < end;
            before = row;
            is_near
        };
        1 + rows.iter().skip(1).take_while(is_near).count()
    }

    /// The ranges of the archive with rows of one group, which ascend. In a column of texts or lists, it is not known where a row is:
    /// only columns whose rows all have the same length are found.
    fn places_of_rows(&self, wanted: &[(u64, usize)], fields: &Ask<'_>) -> Result<Vec<Range<u64>>> {
        let (Some((first, _)), Some((last, _))) = (wanted.first(), wanted.last()) else {
            return Ok(Vec::new());
        };
        if let SequenceStorage::Items(items) = &self.stored {
            let numbers = |(row, _): &(u64, usize)| {
                self.segment.numbers_of(self.item(items, row - self.first)?)
            };
            let numbers: Result<Vec<BTreeSet<u64>>> = wanted.iter().map(numbers).collect();
            return Ok(self.segment.places_of(Ok(numbers?.into_iter().flatten().collect())));
        }
        let (group, end) = self.around(*first);
        let rows = first - self.first..last - self.first + 1;
        let numbers = self.numbers(WantedFields::Of(fields, Place::ROW), vec![rows])?;
        let places = numbers.into_iter().filter_map(|number| {
            let (start, len) = self.segment.loaded.stored_buffer(number).ok()?.plain().ok()?;
            let width =
                len.checked_div(end - group).filter(|width| width * (end - group) == len)?;
            Some(start + (first - group) * width..start + (last + 1 - group) * width)
        });
        Ok(places.collect())
    }

    /// Reads these rows of one group, which ascend.
    fn take<T: DeserializeOwned>(
        &self,
        wanted: &[(u64, usize)],
        chunks: &KeptChunks,
        budget: &Budget,
    ) -> Result<Vec<T>> {
        let options = self.segment.options;
        let (source, loaded) = (self.segment.source, &self.segment.loaded);
        let (Some((first, _)), Some((last, _))) = (wanted.first(), wanted.last()) else {
            return Ok(Vec::new());
        };
        match &self.stored {
            SequenceStorage::Items(items) => self.read(budget, |buffers| {
                let rows = wanted.iter().map(|(row, _)| row - self.first);
                self.rows_of(items, rows, buffers)
            }),
            SequenceStorage::Columns { groups } => {
                let mut buffers =
                    FileBuffers::keeping(source, loaded, options, budget.clone(), chunks);
                let rows = first - self.first..last - self.first + 1;
                let seed = Picked { rows: wanted, row: PhantomData };
                let options = options.with_checksums(false);
                let taken =
                    self.in_groups(groups, rows, &fields_at::<T>, options, &mut buffers, seed)?;
                budget.take_over(buffers.left());
                Ok(taken)
            }
        }
    }
}

/// Reads some rows of a sequence, the first and the last one among them, and passes over the others.
struct Picked<'p, T> {
    /// The numbers of the rows, which ascend. The sequence starts with the first of them.
    rows: &'p [(u64, usize)],
    row: PhantomData<T>,
}

impl<'de, T: DeserializeOwned> DeserializeSeed<'de> for Picked<'_, T> {
    type Value = Vec<T>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<T>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, T: DeserializeOwned> de::Visitor<'de> for Picked<'_, T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence of rows")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<T>, A::Error> {
        let mut taken = Vec::new();
        let mut next = self.rows.first().map_or(0, |(row, _)| *row);
        for (row, _) in self.rows {
            for _ in next..*row {
                seq.next_element::<IgnoredAny>()?;
            }
            next = row + 1;
            taken.extend(seq.next_element()?);
        }
        Ok(taken)
    }
}
