//! numpy's files are read as numpy reads them and written as numpy writes them. Wrong claims in them are
//! found.
// Sample values are small numbers made from an index, and floats come back bit for bit.
#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::float_cmp)]

mod columns;
mod conversions;
mod fixtures;
mod headers;
mod members;
mod memory;
mod random;
mod support;
mod writing;
mod zips;

#[global_allocator]
static ALLOCATOR: tenarc_test_support::alloc::Counting = tenarc_test_support::alloc::Counting;
