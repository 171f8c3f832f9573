//! Archives: saved, loaded, streamed, opened and mapped; every way must give the same value back.
#![allow(unsafe_code)]
// Mapping a file is unsafe.
// Sample values are small numbers made from an index, and floats come back bit for bit.
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]
#![allow(clippy::cast_precision_loss, clippy::float_cmp, clippy::option_option)]
// Types stand beside the lines that need them.
#![allow(clippy::items_after_statements)]

mod common;
mod samples;

#[path = "archive/access.rs"]
mod access;
#[path = "archive/copies.rs"]
mod copies;
#[path = "archive/everything.rs"]
mod everything;
#[path = "archive/evolution.rs"]
mod evolution;
#[path = "archive/mistaken.rs"]
mod mistaken;
#[path = "archive/options.rs"]
mod options;
#[path = "archive/packed.rs"]
mod packed;
#[path = "archive/random.rs"]
mod random;
#[path = "archive/slices.rs"]
mod slices;
#[path = "archive/sparse.rs"]
mod sparse;
#[path = "archive/streams.rs"]
mod streams;
#[path = "archive/suggestions.rs"]
mod suggestions;
#[path = "archive/support.rs"]
mod support;
#[path = "archive/tied.rs"]
mod tied;
#[path = "archive/transports.rs"]
mod transports;
#[path = "archive/views.rs"]
mod views;
#[path = "archive/walks.rs"]
mod walks;
