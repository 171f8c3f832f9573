//! Tables of tenarc's files in SQL, by [DataFusion](https://datafusion.apache.org).
//!
//! ```
//! use std::sync::Arc;
//!
//! use datafusion::prelude::SessionContext;
//! use tenarc_datafusion::TenarcTable;
//!
//! #[derive(serde::Serialize)]
//! struct Event {
//!     id: u64,
//!     user: Option<String>,
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("events.tenarc");
//! let events: Vec<_> = (0..100).map(|id| Event { id, user: (id > 9).then(|| "ada".into()) }).collect();
//! tenarc::save(&path, &events)?;
//!
//! let context = SessionContext::new();
//! context.register_table("events", Arc::new(TenarcTable::open(&path)?))?;
//! let found = context.sql("SELECT id FROM events WHERE user IS NULL AND id > 5").await?;
//! assert_eq!(found.count().await?, 4);
//! # Ok(())
//! # }
//! ```
//!
//! A query reads the columns that it names. Conditions that tenarc can test are tested while the file is read, and of groups
//! of rows that do not meet them, no other column is read. `EXPLAIN` shows them as `filters=[…]`.

mod bridge;
#[cfg(feature = "proto")]
mod codec;
mod exec;
mod factory;
mod files;
mod filter;
#[cfg(feature = "store")]
mod object;
mod save;
#[cfg(feature = "store")]
mod store;
mod table;

// It has an example of each feature.
#[cfg(all(doctest, feature = "store"))]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(feature = "proto")]
pub use codec::TenarcCodec;
pub use exec::TenarcExec;
pub use factory::TenarcTableFactory;
pub use save::save;
pub use table::TenarcTable;
