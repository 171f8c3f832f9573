//! Rows that are tensors, and rows of numbers that are read as tensors.

use std::collections::BTreeMap;
use std::fmt;

use ndarray::{Array1, Array2, ArrayView1, array};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use tenarc::tensor::SharedTensor;
use tenarc::{DType, DynTensor, Tensor, Value};
use tenarc_test_support::builder::{array as items, bytes, map, own, text, unsigned};
use tenarc_test_support::{decode, refuse};

use crate::build::{f32s, f64s, kind, one, tensor, u8s};

fn matrices() -> Vec<u8> {
    one(2, tensor(&[2, 1, 2], f32s(&[1.0, 2.0, 3.0, 4.0])))
}

#[test]
fn rows_are_tensors() {
    let found = decode::<Vec<Tensor<Array2<f32>>>>(&matrices());
    assert_eq!(found[1].0, array![[3.0, 4.0]]);
    let found = decode::<Vec<Tensor<DynTensor>>>(&matrices());
    assert_eq!((found[0].0.dtype(), found[0].0.shape()), (&DType::F32, &[1, 2][..]));
    let value: Value = tenarc::from_slice(&matrices()).unwrap();
    assert_eq!(value[1].as_tensor().unwrap().as_slice::<f32>().unwrap(), [3.0, 4.0]);
    let error = refuse::<Vec<Tensor<Array1<f32>>>>(&matrices());
    assert_eq!(error.path(), "0");
    let error = refuse::<Vec<Tensor<Array2<f64>>>>(&matrices());
    assert!(error.to_string().contains("expected a tensor of f64, found one of f32"), "{error}");
    let error = refuse::<Vec<Vec<f32>>>(&matrices());
    assert!(error.to_string().contains("found a tensor of 2 dimensions"), "{error}");

    let vectors = one(2, tensor(&[2, 2], f32s(&[1.0, 2.0, 3.0, 4.0])));
    assert_eq!(decode::<Vec<Vec<f32>>>(&vectors), [[1.0, 2.0], [3.0, 4.0]]);
    assert_eq!(decode::<Vec<(f32, f64)>>(&vectors), [(1.0, 2.0), (3.0, 4.0)]);
    assert_eq!(decode::<Vec<[f32; 2]>>(&vectors), [[1.0, 2.0], [3.0, 4.0]]);
    let scalars = one(2, tensor(&[2], f32s(&[1.0, 2.0])));
    assert_eq!(decode::<Vec<Tensor<DynTensor>>>(&scalars)[1].0.shape(), [0usize; 0]);
}

#[test]
fn other_types_see_a_map() {
    #[derive(Deserialize, PartialEq, Debug)]
    struct Data(serde_bytes::ByteBuf);
    #[derive(Deserialize, PartialEq, Debug)]
    struct Shown {
        dtype: String,
        shape: Vec<usize>,
        order: char,
        data: Option<Data>,
    }
    /// Asks for a map.
    #[derive(PartialEq, Debug)]
    struct AsMap(Shown);
    struct MapVisitor;
    impl<'de> Deserialize<'de> for AsMap {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_map(MapVisitor)
        }
    }
    impl<'de> Visitor<'de> for MapVisitor {
        type Value = AsMap;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a map")
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<AsMap, A::Error> {
            Shown::deserialize(MapAccessDeserializer::new(map)).map(AsMap)
        }
    }
    let shown = |row: [u8; 2]| {
        let data = Some(Data(serde_bytes::ByteBuf::from(row)));
        Shown { dtype: "u8".into(), shape: vec![2], order: 'C', data }
    };
    let rows = one(2, tensor(&[2, 2], u8s(&[1, 2, 3, 4])));
    assert_eq!(decode::<Vec<AsMap>>(&rows), [AsMap(shown([1, 2])), AsMap(shown([3, 4]))]);
    // As the item that the row stands for.
    assert_eq!(decode::<AsMap>(&tensor(&[2], u8s(&[1, 2]))), AsMap(shown([1, 2])));

    #[derive(Deserialize, PartialEq, Debug)]
    #[serde(untagged)]
    enum Any {
        Shown(Shown),
    }
    assert_eq!(decode::<Vec<Any>>(&rows)[1], Any::Shown(shown([3, 4])));
    let error = refuse::<Vec<BTreeMap<String, String>>>(&rows);
    assert_eq!(error.path(), "0");
    assert!(error.to_string().contains("expected a string, found array"), "{error}");
}

