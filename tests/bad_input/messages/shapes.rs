//! Group F: shapes that do not fit their payload, or are too large.

use ndarray::{Array0, Array1, Array2, ArrayD};
use serde_bytes::ByteBuf;
use tenarc::de::{DecodeOptions, Limits};
use tenarc::error::Category::{Data, Limit};
use tenarc::tensor::Order;
use tenarc::{DType, DynTensor, Tensor, Value};

use super::support::{accepts, head, is_well_formed, named, quickly, refuses, tensor, unhex, wide};

/// No reader of tensors takes it, though it is well-formed.
#[track_caller]
fn shape_is_refused(bytes: &[u8]) {
    is_well_formed(bytes);
    refuses::<Tensor<DynTensor>>(bytes, Data);
    refuses::<Tensor<ArrayD<f32>>>(bytes, Data);
    refuses::<Tensor<ArrayD<u8>>>(bytes, Data);
    refuses::<Value>(bytes, Data);
}

/// Shapes whose product is small only when it wraps: in 64 bits, in 32, or with a sign.
const WRAPPING: [&[u64]; 14] = [
    &[1 << 32, 1 << 32],
    &[1 << 63, 2],
    &[1 << 31, 1 << 33],
    &[1 << 16, 1 << 16, 1 << 32],
    &[274_177, 67_280_421_310_721], // 2^64 + 1
    &[641, 6_700_417, 274_177, 67_280_421_310_721],
    &[3, 12_297_829_382_473_034_411], // 2^65 + 1
    &[641, 6_700_417],                // 2^32 + 1
    &[1 << 32, 1],
    &[u64::MAX, u64::MAX], // 1 by sign
    &[u64::MAX, 1],
    &[1 << 63],
    &[(1 << 32) | 1],
    &[1 << 31, 2],
];

// 38
#[test]
fn shapes_whose_product_wraps_are_refused() {
    for dims in WRAPPING {
        for payload in [vec![], vec![0; 1], vec![0; 4], vec![0; 8]] {
            for tag in [40, 1040] {
                for typed in [64, 85, 86, 81] {
                    shape_is_refused(&tensor(tag, dims, typed, &payload));
                }
            }
            for name in ["u8", "f32", "bool", "bf16", "f8_e5m2", "f4", "c128"] {
                shape_is_refused(&named(name, dims, &payload));
            }
            let shown = shown("f32", dims, &payload);
            refuses::<Tensor<DynTensor>>(&shown, Data);
            refuses::<Tensor<ArrayD<f32>>>(&shown, Data);
        }
        let mut plain = [head(6, 40), head(4, 2), head(4, dims.len() as u64)].concat();
        plain.extend(dims.iter().flat_map(|&dim| head(0, dim)));
        plain.extend([0x81, 7]);
        shape_is_refused(&plain);
    }
}

/// A tensor as a map.
fn shown(name: &str, dims: &[u64], payload: &[u8]) -> Vec<u8> {
    let mut bytes = [unhex("a3 656474797065"), head(3, name.len() as u64)].concat();
    bytes.extend(name.as_bytes());
    bytes.extend([unhex("657368617065"), head(4, dims.len() as u64)].concat());
    bytes.extend(dims.iter().flat_map(|&dim| head(0, dim)));
    bytes.extend([unhex("6464617461"), head(2, payload.len() as u64)].concat());
    bytes.extend(payload);
    bytes
}

