//! Archives, messages and parts between processes, and through what compresses and encrypts.
//!
//! What encrypts, and what sends datagrams, are files of the examples, which are so tested here.
#![allow(unsafe_code)]
// Mapping a file is unsafe.
#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]

#[path = "common/child.rs"]
mod child;

// Its `main`, and what that alone needs, is not used here.
#[allow(dead_code)]
#[path = "../examples/datagrams.rs"]
mod example;
#[path = "../examples/streams/sealed.rs"]
mod sealed;

#[path = "transports/compressed.rs"]
mod compressed;
#[path = "transports/datagrams.rs"]
mod datagrams;
#[path = "transports/encrypted.rs"]
mod encrypted;
#[cfg(target_os = "linux")]
#[path = "transports/memory.rs"]
mod memory;
#[path = "transports/support.rs"]
mod support;
#[path = "transports/tcp.rs"]
mod tcp;
#[cfg(unix)]
#[path = "transports/unix.rs"]
mod unix;
