//! A value that was split into metadata and buffers is the same when it is put together, in every way
//! there is. Wrong parts give an error that says which part is wrong: numbers 78 and 79 of
//! `docs/threats.md`.

// Sample values are small numbers made from an index, and floats come back bit for bit.
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]
#![allow(clippy::cast_precision_loss, clippy::float_cmp, clippy::option_option)]
// Types stand beside the lines that need them.
#![allow(clippy::items_after_statements)]

#[path = "../samples/mod.rs"]
mod samples;

mod archives;
mod callback;
mod damage;
// The tests of archives, compiled again with the `support` of parts.
#[path = "../archives/everything.rs"]
mod everything;
mod lies;
mod out_of_band;
mod random;
mod streams;
mod support;
mod tied;
mod writers;

#[global_allocator]
static ALLOCATOR: tenarc_test_support::alloc::Counting = tenarc_test_support::alloc::Counting;
