//! [`TenarcTableFactory`].

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider, TableProviderFactory};
use datafusion::common::{DataFusionError, Result, plan_err};
use datafusion::logical_expr::CreateExternalTable;

use crate::files;
use crate::table::TenarcTable;

/// Makes tables for `CREATE EXTERNAL TABLE … STORED AS TENARC LOCATION '…'`.
///
/// A location is what [`TenarcTable::open`] takes. The option `table` is the name of the table in the files:
/// `OPTIONS (table 'events')`. With the feature `store`, a location can be a URL:
/// [`TenarcTable::open_url`](crate::TenarcTable).
#[derive(Clone, Copy, Debug, Default)]
pub struct TenarcTableFactory;

#[async_trait]
impl TableProviderFactory for TenarcTableFactory {
    async fn create(
        &self,
        _state: &dyn Session,
        command: &CreateExternalTable,
    ) -> Result<Arc<dyn TableProvider>> {
        let is_empty = command.schema.fields().is_empty();
        if !is_empty || !command.table_partition_cols.is_empty() || !command.order_exprs.is_empty()
        {
            return plan_err!(
                "the columns of a tenarc table are those of its files: leave them out"
            );
        }
        let mut name = None;
        for (key, value) in &command.options {
            // DataFusion puts the name of the format in front.
            match key.strip_prefix("format.").unwrap_or(key) {
                "table" => name = Some(value.as_str()),
                _ => return plan_err!("unknown option `{key}`, expected `table`"),
            }
        }
        if let [location] = &command.locations[..]
            && let Some(("s3" | "gs" | "az" | "http" | "https", _)) = location.split_once("://")
        {
            return at_url(location, name).await;
        }
        let open = || {
            let mut found = Vec::<PathBuf>::new();
            for location in &command.locations {
                let path = location.strip_prefix("file://").unwrap_or(location);
                found.extend(files::find(path.as_ref())?);
            }
            TenarcTable::of_files(found, name)
        };
        let table = open().map_err(|error| DataFusionError::External(Box::new(error)))?;
        Ok(Arc::new(table))
    }
}

#[cfg(feature = "store")]
async fn at_url(location: &str, name: Option<&str>) -> Result<Arc<dyn TableProvider>> {
    match TenarcTable::open_url(location, name).await {
        Ok(table) => Ok(Arc::new(table)),
        Err(error) => Err(DataFusionError::External(Box::new(error))),
    }
}

#[cfg(not(feature = "store"))]
#[expect(clippy::unused_async, reason = "like the other one")]
async fn at_url(location: &str, _: Option<&str>) -> Result<Arc<dyn TableProvider>> {
    plan_err!(
        "`{location}`: this build cannot open it: it needs the feature `store` of tenarc-datafusion"
    )
}
