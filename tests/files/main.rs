//! A file under its final name is whole: after saves and appends that fail or are killed, after a power
//! loss, and beside other processes that read or write it. Numbers such as L 84 are those of
//! `docs/threats.md`: groups I, J and L to O.
//!
//! Tests that look at system calls need `strace` and Linux; without, they say so and pass, but fail
//! in CI. By default a sample of each kind of fault runs; the full sweeps are `#[ignore]`d, and `.ci/full`
//! runs them.

#![cfg(unix)]
#![allow(unsafe_code)]
#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
#![allow(clippy::items_after_statements)]

mod append;
mod atomic;
mod child;
mod compact;
mod created;
mod disk;
mod killed;
mod processes;
mod saving;
mod support;
mod torn;
mod trace;
