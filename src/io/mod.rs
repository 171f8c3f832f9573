//! Where encoded bytes go and come from.

pub mod sink;
pub mod source;
