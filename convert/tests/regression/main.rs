//! Defects that were fixed stay fixed: one module for each.

mod digits_of_singles;
#[cfg(any(
    feature = "arrow",
    feature = "json",
    feature = "msgpack",
    feature = "npy",
    feature = "safetensors",
    feature = "tenbin"
))]
mod lying_writers;
mod wide_integers;
