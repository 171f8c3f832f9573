#![doc = include_str!("../README.md")]

mod message;
mod reader;
mod writer;

pub use message::{Framing, MessageCodec};
pub use reader::PartsReader;
pub use writer::PartsWriter;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/tokio.md")]
struct Guide;
