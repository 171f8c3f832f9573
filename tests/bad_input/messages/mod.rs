//! Hostile and broken messages. Each module is a group of `docs/threats.md`.

#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
#![allow(clippy::float_cmp, clippy::items_after_statements)]

mod depth;
mod depth_of_writing;
mod faults;
mod lengths;
mod maps;
mod numbers;
mod padding;
mod shapes;
mod support;
mod tags;
mod visitors;
mod well_formed;