// 39
#[test]
fn element_counts_whose_bytes_wrap_are_refused() {
    for (typed, size) in [(69, 2u64), (85, 4), (86, 8), (87, 16), (82, 8)] {
        let count = (u64::MAX / size) + 1;
        for count in [count, count + 1, count + count / 2] {
            shape_is_refused(&tensor(40, &[count], typed, &[]));
            shape_is_refused(&tensor(40, &[count], typed, &vec![0; size as usize]));
        }
        shape_is_refused(&tensor(40, &[count / 2, 2], typed, &[]));
    }
    let parts = |dims: u64| [unhex("d8288281"), wide(0, dims), unhex("d9a7f9d85540")].concat();
    shape_is_refused(&parts(1 << 61));
    shape_is_refused(&parts(1 << 62));
    for (name, bits) in [("f4", 4u64), ("f6_e2m3", 6), ("bf16", 16), ("f64", 64)] {
        for count in [u64::MAX / bits + 1, (1 << 63) - 8, 1 << 61, 1 << 62] {
            shape_is_refused(&named(name, &[count], &[]));
            shape_is_refused(&named(name, &[count, 2], &[0; 3]));
        }
    }
    assert!(DynTensor::new(DType::F4, &[1 << 62], Order::C, vec![]).is_err());
    assert!(DynTensor::new(DType::F64, &[usize::MAX, usize::MAX], Order::C, vec![]).is_err());
}

// 40
#[test]
fn payloads_longer_or_shorter_than_their_shape_are_refused() {
    for (typed, size) in [(64, 1), (72, 1), (69, 2), (84, 2), (85, 4), (81, 4), (86, 8), (87, 16)] {
        let right = 6 * size;
        for len in [0, 1, right - size, right - 1, right + 1, right + size, 2 * right] {
            if len != right {
                shape_is_refused(&tensor(40, &[2, 3], typed, &vec![0; len]));
                shape_is_refused(&tensor(1040, &[2, 3], typed, &vec![0; len]));
            }
            // In chunks the length is known only at their end.
            let mut bytes = [unhex("d828 82 82 02 03"), head(6, typed), vec![0x5f]].concat();
            bytes.extend([head(2, 0), head(2, len as u64), vec![0; len], vec![0xff]].concat());
            if len == right {
                accepts::<Tensor<DynTensor>>(&bytes);
            } else {
                shape_is_refused(&bytes);
            }
        }
        accepts::<Tensor<DynTensor>>(&tensor(40, &[2, 3], typed, &vec![0; right]));
    }
    for (name, len) in [("bool", 6), ("bf16", 12), ("f8_e4m3", 6), ("f4", 3), ("c64", 48)] {
        accepts::<Tensor<DynTensor>>(&named(name, &[2, 3], &vec![0; len]));
        for len in [0, len - 1, len + 1, 2 * len] {
            shape_is_refused(&named(name, &[2, 3], &vec![0; len]));
            let shown = shown(name, &[2, 3], &vec![0; len]);
            refuses::<Tensor<DynTensor>>(&shown, Data);
        }
    }
    // Numbers one by one.
    for digits in ["8101 80", "8101 820102", "820202 83010203", "80 80", "80 820101", "8100 8101"] {
        shape_is_refused(&unhex(&format!("d82882{digits}")));
    }
    // Elements that fill no whole bytes.
    shape_is_refused(&named("f4", &[3], &[0]));
    shape_is_refused(&named("f4", &[3], &[0, 0]));
    shape_is_refused(&named("f6_e3m2", &[1], &[0]));
}

// 41
#[test]
fn bytes_that_are_no_whole_elements_are_refused() {
    for (typed, size) in [(69, 2), (65, 2), (84, 2), (85, 4), (86, 8), (87, 16), (79, 8)] {
        for len in (1..3 * size).filter(|len| len % size != 0) {
            for start in [head(2, len as u64), [&[0x5f], &head(2, len as u64)[..]].concat()] {
                let end = vec![0xff; usize::from(start[0] == 0x5f)];
                let bytes = [head(6, typed), start, vec![0; len], end].concat();
                shape_is_refused(&bytes);
                refuses::<Vec<f64>>(&bytes, Data);
                refuses::<Vec<u16>>(&bytes, Data);
            }
        }
    }
    // Half a complex number.
    shape_is_refused(&unhex("d9a7f9 d855 4400000000"));
    shape_is_refused(&unhex("d828 82 8101 d9a7f9 d855 4400000000"));
    let value = accepts::<Value>(&unhex("d84540"));
    assert!(tenarc::from_value::<Vec<u16>>(value).unwrap().is_empty());
}

