//! The buffers of a segment, read from a file, a stream or memory. All bytes are verified chunk by chunk, unless the options
//! say that they need not be.

pub mod chunked;
pub mod file;
pub mod loaded;
pub mod ranges;
pub mod slice;
pub mod source;
pub mod stream;
pub mod unpack;
