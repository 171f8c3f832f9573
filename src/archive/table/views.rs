//! Views of the columns of a table.

use std::fmt;
use std::marker::PhantomData;

use serde::de::Deserialize;

use super::{Group, Part, Stored, Table};
use crate::de::ColumnOfGroups;
use crate::error::{Error, Result};
use crate::io::at::ReadAt;
use crate::options::Limits;
use crate::segment::decode_with;

impl<'a, S: ReadAt + ?Sized> Table<'a, S> {
    /// Views a column in an archive in memory, such as a [`Map`](crate::Map): for example as a
    /// `Tensor<ArrayView2<f32>>` whose first dimension is the row. Checksums are not verified.
    ///
    /// A column with more than 65,536 rows is in several groups, and so are the rows of several values. Its texts can
    /// be viewed here as a `Vec<&str>`. A tensor in several groups is in several places: view it with
    /// [`views`](Self::views).
    ///
    /// # Errors
    /// If the archive is not in memory, there is no such column, rows are not stored as columns, it is a tensor in several
    /// groups, or it does not fit the type.
    pub fn view_column<T: Deserialize<'a>>(&self, path: &str) -> Result<T> {
        let views = self.views::<T>(path)?;
        let groups = views.places.len();
        let view = views.lend().and_then(|column| {
            T::deserialize(column).map_err(|error| match groups {
                ..=1 => error,
                _ => Error::data(format!(
                    "{error}; the column is in {groups} groups: Table::views gives a view of each"
                )),
            })
        });
        view.map_err(|error: Error| error.in_field(path))
    }

    /// Views a column in an archive in memory group by group: each item is a view of the rows of one group, which has at
    /// most 65,536 rows. Together, the views are the whole column, in the order of the rows. Checksums are not
    /// verified. Groups without rows are passed over.
    ///
    /// A group is not read before the iterator reaches it. Other columns are not read at all, so their pages of a mapped
    /// file stay on the disk.
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
    /// columns, or the column of the group is damaged or does not fit the type.
    pub fn views<T: Deserialize<'a>>(&self, path: &str) -> Result<Views<'_, 'a, S, T>> {
        let names = self.whole(path).map_err(|error| error.in_field(path))?.names;
        let filled = self.parts.iter().filter(|part| part.rows > 0);
        let places = filled.flat_map(|part| {
            let groups: Vec<_> = match &part.stored {
                Stored::Items(_) => vec![Place { part, group: None }],
                Stored::Columns { groups } => {
                    let filled = groups.iter().filter(|group| group.rows > 0);
                    filled.map(|group| Place { part, group: Some(group) }).collect()
                }
            };
            groups
        });
        let places = places.collect::<Vec<_>>().into_iter();
        Ok(Views { path: path.to_owned(), names, places, item: PhantomData })
    }
}

/// A group, or a value that is not stored as columns.
struct Place<'t, 'a, S: ?Sized> {
    part: &'t Part<'a, S>,
    group: Option<&'t Group>,
}

impl<S: ?Sized> Clone for Place<'_, '_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: ?Sized> Copy for Place<'_, '_, S> {}

impl<'a, S: ReadAt + ?Sized> Place<'_, 'a, S> {
    /// Adds the rows of the column, which borrow from the archive.
    fn lend(self, names: &[String], column: &mut ColumnOfGroups<'a>) -> Result<()> {
        let Place { part, group } = self;
        let Some(group) = group else {
            let what = "the rows are stored one by one, not as columns; load the column instead";
            return Err(Error::data(what).in_index(part.first));
        };
        let options = part.segment.options;
        let start = part.range.start.saturating_add(group.at);
        let lent = part.segment.lending(start..part.range.end, None, |metadata, base, buffers| {
            decode_with(metadata, base, buffers, options, |deserializer| {
                deserializer.column_of_group(group.rows, names, column)
            })
        });
        lent.map_err(|error| error.in_index(self.first_row()))
    }

    /// The column before rows are added.
    fn column(&self) -> ColumnOfGroups<'a> {
        ColumnOfGroups::starting_at(self.first_row(), self.part.segment.options.limits)
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
    places: std::vec::IntoIter<Place<'t, 'a, S>>,
    item: PhantomData<fn() -> T>,
}

impl<S: ?Sized, T> fmt::Debug for Views<'_, '_, S, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let left = self.places.len();
        f.debug_struct("Views").field("path", &self.path).field("left", &left).finish()
    }
}

impl<'a, S: ReadAt + ?Sized, T> Views<'_, 'a, S, T> {
    /// Returns the rows of all groups that are left as one column.
    fn lend(self) -> Result<ColumnOfGroups<'a>> {
        let first = self.places.as_slice().first();
        let mut column = match first {
            Some(place) => place.column(),
            None => ColumnOfGroups::new(Limits::default()),
        };
        for place in self.places {
            place.lend(&self.names, &mut column)?;
        }
        Ok(column)
    }
}

impl<'a, S: ReadAt + ?Sized, T: Deserialize<'a>> Iterator for Views<'_, 'a, S, T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        let place = self.places.next()?;
        let mut column = place.column();
        let lent = place.lend(&self.names, &mut column);
        let view = lent.and_then(|()| T::deserialize(column));
        Some(view.map_err(|error| error.in_field(&self.path)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.places.size_hint()
    }
}

impl<'a, S: ReadAt + ?Sized, T: Deserialize<'a>> ExactSizeIterator for Views<'_, 'a, S, T> {}
