//! Views of the columns of a table.

use std::fmt;
use std::marker::PhantomData;

use serde::de::Deserialize;

use super::{GroupSpan, SequenceStorage, Table, TablePart};
use crate::budget::Budget;
use crate::de::ColumnOfGroups;
use crate::error::{Error, Result};
use crate::io::at::ReadAt;
use crate::path::locate::{Inside, in_columns};
use crate::path::schema::ColumnTarget;
use crate::segment::buffers::SeenBuffers;
use crate::segment::decode_with;

impl<'a, S: ReadAt + ?Sized> Table<'a, S> {
    /// Views a column in an archive in memory, such as a [`Map`](crate::Map): for example as a
    /// `Tensor<ArrayView2<f32>>` whose first dimension is the row. Checksums are not verified.
    ///
    /// Rows of several values are in several places, and so are more than 65,536 rows of one value, which are several
    /// groups. [`views`](Self::views) gives a view of each. Without rows, the view is an
    /// empty sequence, but no tensor, because no dtype is stored.
    ///
    /// # Errors
    /// If the archive is not in memory, there is no such column, the rows are in several values, the column is a tensor in
    /// several groups, or it does not fit the type.
    pub fn view_column<T: Deserialize<'a>>(&self, path: &str) -> Result<T> {
        let filled: Vec<_> = self.filled().collect::<Result<_>>()?;
        let part = match &*filled {
            [] => {
                let empty = ColumnOfGroups::new(Budget::new(self.limits));
                return T::deserialize(empty).map_err(|error| error.in_field(path));
            }
            [part] => part,
            _ => {
                let what = format!(
                    "the column is in {} values: Table::views gives a view of each of its groups",
                    filled.len()
                );
                return Err(Error::unsupported(what).in_field(path));
            }
        };
        let whole = self.whole(path).map_err(|error| error.in_field(path))?;
        let target = ColumnTarget::Column(whole);
        let rows = 0..u64::MAX;
        let inside = Inside { target, rows, sequence: "", path, is_packed: false };
        let options = part.segment.options;
        part.segment.lending(part.range.clone(), None, |metadata, base, buffers| {
            in_columns(metadata, base, buffers, options, &inside)
        })
    }

    /// Views a column in an archive in memory group by group: each item is a view of the rows of one group, which has at
    /// most 65,536 rows. Together, the views are the whole column, in the order of the rows. Checksums are not
    /// verified. Groups without rows are passed over.
    ///
    /// A group is not read before the iterator reaches it. The other fields of the rows are not read at all, so their
    /// pages of a mapped file stay on the disk. What is read again by references to the same buffer is limited for
    /// all views of the iterator together.
    ///
    /// ```
    /// # use serde::Serialize;
    /// # #[derive(Serialize)]
    /// # struct Item { id: u32, embedding: [f32; 4] }
    /// # let items: Vec<_> = (0..100_000).map(|id| Item { id, embedding: [0.5; 4] }).collect();
    /// # let mut out = tenarc::OArchive::new(Vec::new())?;
    /// # out.save_as("items", &items)?;
    /// # let bytes = out.finish()?;
    /// # let archive = tenarc::Archive::new(&bytes[..])?;
    /// use ndarray::ArrayView2;
    /// use tenarc::Tensor;
    ///
    /// let items = archive.table("items")?;
    /// let mut sum = 0.0;
    /// for view in items.views::<Tensor<ArrayView2<f32>>>("embedding")? {
    ///     sum += view?.sum();
    /// }
    /// assert_eq!(sum, 200_000.0);
    /// # Ok::<(), tenarc::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such column. An item is an error if the archive is not in memory, the rows are not stored as
    /// columns, or the column of the group is compressed or damaged or does not fit the type.
    pub fn views<T: Deserialize<'a>>(&self, path: &str) -> Result<Views<'_, 'a, S, T>> {
        let names = self.whole(path).map_err(|error| error.in_field(path))?.names;
        let filled: Vec<_> = self.filled().collect::<Result<_>>()?;
        let places = filled.into_iter().flat_map(|part| {
            let groups: Vec<_> = match &part.stored {
                SequenceStorage::Items(_) => vec![ViewSource { part, group: None }],
                SequenceStorage::Columns { groups } => {
                    let filled = groups.iter().filter(|group| group.rows > 0);
                    filled.map(|group| ViewSource { part, group: Some(group) }).collect()
                }
            };
            groups
        });
        let places = places.collect::<Vec<_>>().into_iter();
        Ok(Views { path: path.to_owned(), names, places, seen: None, item: PhantomData })
    }
}

/// A group, or a value that is not stored as columns.
struct ViewSource<'t, 'a, S: ?Sized> {
    part: &'t TablePart<'a, S>,
    group: Option<&'t GroupSpan>,
}

impl<'a, S: ReadAt + ?Sized> ViewSource<'_, 'a, S> {
    /// Returns a view of the rows of the column at `path`, to which the names lead. `seen` is what was read of the same segment.
    fn view<T: Deserialize<'a>>(
        &self,
        path: &str,
        names: &[String],
        seen: &mut SeenBuffers,
    ) -> Result<T> {
        let Self { part, group } = *self;
        let Some(group) = group else {
            let what = "the rows are stored one by one, not as columns; load the column instead";
            return Err(Error::unsupported(what).in_index(part.first).in_field(path));
        };
        let options = part.segment.options;
        let first = self.first_row();
        let mut column = ColumnOfGroups::starting_at(first, Budget::new(options.limits));
        let range = part.range.start.saturating_add(group.at)..part.range.end;
        part.segment.lending_after(range, None, seen, |metadata, base, buffers| {
            let read = decode_with(metadata, base, buffers, options, |deserializer| {
                deserializer.column_of_group(names, None, &mut column)
            });
            read.map_err(|error| error.in_index(first))
        })?;
        T::deserialize(column).map_err(|error| error.in_field(path))
    }

    /// The number of the first row in the table.
    fn first_row(&self) -> u64 {
        let before = self.group.map_or(0, |group| group.end.saturating_sub(group.rows as u64));
        self.part.first.saturating_add(before)
    }
}

/// Iterates over the views of a column: [`Table::views`].
pub struct Views<'t, 'a, S: ?Sized, T> {
    path: String,
    /// The names of the fields that lead to the column.
    names: Vec<String>,
    places: std::vec::IntoIter<ViewSource<'t, 'a, S>>,
    /// What was read of the segment of this part.
    seen: Option<(&'t TablePart<'a, S>, SeenBuffers)>,
    item: PhantomData<fn() -> T>,
}

impl<S: ?Sized, T> fmt::Debug for Views<'_, '_, S, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let left = self.places.len();
        f.debug_struct("Views").field("path", &self.path).field("left", &left).finish()
    }
}

impl<'a, S: ReadAt + ?Sized, T: Deserialize<'a>> Iterator for Views<'_, 'a, S, T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        let place = self.places.next()?;
        let part = place.part;
        let seen = match &mut self.seen {
            Some((of, seen)) if std::ptr::eq(*of, part) => seen,
            seen => &mut seen.insert((part, SeenBuffers::new(part.segment.options.limits))).1,
        };
        Some(place.view(&self.path, &self.names, seen))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.places.size_hint()
    }
}

impl<'a, S: ReadAt + ?Sized, T: Deserialize<'a>> ExactSizeIterator for Views<'_, 'a, S, T> {}
