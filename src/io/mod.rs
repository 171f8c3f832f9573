//! Where encoded bytes go and come from.

pub mod apart;
pub mod at;
pub mod atomic;
pub mod checksum;
pub mod lock;
pub mod shared;
pub mod sink;
pub mod source;
