//! Where encoded bytes go and come from.

pub mod at;
pub mod atomic;
pub mod buffers;
pub mod checksum;
pub mod shared;
pub mod sink;
pub mod source;
