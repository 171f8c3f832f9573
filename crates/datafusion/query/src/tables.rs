//! The tables that the arguments name.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::common::{DataFusionError, Result as PlanResult, TableReference};
use datafusion::logical_expr::TableType;
use tenarc_datafusion::TenarcTable;

use crate::failure::Failure;

/// The schema of tables that are named without one.
pub const SCHEMA: &str = "files";

/// The tables, by the schemas and the names that they have in queries.
#[derive(Debug, Default)]
pub struct Schemas(BTreeMap<String, Tables>);

/// The tables of a schema. Each is opened when a query names it.
#[derive(Clone, Debug, Default)]
pub struct Tables(BTreeMap<String, Source>);

/// Where a table is.
#[derive(Clone, Debug)]
struct Source {
    /// A path, or a URL.
    path: PathBuf,
    /// The name of its values, if there are others.
    values: Option<String>,
}

impl Schemas {
    /// The tables of these arguments.
    ///
    /// # Errors
    /// If a file cannot be read, or a table has no name, or that of another.
    pub async fn of(arguments: &[OsString]) -> Result<Self, Failure> {
        let mut schemas = Self(BTreeMap::from([(SCHEMA.to_owned(), Tables::default())]));
        for argument in arguments {
            schemas.add(argument).await?;
        }
        Ok(schemas)
    }

    async fn add(&mut self, argument: &OsStr) -> Result<(), Failure> {
        let (name, path) = split(argument);
        if name.is_some_and(str::is_empty) {
            let shown = path.display();
            return Err(Failure::new(format!("expected a name before `={shown}`, found none")));
        }
        let mut found = match url(path) {
            Some(url) => TenarcTable::names_at_url(url).await?,
            None => TenarcTable::names(path)?,
        };
        if found.len() <= 1 {
            let name = match (name, own_name(path)) {
                (Some(name), _) => name.to_owned(),
                (None, Some(name)) => name,
                (None, None) => found.pop().flatten().ok_or_else(|| {
                    let shown = path.display();
                    Failure::new(format!("`{shown}` needs a name: write NAME={shown}"))
                })?,
            };
            return self.insert(SCHEMA, name, Source { path: path.to_owned(), values: None });
        }
        for values in found.into_iter().flatten() {
            let source = Source { path: path.to_owned(), values: Some(values.clone()) };
            self.insert(name.unwrap_or(SCHEMA), values, source)?;
        }
        Ok(())
    }

    fn insert(&mut self, schema: &str, name: String, source: Source) -> Result<(), Failure> {
        let tables = self.0.entry(schema.to_owned()).or_default();
        if let Some(other) = tables.0.get(&name) {
            let (one, other) = (other.path.display(), source.path.display());
            return Err(Failure::new(format!(
                "`{one}` and `{other}` both have the table `{name}`: write NAME={other} to give one another name"
            )));
        }
        tables.0.insert(name, source);
        Ok(())
    }

    pub fn each(&self) -> impl Iterator<Item = (&str, &Tables)> {
        self.0.iter().map(|(name, tables)| (name.as_str(), tables))
    }

    /// The names of the tables, as they are written in a query.
    pub fn shown(&self) -> String {
        let names = self.each().flat_map(|(schema, tables)| {
            tables.0.keys().map(move |name| match schema {
                SCHEMA => TableReference::bare(name.as_str()).to_quoted_string(),
                _ => TableReference::partial(schema, name.as_str()).to_quoted_string(),
            })
        });
        names.collect::<Vec<_>>().join(", ")
    }
}

/// The name and the path of `NAME=PATH`. The names of files can have an equals sign.
fn split(argument: &OsStr) -> (Option<&str>, &Path) {
    let whole = Path::new(argument);
    match argument.to_str().and_then(|argument| argument.split_once('=')) {
        Some((name, path)) if !whole.exists() && !name.contains("://") => {
            (Some(name), Path::new(path))
        }
        _ => (None, whole),
    }
}

/// The path, if it is a URL of objects.
fn url(path: &Path) -> Option<&str> {
    path.to_str().filter(|path| path.contains("://"))
}

/// The name of a file without its extension, or that of a directory. `None` for a pattern.
fn own_name(path: &Path) -> Option<String> {
    let name = if let Some(url) = url(path) {
        // Even where it ends with a slash.
        let is_pattern = url.contains(['*', '?', '[']);
        (!is_pattern).then(|| path.file_stem())??.to_owned()
    } else if path.is_dir() {
        // `.` has a name, too.
        path.canonicalize().ok()?.file_name()?.to_owned()
    } else {
        path.exists().then(|| path.file_stem())??.to_owned()
    };
    name.into_string().ok()
}

#[async_trait]
impl SchemaProvider for Tables {
    fn table_names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }

    async fn table(&self, name: &str) -> PlanResult<Option<Arc<dyn TableProvider>>> {
        let Some(Source { path, values }) = self.0.get(name) else { return Ok(None) };
        let table = match (url(path), values) {
            (Some(url), values) => TenarcTable::open_url(url, values.as_deref()).await,
            (None, Some(values)) => TenarcTable::open_named(path, values),
            (None, None) => TenarcTable::open(path),
        };
        let table = table.map_err(|error| DataFusionError::External(Box::new(error)))?;
        Ok(Some(Arc::new(table)))
    }

    /// Without opening the table: some values are no tables.
    async fn table_type(&self, name: &str) -> PlanResult<Option<TableType>> {
        Ok(self.table_exist(name).then_some(TableType::Base))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }
}