// 42
#[test]
fn zero_dimensions_make_tensors_without_elements() {
    for tag in [40, 1040] {
        for typed in [64, 85, 82] {
            for dims in [&[0u64][..], &[0, 0], &[3, 0], &[0, 3], &[2, 0, 4]] {
                let read: Tensor<DynTensor> = accepts(&tensor(tag, dims, typed, &[]));
                let dims: Vec<usize> = dims.iter().map(|&dim| dim as usize).collect();
                assert_eq!((read.shape(), read.le_bytes().len()), (&dims[..], 0));
                assert_eq!(accepts::<Tensor<DynTensor>>(&tenarc::to_vec(&read).unwrap()), read);
                shape_is_refused(&tensor(tag, &[0], typed, &[0; 8]));
            }
        }
    }
    assert_eq!(accepts::<Tensor<Array2<f32>>>(&tensor(40, &[0, 5], 85, &[])).shape(), [0, 5]);
    assert_eq!(
        accepts::<Tensor<Array1<u8>>>(&unhex("d8288281008 0".replace(' ', "").as_str())).len(),
        0
    );
    // Beside others whose product does not fit, in any order: one answer.
    let (large, max) = (1u64 << 62, u64::MAX);
    for dims in [[0, large, 4], [large, 0, 4], [large, 4, 0], [4, large, 0], [0, 4, large]] {
        shape_is_refused(&tensor(40, &dims, 64, &[]));
        shape_is_refused(&named("u8", &dims, &[]));
    }
    for dims in [[0, max], [max, 0], [0, 1 << 63], [1 << 63, 0]] {
        shape_is_refused(&tensor(40, &dims, 64, &[]));
    }
    for dims in [[0, large], [large, 0]] {
        let read: Tensor<DynTensor> = accepts(&tensor(40, &dims, 64, &[]));
        assert_eq!(read.le_bytes().len(), 0);
        assert_eq!(accepts::<Tensor<ArrayD<u8>>>(&tensor(40, &dims, 64, &[])).len(), 0);
        // Either the array holds nothing, or it is an error: never a panic.
        let _ = tenarc::from_slice::<Tensor<ArrayD<f64>>>(&tensor(40, &dims, 86, &[]));
    }
}

// 43
#[test]
fn a_million_dimensions_are_refused() {
    let ones = |count: u64| [head(4, count), vec![1; count as usize]].concat();
    let open = |count: u64| [vec![0x9f], vec![1; count as usize], vec![0xff]].concat();
    for shape in [ones(65), ones(1_000_000), open(65), open(1_000_000), wide(4, u64::MAX)] {
        let bytes = [unhex("d82882"), shape.clone(), unhex("d84041aa")].concat();
        quickly(|| refuses::<Tensor<DynTensor>>(&bytes, Limit));
        quickly(|| refuses::<Tensor<ArrayD<u8>>>(&bytes, Limit));
        quickly(|| refuses::<Value>(&bytes, Limit));
        let bytes = [unhex("da54454e53 84 627538"), shape, unhex("6143 41aa")].concat();
        quickly(|| refuses::<Tensor<DynTensor>>(&bytes, Limit));
    }
    for shape in [ones(64), open(64)] {
        let bytes = [unhex("d82882"), shape, unhex("d84041aa")].concat();
        assert_eq!(accepts::<Tensor<DynTensor>>(&bytes).shape(), [1; 64]);
        assert_eq!(accepts::<Tensor<ArrayD<u8>>>(&bytes).ndim(), 64);
    }
    // Written as a map it is no better.
    let shown = shown("u8", &vec![1; 1_000_000], &[7]);
    quickly(|| refuses::<Tensor<DynTensor>>(&shown, Data));
    quickly(|| refuses::<Tensor<ArrayD<u8>>>(&shown, Data));
}

