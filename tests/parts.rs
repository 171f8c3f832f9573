//! Parts: split, sent, received, shared, put together; every way must give the same value back, and
//! whatever is not the right parts an error that says which.

// Sample values are small numbers made from an index, and floats come back bit for bit.
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]
#![allow(clippy::cast_precision_loss, clippy::float_cmp, clippy::option_option)]
// Types stand beside the lines that need them.
#![allow(clippy::items_after_statements)]

mod common;
mod samples;

#[path = "hostile/alloc.rs"]
mod alloc;
#[path = "parts/archives.rs"]
mod archives;
#[allow(dead_code)] // It builds archives, too.
#[path = "archive_damage/builder.rs"]
mod builder;
#[path = "parts/callback.rs"]
mod callback;
#[path = "parts/damage.rs"]
mod damage;
// What archives are tested with, over the `support` of parts.
#[path = "archive/everything.rs"]
mod everything;
#[path = "parts/lies.rs"]
mod lies;
#[path = "parts/out_of_band.rs"]
mod out_of_band;
#[path = "parts/random.rs"]
mod random;
#[path = "parts/streams.rs"]
mod streams;
#[path = "parts/support.rs"]
mod support;
#[path = "parts/tied.rs"]
mod tied;
#[path = "parts/writers.rs"]
mod writers;
