//! Tables of tenarc's archives as record batches of Arrow, and record batches as tables.
//!
//! [`ArrowTable`] reads a table. Its [reader](ArrowTable::reader) is a
//! [`RecordBatchReader`](arrow_array::RecordBatchReader), so whatever takes one can read the table: writers of Parquet and
//! Arrow's files, and query engines. [`save`] writes what such a reader gives to an archive. [`Rows`] is for batches that are a
//! part of a larger value.
//!
//! ```
//! use arrow_array::RecordBatchReader;
//! use tenarc_arrow::ArrowTable;
//!
//! #[derive(serde::Serialize)]
//! enum Event {
//!     Click { x: f32, y: f32 },
//!     Close,
//! }
//! let events = [Event::Click { x: 1.0, y: 2.0 }, Event::Close];
//! let rows: Vec<_> = events.iter().enumerate().map(|(id, event)| (id as u32, event)).collect();
//! # #[derive(serde::Serialize)]
//! # struct Row<'a> { id: u32, event: &'a Event }
//! # let rows: Vec<_> = rows.into_iter().map(|(id, event)| Row { id, event }).collect();
//! let mut out = tenarc::OArchive::new(Vec::new())?;
//! out.save_as("events", &rows)?;
//! let archive = tenarc::Archive::new(out.finish()?)?;
//!
//! let table = ArrowTable::open(&archive, "events")?;
//! assert_eq!(table.schema().field(1).name(), "event");
//! for batch in table.reader() {
//!     assert_eq!(batch?.num_rows(), 2);
//! }
//!
//! // And back.
//! let mut out = tenarc::OArchive::new(Vec::new())?;
//! tenarc_arrow::save(&mut out, "events", table.reader())?;
//! let copy = tenarc::Archive::new(out.finish()?)?;
//! assert_eq!(copy.table("events")?.len(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Which type of Arrow each column has is in tenarc's `docs/decisions/arrow.md`.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod arrays;
mod category;
mod cells;
mod columns;
pub mod extension;
mod import;
mod named;
mod names;
mod plan;
mod report;
mod rows;
mod schema;
mod table;
mod times;
mod values;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub use import::{Import, save};
pub use names::static_name;
pub use report::Report;
pub use rows::Rows;
pub use table::{ArrowTable, TABLE, TableReader, Types, is_columns};