// 43
#[test]
fn a_raised_limit_still_allocates_as_dimensions_come() {
    for max in [1000, usize::MAX] {
        let limits = Limits::default().with_max_rank(max);
        let options = DecodeOptions::default().with_limits(limits);
        for rank in [65, 1000] {
            let dims = vec![1; rank];
            let bytes = tensor(40, &dims, 64, &[7]);
            let read: Tensor<DynTensor> = tenarc::de::from_slice_with(&bytes, options).unwrap();
            assert_eq!(read.shape().len(), rank);
        }
        for claim in [1 << 20, 1 << 40, u64::MAX] {
            let bytes = [unhex("d82882"), wide(4, claim), vec![1; 50]].concat();
            let (result, peak) = tenarc_test_support::alloc::peak_of(|| {
                tenarc::de::from_slice_with::<Tensor<DynTensor>>(&bytes, options)
            });
            assert!(result.is_err() && peak < 100_000, "{peak}");
        }
    }
}

// 44
#[test]
fn dimensions_that_are_no_counts_are_refused() {
    for dim in [
        "20",
        "f93c00",
        "fb3ff0000000000000",
        "6131",
        "f6",
        "f5",
        "c24101",
        "80",
        "8101",
        "c101",
        "4101",
        "f7",
        "a0",
        "e0",
    ] {
        shape_is_refused(&unhex(&format!("d828 82 81{dim} d84041aa")));
        shape_is_refused(&unhex(&format!("d828 82 8201{dim} d84041aa")));
        shape_is_refused(&unhex(&format!("d828 82 9f{dim}ff d84041aa")));
        shape_is_refused(&unhex(&format!("da54454e53 84 627538 81{dim} 6143 41aa")));
    }
    // In a map, numbers of every width are numbers; these are none.
    for dim in ["20", "6131", "f6", "80", "fb3ff8000000000000"] {
        let shown = unhex(&format!("a3 656474797065627538 657368617065 81{dim} 646461746141aa"));
        refuses::<Tensor<DynTensor>>(&shown, Data);
    }
}

// 45
#[test]
fn scalars_have_one_element() {
    let scalar = tensor(40, &[], 64, &[7]);
    assert_eq!(accepts::<Tensor<Array0<u8>>>(&scalar)[()], 7);
    assert_eq!(accepts::<Tensor<DynTensor>>(&scalar).shape(), [0usize; 0]);
    assert_eq!(accepts::<Tensor<Array0<i64>>>(&unhex("d82882808107"))[()], 7);
    assert_eq!(accepts::<Tensor<DynTensor>>(&named("bf16", &[], &[1, 2])).le_bytes()[..], [1, 2]);
    for payload in [vec![], vec![1, 2]] {
        shape_is_refused(&tensor(40, &[], 64, &payload));
        shape_is_refused(&named("u8", &[], &payload));
    }
    refuses::<Tensor<Array1<u8>>>(&scalar, Data);
    refuses::<Tensor<Array0<u8>>>(&tensor(40, &[1], 64, &[7]), Data);
}

// 38, 40
#[test]
fn other_numbers_of_dimensions_are_refused() {
    let two = tensor(40, &[2, 2], 64, &[1, 2, 3, 4]);
    assert_eq!(accepts::<Tensor<Array2<u8>>>(&two)[[1, 0]], 3);
    refuses::<Tensor<Array1<u8>>>(&two, Data);
    refuses::<Tensor<Vec<u8>>>(&two, Data);
    refuses::<Vec<u8>>(&two, Data);
    refuses::<ByteBuf>(&two, Data);
    refuses::<Tensor<Array2<u8>>>(&unhex("d84041aa"), Data);
    // An unknown dtype has no size to check, and nothing is believed of it.
    let unknown: Tensor<DynTensor> = accepts(&named("posit8", &[1 << 40], &[1, 2, 3]));
    assert_eq!(unknown.le_bytes()[..], [1, 2, 3]);
    assert!(unknown.view::<u8>().is_err());
    assert_eq!(accepts::<Tensor<DynTensor>>(&tenarc::to_vec(&unknown).unwrap()), unknown);
}
