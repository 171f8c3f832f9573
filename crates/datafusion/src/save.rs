//! [`save`].

use std::io::Write;

use arrow_array_60::RecordBatchIterator;
use datafusion::arrow::array::{Array as _, RecordBatch};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{DataFusionError, Result};
use tenarc::OArchive;

use crate::bridge;

/// The most rows and bytes of batches that become one value, unless one batch is larger.
const ROWS: usize = 1 << 16;
const BYTES: usize = 16 << 20;

/// Saves the rows of a query as a table. Small batches are joined, and each then becomes a value of this name. Returns the
/// number of rows.
///
/// # Errors
/// The first error among the batches. If two columns have the same name, a column cannot be kept, or the archive cannot be
/// written. Some values are saved nevertheless.
pub fn save<W: Write>(
    out: &mut OArchive<W>,
    name: &str,
    schema: &SchemaRef,
    batches: impl IntoIterator<Item = Result<RecordBatch>>,
) -> Result<u64> {
    let own = bridge::schema_back(schema)?;
    // `tenarc_arrow::save` would keep only the text of an error.
    let mut failed = None;
    let joined = Joined { schema, batches: batches.into_iter().fuse(), next: None };
    let batches = joined.map(|batch| {
        let batch = batch.and_then(|batch| Ok(bridge::batch_back(&batch, &own)?));
        batch.map_err(|error| {
            let what = error.to_string();
            failed = Some(error);
            arrow_schema_60::ArrowError::CDataInterface(what)
        })
    });
    let saved = tenarc_arrow::save(out, name, RecordBatchIterator::new(batches, own.clone()));
    match failed {
        Some(error) => Err(error),
        None => saved.map_err(|error| DataFusionError::External(Box::new(error))),
    }
}

/// Joins batches that are small.
struct Joined<'s, I> {
    schema: &'s SchemaRef,
    batches: I,
    /// A batch that did not fit to those before.
    next: Option<RecordBatch>,
}

impl<I: Iterator<Item = Result<RecordBatch>>> Iterator for Joined<'_, I> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let (mut rows, mut bytes) = (0, 0);
        let mut joined = Vec::new();
        while let Some(batch) = self.next.take().map(Ok).or_else(|| self.batches.next()) {
            let batch = match batch {
                Ok(batch) => batch,
                Err(error) => return Some(Err(error)),
            };
            rows += batch.num_rows();
            bytes += size(&batch);
            if !joined.is_empty() && (rows > ROWS || bytes > BYTES) {
                self.next = Some(batch);
                break;
            }
            joined.push(batch);
        }
        let batch = match &joined[..] {
            [] => return None,
            [batch] => Ok(batch.clone()),
            _ => concat_batches(self.schema, &joined).map_err(Into::into),
        };
        Some(batch)
    }
}

/// The bytes of the rows of a batch, which can be a part of its buffers.
fn size(batch: &RecordBatch) -> usize {
    let sizes = batch.columns().iter().map(|column| column.to_data().get_slice_memory_size());
    // A column whose size is not known counts as large.
    sizes.map(|size| size.unwrap_or(BYTES)).fold(0, usize::saturating_add)
}
