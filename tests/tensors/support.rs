//! Sources, sample elements and buffers of chosen alignment.

use std::fmt::Debug;

use half::{bf16, f16};
use ndarray::{ArrayBase, Data, Dimension};
use num_complex::Complex;
use serde::de::DeserializeOwned;
use tenarc::tensor::Element;
use tenarc::{Error, Tensor};

pub use tenarc_test_support::{OneByte, hex, unhex};
use tenarc_test_support::{everywhere, refuse};

/// What every kind of source gives.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Vec<Result<T, Error>> {
    everywhere(bytes).into_iter().map(|(_, found)| found).collect()
}

/// Asserts that every source gives the value.
#[track_caller]
pub fn assert_reads<T: DeserializeOwned + PartialEq + Debug>(bytes: &[u8], expected: &T) {
    for (source, found) in everywhere::<T>(bytes) {
        match found {
            Ok(found) => assert_eq!(&found, expected, "from {source}"),
            Err(error) => panic!("from {source}: {error}"),
        }
    }
}

/// Asserts that every source gives the same error, whose message holds all of the texts.
#[track_caller]
pub fn assert_fails<T: DeserializeOwned + Debug>(bytes: &[u8], texts: &[&str]) {
    let error = refuse::<T>(bytes).to_string();
    for text in texts {
        assert!(error.contains(text), "`{error}` does not say `{text}`");
    }
}

/// Encodes an array as a tensor, into memory and into a writer.
///
/// The rank is erased first, so that the encoder is compiled once for each element type.
#[track_caller]
pub fn encode<A, S, D>(array: &ArrayBase<S, D>) -> Vec<u8>
where
    A: Element,
    S: Data<Elem = A>,
    D: Dimension,
{
    let tensor = Tensor(array.view().into_dyn());
    let bytes = tenarc::to_vec(&tensor).unwrap();
    let mut written = Vec::new();
    tenarc::to_writer(&mut written, &tensor).unwrap();
    assert_eq!(written, bytes, "to_writer and to_vec differ");
    bytes
}

/// An element type with distinct values to fill arrays with.
pub trait Sample: Element + Default + Copy {
    fn sample(index: usize) -> Self;
}

macro_rules! samples {
    ($($type:ty: |$index:ident| $value:expr;)*) => {
        $(impl Sample for $type {
            fn sample($index: usize) -> Self {
                $value
            }
        })*

        /// Calls a generic function once for every element type.
        macro_rules! for_every_element {
            ($function:ident) => {
                $($function::<$type>();)*
            };
        }
        pub(crate) use for_every_element;
    };
}

samples! {
    bool: |i| i % 3 == 1;
    u8: |i| i as u8;
    u16: |i| 0x0100 + i as u16;
    u32: |i| 0x0102_0300 + i as u32;
    u64: |i| u64::MAX - i as u64;
    i8: |i| -(i as i8);
    i16: |i| -300 - i as i16;
    i32: |i| -70_000 - i as i32;
    i64: |i| i64::MIN + i as i64;
    half::f16: |i| f16::from_f32(0.25 * i as f32 - 1.0);
    half::bf16: |i| bf16::from_f32(0.5 * i as f32 - 2.0);
    f32: |i| 0.1 * i as f32 - 1.0;
    f64: |i| 1e300 * i as f64 - 0.1;
    num_complex::Complex<f32>: |i| Complex::new(i as f32, -0.5 * i as f32);
    num_complex::Complex<f64>: |i| Complex::new(1e-300, i as f64);
}

/// Calls a generic function for an element type of each kind.
macro_rules! for_some_elements {
    ($function:ident) => {
        $function::<bool>();
        $function::<u8>();
        $function::<half::bf16>();
        $function::<f32>();
        $function::<num_complex::Complex<f64>>();
    };
}
pub(crate) use for_some_elements;

/// Memory in which a message stands so that its last `payload` bytes start at a chosen distance
/// from an address that is a multiple of 16.
pub struct Placed {
    memory: Vec<u128>,
    start: usize,
    len: usize,
}

impl Placed {
    pub fn new(message: &[u8], payload: usize, distance: usize) -> Self {
        let head = message.len() - payload;
        let start = (distance + 16 - head % 16) % 16;
        let mut memory = vec![0u128; (start + message.len()).div_ceil(16)];
        bytemuck::cast_slice_mut::<u128, u8>(&mut memory)[start..start + message.len()]
            .copy_from_slice(message);
        Self { memory, start, len: message.len() }
    }

    pub fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice::<u128, u8>(&self.memory)[self.start..self.start + self.len]
    }
}
