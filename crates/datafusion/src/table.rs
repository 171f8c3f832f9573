//! [`TenarcTable`].

use std::collections::HashSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::stats::Precision;
use datafusion::common::{DataFusionError, Result as PlanResult, Statistics};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use tenarc::io::ReadAt;
use tenarc::{Archive, Error, Result};
use tenarc_arrow::{ArrowTable, Types};

use crate::bridge;
use crate::exec::TenarcExec;
use crate::files::{self, Name, Place};
use crate::filter::{Columns, Kind};

/// A table of one or more files, for `DataFusion`.
///
/// To open one, only the metadata of the files are read. A query reads the columns and rows that it needs, a group of at
/// most 65,536 rows at a time. A column that a file lacks is null in it.
///
/// The files are opened again by each query. A file that was appended to meanwhile has the rows that it had when the table
/// was opened. If a file has other columns than it had, the query fails.
#[derive(Clone, Debug)]
pub struct TenarcTable(pub(crate) Arc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    pub files: Vec<FileRows>,
    pub name: Name,
    pub schema: SchemaRef,
    /// The names of the columns that each file has. The others are null in files without them.
    pub common: HashSet<String>,
    /// Of all files.
    pub types: Types,
    pub are_structs: bool,
    /// Whether it came from another process.
    pub is_sent: bool,
}

#[derive(Debug)]
pub(crate) struct FileRows {
    pub place: Place,
    /// For each group, the number of the row after it.
    pub groups: Vec<u64>,
    pub has_statistics: bool,
}

/// Rows of a file, given by its number.
pub(crate) type Part = (usize, Range<u64>);

/// What is read in one thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Partition {
    pub parts: Vec<Part>,
    /// The most rows that can meet the filters.
    pub rows: u64,
}

impl FileRows {
    pub fn rows(&self) -> u64 {
        self.groups.last().copied().unwrap_or_default()
    }
}

impl TenarcTable {
    /// Opens the table of a file, of all files `*.tenarc` in a directory, or of all files that match a pattern such as
    /// `events-*.tenarc`. All values in the first file must have one name, or no name. It is that of the table.
    ///
    /// # Errors
    /// If there is no such file, it cannot be read, it is damaged, or has several tables. If a column has values of another
    /// kind than in the files before, or no column is in all files.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::of_files(files::find(path.as_ref())?, None)
    }

    /// Like [`open`](Self::open), but opens the table of this name. The files can have other tables, too.
    ///
    /// # Errors
    /// The same errors as [`open`](Self::open), and if a file has no table of this name.
    pub fn open_named(path: impl AsRef<Path>, name: impl Into<String>) -> Result<Self> {
        Self::of_files(files::find(path.as_ref())?, Some(&name.into()))
    }

    /// The table of several files, in this order. Without a name, all values in the first file must have one name, or no
    /// name.
    ///
    /// # Errors
    /// The same errors as [`open`](Self::open). If there are no files.
    pub fn of_files(
        files: impl IntoIterator<Item = impl Into<PathBuf>>,
        name: Option<&str>,
    ) -> Result<Self> {
        let places: Vec<_> = files.into_iter().map(|file| Place::File(file.into())).collect();
        Ok(Self(Arc::new(Inner::open(&places, Name::of(name))?)))
    }

    /// The names of the values in a file, or in the first of the files that [`open`](Self::open) finds: each once, in their
    /// order. `None` is for values without a name. Values that are no tables have names, too.
    ///
    /// # Errors
    /// If there is no such file, it cannot be read, or it is damaged.
    pub fn names(path: impl AsRef<Path>) -> Result<Vec<Option<String>>> {
        match files::find(path.as_ref())?.into_iter().next() {
            Some(first) => files::names(&Place::File(first)),
            None => Ok(Vec::new()),
        }
    }

    pub(crate) async fn of_places(places: Vec<Place>, name: Name) -> Result<Self> {
        Ok(Self(Arc::new(on_thread(move || Inner::open(&places, name)).await?)))
    }

    /// The paths of the files, or the keys of the objects, in the order in which they are read.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.0.files.iter().map(|file| file.place.shown())
    }

    /// The number of rows.
    pub fn rows(&self) -> u64 {
        self.0.files.iter().map(FileRows::rows).fold(0, u64::saturating_add)
    }
}

/// Calls a function on a thread that may wait.
pub(crate) async fn on_thread<R: Send + 'static>(
    work: impl FnOnce() -> Result<R> + Send + 'static,
) -> Result<R> {
    let result = SpawnedTask::spawn_blocking(work).join_unwind().await;
    result.map_err(|error| Error::io(std::io::Error::other(error)))?
}