#[test]
fn visitors_that_leave_entries_of_a_tensor_are_refused() {
    /// Asks for so many entries, and drops their values.
    #[derive(PartialEq, Debug)]
    struct Leaves<const N: usize>;
    struct Drops;
    impl<'de> DeserializeSeed<'de> for Drops {
        type Value = ();

        fn deserialize<D: Deserializer<'de>>(self, _: D) -> Result<(), D::Error> {
            Ok(())
        }
    }
    impl<'de, const N: usize> Deserialize<'de> for Leaves<N> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_map(Self)
        }
    }
    impl<'de, const N: usize> Visitor<'de> for Leaves<N> {
        type Value = Self;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a tensor")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self, A::Error> {
            for _ in 0..N {
                assert!(map.next_key::<IgnoredAny>()?.is_some());
                map.next_value_seed(Drops)?;
            }
            Ok(self)
        }
    }
    let item = tensor(&[1, 2], u8s(&[1, 2]));
    decode::<Leaves<4>>(&item);
    decode::<Vec<Leaves<4>>>(&one(1, item.clone()));
    for error in [refuse::<Leaves<3>>(&item), refuse::<Vec<Leaves<3>>>(&one(1, item))] {
        assert!(error.to_string().contains("expected the end of a map, found 1 more"), "{error}");
        assert!(error.offset().is_some());
    }
}

/// Reads a document whose last 16 bytes are aligned to 4 bytes, or lie one byte further.
fn with_aligned_end<T>(document: &[u8], by: usize, read: impl FnOnce(&[u8]) -> T) -> T {
    let mut memory = vec![0u8; document.len() + 8];
    let start = memory.as_ptr() as usize + document.len();
    let skip = start.next_multiple_of(4) - start + by;
    let place = &mut memory[skip..skip + document.len()];
    place.copy_from_slice(document);
    read(place)
}

#[test]
fn rows_are_views_of_aligned_slices() {
    type Views<'a> = Vec<Tensor<ArrayView1<'a, f32>>>;
    let vectors = one(2, tensor(&[2, 2], f32s(&[1.0, 2.0, 3.0, 4.0])));
    // Floats of lists can be viewed, too.
    let lists = one(2, kind("array", &[unsigned(2), f32s(&[1.0, 2.0, 3.0, 4.0])]));
    for document in [vectors, lists] {
        with_aligned_end(&document, 0, |document| {
            let views: Views<'_> = tenarc::from_slice(document).unwrap();
            assert_eq!(views[1].0.to_vec(), [3.0, 4.0]);
            assert!(document.as_ptr_range().contains(&views[1].0.as_ptr().cast()));
        });
        with_aligned_end(&document, 1, |document| {
            let error = tenarc::from_slice::<Views<'_>>(document).unwrap_err();
            assert_eq!(error.path(), "0", "{error}");
        });
    }
}

#[test]
fn lists_and_tuples_of_numbers_are_tensors() {
    let lists = one(2, kind("array", &[unsigned(2), f32s(&[1.0, 2.0, 3.0, 4.0])]));
    assert_eq!(decode::<Vec<Tensor<Array1<f32>>>>(&lists)[1].0, array![3.0, 4.0]);
    assert_eq!(decode::<Vec<Tensor<Array1<f64>>>>(&lists)[1].0, array![3.0, 4.0]);
    assert_eq!(decode::<Vec<Tensor<DynTensor>>>(&lists)[1].0.dtype(), &DType::F32);
    // Integers are as in a plain array, because their type depends on the other rows.
    let lists = one(2, kind("array", &[unsigned(2), u8s(&[1, 2, 3, 4])]));
    assert_eq!(decode::<Vec<Tensor<Array1<u16>>>>(&lists)[1].0, array![3, 4]);
    assert_eq!(decode::<Vec<Tensor<DynTensor>>>(&lists)[1].0.dtype(), &DType::I64);
    let tuples = kind("tuple", &[items(&[u8s(&[1, 2]), f64s(&[0.5, 1.5])])]);
    assert_eq!(decode::<Vec<Tensor<Array1<f64>>>>(&one(2, tuples))[1].0, array![2.0, 1.5]);
    let bools = kind("array", &[unsigned(3), kind("bool", &[bytes(&[0b101])])]);
    assert_eq!(decode::<Vec<Tensor<Array1<bool>>>>(&one(1, bools))[0].0, array![true, false, true]);
    let nested = kind("array", &[unsigned(1), kind("array", &[unsigned(1), u8s(&[1])])]);
    let error = refuse::<Vec<Tensor<Array1<u8>>>>(&one(1, nested));
    assert!(error.to_string().contains("expected a number of at most 64 bits"), "{error}");
    let error = refuse::<Vec<Tensor<Array1<u8>>>>(&one(1, kind("unit", &[])));
    assert!(error.to_string().contains("expected a tensor, found null"), "{error}");
    // A column of numbers is a sequence of numbers, as the array would be.
    assert_eq!(decode::<Tensor<Array1<u8>>>(&one(2, u8s(&[1, 2]))).0, array![1, 2]);
}

