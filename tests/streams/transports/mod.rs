//! Archives, messages and parts between processes, compressed and encrypted.
//!
//! The code that encrypts and the code that sends datagrams are files of the examples. Including them
//! here tests them.

#![allow(unsafe_code)] // Mapping a file is unsafe.
#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]

#[allow(dead_code)] // Its `main` is not called here.
#[path = "../../../examples/datagrams.rs"]
mod example;
#[path = "../../../examples/streams/sealed.rs"]
mod sealed;

mod compressed;
mod datagrams;
mod encrypted;
#[cfg(target_os = "linux")]
mod memory;
mod support;
mod tcp;
#[cfg(unix)]
mod unix;
