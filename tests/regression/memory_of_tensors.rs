//! A `Vec` of small tensors took three times the memory that the documentation of `Limits` promised for each byte of input.

use serde::de::DeserializeOwned;
use tenarc::{DynTensor, Tensor, Value};

use tenarc_test_support::alloc::peak_of;

/// The head of an array of so many elements, and the elements.
fn array(element: &[u8], count: u32) -> Vec<u8> {
    [&[0x9a], &count.to_be_bytes()[..], &element.repeat(count as usize)].concat()
}

#[track_caller]
fn stays_within<T: DeserializeOwned>(element: &[u8], size: usize) {
    // More than these need more than the budget of memory.
    const COUNT: u32 = 100_000;
    let input = array(element, COUNT);
    let promised = 3 * size * input.len();
    let (value, from_slice) = peak_of(|| tenarc::from_slice::<T>(&input));
    assert!(value.is_ok());
    drop(value);
    let (value, from_reader) = peak_of(|| tenarc::from_reader::<_, T>(&input[..]));
    assert!(value.is_ok());
    for most in [from_slice, from_reader] {
        println!("{} for each byte, {} promised", most / input.len(), 3 * size);
        assert!(most <= promised + (1 << 20), "{most} bytes, {promised} are promised");
    }
}

#[test]
fn memory_is_within_the_documented_factor() {
    let tensor = size_of::<Tensor<DynTensor>>();
    // The shortest tensors: empty arrays, and arrays of one number.
    stays_within::<Vec<Tensor<DynTensor>>>(&[0x80], tensor);
    stays_within::<Vec<Tensor<DynTensor>>>(&[0x81, 0x01], tensor);
    stays_within::<Vec<Tensor<ndarray::Array1<f64>>>>(&[0x80], size_of::<ndarray::Array1<f64>>());
    stays_within::<Vec<Option<u64>>>(&[0x01], size_of::<Option<u64>>());
    stays_within::<Vec<Vec<u8>>>(&[0x80], size_of::<Vec<u8>>());
    assert_eq!(size_of::<Value>(), 32);
    stays_within::<Value>(&[0x01], 32);
    stays_within::<Value>(&[0x81, 0x81, 0x01], 32);
    stays_within::<Value>(&[0x9f, 0x01, 0xff], 32);
    stays_within::<Value>(&[0xa1, 0x01, 0x01], 32);
}
