//! A sequence that was written as columns is read as the array that it stands for (`SPEC.md`, section 3.1).

#![allow(clippy::option_option, clippy::float_cmp)]

mod build;
mod hostile;
mod kinds;
mod limits;
mod rows;
mod tensors;
mod types;
