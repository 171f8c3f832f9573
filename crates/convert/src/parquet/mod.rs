//! Converts [Parquet](https://parquet.apache.org/docs/file-format/) files, which hold tables of records, to archives
//! and back.
//!
//! A Parquet file consists of row groups. In an archive, it becomes a [table](tenarc::Archive::table): each row group
//! is a value, which is a sequence of structs, and all of these values have the same name. An archive can store such a
//! sequence as columns, like Parquet.
//!
//! ```
//! use serde::{Deserialize, Serialize};
//! use tenarc::Tensor;
//! use tenarc_convert::parquet;
//!
//! #[derive(Serialize, Deserialize, PartialEq, Debug)]
//! struct Event {
//!     id: u64,
//!     name: Option<String>,
//!     embedding: Tensor<[f32; 4]>,
//! }
//!
//! # let dir = std::env::temp_dir().join(format!("tenarc-doc-parquet-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir)?;
//! # let (archive, file, back) = (dir.join("a"), dir.join("b"), dir.join("c"));
//! let event = |id| Event { id, name: Some("click".into()), embedding: Tensor([0.5; 4]) };
//! let events: Vec<_> = (0..1000).map(event).collect();
//! let mut out = tenarc::OArchive::create(&archive, Default::default())?;
//! out.save_as("events", &events)?;
//! out.finish()?;
//!
//! parquet::from_archive(&archive, &file, &Default::default())?;     // for pyarrow, pandas, polars, DuckDB ...
//! parquet::to_archive(&file, &back, &Default::default())?;
//! let again = tenarc::open(&back)?.table("events")?.rows::<Event>(..)?;
//! assert_eq!(again, events);
//! # std::fs::remove_dir_all(&dir)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `docs/from-parquet.md` in this crate lists how each type is converted.

mod about;
mod error;
mod lists;
pub(crate) mod options;
mod pages;
mod read;
mod source;
mod stated;
mod thrift;
mod write;

mod zstd;

pub use super::options::Options;
pub use options::Compression;
pub use read::{ParquetFile, open, to_archive};
pub use tenarc_arrow::Rows;
pub use write::{from_archive, segments_to_file, segments_to_writer, to_writer};
