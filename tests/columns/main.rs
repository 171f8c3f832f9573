//! A sequence that is written as columns is read as the array that it stands for (`SPEC.md`, section 7),
//! whatever its elements are.

// What is tested is the data model, and floats bit for bit. Types stand beside the rows that are read into them.
#![allow(clippy::option_option, clippy::float_cmp, clippy::items_after_statements)]

mod blocks;
mod build;
mod compact;
mod default;
mod dicts;
mod evolution;
mod filters;
mod hostile;
mod hostile_buffers;
mod kinds;
mod large;
mod limits;
mod located;
mod nested;
mod order;
mod paths;
mod rows;
mod same_as_rows;
mod statistics;
mod tables;
mod tensors;
mod typed;
mod types;
mod widths;
mod written;
mod written_types;
