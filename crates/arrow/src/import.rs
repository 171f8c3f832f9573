//! Record batches as tables of an archive.

use std::io::Write;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::Field;
use tenarc::de::Limits;
use tenarc::{Error, OArchive, Result};

use crate::plan::Plan;
use crate::report::Report;
use crate::rows::Rows;

/// What the columns of record batches become in an archive.
#[derive(Clone, Debug)]
pub struct Import {
    plans: Vec<Plan>,
    report: Report,
}

impl Import {
    /// Plans the columns with these fields. Of several with one name, also in a struct, the first is kept.
    ///
    /// # Errors
    /// If the shape of a tensor is wrong.
    pub fn of<'a>(fields: impl IntoIterator<Item = &'a Field>) -> Result<Self> {
        let mut report = Report::default();
        let plans = Plan::of_fields(fields, "", &mut report)?;
        Ok(Self { plans, report })
    }

    /// What is lost.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The numbers of the columns that are kept.
    pub fn kept(&self) -> impl ExactSizeIterator<Item = usize> + '_ {
        self.plans.iter().map(|plan| plan.number)
    }

    /// For batches that have only the [kept](Self::kept) columns.
    #[must_use]
    pub fn of_kept(mut self) -> Self {
        self.plans.iter_mut().enumerate().for_each(|(number, plan)| plan.number = number);
        self
    }

    /// The rows of these batches. The limits are those of the memory that the rows may take when they are serialized.
    ///
    /// # Errors
    /// If a batch does not have the columns.
    pub fn rows(&self, batches: &[RecordBatch], limits: Limits) -> Result<Rows> {
        Rows::of(batches, self.plans.clone(), limits)
    }
}

/// Saves what a reader gives as a table. Each batch becomes a value of this name. Returns the number of rows.
///
/// # Errors
/// If a column cannot be kept, or there is none. If the reader fails, or the archive cannot be written. Some values are saved
/// nevertheless.
pub fn save<W: Write>(
    out: &mut OArchive<W>,
    name: &str,
    reader: impl RecordBatchReader,
) -> Result<u64> {
    let schema = reader.schema();
    let import = Import::of(schema.fields().iter().map(AsRef::as_ref))?;
    if !import.report.is_empty() {
        return Err(Error::data(import.report.to_string()));
    }
    if import.plans.is_empty() {
        return Err(Error::data("there are no columns"));
    }
    let mut saved = None;
    for batch in reader {
        let batch = batch.map_err(|error| Error::data(error.to_string()))?;
        let rows = import.rows(&[batch], Limits::default())?;
        if !rows.report().is_empty() {
            return Err(Error::data(rows.report().to_string()));
        }
        out.save_as(name, &rows)?;
        saved = Some(saved.unwrap_or(0) + rows.len() as u64);
    }
    if saved.is_none() {
        out.save_as::<[(); 0]>(name, &[])?;
    }
    Ok(saved.unwrap_or(0))
}
