//! What a tensor can be read into, wrapped or marked.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Debug;

use ndarray::{ArcArray, Array1, Array2, ArrayD, ArrayView1, CowArray, Ix1, Ix2, array};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tenarc::tensor::{Element, FromTensor, ToTensor};
use tenarc::{DynTensor, Tensor};

use super::support::{
    Sample, assert_fails, assert_reads, decode, encode, for_every_element, for_some_elements, hex,
    unhex,
};

#[track_caller]
fn round_trips<T>(value: T)
where
    T: ToTensor + Debug + PartialEq,
    Tensor<T>: DeserializeOwned,
{
    let value = Tensor(value);
    let bytes = tenarc::to_vec(&value).unwrap();
    assert_reads(&bytes, &value);
}

#[test]
fn vectors_boxed_slices_and_arrays() {
    fn check<A: Sample>() {
        let values: Vec<A> = (0..100).map(A::sample).collect();
        for len in [0, 1, 3, 100] {
            round_trips(values[..len].to_vec());
            round_trips(values[..len].to_vec().into_boxed_slice());
        }
    }
    fn check_arrays<A: Sample>() {
        let values: Vec<A> = (0..100).map(A::sample).collect();
        round_trips::<[A; 0]>([]);
        round_trips::<[A; 3]>(values[..3].try_into().unwrap());
        round_trips::<[A; 100]>(values.as_slice().try_into().unwrap());
    }
    for_every_element!(check);
    for_some_elements!(check_arrays);
}

#[test]
fn vectors_larger_than_what_readers_buffer() {
    fn check<A: Sample>() {
        let values: Vec<A> = (0..300_000).map(|index| A::sample(index % 100)).collect();
        let bytes = tenarc::to_vec(&Tensor(&values)).unwrap();
        assert_eq!(tenarc::from_slice::<Tensor<Vec<A>>>(&bytes).unwrap().0, values);
        assert_eq!(tenarc::from_reader::<_, Tensor<Vec<A>>>(&*bytes).unwrap().0, values);
    }
    for_every_element!(check);
}

#[test]
fn all_containers_write_the_same_bytes() {
    fn check<A: Sample>() {
        let values: Vec<A> = (0..3).map(A::sample).collect();
        let array: [A; 3] = values.as_slice().try_into().unwrap();
        let expected = encode(&Array1::from_vec(values.clone()));
        let all = [
            tenarc::to_vec(&Tensor(values.clone())),
            tenarc::to_vec(&Tensor(values.clone().into_boxed_slice())),
            tenarc::to_vec(&Tensor(values.as_slice())),
            tenarc::to_vec(&Tensor(array)),
            tenarc::to_vec(&Tensor(ArrayView1::from(&values))),
            tenarc::to_vec(&Tensor(CowArray::from(Array1::from_vec(values.clone())))),
            tenarc::to_vec(&Tensor(Array1::from_vec(values.clone()).into_shared())),
            tenarc::to_vec(&Tensor(DynTensor::from(Array1::from_vec(values.clone())))),
        ];
        for bytes in all {
            assert_eq!(hex(&bytes.unwrap()), hex(&expected));
        }
    }
    for_some_elements!(check);
}

#[test]
fn arrays_of_another_length_are_refused() {
    for len in [2usize, 4] {
        let bytes = tenarc::to_vec(&Tensor(vec![1.5f32; len])).unwrap();
        let found = format!("found {len}");
        assert_fails::<Tensor<[f32; 3]>>(&bytes, &["expected a tensor of 3 elements", &found]);
    }
    let bytes = tenarc::to_vec(&Tensor([1u8; 1])).unwrap();
    assert_fails::<Tensor<[u8; 0]>>(&bytes, &["expected a tensor of 0 elements", "found 1"]);
}

#[test]
fn shared_and_copy_on_write_arrays_from_all_sources() {
    fn check<A: Sample>() {
        let expected = Array2::from_shape_fn((3, 2), |(i, j)| A::sample(2 * i + j));
        for expected in [expected.clone(), expected.reversed_axes()] {
            let bytes = encode(&expected);
            for found in decode::<Tensor<ArcArray<A, Ix2>>>(&bytes) {
                assert_eq!(found.unwrap().0, expected);
            }
            let copied: Tensor<CowArray<'_, A, Ix2>> = tenarc::from_slice(&bytes).unwrap();
            assert_eq!(copied.0, expected);
            let mut reader = tenarc::Deserializer::from_reader(&*bytes);
            let read = Tensor::<CowArray<'_, A, Ix2>>::deserialize(&mut reader).unwrap();
            assert!(read.is_owned());
            assert_eq!(read.0, expected);
        }
    }
    for_some_elements!(check);
}

#[derive(Serialize, Deserialize, Debug, PartialEq)]
struct Marked {
    #[serde(with = "tenarc::tensor")]
    matrix: Array2<f32>,
    #[serde(with = "tenarc::tensor")]
    any_rank: ArrayD<bool>,
    #[serde(with = "tenarc::tensor")]
    shared: ArcArray<i16, Ix1>,
    #[serde(with = "tenarc::tensor")]
    vector: Vec<f64>,
    #[serde(with = "tenarc::tensor")]
    boxed: Box<[u64]>,
    #[serde(with = "tenarc::tensor")]
    array: [half::f16; 100],
    #[serde(with = "tenarc::tensor")]
    none: [u8; 0],
    #[serde(with = "tenarc::tensor")]
    any: DynTensor,
}

