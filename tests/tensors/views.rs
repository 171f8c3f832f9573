//! Zero-copy views of payloads that are aligned in a slice; others are refused.

use ndarray::{
    Array1, Array2, ArrayView0, ArrayView1, ArrayView2, ArrayViewD, CowArray, Ix2, array,
};
use serde::{Deserialize, Serialize};
use tenarc::{DType, Tensor};

use super::support::{Placed, Sample, encode, for_every_element, unhex};

fn payload_len<A>(array: &Array2<A>) -> usize {
    array.len() * size_of::<A>()
}

/// Whether the elements lie inside the bytes.
fn inside<A>(first: *const A, bytes: &[u8]) -> bool {
    bytes.as_ptr_range().contains(&first.cast())
}

#[test]
fn views_of_aligned_payloads_lie_in_the_slice() {
    fn check<A: Sample>() {
        let row_major = Array2::from_shape_fn((3, 4), |(i, j)| A::sample(4 * i + j));
        for array in [row_major.clone(), row_major.reversed_axes()] {
            let placed = Placed::new(&encode(&array), payload_len(&array), 0);
            let view: Tensor<ArrayView2<'_, A>> = tenarc::from_slice(placed.bytes()).unwrap();
            assert_eq!(view.0, array);
            assert_eq!(view.strides(), array.strides());
            assert!(inside(view.as_ptr(), placed.bytes()));
            let view: Tensor<ArrayViewD<'_, A>> = tenarc::from_slice(placed.bytes()).unwrap();
            assert!(inside(view.as_ptr(), placed.bytes()));
            let cow: Tensor<CowArray<'_, A, Ix2>> = tenarc::from_slice(placed.bytes()).unwrap();
            assert!(cow.is_view() && inside(cow.as_ptr(), placed.bytes()));
            assert_eq!(cow.0, array);
        }
    }
    for_every_element!(check);
}

#[test]
fn views_need_just_the_alignment_of_their_elements() {
    fn check<A: Sample>() {
        let array = Array2::from_shape_fn((3, 4), |(i, j)| A::sample(4 * i + j));
        let message = encode(&array);
        for distance in 0..16 {
            let placed = Placed::new(&message, payload_len(&array), distance);
            let view = tenarc::from_slice::<Tensor<ArrayView2<'_, A>>>(placed.bytes());
            if distance % align_of::<A>() == 0 {
                assert_eq!(view.unwrap().0, array);
                continue;
            }
            let error = view.unwrap_err().to_string();
            let needs = format!("aligned to {} bytes", align_of::<A>());
            assert!(error.contains(&needs), "{error}");
            assert!(error.contains("CowArray"), "the error says what to do: {error}");
        }
    }
    for_every_element!(check);
}

#[test]
fn misaligned_payloads_are_copied_into_copy_on_write_arrays() {
    fn check<A: Sample>() {
        let array = Array2::from_shape_fn((3, 4), |(i, j)| A::sample(4 * i + j));
        let placed = Placed::new(&encode(&array), payload_len(&array), 1);
        let cow: Tensor<CowArray<'_, A, Ix2>> = tenarc::from_slice(placed.bytes()).unwrap();
        assert_eq!(cow.is_owned(), align_of::<A>() > 1);
        assert_eq!(cow.0, array);
        let owned: Tensor<Array2<A>> = tenarc::from_slice(placed.bytes()).unwrap();
        assert_eq!(owned.0, array);
    }
    for_every_element!(check);
}

