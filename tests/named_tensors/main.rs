//! A list of named tensors comes through a stream or archive unchanged, and can be loaded onto variables
//! of the same names.

// Sample values are small numbers made from an index, and floats come back bit for bit.
#![allow(clippy::cast_precision_loss, clippy::float_cmp)]

mod archives;
mod lists;
mod onto;
mod streams;
mod variables;

use ndarray::Array1;
use tenarc::DynTensor;
use tenarc::tensor::ToTensor;

#[global_allocator]
static ALLOCATOR: tenarc_test_support::alloc::Counting = tenarc_test_support::alloc::Counting;

fn saved<N: AsRef<str>, T: ToTensor>(tensors: &[(N, T)]) -> Vec<u8> {
    let mut stream = Vec::new();
    tenarc::named::save_multi(&mut stream, tensors).unwrap();
    stream
}

/// Numbers that differ from those of other seeds.
fn ramp(len: usize, seed: usize) -> Array1<f32> {
    (0..len).map(|at| (at + seed * 1000) as f32).collect()
}

fn names(tensors: &[(String, DynTensor)]) -> Vec<&str> {
    tensors.iter().map(|(name, _)| name.as_str()).collect()
}
