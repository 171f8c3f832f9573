//! Tensors of every element type, layout and container are read back as they were written, from every
//! source, through the buffers of serde and under other formats.

// Sample values are small numbers made from an index.
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_precision_loss)]

mod casts;
mod containers;
mod debug_output;
mod deferred;
mod dynamic;
#[cfg(feature = "faer")]
mod faer;
mod foreign;
mod layouts;
mod mismatches;
#[cfg(feature = "nalgebra")]
mod nalgebra;
mod ndarray_serde;
mod packing;
mod random;
mod rows;
mod sequences;
mod support;
mod through_serde_buffers;
mod under_other_formats;
mod under_serde_json;
mod views;
mod wire;
