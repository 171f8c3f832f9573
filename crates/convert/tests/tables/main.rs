//! Tables in Parquet and Arrow files: from archives, to archives, of other writers, and broken.

mod arrays;
mod arrow;
mod broken;
mod empty;
mod memory;
mod other_writers;
mod round_trips;
