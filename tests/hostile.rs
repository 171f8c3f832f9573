//! Hostile and broken messages: whatever the bytes, a typed error or a value, in bounded memory,
//! time and stack. The numbers are those of a catalogue of threats; each module is a group of it.

#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
#![allow(clippy::float_cmp, clippy::items_after_statements)]

mod common;

#[path = "hostile/alloc.rs"]
mod alloc;
#[path = "hostile/depth.rs"]
mod depth;
#[path = "hostile/depth_of_writing.rs"]
mod depth_of_writing;
#[path = "hostile/faults.rs"]
mod faults;
#[path = "hostile/lengths.rs"]
mod lengths;
#[path = "hostile/maps.rs"]
mod maps;
#[path = "hostile/numbers.rs"]
mod numbers;
#[path = "hostile/padding.rs"]
mod padding;
#[path = "hostile/shapes.rs"]
mod shapes;
#[path = "hostile/support.rs"]
mod support;
#[path = "hostile/tags.rs"]
mod tags;
#[path = "hostile/visitors.rs"]
mod visitors;
#[path = "hostile/well_formed.rs"]
mod well_formed;
