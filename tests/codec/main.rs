//! A chunk that was compressed is the same when it is decompressed, other zstd libraries agree, and no stored bytes
//! make the decoder fail otherwise than by an error.

// Samples are made of random bits.
#![allow(clippy::cast_possible_truncation, clippy::manual_is_multiple_of)]

mod damage;
mod data;
mod frames;
mod round_trips;