impl Inner {
    pub fn open(places: &[Place], mut name: Name) -> Result<Self> {
        let mut found: Option<Found> = None;
        let mut files = Vec::new();
        let asked = name.clone();
        for (place, archive) in places.iter().zip(files::open_all(places, &asked)) {
            let archive = archive?;
            let read = || {
                let table = place.table(&archive, &name)?;
                let groups = (table.groups().to_vec(), table.has_statistics());
                let named = Name::Is(table.name().map(str::to_owned));
                let own = Found::of(&table)?;
                let all = match &found {
                    None => own,
                    Some(found) => {
                        let types = found.types.clone().merged(&own.types);
                        let mut all = Found::of(&table.with_types(&types)?)?;
                        all.check(found, &own)?;
                        all.common = found.common.intersection(&own.common).cloned().collect();
                        if all.common.is_empty() {
                            return Err(Error::mismatch(
                                "the files before have none of the columns",
                            ));
                        }
                        all
                    }
                };
                Ok((groups, named, all))
            };
            let read = read().map_err(|error: Error| error.in_file(place.shown()))?;
            let ((groups, has_statistics), named, all) = read;
            (name, found) = (named, Some(all));
            files.push(FileRows { place: place.clone(), groups, has_statistics });
        }
        let Some(Found { schema, common, types, are_structs, .. }) = found else {
            return Err(Error::not_found("expected the files of a table, found none"));
        };
        Ok(Self { files, name, schema, common, types, are_structs, is_sent: false })
    }
}

/// What the metadata of files say.
struct Found {
    schema: SchemaRef,
    /// The names of the columns that are in each file.
    common: HashSet<String>,
    types: Types,
    are_structs: bool,
    /// The columns that are left out.
    lost: Vec<(String, String)>,
}

impl Found {
    fn of<S: ReadAt>(table: &ArrowTable<'_, S>) -> Result<Self> {
        let schema = bridge::schema(table.schema());
        let schema = schema.map_err(|error| Error::data(error.to_string()))?;
        Ok(Self {
            common: schema.fields().iter().map(|field| field.name().clone()).collect(),
            schema,
            types: table.types().clone(),
            are_structs: table.are_structs(),
            lost: table.report().lost().to_vec(),
        })
    }

    /// Checks that the columns of a file have the kinds that they have in the files before it. `self` is what all of them
    /// have together.
    fn check(&self, before: &Self, own: &Self) -> Result<()> {
        for (of, other, place) in [(own, before, ""), (before, own, " in the files before")] {
            for (name, why) in &of.lost {
                if other.schema.fields().find(name).is_some() {
                    let what = format!("the column cannot be read{place}: {why}");
                    return Err(Error::unsupported(what).in_field(name));
                }
            }
        }
        for field in own.schema.fields() {
            let name = field.name();
            let Some(before) = before.schema.fields().find(name) else { continue };
            let before = Some(before.1.as_ref());
            let all = self.schema.field_with_name(name).ok();
            let kinds = [before, Some(field.as_ref()), all];
            let kinds = kinds.map(|field| field.map(|field| Kind::of(field.data_type())));
            let is_number = |kind: &Option<Option<Kind>>| {
                matches!(kind, Some(Some(Kind::Integer | Kind::Float)))
            };
            let is_null =
                |field: Option<&Field>| field.is_some_and(|field| field.data_type().is_null());
            let agree = kinds.iter().all(|kind| kind == &kinds[2]) || kinds.iter().all(is_number);
            if all.is_none() || !agree && !is_null(before) && !is_null(Some(field)) {
                let shown = |field: Option<&Field>| {
                    field.map_or("nothing".to_owned(), |field| field.data_type().to_string())
                };
                let (expected, found) = (shown(before), shown(Some(field)));
                let what = format!("expected {expected}, as in the files before, found {found}");
                return Err(Error::mismatch(what).in_field(name));
            }
        }
        let is_new = |(path, _): &&(String, String)| {
            !before.lost.iter().chain(&own.lost).any(|(other, _)| other == path)
        };
        match self.lost.iter().find(is_new) {
            Some((path, why)) => {
                let what = format!("the files before have values of another type: {why}");
                Err(Error::mismatch(what).in_field(path))
            }
            None => Ok(()),
        }
    }
}

