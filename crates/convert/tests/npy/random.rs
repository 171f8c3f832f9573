//! Round trips of arbitrary tensors.

use std::io::Cursor;

use proptest::prelude::*;
use tenarc::tensor::Order;
use tenarc::{DType, DynTensor};
use tenarc_convert::npy::{self, Compression, NpzWriter};

use super::support::all;

fn dtype() -> impl Strategy<Value = DType> {
    let names = [
        "bool", "u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f16", "f32", "f64", "c64",
        "c128",
    ];
    prop::sample::select(names.map(DType::from_name).to_vec())
}

/// A tensor of arbitrary bytes, NaNs among them.
fn tensor() -> impl Strategy<Value = DynTensor> {
    let shape = prop::collection::vec(prop_oneof![9 => 1usize..5, 1 => Just(0)], 0..6);
    let order = prop_oneof![Just(Order::C), Just(Order::F)];
    (dtype(), shape, order).prop_flat_map(|(dtype, shape, order)| {
        let count: usize = shape.iter().product();
        let max = if dtype == DType::Bool { 1 } else { u8::MAX };
        prop::collection::vec(0..=max, count * dtype.bits().unwrap() / 8)
            .prop_map(move |bytes| DynTensor::new(dtype.clone(), &shape, order, bytes).unwrap())
    })
}

/// Equal to the bit, NaNs too.
fn same(a: &DynTensor, b: &DynTensor) -> bool {
    (a.dtype(), a.shape(), a.order()) == (b.dtype(), b.shape(), b.order())
        && a.le_bytes() == b.le_bytes()
}

/// The npy file with its elements in the other byte order.
fn big_endian(bytes: &[u8], tensor: &DynTensor) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let word = match tensor.dtype() {
        DType::C64 => 4,
        DType::C128 => 8,
        other => other.bits().unwrap() / 8,
    };
    if word > 1 {
        let at = bytes.iter().position(|&byte| byte == b'<').unwrap();
        bytes[at] = b'>';
        let start = bytes.len() - tensor.le_bytes().len();
        bytes[start..].chunks_exact_mut(word).for_each(<[u8]>::reverse);
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read(tensor in tensor()) {
        let mut bytes = Vec::new();
        npy::write(&mut bytes, &tensor).unwrap();
        prop_assert_eq!((bytes.len() - tensor.le_bytes().len()) % 64, 0);
        prop_assert!(same(&npy::read(&bytes[..]).unwrap(), &tensor));
        let other = npy::read(&big_endian(&bytes, &tensor)[..]).unwrap();
        prop_assert!(same(&other, &tensor));
    }

    #[test]
    fn archives_of_arrays_are_read(
        tensors in prop::collection::btree_map("[^\\x00]{0,6}", tensor(), 0..5),
        deflated: bool,
    ) {
        let compression = if deflated { Compression::Deflated } else { Compression::Stored };
        let out = NpzWriter::new(Cursor::new(Vec::new())).unwrap();
        let mut out = out.with_compression(compression);
        for (name, tensor) in &tensors {
            out.add(name, tensor).unwrap();
        }
        let found = all(&out.finish().unwrap().into_inner()).unwrap();
        prop_assert_eq!(found.len(), tensors.len());
        for ((name, found), (expected, tensor)) in found.iter().zip(&tensors) {
            prop_assert_eq!(name, expected);
            prop_assert!(same(found, tensor));
        }
    }

    #[test]
    fn noise_is_an_error_and_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(all(&bytes).is_err());
        let file = [b"\x93NUMPY\x01\x00\x40\x00", &bytes[..]].concat();
        prop_assert!(npy::read(&file[..]).is_err());
    }
}
