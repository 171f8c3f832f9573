//! Tables in stores of objects.

use std::sync::Arc;

use glob::{MatchOptions, Pattern};
use tenarc::{Error, Result};
use tenarc_store::{Set, Store};

use crate::files::{self, Name, Place, WILDCARDS};
use crate::object::{Object, failed};
use crate::table::{TenarcTable, on_thread};

/// What a folder stands for.
const EVERY: &str = "*.tenarc";

/// The objects in a store whose names match a pattern.
async fn find(store: &Store, pattern: &str) -> Result<Vec<Place>> {
    let place = |name: String| Place::Object(Arc::new(Object::new(store, name)));
    let pattern = match pattern {
        "" => EVERY.to_owned(),
        folder if folder.ends_with('/') => format!("{folder}{EVERY}"),
        pattern => pattern.to_owned(),
    };
    let Some(wild) = pattern.find(WILDCARDS) else { return Ok(vec![place(pattern)]) };
    let matches = matching(&pattern)?;
    let folder = pattern[..wild].rsplit_once('/').map_or("", |(folder, _)| folder);
    let names = store.list(folder).await.map_err(failed)?;
    let found: Vec<_> = names.into_iter().filter(|name| matches(name)).map(place).collect();
    if found.is_empty() {
        let what = format!("no object matches `{}`", store.key(&pattern).escape_debug());
        return Err(Error::not_found(what));
    }
    Ok(found)
}

fn matching(pattern: &str) -> Result<impl Fn(&str) -> bool> {
    let parsed = Pattern::new(pattern).map_err(|error| {
        Error::data(format!("`{}` is no pattern: {error}", pattern.escape_debug()))
    })?;
    let options = MatchOptions { require_literal_separator: true, ..MatchOptions::default() };
    Ok(move |name: &str| parsed.matches_with(name, options))
}

/// The store at a URL of objects, and the pattern of their names in it: what follows the last slash in front of a wildcard.
fn split(url: &str) -> Result<(Store, &str)> {
    let start = url.find("://").map_or(0, |end| end + 3);
    let fixed = url[start..].find(WILDCARDS).map_or(url.len(), |wild| start + wild);
    // Without a slash behind the name of a bucket, all of it is meant.
    let name = url[start..fixed].rfind('/').map_or(url.len(), |slash| start + slash + 1);
    Ok((Store::open(&url[..name]).map_err(failed)?, &url[name..]))
}

/// The objects at a URL.
pub async fn at_url(url: &str) -> Result<Vec<Place>> {
    let (store, pattern) = split(url)?;
    find(&store, pattern).await
}

impl TenarcTable {
    /// Opens the table of an object in a store, of all objects `*.tenarc` in a folder, such as `events/`, or of all objects
    /// that match a pattern, such as `events/2026-*.tenarc`. Without a name, all values in the first object must have
    /// one name, or no name.
    ///
    /// Each object is read by one partition, by ranges. To open the table, the ends and the headers of the objects are
    /// read, 16 objects at a time.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use datafusion::prelude::SessionContext;
    /// use tenarc_datafusion::TenarcTable;
    /// use tenarc_store::Store;
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let store = Store::in_memory();
    /// for day in 1..4 {
    ///     store.save(&format!("pairs/{day}.tenarc"), &vec![(day, "x"), (day, "y")]).await?;
    /// }
    ///
    /// let context = SessionContext::new();
    /// let pairs = TenarcTable::open_in(&store, "pairs/*.tenarc", None).await?;
    /// context.register_table("pairs", Arc::new(pairs))?;
    /// assert_eq!(context.sql("SELECT * FROM pairs").await?.count().await?, 6);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`open`](Self::open), and those of the store.
    ///
    /// # Panics
    /// If it is not called in a runtime of tokio.
    pub async fn open_in(store: &Store, pattern: &str, name: Option<&str>) -> Result<Self> {
        Self::of_places(find(store, pattern).await?, Name::of(name)).await
    }

    /// Like [`open_in`](Self::open_in), for the objects at a URL: `s3://bucket/events/2026-*.tenarc`. What URLs there are,
    /// [`Store::open`] says.
    ///
    /// # Errors
    /// Those of [`open_in`](Self::open_in). If the URL is not valid, or this build cannot open it.
    ///
    /// # Panics
    /// If it is not called in a runtime of tokio.
    pub async fn open_url(url: &str, name: Option<&str>) -> Result<Self> {
        Self::of_places(at_url(url).await?, Name::of(name)).await
    }

    /// The names of the values in an object, or in the first of the objects that [`open_url`](Self::open_url) finds:
    /// like [`names`](Self::names).
    ///
    /// # Errors
    /// Those of [`open_url`](Self::open_url).
    ///
    /// # Panics
    /// If it is not called in a runtime of tokio.
    pub async fn names_at_url(url: &str) -> Result<Vec<Option<String>>> {
        match at_url(url).await?.into_iter().next() {
            Some(first) => on_thread(move || files::names(&first)).await,
            None => Ok(Vec::new()),
        }
    }

    /// Opens the table of those values of a set whose paths match a pattern: `events.*`, if each rank has written its rows
    /// by [`shard.value(&format!("events.{rank}"), &rows)`](tenarc_store::Shard::value). The rows are those that were
    /// committed, whatever is committed later.
    ///
    /// # Errors
    /// Those of [`open`](Self::open), and those of the store. If no value matches.
    ///
    /// # Panics
    /// If it is not called in a runtime of tokio.
    pub async fn of_set(set: &Set, pattern: &str) -> Result<Self> {
        let matches = matching(pattern)?;
        let paths = set.values().into_iter().filter(|path| matches(path));
        let place = |path: &str| Ok(Place::Object(Arc::new(Object::of_value(set, path)?)));
        let places = paths.map(place).collect::<Result<Vec<_>>>()?;
        if places.is_empty() {
            let what = format!("no value of the set matches `{}`", pattern.escape_debug());
            return Err(Error::not_found(what));
        }
        Self::of_places(places, Name::Any).await
    }
}
