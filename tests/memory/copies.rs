//! How many copies of a payload are made, found by counting what is allocated.

use std::collections::BTreeMap;
use std::io;

use ndarray::{Array2, ArrayD, ArrayView2, CowArray, Ix2, s};
use serde::{Deserialize, Serialize};
use tenarc::ser::EncodeOptions;
use tenarc::{DynTensor, Tensor, Value};

use tenarc_test_support::alloc::{Allocated, allocated};

/// Bytes of the tensor in these tests.
const PAYLOAD: usize = 4 << 20;
/// What may be allocated beside it: staging buffers, names, maps.
const SMALL: usize = 128 << 10;

type Matrix = Tensor<Array2<f32>>;

fn matrix() -> Matrix {
    Tensor(Array2::from_shape_fn((1024, 1024), |(i, j)| if i == j { 0.5 } else { -1.5 }))
}

#[track_caller]
fn assert_copies(count: Allocated, copies: usize) {
    let least = copies * PAYLOAD;
    assert!(count.bytes >= least, "{count:?}: fewer than {copies} copies of {PAYLOAD}");
    assert!(count.bytes <= least + SMALL, "{count:?}: more than {copies} copies of {PAYLOAD}");
}

/// Counts what encoding into a buffer takes that is large enough.
fn encoding<T: Serialize>(value: &T, options: EncodeOptions) -> Allocated {
    let mut buffer = Vec::new();
    tenarc::ser::append_to_with(&mut buffer, value, options).unwrap();
    buffer.clear();
    let (result, count) = allocated(|| tenarc::ser::append_to_with(&mut buffer, value, options));
    result.unwrap();
    count
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Plain {
    name: String,
    weight: Matrix,
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Flat {
    name: String,
    #[serde(flatten)]
    inner: Inner,
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Inner {
    weight: Matrix,
    step: u32,
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
#[serde(untagged)]
enum Untagged {
    Text { text: String },
    Doubles { weight: Tensor<Array2<f64>> },
    Deep { weight: Tensor<ndarray::Array3<f32>> },
    Singles { weight: Matrix },
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
#[serde(untagged)]
enum UntaggedNewtype {
    Number(f64),
    Matrix(Matrix),
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
#[serde(tag = "kind")]
enum Internal {
    Dense { weight: Matrix },
    Wrapped(Inner),
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
#[serde(tag = "kind", content = "content")]
enum Adjacent {
    Newtype(Matrix),
    Struct { weight: Matrix },
}

#[test]
fn encoding_into_a_reused_buffer_allocates_no_payload() {
    fn check<T: Serialize>(value: &T) {
        for options in [EncodeOptions::default(), EncodeOptions::default().with_typed_arrays(true)]
        {
            assert_copies(encoding(value, options), 0);
        }
    }
    check(&matrix());
    check(&Tensor(matrix().0.reversed_axes()));
    check(&Tensor(DynTensor::from(matrix().0)));
    check(&Tensor(matrix().0.into_raw_vec_and_offset().0));
    check(&Plain { name: "a".into(), weight: matrix() });
    check(&Flat { name: "a".into(), inner: Inner { weight: matrix(), step: 1 } });
    check(&Untagged::Singles { weight: matrix() });
    check(&UntaggedNewtype::Matrix(matrix()));
    check(&Internal::Dense { weight: matrix() });
    check(&Internal::Wrapped(Inner { weight: matrix(), step: 1 }));
    check(&Adjacent::Newtype(matrix()));
    check(&Adjacent::Struct { weight: matrix() });
    check(&Some(matrix()));
    check(&tenarc::to_value(&matrix()).unwrap());
}

#[test]
fn packing_into_a_reused_buffer_allocates_no_payload() {
    let values = matrix().0.into_raw_vec_and_offset().0;
    let options = EncodeOptions::default().with_typed_arrays(true);
    assert_copies(encoding(&values, options), 0);
    assert_copies(encoding(&("a", &values, "b"), options), 0);
}

#[test]
fn strided_tensors_are_encoded_in_blocks() {
    let big = Array2::<f32>::from_elem((2048, 2048), 0.5);
    assert_copies(encoding(&Tensor(big.slice(s![..;2, ..;2])), EncodeOptions::default()), 0);
    assert_copies(encoding(&Tensor(big.slice(s![..1024, 7..1031])), EncodeOptions::default()), 0);
    assert_copies(encoding(&Tensor(big.slice(s![..;-2, 1024..])), EncodeOptions::default()), 0);
    let row = ndarray::Array1::<f32>::from_elem(1024, 0.5);
    let broadcast = row.broadcast((1024, 1024)).unwrap();
    assert_copies(encoding(&Tensor(broadcast), EncodeOptions::default()), 0);
}

#[test]
fn encoding_into_a_writer_allocates_no_payload() {
    let big = Array2::<f32>::from_elem((2048, 2048), 0.5);
    let flat = Flat { name: "a".into(), inner: Inner { weight: matrix(), step: 1 } };
    let counts = [
        allocated(|| tenarc::to_writer(io::sink(), &matrix_of(&big)).unwrap()).1,
        allocated(|| tenarc::to_writer(io::sink(), &Tensor(big.slice(s![..;2, ..;2]))).unwrap()).1,
        allocated(|| tenarc::to_writer(io::sink(), &flat).unwrap()).1,
    ];
    for count in counts {
        assert_copies(count, 0);
    }
}

fn matrix_of(array: &Array2<f32>) -> Tensor<ArrayView2<'_, f32>> {
    Tensor(array.view())
}

#[test]
fn a_new_vector_is_allocated_once_to_the_byte() {
    #[derive(Serialize)]
    struct Model {
        name: &'static str,
        layers: Vec<Plain>,
        notes: Vec<String>,
        last: Matrix,
    }
    let model = Model {
        name: "large",
        layers: (0..3).map(|i| Plain { name: format!("{i}"), weight: matrix() }).collect(),
        notes: (0..1000).map(|i| format!("note {i}")).collect(),
        last: matrix(),
    };
    let (bytes, count) = allocated(|| tenarc::to_vec(&model).unwrap());
    assert_eq!(count.large, 1, "{count:?}");
    assert_copies(count, 4);
    assert_eq!(bytes.capacity(), bytes.len());
}

#[test]
fn decoding_a_tensor_copies_once() {
    fn check<T: for<'de> Deserialize<'de>>(bytes: &[u8]) {
        let (result, count) = allocated(|| tenarc::from_slice::<T>(bytes));
        assert!(result.is_ok());
        assert_copies(count, 1);
        assert_eq!(count.large, 1, "from a slice, in one piece");
        let (result, count) = allocated(|| tenarc::from_reader::<_, T>(bytes));
        assert!(result.is_ok());
        assert_copies(count, 1);
    }
    let bytes = tenarc::to_vec(&matrix()).unwrap();
    check::<Matrix>(&bytes);
    check::<Tensor<ArrayD<f32>>>(&bytes);
    check::<Tensor<DynTensor>>(&bytes);
    check::<Option<Matrix>>(&bytes);
    check::<Value>(&bytes);
    check::<Plain>(&tenarc::to_vec(&Plain { name: "a".into(), weight: matrix() }).unwrap());
    let vector = Tensor(matrix().0.into_raw_vec_and_offset().0);
    let bytes = tenarc::to_vec(&vector).unwrap();
    check::<Tensor<Vec<f32>>>(&bytes);
    check::<Tensor<Box<[f32]>>>(&bytes);
}

#[test]
fn what_cannot_be_borrowed_is_copied_once() {
    // The payload in the other byte order.
    let mut bytes = tenarc_test_support::unhex("d828 82 82 190400 190400 d851 5a00400000");
    bytes.resize(bytes.len() + PAYLOAD, 0);
    let (cow, count) = allocated(|| tenarc::from_slice::<Tensor<CowArray<'_, f32, Ix2>>>(&bytes));
    assert!(cow.unwrap().is_owned());
    assert_copies(count, 1);
}

#[test]
fn bytes_become_an_array_with_one_copy() {
    let bytes = tenarc::to_vec(&Tensor(vec![7u8; PAYLOAD])).unwrap();
    let (_, count) = allocated(|| tenarc::from_slice::<Tensor<Vec<u8>>>(&bytes).unwrap());
    assert_copies(count, 1);
    let (_, count) = allocated(|| tenarc::from_reader::<_, Tensor<Vec<u8>>>(&*bytes).unwrap());
    assert_copies(count, 1);
    let bytes = tenarc::to_vec(&Tensor(vec![true; PAYLOAD])).unwrap();
    let (_, count) = allocated(|| tenarc::from_slice::<Tensor<Vec<bool>>>(&bytes).unwrap());
    assert_copies(count, 1);
}

#[test]
fn views_copy_nothing() {
    let message = tenarc::to_vec(&matrix()).unwrap();
    // Moved so that the payload lies aligned.
    let mut memory = vec![0u128; message.len() / 16 + 2];
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut memory);
    let start = 16 - (message.len() - PAYLOAD) % 16;
    bytes[start..start + message.len()].copy_from_slice(&message);
    let bytes = &bytes[start..start + message.len()];
    let (view, count) = allocated(|| tenarc::from_slice::<Tensor<ArrayView2<'_, f32>>>(bytes));
    assert_eq!(view.unwrap().0, matrix().0);
    assert!(count.bytes < 1024, "{count:?}");
    let (cow, count) = allocated(|| tenarc::from_slice::<Tensor<CowArray<'_, f32, Ix2>>>(bytes));
    assert!(cow.unwrap().is_view());
    assert!(count.bytes < 1024, "{count:?}");
}

/// Decodes what a value was encoded to, which must give it again.
#[track_caller]
fn assert_decodes<T>(value: &T, from_slice: usize, from_reader: usize)
where
    T: Serialize + for<'de> Deserialize<'de> + PartialEq,
{
    let bytes = tenarc::to_vec(value).unwrap();
    let (back, count) = allocated(|| tenarc::from_slice::<T>(&bytes).unwrap());
    assert!(back == *value);
    assert_copies(count, from_slice);
    let (back, count) = allocated(|| tenarc::from_reader::<_, T>(&*bytes).unwrap());
    assert!(back == *value);
    assert_copies(count, from_reader);
}

#[test]
fn decoding_through_serdes_buffers_copies_once_from_a_slice() {
    // From a reader serde's own buffer is the second copy.
    assert_decodes(&Flat { name: "a".into(), inner: Inner { weight: matrix(), step: 1 } }, 1, 2);
    assert_decodes(&UntaggedNewtype::Matrix(matrix()), 1, 2);
    assert_decodes(&Internal::Dense { weight: matrix() }, 1, 2);
    assert_decodes(&Internal::Wrapped(Inner { weight: matrix(), step: 1 }), 1, 2);
}

#[test]
fn variants_that_do_not_fit_copy_nothing_from_a_slice() {
    let bytes = tenarc::to_vec(&Untagged::Singles { weight: matrix() }).unwrap();
    let (back, count) = allocated(|| tenarc::from_slice::<Untagged>(&bytes).unwrap());
    assert_eq!(back, Untagged::Singles { weight: matrix() });
    assert_copies(count, 1);
    // From a reader, serde's buffer and one copy for each variant with a tensor, at most.
    let (back, count) = allocated(|| tenarc::from_reader::<_, Untagged>(&*bytes).unwrap());
    assert_eq!(back, Untagged::Singles { weight: matrix() });
    assert!(count.bytes <= 4 * PAYLOAD + SMALL, "{count:?}");
}

#[test]
fn decoding_flattened_maps_copies_once_from_a_slice() {
    #[derive(Serialize, Deserialize, PartialEq)]
    struct Extra {
        name: String,
        #[serde(flatten)]
        tensors: BTreeMap<String, Matrix>,
    }
    let extra = Extra { name: "a".into(), tensors: [("weight".into(), matrix())].into() };
    assert_decodes(&extra, 1, 2);
}

#[derive(Serialize)]
struct Reversed {
    content: Matrix,
    kind: &'static str,
}

#[test]
fn decoding_adjacently_tagged_enums_copies_once() {
    // With the tag in front nothing is buffered.
    assert_decodes(&Adjacent::Newtype(matrix()), 1, 1);
    assert_decodes(&Adjacent::Struct { weight: matrix() }, 1, 1);
    let bytes = tenarc::to_vec(&Reversed { content: matrix(), kind: "Newtype" }).unwrap();
    let (back, count) = allocated(|| tenarc::from_slice::<Adjacent>(&bytes).unwrap());
    assert_eq!(back, Adjacent::Newtype(matrix()));
    assert_copies(count, 1);
}

#[test]
fn borrowed_views_pass_through_serdes_buffers_without_a_copy() {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum View<'a> {
        #[serde(borrow)]
        Mask(Tensor<ArrayView2<'a, u8>>),
    }
    let bytes = tenarc::to_vec(&Tensor(Array2::<u8>::from_elem((2048, 2048), 7))).unwrap();
    let (view, count) = allocated(|| tenarc::from_slice::<View<'_>>(&bytes).unwrap());
    let View::Mask(mask) = view;
    assert!(bytes.as_ptr_range().contains(&mask.as_ptr()));
    assert_copies(count, 0);
}

#[test]
fn values_copy_once_each_way() {
    let plain = Plain { name: "a".into(), weight: matrix() };
    let bytes = tenarc::to_vec(&plain).unwrap();
    let (value, count) = allocated(|| tenarc::to_value(&plain).unwrap());
    assert_copies(count, 1);
    let (read, count) = allocated(|| tenarc::from_slice::<Value>(&bytes).unwrap());
    assert_copies(count, 1);
    assert!(read == value);
    let (written, count) = allocated(|| tenarc::to_vec(&value).unwrap());
    assert_copies(count, 1);
    assert!(written == bytes);
    // Borrowed: a copy for an array, none for a view.
    let (back, count) = allocated(|| Plain::deserialize(&value).unwrap());
    assert_copies(count, 1);
    assert!(back == plain);
    let weight = value.get("weight").unwrap();
    let (view, count) = allocated(|| Tensor::<ArrayView2<'_, f32>>::deserialize(weight).unwrap());
    assert_copies(count, 0);
    assert_eq!(view.0, plain.weight.0);
    // Taken: moved.
    let (back, count) = allocated(|| tenarc::from_value::<Plain>(value).unwrap());
    assert_copies(count, 0);
    assert!(back == plain);
}

#[test]
fn values_pass_through_serdes_buffers() {
    let value = tenarc::to_value(&UntaggedNewtype::Matrix(matrix())).unwrap();
    let (back, count) = allocated(|| tenarc::from_value::<UntaggedNewtype>(value).unwrap());
    assert_eq!(back, UntaggedNewtype::Matrix(matrix()));
    // serde's buffer, and the array.
    assert_copies(count, 2);
}

#[test]
fn strided_tensors_become_values_with_one_copy_at_a_time() {
    let big = Array2::<f32>::from_elem((2048, 2048), 0.5);
    let (value, count) = allocated(|| tenarc::to_value(&Tensor(big.slice(s![..;2, ..;2]))));
    assert_eq!(value.unwrap().as_tensor().unwrap().shape(), [1024, 1024]);
    // Gathered as bytes, and then as elements.
    assert_copies(count, 2);
}

#[test]
fn a_dtype_mismatch_copies_nothing() {
    let bytes = tenarc::to_vec(&matrix()).unwrap();
    let (result, count) = allocated(|| tenarc::from_slice::<Tensor<Array2<f64>>>(&bytes));
    assert!(result.is_err());
    assert_copies(count, 0);
}
