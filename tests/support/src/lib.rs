//! What the tests of `tenarc`, `tenarc-convert` and `tenarc-interop` share.
//!
//! - Reading a value from every kind of source and writing it by every entry point: [`decode`],
//!   [`encode`], [`refuse`], [`round_trip`].
//! - [`alloc`]: how much memory a piece of code allocates.
//! - [`builder`]: archives built by hand from the specification, with any lie in them.
//! - [`child`]: tests that go on in another process.
//! - [`effort`]: how many of its cases a long test tries.
//! - [`lines`]: how much two programs differ.
//! - [`Meeting`]: threads that wait for each other.
//! - [`needed`]: what happens where a tool that a test needs is missing.

// Nobody but tests uses this crate: its functions panic if what they check does not hold.
#![allow(missing_docs, clippy::missing_panics_doc)]
#![allow(clippy::new_without_default, clippy::return_self_not_must_use)]

pub mod alloc;
pub mod builder;
pub mod child;
pub mod effort;
mod every_way;
mod hex;
pub mod lines;
mod meeting;
pub mod needed;
mod readers;

pub use every_way::{decode, encode, everywhere, open_round_trip, refuse, round_trip};
pub use hex::{hex, unhex};
pub use meeting::Meeting;
pub use readers::{OneByte, Ragged, readers};

/// Every dtype that has a name.
pub const DTYPES: [&str; 24] = [
    "bool",
    "u8",
    "u16",
    "u32",
    "u64",
    "i8",
    "i16",
    "i32",
    "i64",
    "f16",
    "bf16",
    "f32",
    "f64",
    "f128",
    "c64",
    "c128",
    "f8_e5m2",
    "f8_e4m3",
    "f8_e8m0",
    "f8_e5m2fnuz",
    "f8_e4m3fnuz",
    "f6_e2m3",
    "f6_e3m2",
    "f4",
];
