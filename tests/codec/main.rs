//! A chunk that was compressed is the same when it is decompressed, other zstd libraries agree, and no stored bytes
//! make the decoder fail otherwise than by an error.

// Samples are made of random bits.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::manual_is_multiple_of
)]
// Some tests need zstd's library in C, which not every target has.
#![cfg_attr(any(not(target_arch = "x86_64"), miri), allow(dead_code, unused_imports))]

mod damage;
mod data;
mod frames;
mod heads;
mod limits;
mod round_trips;
