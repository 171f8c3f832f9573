//! Parquet files: from archives, to archives, of other writers, and broken.

mod broken;
mod memory;
mod other_writers;
mod round_trips;
