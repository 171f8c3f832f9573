//! [`TenarcTableFactory`].

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider, TableProviderFactory};
use datafusion::common::{DataFusionError, Result, plan_err};
use datafusion::logical_expr::CreateExternalTable;

use tenarc::Error;

use crate::files::{self, Name, Place};
#[cfg(feature = "store")]
use crate::store::at_url;
use crate::table::TenarcTable;

/// Makes tables for `CREATE EXTERNAL TABLE … STORED AS TENARC LOCATION '…'`.
///
/// A location is what [`TenarcTable::open`] takes. The option `table` is the name of the table in the files:
/// `OPTIONS (table 'events')`. With the feature `store`, it can also be what `TenarcTable::open_url` takes.
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
        let mut places = Vec::new();
        for location in &command.locations {
            places.extend(find(location).await.map_err(external)?);
        }
        let table = TenarcTable::of_places(places, Name::of(name)).await.map_err(external)?;
        Ok(Arc::new(table))
    }
}

fn external(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

async fn find(location: &str) -> tenarc::Result<Vec<Place>> {
    let path = match location.strip_prefix("file://") {
        None if location.contains("://") => return at_url(location).await,
        path => path.unwrap_or(location),
    };
    Ok(files::find(path.as_ref())?.into_iter().map(Place::File).collect())
}

#[cfg(not(feature = "store"))]
#[expect(clippy::unused_async, reason = "like the other one")]
async fn at_url(url: &str) -> tenarc::Result<Vec<Place>> {
    let what = "this build opens files only: it needs the feature `store` of tenarc-datafusion";
    Err(Error::unsupported(what).in_file(url.as_ref()))
}
