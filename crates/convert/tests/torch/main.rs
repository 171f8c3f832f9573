//! Files of torch are read as torch reads them, and no code in them is ever run.
// Sample values are small numbers made from an index, and floats come back bit for bit.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::float_cmp
)]

mod checkpoints;
mod conversions;
mod distributed;
mod distributed_hostile;
mod fixtures;
mod hostile;
mod layouts;
mod legacy;
mod memory;
mod numpy;
mod parts;
mod pickles;
mod sharded;
mod support;
mod written;
mod zips;

#[global_allocator]
static ALLOCATOR: tenarc_test_support::alloc::Counting = tenarc_test_support::alloc::Counting;
