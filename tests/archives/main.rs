//! A value that was saved to an archive is the same when it is loaded, streamed, opened or mapped.

#![allow(unsafe_code)]
// Mapping a file is unsafe.
// Sample values are small numbers made from an index, and floats come back bit for bit.
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]
#![allow(clippy::cast_precision_loss, clippy::float_cmp, clippy::option_option)]
// Types stand beside the lines that need them.
#![allow(clippy::items_after_statements)]

#[path = "../samples/mod.rs"]
mod samples;

mod access;
mod chunks;
#[cfg(feature = "compression")]
mod compressed;
mod copies;
mod digests;
mod direct;
mod everything;
mod evolution;
mod mistaken;
mod options;
mod packed;
mod prefetch;
mod random;
mod read_ahead;
mod requests;
mod series;
mod slices;
mod snapshots;
mod sparse;
mod stored;
mod streams;
mod suggestions;
mod support;
mod threads;
mod tied;
mod transports;
mod views;
mod walks;