#[test]
fn a_slice_moved_by_one_byte_is_an_error_that_says_so() {
    let message = encode(&array![1.0f64, 2.0]);
    let placed = Placed::new(&message, 16, 0);
    assert!(tenarc::from_slice::<Tensor<ArrayView1<'_, f64>>>(placed.bytes()).is_ok());
    let mut moved = vec![0];
    moved.extend_from_slice(placed.bytes());
    let moved = Placed::new(&moved, 16, 1);
    let error = tenarc::from_slice::<Tensor<ArrayView1<'_, f64>>>(&moved.bytes()[1..]).unwrap_err();
    assert_eq!(error.category(), tenarc::error::Category::Unsupported);
    assert!(error.to_string().contains("needs memory aligned to 8 bytes"), "{error}");
}

#[test]
fn views_from_a_reader_are_an_error_that_says_so() {
    fn check<A: Sample>() {
        // Below and above what readers hand over in one piece.
        for len in [1, 100_000] {
            let message = encode(&Array1::from_elem(len, A::sample(1)));
            let mut reader = tenarc::Deserializer::from_reader(&*message);
            let error = Tensor::<ArrayView1<'_, A>>::deserialize(&mut reader).unwrap_err();
            assert!(error.to_string().contains("cannot be borrowed"), "{error}");
            assert!(error.to_string().contains("reader"), "{error}");
        }
    }
    for_every_element!(check);
}

#[test]
fn chunked_and_big_endian_payloads_cannot_be_viewed() {
    let chunked = unhex("d828 82 8102 d855 5f 44 0000803f 44 00000040 ff");
    let big_endian = unhex("d828 82 8102 d851 48 3f800000 40000000");
    for message in [chunked, big_endian] {
        for distance in 0..4 {
            let placed = Placed::new(&message, 8, distance);
            let view = tenarc::from_slice::<Tensor<ArrayView1<'_, f32>>>(placed.bytes());
            let error = view.unwrap_err().to_string();
            assert!(error.contains("cannot be borrowed"), "{error}");
        }
        let cow: Tensor<CowArray<'_, f32, ndarray::Ix1>> = tenarc::from_slice(&message).unwrap();
        assert!(cow.is_owned());
        assert_eq!(cow.0, array![1.0, 2.0]);
    }
}

#[test]
fn empty_views_need_no_alignment() {
    fn check<A: Sample>() {
        let message = encode(&Array2::<A>::default((0, 3)));
        for distance in 0..16 {
            let placed = Placed::new(&message, 0, distance);
            let view: Tensor<ArrayView2<'_, A>> = tenarc::from_slice(placed.bytes()).unwrap();
            assert_eq!(view.shape(), [0, 3]);
        }
    }
    for_every_element!(check);
}

#[test]
fn views_of_scalars() {
    let message = encode(&ndarray::arr0(2.5f64));
    let placed = Placed::new(&message, 8, 8);
    let view: Tensor<ArrayView0<'_, f64>> = tenarc::from_slice(placed.bytes()).unwrap();
    assert_eq!(view[()].to_bits(), 2.5f64.to_bits());
}

#[test]
fn bytes_that_are_no_bools_are_never_viewed() {
    let message = unhex("da54454e53 84 64 626f6f6c 8103 6143 43 000102");
    let error = tenarc::from_slice::<Tensor<ArrayView1<'_, bool>>>(&message).unwrap_err();
    assert!(error.to_string().contains("the byte 2; it must be 0 or 1"), "{error}");
    let cow = tenarc::from_slice::<Tensor<CowArray<'_, bool, ndarray::Ix1>>>(&message);
    assert!(cow.unwrap_err().to_string().contains("the byte 2; it must be 0 or 1"));
}

#[test]
fn views_of_another_dtype_are_refused_even_of_the_same_width() {
    let placed = Placed::new(&encode(&array![1i32, 2]), 8, 0);
    let error = tenarc::from_slice::<Tensor<ArrayView1<'_, f32>>>(placed.bytes()).unwrap_err();
    let error = error.to_string();
    assert!(error.contains("expected a tensor of f32") && error.contains("i32"), "{error}");
    let cow = tenarc::from_slice::<Tensor<CowArray<'_, u32, ndarray::Ix1>>>(placed.bytes());
    assert!(cow.unwrap_err().to_string().contains("expected a tensor of u32"));
}

#[derive(Serialize, Deserialize, Debug, PartialEq)]
struct View<'a> {
    name: &'a str,
    #[serde(borrow)]
    weight: Tensor<ArrayView2<'a, u8>>,
    #[serde(borrow, with = "tenarc::tensor")]
    mask: ArrayView1<'a, bool>,
    #[serde(borrow)]
    bias: Tensor<CowArray<'a, f32, ndarray::Ix1>>,
}

#[test]
fn borrowed_fields_of_a_struct() {
    let (weight, mask) = (array![[1u8, 2], [3, 4]], array![true, false]);
    let view = View {
        name: "layer",
        weight: weight.view().into(),
        mask: mask.view(),
        bias: CowArray::from(array![0.5f32]).into(),
    };
    let bytes = tenarc::to_vec(&view).unwrap();
    let back: View<'_> = tenarc::from_slice(&bytes).unwrap();
    assert_eq!(back, view);
    assert!(inside(back.weight.as_ptr(), &bytes));
    assert!(inside(back.mask.as_ptr(), &bytes));
    assert!(inside(back.name.as_ptr(), &bytes));
}

#[test]
fn a_borrowed_value_lends_its_tensors() {
    let value = tenarc::to_value(&Tensor(array![[1.5f64, 2.5]])).unwrap();
    let view = Tensor::<ArrayView2<'_, f64>>::deserialize(&value).unwrap();
    assert_eq!(view.0, array![[1.5, 2.5]]);
    let held = value.as_tensor().unwrap();
    assert_eq!(held.dtype(), &DType::F64);
    assert_eq!(view.as_ptr(), held.view::<f64>().unwrap().as_ptr());
}
