//! A sequence that was written as columns is read as the array that it stands for (`SPEC.md`, section 3.1).

// What is tested is the data model, and floats bit for bit. Types stand beside the rows that are read into them.
#![allow(clippy::option_option, clippy::float_cmp, clippy::items_after_statements)]

mod build;
mod hostile;
mod kinds;
mod limits;
mod rows;
mod tensors;
mod types;
