//! Tensors in messages: every element type, layout and container, from every source.

// Sample values are small numbers made from an index.
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_precision_loss)]

mod common;

#[path = "tensors/casts.rs"]
mod casts;
#[path = "tensors/containers.rs"]
mod containers;
#[path = "tensors/debug_output.rs"]
mod debug_output;
#[path = "tensors/dynamic.rs"]
mod dynamic;
#[path = "tensors/foreign.rs"]
mod foreign;
#[path = "tensors/layouts.rs"]
mod layouts;
#[path = "tensors/mismatches.rs"]
mod mismatches;
#[path = "tensors/ndarray_serde.rs"]
mod ndarray_serde;
#[path = "tensors/random.rs"]
mod random;
#[path = "tensors/rows.rs"]
mod rows;
#[path = "tensors/sequences.rs"]
mod sequences;
#[path = "tensors/support.rs"]
mod support;
#[path = "tensors/views.rs"]
mod views;
#[path = "tensors/wire.rs"]
mod wire;