#[test]
fn small_elements_and_other_dtypes() {
    let tens = |dtype: &str, shape: &[u64], payload: &[u8]| {
        let dims: Vec<_> = shape.iter().map(|&dim| unsigned(dim)).collect();
        own(*b"TENS", &items(&[text(dtype), items(&dims), text("C"), bytes(payload)]))
    };
    let found = decode::<Vec<Tensor<DynTensor>>>(&one(2, tens("f4", &[2, 2], &[1, 2])));
    assert_eq!(&found[1].0.le_bytes()[..], [2]);
    let found = decode::<Vec<Tensor<DynTensor>>>(&one(1, tens("bool", &[1, 2], &[1, 0])));
    assert_eq!(found[0].0.as_slice::<bool>().unwrap(), [true, false]);
    let error = refuse::<Vec<Tensor<DynTensor>>>(&one(2, tens("f4", &[2, 1], &[1])));
    assert!(error.to_string().contains("do not take whole bytes"), "{error}");
    // The payload of a dtype that is not known is cut into equal parts.
    let odd = |rows, payload: &[u8]| one(rows, tens("odd", &[rows, 2], payload));
    let found = decode::<Vec<Tensor<DynTensor>>>(&odd(2, &[1, 2, 3, 4, 5, 6]));
    assert_eq!((found[1].0.dtype().name(), found[1].0.shape()), ("odd", &[2][..]));
    assert_eq!(&found[1].0.le_bytes()[..], [4, 5, 6]);
    assert!(decode::<Vec<Tensor<DynTensor>>>(&odd(2, &[]))[1].0.le_bytes().is_empty());
    assert!(decode::<Vec<Tensor<DynTensor>>>(&odd(0, &[])).is_empty());
    for document in [odd(2, &[1, 2, 3]), odd(0, &[1])] {
        let error = refuse::<Vec<Tensor<DynTensor>>>(&document);
        assert!(error.to_string().contains("do not take whole bytes"), "{error}");
    }
    let error = refuse::<Vec<Tensor<DynTensor>>>(&one(1, tens("bool", &[1, 2], &[1, 2])));
    assert!(error.to_string().contains("the byte 2; it must be 0 or 1"), "{error}");
}

#[test]
fn rows_of_shared_buffers_are_shared() {
    let reference = own(
        *b"TBUF",
        &items(&[text("f32"), items(&[unsigned(2), unsigned(2)]), text("C"), unsigned(0)]),
    );
    let metadata = map(&[("rows", one(2, reference))]);
    let payload: Vec<u8> = [1f32, 2.0, 3.0, 4.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    let archive = tenarc_test_support::builder::simple(metadata, &[&payload]);
    #[derive(Deserialize)]
    struct Doc {
        rows: Vec<Tensor<SharedTensor>>,
    }
    let bytes = tenarc::io::SharedBytes::from_owner(archive.clone());
    let doc: Doc = tenarc::Archive::new(bytes).unwrap().only().unwrap().load_shared().unwrap();
    assert!(doc.rows[1].0.is_shared());
    assert_eq!(&doc.rows[1].0.le_bytes()[..], &payload[8..]);
    let doc: Doc = tenarc::IArchive::new(&archive[..]).unwrap().load().unwrap();
    assert_eq!(&doc.rows[1].0.le_bytes()[..], &payload[8..]);
}