impl Inner {
    /// Cuts the rows of all files into at most this many partitions of about equal numbers of candidates. A group is not cut,
    /// nor is an object in a store: another partition would have to open it again.
    fn partitions(&self, most: usize, candidates: &[Vec<u64>]) -> Vec<Partition> {
        let files = || self.files.iter().zip(candidates);
        let pieces = files().map(|(file, candidates)| {
            let groups = candidates.iter().filter(|rows| **rows > 0).count();
            if file.place.is_remote() { groups.min(1) } else { groups }
        });
        let count = most.clamp(1, pieces.sum::<usize>().max(1));
        let all: u64 = candidates.iter().flatten().sum();
        // By the middle of the rows, so that each partition gets its share.
        let share = |before: u64, rows: u64| {
            let middle = u128::from(before + rows / 2);
            let share = middle * count as u128 / u128::from(all.max(1));
            usize::try_from(share).unwrap_or_default().min(count - 1)
        };
        let mut partitions = vec![Partition::default(); count];
        let mut before = 0u64;
        for (number, (file, candidates)) in files().enumerate() {
            let mut start = 0;
            let whole =
                file.place.is_remote().then(|| share(before, candidates.iter().sum::<u64>()));
            for (&end, &rows) in file.groups.iter().zip(candidates) {
                let share = whole.unwrap_or_else(|| share(before, rows));
                let partition = &mut partitions[share];
                match partition.parts.last_mut() {
                    Some((last, rows)) if *last == number => rows.end = end,
                    _ => partition.parts.push((number, start..end)),
                }
                partition.rows += rows;
                before += rows;
                start = end;
            }
        }
        partitions.retain(|partition| !partition.parts.is_empty());
        if partitions.is_empty() {
            partitions.push(Partition::default());
        }
        partitions
    }

    /// For each group of each file, how many of its rows can meet these filters, as far as statistics say. They are not left
    /// out of the plan: until it runs, the file can get other rows.
    fn candidates(&self, filters: &[Expr]) -> Vec<Vec<u64>> {
        let is_asked = |file: &&FileRows| file.has_statistics && !filters.is_empty();
        let asked = self.files.iter().filter(is_asked).map(|file| &file.place);
        let mut archives = files::open_all(asked, &self.name);
        let of_file = |file: &FileRows| {
            // If the file cannot be read, the query fails when it runs.
            let archive = is_asked(&file).then(|| archives.next()).flatten().and_then(Result::ok);
            let ranges = archive.and_then(|archive| {
                self.filtered(&file.place, &archive, filters)
                    .and_then(|table| table.candidates())
                    .ok()
            });
            let mut start = 0;
            let rows = file.groups.iter().map(|&end| {
                let group = std::mem::replace(&mut start, end)..end;
                let can_be = ranges.as_ref().is_none_or(|ranges| {
                    let next = ranges.partition_point(|rows| rows.end <= group.start);
                    ranges.get(next).is_some_and(|rows| rows.start < group.end)
                });
                if can_be { group.end - group.start } else { 0 }
            });
            rows.collect()
        };
        self.files.iter().map(of_file).collect()
    }

    /// The table of a file, with those rows alone that can meet the filters.
    pub fn filtered<'a, S: ReadAt>(
        &self,
        place: &Place,
        archive: &'a Archive<S>,
        filters: &[Expr],
    ) -> Result<ArrowTable<'a, S>> {
        let mut table = place.table(archive, &self.name)?;
        if self.types.clone().merged(table.types()) != self.types {
            let what = "the columns have changed since the table was opened: open it again";
            return Err(Error::data(what));
        }
        let own = bridge::schema(table.schema());
        let own = own.map_err(|error| Error::data(error.to_string()))?;
        for filter in filters {
            if let Some(condition) = self.columns(Some(&own)).condition(filter) {
                table = table.with_filter(condition.filter)?;
            }
        }
        Ok(table)
    }

    pub fn columns<'s>(&'s self, file: Option<&'s Schema>) -> Columns<'s> {
        Columns { schema: &self.schema, common: &self.common, file }
    }
}

#[async_trait]
impl TableProvider for TenarcTable {
    fn schema(&self) -> SchemaRef {
        self.0.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        let (table, asked) = (self.0.clone(), filters.to_vec());
        let candidates = SpawnedTask::spawn_blocking(move || table.candidates(&asked));
        let failed = |error| DataFusionError::ExecutionJoin(Box::new(error));
        let candidates = candidates.join_unwind().await.map_err(failed)?;
        let partitions = self.0.partitions(state.config().target_partitions(), &candidates);
        let projection = projection.cloned();
        let exec = TenarcExec::new(self.0.clone(), projection, filters.to_vec(), limit, partitions);
        Ok(Arc::new(exec?))
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> PlanResult<Vec<TableProviderFilterPushDown>> {
        let support = |filter: &&Expr| match self.0.columns(None).condition(filter) {
            // A condition names columns, and rows that are no structs have none.
            Some(condition) if self.0.are_structs && condition.is_exact => {
                TableProviderFilterPushDown::Exact
            }
            Some(_) if self.0.are_structs => TableProviderFilterPushDown::Inexact,
            _ => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(support).collect())
    }

    fn statistics(&self) -> Option<Statistics> {
        let mut statistics = Statistics::new_unknown(&self.0.schema);
        statistics.num_rows =
            usize::try_from(self.rows()).map_or(Precision::Absent, Precision::Exact);
        Some(statistics)
    }
}
