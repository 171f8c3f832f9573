//! Tensors where serde buffers, under other formats, and what all of that copies.

#[path = "buffering/allocations.rs"]
mod allocations;
mod common;
#[path = "buffering/counter.rs"]
mod counter;
#[path = "buffering/json.rs"]
mod json;
#[path = "buffering/peers.rs"]
mod peers;
#[path = "buffering/survival.rs"]
mod survival;
