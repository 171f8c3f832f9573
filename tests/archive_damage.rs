//! Damaged and hostile archives: whatever the bytes, a typed error or the value, in bounded memory and
//! time. The numbers are those of a catalogue of threats; each module is a group of it.

#![allow(unsafe_code)]
#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
#![allow(clippy::float_cmp, clippy::items_after_statements)]

mod common;

#[path = "hostile/alloc.rs"]
mod alloc;
#[path = "archive_damage/builder.rs"]
mod builder;
#[path = "archive_damage/changes.rs"]
mod changes;
#[path = "archive_damage/directories.rs"]
mod directories;
#[path = "archive_damage/headers.rs"]
mod headers;
#[path = "archive_damage/inputs.rs"]
mod inputs;
#[path = "archive_damage/paths.rs"]
mod paths;
#[path = "archive_damage/references.rs"]
mod references;
#[path = "archive_damage/samples.rs"]
mod samples;
#[path = "archive_damage/support.rs"]
mod support;
#[path = "archive_damage/truncations.rs"]
mod truncations;
#[path = "archive_damage/views.rs"]
mod views;
#[path = "archive_damage/writers.rs"]
mod writers;