#[derive(Serialize, Deserialize, Debug, PartialEq)]
struct Wrapped {
    matrix: Tensor<Array2<f32>>,
    any_rank: Tensor<ArrayD<bool>>,
    shared: Tensor<ArcArray<i16, Ix1>>,
    vector: Tensor<Vec<f64>>,
    boxed: Tensor<Box<[u64]>>,
    array: Tensor<[half::f16; 100]>,
    none: Tensor<[u8; 0]>,
    any: Tensor<DynTensor>,
}

fn wrapped() -> Wrapped {
    Wrapped {
        matrix: array![[1.0, -2.0, 3.0], [0.5, 0.25, -0.0]].into(),
        any_rank: array![[true], [false]].into_dyn().into(),
        shared: array![1, -2, 3].into_shared().into(),
        vector: vec![1e300, -1e-300].into(),
        boxed: vec![u64::MAX].into_boxed_slice().into(),
        array: [half::f16::from_f32(1.5); 100].into(),
        none: [].into(),
        any: DynTensor::from(array![[1u32, 2], [3, 4]].reversed_axes()).into(),
    }
}

#[test]
fn fields_marked_with_the_module_are_written_as_wrapped_ones() {
    let wrapped = wrapped();
    let bytes = tenarc::to_vec(&wrapped).unwrap();
    assert_reads(&bytes, &wrapped);
    let Wrapped { matrix, any_rank, shared, vector, boxed, array, none, any } = wrapped;
    let marked = Marked {
        matrix: matrix.0,
        any_rank: any_rank.0,
        shared: shared.0,
        vector: vector.0,
        boxed: boxed.0,
        array: array.0,
        none: none.0,
        any: any.0,
    };
    assert_eq!(hex(&tenarc::to_vec(&marked).unwrap()), hex(&bytes));
    assert_reads(&bytes, &marked);
}

#[test]
fn tensors_in_options_maps_sequences_and_tuples() {
    type Nested = (Option<Tensor<Vec<f32>>>, Option<Tensor<[u8; 2]>>, Vec<Tensor<Array1<i32>>>);
    let nested: Nested = (
        Some(vec![1.0, 2.0].into()),
        None,
        vec![array![1, 2].into(), array![].into(), array![3].into()],
    );
    assert_reads(&tenarc::to_vec(&nested).unwrap(), &nested);
    let map: BTreeMap<String, Tensor<ArrayD<f64>>> = [
        ("a".into(), array![[1.0]].into_dyn().into()),
        ("b".into(), array![2.0].into_dyn().into()),
    ]
    .into();
    assert_reads(&tenarc::to_vec(&map).unwrap(), &map);
    let twice: Option<Option<Tensor<Vec<u8>>>> = Some(Some(vec![0xf6, 0xf6].into()));
    assert_reads(&tenarc::to_vec(&twice).unwrap(), &twice);
}

#[test]
fn options_of_tensors_are_written_plainly() {
    let bare = tenarc::to_vec(&Tensor([1u8, 2])).unwrap();
    let some = tenarc::to_vec(&Some(Tensor([1u8, 2]))).unwrap();
    assert_eq!(hex(&some), hex(&bare));
}

/// An array type of a user's own.
#[derive(Debug, PartialEq)]
struct Samples<'a>(Cow<'a, [u16]>);

impl ToTensor for Samples<'_> {
    fn meta(&self) -> tenarc::tensor::TensorMeta {
        let shape = [self.0.len(), 1].into();
        tenarc::tensor::TensorMeta { dtype: u16::DTYPE, shape, order: tenarc::tensor::Order::C }
    }

    fn as_le_bytes(&self) -> Option<&[u8]> {
        None
    }

    fn write_blocks(&self, put: &mut dyn FnMut(&[u8]) -> tenarc::Result<()>) -> tenarc::Result<()> {
        self.0.iter().try_for_each(|value| put(&value.to_le_bytes()))
    }
}

impl<'de> FromTensor<'de> for Samples<'de> {
    fn from_tensor(tensor: tenarc::tensor::RawTensor<'de, '_>) -> tenarc::Result<Self> {
        match tensor.borrow() {
            Ok(values) => Ok(Self(Cow::Borrowed(values))),
            Err(_) => tensor.into_vec().map(|values| Self(Cow::Owned(values))),
        }
    }
}

#[test]
fn own_array_types_can_be_tensors() {
    let samples = Tensor(Samples(vec![1, 2, 0x0304].into()));
    let bytes = tenarc::to_vec(&samples).unwrap();
    assert_eq!(bytes, unhex("d828 82 820301 d845 46 010002000403"));
    assert_eq!(tenarc::from_slice::<Tensor<Samples<'_>>>(&bytes).unwrap(), samples);
    assert_reads(&bytes, &Tensor(array![[1u16], [2], [0x0304]]));
}

/// Tells of more or fewer bytes than it gives.
struct Lying(usize);

impl ToTensor for Lying {
    fn meta(&self) -> tenarc::tensor::TensorMeta {
        let shape = [4].into();
        tenarc::tensor::TensorMeta { dtype: u8::DTYPE, shape, order: tenarc::tensor::Order::C }
    }

    fn as_le_bytes(&self) -> Option<&[u8]> {
        None
    }

    fn write_blocks(&self, put: &mut dyn FnMut(&[u8]) -> tenarc::Result<()>) -> tenarc::Result<()> {
        put(&vec![0; self.0])
    }
}

#[test]
fn own_array_types_cannot_write_another_length_than_they_tell() {
    assert!(tenarc::to_vec(&Tensor(Lying(4))).is_ok());
    for (len, said) in [(3, "1 bytes fewer"), (5, "more bytes")] {
        let error = tenarc::to_vec(&Tensor(Lying(len))).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}
