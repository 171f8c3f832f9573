//! numpy's files: read as numpy reads them, written as numpy writes them, and never believed.
// Sample values are small numbers made from an index, and floats come back bit for bit.
#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::float_cmp)]

#[path = "npy/conversions.rs"]
mod conversions;
#[path = "npy/fixtures.rs"]
mod fixtures;
#[path = "npy/headers.rs"]
mod headers;
#[path = "npy/members.rs"]
mod members;
#[path = "npy/random.rs"]
mod random;
#[path = "npy/support.rs"]
mod support;
#[path = "npy/writing.rs"]
mod writing;
#[path = "npy/zips.rs"]
mod zips;
