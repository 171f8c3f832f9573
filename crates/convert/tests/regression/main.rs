//! Defects that were fixed stay fixed: one module for each.

#[cfg(feature = "parquet")]
mod counting_bools;
mod digits_of_singles;
#[cfg(feature = "arrow")]
mod early_compression;
#[cfg(any(
    feature = "arrow",
    feature = "json",
    feature = "msgpack",
    feature = "npy",
    feature = "safetensors",
    feature = "tenbin"
))]
mod lying_writers;
#[cfg(all(feature = "arrow", feature = "npy", feature = "safetensors"))]
mod nesting;
#[cfg(feature = "onnx")]
mod packed_wire_types;
mod wide_integers;
