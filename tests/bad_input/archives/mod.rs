//! Damaged and hostile archives. Each module is a group of `docs/threats.md`.

#![allow(unsafe_code)]
#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
#![allow(clippy::float_cmp, clippy::items_after_statements)]

mod changes;
mod directories;
mod extensions;
mod headers;
mod inputs;
mod packed;
mod paths;
mod references;
mod samples;
mod support;
mod truncations;
mod views;
mod writers;
